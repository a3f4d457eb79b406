/* See durations.h. */
#include "reconstruct/durations.h"

#include <errno.h>
#include <math.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#include "base/banned.h"

#define OUTLIER       4u    /* times the median: a launch that waited for something else */
#define CLUSTERS      3u    /* launches that CUPTI timed are of so many moments of a run */
#define EVENT_SD_NS   100.0 /* so far is what events measure besides from what is taken off */
#define FEW           3u    /* fewer say nothing of how they vary */
#define LEAST_SHARE   0.01  /* of a duration: it is never known better */
#define FEW_SHARE     0.10  /* where they are few */
#define WIDER_SHARE   0.30  /* where only something alike was measured */
#define LINE_SHARE    0.25
#define GUESS_SHARE   0.80
#define COPY_START_NS 1500  /* what a copy takes beside its bytes, where none was measured … */
#define COPY_GB_S     25.0  /* … and how fast it is: a bus */
#define USUAL_NS      10000 /* a kernel of a program of which none was measured */

static int add_value(
	struct durations *d, struct map_key key, uint64_t ns, enum duration_quality quality)
{
	const uint32_t group = map_number(&d->groups, key);
	struct duration_value *to = group == MAP_NONE ? NULL : array_push(&d->values);
	if (!to)
		return -ENOMEM;
	*to = (struct duration_value){ group, (uint8_t)quality, ns };
	return 0;
}

/* Small copies count as much as large ones: by their relative error. */
static void add_to_line(struct duration_line *l, uint64_t bytes, uint64_t ns)
{
	const double x = (double)bytes, y = ns ? (double)ns : 1, w = 1 / (y * y);
	l->n += w;
	l->x += w * x;
	l->y += w * y;
	l->xx += w * x * x;
	l->xy += w * x * y;
}

int durations_add(struct durations *d, const struct duration_key *key, uint64_t ns,
	enum duration_quality quality)
{
	int e = 0;
	for (int i = 0; i < DURATION_LEVELS && !e; i++)
		e = add_value(d, key->level[i], ns, quality);
	if (!e && key->bytes && quality > DURATION_MOST)
		add_to_line(&d->lines[key->line % DURATION_LINES], key->bytes, ns);
	uint64_t *to = e || key->bytes ? NULL : array_push(&d->work);
	if (!to)
		return e || key->bytes ? e : -ENOMEM;
	*to = ns;
	return 0;
}

/* ---- groups ---- */

static int value_order(const void *one, const void *two)
{
	const struct duration_value *a = one, *b = two;
	if (a->group != b->group)
		return ORDER(a->group, b->group);
	return a->quality != b->quality ? ORDER(b->quality, a->quality) : ORDER(a->ns, b->ns);
}

static int ns_order(const void *one, const void *two)
{
	return ORDER(*(const uint64_t *)one, *(const uint64_t *)two);
}

/* Of values in order: their mean, without those that are far above the others. */
static struct duration summary(const struct duration_value *v, size_t n)
{
	const uint64_t most = v[n / 2].ns * OUTLIER;
	double sum = 0, squares = 0;
	while (n > 1 && v[n - 1].ns > most)
		n--;
	for (size_t i = 0; i < n; i++)
		sum += (double)v[i].ns;
	const double mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)v[i].ns - mean) * ((double)v[i].ns - mean);
	const double least = mean * (n < FEW ? FEW_SHARE : LEAST_SHARE);
	const double sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	return (struct duration){ (uint64_t)(mean + 0.5), (uint64_t)(fmax(sd, least) + 1), true,
		false };
}

static size_t count_from(const struct duration_value *v, size_t n, enum duration_quality least)
{
	return SEARCH(i, 0, n, v[i].quality >= least);
}

/* How far the mean is from that of all launches of the group.  Windows of CUPTI are few moments of
 * the run, so that what it measured there is no more than a few samples; events are spread over the
 * run, and each is off by as much. */
static double variance_of_mean(const struct duration *d, size_t n, size_t most, double always)
{
	const double sd = (double)d->sd_ns;
	return sd * sd / (double)(n < most ? n : most) + always * always;
}

/* The best come first.  Of values that are none but bounds, the lower are nearer. */
static struct duration summary_of_group(struct duration_value *v, size_t n)
{
	const size_t exact = count_from(v, n, DURATION_EXACT);
	const size_t good = count_from(v, n, DURATION_EVENT);
	if (!good) {
		struct duration least = summary(v, (n + 3) / 4);
		least.is_bound = true;
		return least;
	}
	if (exact == good || !exact)
		return summary(v, good);
	struct duration d = summary(v, exact);
	const struct duration events = summary(v + exact, good - exact);
	const double ours = variance_of_mean(&d, exact, CLUSTERS, 0),
		     theirs = variance_of_mean(&events, good - exact, SIZE_MAX, EVENT_SD_NS);
	const double share = ours / (ours + theirs);
	d.ns = (uint64_t)((1 - share) * (double)d.ns + share * (double)events.ns + 0.5);
	return d;
}

static void settle_groups(struct durations *d)
{
	for (size_t from = 0, to; from < d->values.n; from = to) {
		const uint32_t group = d->values.v[from].group;
		to = from + 1;
		while (to < d->values.n && d->values.v[to].group == group)
			to++;
		if (expect(group < d->of_group.n, "a value is of a known key"))
			d->of_group.v[group] = summary_of_group(&d->values.v[from], to - from);
	}
}

int durations_settle(struct durations *d)
{
	const size_t groups = d->groups.taken;
	d->of_group.n = 0;
	if (!array_reserve(&d->of_group, groups + 1))
		return -ENOMEM;
	while (d->of_group.n < groups)
		d->of_group.v[d->of_group.n++] = (struct duration){ 0 };
	SORT(d->values, value_order);
	SORT(d->work, ns_order);
	settle_groups(d);
	const uint64_t ns = d->work.n ? d->work.v[d->work.n / 2] : USUAL_NS;
	d->usual = (struct duration){ ns, (uint64_t)(GUESS_SHARE * (double)ns), false, false };
	return 0;
}

/* ---- answers ---- */

static uint64_t at_least(uint64_t sd, uint64_t ns, double share)
{
	const uint64_t least = (uint64_t)((double)ns * share);
	return sd > least ? sd : least;
}

/* By the line through what was measured; one size alone says how fast, and no start-up. */
static struct duration of_bytes(const struct duration_line *l, uint64_t bytes)
{
	const double x = (double)bytes, mean_x = l->n > 0 ? l->x / l->n : 0,
		     mean_y = l->n > 0 ? l->y / l->n : 0;
	const double spread = l->n > 0 ? l->xx / l->n - mean_x * mean_x : 0;
	double ns = COPY_START_NS + x / COPY_GB_S;
	const bool is_known = l->n > 0;
	if (is_known && spread > 1e-6 * mean_x * mean_x) {
		const double slope = fmax((l->xy / l->n - mean_x * mean_y) / spread, 0);
		ns = fmax(mean_y + slope * (x - mean_x), 0.1 * mean_y);
	} else if (is_known && mean_x > 0) {
		const double start = fmin(COPY_START_NS, mean_y);
		ns = start + (mean_y - start) * x / mean_x;
	}
	ns = fmax(ns, 1);
	return (struct duration){ (uint64_t)ns,
		(uint64_t)(ns * (is_known ? LINE_SHARE : GUESS_SHARE)), is_known, false };
}

static const struct duration *find(const struct durations *d, struct map_key key)
{
	const uint32_t group = map_find(&d->groups, key);
	const struct duration *found =
		group < d->of_group.n ? &d->of_group.v[group] : NULL; /* MAP_NONE is beyond */
	return found && found->is_known ? found : NULL;
}

/* The closest that is no bound, else the closest. */
static struct duration of_levels(const struct durations *d, const struct duration_key *key)
{
	const struct duration *bound = NULL;
	for (int i = 0; i < DURATION_LEVELS; i++) {
		const struct duration *found = find(d, key->level[i]);
		if (found && found->is_bound && !bound)
			bound = found;
		if (!found || found->is_bound)
			continue;
		struct duration answer = *found;
		if (i == DURATION_LEVELS - 1)
			answer.sd_ns = at_least(answer.sd_ns, answer.ns, WIDER_SHARE);
		if (bound && bound->ns < answer.ns)
			answer.ns = bound->ns;
		return answer;
	}
	return bound ? *bound : d->usual;
}

struct duration durations_get(const struct durations *d, const struct duration_key *key)
{
	if (!key->bytes)
		return of_levels(d, key);
	const struct duration *same = find(d, key->level[0]);
	if (same && !same->is_bound)
		return *same;
	struct duration line = of_bytes(&d->lines[key->line % DURATION_LINES], key->bytes);
	if (same && (!line.is_known || same->ns < line.ns))
		return *same;
	return line;
}

void durations_fini(struct durations *d)
{
	map_fini(&d->groups);
	array_free(&d->values);
	array_free(&d->of_group);
	array_free(&d->work);
}
