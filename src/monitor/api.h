/*
 * The answers of weir monitor (docs/reference/openapi.yaml). server.h receives the requests.
 *
 *	GET /metrics, /healthz				anybody who reaches it
 *	GET /v1/programs, /v1/policy, /v1/recordings, /v1/regressions
 *	PUT /v1/programs/PID/class {"class": NAME}	only with control
 *	PUT /v1/policy {"policy": NAME}
 *	PUT /v1/recordings/PID {"to": WHAT}
 *	PUT /v1/regressions/ID {"to": "accepted"}
 *
 * The value of a PUT stands in a JSON body or behind a question mark.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "monitor/watch.h"

#define API_BODY 4096u /* most bytes of a body */

struct api_request {
	const char *method, *path, *body;
	size_t body_bytes;
	/* The value behind the question mark; NULL: nothing of that name. */
	const char *(*argument)(void *data, const char *name);
	void *data;
	enum api_may {
		API_READS,    /* metrics alone, and is not told that there is more */
		API_UNKNOWN,  /* there is more, for who has the token */
		API_CONTROLS, /* all */
	} may;
	bool too_long; /* the body was, and is not here */
};

struct api_answer {
	unsigned status;
	const char *type;  /* of the body */
	const char *allow; /* methods, with 405 */
	char *body;        /* to be freed; NULL: none */
	size_t bytes;
};

struct api {
	struct watch *watch;
	const char *version;
	int (*look)(void *data); /* makes the view anew: 0 or -errno */
	void *data;
};

/* a is filled in whatever happens. */
void api_ask(const struct api *api, const struct api_request *r, struct api_answer *a);
