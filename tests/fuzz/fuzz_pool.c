/*
 * Fuzzes the pool: the input is what a caller does, three bytes each, held against a simple account
 * of it after each (tests/unit/pool_model.h).  The first byte says how many handles there are.
 */
#include "tests/unit/pool_model.h"

#include <stdint.h>

#define SLOT  4096u
#define SLOTS 24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step(struct pool_model *m, const uint8_t in[3])
{
	const uint32_t tag = in[0] >> 3 & 3, number = in[1] | (uint32_t)in[2] << 8;
	switch (in[0] & 7) {
	case 0:
	case 1:
		model_place(m, number % (SLOTS * SLOT + 2), tag, true);
		break;
	case 2:
		model_place(m, in[1] * 16u, tag, true);
		break;
	case 3:
	case 4:
		if (m->blocks.n)
			model_release(m, number % m->blocks.n, tag);
		break;
	case 5:
		model_settle(m, tag);
		break;
	case 6:
		model_give_back(m);
		break;
	default:
		model_ask(m, number * 2u);
	}
	model_check(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Few records, so that they run out. */
	const struct pool_shape shape = { 1u << 20, SLOTS * SLOT, SLOT, 24 };
	if (!size)
		return 0;
	struct pool_model *m = model_new(&shape, data[0] % (SLOTS + 1));
	for (size_t i = 1; i + 3 <= size && i < 3 * 120; i += 3)
		step(m, data + i);
	model_end(m);
	model_free(m);
	return 0;
}
