/*
 * Finds the places of blocks and the free extents between them.
 *
 * A trace shows addresses, not memory. The driver backs device addresses with pages of 2 MiB, so
 * there are two answers. One is the span from the lowest to the highest live address, which may
 * never have been memory in parts. The other is the pages that some block has touched, some of
 * which may have gone back since.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#define PAGE_BITS 21

/* Whether one of the tidy runs holds it. */
static bool run_is_in(const struct touched_set *s, const struct page_run *r)
{
	const size_t low = SEARCH(i, 0, s->tidy, s->runs.v[i].lo <= r->lo);
	expect_slow(low <= s->tidy && s->tidy <= s->runs.n, "the tidy runs are runs");
	return low && s->runs.v[low - 1].hi >= r->hi;
}

ORDERING(run_order, struct page_run, ORDER(a->lo, b->lo), ORDER(a->hi, b->hi))

static void tidy(struct touched_set *s)
{
	struct page_run *v = s->runs.v;
	size_t n = 0;
	if (s->tidy == s->runs.n)
		return;
	qsort(v, s->runs.n, sizeof *v, run_order);
	for (size_t i = 0; i < s->runs.n; i++) {
		if (!n || v[i].lo > v[n - 1].hi)
			v[n++] = v[i];
		else if (v[i].hi > v[n - 1].hi)
			v[n - 1].hi = v[i].hi;
	}
	s->runs.n = s->tidy = n;
}

#define UNTIDY_MOST 4096u /* runs, or as many as are tidy: so sorting stays cheap */

static void run_add(struct touched_set *s, const struct page_run *new)
{
	const size_t untidy = s->runs.n - s->tidy;
	if (run_is_in(s, new))
		return;
	if (untidy > UNTIDY_MOST && untidy > s->tidy)
		tidy(s);
	*array_push(&s->runs) = *new;
}

static struct touched_set *touched_get(struct touched *t, const struct extent *e)
{
	return MAP_ROW(&t->map, MAP_KEY(e->process, e->kind), &t->sets,
		(struct touched_set){ .process = e->process, .kind = e->kind });
}

void touched_add(struct touched *t, const struct extent *e)
{
	if (e->start >= e->end)
		return;
	struct touched_set *s = touched_get(t, e);
	run_add(s, &(struct page_run){ e->start >> PAGE_BITS, ((e->end - 1) >> PAGE_BITS) + 1 });
}

void touched_fini(struct touched *t)
{
	for (size_t i = 0; i < t->sets.n; i++)
		array_free(&t->sets.v[i].runs);
	array_free(&t->sets);
	map_fini(&t->map);
}

ORDERING(extent_order, struct extent, ORDER(a->kind, b->kind), ORDER(a->process, b->process),
	ORDER(a->start, b->start), ORDER(a->end, b->end))

static void add_extent(struct free_extents *h, uint64_t *largest, uint64_t from, uint64_t to)
{
	if (from >= to)
		return;
	h->count++;
	h->free_bytes = sat_add(h->free_bytes, to - from);
	*largest = MAX(to - from, *largest);
}

/* Free extents of [lo, hi) between extents from *at on, which are sorted; those that end in it are
 * passed. */
static void look_between(const struct extent *v, size_t n, size_t *at, struct free_extents *h,
	uint64_t *largest, uint64_t lo, uint64_t hi)
{
	uint64_t cursor = lo;
	h->reach_bytes = sat_add(h->reach_bytes, hi - lo);
	for (; *at < n && v[*at].start < hi; ++*at) {
		add_extent(h, largest, cursor, v[*at].start);
		cursor = MAX(v[*at].end, cursor);
	}
	add_extent(h, largest, cursor, hi);
}

/* All extents are of one kind and process; `pages` may be NULL. */
static void measure_one(
	const struct extent *v, size_t n, const struct touched_set *pages, struct memory_space *s)
{
	uint64_t largest = 0, end = 0;
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		s->live_bytes = sat_add(s->live_bytes, v[i].end - v[i].start);
		end = MAX(v[i].end, end);
	}
	s->used = true;
	look_between(v, n, &at, &s->span, &largest, v[0].start, end);
	s->span.largest_bytes = sat_add(s->span.largest_bytes, largest);
	at = largest = 0;
	for (size_t i = 0; pages && i < pages->runs.n; i++)
		look_between(v, n, &at, &s->pages, &largest, pages->runs.v[i].lo << PAGE_BITS,
			pages->runs.v[i].hi << PAGE_BITS);
	s->pages.largest_bytes = sat_add(s->pages.largest_bytes, largest);
	expect(s->span.free_bytes <= s->span.reach_bytes, "what is free is part of the reach");
	expect(s->span.largest_bytes <= s->span.free_bytes, "one extent is part of all");
}

static struct touched_set *touched_find(struct touched *t, const struct extent *e)
{
	const uint32_t index = map_find(&t->map, MAP_KEY(e->process, e->kind));
	if (index == MAP_NONE)
		return NULL;
	tidy(&t->sets.v[index]);
	return &t->sets.v[index];
}

void space_measure(
	struct extent *v, size_t n, struct touched *t, struct memory_space space[MEMORY_KINDS])
{
	if (n)
		qsort(v, n, sizeof *v, extent_order);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1;
			end < n && v[end].kind == v[i].kind && v[end].process == v[i].process;)
			end++;
		measure_one(v + i, end - i, touched_find(t, &v[i]), &space[v[i].kind]);
	}
}

bool fragmentation_of(const struct free_extents *h, double *ret_share)
{
	if (!h->free_bytes)
		return false;
	expect(h->largest_bytes <= h->free_bytes, "one extent is part of all");
	*ret_share = 1 - (double)h->largest_bytes / (double)h->free_bytes;
	return true;
}
