/*
 * Base64 (RFC 4648, with padding): bytes in JSON and in pages. The caller owns all memory.
 */
#pragma once

#include "base/buf.h"

void base64_put(struct buf *b, const void *bytes, size_t n);
/* The bytes of the text to `to`, which has room for BASE64_BYTES(text.n). -EINVAL: it is no base64.
 * All padding may be left out. */
#define BASE64_BYTES(n) ((n) / 4 * 3 + 3)
int base64_read(struct slice text, char *to, size_t *ret_bytes);
