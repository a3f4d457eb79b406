/*
 * Operations: copied for as long as someone needs them, turned into work for the device.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *extra_buffer(void **extra)
{
	const uint8_t *buffer = NULL;

	for (size_t i = 0; extra && (uintptr_t)extra[i] != PARAM_END; i += 2)
		if ((uintptr_t)extra[i] == PARAM_BUFFER_POINTER)
			buffer = extra[i + 1];
	return buffer;
}

/* One block: the array of pointers, then the bytes they point at. */
static void **params_new(const struct image_kernel *k)
{
	size_t bytes = (k->param_bytes + 15) & ~(size_t)15;
	uint8_t *block = calloc(1, k->param_count * sizeof(void *) + bytes + 16);
	void **pointers = (void **)block;

	if (!block)
		return NULL;
	uint8_t *values = block + k->param_count * sizeof(void *);
	for (size_t i = 0; i < k->param_count; i++)
		pointers[i] = values + k->params[i].offset;
	return pointers;
}

int op_keep_params(struct op *op, void **params, void **extra)
{
	const struct image_kernel *k = op->launch.function->k;
	const uint8_t *buffer = extra_buffer(extra);

	if (!k->param_count)
		return CUDA_SUCCESS;
	op->params = params_new(k);
	if (!op->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < k->param_count; i++) {
		if (params)
			memcpy(op->params[i], params[i], k->params[i].size);
		else if (buffer)
			memcpy(op->params[i], buffer + k->params[i].offset, k->params[i].size);
	}
	return CUDA_SUCCESS;
}

int op_clone(const struct op *op, struct op *ret_op)
{
	*ret_op = *op;
	if (op->params) {
		ret_op->params = NULL;
		if (!obj_find(op->launch.function, OBJ_FUNCTION))
			return CUDA_ERROR_INVALID_HANDLE;
		return op_keep_params(ret_op, op->params, NULL);
	}
	if (op->child) {
		ret_op->child = graph_clone(op->child);
		if (!ret_op->child)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ret_op->child->inner = true;
	}
	return CUDA_SUCCESS;
}

void op_fini(struct op *op)
{
	free(op->params);
	if (op->child)
		graph_free(op->child);
	op->params = NULL;
	op->child = NULL;
}

int op_check(struct op *op)
{
	switch (op->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return obj_find(op->launch.function, OBJ_FUNCTION) ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_HANDLE;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return region_from_copy3d(&op->copy, &op->region) ? CUDA_ERROR_ILLEGAL_ADDRESS
								  : CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_check(&op->fill) ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return obj_find(op->event, OBJ_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return graph_check(op->child);
	}
	return CUDA_SUCCESS;
}

static void run_copy(void *arg)
{
	region_copy(arg);
}

static void run_fill(void *arg)
{
	fill_run(arg);
}

static void *duplicate(const void *what, size_t size)
{
	void *copy = malloc(size);

	return copy ? memcpy(copy, what, size) : NULL;
}

static enum law_engine engine_of(const struct copy_region *r)
{
	if (r->src.device)
		return r->dst.device ? LAW_WITHIN : LAW_FROM_DEVICE;
	return LAW_TO_DEVICE;
}

static struct work effect_of(const struct op *op)
{
	switch (op->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return (struct work){
			.cost_ns = launch_cost_ns(&op->launch),
			.law = launch_law(&op->launch),
		};
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return (struct work){
			.cost_ns = region_cost_ns(&op->region),
			.law = { .kind = LAW_COPY, .engine = engine_of(&op->region) },
			.effect = run_copy,
			.drop = free,
			.arg = duplicate(&op->region, sizeof op->region),
		};
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return (struct work){
			.cost_ns = fill_cost_ns(&op->fill),
			.law = { .kind = LAW_COPY, .engine = LAW_WITHIN },
			.effect = run_fill,
			.drop = free,
			.arg = duplicate(&op->fill, sizeof op->fill),
		};
	case CU_GRAPH_NODE_TYPE_HOST:
		return (struct work){ .host = op->host, .arg = op->user };
	}
	return (struct work){ 0 };
}

static struct work work_of(const struct op *op)
{
	struct work work = effect_of(op);
	const struct stream *stream = observe_stream();

	work.seen = observe_op(op);
	if (work.law.kind == LAW_COPY)
		work.law.alone_ns = work.cost_ns;
	if (stream) {
		work.device = stream->obj.ctx->device;
		work.law.priority = -stream->priority;
		work.law.first_sm = stream->green ? stream->green->first_sm : 0;
		work.law.end_sm = stream->green ? stream->green->end_sm : 0;
	}
	return work;
}

static bool without_memory(const struct work *work)
{
	if (!work->effect || work->arg)
		return false;
	free(work->seen);
	return true;
}

struct fence *op_submit(const struct op *op, struct fence *const *deps, size_t dep_count)
{
	struct work work = work_of(op);

	if (without_memory(&work))
		return NULL;
	return timeline_submit(&work, deps, dep_count);
}

int op_perform(struct stream *stream, const struct op *op)
{
	int r = capture_forbids_legacy(stream);

	if (r)
		return r;
	if (stream->capture)
		return capture_add(stream, op);
	observe_scope(stream, 0);
	struct work work = work_of(op);
	if (without_memory(&work))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!stream_submit(stream, &work, NULL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	timeline_throttle();
	return CUDA_SUCCESS;
}
