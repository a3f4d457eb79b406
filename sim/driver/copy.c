/*
 * The copy functions.  All of them become one three-dimensional copy.
 */
#include "driver/sim.h"
#include "driver/graph.h"

#include <string.h>

static int copy(const struct cu_memcpy3d *p, void *handle, bool wait)
{
	struct op op = { .kind = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *p };
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (wait) {
		r = capture_forbids();
		if (r)
			return r;
	}
	r = region_from_copy3d(p, &op.region);
	if (r || (op.region.width == 0 && !s->capture))
		return r;
	r = op_perform(s, &op);
	if (r || s->capture)
		return r;
	if (wait || op.region.src.pageable || op.region.dst.pageable)
		fence_wait(s->last);
	return CUDA_SUCCESS;
}

static int copy_1d(int dst_type, uint64_t dst, int src_type, uint64_t src, size_t size,
	void *stream, bool wait)
{
	struct cu_memcpy3d p = {
		.src_type = src_type,
		.src_host = (const void *)src,
		.src_device = src,
		.dst_type = dst_type,
		.dst_host = (void *)dst,
		.dst_device = dst,
		.width_bytes = size,
		.height = 1,
		.depth = 1,
	};

	return copy(&p, stream, wait);
}

#define HOST    CU_MEMORYTYPE_HOST
#define DEVICE  CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

int sim_cuMemcpy(unsigned long long dst, unsigned long long src, size_t size)
{
	return copy_1d(UNIFIED, dst, UNIFIED, src, size, NULL, true);
}

int sim_cuMemcpyAsync(unsigned long long dst, unsigned long long src, size_t size, void *stream)
{
	return copy_1d(UNIFIED, dst, UNIFIED, src, size, stream, false);
}

int sim_cuMemcpyHtoD_v2(unsigned long long dst, void *src, size_t size)
{
	return copy_1d(DEVICE, dst, HOST, (uint64_t)src, size, NULL, true);
}

int sim_cuMemcpyHtoDAsync_v2(unsigned long long dst, void *src, size_t size, void *stream)
{
	return copy_1d(DEVICE, dst, HOST, (uint64_t)src, size, stream, false);
}

int sim_cuMemcpyDtoH_v2(void *dst, unsigned long long src, size_t size)
{
	return copy_1d(HOST, (uint64_t)dst, DEVICE, src, size, NULL, true);
}

int sim_cuMemcpyDtoHAsync_v2(void *dst, unsigned long long src, size_t size, void *stream)
{
	return copy_1d(HOST, (uint64_t)dst, DEVICE, src, size, stream, false);
}

int sim_cuMemcpyDtoD_v2(unsigned long long dst, unsigned long long src, size_t size)
{
	return copy_1d(DEVICE, dst, DEVICE, src, size, NULL, true);
}

int sim_cuMemcpyDtoDAsync_v2(
	unsigned long long dst, unsigned long long src, size_t size, void *stream)
{
	return copy_1d(DEVICE, dst, DEVICE, src, size, stream, false);
}

static int check_peers(void *dst_ctx, void *src_ctx)
{
	if (!obj_find(dst_ctx, OBJ_CONTEXT) || !obj_find(src_ctx, OBJ_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

int sim_cuMemcpyPeer(
	unsigned long long dst, void *dst_ctx, unsigned long long src, void *src_ctx, size_t size)
{
	int r = check_peers(dst_ctx, src_ctx);

	return r ? r : copy_1d(DEVICE, dst, DEVICE, src, size, NULL, true);
}

int sim_cuMemcpyPeerAsync(unsigned long long dst, void *dst_ctx, unsigned long long src,
	void *src_ctx, size_t size, void *stream)
{
	int r = check_peers(dst_ctx, src_ctx);

	return r ? r : copy_1d(DEVICE, dst, DEVICE, src, size, stream, false);
}

static int copy_2d(const struct cu_memcpy2d *q, void *stream, bool wait)
{
	if (!q)
		return CUDA_ERROR_INVALID_VALUE;
	struct cu_memcpy3d p = {
		.src_x = q->src_x,
		.src_y = q->src_y,
		.src_type = q->src_type,
		.src_host = q->src_host,
		.src_device = q->src_device,
		.src_array = q->src_array,
		.src_pitch = q->src_pitch,
		.dst_x = q->dst_x,
		.dst_y = q->dst_y,
		.dst_type = q->dst_type,
		.dst_host = q->dst_host,
		.dst_device = q->dst_device,
		.dst_array = q->dst_array,
		.dst_pitch = q->dst_pitch,
		.width_bytes = q->width_bytes,
		.height = q->height,
		.depth = 1,
	};
	return copy(&p, stream, wait);
}

int sim_cuMemcpy2D_v2(void *p)
{
	return copy_2d(p, NULL, true);
}

int sim_cuMemcpy2DUnaligned_v2(void *p)
{
	return copy_2d(p, NULL, true);
}

int sim_cuMemcpy2DAsync_v2(void *p, void *stream)
{
	return copy_2d(p, stream, false);
}

int sim_cuMemcpy3D_v2(void *p)
{
	return p ? copy(p, NULL, true) : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuMemcpy3DAsync_v2(void *p, void *stream)
{
	return p ? copy(p, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

/* CUDA_MEMCPY3D_PEER keeps contexts where CUDA_MEMCPY3D is reserved: the same otherwise. */
int sim_cuMemcpy3DPeer(void *p)
{
	return sim_cuMemcpy3D_v2(p);
}

int sim_cuMemcpy3DPeerAsync(void *p, void *stream)
{
	return sim_cuMemcpy3DAsync_v2(p, stream);
}

/* One-dimensional copies from and to arrays: bytes at an offset in the first row. */
static int copy_array(struct cu_memcpy3d *p, size_t size, void *stream, bool wait)
{
	p->width_bytes = size;
	p->height = 1;
	p->depth = 1;
	return copy(p, stream, wait);
}

static int to_array(
	void *array, size_t offset, int type, uint64_t src, size_t size, void *stream, bool wait)
{
	struct cu_memcpy3d p = {
		.src_type = type,
		.src_host = (const void *)src,
		.src_device = src,
		.dst_type = CU_MEMORYTYPE_ARRAY,
		.dst_array = array,
		.dst_x = offset,
	};

	return copy_array(&p, size, stream, wait);
}

static int from_array(
	int type, uint64_t dst, void *array, size_t offset, size_t size, void *stream, bool wait)
{
	struct cu_memcpy3d p = {
		.src_type = CU_MEMORYTYPE_ARRAY,
		.src_array = array,
		.src_x = offset,
		.dst_type = type,
		.dst_host = (void *)dst,
		.dst_device = dst,
	};

	return copy_array(&p, size, stream, wait);
}

int sim_cuMemcpyHtoA_v2(void *array, size_t offset, void *src, size_t size)
{
	return to_array(array, offset, HOST, (uint64_t)src, size, NULL, true);
}

int sim_cuMemcpyHtoAAsync_v2(void *array, size_t offset, void *src, size_t size, void *stream)
{
	return to_array(array, offset, HOST, (uint64_t)src, size, stream, false);
}

int sim_cuMemcpyDtoA_v2(void *array, size_t offset, unsigned long long src, size_t size)
{
	return to_array(array, offset, DEVICE, src, size, NULL, true);
}

int sim_cuMemcpyAtoH_v2(void *dst, void *array, size_t offset, size_t size)
{
	return from_array(HOST, (uint64_t)dst, array, offset, size, NULL, true);
}

int sim_cuMemcpyAtoHAsync_v2(void *dst, void *array, size_t offset, size_t size, void *stream)
{
	return from_array(HOST, (uint64_t)dst, array, offset, size, stream, false);
}

int sim_cuMemcpyAtoD_v2(unsigned long long dst, void *array, size_t offset, size_t size)
{
	return from_array(DEVICE, dst, array, offset, size, NULL, true);
}

int sim_cuMemcpyAtoA_v2(void *dst, size_t dst_offset, void *src, size_t src_offset, size_t size)
{
	struct cu_memcpy3d p = {
		.src_type = CU_MEMORYTYPE_ARRAY,
		.src_array = src,
		.src_x = src_offset,
		.dst_type = CU_MEMORYTYPE_ARRAY,
		.dst_array = dst,
		.dst_x = dst_offset,
	};

	return copy_array(&p, size, NULL, true);
}
