/*
 * Steps by their numbers: "10-19", or "10" for one.
 *
 * A step is what a program launches until a call waits for it: an iteration of a loop that
 * synchronises once.  They are counted from 1.
 */
#ifndef WEIR_CMD_CLI_STEPS_H
#define WEIR_CMD_CLI_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct steps {
	uint32_t first, last;
};

/* False when the text is nothing of the kind. */
bool steps_parse(const char *text, struct steps *ret_steps);

#endif
