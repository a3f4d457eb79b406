/*
 * Numbers the texts of this process: names of kernels, ranges and their arguments. Each is written
 * into the trace once (META_STRING). Any thread may ask at any time, and signal handlers too.
 *
 * A table of fixed size remembers texts by their hash. Once it is full, each request writes the
 * text again under a new number. Such texts share a limited part of the trace. Beyond it a name has
 * no text, and the loss is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No text is longer in a trace. */
#define STRING_MOST 16384u

/* The number of a text, 0 when there is no room for more; longer ones are cut. */
uint32_t string_id(const char *text, uint64_t bytes);

static inline uint32_t string_of(const char *text) /* or NULL */
{
	return text ? string_id(text, strlen(text)) : 0;
}

/* The same for a text that is made only when it is new: a key of whatever it is made of.  True:
 * the caller writes it, with string_write(). */
bool string_claim(uint64_t key, uint32_t *ret_id);
void string_write(uint32_t id, const char *text, uint64_t bytes);

/* A number for a text that will not come again: nothing is remembered. */
uint32_t string_once(const char *text, uint64_t bytes);

/* Hashes of different seeds have nothing to do with each other. */
uint64_t string_hash(const void *data, size_t bytes, uint64_t seed);

void strings_forget(void); /* after a fork: the child's trace starts empty */
