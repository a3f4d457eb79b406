/*
 * The costs of operators, for tests that hold the answers against each other: reads lines of a
 * name, a tab and the arguments as JSON, and prints for each the FLOPs, or "-", whether it is a
 * product, and the bytes, or "-".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/cost.h"

static void put(bool known, double value)
{
	if (known)
		printf("%.0f ", value);
	else
		fputs("- ", stdout);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
		struct cost c = { 0 };
		char *args = strchr(line, '\t');
		if (args)
			*args++ = '\0';
		if (args)
			cost_of(line, args, &c);
		put(c.has_flops, c.flops);
		printf("%d ", c.has_flops && c.matrix);
		put(c.has_bytes, c.bytes);
		putchar('\n');
	}
	free(line);
	return 0;
}
