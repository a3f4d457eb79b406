/*
 * The connections of weir monitor's server, each with the time by which its next request must be
 * answered. Without that limit a slow sender could hold one for ever, because libmicrohttpd bounds
 * only silence. A thread of its own cuts late ones, and any thread may call.
 */
#pragma once

#include <stdint.h>

struct clients;
struct client;

/* Serves `most` connections at a time, which have `patience_s` for each request.  NULL: no memory,
 * or no thread. */
struct clients *clients_new(uint32_t most, uint32_t patience_s);
void clients_free(struct clients *all);

/* A connection begins.  NULL: there are too many, and this one has no bound of its own. */
struct client *client_begin(struct clients *all, int fd);

/* A request of it has been answered: the time of the next begins. */
void client_answered(struct clients *all, struct client *c);

/* Before its descriptor is closed. */
void client_end(struct clients *all, struct client *c);
