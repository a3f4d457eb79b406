/*
 * Events.  A recorded event holds the last fence of its stream.
 */
#include "driver/sim.h"
#include "driver/observe.h"
#include "driver/gpu_file.h"
#include "driver/graph.h"

#include <stdlib.h>

enum { DISABLE_TIMING = 2, RECORD_EXTERNAL = 1, MAX_STREAMS = 4096 };

static void event_free(struct event *e)
{
	fence_unref(e->fence);
	free(e->heads);
	obj_free(e);
}

void events_free(struct context *ctx)
{
	struct event *e;

	while ((e = obj_any(OBJ_EVENT, ctx)) != NULL)
		event_free(e);
}

void event_set_fence(struct event *event, struct fence *fence)
{
	fence_ref(fence);
	fence_unref(event->fence);
	event->fence = fence;
	event->recorded = true;
	event->queried = false;
	event->waits = timeline_waits();
	event->capture_id = 0;
}

int event_record_all(struct event *e, struct context *ctx, const struct green *green)
{
	struct fence *deps[MAX_STREAMS];
	struct work nothing = { 0 };
	size_t n = 0;

	if (!e || e->obj.ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	for (struct stream *s = ctx->streams; s && n < MAX_STREAMS; s = s->next) {
		if (green && s->green != green)
			continue;
		if (s->capture)
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		deps[n++] = s->last;
	}
	struct fence *fence = timeline_submit(&nothing, deps, n);
	if (!fence)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event_set_fence(e, fence);
	fence_unref(fence);
	return CUDA_SUCCESS;
}

int sim_cuEventCreate(void **ret_event, unsigned flags)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_event || flags & ~7u || (flags & 4 && !(flags & DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct event *e = obj_new(OBJ_EVENT, sizeof *e, ctx);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	*ret_event = e;
	return CUDA_SUCCESS;
}

int sim_cuEventDestroy_v2(void *handle)
{
	struct event *e = obj_find(handle, OBJ_EVENT);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	event_free(e);
	return CUDA_SUCCESS;
}

int sim_cuEventDestroy(void *handle) SIM_ALIAS(sim_cuEventDestroy_v2);

int sim_cuEventRecordWithFlags(void *handle, void *stream_handle, unsigned flags)
{
	struct work nothing = { 0 };
	struct stream *s;
	struct event *e = obj_find(handle, OBJ_EVENT);
	int r = stream_get(stream_handle, &s);

	if (r)
		return r;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	if (e->obj.ctx != s->obj.ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	r = capture_forbids_legacy(s);
	if (r)
		return r;
	if (s->capture && flags & RECORD_EXTERNAL) {
		struct op op = { .kind = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = e };
		return capture_add(s, &op);
	}
	if (s->capture)
		return capture_record_event(s, e);
	struct fence *fence = stream_submit(s, &nothing, NULL);
	if (!fence)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event_set_fence(e, fence);
	return CUDA_SUCCESS;
}

int sim_cuEventRecord(void *handle, void *stream_handle)
{
	return sim_cuEventRecordWithFlags(handle, stream_handle, 0);
}

static int event_get(void *handle, struct event **ret_event)
{
	struct event *e = obj_find(handle, OBJ_EVENT);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->capture_id)
		return CUDA_ERROR_CAPTURED_EVENT;
	*ret_event = e;
	return CUDA_SUCCESS;
}

/* In virtual time the host is quicker than any device: it learns from its first question, unless it
 * has waited meanwhile, that the device has not come to the event. */
static bool is_ahead(struct event *e)
{
	const bool first = !e->queried && e->recorded && !script.real_time;

	e->queried = true;
	return first && e->waits == timeline_waits();
}

int sim_cuEventQuery(void *handle)
{
	struct event *e;
	int r = event_get(handle, &e);

	if (r)
		return r;
	timeline_look();
	if (!fence_done(e->fence) || is_ahead(e))
		return CUDA_ERROR_NOT_READY;
	return CUDA_SUCCESS;
}

int sim_cuEventSynchronize(void *handle)
{
	struct event *e;
	int r = event_get(handle, &e);

	if (r)
		return r;
	const uint64_t since = observe_now();
	const uint32_t ctx = e->obj.ctx ? (uint32_t)e->obj.ctx->id : 0;
	fence_wait(e->fence);
	observe_sync(OBSERVED_EVENT, ctx, UINT32_MAX, since);
	return CUDA_SUCCESS;
}

int sim_cuEventElapsedTime_v2(float *ret_ms, void *start_handle, void *end_handle)
{
	struct event *start, *end;
	int r = event_get(start_handle, &start);

	if (!r)
		r = event_get(end_handle, &end);
	if (r)
		return r;
	if (!ret_ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!start->recorded || !end->recorded)
		return CUDA_ERROR_INVALID_HANDLE;
	if (start->flags & DISABLE_TIMING || end->flags & DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	timeline_look();
	if (!fence_done(start->fence) || !fence_done(end->fence))
		return CUDA_ERROR_NOT_READY;
	int64_t ns = (int64_t)(fence_end_ns(end->fence) - fence_end_ns(start->fence));
	if (gpu_shared())
		ns = ns < 0 ? -(int64_t)gpu_told_ns((uint64_t)-ns)
			    : (int64_t)gpu_told_ns((uint64_t)ns);
	*ret_ms = (float)((double)ns / 1e6);
	return CUDA_SUCCESS;
}

int sim_cuEventElapsedTime(float *ret_ms, void *start, void *end)
	SIM_ALIAS(sim_cuEventElapsedTime_v2);
