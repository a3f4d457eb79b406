/*
 * Feeds durations to the detector of slowdowns (regress.h): kernels of current recordings with
 * --gpu, and requests of programs that share a GPU. One owner thread.
 */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "monitor/follow.h"
#include "monitor/regress.h"
#include "share/segment.h"

struct recordings;
struct feed_slot; /* what a program's slot had when it was looked at last */

struct feed {
	struct regress *regress; /* the caller's; NULL: nothing is fed */
	const struct recordings *recordings;
	struct feed_slot *slots; /* SHARE_SLOTS of them */
	/* The process whose kernel was the last. */
	uint32_t pid;
	uint64_t program_hash;
	const char *program;
};

/* A follow_sink's, of a struct feed. */
void feed_kernel(void *data, const struct follow_kernel *k);

/* f: NULL: nobody shares. */
void feed_requests(struct feed *feed, const struct share_file *f, uint64_t now_ns);

void feed_fini(struct feed *feed); /* not the detector */

/* "kernel", "requests". */
const char *feed_kind_name(const struct regress_series *s);

/* An alarm with its evidence, as an object. */
void feed_put_alarm(struct json *j, const struct regress_series *s, uint64_t now_ns);

/* The watched series and the alarms, into the object that is open; of one program, or NULL: of all.
 * */
void feed_put_json(struct json *j, const struct feed *feed, const char *program, uint64_t now_ns);
