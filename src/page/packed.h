/*
 * Bytes for a page: varints (LEB128) in base64, plain or deflated. Zeroed memory is empty. A lack
 * of memory shows when they are written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"

struct packed {
	ARRAY(uint8_t) b;
};

void packed_varint(struct packed *to, uint64_t value);

/* A difference, which may be negative, modulo 2^64. */
void packed_difference(struct packed *to, uint64_t difference);

/* All of `from`, which is then empty. */
void packed_append(struct packed *to, struct packed *from);

/* Each writes base64 and empties the pack. */
void packed_put(struct packed *from, FILE *out);
void packed_put_deflated(struct packed *from, FILE *out);

void packed_fini(struct packed *p);
