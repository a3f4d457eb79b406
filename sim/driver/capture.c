/*
 * Stream capture.  A stream in a capture has heads: the nodes that its next operation will
 * depend on.  Recording an event remembers the heads, waiting for it adds them, and so a
 * capture spreads from its origin to other streams and comes back.
 *
 * A call that a capture cannot hold is refused and spoils the capture: it can then only be
 * ended, with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

enum { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

static struct capture *captures;
static uint64_t next_id = 1;
static _Thread_local int thread_mode = MODE_GLOBAL;
static _Thread_local char me;

static bool heads_set(struct node ***heads, size_t *count, struct node *const *from, size_t n)
{
	struct node **copy = calloc(n + 1, sizeof *copy);

	if (!copy)
		return false;
	if (n)
		memcpy(copy, from, n * sizeof *copy);
	free(*heads);
	*heads = copy;
	*count = n;
	return true;
}

static bool heads_add(struct stream *s, struct node *node)
{
	for (size_t i = 0; i < s->head_count; i++)
		if (s->heads[i] == node)
			return true;
	struct node **more = reallocarray(s->heads, s->head_count + 1, sizeof *more);
	if (!more)
		return false;
	s->heads = more;
	s->heads[s->head_count++] = node;
	return true;
}

static struct capture *capture_by_id(uint64_t id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* Whether a call by this thread that may break captures breaks this one. */
static bool exposed(const struct capture *c)
{
	if (c->mode == MODE_RELAXED || thread_mode == MODE_RELAXED)
		return false;
	if (c->thread == &me)
		return true;
	return c->mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
}

int capture_forbids(void)
{
	int r = CUDA_SUCCESS;

	for (struct capture *c = captures; c; c = c->next) {
		if (!exposed(c))
			continue;
		c->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return r;
}

int capture_forbids_sync(struct context *ctx)
{
	int r = CUDA_SUCCESS;

	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (!s->capture)
			continue;
		s->capture->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return r;
}

int capture_forbids_stream_sync(struct stream *stream)
{
	if (!stream->capture)
		return capture_forbids_legacy(stream);
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

int capture_forbids_legacy(struct stream *stream)
{
	int r = CUDA_SUCCESS;

	if (!stream->legacy)
		return r;
	for (struct stream *s = stream->obj.ctx->streams; s; s = s->next) {
		if (!s->capture || s->flags & STREAM_NON_BLOCKING)
			continue;
		s->capture->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return r;
}

int capture_add(struct stream *stream, const struct op *op)
{
	struct capture *c = stream->capture;

	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	struct node *n = graph_add(c->graph, op, stream->heads, stream->head_count);
	if (!n || !heads_set(&stream->heads, &stream->head_count, &n, 1))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int capture_record_event(struct stream *stream, struct event *event)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!heads_set(&event->heads, &event->head_count, stream->heads, stream->head_count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->capture_id = stream->capture->id;
	return CUDA_SUCCESS;
}

static void join(struct stream *stream, struct capture *c)
{
	stream->capture = c;
	stream->head_count = 0;
}

/* A wait, in a stream that is not captured yet or that is in the event's capture. */
static int wait_inside(struct stream *stream, struct event *event, struct capture *c)
{
	if (stream->capture && stream->capture != c) {
		stream->capture->invalid = true;
		c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->legacy)
		return capture_forbids_legacy(stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
						      : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!stream->capture)
		join(stream, c);
	for (size_t i = 0; i < event->head_count; i++)
		if (!heads_add(stream, event->heads[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int capture_wait_event(struct stream *stream, struct event *event, bool *ret_done)
{
	struct capture *c = event->capture_id ? capture_by_id(event->capture_id) : NULL;

	*ret_done = event->capture_id || stream->capture;
	if (c)
		return wait_inside(stream, event, c);
	if (event->capture_id)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (!stream->capture)
		return CUDA_SUCCESS;
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!event->recorded)
		return CUDA_SUCCESS;
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

void capture_leave(struct stream *stream)
{
	struct capture *c = stream->capture;

	free(stream->heads);
	stream->heads = NULL;
	stream->head_count = 0;
	stream->capture = NULL;
	if (c) {
		c->invalid = true;
		if (c->origin == stream)
			c->origin = NULL;
	}
}

static void capture_end(struct capture *c, struct context *ctx)
{
	struct capture **link = &captures;

	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (s->capture != c)
			continue;
		s->capture = NULL;
		free(s->heads);
		s->heads = NULL;
		s->head_count = 0;
	}
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	c->graph->capturing = false;
	free(c);
}

void captures_free(struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next) {
		struct capture *c = s->capture;

		if (!c)
			continue;
		struct graph *g = c->to_graph ? NULL : c->graph;

		capture_end(c, ctx);
		if (g)
			graph_free(g);
	}
}

static int begin(
	struct stream *s, struct graph *graph, struct node *const *deps, size_t dep_count, int mode)
{
	if (mode < MODE_GLOBAL || mode > MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *c = calloc(1, sizeof *c);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->graph = graph ? graph : graph_new();
	if (!c->graph || !heads_set(&s->heads, &s->head_count, deps, dep_count)) {
		if (c->graph && !graph)
			graph_free(c->graph);
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->to_graph = graph != NULL;
	c->graph->capturing = true;
	c->mode = mode;
	c->id = next_id++;
	c->thread = &me;
	c->origin = s;
	c->next = captures;
	captures = c;
	s->capture = c;
	return CUDA_SUCCESS;
}

int sim_cuStreamBeginCapture_v2(void *handle, int mode)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	return r ? r : begin(s, NULL, NULL, 0, mode);
}

int sim_cuStreamBeginCapture(void *handle)
{
	return sim_cuStreamBeginCapture_v2(handle, MODE_GLOBAL);
}

static bool nodes_of(const struct graph *graph, void *const *handles, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct node *n = obj_find(handles[i], OBJ_NODE);

		if (!n || n->graph != graph)
			return false;
	}
	return true;
}

int sim_cuStreamBeginCaptureToGraph(
	void *handle, void *graph_handle, void **deps, void *edges, size_t dep_count, int mode)
{
	struct graph *g = obj_find(graph_handle, OBJ_GRAPH);
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!g || g->capturing || (dep_count && !deps) || !nodes_of(g, deps, dep_count))
		return CUDA_ERROR_INVALID_VALUE;
	return begin(s, g, (struct node *const *)deps, dep_count, mode);
}

/* Every node that another stream ended with must be behind by the origin's heads. */
static bool joined(const struct capture *c, const struct stream *origin)
{
	for (struct stream *s = origin->obj.ctx->streams; s; s = s->next) {
		if (s->capture != c || s == origin)
			continue;
		for (size_t i = 0; i < s->head_count; i++) {
			bool reached = false;

			for (size_t j = 0; j < origin->head_count && !reached; j++)
				reached = node_reaches(c->graph, s->heads[i], origin->heads[j]);
			if (!reached)
				return false;
		}
	}
	return true;
}

static int check_end(const struct capture *c, const struct stream *s)
{
	if (c->origin != s)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return joined(c, s) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

int sim_cuStreamEndCapture(void *handle, void **ret_graph)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	struct capture *c = s->capture;
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->mode != MODE_RELAXED && c->thread != &me)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	r = check_end(c, s);
	if (r == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
		return r;
	*ret_graph = r ? NULL : c->graph;
	struct graph *lost = r && !c->to_graph ? c->graph : NULL;
	capture_end(c, s->obj.ctx);
	if (lost)
		graph_free(lost);
	return r;
}

static int status_of(const struct stream *s)
{
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

int sim_cuStreamIsCapturing(void *handle, int *ret_status)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_status)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids_legacy(s);
	if (!r)
		*ret_status = status_of(s);
	return r;
}

int sim_cuStreamGetCaptureInfo_v3(void *handle, int *ret_status, unsigned long long *ret_id,
	void **ret_graph, void ***ret_deps, void **ret_edges, size_t *ret_count)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!ret_status)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids_legacy(s);
	if (r)
		return r;
	*ret_status = status_of(s);
	if (*ret_status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (ret_id)
		*ret_id = s->capture->id;
	if (ret_graph)
		*ret_graph = s->capture->graph;
	if (ret_deps)
		*ret_deps = (void **)s->heads;
	if (ret_edges)
		*ret_edges = NULL;
	if (ret_count)
		*ret_count = s->head_count;
	return CUDA_SUCCESS;
}

int sim_cuStreamGetCaptureInfo_v2(void *handle, int *ret_status, unsigned long long *ret_id,
	void **ret_graph, void ***ret_deps, size_t *ret_count)
{
	return sim_cuStreamGetCaptureInfo_v3(
		handle, ret_status, ret_id, ret_graph, ret_deps, NULL, ret_count);
}

int sim_cuStreamGetCaptureInfo(void *handle, int *ret_status, unsigned long long *ret_id)
{
	return sim_cuStreamGetCaptureInfo_v3(handle, ret_status, ret_id, NULL, NULL, NULL, NULL);
}

int sim_cuStreamUpdateCaptureDependencies(void *handle, void **deps, size_t count, unsigned flags)
{
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	if (!s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (flags > 1 || (count && !deps) || !nodes_of(s->capture->graph, deps, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == 1)
		s->head_count = 0;
	for (size_t i = 0; i < count; i++)
		if (!heads_add(s, deps[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int sim_cuStreamUpdateCaptureDependencies_v2(
	void *handle, void **deps, void *edges, size_t count, unsigned flags)
{
	return sim_cuStreamUpdateCaptureDependencies(handle, deps, count, flags);
}

int sim_cuThreadExchangeStreamCaptureMode(int *mode)
{
	if (!mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	int before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
