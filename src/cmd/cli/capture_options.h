/*
 * --capture, --delay, --duration and --until-launches: which part of a run is recorded, in the
 * words in which the injected library is told (the variable WEIR, src/hook/config.c).
 */
#ifndef WEIR_CMD_CLI_CAPTURE_OPTIONS_H
#define WEIR_CMD_CLI_CAPTURE_OPTIONS_H

#include <stdbool.h>

#include "cmd/cli/command.h"

struct capture_options {
	bool wanted;
	char config[256]; /* "capture=profiler,delay=5000000,", or "" */
};

/* 0, or an exit code after complaining. */
int capture_options_take(struct capture_options *c, const struct options *o);

#endif
