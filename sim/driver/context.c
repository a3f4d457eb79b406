/*
 * Contexts, and each thread's stack of them.  A context that is destroyed while another
 * thread has it on its stack stays allocated and says so (CUDA_ERROR_CONTEXT_IS_DESTROYED).
 * Primary contexts are counted and come back to life when they are retained again.
 */
#include "driver/sim.h"
#include "driver/observe.h"
#include "driver/graph.h"
#include "driver/array.h"

#include <stdlib.h>
#include <string.h>

enum { STACK = 64 };

static _Thread_local struct context *stack[STACK];
static _Thread_local unsigned depth;
static uint64_t next_id = 1;

static const size_t default_limits[10] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 7340032,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
	[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
};

struct context *context_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

int context_get(struct context **ret_ctx)
{
	struct context *ctx = context_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->alive || (ctx->base && !ctx->base->alive))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_ctx = ctx->base ? ctx->base : ctx;
	return CUDA_SUCCESS;
}

struct green *context_green(void)
{
	const struct context *ctx = context_current();

	return ctx ? ctx->green : NULL;
}

static struct context *context_new(int device, unsigned flags)
{
	struct context *ctx = obj_new(OBJ_CONTEXT, sizeof *ctx, NULL);

	if (!ctx)
		return NULL;
	ctx->device = device;
	ctx->flags = flags;
	ctx->alive = true;
	ctx->api_version = 3020;
	ctx->attach_count = 1;
	ctx->id = next_id++;
	memcpy(ctx->limits, default_limits, sizeof default_limits);
	return ctx;
}

struct context *context_of_green(struct context *base, struct green *green)
{
	struct context *ctx = context_new(base->device, base->flags);

	if (!ctx)
		return NULL;
	ctx->primary = true; /* not to be destroyed but with the green one */
	ctx->base = base;
	ctx->green = green;
	return ctx;
}

/* A context takes memory of the device for itself. */
static bool occupy(struct context *ctx)
{
	if (ctx->own_bytes)
		return true;
	if (device_reserve(ctx->device, script.context_bytes))
		return false;
	ctx->own_bytes = script.context_bytes;
	return true;
}

static void vacate(struct context *ctx)
{
	device_give_back(ctx->device, ctx->own_bytes);
	ctx->own_bytes = 0;
}

/* Ends everything that lives in a context, after the work it still has. */
static void context_empty(struct context *ctx)
{
	context_wait(ctx);
	captures_free(ctx);
	streams_free(ctx);
	events_free(ctx);
	modules_free(ctx);
	arrays_free(ctx);
	ranges_free(ctx);
	vacate(ctx);
	ctx->streams = NULL;
	ctx->peers = 0;
}

static bool push(struct context *ctx)
{
	if (depth == STACK)
		return false;
	stack[depth++] = ctx;
	return true;
}

int sim_cuCtxCreate_v2(void **ret_ctx, unsigned flags, int device)
{
	if (!ret_ctx || flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *ctx = context_new(device, flags);
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!occupy(ctx) || !push(ctx)) {
		vacate(ctx);
		obj_free(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_ctx = ctx;
	return CUDA_SUCCESS;
}

int sim_cuCtxCreate(void **ret_ctx, unsigned flags, int device) SIM_ALIAS(sim_cuCtxCreate_v2);

int sim_cuCtxCreate_v3(void **ret_ctx, void *affinity, int count, unsigned flags, int device)
{
	if (affinity || count)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return sim_cuCtxCreate_v2(ret_ctx, flags, device);
}

int sim_cuCtxCreate_v4(void **ret_ctx, void *params, unsigned flags, int device)
{
	if (params)
		return CUDA_ERROR_NOT_SUPPORTED;
	return sim_cuCtxCreate_v2(ret_ctx, flags, device);
}

static struct context *context_find(void *handle)
{
	struct context *ctx = obj_find(handle, OBJ_CONTEXT);

	return ctx && ctx->alive ? ctx : NULL;
}

int sim_cuCtxDestroy_v2(void *handle)
{
	struct context *ctx = context_find(handle);

	if (!ctx || ctx->primary)
		return handle ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	ctx->alive = false;
	context_empty(ctx);
	if (context_current() == ctx)
		depth--;
	return CUDA_SUCCESS; /* kept allocated: a stack may still name it */
}

int sim_cuCtxDestroy(void *handle) SIM_ALIAS(sim_cuCtxDestroy_v2);

int sim_cuCtxAttach(void **ret_ctx, unsigned flags)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_ctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->attach_count++;
	*ret_ctx = ctx;
	return CUDA_SUCCESS;
}

int sim_cuCtxDetach(void *handle)
{
	struct context *ctx = context_find(handle);

	if (!ctx || ctx != context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--ctx->attach_count == 0)
		return sim_cuCtxDestroy_v2(ctx);
	return CUDA_SUCCESS;
}

int sim_cuCtxPushCurrent_v2(void *handle)
{
	struct context *ctx = context_find(handle);

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return push(ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuCtxPushCurrent(void *handle) SIM_ALIAS(sim_cuCtxPushCurrent_v2);

int sim_cuCtxPopCurrent_v2(void **ret_ctx)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ret_ctx)
		*ret_ctx = stack[depth];
	return CUDA_SUCCESS;
}

int sim_cuCtxPopCurrent(void **ret_ctx) SIM_ALIAS(sim_cuCtxPopCurrent_v2);

/* Replaces the top of the stack; NULL takes it away. */
int sim_cuCtxSetCurrent(void *handle)
{
	struct context *ctx = context_find(handle);

	if (handle && !ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	if (ctx)
		push(ctx);
	return CUDA_SUCCESS;
}

int sim_cuCtxGetCurrent(void **ret_ctx)
{
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_ctx = context_current();
	return CUDA_SUCCESS;
}

int sim_cuCtxGetDevice(int *ret_device)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = ctx->device;
	return CUDA_SUCCESS;
}

/* A context argument that may be NULL for the current one. */
static int given_or_current(void *handle, struct context **ret_ctx)
{
	if (!handle)
		return context_get(ret_ctx);
	struct context *ctx = context_find(handle);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_ctx = ctx->base ? ctx->base : ctx;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetDevice_v2(int *ret_device, void *handle)
{
	struct context *ctx;
	int r = given_or_current(handle, &ctx);

	if (r)
		return r;
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = ctx->device;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetFlags(unsigned *ret_flags)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = ctx->flags;
	return CUDA_SUCCESS;
}

int sim_cuCtxSetFlags(unsigned flags)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->flags = flags;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetId(void *handle, unsigned long long *ret_id)
{
	struct context *ctx;
	int r = given_or_current(handle, &ctx);

	if (r)
		return r;
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_id = ctx->id;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetApiVersion(void *handle, unsigned *ret_version)
{
	struct context *ctx;
	int r = given_or_current(handle, &ctx);

	if (r)
		return r;
	if (!ret_version)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_version = ctx->api_version;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetLimit(size_t *ret_value, int limit)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= 10)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*ret_value = ctx->limits[limit];
	return CUDA_SUCCESS;
}

int sim_cuCtxSetLimit(int limit, size_t value)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (limit < 0 || limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetCacheConfig(int *ret_config)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_config)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_config = ctx->cache_config;
	return CUDA_SUCCESS;
}

int sim_cuCtxSetCacheConfig(int config)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (config < 0 || config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->cache_config = config;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetSharedMemConfig(int *ret_config)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_config)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_config = ctx->shared_config;
	return CUDA_SUCCESS;
}

int sim_cuCtxSetSharedMemConfig(int config)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (config < 0 || config > 2)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->shared_config = config;
	return CUDA_SUCCESS;
}

int sim_cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = -5;
	return CUDA_SUCCESS;
}

int sim_cuCtxResetPersistingL2Cache(void)
{
	struct context *ctx;

	return context_get(&ctx);
}

int sim_cuCtxEnablePeerAccess(void *handle, unsigned flags)
{
	struct context *ctx, *peer = context_find(handle);
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peer->device == ctx->device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ctx->peers & 1u << peer->device)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peers |= 1u << peer->device;
	return CUDA_SUCCESS;
}

int sim_cuCtxDisablePeerAccess(void *handle)
{
	struct context *ctx, *peer = context_find(handle);
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(ctx->peers & 1u << peer->device))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers &= ~(1u << peer->device);
	return CUDA_SUCCESS;
}

static int synchronize(struct context *ctx)
{
	const uint64_t since = observe_now();
	const uint32_t id = (uint32_t)ctx->id;

	context_wait(ctx);
	observe_sync(OBSERVED_CONTEXT, id, UINT32_MAX, since);
	return CUDA_SUCCESS;
}

int sim_cuCtxSynchronize(void)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	r = capture_forbids_sync(ctx);
	if (r)
		return r;
	return synchronize(ctx);
}

int sim_cuCtxSynchronize_v2(void *handle)
{
	struct context *ctx;
	int r = given_or_current(handle, &ctx);

	if (r)
		return r;
	r = capture_forbids_sync(ctx);
	if (r)
		return r;
	return synchronize(ctx);
}

int sim_cuCtxRecordEvent(void *handle, void *event_handle)
{
	struct context *ctx;
	int r = given_or_current(handle, &ctx);

	if (r)
		return r;
	r = capture_forbids_sync(ctx);
	if (r)
		return r;
	return event_record_all(obj_find(event_handle, OBJ_EVENT), ctx, NULL);
}

int sim_cuDevicePrimaryCtxRetain(void **ret_ctx, int device)
{
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct device *d = &devices[device];
	if (!d->primary) {
		d->primary = context_new(device, d->primary_flags);
		if (!d->primary)
			return CUDA_ERROR_OUT_OF_MEMORY;
		d->primary->primary = true;
	}
	if (!occupy(d->primary))
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->primary->alive = true;
	d->primary->flags = d->primary_flags;
	d->primary_refs++;
	*ret_ctx = d->primary;
	return CUDA_SUCCESS;
}

static void primary_reset(struct device *d)
{
	d->primary->alive = false;
	context_empty(d->primary);
	memcpy(d->primary->limits, default_limits, sizeof default_limits);
}

int sim_cuDevicePrimaryCtxRelease_v2(int device)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct device *d = &devices[device];
	if (!d->primary_refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--d->primary_refs == 0)
		primary_reset(d);
	return CUDA_SUCCESS;
}

int sim_cuDevicePrimaryCtxRelease(int device) SIM_ALIAS(sim_cuDevicePrimaryCtxRelease_v2);

/* Empties the context whoever still holds it; their retained references stay counted. */
int sim_cuDevicePrimaryCtxReset_v2(int device)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct device *d = &devices[device];
	if (d->primary)
		primary_reset(d);
	return CUDA_SUCCESS;
}

int sim_cuDevicePrimaryCtxReset(int device) SIM_ALIAS(sim_cuDevicePrimaryCtxReset_v2);

int sim_cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	devices[device].primary_flags = flags;
	if (devices[device].primary)
		devices[device].primary->flags = flags;
	return CUDA_SUCCESS;
}

int sim_cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
	SIM_ALIAS(sim_cuDevicePrimaryCtxSetFlags_v2);

int sim_cuDevicePrimaryCtxGetState(int device, unsigned *ret_flags, int *ret_active)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_flags || !ret_active)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = devices[device].primary_flags;
	*ret_active = devices[device].primary && devices[device].primary->alive;
	return CUDA_SUCCESS;
}
