/*
 * Decides which requests of a device's models run next, together, or never. A server of models asks
 * it: a request is admitted or refused when it arrives, and batch_next() takes the next batch
 * whenever the device is free. Everything is decided by the predicted latency of a batch, which
 * batches that ran have taught.
 *
 *	struct batcher *b = batcher_new(BATCH_SLACK);
 *	struct batch_model *m = batch_model_add(b, &config);
 *	batch_learn(m, 1, measured_ns);                       warm-up
 *	if (batch_admit(m, &request->item, now, &retry) == BATCH_ADMITTED) ...
 *	batch_next(b, now, now, &run);                        take run.item[0..n), run them
 *	batch_done(b, &run, now);
 *
 * It has no clock, file or lock: all times are given, in nanoseconds of one clock, and the caller
 * locks. Nothing is allocated after batch_model_add(). One batch runs at a time on a device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum {
	BATCH_MOST = 1024,  /* requests, and rows, in one batch */
	BATCH_CLASSES = 4,  /* 0 is the highest */
	BATCH_QUEUE = 4096, /* max_queue of a config that has 0 there */
	BATCH_QUEUE_MOST = 65536,
};
#define BATCH_NEVER UINT64_MAX

/*
 * Lies in the caller's request, which stays as it is, and where it is, until it was run, shed or
 * cancelled.
 */
struct batch_item {
	uint64_t arrived_ns, deadline_ns; /* BATCH_NEVER: no deadline */
	uint64_t start_by_ns; /* queue timeout: shed unless it runs by then; or BATCH_NEVER */
	uint32_t rows, class, group; /* only items of one group run together */
	uint32_t place;              /* the batcher's */
	bool trial; /* the batcher's: it runs as if it had no deadline, for what is learnt by that
		     */
	uint64_t predicted_end_ns; /* at admission: what was promised */
};

struct batch_model_config {
	const char *name;
	uint32_t max_rows;                 /* 1: one at a time */
	uint32_t max_queue;                /* items, over all classes */
	uint32_t max_class[BATCH_CLASSES]; /* of one class; 0: only by max_queue */
	uint64_t max_delay_ns; /* how long a batch of delay may wait for more; 0: not at all */
	uint32_t preferred[16], preferreds;
	bool preserve_ordering;         /* the queue is in order of arrival, whatever the policy */
	uint32_t buckets[16], nbuckets; /* sizes that the engine runs, ascending; 0: every size */
	float weight;                   /* against other models; 0 is 1 */
};

/*
 * slack: deadlines as in edf, but the most efficient batch goes first as long as all others can
 * still be in time. delay: a model waits max_delay_ns for a preferred size, as Triton does, and
 * knows no deadline but start_by_ns. fifo: the oldest request first, with all that fits beside it.
 * edf: the earliest deadline first. slack and edf predict: they refuse and shed what would be late.
 */
enum batch_policy { BATCH_SLACK, BATCH_DELAY, BATCH_FIFO, BATCH_EDF, BATCH_POLICIES };
const char *batch_policy_name(enum batch_policy policy);
/* -EINVAL: there is no such. */
int batch_policy_find(const char *name, enum batch_policy *ret);

struct batcher;
struct batch_model;
struct batcher *batcher_new(enum batch_policy policy);
/* Puts every queue in the policy's order: O(queued). */
void batcher_set_policy(struct batcher *b, enum batch_policy policy);
/* Share of the device's time that a class gets at least while it has work: 8, 4, 2 and 1 at first.
 */
void batcher_set_class_weight(struct batcher *b, uint32_t class, float weight);
void batcher_free(struct batcher *b);

struct batch_model *batch_model_add(struct batcher *b, const struct batch_model_config *c);
void batch_model_remove(struct batch_model *m); /* its queue is empty, none of its batches runs */
/* Limits that change while it runs; max_queue no higher than it was at first. */
void batch_model_configure(struct batch_model *m, const struct batch_model_config *c);

/* Before its next batch so much is to be done first: its memory comes back to the device.  0: it is
 * there. */
void batch_model_before(struct batch_model *m, uint64_t ns);

/* A batch of so many rows took so long: warm-up says so, and batch_done() by itself. */
void batch_learn(struct batch_model *m, uint32_t rows, uint64_t ns);
/* The time that a batch takes at most, 99 times in 100; 0: nothing is known. */
uint64_t batch_predict(const struct batch_model *m, uint32_t rows);
/* The typical time of a batch: the median. */
uint64_t batch_typical(const struct batch_model *m, uint32_t rows);
/* The standard deviation of the logarithm of single runs which has 1 of 100 beyond the margin. */
double batch_deviation(const struct batch_model *m);
/* The size that so many rows run at. */
uint32_t batch_bucket(const struct batch_model *m, uint32_t rows);
/* Text, one line a size that ran. */
void batch_latency_put(const struct batch_model *m, FILE *out);
/* -EINVAL: it is no such text, and nothing changed. */
int batch_latency_read(struct batch_model *m, FILE *in, struct error *err);

enum batch_refusal { BATCH_ADMITTED, BATCH_TOO_LATE, BATCH_QUEUE_FULL };
/* Queues it, or says why not, and after how long it is worth another try. O(log n). */
enum batch_refusal batch_admit(
	struct batch_model *m, struct batch_item *item, uint64_t now, uint64_t *ret_retry_ns);
/* Takes it out of the queue; nothing if it is in none. O(log n). */
void batch_cancel(struct batch_model *m, struct batch_item *item);

struct batch_run {
	struct batch_model *model; /* NULL: nothing to run now */
	uint64_t wake_ns; /* then: look again at that time; BATCH_NEVER: when something arrives */
	uint32_t n, rows, group, bucket;
	uint64_t began_ns, predicted_ns;
	uint64_t before_ns; /* of predicted_ns: what is to be done first */
	uint64_t spent_ns;  /* the caller's: what that took */
	bool failed;        /* the caller's: what failed teaches nothing about latency */
	struct batch_item *item[BATCH_MOST];
	uint32_t shed; /* items that can't be answered in time any more: they are in no queue now */
	struct batch_item *gone[BATCH_MOST];
};

/* The device is free, or will be at free_ns.  The run counts as begun then. */
void batch_next(struct batcher *b, uint64_t now, uint64_t free_ns, struct batch_run *ret);
/* It took from run->began_ns to now: the model learns. */
void batch_done(struct batcher *b, struct batch_run *run, uint64_t now);

uint32_t batch_queued(const struct batch_model *m);
/* Whether anything is queued, of any model. */
bool batch_has_work(const struct batcher *b);
/* All that is queued typically takes no longer; false: nothing is queued, or it is not known. */
bool batch_is_short(const struct batcher *b, uint64_t ns);
