/* The batcher's data, for its own files. */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "batch/batch.h"
#include "batch/batch_latency.h"
#include "batch/batch_queue.h"

/*
 * batch_demand.c: how much device time the queued work with a deadline up to some time takes: a
 * Fenwick tree over bins of a millisecond (2^20 ns), which rolls with the time. Later deadlines
 * than its horizon are in its last bin; what is overdue is a sum of its own. Each class has a tree.
 */
enum {
	DEMAND_BIN_BITS = 20,
	DEMAND_BINS = 4096,
};

struct batch_demand {
	uint64_t first; /* the bin of the present, counted from the clock's zero */
	uint64_t all[BATCH_CLASSES], overdue[BATCH_CLASSES];
	uint64_t tree[BATCH_CLASSES][DEMAND_BINS + 1], bin[BATCH_CLASSES][DEMAND_BINS];
};

/* Time passes; at most DEMAND_BINS steps. */
void demand_advance(struct batch_demand *d, uint64_t now);
/* The bin, which is remembered with the item for demand_drop(): its lowest 32 bits are enough. */
uint32_t demand_add(struct batch_demand *d, uint32_t class, uint64_t deadline, uint32_t ns);
void demand_drop(struct batch_demand *d, uint32_t class, uint32_t bin, uint32_t ns);
/* Demand of the class and higher ones, with a deadline in the bin of that time or before. */
uint64_t demand_ns(const struct batch_demand *d, uint32_t class, uint64_t deadline);

/*
 * batch_traffic.c: the arrivals of each model and class with a deadline: how often, how soon it
 * must be answered, and how much of the device it asks for. Requests that are still to come need
 * room too: work that can wait must not fill the time that they will need, nor a long batch bar
 * them.
 */
struct batch_traffic {
	double rate;      /* requests in a nanosecond, lately */
	double within_ns; /* between arrival and deadline, lately */
	double load;      /* share of the device, in batches of full size */
	uint64_t last_ns;
};

struct batcher;
struct batch_model;

/* A request arrived; each_ns is its share of a full batch. */
void traffic_note(struct batch_traffic *t, uint64_t now, double within_ns, double each_ns);
/* Forgets arrivals that stopped: looks at one model each time. */
void traffic_age(struct batcher *b, uint64_t now);
/*
 * Device time to keep free for requests of the class and higher ones that come later than a request
 * of the model, and are due before it, within so many ns: `caution` times what they will ask for,
 * or of an overloaded device their share of it.  Half of the request's own share stays its own.
 */
uint64_t traffic_expected(
	const struct batch_model *m, uint32_t class, uint64_t within_ns, double caution);
/*
 * How many of at most `most` rows of the model to run, so that most requests in a time are
 * answered: those of the batch, without those that arrive while it runs and can't wait for its end.
 */
uint32_t traffic_trim(
	const struct batcher *b, const struct batch_model *m, uint32_t class, uint32_t most);

/* Each class has two lanes: work with a deadline, and work without, which weighs less. */
enum { BATCH_LANES = 2 * BATCH_CLASSES, BATCH_GROUPS = 64 };

struct batch_model {
	struct batcher *batcher;
	struct batch_model_config config;
	struct batch_slot *slots;
	uint32_t *at; /* by slot: its place in its heap; of a free one, the next free slot */
	uint32_t room, free_slot; /* slots; `room`: none is free */
	uint32_t queued, rows;    /* in all classes */
	/* Rows by group, where groups of one remainder count as one: so many at most. */
	uint32_t group_rows[BATCH_GROUPS];
	struct batch_queue
		queue[BATCH_LANES]; /* a queue by arrival holds both lanes of its class */
	struct batch_latency latency;
	uint64_t cost_ns;  /* of all that is queued and has a deadline */
	double reached;    /* rows of a batch lately */
	uint64_t trial_ns; /* before that, what looks too late is not tried */
	uint32_t index;    /* among the batcher's models */
	uint32_t round;    /* of the decision in which delay asked it */
};

struct batcher {
	enum batch_policy policy;
	double weight[BATCH_CLASSES];
	double owed_ns[BATCH_LANES]; /* device time that others had of a lane's share */
	ARRAY(struct batch_model *) models;
	ARRAY(struct batch_traffic) traffic; /* by model and class */
	double caution;                      /* what admission takes expected demand times */
	ARRAY(struct batch_queue *) active;  /* with work; room for all is there */
	struct batch_demand demand;
	uint32_t order, running, round, aged;
	uint64_t busy_ns; /* the device is predicted to be busy until then */
};

/* Whether it has work decides whether it is in the list of active queues. */
void batch_note_work(struct batch_queue *q);
/* The head is one of the run's items. */
void batch_take_head(struct batch_queue *q, struct batch_run *run);
/* Takes the item of that slot out of its queue and all accounts. */
struct batch_item *batch_take(struct batch_queue *q, uint32_t slot);
/* The head goes to the items that are shed; false: there is no room for more. */
bool batch_shed_head(struct batch_queue *q, struct batch_run *run);

/*
 * Takes items from the front of the queue while they fit `most` rows, are of the run's group and
 * have no deadline before end_ns.  The others stay.  The first item of a run always fits.
 */
void batch_fill(struct batch_queue *q, struct batch_run *run, uint32_t most, uint64_t end_ns);

/* The policies: they fill the run's model and items, or its wake_ns. */
void slack_next(struct batcher *b, uint64_t now, uint64_t start_ns, struct batch_run *run);
void edf_next(struct batcher *b, uint64_t now, uint64_t start_ns, struct batch_run *run);
void fifo_next(struct batcher *b, uint64_t now, uint64_t start_ns, struct batch_run *run);
void delay_next(struct batcher *b, uint64_t now, uint64_t start_ns, struct batch_run *run);
