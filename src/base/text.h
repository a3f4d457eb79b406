/*
 * Text from outside: names of kernels, ranges, files and programs, which may hold any bytes.
 *
 * A '?' replaces everything that a terminal would obey. That is control characters of ASCII and C1,
 * marks that turn the direction of writing, and bytes that are not UTF-8. Nothing here allocates.
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the character at s, of which there are `left`; 0: it is no UTF-8. */
size_t utf8_length(const unsigned char *s, size_t left);

/* Writes a code point, and returns its bytes. */
static inline size_t utf8_put(char out[4], uint32_t c)
{
	const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
	return n;
}

/* Bytes of the next of `left`, of which there is one at least, and whether a terminal may have it.
 */
size_t text_next(const char *s, size_t left, bool *ret_safe);

/* s as a terminal may have it: printed, or changed where it stands. */
void text_put_safe(FILE *out, const char *s);
void text_put_safe_bytes(FILE *out, const char *s, size_t bytes);
void text_make_safe(char *s);

/* A cell of CSV, in quotes.  It may end up on a terminal or in a spreadsheet: control characters
 * are question marks, and an apostrophe keeps what looks like a formula from being run. */
void text_put_csv(FILE *out, const char *s);

/* Levenshtein distance of two short names; limit when it is that or more, or one has more than 32
 * bytes. */
unsigned text_distance(const char *a, const char *b, unsigned limit);

#define TEXT_MOST 120

struct text_short {
	char text[4 * TEXT_MOST + 4];
};

/* The first `most` characters of a name, which may have many KB, and '…' for those behind. */
const char *text_short(struct text_short *t, const char *name, size_t most);

/* The part of a kernel's name that tells it from others: behind "void " and the namespaces in which
 * most of PyTorch's are. It stays a part of the name, so that filters find what a table shows. */
const char *text_kernel(const char *name);

/* The first of the names, ", " between them, that has the word in it: false where none has. */
bool text_name_with(const char *names, const char *word, char *ret_name, size_t size);
