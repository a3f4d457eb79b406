/* Values of options as people type them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cli/command.h"

/* An option's time, size or whole number between two bounds: 0, or EXIT_USAGE after complaining.
 * Without a value *io stays. */
int take_time(const struct options *o, const char *name, uint64_t least_ns, uint64_t most_ns,
	uint64_t *io_ns);
int take_size(const struct options *o, const char *name, uint64_t least, uint64_t most,
	uint64_t *io_bytes);
int take_number(const struct options *o, const char *name, uint64_t least, uint64_t most,
	uint64_t *io_number);

/* 4096, 64K, 64M, 2G: bytes; false when the text is no size, or does not fit. */
bool size_parse(const char *text, uint64_t *ret_bytes);

/* 500ms, 20us, 2s, 100ns, 1m: nanoseconds; false when the text is no duration, is 0, or does not
 * fit. */
bool duration_parse(const char *text, uint64_t *ret_ns);

/* "60%", "60" or "0.6%": the share, from 0 to 1; false when it is none. */
bool percent_parse(const char *text, double *ret_share);

/* How many times as long as alone, from 1.01 to 100, in thousandths. */
bool slowdown_parse(const char *text, uint32_t *ret_thousandths);

/* Steps (trace/steps.h) by their numbers: "10-19", or "10" for one; false when the text is
 * nothing of the kind. */
struct step_numbers {
	uint32_t first, last;
};
bool step_numbers_parse(const char *text, struct step_numbers *ret_numbers);
