/*
 * The effect of copies and fills on bytes, how far they may reach, and how long they take:
 *
 *	copy  latency + bytes / PCIe rate; between device places 2 * bytes / memory rate
 *	fill  latency + bytes / memory rate
 */
#include "driver/sim.h"
#include "driver/array.h"

#include <string.h>

static bool span(const struct place *p, size_t width, size_t height, size_t depth, size_t *ret_end)
{
	size_t rows, slices;

	if (height > 1 && p->pitch < width)
		return false;
	return !__builtin_mul_overflow(p->pitch, height - 1, &rows) &&
	       !__builtin_mul_overflow(p->slice, depth - 1, &slices) &&
	       !__builtin_add_overflow(rows, slices, &rows) &&
	       !__builtin_add_overflow(rows, width, ret_end);
}

static bool fits(const struct place *p, const struct copy_region *region)
{
	size_t end;

	if (p->row_room && (region->width > p->row_room || region->height > p->rows_room))
		return false;
	return p->base && span(p, region->width, region->height, region->depth, &end) &&
	       end <= p->room;
}

static bool empty(const struct copy_region *region)
{
	return !region->width || !region->height || !region->depth;
}

int region_check(const struct copy_region *region)
{
	if (empty(region))
		return CUDA_SUCCESS;
	return fits(&region->src, region) && fits(&region->dst, region) ? CUDA_SUCCESS
									: CUDA_ERROR_INVALID_VALUE;
}

void region_copy(const struct copy_region *region)
{
	if (empty(region))
		return;
	for (size_t z = 0; z < region->depth; z++)
		for (size_t y = 0; y < region->height; y++)
			memmove(region->dst.base + z * region->dst.slice + y * region->dst.pitch,
				region->src.base + z * region->src.slice + y * region->src.pitch,
				region->width);
}

uint64_t region_cost_ns(const struct copy_region *region)
{
	double bytes = (double)region->width * (double)region->height * (double)region->depth;
	bool inside = region->src.device && region->dst.device;
	double ns = inside ? 2 * bytes / script.hbm_gbps : bytes / script.pcie_gbps;

	return script.copy_ns + (uint64_t)ns;
}

/* One side of a three-dimensional copy: where it reads, or where it writes. */
struct copy_side {
	int type;
	const void *host;
	uint64_t device;
	void *array;
	size_t x, y, z, pitch, height;
};

static int array_place(const struct copy_side *side, struct place *ret_place, size_t *ret_slice)
{
	struct array *a = obj_find(side->array, OBJ_ARRAY);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (side->x >= a->row_bytes || side->y >= a->height)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_place = (struct place){
		.base = (uint8_t *)a->range->base,
		.pitch = a->pitch,
		.slice = a->pitch * a->height,
		.room = a->range->size,
		.row_room = a->row_bytes - side->x,
		.rows_room = a->height - side->y,
		.device = true,
	};
	*ret_slice = ret_place->slice;
	return CUDA_SUCCESS;
}

static int linear_place(const struct copy_side *side, struct place *ret_place)
{
	uint64_t address = side->type == CU_MEMORYTYPE_HOST ? (uint64_t)side->host : side->device;
	struct range *range = range_find(address);

	if (!range && side->type == CU_MEMORYTYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_place = (struct place){
		.base = (uint8_t *)address,
		.pitch = side->pitch,
		.slice = side->pitch * side->height,
		.room = SIZE_MAX,
		.pageable = !range,
	};
	if (range) {
		ret_place->room = range_room(range, address);
		ret_place->device = range->kind != RANGE_HOST && range->kind != RANGE_REGISTERED;
		/* Host memory that is partly registered may be copied as a whole. */
		if (range->kind == RANGE_REGISTERED)
			ret_place->room = SIZE_MAX;
	}
	return CUDA_SUCCESS;
}

static int place(const struct copy_side *side, struct place *ret_place)
{
	size_t rows, slices, offset, slice = side->pitch * side->height;
	int r;

	if (side->type < CU_MEMORYTYPE_HOST || side->type > CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (side->type == CU_MEMORYTYPE_ARRAY)
		r = array_place(side, ret_place, &slice);
	else
		r = linear_place(side, ret_place);
	if (r)
		return r;
	if (__builtin_mul_overflow(side->y, ret_place->pitch, &rows) ||
		__builtin_mul_overflow(side->z, slice, &slices) ||
		__builtin_add_overflow(rows, slices, &offset) ||
		__builtin_add_overflow(offset, side->x, &offset) || offset > ret_place->room)
		return CUDA_ERROR_INVALID_VALUE;
	ret_place->base += offset;
	if (ret_place->room != SIZE_MAX)
		ret_place->room -= offset;
	return CUDA_SUCCESS;
}

/* A pitch of 0 is the width, a height of 0 that of the copy: tightly packed. */
static void pack(struct copy_side *side, const struct cu_memcpy3d *p)
{
	if (!side->pitch)
		side->pitch = p->width_bytes;
	if (!side->height)
		side->height = p->height;
}

int region_from_copy3d(const struct cu_memcpy3d *p, struct copy_region *ret_region)
{
	struct copy_side src = { p->src_type, p->src_host, p->src_device, p->src_array, p->src_x,
		p->src_y, p->src_z, p->src_pitch, p->src_height };
	struct copy_side dst = { p->dst_type, p->dst_host, p->dst_device, p->dst_array, p->dst_x,
		p->dst_y, p->dst_z, p->dst_pitch, p->dst_height };

	pack(&src, p);
	pack(&dst, p);
	*ret_region = (struct copy_region){
		.width = p->width_bytes,
		.height = p->height,
		.depth = p->depth,
	};
	if (empty(ret_region))
		return CUDA_SUCCESS;
	int r = place(&src, &ret_region->src);
	if (!r)
		r = place(&dst, &ret_region->dst);
	return r ? r : region_check(ret_region);
}

int fill_check(const struct fill *fill)
{
	size_t width;
	struct place p = { .pitch = fill->pitch };

	if (fill->element != 1 && fill->element != 2 && fill->element != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fill->width || !fill->height)
		return CUDA_SUCCESS;
	if (fill->address % fill->element ||
		__builtin_mul_overflow(fill->width, (size_t)fill->element, &width) ||
		!span(&p, width, fill->height, 1, &width) || !range_of(fill->address, width))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void fill_row(uint8_t *row, const struct fill *fill)
{
	if (fill->element == 1) {
		memset(row, (int)fill->value, fill->width);
		return;
	}
	for (size_t i = 0; i < fill->width; i++)
		memcpy(row + i * fill->element, &fill->value, fill->element);
}

void fill_run(const struct fill *fill)
{
	if (!fill->width)
		return;
	for (size_t y = 0; y < fill->height; y++)
		fill_row((uint8_t *)fill->address + y * fill->pitch, fill);
}

uint64_t fill_cost_ns(const struct fill *fill)
{
	double bytes = (double)fill->width * (double)fill->element * (double)fill->height;

	return script.copy_ns + (uint64_t)(bytes / script.hbm_gbps);
}
