/*
 * An engine on the GPU, by the CUDA driver alone: Y is the bytes of X shifted by one place, and
 * the first byte of Y comes from memory that load() has filled.
 *
 *	{ "engine": "shift" }
 *
 * The work is two copies, so it does on the simulated driver what it does on a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/engine.h"

enum { BYTE = 7, MARK = 16 };

struct shift {
	uint64_t mark; /* MARK bytes, each BYTE */
	int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
	int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream);
};

static int fault(char *error, const char *why)
{
	snprintf(error, WEIR_ENGINE_ERROR, "%s", why);
	return 1;
}

/* ISO C has no conversion between pointers to data and to functions. */
static int find(struct weir_load *l, const char *name, void *ret_function)
{
	void *function = l->driver_function(l, name);
	memcpy(ret_function, &function, sizeof function);
	return function ? 0 : fault(l->error, "the driver lacks a function");
}

static int load(struct weir_load *l)
{
	struct shift *s = calloc(1, sizeof *s);
	if (!s)
		return fault(l->error, "there is no memory for the model");
	if (find(l, "cuMemcpyDtoDAsync_v2", &s->copy) || find(l, "cuMemsetD8Async", &s->fill))
		goto failed;
	s->mark = l->device_memory(l, MARK);
	if (!s->mark || s->fill(s->mark, BYTE, MARK, l->stream)) {
		fault(l->error, "there is no memory on the device");
		goto failed;
	}
	l->own = s;
	l->ins = l->outs = 1;
	l->in[0] = (struct weir_tensor_spec){ "X", WEIR_UINT8, 2, { -1, 8 }, 0 };
	l->out[0] = (struct weir_tensor_spec){ "Y", WEIR_UINT8, 2, { -1, 8 }, 0 };
	return 0;
failed:
	free(s);
	return 1;
}

static int enqueue(void *own, struct weir_run *r)
{
	const struct shift *s = own;
	const uint64_t x = (uint64_t)(uintptr_t)r->in[0].data,
		       y = (uint64_t)(uintptr_t)r->out[0].data;
	if (s->copy(y, s->mark, 1, r->stream) ||
		s->copy(y + 1, x, (size_t)r->in[0].bytes - 1, r->stream))
		return fault(r->error, "the driver refused a copy");
	return 0;
}

static void unload(void *own)
{
	free(own);
}

const struct weir_engine *weir_engine(void)
{
	static const struct weir_engine engine = {
		.version = WEIR_ENGINE_VERSION,
		.load = load,
		.enqueue = enqueue,
		.unload = unload,
	};
	return &engine;
}
