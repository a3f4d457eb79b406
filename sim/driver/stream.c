/*
 * Streams.  A stream is its last fence: new work waits for it and takes its place.  The
 * legacy stream and the blocking streams of a context also wait for each other.
 */
#include "driver/sim.h"
#include "driver/observe.h"
#include "driver/graph.h"

#include <stdlib.h>

enum { MAX_DEPS = 4096, LEGACY = 1, PER_THREAD = 2 };

static uint64_t next_id = 1;

struct stream *stream_new(struct context *ctx, unsigned flags, int priority)
{
	struct stream *s = obj_new(OBJ_STREAM, sizeof *s, ctx);

	if (!s)
		return NULL;
	s->flags = flags;
	s->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
	s->id = next_id++;
	s->green = context_green();
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

void stream_free(struct stream *stream)
{
	struct stream **link = &stream->obj.ctx->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	capture_leave(stream);
	fence_unref(stream->last);
	obj_free(stream);
}

void streams_free(struct context *ctx)
{
	while (ctx->streams)
		stream_free(ctx->streams);
}

static struct stream *legacy_stream(struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next)
		if (s->legacy && s->green == context_green())
			return s;
	struct stream *s = stream_new(ctx, 0, 0);
	if (s)
		s->legacy = true;
	return s;
}

static struct stream *thread_stream(struct context *ctx)
{
	static _Thread_local char me;

	for (struct stream *s = ctx->streams; s; s = s->next)
		if (s->owner == &me && s->green == context_green())
			return s;
	struct stream *s = stream_new(ctx, 0, 0);
	if (s)
		s->owner = &me;
	return s;
}

int stream_get(void *handle, struct stream **ret_stream)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	uintptr_t special = (uintptr_t)handle;
	if (special == 0)
		special = entry_per_thread() ? PER_THREAD : LEGACY;
	if (special == LEGACY)
		*ret_stream = legacy_stream(ctx);
	else if (special == PER_THREAD)
		*ret_stream = thread_stream(ctx);
	else if ((*ret_stream = obj_find(handle, OBJ_STREAM)) == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (*ret_stream && (*ret_stream)->green && !(*ret_stream)->green->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool implies(const struct stream *earlier, const struct stream *later)
{
	if (earlier == later)
		return true;
	if (!earlier->legacy && !later->legacy)
		return false;
	return !(earlier->flags & STREAM_NON_BLOCKING) && !(later->flags & STREAM_NON_BLOCKING);
}

size_t stream_deps(struct stream *stream, struct fence **deps, size_t max)
{
	size_t n = 0;

	for (struct stream *s = stream->obj.ctx->streams; s && n < max; s = s->next)
		if (s->last && implies(s, stream))
			deps[n++] = s->last;
	return n;
}

void stream_set_last(struct stream *stream, struct fence *fence)
{
	fence_unref(stream->last);
	stream->last = fence;
}

struct fence *stream_submit(struct stream *stream, const struct work *work, struct fence *extra)
{
	struct fence *deps[MAX_DEPS + 1];
	size_t n = stream_deps(stream, deps, MAX_DEPS);

	if (extra)
		deps[n++] = extra;
	struct fence *fence = timeline_submit(work, deps, n);
	if (fence)
		stream_set_last(stream, fence);
	return fence;
}

void stream_wait(struct stream *stream, struct fence *fence)
{
	struct work nothing = { 0 };

	if (fence)
		stream_submit(stream, &nothing, fence);
}

void context_wait(struct context *ctx)
{
	struct stream *s;
	uint64_t seen = 0;

	/* Waiting gives the lock away, and the list may change: look again from the start. */
	do {
		for (s = ctx->streams; s; s = s->next) {
			if (fence_done(s->last)) {
				timeline_reach(fence_end_ns(s->last));
				if (s->last && s->last->seen_ns > seen)
					seen = s->last->seen_ns;
				continue;
			}
			fence_wait(s->last);
			break;
		}
	} while (s);
	observe_reach(seen);
	pools_settle();
}

int sim_cuStreamCreateWithPriority(void **ret_stream, unsigned flags, int priority)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_stream || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	struct stream *s = stream_new(ctx, flags, priority);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_stream = s;
	return CUDA_SUCCESS;
}

int sim_cuStreamCreate(void **ret_stream, unsigned flags)
{
	return sim_cuStreamCreateWithPriority(ret_stream, flags, 0);
}

int sim_cuStreamDestroy_v2(void *handle)
{
	struct stream *s = obj_find(handle, OBJ_STREAM);

	if (!s || s->legacy || s->owner)
		return CUDA_ERROR_INVALID_HANDLE;
	if (s->green && !s->green->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	stream_free(s);
	return CUDA_SUCCESS;
}

int sim_cuStreamDestroy(void *handle) SIM_ALIAS(sim_cuStreamDestroy_v2);

int sim_cuStreamSynchronize(void *handle)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	r = capture_forbids_stream_sync(s);
	if (r)
		return r;
	struct fence *deps[MAX_DEPS];
	const uint64_t since = observe_now();
	const uint32_t ctx = (uint32_t)s->obj.ctx->id;
	const uint64_t id = s->id;
	if (s->legacy) {
		/* Its last fence does not yet cover what blocking streams were given since. */
		struct work nothing = { 0 };
		fence_wait(stream_deps(s, deps, 1) ? stream_submit(s, &nothing, NULL) : NULL);
	} else {
		fence_wait(s->last);
	}
	observe_sync(OBSERVED_STREAM, ctx, id, since);
	return CUDA_SUCCESS;
}

int sim_cuStreamQuery(void *handle)
{
	struct fence *deps[MAX_DEPS];
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	r = capture_forbids_stream_sync(s);
	if (r)
		return r;
	timeline_look();
	size_t n = s->legacy ? stream_deps(s, deps, MAX_DEPS) : 0;
	for (size_t i = 0; i < n; i++)
		if (!fence_done(deps[i]))
			return CUDA_ERROR_NOT_READY;
	return fence_done(s->last) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int sim_cuStreamGetFlags(void *handle, unsigned *ret_flags)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = s->flags;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetPriority(void *handle, int *ret_priority)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_priority)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_priority = s->priority;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetId(void *handle, unsigned long long *ret_id)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_id = s->id;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetCtx(void *handle, void **ret_ctx)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_ctx = s->obj.ctx;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetCtx_v2(void *handle, void **ret_ctx, void **ret_green)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (!r)
		r = sim_cuStreamGetCtx(handle, ret_ctx);
	if (!r && ret_green)
		*ret_green = s->green;
	return r;
}

int sim_cuStreamGetDevice(void *handle, int *ret_device)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = s->obj.ctx->device;
	return CUDA_SUCCESS;
}

int sim_cuStreamAttachMemAsync(
	void *handle, unsigned long long address, size_t size, unsigned flags)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	struct range *range = range_find(address);
	if (!range || range->kind != RANGE_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

int sim_cuStreamWaitEvent(void *handle, void *event_handle, unsigned flags)
{
	struct stream *s;
	struct event *e = obj_find(event_handle, OBJ_EVENT);
	bool captured = false;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_wait_event(s, e, &captured);
	if (!r && !captured)
		stream_wait(s, e->fence);
	return r;
}

int sim_cuLaunchHostFunc(void *handle, void *function, void *user)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {
		.kind = CU_GRAPH_NODE_TYPE_HOST,
		.host = (void (*)(void *))function,
		.user = user,
	};
	return op_perform(s, &op);
}

struct callback {
	void (*function)(void *stream, int status, void *user);
	void *stream, *user;
};

static void call_back(void *arg)
{
	struct callback *c = arg;

	c->function(c->stream, CUDA_SUCCESS, c->user);
}

int sim_cuStreamAddCallback(void *handle, void *function, void *user, unsigned flags)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!function || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture)
		return capture_forbids_stream_sync(s);
	struct callback *c = malloc(sizeof *c);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct callback){
		.function = (void (*)(void *, int, void *))function,
		.stream = handle,
		.user = user,
	};
	struct work work = { .host = call_back, .drop = free, .arg = c };
	return stream_submit(s, &work, NULL) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuStreamCopyAttributes(void *to, void *from)
{
	struct stream *a, *b;
	int r = stream_get(to, &a);

	return r ? r : stream_get(from, &b);
}
