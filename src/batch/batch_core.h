/* The batcher's data, for its own files. */
#pragma once

#include "base/array.h"
#include "batch/batch.h"
#include "batch/batch_demand.h"
#include "batch/batch_latency.h"
#include "batch/batch_queue.h"
#include "batch/batch_traffic.h"

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
