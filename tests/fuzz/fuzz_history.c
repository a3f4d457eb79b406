/*
 * An earlier run's file: tables that were learnt, changed in places, and then asked and taught.
 * The input is a list of changes, each a place (in words of 4 bytes) and what stands there, and a
 * byte that says how they are read.
 *
 * Mostly there is no checksum, which is half of the time; where there is, it is made good, as
 * whoever writes such a file on purpose would.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "predict/predict.h"
#include "predict/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct predict_sizes sizes = { .launches = 16, .kernels = 4 };
static struct predict_device device;
static size_t bytes;
static void *learnt, *memory;

/* The bits of the last byte. */
enum {
	SEALED = 1,
	TRANSFERRED = 2, /* it is another device's */
	SHORT = 4,       /* the end is missing */
	TAUGHT = 8,
};

/* A dozen samples lead further than one and take as long as twelve: one input in so many has them.
 * Which, the whole of it says, and not a byte that all inputs made from it would keep.  A replay
 * has them always. */
#define LONG_ONE_IN 32
#ifdef FUZZ_REPLAY
#define IS_LONG(data, size) true
#else
#define IS_LONG(data, size) (hash_fnv32(data, size) % LONG_ONE_IN == 0)
#endif

static const struct predict_kernel kernels[] = { { .id = 1, .family = FAMILY_GEMM, .group = 7 },
	{ .id = 2, .family = FAMILY_GEMM, .group = 7 }, { .id = 3, .family = FAMILY_NORM } };
#define KERNELS (sizeof kernels / sizeof *kernels)

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
	memory = aligned_alloc(64, bytes);
	if (!learnt || !memory || predict_device_find("NVIDIA H200", 90, 0, &device) ||
		predict_init(&p, learnt, bytes, &sizes, &device))
		abort();
	for (int i = 0; i < 3; i++)
		teach(&p, 0, 18);
}

/* The next fit reads nothing that a fit leaves behind the tables. */
static void change(const uint8_t *data, size_t size)
{
	memcpy(memory, learnt, bytes - sizeof(struct sibling_scratch));
	for (; size >= 6; data += 6, size -= 6) {
		uint16_t at;
		memcpy(&at, data, sizeof at);
		memcpy((uint8_t *)memory + at % (bytes / 4) * 4, data + 2, 4);
	}
}

static bool is_whole(void)
{
	const struct predict_tables *t = memory;
	return t->launches == sizes.launches && t->kernels == sizes.kernels && t->bytes == bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct predict p;
	struct predict_answer a;
	const uint8_t how = size ? data[size - 1] : 0;
	if (!learnt)
		prepare();
	change(data, size);
	p.tables = memory;
	if (is_whole())
		p.tables->sealed = 0;
	if (is_whole() && how % 64 == SEALED)
		predict_seal(&p);
	if (how & SHORT && is_whole())
		assert(predict_attach(&p, memory, bytes - 1 - how, &device) == -EINVAL);
	if (predict_attach(&p, memory, bytes, &device))
		return 0;
	if (how & TRANSFERRED)
		predict_transfer(&p, &device);
	for (uint32_t i = 0; i < 40; i += 5) {
		const struct predict_launch l = launch_of(i);
		predict_ask(&p, &l, &a);
		assert(a.tier < PREDICT_TIERS);
	}
	if (how & TAUGHT)
		teach(&p, 20 + how % 16, IS_LONG(data, size) ? 12 : 1);
	return 0;
}
