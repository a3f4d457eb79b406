/*
 * Base64 (RFC 4648, with padding): bytes in JSON and in pages. Appends to the caller's buffer.
 */
#ifndef WEIR_BASE_BASE64_H
#define WEIR_BASE_BASE64_H

#include "base/buf.h"

void base64_put(struct buf *b, const void *bytes, size_t n);
/* Appends the bytes of the text; -EINVAL: it is no base64, and nothing was appended. All
 * padding may be left out. */
int base64_read(struct buf *b, struct slice text);

#endif
