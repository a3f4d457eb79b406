/* Durations as people type them: 500ms, 20us, 2s, 100ns, 1m. */
#ifndef WEIR_CMD_CLI_DURATION_H
#define WEIR_CMD_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds; false when the text is no duration, is 0, or does not fit. */
bool duration_parse(const char *text, uint64_t *ret_ns);

/* "60%", "60" or "0.6%": the share, from 0 to 1; false when it is none. */
bool percent_parse(const char *text, double *ret_share);

#endif
