/*
 * Fuzzes what operators and calls of libraries must do: the input is a name and, behind the first
 * newline, the arguments of a range.
 */
#include "model/cost.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sum that is known is a number; nothing is known of neither. */
static void check(const struct cost *c)
{
	if (!c->has_flops && !c->has_bytes)
		abort();
	if (c->has_flops && !(isfinite(c->flops) && c->flops > 0))
		abort();
	if (c->has_bytes && !(isfinite(c->bytes) && c->bytes > 0))
		abort();
	if (c->has_unit && (unsigned)c->unit >= GPU_UNITS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);
	struct cost c;
	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	char *args = strchr(name, '\n');
	if (args) {
		*args = '\0';
		/* A copy of their own, so that one byte too far is seen. */
		char *alone = strdup(args + 1);
		if (alone && cost_of(name, alone, &c))
			check(&c);
		free(alone);
	}
	free(name);
	return 0;
}
