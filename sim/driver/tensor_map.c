/*
 * Descriptions of tensors for the copy engine of Hopper.  No kernel executes, so they are checked
 * and kept, and nothing reads them but tests.
 */
#include "driver/sim.h"

#include <assert.h>
#include <string.h>

#include "driver/tensor_map.h"

enum { MAP_BYTES = 128, MAX_RANK = 5, MAX_BOX = 256, ALIGN = 16, MAP_ALIGN = 64 };

static_assert(sizeof(struct sim_tensor_map) <= MAP_BYTES, "it fits into a CUtensorMap");

/* Bytes of an element; 0: a type that the simulated driver does not know. */
static unsigned element_bytes(int type)
{
	static const uint8_t bytes[] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4 };
	return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

/* By the rules of the driver's manual. */
static bool is_dimension(uint64_t size, uint32_t box, uint32_t step)
{
	return size && size <= UINT64_C(1) << 32 && box && box <= MAX_BOX && step && step <= 8;
}

int sim_cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at,
	unsigned long long *sizes, unsigned long long *pitches, unsigned *box, unsigned *steps,
	int interleave, int swizzle, int promotion, int fill)
{
	static const unsigned span[] = { MAX_BOX * 8, 32, 64, 128 }; /* bytes, by the swizzle */
	struct sim_tensor_map m = { .at = (uint64_t)at };
	const unsigned bytes = element_bytes(type);

	if (!map || (uintptr_t)map % MAP_ALIGN || !at || m.at % ALIGN || !sizes || !box || !steps ||
		!rank || rank > MAX_RANK || (rank > 1 && !pitches) || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (interleave || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 ||
		fill < 0 || fill > 1 || box[0] * bytes > span[swizzle] || box[0] * bytes % ALIGN)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < rank; i++) {
		if (!is_dimension(sizes[i], box[i], steps[i]))
			return CUDA_ERROR_INVALID_VALUE;
		if (i > 0 && (pitches[i - 1] % ALIGN || pitches[i - 1] >= UINT64_C(1) << 40))
			return CUDA_ERROR_INVALID_VALUE;
		m.size[i] = sizes[i];
		m.pitch[i > 0 ? i - 1 : 0] = i > 0 ? pitches[i - 1] : 0;
		m.box[i] = (uint16_t)box[i];
		m.step[i] = (uint16_t)steps[i];
	}
	m.rank = (uint8_t)rank;
	m.type = (uint8_t)type;
	m.swizzle = (uint8_t)swizzle;
	m.promotion = (uint8_t)promotion;
	m.fill = (uint8_t)fill;
	memset(map, 0, MAP_BYTES);
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}
