/*
 * Turns --capture, --delay, --duration, --until-launches and --stacks into settings of the variable
 * WEIR (src/hook/core/config.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cli/command.h"

struct capture_options {
	bool wanted;
	char config[256]; /* "capture=profiler,delay=5000000,", or "" */
};

/* 0, or an exit code after complaining. */
int capture_options_take(struct capture_options *c, const struct options *o);

#define STACK_CHOICE_MOST 160

struct stack_choice {
	bool asked;
	char text[STACK_CHOICE_MOST + 1]; /* "" or "=WHAT" */
};

/* The same; adds the calls that are asked for to the control word. */
int stack_choice_take(const struct options *o, struct stack_choice *ret_choice, uint32_t *control);
