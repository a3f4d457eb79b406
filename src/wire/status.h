/*
 * The name of a failure in each protocol: api/status.tbl. A function that refuses a request returns
 * a negative errno and a sentence (struct error), and only here it becomes a code of HTTP or gRPC.
 */
#pragma once

struct status {
	int http, grpc;
	const char *name; /* gRPC's: "INVALID_ARGUMENT" */
};

/* The status of 0 or a negative errno. An errno that the table lacks is INTERNAL. */
const struct status *status_of(int negative_errno);
