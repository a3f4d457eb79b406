/*
 * What an earlier run has left: tables that were learnt, changed in places, and then asked and
 * taught. The input is a list of changes, each a place (in words of 4 bytes) and what stands there.
 * The checksum is made good, as whoever writes such a file on purpose would.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predict/predict.h"
#include "predict/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct predict_sizes sizes = { .launches = 16, .kernels = 4 };
static struct predict_device device;
static size_t bytes;
static void *learnt;

static const struct predict_kernel kernels[] = { { .id = 1, .family = FAMILY_GEMM, .group = 7 },
	{ .id = 2, .family = FAMILY_GEMM, .group = 7 }, { .id = 3, .family = FAMILY_NORM } };
#define KERNELS (sizeof(kernels) / sizeof(*kernels))

static struct predict_launch launch_of(uint32_t i)
{
	return (struct predict_launch){ .kernel = &kernels[i % KERNELS],
		.grid = { 1 + i * i, 1, 1 },
		.block = { 32u << i % 5, 1, 1 },
		.args = 2,
		.arg = { 64 * i, 3 * i + 1 },
		.contended = i % 7 == 6 };
}

static void teach(struct predict *p, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		predict_learn(p, &(struct predict_sample){ .launch = launch_of(i),
					 .measured_ns = 1000 + 37.0 * i,
					 .order = (uint64_t)i << 30 });
}

static void prepare(void)
{
	struct predict p;
	bytes = predict_bytes(&sizes);
	learnt = aligned_alloc(64, bytes);
	if (!learnt || predict_device_find("NVIDIA H200", 90, 0, &device) ||
		predict_init(&p, learnt, bytes, &sizes, &device))
		abort();
	for (int i = 0; i < 3; i++)
		teach(&p, 0, 30);
}

static void change(uint8_t *memory, const uint8_t *data, size_t size)
{
	for (; size >= 6; data += 6, size -= 6) {
		uint16_t at;
		memcpy(&at, data, sizeof at);
		memcpy(memory + at % (bytes / 4) * 4, data + 2, 4);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct predict p;
	struct predict_answer a;
	if (!learnt)
		prepare();
	void *memory = aligned_alloc(64, bytes);
	if (!memory)
		return 0;
	memcpy(memory, learnt, bytes);
	change(memory, data, size);
	p.tables = memory;
	if (p.tables->launches == sizes.launches && p.tables->kernels == sizes.kernels &&
		p.tables->bytes == bytes)
		predict_seal(&p);
	if (!predict_attach(&p, memory, bytes, &device)) {
		for (uint32_t i = 0; i < 40; i++) {
			const struct predict_launch l = launch_of(i);
			predict_ask(&p, &l, &a);
			assert(a.tier < PREDICT_TIERS);
		}
		teach(&p, 20, 24);
	}
	free(memory);
	return 0;
}
