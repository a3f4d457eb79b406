/*
 * Changes a file as an enemy, a bad disk or another version would: in one place or a few, and so
 * that what lies behind checksums and compression is reached.  Traces of Weir's are taken apart
 * into blocks or chunks, records and words; text into numbers, strings and spans; anything else
 * into bytes.
 *
 * One seed makes one change of one input.  Links to the room trace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Changes data in place; what comes out is at most `most` bytes long, and its length returned. */
size_t mutate(uint8_t *data, size_t size, size_t most, uint64_t seed);
