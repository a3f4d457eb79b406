/*
 * An engine in host memory: Y is X times the factor in engine.json.
 *
 *	{ "engine": "scale", "factor": 3 }
 *
 * X and Y are rows of four numbers.  A number that is not finite is a fault of the run, so that
 * you see how a fault reaches the client.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/engine.h"

enum { COLUMNS = 4 };

struct scale {
	float factor;
};

static int load(struct weir_load *l)
{
	/* A real engine has a parser of JSON. */
	const char *key = strstr(l->text, "\"factor\":");
	float factor;
	if (!key || sscanf(key + strlen("\"factor\":"), "%f", &factor) != 1) {
		snprintf(l->error, sizeof l->error, "engine.json needs a number as factor");
		return 1;
	}
	struct scale *s = malloc(sizeof *s);
	if (!s) {
		snprintf(l->error, sizeof l->error, "there is no memory for the model");
		return 1;
	}
	s->factor = factor;
	l->own = s;
	l->ins = l->outs = 1;
	l->in[0] = (struct weir_tensor_spec){ "X", WEIR_FP32, 2, { -1, COLUMNS }, 0 };
	l->out[0] = (struct weir_tensor_spec){ "Y", WEIR_FP32, 2, { -1, COLUMNS }, 0 };
	return 0;
}

static int run(void *own, struct weir_run *r)
{
	const struct scale *s = own;
	const struct weir_tensor *in = &r->in[0];
	const float *x = in->data;
	float *y = r->output(r, 0, in->dims, in->dim);
	if (!y)
		return 1; /* Weir has said why */
	for (uint64_t i = 0; i < in->bytes / sizeof *x; i++) {
		if (!isfinite(x[i])) {
			snprintf(r->error, sizeof r->error, "number %llu of X is not finite",
				(unsigned long long)i);
			return 1;
		}
		y[i] = s->factor * x[i];
	}
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
		.run = run,
		.unload = unload,
	};
	return &engine;
}
