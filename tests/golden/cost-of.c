/*
 * What operators must do, for tests that hold the answers against each other: reads lines of a
 * name, a tab and the arguments as JSON, and prints for each the FLOPs, or "-", and whether it is a
 * product.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/cost.h"

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
		struct cost c = { 0 };
		char *args = strchr(line, '\t');
		if (args)
			*args++ = '\0';
		if (args && cost_of(line, args, &c) && c.has_flops)
			printf("%.0f %d\n", c.flops, c.matrix);
		else
			puts("- 0");
	}
	free(line);
	return 0;
}
