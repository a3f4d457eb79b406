/*
 * A queue of a model and class, for items with a deadline or for those without: a heap of four
 * children by a key, a deadline or the time of arrival, where equal keys keep the order in which
 * they came. Any item can be taken out, by its slot: a model has one table of slots for all its
 * queues, and item->place is the number there. Memory is the model's.
 */
#ifndef WEIR_BATCH_BATCH_QUEUE_H
#define WEIR_BATCH_BATCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/batch.h"

/* What decisions need of an item, in half a line of the cache: items lie anywhere. */
struct batch_slot {
	struct batch_item *item; /* NULL: free */
	uint64_t start_by_ns;
	uint32_t rows, group;
	uint32_t bin, cost_ns; /* in the demand (batch_demand.h) */
};

struct queue_entry {
	uint64_t key;
	uint32_t order, slot;
};

struct batch_queue {
	struct batch_model *model;
	uint32_t class;
	bool by_arrival; /* its keys, or by deadline */
	bool endless;    /* nothing in it has a deadline: its keys are by arrival */
	struct queue_entry *heap;
	struct batch_slot *slots;
	uint32_t *at; /* by slot: its place in the heap */
	uint32_t n;
	uint32_t active; /* its place among the queues with work */
	/* What slack thinks of its head in one decision. */
	uint32_t lane, plan_rows;
	uint32_t plan_version; /* of the latencies from which length_ns and gain are */
	uint64_t length_ns, latest_ns;
	double gain;
};

/* Children of one entry lie in one cache line. */
struct queue_entry *queue_new_heap(uint32_t room);
void queue_free_heap(struct queue_entry *heap);

void queue_push(struct batch_queue *q, struct queue_entry e);
struct queue_entry queue_remove(struct batch_queue *q, uint32_t at);
/* Keys have changed. */
void queue_order(struct batch_queue *q);

static inline const struct batch_slot *queue_head(const struct batch_queue *q)
{
	return &q->slots[q->heap[0].slot];
}

/* Most of the next heads are near the root. */
static inline void queue_expect(const struct batch_queue *q)
{
	for (uint32_t i = 0; i < q->n && i < 21; i++)
		__builtin_prefetch(&q->slots[q->heap[i].slot]);
}

/* By the keys of the heads; those of one key in the order of their calls. */
static inline bool queue_is_older(const struct batch_queue *a, const struct batch_queue *b)
{
	if (a->heap[0].key != b->heap[0].key)
		return a->heap[0].key < b->heap[0].key;
	return (int32_t)(a->heap[0].order - b->heap[0].order) < 0;
}

static inline uint64_t item_deadline(const struct batch_item *item)
{
	return item->trial ? BATCH_NEVER : item->deadline_ns;
}

static inline uint64_t queue_deadline(const struct batch_queue *q)
{
	if (q->endless)
		return BATCH_NEVER;
	return q->by_arrival ? item_deadline(queue_head(q)->item) : q->heap[0].key;
}

#endif
