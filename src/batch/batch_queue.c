/*
 * The heap has four children: half the levels of two, and the children of one lie in one line.
 * If it has an entry, so does the front, and no entry of the front is behind one of the heap.
 */
#include "batch/batch_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/xmalloc.h"

enum { CHILDREN = 4 };

/* As one number, so that comparing two of them needs no branch, which would be a guess. */
static unsigned __int128 value(const struct queue_entry *e)
{
	return (unsigned __int128)e->key << 64 | (uint64_t)e->order << 32;
}

static bool is_before(const struct queue_entry *a, const struct queue_entry *b)
{
	return value(a) < value(b);
}

static void put(struct batch_queue *q, uint32_t at, struct queue_entry e)
{
	q->heap[at] = e;
	q->at[e.slot] = at;
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

/* The least of four that lie side by side. */
static uint32_t least_of_four(const struct queue_entry *e)
{
	const uint32_t left = is_before(&e[1], &e[0]), right = 2 + is_before(&e[3], &e[2]);
	return is_before(&e[right], &e[left]) ? right : left;
}

/*
 * The hole goes down to the last level, and the entry, which came from there, up from it: it rarely
 * goes far, and on the way down nothing is compared with it.
 */
static void sift_down(struct batch_queue *q, uint32_t at, struct queue_entry e)
{
	for (;;) {
		uint32_t child = CHILDREN * at + 1, least = child;
		if (child + CHILDREN <= q->heaped)
			least += least_of_four(&q->heap[child]);
		else
			while (++child < q->heaped)
				least = is_before(&q->heap[child], &q->heap[least]) ? child : least;
		if (least >= q->heaped)
			break;
		put(q, at, q->heap[least]);
		at = least;
	}
	sift_up(q, at, e);
}

enum { BEFORE_ROOT = CHILDREN - 1 };

struct queue_entry *queue_new_heap(uint32_t room)
{
	const size_t line = CHILDREN * sizeof(struct queue_entry);
	const size_t bytes = (BEFORE_ROOT + room) * sizeof(struct queue_entry) + line - 1;
	struct queue_entry *heap = xcheck(aligned_alloc(line, bytes / line * line));
	return heap + BEFORE_ROOT;
}

void queue_free_heap(struct queue_entry *heap)
{
	free(heap - BEFORE_ROOT);
}

static struct queue_entry heap_remove(struct batch_queue *q, uint32_t at)
{
	const struct queue_entry gone = q->heap[at], last = q->heap[--q->heaped];
	if (at < q->heaped)
		sift_down(q, at, last);
	return gone;
}

/* There is room. */
static void front_insert(struct batch_queue *q, struct queue_entry e)
{
	q->at[e.slot] = QUEUE_IN_FRONT;
	if (q->front_at && is_before(&e, &q->front[q->front_at])) {
		q->front[--q->front_at] = e;
		q->fronts++;
		return;
	}
	if (q->front_at + q->fronts == QUEUE_FRONT) {
		memmove(q->front, &q->front[q->front_at], q->fronts * sizeof e);
		q->front_at = 0;
	}
	uint32_t at = q->front_at + q->fronts++;
	for (; at > q->front_at && is_before(&e, &q->front[at - 1]); at--)
		q->front[at] = q->front[at - 1];
	q->front[at] = e;
}

static struct queue_entry front_remove(struct batch_queue *q, uint32_t slot)
{
	uint32_t at = q->front_at;
	while (q->front[at].slot != slot)
		at++;
	const struct queue_entry gone = q->front[at];
	const uint32_t behind = q->front_at + --q->fronts - at;
	if (at == q->front_at)
		q->front_at++;
	else
		memmove(&q->front[at], &q->front[at + 1], behind * sizeof gone);
	if (!q->fronts)
		q->front_at = 0;
	return gone;
}

void queue_push(struct batch_queue *q, struct queue_entry e)
{
	const uint32_t end = q->front_at + q->fronts;
	const bool among = q->fronts && is_before(&e, &q->front[end - 1]);
	const bool full = q->fronts == QUEUE_FRONT;
	q->n++;
	if (!among && (q->heaped || full)) {
		sift_up(q, q->heaped++, e);
		if (!full)
			front_insert(q, heap_remove(q, 0));
		return;
	}
	if (full) {
		q->fronts--;
		sift_up(q, q->heaped++, q->front[end - 1]);
	}
	front_insert(q, e);
}

struct queue_entry queue_remove(struct batch_queue *q, uint32_t slot)
{
	q->n--;
	if (q->at[slot] != QUEUE_IN_FRONT)
		return heap_remove(q, q->at[slot]);
	const struct queue_entry gone = front_remove(q, slot);
	if (!q->fronts && q->heaped)
		front_insert(q, heap_remove(q, 0));
	return gone;
}

void queue_gather(struct batch_queue *q)
{
	memcpy(&q->heap[q->heaped], queue_first(q), q->fronts * sizeof *q->heap);
	q->front_at = q->fronts = q->heaped = 0;
}

void queue_order(struct batch_queue *q)
{
	const uint32_t n = q->n;
	q->n = 0;
	while (q->n < n)
		queue_push(q, q->heap[q->n]);
}
