/* Sizes as people type them: 4096, 64K, 64M, 2G. */
#ifndef WEIR_CMD_CLI_SIZE_H
#define WEIR_CMD_CLI_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes; false when the text is no size, or does not fit. */
bool size_parse(const char *text, uint64_t *ret_bytes);

#endif
