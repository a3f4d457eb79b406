/*
 * HTTP/1.1 connections of a load generator: many at once, each with one request at a time, all on
 * one thread.  Requests are ready-made bytes.  A connection that is free is used again, and more
 * are opened when none is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client;

/* Called for a request that ended.  A code of 0 is a connection that broke before the whole answer.
 * */
typedef void client_ended(void *of, uint64_t tag, int code, uint64_t at_ns);

/* ADDRESS:PORT or unix:PATH.  NULL with a message on stderr. */
struct client *client_new(const char *address, unsigned most, client_ended *ended, void *of);
void client_free(struct client *c);

/* Opens up to `count` connections ahead of the first request. */
void client_open(struct client *c, unsigned count);

/* The bytes stay where they are until the request ended.  -EAGAIN: all connections are busy. */
int client_send(struct client *c, const char *bytes, size_t n, uint64_t tag);

/* Handles what happens until then; returns earlier when something did. */
void client_wait(struct client *c, uint64_t until_ns);

unsigned client_busy(const struct client *c);
unsigned client_opened(const struct client *c);

/* Closes all connections; requests that are under way are forgotten, and the server cancels them.
 */
void client_drop(struct client *c);

/* One request with its answer's body, which the caller frees; NULL when there is no answer. */
char *client_ask(const char *address, const char *path, int *ret_code);

uint64_t client_now(void);
