/*
 * A queue of a model and class, for items with a deadline or for those without, by a key, a
 * deadline or the time of arrival, where equal keys keep the order in which they came. The first
 * ones are sorted, and the others in a heap of four children. An item that comes to the heap brings
 * the first of the heap to the sorted ones: so it is arrivals that pay for the order, and a
 * decision, for which the device waits, takes the first ones as they lie. Any item can be taken
 * out, by its slot: a model has one table of slots for all its queues, and item->place is the
 * number there. Memory is the model's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "batch/batch.h"

/* The fields of an item that decisions need, in half a line of the cache: items lie anywhere. */
struct batch_slot {
	struct batch_item *item; /* NULL: free */
	uint64_t start_by_ns;
	uint32_t rows, group;
	uint32_t bin, cost_ns; /* in the demand (batch_demand.c) */
};

struct queue_entry {
	uint64_t key;
	uint32_t order, slot;
};

enum { QUEUE_FRONT = 64 };

struct batch_queue {
	struct batch_model *model;
	uint32_t class;
	bool by_arrival;          /* its keys, or by deadline */
	bool endless;             /* nothing in it has a deadline: its keys are by arrival */
	struct queue_entry *heap; /* room for all */
	struct batch_slot *slots;
	uint32_t *at;              /* by slot: its place in the heap, or QUEUE_IN_FRONT */
	uint32_t n;                /* all */
	uint32_t heaped;           /* of these in the heap: only while others are in front */
	uint32_t front_at, fronts; /* where the first one is, and how many */
	uint32_t active;           /* its place among the queues with work */
	/* The head's values for slack in one decision. */
	uint32_t lane, plan_rows;
	uint32_t plan_version; /* of the latencies from which length_ns and gain are */
	uint64_t length_ns, latest_ns;
	double gain;
	struct queue_entry front[QUEUE_FRONT];
};

#define QUEUE_IN_FRONT UINT32_MAX

/* Children of one entry lie in one cache line. */
struct queue_entry *queue_new_heap(uint32_t room);
void queue_free_heap(struct queue_entry *heap);

void queue_push(struct batch_queue *q, struct queue_entry e);
struct queue_entry queue_remove(struct batch_queue *q, uint32_t slot);
/* Puts all entries into heap[0..n), in no order, where their keys may change; then queue_order().
 */
void queue_gather(struct batch_queue *q);
void queue_order(struct batch_queue *q);

static inline const struct queue_entry *queue_first(const struct batch_queue *q)
{
	return &q->front[q->front_at];
}

static inline const struct batch_slot *queue_head(const struct batch_queue *q)
{
	return &q->slots[queue_first(q)->slot];
}

/* The next heads. */
static inline void queue_expect(const struct batch_queue *q)
{
	for (uint32_t i = 0; i < q->fronts && i < QUEUE_FRONT / 2; i++)
		__builtin_prefetch(&q->slots[queue_first(q)[i].slot]);
}

/* By the keys of the heads; those of one key in the order of their calls. */
static inline bool queue_is_older(const struct batch_queue *a, const struct batch_queue *b)
{
	const struct queue_entry *x = queue_first(a), *y = queue_first(b);
	return x->key != y->key ? x->key < y->key : (int32_t)(x->order - y->order) < 0;
}

static inline uint64_t item_deadline(const struct batch_item *item)
{
	return item->trial ? BATCH_NEVER : item->deadline_ns;
}

static inline uint64_t queue_deadline(const struct batch_queue *q)
{
	if (q->endless)
		return BATCH_NEVER;
	return q->by_arrival ? item_deadline(queue_head(q)->item) : queue_first(q)->key;
}
