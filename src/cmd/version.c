/*
 * `weir version`.
 */
#include "cmd/cli/command.h"

#include <stdio.h>

int cmd_version(const struct options *o)
{
	puts("weir " WEIR_VERSION);
	return EXIT_YES;
}
