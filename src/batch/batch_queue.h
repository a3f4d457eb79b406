/*
 * The queue of a model and class: a heap of four children by a key, a deadline or the time of
 * arrival, where equal keys keep the order in which they came. Any item can be taken out, by its
 * slot: a model has one table of slots for all its classes, and item->place is the number there.
 * Memory is the model's.
 */
#ifndef WEIR_BATCH_BATCH_QUEUE_H
#define WEIR_BATCH_BATCH_QUEUE_H

#include <stdint.h>

#include "batch/batch.h"

struct batch_slot {
	struct batch_item *item; /* NULL: free */
	uint32_t bin, cost_ns;   /* in the demand (batch_demand.h) */
};

struct queue_entry {
	uint64_t key;
	uint32_t order, slot;
};

enum { QUEUE_GROUPS = 64 };

struct batch_queue {
	struct batch_model *model;
	uint32_t class;
	struct queue_entry *heap;
	struct batch_slot *slots;
	uint32_t *at; /* by slot: its place in the heap */
	uint32_t n;
	uint32_t active; /* its place among the queues with work */
	/* Rows by group, where groups of one remainder count as one: so many at most. */
	uint32_t rows[QUEUE_GROUPS];
	/* What the policy thinks of its head in one decision. */
	uint32_t plan_rows;
	uint64_t length_ns, latest_ns;
};

/* Children of one entry lie in one cache line. */
struct queue_entry *queue_new_heap(uint32_t room);
void queue_free_heap(struct queue_entry *heap);

void queue_push(struct batch_queue *q, struct queue_entry e);
struct queue_entry queue_remove(struct batch_queue *q, uint32_t at);
/* Keys have changed. */
void queue_order(struct batch_queue *q);

static inline struct batch_item *queue_head(const struct batch_queue *q)
{
	return q->slots[q->heap[0].slot].item;
}

/* Most of the next heads are near the root, and their items anywhere in memory. */
static inline void queue_expect(const struct batch_queue *q)
{
	const uint32_t n = q->n < 21 ? q->n : 21;
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(&q->slots[q->heap[i].slot]);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(q->slots[q->heap[i].slot].item);
}

static inline uint32_t *queue_rows(struct batch_queue *q, uint32_t group)
{
	return &q->rows[group % QUEUE_GROUPS];
}

#endif
