/*
 * Green contexts: parts of a device's SMs, and streams whose kernels run there alone.  Only on a
 * device whose law knows SMs (gpu_file.h); elsewhere they are not supported.  A part is a range of
 * SMs, in steps of eight, or of two where they need not be near each other.
 */
#include "driver/gpu_file.h"
#include "driver/sim.h"

#include <stdlib.h>

enum {
	TOGETHER = 8,
	APART = 2,
	IGNORE_COSCHEDULING = 1,
	MAX_CLUSTER = 2,
	DEFAULT_STREAM = 1,
};

/* CUdevResourceDesc.  There is no function that ends one. */
struct resources {
	struct obj obj;
	int device;
	unsigned first_sm, end_sm;
};

static uint64_t next_id = 1;
static uint32_t splits;

static struct cu_dev_resource range(int device, unsigned first, unsigned count, uint32_t split)
{
	return (struct cu_dev_resource){
		.type = CU_DEV_RESOURCE_TYPE_SM,
		.device = (uint32_t)device,
		.first_sm = first,
		.split = split,
		.u.sm = { .count = count, .least = TOGETHER, .alignment = TOGETHER },
	};
}

static int tell(void *resource, int type, int device, const struct green *green)
{
	struct cu_dev_resource *r = resource;

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*r = green ? range(device, green->first_sm, green->end_sm - green->first_sm, 0)
		   : range(device, 0, DEVICE_SMS, 0);
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetDevResource(int device, void *resource, int type)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return tell(resource, type, device, NULL);
}

static int green_find(void *handle, struct green **ret_green)
{
	struct green *g = obj_find(handle, OBJ_GREEN);

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!g->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_green = g;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxGetDevResource(void *handle, void *resource, int type)
{
	struct green *g;
	int r = green_find(handle, &g);

	return r ? r : tell(resource, type, g->base->device, g);
}

int sim_cuCtxGetDevResource(void *handle, void *resource, int type)
{
	const struct context *ctx = handle ? obj_find(handle, OBJ_CONTEXT) : context_current();

	if (!ctx || !ctx->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	return tell(resource, type, ctx->device, ctx->green);
}

int sim_cuDevSmResourceSplitByCount(
	void *result, unsigned *count, void *input, void *remaining, unsigned flags, unsigned least)
{
	const struct cu_dev_resource *in = input;
	struct cu_dev_resource *out = result, *rest = remaining;

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!count || !in || flags & ~(unsigned)(IGNORE_COSCHEDULING | MAX_CLUSTER))
		return CUDA_ERROR_INVALID_VALUE;
	if (in->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	const unsigned step = flags & IGNORE_COSCHEDULING ? APART : TOGETHER, sms = in->u.sm.count;
	const unsigned each = least <= step ? step : (least + step - 1) / step * step;
	if (in->split || least > sms || each > sms)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	const unsigned most = sms / each, n = out && *count < most ? *count : most;
	const int device = (int)in->device;
	const unsigned first = in->first_sm;
	*count = n;
	if (!out)
		return CUDA_SUCCESS;
	splits++;
	for (unsigned i = 0; i < n; i++)
		out[i] = range(device, first + i * each, each, splits);
	if (rest)
		*rest = range(device, first + n * each, sms - n * each, splits);
	return CUDA_SUCCESS;
}

/* Several parts are one if they lie behind each other, as the results of a split do. */
int sim_cuDevResourceGenerateDesc(void **ret_desc, void *resources, unsigned count)
{
	const struct cu_dev_resource *r = resources;

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!ret_desc || !r || !count)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned end = r[0].first_sm;
	for (unsigned i = 0; i < count; i++) {
		if (r[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (r[i].device != r[0].device || r[i].split != r[0].split ||
			r[i].first_sm != end || !r[i].u.sm.count ||
			r[i].u.sm.count > DEVICE_SMS - end)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		end += r[i].u.sm.count;
	}
	struct resources *d = obj_new(OBJ_RESOURCES, sizeof *d, NULL);
	if (!d)
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->device = (int)r[0].device;
	d->first_sm = r[0].first_sm;
	d->end_sm = end;
	*ret_desc = d;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxCreate(void **ret_green, void *desc, int device, unsigned flags)
{
	const struct resources *d = obj_find(desc, OBJ_RESOURCES);
	void *base;

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_green || !d || d->device != device || flags != DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	int r = sim_cuDevicePrimaryCtxRetain(&base, device);
	if (r)
		return r;
	struct green *g = obj_new(OBJ_GREEN, sizeof *g, NULL);
	if (g)
		g->context = context_of_green(base, g);
	if (!g || !g->context) {
		obj_free(g);
		sim_cuDevicePrimaryCtxRelease_v2(device);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->base = base;
	g->first_sm = d->first_sm;
	g->end_sm = d->end_sm;
	g->id = next_id++;
	g->alive = true;
	*ret_green = g;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxDestroy(void *handle)
{
	struct green *g;
	int r = green_find(handle, &g);

	if (r)
		return r;
	g->alive = false;
	g->context->alive = false;
	return sim_cuDevicePrimaryCtxRelease_v2(g->base->device);
}

int sim_cuCtxFromGreenCtx(void **ret_ctx, void *handle)
{
	struct green *g;
	int r = green_find(handle, &g);

	if (r)
		return r;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_ctx = g->context;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxStreamCreate(void **ret_stream, void *handle, unsigned flags, int priority)
{
	struct green *g;
	int r = green_find(handle, &g);

	if (r)
		return r;
	if (!ret_stream || flags != STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	struct stream *s = stream_new(g->base, flags, priority);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->green = g;
	*ret_stream = s;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxGetId(void *handle, unsigned long long *ret_id)
{
	struct green *g;
	int r = green_find(handle ? handle : (void *)context_green(), &g);

	if (r)
		return r;
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_id = g->id;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetGreenCtx(void *stream, void **ret_green)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	if (!gpu_shared())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (r)
		return r;
	if (!ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_green = s->green;
	return CUDA_SUCCESS;
}

int sim_cuGreenCtxRecordEvent(void *handle, void *event_handle)
{
	struct event *e = obj_find(event_handle, OBJ_EVENT);
	struct green *g;
	int r = green_find(handle, &g);

	if (r)
		return r;
	return event_record_all(e, g->base, g);
}

int sim_cuGreenCtxWaitEvent(void *handle, void *event_handle)
{
	struct event *e = obj_find(event_handle, OBJ_EVENT);
	struct green *g;
	int r = green_find(handle, &g);

	if (r)
		return r;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	for (struct stream *s = g->base->streams; s; s = s->next) {
		if (s->green != g)
			continue;
		if (s->capture)
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		stream_wait(s, e->fence);
	}
	return CUDA_SUCCESS;
}
