/*
 * Descriptions of tensors for the copy engine of Hopper.  No kernel executes, so they are checked
 * and kept, and nothing reads them but tests.
 */
#include "driver/sim.h"

#include <assert.h>
#include <string.h>

#include "driver/tensor_map.h"

enum {
	MAP_BYTES = 128,
	MAX_RANK = 5,
	MAX_BOX = 256,
	MAX_PIXELS = 1024,
	MAX_STEP = 8,
	ALIGN = 16,
	MAP_ALIGN = 64
};

static_assert(sizeof(struct sim_tensor_map) <= MAP_BYTES, "it fits into a CUtensorMap");

/* Bytes of an element; 0: a type that the simulated driver does not know. */
static unsigned element_bytes(int type)
{
	static const uint8_t bytes[] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4 };
	return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

/* The rules are those of the driver's manual. */
static bool is_layout(uint32_t inner_bytes, int interleave, int swizzle, int promotion, int fill)
{
	static const unsigned span[] = { MAX_BOX * 8, 32, 64, 128 }; /* bytes, by the swizzle */
	return !interleave && swizzle >= 0 && swizzle <= 3 && promotion >= 0 && promotion <= 3 &&
	       fill >= 0 && fill <= 1 && inner_bytes <= span[swizzle] && inner_bytes % ALIGN == 0;
}

/* Sizes, pitches and steps. */
static bool take_sizes(struct sim_tensor_map *m, unsigned rank, const unsigned long long *sizes,
	const unsigned long long *pitches, const unsigned *steps)
{
	for (unsigned i = 0; i < rank; i++) {
		if (!sizes[i] || sizes[i] > UINT64_C(1) << 32 || !steps[i] || steps[i] > MAX_STEP)
			return false;
		if (i > 0 && (pitches[i - 1] % ALIGN || pitches[i - 1] >= UINT64_C(1) << 40))
			return false;
		m->size[i] = sizes[i];
		m->pitch[i > 0 ? i - 1 : 0] = i > 0 ? pitches[i - 1] : 0;
		m->step[i] = (uint16_t)steps[i];
	}
	m->rank = (uint8_t)rank;
	return true;
}

static int put_map(
	void *map, struct sim_tensor_map *m, int type, int swizzle, int promotion, int fill)
{
	m->type = (uint8_t)type;
	m->swizzle = (uint8_t)swizzle;
	m->promotion = (uint8_t)promotion;
	m->fill = (uint8_t)fill;
	memset(map, 0, MAP_BYTES);
	memcpy(map, m, sizeof *m);
	return CUDA_SUCCESS;
}

int sim_cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at,
	unsigned long long *sizes, unsigned long long *pitches, unsigned *box, unsigned *steps,
	int interleave, int swizzle, int promotion, int fill)
{
	struct sim_tensor_map m = { .at = (uint64_t)at };
	const unsigned bytes = element_bytes(type);

	if (!map || (uintptr_t)map % MAP_ALIGN || !at || m.at % ALIGN || !sizes || !box || !steps ||
		!rank || rank > MAX_RANK || (rank > 1 && !pitches) || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_layout(box[0] * bytes, interleave, swizzle, promotion, fill) ||
		!take_sizes(&m, rank, sizes, pitches, steps))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < rank; i++) {
		if (!box[i] || box[i] > MAX_BOX)
			return CUDA_ERROR_INVALID_VALUE;
		m.box[i] = (uint16_t)box[i];
	}
	return put_map(map, &m, type, swizzle, promotion, fill);
}

/* A corner has 16, 8 or 5 bits for images of one, two or three dimensions. */
int sim_cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *at,
	unsigned long long *sizes, unsigned long long *pitches, int *first, int *last,
	unsigned channels, unsigned pixels, unsigned *steps, int interleave, int swizzle,
	int promotion, int fill)
{
	static const int most[] = { 1 << 15, 1 << 7, 1 << 4 };
	struct sim_tensor_map m = { .at = (uint64_t)at };
	const unsigned bytes = element_bytes(type);

	if (!map || (uintptr_t)map % MAP_ALIGN || !at || m.at % ALIGN || !sizes || !pitches ||
		!first || !last || !steps || rank < 3 || rank > MAX_RANK || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!channels || channels > MAX_BOX || !pixels || pixels > MAX_PIXELS ||
		!is_layout(channels * bytes, interleave, swizzle, promotion, fill) ||
		!take_sizes(&m, rank, sizes, pitches, steps))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < rank - 2; i++) {
		const int limit = most[rank - 3];
		if (first[i] < -limit || first[i] >= limit || last[i] < -limit || last[i] >= limit)
			return CUDA_ERROR_INVALID_VALUE;
		m.first[i] = (int16_t)first[i];
		m.last[i] = (int16_t)last[i];
	}
	m.box[0] = (uint16_t)channels;
	m.box[1] = (uint16_t)pixels;
	return put_map(map, &m, type, swizzle, promotion, fill);
}
