/* A model file, by one that asks whatever it takes.  An input whose first byte is odd has its
 * length, schema and checksum mended, so that what lies behind them is reached. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "predict/model.h"
#include "predict/predictor.h"

static void ask(const struct predict_model *m)
{
	const struct predict_kernel k = { .id = 1, .family = FAMILY_GEMM };
	struct predict_device d;
	if (predict_device_find("NVIDIA H200", 90, 0, &d))
		abort();
	for (uint32_t i = 0; i < 8; i++) {
		const struct predict_launch l = { .kernel = &k,
			.grid = { 1u << 3 * i, 1, 1 },
			.block = { 32 << i % 6, 1, 1 },
			.args = i,
			.arg = { 1ull << 7 * i } };
		struct predict_question q = { .launch = &l, .device = &d };
		struct model_answer a;
		if (!question_shape(&q))
			continue;
		model_ask(m, &q, &a);
		assert(a.log_ratio >= m->file->answer_low && a.log_ratio <= m->file->answer_high);
	}
}

static void repair(struct model_file *f, size_t n)
{
	const size_t from = offsetof(struct model_file, check) + sizeof f->check;
	memcpy(f->magic, MODEL_MAGIC, sizeof f->magic);
	f->version = MODEL_VERSION;
	f->header_bytes = sizeof *f;
	f->file_bytes = n;
	f->schema = feature_schema();
	f->check = crc32c((const char *)f + from, n - from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct predict_model m;
	const bool mended = size && (data[0] & 1);
	const size_t n = size ? size - 1 : 0;
	void *copy = aligned_alloc(MODEL_ALIGN, (n / MODEL_ALIGN + 1) * MODEL_ALIGN);
	if (!copy)
		return 0;
	memcpy(copy, data + (size != 0), n);
	if (mended && n >= sizeof(struct model_file))
		repair(copy, n);
	if (!model_open(copy, n, &m, NULL))
		ask(&m);
	free(copy);
	return 0;
}
