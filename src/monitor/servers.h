/*
 * Models of every `weir serve` of this user: each server listens at serve-PID.sock of the directory
 * where programs find each other, and is asked over HTTP. All are asked at once, and one that does
 * not answer delays a look by SERVERS_WAIT_MS at most. Their answers are not trusted. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/json.h"

#define SERVERS_WAIT_MS 200
#define SERVERS_NAME    40
#define SERVERS_BUCKETS 224

struct served_model {
	uint32_t pid;
	char name[SERVERS_NAME];
	uint64_t version, ns; /* of the answer: CLOCK_MONOTONIC */
	uint64_t success, failed, cancelled, met, late, shed, refused, queued;
	uint64_t batches, rows;
	uint64_t predicted_one_ns, predicted_max_ns; /* 0: unknown */
	struct served_bucket {
		uint64_t end_ns, n;
	} latency[SERVERS_BUCKETS]; /* ascending */
	uint32_t buckets;
	/* Since the look before; 0 or false where they are not known. */
	bool has_rate, has_missed;
	double requests_per_s, missed, mean_rows;
	uint64_t p50_ns, p99_ns;
};

struct servers {
	const char *directory; /* "": nobody is found */
	ARRAY(struct served_model) models, before;
};

void servers_look(struct servers *s);
void servers_fini(struct servers *s);
/* The array `models`, into the object that is open. */
void servers_put_json(struct json *j, const struct servers *s);
