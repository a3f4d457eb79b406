/*
 * Steps by their numbers: "10-19", or "10" for one.
 *
 * A step is what a program launches until a call waits for it: an iteration of a loop that
 * synchronises once.  They are counted from 1.
 */
#ifndef WEIR_CMD_CLI_STEP_NUMBERS_H
#define WEIR_CMD_CLI_STEP_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct step_numbers {
	uint32_t first, last;
};

/* False when the text is nothing of the kind. */
bool step_numbers_parse(const char *text, struct step_numbers *ret_numbers);

#endif
