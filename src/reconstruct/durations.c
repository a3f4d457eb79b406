/* Learns and answers durations. */
#include "reconstruct/durations.h"

#include <math.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#define OUTLIER       4u    /* times the median: a launch that waited for something else */
#define CLUSTERS      3u    /* launches that CUPTI timed are of so many moments of a run */
#define CHANCE_SDS    2.0   /* two means that differ by less may be those of one run */
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

static void add_value(struct durations *d, struct map_key key, const struct duration_value *v)
{
	const uint32_t group = map_number(&d->groups, key);
	struct duration_value *to = array_push(&d->values);
	*to = *v;
	to->group = group;
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

void durations_add(struct durations *d, const struct duration_key *key, uint64_t ns,
	uint64_t event_ns, enum duration_quality quality)
{
	const struct duration_value v = { 0, (uint8_t)quality, ns, event_ns };
	for (int i = 0; i < DURATION_LEVELS; i++)
		add_value(d, key->level[i], &v);
	if (key->bytes && quality > DURATION_MOST)
		add_to_line(&d->lines[key->line % DURATION_LINES], key->bytes, ns);
	if (!key->bytes)
		*array_push(&d->work) = ns;
}

ORDERING(value_order, struct duration_value, ORDER(a->group, b->group),
	ORDER(b->quality, a->quality), ORDER(a->ns, b->ns))

/* The mean of values in order, without those that are far above the others. */
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
	return (struct duration){ .ns = (uint64_t)(mean + 0.5),
		.sd_ns = (uint64_t)(fmax(sd, least) + 1),
		.is_known = true };
}

static size_t count_from(const struct duration_value *v, size_t n, enum duration_quality least)
{
	return SEARCH(i, 0, n, v[i].quality >= least);
}

static double mean_of_events(const struct duration_value *v, size_t n)
{
	double sum = 0, pairs = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (double)v[i].event_ns;
		pairs += v[i].event_ns != 0;
	}
	return pairs > 0 ? sum / pairs : 0;
}

/* Between the event in front of it and its begin, a kernel may wait for the blocks of another
 * stream's.  The launches that were timed both ways show how long, in the mean; how far that mean
 * may be off is a matter of the few moments in which it was.  Returns the latter. */
static double learn_events(struct duration *d, const struct duration_value *v, size_t n)
{
	const double most = OUTLIER * mean_of_events(v, n);
	double sum = 0, squares = 0, pairs = 0;
	for (size_t i = 0; i < n; i++) {
		const double more = (double)v[i].event_ns - (double)v[i].ns;
		if (!v[i].event_ns || (double)v[i].event_ns > most)
			continue;
		pairs++;
		sum += more;
		squares += more * more;
	}
	if (pairs < FEW)
		return EVENT_SD_NS;
	d->event_more_ns = sum / pairs;
	d->event_sd_ns = sqrt(fmax(squares / pairs - d->event_more_ns * d->event_more_ns, 0)) + 1;
	return fmax(EVENT_SD_NS, d->event_sd_ns / sqrt(fmin(pairs, CLUSTERS)));
}

static double square(double x)
{
	return x * x;
}

/* Variance of the mean of n values, each of which is off by `sd` for itself, and all of them by
 * `all`. */
static double variance_of_mean(double sd, size_t n, double all)
{
	return square(sd) / (double)n + square(all);
}

/*
 * How much events count against what CUPTI measured, whose windows are few moments of the run:
 * nothing, as long as they differ by no more than chance would have it; more, the less chance
 * explains of it, for then the run has changed since.  Few events alone don't show how they vary.
 */
static double share_of_events(const struct duration *exact, size_t n, const struct duration *events,
	size_t n_events, double always)
{
	const double sd = fmax((double)exact->sd_ns, (double)events->sd_ns);
	const double ours = variance_of_mean((double)exact->sd_ns, n, 0);
	const double theirs = variance_of_mean(sd, n_events, always);
	const double apart = square((double)events->ns - exact->event_more_ns - (double)exact->ns);
	const double changed = fmax(apart - square(CHANCE_SDS) * (ours + theirs), 0);
	return (ours + changed) / (ours + changed + theirs);
}

/* The best come first.  If all values are bounds, the lower ones are nearer. */
static struct duration summary_of_group(struct duration_value *v, size_t n)
{
	const size_t exact = count_from(v, n, DURATION_EXACT);
	const size_t good = count_from(v, n, DURATION_EVENT);
	if (!good) {
		struct duration least = summary(v, (n + 3) / 4);
		least.is_bound = true;
		return least;
	}
	if (!exact)
		return summary(v, good);
	struct duration d = summary(v, exact);
	const double always = learn_events(&d, v, exact);
	if (exact == good)
		return d;
	const struct duration events = summary(v + exact, good - exact);
	const double share = share_of_events(&d, exact, &events, good - exact, always);
	const double ns = (double)events.ns - d.event_more_ns;
	d.ns = (uint64_t)fmax((1 - share) * (double)d.ns + share * ns + 0.5, 1);
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

void durations_settle(struct durations *d)
{
	const size_t groups = d->groups.taken;
	d->of_group.n = 0;
	array_reserve(&d->of_group, groups + 1);
	while (d->of_group.n < groups)
		d->of_group.v[d->of_group.n++] = (struct duration){ 0 };
	SORT(d->values, value_order);
	SORT(d->work, order_u64);
	settle_groups(d);
	const uint64_t ns = d->work.n ? d->work.v[d->work.n / 2] : USUAL_NS;
	d->usual = (struct duration){ .ns = ns, .sd_ns = (uint64_t)(GUESS_SHARE * (double)ns) };
}

static uint64_t at_least(uint64_t sd, uint64_t ns, double share)
{
	const uint64_t least = (uint64_t)((double)ns * share);
	return MAX(sd, least);
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
	return (struct duration){ .ns = (uint64_t)ns,
		.sd_ns = (uint64_t)(ns * (is_known ? LINE_SHARE : GUESS_SHARE)),
		.is_known = is_known };
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
	array_free(&d->values, &d->of_group, &d->work);
}
