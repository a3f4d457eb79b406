/*
 * Merges the runs that data has by nature (sort.h). A trace has a run a chunk, and chunks of a
 * thread seldom overlap. So runs are laid behind one another in the order of their first records,
 * and only what then still overlaps is merged.
 */
#include "base/sort.h"

#include <string.h>

#include "base/array.h"

#define RUN_LEAST 8u  /* shorter ones in the mean: qsort() is faster */
#define BACK_MOST 16u /* a record that is late by as many belongs to the run */
#define EACH_MOST 256u

typedef int order_fn(const void *, const void *);

struct run {
	char *at;
	size_t n;
};

struct sorter {
	size_t each;
	order_fn *order;
	ARRAY(struct run) runs;
};

static char *behind(const struct sorter *s, const struct run *r)
{
	return r->at + r->n * s->each;
}

/* Moves the record behind the run to its place among the last.  False: it is further up. */
static bool insert_late(const struct sorter *s, const struct run *r)
{
	char room[EACH_MOST], *const late = behind(s, r), *to = late;
	size_t back = 0;
	while (back < r->n && back < BACK_MOST && s->order(to - s->each, late) > 0) {
		to -= s->each;
		back++;
	}
	if (back == BACK_MOST && back < r->n && s->order(to - s->each, late) > 0)
		return false;
	memcpy(room, late, s->each);
	memmove(to + s->each, to, (size_t)(late - to));
	memcpy(to, room, s->each);
	return true;
}

static void find_runs(struct sorter *s, char *v, size_t n)
{
	struct run now = { v, 1 };
	for (size_t i = 1; i < n; i++) {
		const char *next = behind(s, &now);
		if (s->order(next - s->each, next) > 0 && !insert_late(s, &now)) {
			*array_push(&s->runs) = now;
			now = (struct run){ behind(s, &now), 0 };
		}
		now.n++;
	}
	*array_push(&s->runs) = now;
}

static int run_order(const void *one, const void *two, void *order)
{
	const struct run *a = one, *b = two;
	const int by = (*(order_fn **)order)(a->at, b->at);
	return by ? by : ORDER(a->at, b->at);
}

/* Copies all runs to `to` in the order of their first records; those that then follow one another
 * become one. */
static void lay_out(struct sorter *s, char *to)
{
	size_t n = 0;
	qsort_r(s->runs.v, s->runs.n, sizeof *s->runs.v, run_order, &s->order);
	for (size_t i = 0; i < s->runs.n; i++) {
		const struct run r = s->runs.v[i];
		memcpy(to, r.at, r.n * s->each);
		if (n && s->order(to - s->each, to) <= 0)
			s->runs.v[n - 1].n += r.n;
		else
			s->runs.v[n++] = (struct run){ to, r.n };
		to += r.n * s->each;
	}
	s->runs.n = n;
}

/* Copies from a the records that come before the first of b, or as it does. */
static char *take(const struct sorter *s, struct run *a, const struct run *b, bool first, char *to)
{
	size_t n = 0;
	while (n < a->n && (!b->n || s->order(a->at + n * s->each, b->at) < first))
		n++;
	if (!n) /* a run that is not there has no place */
		return to;
	memcpy(to, a->at, n * s->each);
	a->at += n * s->each;
	a->n -= n;
	return to + n * s->each;
}

static struct run merge(const struct sorter *s, struct run a, struct run b, char *to)
{
	const struct run both = { to, a.n + b.n };
	while (a.n || b.n) {
		to = take(s, &a, &b, true, to);
		to = take(s, &b, &a, false, to);
	}
	return both;
}

/* Neighbours become one, out of the place where they are. */
static void merge_pairs(struct sorter *s, char *to)
{
	size_t n = 0;
	for (size_t i = 0; i < s->runs.n; i += 2) {
		const struct run a = s->runs.v[i],
				 b = i + 1 < s->runs.n ? s->runs.v[i + 1] : (struct run){ 0 };
		s->runs.v[n++] = merge(s, a, b, to);
		to = behind(s, &s->runs.v[n - 1]);
	}
	s->runs.n = n;
}

/* Returns where all lies in one run: v or room. */
static char *merge_all(struct sorter *s, char *v, char *room)
{
	lay_out(s, room);
	while (s->runs.n > 1) {
		char *from = room;
		merge_pairs(s, v);
		room = v;
		v = from;
	}
	return room;
}

void sort_records(void *v, size_t n, size_t each, order_fn *order)
{
	struct sorter s = { .each = each, .order = order };
	if (n < 2)
		return;
	if (each > EACH_MOST) {
		qsort(v, n, each, order);
		return;
	}
	find_runs(&s, v, n);
	if (n / s.runs.n < RUN_LEAST) {
		qsort(v, n, each, order);
	} else if (s.runs.n > 1) {
		char *room = xmalloc(n * each);
		const char *sorted = merge_all(&s, v, room);
		if (sorted != v)
			memcpy(v, sorted, n * each);
		free(room);
	}
	array_free(&s.runs);
}
