/*
 * A run counts for its size only when LATENCY_RECENT / 2 further runs are known: then the median
 * of the runs around it says how slow the device was, and a clock that changes between two runs
 * falsifies neither. In the first runs there is nothing to wait for.
 */
#include "batch/batch_latency.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "base/xmalloc.h"

#define MARGIN_FIRST 0.1
#define MARGIN_MOST  4.0
#define LATE_SHARE   0.01
#define CALM_RUNS    32
#define CALM_WORST   0.01 /* noise that is taken for granted, so that no margin is 0 at once */
#define OLD_RUNS     64   /* of the model, none of a size */
#define DOUBTED      1.5f
#define TEXT_FIRST   "weir-latency 1"

void latency_init(struct batch_latency *l)
{
	l->size = xcalloc(BATCH_MOST + 1, sizeof *l->size);
	l->ns = xcalloc(BATCH_MOST + 1, sizeof *l->ns);
	l->bucket = xcalloc(BATCH_MOST + 1, sizeof *l->bucket);
	l->slowdown = 1;
	l->margin = MARGIN_FIRST;
	l->deviation = 0.02;
}

void latency_fini(struct batch_latency *l)
{
	free_all(l->size, l->ns, l->bucket);
}

/* The sizes that ran around one: the last two below it, and the next above; 0: there is none. */
struct around {
	uint32_t low[2], high;
};

/*
 * A size between two that ran is on the line between them; one beyond, on the line of the last two.
 */
static double guess(const struct batch_latency *l, const struct around *a, uint32_t size)
{
	if (!a->low[1])
		return a->high ? (double)l->size[a->high].median : 0;
	const double at = (double)l->size[a->low[1]].median;
	if (!a->high && !a->low[0])
		return at * size / a->low[1];
	const uint32_t other = a->high ? a->high : a->low[0];
	const double slope =
		((double)l->size[other].median - at) / ((double)other - (double)a->low[1]);
	return at + fmax(slope, 0) * (size - a->low[1]);
}

static uint32_t next_known(const struct batch_latency *l, uint32_t size)
{
	while (++size <= l->max_rows)
		if (l->size[size].median > 0)
			return size;
	return 0;
}

/* All rows up to a size that the engine runs take what the size takes. */
static void plan(struct batch_latency *l)
{
	struct around a = { .high = next_known(l, 0) };
	float most = 0;
	for (uint32_t rows = 1; rows <= l->max_rows; rows++) {
		const uint32_t size = l->bucket[rows];
		while (a.high && a.high <= size) {
			a.low[0] = a.low[1];
			a.low[1] = a.high;
			a.high = next_known(l, a.high);
		}
		const float ns =
			a.low[1] == size ? l->size[size].median : (float)guess(l, &a, size);
		most = ns > most ? ns : most;
		l->ns[rows] = most;
	}
}

static void predict(struct batch_latency *l)
{
	l->upper = l->slowdown * (1 + l->margin);
	l->longest_ns = latency_predict(l, l->max_rows);
	l->version++;
}

void latency_configure(struct batch_latency *l, const struct batch_model_config *c)
{
	uint32_t k = 0;
	l->max_rows = c->max_rows;
	for (uint32_t rows = 1; rows <= BATCH_MOST; rows++) {
		while (k < c->nbuckets && c->buckets[k] < rows)
			k++;
		const uint32_t size = k < c->nbuckets ? c->buckets[k] : rows;
		l->bucket[rows] = (uint16_t)(size < c->max_rows ? size : c->max_rows);
	}
	plan(l);
	predict(l);
}

uint32_t latency_fit(const struct batch_latency *l, uint64_t ns, uint32_t most)
{
	const double room = ((double)ns - (double)l->before_ns) / l->upper;
	if (l->ns[most] <= room)
		return most;
	return (uint32_t)SEARCH(rows, 1, most, l->ns[rows] <= room) - 1;
}

static float median(const float *v, uint32_t n)
{
	float sorted[LATENCY_RECENT];
	memcpy(sorted, v, n * sizeof *v);
	sort_floats(sorted, n);
	return sorted[(n - 1) / 2];
}

static void take_size(struct batch_latency *l, uint32_t rows, double ns)
{
	struct latency_size *s = &l->size[rows];
	s->ns[s->runs++ % LATENCY_RUNS] = (float)ns;
	s->median = median(s->ns, s->runs < LATENCY_RUNS ? s->runs : LATENCY_RUNS);
	plan(l);
}

static const struct latency_run *ago(const struct batch_latency *l, uint32_t runs)
{
	return &l->recent[(l->runs - 1 - runs) % LATENCY_RECENT];
}

static void find_slowdown(struct batch_latency *l)
{
	float ratio[LATENCY_RECENT];
	uint32_t n = 0;
	for (uint32_t i = 0; i < LATENCY_RECENT && i < l->runs; i++)
		if (l->recent[i].ratio > 0)
			ratio[n++] = l->recent[i].ratio;
	if (n >= 3)
		l->slowdown = (double)median(ratio, n);
}

static void learn(struct batch_latency *l, uint32_t rows, uint64_t ns)
{
	const uint32_t size = latency_size_of(l, rows), late = LATENCY_RECENT / 2;
	const double known = (double)l->size[size].median;
	float *least = &l->size[size].least;
	*least = *least > 0 && *least < (float)ns ? *least : (float)ns;
	struct latency_run *run = &l->recent[l->runs++ % LATENCY_RECENT];
	l->size[size].ran = l->runs;
	*run = (struct latency_run){ size, (float)ns, 0, (float)l->margin, (float)l->deviation };
	if (known > 0)
		run->ratio = (float)((double)ns / known);
	find_slowdown(l);
	if (l->size[size].runs < 3) { /* the first may have been slow: its ratio says nothing */
		run->ratio = 0;
		take_size(l, size, (double)ns / l->slowdown);
	} else if (l->runs > late && ago(l, late)->ratio > 0) {
		take_size(l, ago(l, late)->rows, (double)ago(l, late)->ns / l->slowdown);
	}
}

/*
 * A size may be remembered by noise that has ended, and a batch that is taken for slow does not run
 * again.  If it has not run for long, the size that ran now says how the device is, and the
 * shortest runs of both how they relate.
 */
static void doubt_old_sizes(struct batch_latency *l, uint32_t rows)
{
	const struct latency_size *now = &l->size[latency_size_of(l, rows)];
	bool changed = false;
	if (l->runs % OLD_RUNS || now->runs < LATENCY_RUNS)
		return;
	for (uint32_t size = 1; size <= l->max_rows; size++) {
		struct latency_size *s = &l->size[size];
		const float ns = s->least / now->least * now->median;
		if (!(s->least > 0) || l->runs - s->ran < OLD_RUNS || s->median < DOUBTED * ns)
			continue;
		*s = (struct latency_size){
			.median = ns, .ns = { ns }, .runs = 1, .least = s->least, .ran = l->runs
		};
		changed = true;
	}
	if (changed)
		plan(l);
}

void latency_learn(struct batch_latency *l, uint32_t rows, uint64_t ns)
{
	learn(l, rows, ns);
	predict(l);
}

/*
 * The margin rises by 99 parts when a batch took longer, and sinks by one part otherwise, so it
 * stays where one in 100 does. A part is a typical deviation.
 */
static void judge(struct batch_latency *l, uint64_t ns, uint64_t promised_ns)
{
	const double typical = (double)promised_ns / (1 + l->margin);
	const double off = fmin(fabs((double)ns / typical - 1), 10 * l->deviation);
	l->deviation = fmax(l->deviation + (off - l->deviation) / 32, 0.002);
	const double part = fmin(l->deviation, 0.1);
	l->margin += part * ((ns > promised_ns) - LATE_SHARE);
	l->margin = fmax(0, fmin(l->margin, MARGIN_MOST));
}

/*
 * Noise that has ended left a margin that sinks too slowly by such parts.  If the margin is right,
 * hardly ever do CALM_RUNS runs in a row stay below a third of it.
 */
static void notice_calm(struct batch_latency *l, uint64_t ns, uint64_t promised_ns)
{
	const double typical = (double)promised_ns / (1 + l->margin);
	l->worst = fmax(l->worst, (double)ns / typical - 1);
	const bool calm = l->worst <= l->margin / 3;
	if (calm && ++l->calm < CALM_RUNS)
		return;
	if (calm)
		l->margin = fmin(l->margin, 3 * fmax(l->worst, CALM_WORST));
	l->worst = 0;
	l->calm = 0;
}

/*
 * When the slowdown jumps, which needs half of the recent runs, these were late for another reason:
 * the margin is again what it was before them, and what ran before them says nothing any more.
 */
static void notice_jump(struct batch_latency *l, double slowdown)
{
	enum { SINCE = LATENCY_RECENT / 2 + 1 };
	const struct latency_run *before = ago(l, SINCE);
	if (l->runs <= LATENCY_RECENT ||
		fabs(l->slowdown / slowdown - 1) < fmax(4 * (double)before->deviation, 0.05))
		return;
	l->margin = fmin(l->margin, (double)before->margin);
	l->deviation = (double)before->deviation;
	for (uint32_t i = SINCE; i < LATENCY_RECENT; i++)
		l->recent[(l->runs - 1 - i) % LATENCY_RECENT].ratio = 0;
	find_slowdown(l);
}

void latency_judge(struct batch_latency *l, uint32_t rows, uint64_t ns, uint64_t promised_ns)
{
	const double before = l->slowdown;
	learn(l, rows, ns);
	if (promised_ns) {
		notice_calm(l, ns, promised_ns);
		judge(l, ns, promised_ns);
	}
	notice_jump(l, before);
	doubt_old_sizes(l, rows);
	predict(l);
}

void latency_before(struct batch_latency *l, uint64_t ns)
{
	l->before_ns = ns;
	predict(l);
}

void latency_put(const struct batch_latency *l, FILE *out)
{
	fprintf(out, TEXT_FIRST "\nmargin %.6f deviation %.6f\n", l->margin, l->deviation);
	for (uint32_t size = 1; size <= BATCH_MOST; size++)
		if (l->size[size].median > 0)
			fprintf(out, "rows %u ns %.0f runs %u\n", size,
				(double)l->size[size].median * l->slowdown, l->size[size].runs);
}

static bool read_size(struct latency_size *sizes, const char *line)
{
	unsigned rows, runs;
	double ns;
	char rest;
	if (sscanf(line, "rows %u ns %lf runs %u %c", &rows, &ns, &runs, &rest) != 3 || !rows ||
		rows > BATCH_MOST || !runs || !(ns >= 1) || !(ns < 1e15))
		return false;
	struct latency_size *s = &sizes[rows];
	s->median = (float)ns;
	s->runs = runs < LATENCY_RUNS ? runs : LATENCY_RUNS;
	for (uint32_t i = 0; i < s->runs; i++)
		s->ns[i] = (float)ns;
	return true;
}

int latency_read(struct batch_latency *l, FILE *in, struct error *err)
{
	char line[128], rest;
	double margin, deviation;
	int number = 2;
	if (!fgets(line, sizeof line, in) || strcmp(line, TEXT_FIRST "\n"))
		return error_set(err, -EINVAL, "line 1 is not '" TEXT_FIRST "'");
	if (!fgets(line, sizeof line, in) ||
		sscanf(line, "margin %lf deviation %lf %c", &margin, &deviation, &rest) != 2 ||
		!(margin >= 0 && margin <= MARGIN_MOST) || !(deviation >= 0 && deviation < 100))
		return error_set(err, -EINVAL, "line 2 has no margin and deviation");
	struct latency_size *sizes = xcalloc(BATCH_MOST + 1, sizeof *sizes);
	while (fgets(line, sizeof line, in)) {
		number++;
		if (!read_size(sizes, line)) {
			free(sizes);
			return error_set(
				err, -EINVAL, "line %d is not 'rows N ns TIME runs COUNT'", number);
		}
	}
	free(l->size);
	l->size = sizes;
	l->margin = margin;
	l->deviation = deviation;
	l->slowdown = 1;
	l->runs = 0;
	plan(l);
	predict(l);
	return 0;
}
