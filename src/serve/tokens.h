/*
 * The words of a token file, one of which clients have to send, and how fast each may ask. A line
 * is WORD [requests=N] [rows=N], with N a second.
 *
 * A rate is a bucket that holds what may be asked in one second, so a client that was silent can
 * ask that much at once. A request of more rows than that needs the full bucket, and the ones after
 * it wait for longer. All functions but those that open and free may be called by several threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

#define TOKEN_RATE_MOST 1000000

struct token;
struct tokens;

/* -EINVAL and a sentence that begins with the option. */
int tokens_open(const char *path, struct tokens **ret, struct error *err);
void tokens_free(struct tokens *t); /* NULL is allowed */
/* The one in "Bearer WORD", or NULL.  The time that it takes says nothing of the words. */
struct token *tokens_find(struct tokens *t, struct slice authorization);
/* Whether one more request of so many rows is within the rates; if not, after how long it is. */
bool token_take(struct token *t, uint32_t rows, uint64_t now_ns, uint64_t *ret_retry_ns);
