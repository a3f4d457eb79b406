/* Reads the calls of a trace thread by thread. */
#include "trace/thread_calls.h"

#include "base/expect.h"
#include "base/sort.h"
#include "trace/merge.h"

/* The older one first. */
static int age_order(const struct chunk_ref *a, const struct chunk_ref *b)
{
	return a->head.open.ticks != b->head.open.ticks
		       ? ORDER(a->head.open.ticks, b->head.open.ticks)
		       : ORDER(a->head.seq, b->head.seq);
}

static int chunk_order(const struct trace *t, const void *one, const void *two, bool newest_first)
{
	const struct chunk_ref *a = &t->chunks[*(const uint32_t *)one];
	const struct chunk_ref *b = &t->chunks[*(const uint32_t *)two];
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	if (a->head.tid != b->head.tid)
		return ORDER(a->head.tid, b->head.tid);
	return newest_first ? -age_order(a, b) : age_order(a, b);
}

static int newest_first(const void *one, const void *two, void *trace)
{
	return chunk_order(trace, one, two, true);
}

static int oldest_first(const void *one, const void *two, void *trace)
{
	return chunk_order(trace, one, two, false);
}

void trace_thread_chunks(const struct trace *t, bool newest, struct thread_chunks *ret_list)
{
	*ret_list = (struct thread_chunks){ 0 };
	array_reserve(&ret_list->v, t->chunk_count);
	for (size_t i = 0; i < t->chunk_count; i++)
		if (t->chunks[i].head.kind == CHUNK_EVENTS)
			ret_list->v.v[ret_list->v.n++] = (uint32_t)i;
	SORT_WITH(ret_list->v, newest ? newest_first : oldest_first, (void *)t);
}

static bool is_of_thread(const struct chunk_header *h)
{
	return h->kind == CHUNK_EVENTS || h->kind == CHUNK_COUNTERS ||
	       (h->kind == CHUNK_RANGES && h->tid);
}

/* A recorder counts the chunks of each kind; an import counts none, and knows threads by id. */
struct thread_seen {
	uint32_t next_seq[CHUNK_RANGES + 1]; /* by kind: 0: none of it yet */
};

static bool begins_thread(
	const struct trace *t, const struct thread_seen *seen, const struct chunk_ref *c)
{
	const struct trace *from = merge_owner(t, c);
	return from->header.launched && c->head.seq < seen->next_seq[c->head.kind];
}

static void number_sorted(
	const struct trace *t, const uint32_t *sorted, size_t count, uint32_t *numbers)
{
	struct thread_seen seen = { 0 };
	const struct chunk_ref *last = NULL;
	uint32_t number = 0;
	for (size_t i = 0; i < count; i++) {
		const struct chunk_ref *c = &t->chunks[sorted[i]];
		const bool other_id =
			last && (c->process != last->process || c->head.tid != last->head.tid);
		if (other_id || begins_thread(t, &seen, c)) {
			seen = (struct thread_seen){ 0 };
			number++;
		}
		seen.next_seq[c->head.kind] = c->head.seq + 1;
		numbers[sorted[i]] = number;
		last = c;
	}
}

void trace_number_threads(const struct trace *t, uint32_t **ret_numbers)
{
	uint32_t *numbers = xmalloc((t->chunk_count + 1) * sizeof *numbers);
	uint32_t *sorted = xmalloc((t->chunk_count + 1) * sizeof *sorted);
	size_t count = 0;
	for (size_t i = 0; i < t->chunk_count; i++) {
		numbers[i] = MAP_NONE;
		if (is_of_thread(&t->chunks[i].head))
			sorted[count++] = (uint32_t)i;
	}
	if (count)
		qsort_r(sorted, count, sizeof *sorted, oldest_first, (void *)t);
	number_sorted(t, sorted, count, numbers);
	free(sorted);
	*ret_numbers = numbers;
}

void thread_calls_init(struct thread_calls *c, const struct trace *t)
{
	*c = (struct thread_calls){ .t = t };
	trace_thread_chunks(t, true, &c->chunks);
}

static void take_calls(struct thread_calls *c)
{
	struct records it = records_of(&c->buf);
	const struct record *r;
	c->calls.n = 0;
	while ((r = records_next(&it))) {
		if (!schema_is_call(&c->t->schema, r->fn))
			continue;
		*array_push(&c->calls) = r;
	}
}

int thread_calls_next(struct thread_calls *c)
{
	int e = -EBADMSG;
	while (c->next < c->chunks.v.n && trace_lost(e))
		e = trace_load(c->t, c->chunks.v.v[c->next++], &c->buf, NULL);
	if (e)
		return trace_lost(e) ? 0 : e;
	const struct chunk_ref *now = c->buf.ref;
	expect(now->head.kind == CHUNK_EVENTS, "calls are in chunks of calls");
	expect(!c->last || c->last->process < now->process ||
			(c->last->process == now->process && c->last->head.tid <= now->head.tid),
		"threads come one after the other");
	c->new_thread =
		!c->last || c->last->process != now->process || c->last->head.tid != now->head.tid;
	expect(c->new_thread || age_order(c->last, now) >= 0, "a thread's newest calls come first");
	c->last = now;
	take_calls(c);
	return e ? e : 1;
}

void thread_calls_fini(struct thread_calls *c)
{
	chunk_buf_fini(&c->buf);
	array_free(&c->chunks.v, &c->calls);
}
