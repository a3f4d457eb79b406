/*
 * Fuzzes the fail conditions of weir diff: the input is an expression.
 */
#include "diff/fail_condition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct fail_condition g;
	struct error err = { .text = "" };
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (condition_parse(text, &g, &err)) {
		if (!*err.text)
			abort();
	} else {
		if (!isfinite(g.value) || strlen(g.pattern) >= CONDITION_PATTERN)
			abort();
	}
	free(text);
	return 0;
}
