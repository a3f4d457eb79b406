/*
 * The server of weir monitor: metrics over HTTP, and changes (api.h) through a Unix socket of this
 * user or with the token.
 *
 * Requests are answered one at a time, and a look younger than SERVER_FRESH_NS is reused. Slow,
 * idle or many clients hold only their connection, for SERVER_PATIENCE_S a request. Clients of one
 * address cannot hold all connections.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "monitor/watch.h"

#define SERVER_FRESH_NS         200000000u
#define SERVER_PATIENCE_S       10u
#define SERVER_CONNECTIONS      2000u
#define SERVER_CONNECTIONS_EACH 1500u /* of one address */

struct server_config {
	const char *listen;  /* "127.0.0.1:9464", "[::1]:0" */
	const char *control; /* path of the Unix socket, or NULL */
	const char *token;   /* path of a file with the token, or NULL */
	const char *version;
	struct watch *watch;
	int (*look)(void *data);    /* makes the view anew: 0 or -errno */
	void (*looked)(void *data); /* after server_look(): nobody else is at the view; or NULL */
	void *data;
};

struct server;

/* Loads libmicrohttpd: 0 or -ENOSYS, and why. */
int server_load(struct error *err);

/* *ret_port: where it listens.  0 or -errno; -ENOSYS: built without libmicrohttpd. */
int server_start(const struct server_config *c, struct server **ret_s, unsigned *ret_port,
	struct error *err);
/* Looks when nobody has asked. */
int server_look(struct server *s);

void server_stop(struct server *s);
