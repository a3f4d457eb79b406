/*
 * Memory of the runtime API.
 */
#include "rt.h"

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, ANY };

RT_FUNCTION(cudaMalloc, (void **ret_address, size_t size))
{
	unsigned long long address = 0;
	int r = rt_begin();

	if (!r && !ret_address)
		r = cudaErrorInvalidValue;
	if (!r && size) /* no bytes are no memory, and no error */
		r = rt_legacy.cuMemAlloc_v2(&address, size);
	if (!r)
		*ret_address = (void *)address;
	return rt_end(r);
}

RT_PASS(cudaFree, cuMemFree_v2, (void *address), (uint64_t)address)
RT_PASS(cudaMallocHost, cuMemAllocHost_v2, (void **address, size_t size), address, size)
RT_PASS(cudaHostAlloc, cuMemHostAlloc, (void **address, size_t size, unsigned flags), address, size,
	flags)
RT_PASS(cudaHostRegister, cuMemHostRegister_v2, (void *address, size_t size, unsigned flags),
	address, size, flags)
RT_PASS(cudaHostUnregister, cuMemHostUnregister, (void *address), address)
RT_PASS(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2,
	(void **device, void *host, unsigned flags), (unsigned long long *)device, host, flags)
RT_PASS(cudaHostGetFlags, cuMemHostGetFlags, (unsigned *flags, void *host), flags, host)
RT_PASS(cudaMallocManaged, cuMemAllocManaged, (void **address, size_t size, unsigned flags),
	(unsigned long long *)address, size, flags)
RT_PASS(cudaMallocPitch, cuMemAllocPitch_v2,
	(void **address, size_t *pitch, size_t width, size_t height), (unsigned long long *)address,
	pitch, width, height, 4)
RT_PASS(cudaMemGetInfo, cuMemGetInfo_v2, (size_t * unused, size_t *total), unused, total)
RT_PASS(cudaMemAdvise, cuMemAdvise_v2,
	(const void *address, size_t size, int advice, unsigned long long location),
	(uint64_t)address, size, advice, location)

RT_FUNCTION(cudaFreeHost, (void *address))
{
	int r = rt_begin();

	return rt_end(r || !address ? r : rt_legacy.cuMemFreeHost(address));
}

RT_PASS_PAIR(cudaMallocAsync, cuMemAllocAsync, (void **address, size_t size, void *stream),
	(unsigned long long *)address, size, stream)
RT_PASS_PAIR(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync,
	(void **address, size_t size, void *pool, void *stream), (unsigned long long *)address,
	size, pool, stream)
RT_PASS_PAIR(
	cudaFreeAsync, cuMemFreeAsync, (void *address, void *stream), (uint64_t)address, stream)
RT_PASS_PAIR(cudaMemPrefetchAsync, cuMemPrefetchAsync_v2,
	(const void *address, size_t size, unsigned long long location, unsigned flags,
		void *stream),
	(uint64_t)address, size, location, flags, stream)
RT_PASS(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (void **pool, int device), pool,
	device)
RT_PASS(cudaDeviceGetMemPool, cuDeviceGetMemPool, (void **pool, int device), pool, device)
RT_PASS(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int device, void *pool), device, pool)
RT_PASS(cudaMemPoolCreate, cuMemPoolCreate, (void **pool, const void *props), pool, (void *)props)
RT_PASS(cudaMemPoolDestroy, cuMemPoolDestroy, (void *pool), pool)
RT_PASS(cudaMemPoolTrimTo, cuMemPoolTrimTo, (void *pool, size_t keep), pool, keep)
RT_PASS(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, (void *pool, int attribute, void *value),
	pool, attribute, value)
RT_PASS(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, (void *pool, int attribute, void *value),
	pool, attribute, value)
RT_PASS(cudaMemPoolSetAccess, cuMemPoolSetAccess, (void *pool, const void *list, size_t count),
	pool, (void *)list, count)

static int body_cudaMemcpy(
	const struct driver *d, void *dst, const void *src, size_t size, int kind)
{
	switch (kind) {
	case HOST_TO_DEVICE:
		return d->cuMemcpyHtoD_v2((uint64_t)dst, (void *)src, size);
	case DEVICE_TO_HOST:
		return d->cuMemcpyDtoH_v2(dst, (uint64_t)src, size);
	case DEVICE_TO_DEVICE:
		return d->cuMemcpyDtoD_v2((uint64_t)dst, (uint64_t)src, size);
	case HOST_TO_HOST:
	case ANY:
		return d->cuMemcpy((uint64_t)dst, (uint64_t)src, size);
	}
	return cudaErrorInvalidMemcpyDirection;
}

RT_PAIR(cudaMemcpy, _ptds, (void *dst, const void *src, size_t size, int kind), dst, src, size,
	kind)

static int body_cudaMemcpyAsync(
	const struct driver *d, void *dst, const void *src, size_t size, int kind, void *stream)
{
	switch (kind) {
	case HOST_TO_DEVICE:
		return d->cuMemcpyHtoDAsync_v2((uint64_t)dst, (void *)src, size, stream);
	case DEVICE_TO_HOST:
		return d->cuMemcpyDtoHAsync_v2(dst, (uint64_t)src, size, stream);
	case DEVICE_TO_DEVICE:
		return d->cuMemcpyDtoDAsync_v2((uint64_t)dst, (uint64_t)src, size, stream);
	case HOST_TO_HOST:
	case ANY:
		return d->cuMemcpyAsync((uint64_t)dst, (uint64_t)src, size, stream);
	}
	return cudaErrorInvalidMemcpyDirection;
}

RT_PAIR(cudaMemcpyAsync, _ptsz, (void *dst, const void *src, size_t size, int kind, void *stream),
	dst, src, size, kind, stream)

static bool from_host(int kind)
{
	return kind == HOST_TO_DEVICE || kind == HOST_TO_HOST;
}

static bool to_host(int kind)
{
	return kind == DEVICE_TO_HOST || kind == HOST_TO_HOST;
}

static int type_of(int kind, bool host)
{
	return kind == ANY ? CU_MEMORYTYPE_UNIFIED
	       : host      ? CU_MEMORYTYPE_HOST
			   : CU_MEMORYTYPE_DEVICE;
}

struct rectangle {
	void *dst;
	size_t dst_pitch;
	const void *src;
	size_t src_pitch, width, height;
	int kind;
};

static int check(const struct rectangle *r)
{
	if (r->kind < HOST_TO_HOST || r->kind > ANY)
		return cudaErrorInvalidMemcpyDirection;
	if (r->width > r->dst_pitch || r->width > r->src_pitch)
		return cudaErrorInvalidPitchValue;
	return 0;
}

static struct cu_memcpy2d copy2d(const struct rectangle *r)
{
	return (struct cu_memcpy2d){
		.src_type = type_of(r->kind, from_host(r->kind)),
		.src_host = r->src,
		.src_device = (uint64_t)r->src,
		.src_pitch = r->src_pitch,
		.dst_type = type_of(r->kind, to_host(r->kind)),
		.dst_host = r->dst,
		.dst_device = (uint64_t)r->dst,
		.dst_pitch = r->dst_pitch,
		.width_bytes = r->width,
		.height = r->height,
	};
}

static int body_cudaMemcpy2D(const struct driver *d, const struct rectangle *rect)
{
	struct cu_memcpy2d p = copy2d(rect);
	int r = check(rect);

	return r ? r : d->cuMemcpy2DUnaligned_v2(&p);
}

static int body_cudaMemcpy2DAsync(
	const struct driver *d, const struct rectangle *rect, void *stream)
{
	struct cu_memcpy2d p = copy2d(rect);
	int r = check(rect);

	return r ? r : d->cuMemcpy2DAsync_v2(&p, stream);
}

#define RECTANGLE(dst, dpitch, src, spitch, width, height, kind)                                   \
	(&(struct rectangle){ dst, dpitch, src, spitch, width, height, kind })

RT_PAIR(cudaMemcpy2D, _ptds,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		int kind),
	RECTANGLE(dst, dpitch, src, spitch, width, height, kind))
RT_PAIR(cudaMemcpy2DAsync, _ptsz,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		int kind, void *stream),
	RECTANGLE(dst, dpitch, src, spitch, width, height, kind), stream)

/* Copies to and from a variable: its address plus an offset. */
static int symbol_at(const void *symbol, size_t size, size_t offset, uint64_t *ret_address)
{
	size_t whole;
	int r = rt_symbol(symbol, ret_address, &whole);

	if (r)
		return r;
	if (offset > whole || size > whole - offset)
		return cudaErrorInvalidValue;
	*ret_address += offset;
	return 0;
}

static int body_cudaMemcpyToSymbol(const struct driver *d, const void *symbol, const void *src,
	size_t size, size_t offset, int kind)
{
	uint64_t to;
	int r = symbol_at(symbol, size, offset, &to);

	return r ? r : body_cudaMemcpy(d, (void *)to, src, size, kind);
}

static int body_cudaMemcpyToSymbolAsync(const struct driver *d, const void *symbol, const void *src,
	size_t size, size_t offset, int kind, void *stream)
{
	uint64_t to;
	int r = symbol_at(symbol, size, offset, &to);

	return r ? r : body_cudaMemcpyAsync(d, (void *)to, src, size, kind, stream);
}

static int body_cudaMemcpyFromSymbol(
	const struct driver *d, void *dst, const void *symbol, size_t size, size_t offset, int kind)
{
	uint64_t from;
	int r = symbol_at(symbol, size, offset, &from);

	return r ? r : body_cudaMemcpy(d, dst, (void *)from, size, kind);
}

static int body_cudaMemcpyFromSymbolAsync(const struct driver *d, void *dst, const void *symbol,
	size_t size, size_t offset, int kind, void *stream)
{
	uint64_t from;
	int r = symbol_at(symbol, size, offset, &from);

	return r ? r : body_cudaMemcpyAsync(d, dst, (void *)from, size, kind, stream);
}

RT_PAIR(cudaMemcpyToSymbol, _ptds,
	(const void *symbol, const void *src, size_t size, size_t offset, int kind), symbol, src,
	size, offset, kind)
RT_PAIR(cudaMemcpyToSymbolAsync, _ptsz,
	(const void *symbol, const void *src, size_t size, size_t offset, int kind, void *stream),
	symbol, src, size, offset, kind, stream)
RT_PAIR(cudaMemcpyFromSymbol, _ptds,
	(void *dst, const void *symbol, size_t size, size_t offset, int kind), dst, symbol, size,
	offset, kind)
RT_PAIR(cudaMemcpyFromSymbolAsync, _ptsz,
	(void *dst, const void *symbol, size_t size, size_t offset, int kind, void *stream), dst,
	symbol, size, offset, kind, stream)

static int peers(int dst_device, int src_device, void **ret_dst, void **ret_src)
{
	int r = rt_legacy.cuDevicePrimaryCtxRetain(ret_dst, dst_device);

	return r ? r : rt_legacy.cuDevicePrimaryCtxRetain(ret_src, src_device);
}

RT_FUNCTION(
	cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t size))
{
	void *to, *from;
	int r = rt_begin();

	if (!r)
		r = peers(dst_device, src_device, &to, &from);
	return rt_end(r ? r : rt_legacy.cuMemcpyPeer((uint64_t)dst, to, (uint64_t)src, from, size));
}

RT_FUNCTION(cudaMemcpyPeerAsync,
	(void *dst, int dst_device, const void *src, int src_device, size_t size, void *stream))
{
	void *to, *from;
	int r = rt_begin();

	if (!r)
		r = peers(dst_device, src_device, &to, &from);
	return rt_end(r ? r
			: rt_legacy.cuMemcpyPeerAsync(
				  (uint64_t)dst, to, (uint64_t)src, from, size, stream));
}

static int body_cudaMemset(const struct driver *d, void *to, int value, size_t size)
{
	return d->cuMemsetD8_v2((uint64_t)to, (unsigned char)value, size);
}

static int body_cudaMemsetAsync(
	const struct driver *d, void *to, int value, size_t size, void *stream)
{
	return d->cuMemsetD8Async((uint64_t)to, (unsigned char)value, size, stream);
}

static int body_cudaMemset2D(
	const struct driver *d, void *to, size_t pitch, int value, size_t width, size_t height)
{
	return d->cuMemsetD2D8_v2((uint64_t)to, pitch, (unsigned char)value, width, height);
}

static int body_cudaMemset2DAsync(const struct driver *d, void *to, size_t pitch, int value,
	size_t width, size_t height, void *stream)
{
	return d->cuMemsetD2D8Async(
		(uint64_t)to, pitch, (unsigned char)value, width, height, stream);
}

RT_PAIR(cudaMemset, _ptds, (void *to, int value, size_t size), to, value, size)
RT_PAIR(cudaMemsetAsync, _ptsz, (void *to, int value, size_t size, void *stream), to, value, size,
	stream)
RT_PAIR(cudaMemset2D, _ptds, (void *to, size_t pitch, int value, size_t width, size_t height), to,
	pitch, value, width, height)
RT_PAIR(cudaMemset2DAsync, _ptsz,
	(void *to, size_t pitch, int value, size_t width, size_t height, void *stream), to, pitch,
	value, width, height, stream)

struct pointer_attributes { /* cudaPointerAttributes */
	int type;           /* 0 unregistered, 1 host, 2 device, 3 managed */
	int device;
	void *device_pointer, *host_pointer;
	long reserved[8];
};

RT_FUNCTION(cudaPointerGetAttributes, (struct pointer_attributes * ret, const void *address))
{
	int names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER };
	unsigned type = 0, managed = 0;
	int device = -2;
	void *device_pointer = NULL, *host_pointer = NULL;
	void *values[] = { &type, &device, &managed, &device_pointer, &host_pointer };
	int r = rt_begin();

	if (!r && !ret)
		r = cudaErrorInvalidValue;
	if (!r)
		r = rt_legacy.cuPointerGetAttributes(5, names, values, (uint64_t)address);
	if (r)
		return rt_end(r);
	*ret = (struct pointer_attributes){
		.type = managed ? 3 : (int)type,
		.device = device,
		.device_pointer = device_pointer,
		.host_pointer = type ? host_pointer : (void *)address,
	};
	return 0;
}
