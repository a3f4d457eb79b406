/*
 * Finds whether live memory grows from one iteration to the next.
 *
 * Marks count iterations: launches of the most frequent kernel by its most frequent thread, or
 * without launches allocations of the most common size. Between two marks the minimum of live
 * memory is kept. If this sequence repeats after p marks apart from a constant change, p marks are
 * an iteration.
 *
 * Growth is the slope of Theil and Sen, the median over all pairs of iterations. Its confidence is
 * Kendall's tau. Both withstand single outliers. The first quarter is left out, because programs
 * fill their caches then.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

#include "model/tally.h"

#define MARKS_LEAST 12u        /* fewer tell nothing: of 12, 8 iterations are looked at */
#define MARKS_MOST  (1u << 16) /* looked at */
#define PERIOD_MOST 2048u      /* marks */
#define SLOPES_OF   400u       /* iterations; of more, neighbours are taken together */

struct anchor {
	uint64_t kernel, count;
};

/* The kernel that calls launch most often; how often. */
static uint64_t find_anchor(const struct tally *t, uint64_t *ret_kernel)
{
	struct map map = { 0 };
	ARRAY(struct anchor) rows = { 0 };
	uint64_t most = 0;
	array_each(const struct shape_row, s, t->shapes) {
		struct anchor *a =
			MAP_ROW(&map, MAP_KEY(s->kernel), &rows, (struct anchor){ s->kernel, 0 });
		a->count += s->count - s->graph_count;
	}
	array_each(const struct anchor, a, rows) {
		if (a->count > most || (a->count == most && most && a->kernel < *ret_kernel)) {
			most = a->count;
			*ret_kernel = a->kernel;
		}
	}
	map_fini(&map);
	array_free(&rows);
	return most;
}

static void make_marks(struct marks *m, size_t n)
{
	m->ticks = xcalloc(n + 1, sizeof *m->ticks);
	m->least = xcalloc(n + 1, sizeof *m->least);
}

struct run {
	const uint64_t *ticks;
	size_t count;
	uint32_t chunk;
	uint32_t thread;
};

struct runs {
	ARRAY(struct run) v;
	ARRAY(uint64_t) counts; /* by thread */
};

static void take_runs(struct runs *runs, const struct kernel_times *k)
{
	array_each(const struct launch_run, from, k->runs)
		*array_push(&runs->v) =
			(struct run){ k->ticks.v + from->first, from->count, from->chunk, 0 };
}

ORDERING(chunk_order, struct run, ORDER(a->chunk, b->chunk))

/* Workers take chunks in any order. */
static void count_by_thread(struct runs *runs, const struct trace *t)
{
	struct map threads = { 0 };
	SORT(runs->v, chunk_order);
	array_each(struct run, run, runs->v) {
		const struct chunk_ref *c = &t->chunks[run->chunk];
		uint64_t *count =
			MAP_ROW(&threads, MAP_KEY(c->process, c->head.tid), &runs->counts, 0);
		*count += run->count;
		run->thread = (uint32_t)(count - runs->counts.v);
	}
	map_fini(&threads);
}

static void keep_thread(const struct runs *runs, struct marks *m, struct memory_growth *g)
{
	uint32_t best = 0;
	uint64_t seen = 0;
	for (uint32_t i = 1; i < runs->counts.n; i++)
		if (runs->counts.v[i] > runs->counts.v[best])
			best = i;
	g->threads = runs->counts.n;
	g->marks = runs->counts.n ? runs->counts.v[best] : 0;
	make_marks(m, g->marks / g->stride + 1);
	for (size_t i = 0; i < runs->v.n; i++)
		for (size_t k = 0; runs->v.v[i].thread == best && k < runs->v.v[i].count; k++)
			if (seen++ % g->stride == 0)
				m->ticks[m->n++] = runs->v.v[i].ticks[k];
	qsort(m->ticks, m->n, sizeof *m->ticks, order_u64);
}

static const char *name_of(const struct report *r, uint64_t kernel)
{
	if (kernel & KERNEL_UNNAMED)
		return NULL;
	const char *mangled = r->meta.names.v[kernel].text;
	for (size_t i = 0; i < r->kernel_rows.n; i++)
		if (r->kernel_rows.v[i].mangled && !strcmp(r->kernel_rows.v[i].mangled, mangled))
			return r->kernel_rows.v[i].name;
	return mangled;
}

static void marks_of_kernel(struct report *r, const struct memory_list *lists, unsigned count,
	uint64_t kernel, uint64_t launches)
{
	struct memory_growth *g = &r->memory_detail->growth;
	struct runs runs = { 0 };
	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; k < lists[i].times_count; k++)
			if (lists[i].times[k].kernel == kernel)
				take_runs(&runs, &lists[i].times[k]);
	count_by_thread(&runs, r->trace);
	g->mark = MARK_KERNEL;
	g->kernel = name_of(r, kernel);
	g->stride = 1 + launches / MARKS_MOST;
	keep_thread(&runs, &r->memory_detail->marks, g);
	array_free(&runs.v, &runs.counts);
}

struct size_count {
	uint64_t bytes, count;
};

static void count_sizes(const struct memory_list *l, struct map *map, struct size_count *most)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct memory_op *op = &l->ops[i];
		if (op->free || op->kind == MEMORY_HOST)
			continue;
		uint32_t *n = map_get(map, MAP_KEY(op->bytes));
		*n = *n == MAP_NONE ? 1 : *n + (*n < MAP_NONE - 1);
		if (*n > most->count || (*n == most->count && op->bytes < most->bytes))
			*most = (struct size_count){ op->bytes, *n };
	}
}

static void marks_of_size(
	struct memory_detail *d, const struct memory_list *lists, unsigned count, uint64_t bytes)
{
	struct marks *m = &d->marks;
	const uint64_t all = d->growth.marks;
	size_t room = 0;
	for (unsigned i = 0; i < count; i++)
		room += lists[i].count;
	make_marks(m, MIN(all, room));
	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; k < lists[i].count; k++) {
			const struct memory_op *op = &lists[i].ops[k];
			if (!op->free && op->kind != MEMORY_HOST && op->bytes == bytes)
				m->ticks[m->n++] = op->ticks;
		}
	qsort(m->ticks, m->n, sizeof *m->ticks, order_u64);
	size_t kept = 0;
	for (size_t i = 0; i < m->n; i += d->growth.stride)
		m->ticks[kept++] = m->ticks[i];
	m->n = kept;
}

static void marks_of_sizes(struct memory_detail *d, const struct memory_list *lists, unsigned count)
{
	struct map map = { 0 };
	struct size_count most = { 0 };
	for (unsigned i = 0; i < count; i++)
		count_sizes(&lists[i], &map, &most);
	map_fini(&map);
	if (most.count < MARKS_LEAST)
		return;
	d->growth.mark = MARK_SIZE;
	d->growth.size = most.bytes;
	d->growth.marks = most.count;
	d->growth.stride = 1 + most.count / MARKS_MOST;
	marks_of_size(d, lists, count, most.bytes);
}

void growth_find_marks(
	struct report *r, const struct memory_list *lists, unsigned count, const struct tally *t)
{
	uint64_t kernel = 0, allocs = 0;
	for (unsigned i = 0; i < count; i++)
		allocs += lists[i].count;
	if (allocs < 2)
		return;
	const uint64_t launches = find_anchor(t, &kernel);
	if (launches >= MARKS_LEAST)
		marks_of_kernel(r, lists, count, kernel, launches);
	else
		marks_of_sizes(r->memory_detail, lists, count);
}

/* The share of differences over `lag` marks that equal the most common one. Boyer and Moore's vote
 * finds that one if it is more than half. */
static double repeats(const uint64_t *v, size_t n, size_t lag)
{
	uint64_t candidate = 0;
	size_t votes = 0, count = 0;
	for (size_t i = 0; i + lag < n; i++) {
		const uint64_t d = v[i + lag] - v[i];
		if (!votes)
			candidate = d;
		if (d == candidate)
			votes++;
		else
			votes--;
	}
	for (size_t i = 0; i + lag < n; i++)
		count += v[i + lag] - v[i] == candidate;
	expect(count <= n - lag, "no more agree than there are");
	return (double)count / (double)(n - lag);
}

/* The shortest lag that repeats nearly as well as the best. */
static size_t find_period(const uint64_t *v, size_t n)
{
	double score[PERIOD_MOST + 1] = { 0 }, best = 0;
	const size_t last = MIN(n / GROWTH_PERIODS, PERIOD_MOST);
	for (size_t lag = 1; lag <= last; lag++) {
		score[lag] = repeats(v, n, lag);
		best = MAX(score[lag], best);
		if (score[lag] == 1)
			return lag;
	}
	for (size_t lag = 1; lag <= last && best > 0.6; lag++)
		if (score[lag] >= best - 0.02)
			return lag;
	return 0;
}

static void slope(struct memory_growth *g, const uint64_t *least, size_t n, size_t each)
{
	const size_t pairs = n * (n - 1) / 2;
	double *slopes = xcalloc(pairs, sizeof *slopes);
	int64_t rising = 0;
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++) {
			const double d = (double)least[j] - (double)least[i];
			rising += d > 0 ? 1 : d < 0 ? -1 : 0;
			slopes[k++] = d / (double)((j - i) * each);
		}
	qsort(slopes, pairs, sizeof *slopes, order_real);
	g->bytes_a_period =
		pairs % 2 ? slopes[pairs / 2] : (slopes[pairs / 2 - 1] + slopes[pairs / 2]) / 2;
	expect(k == pairs, "there is a slope for each pair");
	g->confidence = (double)(rising < 0 ? -rising : rising) / (double)pairs;
	expect(g->confidence <= 1, "a share is 1 at most");
	free(slopes);
}

static uint64_t least_of(const uint64_t *v, size_t n)
{
	uint64_t least = v[0];
	for (size_t i = 1; i < n; i++)
		least = MIN(v[i], least);
	return least;
}

void growth_finish(struct memory_detail *d)
{
	struct memory_growth *g = &d->growth;
	uint64_t least[SLOPES_OF];
	const size_t first = d->marks.n / 4, n = d->marks.n - first;
	if (d->marks.n < MARKS_LEAST)
		return;
	const uint64_t *v = d->marks.least + first;
	const size_t period =
		find_period(v, n - 1); /* what follows the last mark is no iteration */
	const size_t length = period ? period : 1;
	g->period = period * g->stride;
	g->periods = (n - 1) / length;
	const size_t each = (g->periods + SLOPES_OF - 1) / SLOPES_OF;
	const size_t rows = each ? g->periods / each : 0;
	for (size_t i = 0; i < rows; i++)
		least[i] = least_of(v + i * each * length, each * length);
	if (rows >= GROWTH_PERIODS)
		slope(g, least, rows, each);
	else
		g->periods = 0;
}
