/*
 * Memory pools and stream-ordered allocation.  Memory is there at once and goes away when
 * the stream has come to the point of the free.  A pool only counts: what it keeps for the next
 * allocation is bytes of the device, not addresses.
 */
#include "driver/sim.h"
#include "driver/graph.h"

#include <stdlib.h>

struct pool {
	struct obj obj;
	int device;
	bool is_default;
	uint64_t release_threshold;
	uint64_t used, used_high;         /* allocated, and not freed by a call yet */
	uint64_t reserved, reserved_high; /* taken from the device */
	uint64_t live;                    /* of it, what no stream has come to the free of */
	int flags[4];                     /* by attribute 1 to 3 */
	struct pool *next;
};

static struct pool *pools;

static struct pool *pool_new(int device)
{
	struct pool *p = obj_new(OBJ_POOL, sizeof *p, NULL);

	if (!p)
		return NULL;
	p->device = device;
	p->flags[1] = p->flags[2] = p->flags[3] = 1;
	p->next = pools;
	pools = p;
	return p;
}

/* Gives the device back what nobody uses beyond that. */
static bool keep(struct pool *p, uint64_t bytes)
{
	const uint64_t rest = p->live > bytes ? p->live : bytes;

	if (p->reserved <= rest)
		return false;
	device_give_back(p->device, p->reserved - rest);
	p->reserved = rest;
	return true;
}

void pools_settle(void)
{
	for (struct pool *p = pools; p; p = p->next)
		keep(p, p->release_threshold);
}

bool pools_release(int device)
{
	bool some = false;

	for (struct pool *p = pools; p; p = p->next)
		some |= p->device == device && keep(p, 0);
	return some;
}

/* The pool's kept memory is counted first, so that it is not released for the rest. */
int pool_take(struct pool *p, int device, size_t bytes)
{
	if (!p)
		return device_reserve(device, bytes);
	const uint64_t idle = p->reserved - p->live, kept = idle < bytes ? idle : bytes;
	p->live += kept;
	const int r = bytes > kept ? device_reserve(device, bytes - kept) : CUDA_SUCCESS;
	if (r) {
		p->live -= kept;
		return r;
	}
	p->live += bytes - kept;
	p->reserved += bytes - kept;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return CUDA_SUCCESS;
}

/* To the device, where the pool is there no more. */
void pool_give(struct pool *pool, int device, size_t bytes)
{
	struct pool *p = obj_find(pool, OBJ_POOL);

	if (p)
		p->live -= bytes;
	else
		device_give_back(device, bytes);
}

static struct pool *default_pool(int device)
{
	struct device *d = &devices[device];

	if (!d->default_pool) {
		d->default_pool = pool_new(device);
		if (d->default_pool)
			d->default_pool->is_default = true;
	}
	return d->default_pool;
}

static struct pool *current_pool(int device)
{
	return devices[device].pool ? devices[device].pool : default_pool(device);
}

int sim_cuDeviceGetDefaultMemPool(void **ret_pool, int device)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_pool)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pool = default_pool(device);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuDeviceGetMemPool(void **ret_pool, int device)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_pool)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pool = current_pool(device);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuDeviceSetMemPool(int device, void *handle)
{
	struct pool *p = obj_find(handle, OBJ_POOL);

	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!p || p->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	devices[device].pool = p;
	return CUDA_SUCCESS;
}

int sim_cuMemPoolCreate(void **ret_pool, void *properties)
{
	const struct cu_mem_pool_props *p = properties;

	if (!ret_pool || !p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->handle_types)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!device_exists(p->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_pool = pool_new(p->location.id);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Memory that is still allocated from it stays valid. */
int sim_cuMemPoolDestroy(void *handle)
{
	struct pool *p = obj_find(handle, OBJ_POOL);

	if (!p || p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (devices[p->device].pool == p)
		devices[p->device].pool = NULL;
	keep(p, 0);
	struct pool **link = &pools;
	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	obj_free(p);
	return CUDA_SUCCESS;
}

int sim_cuMemPoolTrimTo(void *handle, size_t keep_bytes)
{
	struct pool *p = obj_find(handle, OBJ_POOL);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	keep(p, keep_bytes);
	return CUDA_SUCCESS;
}

int sim_cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
	struct pool *p = obj_find(handle, OBJ_POOL);

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->flags[attribute] = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->release_threshold = *(const uint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(const uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			p->used_high = p->used;
		else
			p->reserved_high = p->reserved;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int sim_cuMemPoolGetAttribute(void *handle, int attribute, void *ret_value)
{
	struct pool *p = obj_find(handle, OBJ_POOL);

	if (!p || !ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)ret_value = p->flags[attribute];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(uint64_t *)ret_value = p->release_threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(uint64_t *)ret_value = p->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)ret_value = p->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(uint64_t *)ret_value = p->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(uint64_t *)ret_value = p->used_high;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int sim_cuMemPoolSetAccess(void *handle, void *list, size_t count)
{
	if (!obj_find(handle, OBJ_POOL) || (count && !list))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

int sim_cuMemPoolGetAccess(int *ret_flags, void *handle, unsigned long long *location)
{
	struct pool *p = obj_find(handle, OBJ_POOL);
	const struct cu_mem_location *l = (const void *)location;

	if (!ret_flags || !p || !l)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = l->type == CU_MEM_LOCATION_TYPE_DEVICE && l->id == p->device
			     ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

static void count_in(struct pool *p, size_t size)
{
	p->used += size;
	if (p->used > p->used_high)
		p->used_high = p->used;
}

void pool_count_out(const struct range *range)
{
	struct pool *p = obj_find(range->pool, OBJ_POOL);

	if (p)
		p->used -= range->size;
}

static int alloc_async(
	unsigned long long *ret_address, size_t size, struct pool *pool, struct stream *s)
{
	struct range *range;
	int r = capture_forbids_legacy(s);

	if (r)
		return r;
	if (!ret_address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = range_alloc(s->obj.ctx, size, RANGE_ASYNC, s->capture ? NULL : pool, &range);
	if (r)
		return r;
	*ret_address = range->base;
	range->of_graph = s->capture;
	if (!s->capture) {
		count_in(pool, size);
		return CUDA_SUCCESS;
	}
	struct op op = {
		.kind = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
		.address = range->base,
		.bytes = size,
	};
	return capture_add(s, &op);
}

int sim_cuMemAllocAsync(unsigned long long *ret_address, size_t size, void *stream)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	return r ? r : alloc_async(ret_address, size, current_pool(s->obj.ctx->device), s);
}

int sim_cuMemAllocFromPoolAsync(
	unsigned long long *ret_address, size_t size, void *handle, void *stream)
{
	struct pool *p = obj_find(handle, OBJ_POOL);
	struct stream *s;
	int r = stream_get(stream, &s);

	if (r)
		return r;
	return p ? alloc_async(ret_address, size, p, s) : CUDA_ERROR_INVALID_VALUE;
}

static void free_range(void *arg)
{
	range_free(arg);
}

int sim_cuMemFreeAsync(unsigned long long address, void *stream)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	if (!r)
		r = capture_forbids_legacy(s);
	if (r || !address)
		return r;
	struct range *range = range_find(address);
	if (!range || range->base != address ||
		(range->kind != RANGE_ASYNC && range->kind != RANGE_DEVICE))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture) {
		struct op op = { .kind = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address };
		return capture_add(s, &op);
	}
	pool_count_out(range);
	range_remove(range); /* gone for every later call; its bytes go in stream order */
	struct work work = { .effect = free_range, .arg = range };
	return stream_submit(s, &work, NULL) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int location_device(const struct cu_mem_location *l, int *ret_device)
{
	if (!l || l->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = l->id;
	return device_exists(l->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

int sim_cuMemGetDefaultMemPool(void **ret_pool, unsigned long long *location, int type)
{
	int device, r = location_device((const void *)location, &device);

	return r ? r : sim_cuDeviceGetDefaultMemPool(ret_pool, device);
}

int sim_cuMemGetMemPool(void **ret_pool, unsigned long long *location, int type)
{
	int device, r = location_device((const void *)location, &device);

	return r ? r : sim_cuDeviceGetMemPool(ret_pool, device);
}

int sim_cuMemSetMemPool(unsigned long long *location, int type, void *pool)
{
	int device, r = location_device((const void *)location, &device);

	return r ? r : sim_cuDeviceSetMemPool(device, pool);
}
