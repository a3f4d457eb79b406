/* A heap with four children: half the levels of two, and the children of one lie in one line. */
#include "batch/batch_queue.h"

#include <stdbool.h>

#include "base/banned.h"

enum { CHILDREN = 4 };

static bool is_before(const struct queue_entry *a, const struct queue_entry *b)
{
	return a->key != b->key ? a->key < b->key : (int32_t)(a->order - b->order) < 0;
}

static void put(struct batch_queue *q, uint32_t at, struct queue_entry e)
{
	q->heap[at] = e;
	q->slots[e.slot].at = at;
}

static void sift_up(struct batch_queue *q, uint32_t at, struct queue_entry e)
{
	while (at) {
		const uint32_t parent = (at - 1) / CHILDREN;
		if (!is_before(&e, &q->heap[parent]))
			break;
		put(q, at, q->heap[parent]);
		at = parent;
	}
	put(q, at, e);
}

static void sift_down(struct batch_queue *q, uint32_t at, struct queue_entry e)
{
	for (;;) {
		uint32_t child = CHILDREN * at + 1, least = child;
		if (child >= q->n)
			break;
		const uint32_t end = child + CHILDREN < q->n ? child + CHILDREN : q->n;
		while (++child < end)
			if (is_before(&q->heap[child], &q->heap[least]))
				least = child;
		if (!is_before(&q->heap[least], &e))
			break;
		put(q, at, q->heap[least]);
		at = least;
	}
	put(q, at, e);
}

void queue_push(struct batch_queue *q, struct queue_entry e)
{
	sift_up(q, q->n++, e);
}

struct queue_entry queue_remove(struct batch_queue *q, uint32_t at)
{
	const struct queue_entry gone = q->heap[at], last = q->heap[--q->n];
	if (at == q->n)
		return gone;
	if (at && is_before(&last, &q->heap[(at - 1) / CHILDREN]))
		sift_up(q, at, last);
	else
		sift_down(q, at, last);
	return gone;
}

void queue_order(struct batch_queue *q)
{
	for (uint32_t at = q->n / CHILDREN + 1; at-- > 0;)
		if (at < q->n)
			sift_down(q, at, q->heap[at]);
}
