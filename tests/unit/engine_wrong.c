/*
 * Engines that break the rules of include/weir/engine.h.  WRONG is what this one does: "empty"
 * exports nothing, "old" has another version, "both" has two forms, and "any" does what "does" of
 * engine.json says.  "device" has a form for the GPU whose graphs go wrong.
 */
#include <stdio.h>
#include <string.h>

#include "weir/engine.h"

#define EMPTY  1
#define OLD    2
#define BOTH   3
#define ANY    4
#define DEVICE 5

static const char *does;

static int is(const char *what)
{
	return does && strcmp(does, what) == 0;
}

static int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream);
static int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
static uint64_t state;
static uint32_t state_rows, runs;

static int prepare(struct weir_load *l)
{
	void *f = l->driver_function(l, "cuMemsetD8Async");
	memcpy(&fill, &f, sizeof f);
	f = l->driver_function(l, "cuMemcpyDtoDAsync_v2");
	memcpy(&copy, &f, sizeof f);
	state = l->device_memory(l, 64);
	state_rows = runs = 0;
	return !state;
}

static int load(struct weir_load *l)
{
	static const char *const all[] = { "no-input", "no-name", "no-type", "bytes", "dims",
		"negative", "many", "no-output", "wrong-shape", "wrong-rows", "wrong-rank",
		"unknown-output", "twice", "huge", "silent", "lines", "refuse", "refuse-silently",
		"counts", "remembers" };
	does = NULL;
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		char quoted[40];
		snprintf(quoted, sizeof quoted, "\"%s\"", all[i]);
		if (strstr(l->text, quoted))
			does = all[i];
	}
	if (is("refuse"))
		snprintf(l->error, sizeof l->error, "%s wants %s", l->folder, l->model);
	if (is("refuse") || is("refuse-silently"))
		return 1;
	if (WRONG == DEVICE && prepare(l))
		return 1;
	l->ins = is("no-input") ? 0 : is("many") ? WEIR_ENGINE_TENSORS + 1 : 1;
	l->outs = 1;
	l->in[0] = (struct weir_tensor_spec){ .name = is("no-name") ? NULL : "X",
		.type = is("no-type") ? 77
			: is("bytes") ? 13
				      : WEIR_INT32,
		.dims = is("dims") ? WEIR_ENGINE_DIMS + 1 : 2,
		.dim = { -1, is("negative") ? -2 : 2 } };
	l->out[0] = (struct weir_tensor_spec){ "Y", WEIR_INT32, 2, { -1, is("huge") ? -1 : 2 }, 0 };
	return 0;
}

static int run(void *own, struct weir_run *r)
{
	int64_t dim[WEIR_ENGINE_DIMS + 1] = { r->rows, 2 };
	uint32_t k = 0, dims = 2;
	if (is("no-output"))
		return 0;
	if (is("silent"))
		return 1;
	if (is("lines")) {
		memset(r->error, 'a', sizeof r->error);
		memcpy(r->error, "one\ntwo", 7);
		return 1;
	}
	if (is("wrong-shape"))
		dim[1] = 3;
	if (is("wrong-rows"))
		dim[0]++;
	if (is("huge"))
		dim[1] = INT64_MAX / 2;
	if (is("wrong-rank"))
		dims = WEIR_ENGINE_DIMS + 1;
	if (is("unknown-output"))
		k = 1;
	if (is("twice"))
		r->output(r, k, dims, dim);
	return !r->output(r, k, dims, dim);
}

static void unload(void *own)
{
}

/* Other bytes each time, or those that the last run of another size has left. */
static int enqueue(void *own, struct weir_run *r)
{
	const uint64_t y = (uint64_t)(uintptr_t)r->out[0].data;
	if (is("counts"))
		return fill(y, (unsigned char)++runs, (size_t)r->out[0].bytes, r->stream);
	if (state_rows != r->rows && fill(state, (unsigned char)r->rows, 64, r->stream))
		return 1;
	state_rows = r->rows;
	return copy(y, state, (size_t)r->out[0].bytes, r->stream);
}

#if WRONG == EMPTY
#define weir_engine(none) another_function(none)
const struct weir_engine *weir_engine(void);
#endif

const struct weir_engine *weir_engine(void)
{
	static const struct weir_engine engine = {
		.version = WRONG == OLD ? WEIR_ENGINE_VERSION + 1 : WEIR_ENGINE_VERSION,
		.load = load,
		.run = WRONG == DEVICE ? NULL : run,
		.enqueue = WRONG == BOTH || WRONG == DEVICE ? enqueue : NULL,
		.unload = unload,
	};
	return &engine;
}
