/*
 * A server of models.  Loops own sockets and connections (loop.c); a device thread runs batches
 * (device_thread.c); the keeper loads and unloads models (models.c).  A request is a struct
 * exchange: its loop owns it, but the device has it from admission to the end of its batch.
 *
 *	socket -> conn (http1_conn.c, http2_conn.c) -> exchange -> its route:
 *	    inference.c    admitted to a queue, run in a batch, back to the loop, answered
 *	    methods.c      answered at once, or by the keeper
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "batch/batch.h"
#include "engine/engine.h"

struct server;

enum model_control { CONTROL_POLL, CONTROL_EXPLICIT, CONTROL_NONE };

#define SERVE_LOADS 256

/* The command line's options. Strings stay while the server lives. */
struct serve_options {
	const char *repository;
	const char *listen[4]; /* ADDRESS:PORT or unix:PATH; those that are not NULL */
	unsigned listens;
	struct engine_options engine;
	const char *watch; /* a directory for the socket that weir top asks; or NULL */
	const char *id;    /* its name, for clients */
	const char *token; /* a file with words of clients, as serve/tokens.h has it; or NULL */
	const char *log;   /* a file for one JSON line a request; or NULL */
	const char *load[SERVE_LOADS]; /* of CONTROL_EXPLICIT: what is loaded at the start */
	unsigned loads;
	unsigned loops; /* 0: as many as fit the machine */
	enum model_control control;
	enum batch_policy policy;
	uint64_t poll_ns;
	uint64_t delay_ns; /* of BATCH_DELAY, where no config says one */
	uint64_t idle_ns;  /* how long a connection stays open without a request */
	uint64_t drain_ns; /* from SIGTERM to the first refused connection */
	uint64_t body_bytes;
	uint64_t memory_bytes; /* of all requests together */
	bool open;             /* other machines may ask without a token */
	bool strict;           /* one model that does not load ends the start */
};

/* Whether libweir.so is in this process, to which the server then says its batches and requests. */
bool serve_is_injected(void);
/* Listens, loads what there is, starts the threads.  -EINVAL: an option is wrong. */
int serve_start(const struct serve_options *o, struct server **ret, struct error *err);
/* The served models, for people: a line for each model. */
void serve_put_ready(struct server *s, FILE *out);
unsigned serve_port(const struct server *s, unsigned listen);
/* Reads the repository again. */
void serve_reread(struct server *s);
/* Not ready from now on; new connections and requests are served until drain_ns has passed. */
void serve_drain(struct server *s);
/* No new requests; what is queued is answered.  Returns when all is done, or at once when `now`. */
void serve_stop(struct server *s, bool now);
void serve_free(struct server *s);
