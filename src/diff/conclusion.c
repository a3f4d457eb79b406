/*
 * The result of a comparison: whether one request, step or launch takes longer. Requests and steps
 * that the program marks come first. Other steps count only if they contradict the launches.
 *
 * Launches of several kernels are compared as a mix. Each kernel's weight is the geometric mean of
 * its launches in A and B (Walsh's index of 1901). So the lengths of the recordings do not matter,
 * and A and B may change places.
 *
 * A verdict on a part must not contradict the whole.  A launch that takes longer because more of
 * them run beside each other is no slower program.  If the same work as a whole went another way,
 * that is said first.
 */
#include "diff/diff.h"

#include "base/expect.h"

const char *diff_one_word(enum diff_one one)
{
	static const char *const words[] = { NULL, "call", "launch", "step", "request", "run" };
	return expect(one <= ONE_RUN, "what is compared is one of these") ? words[one] : NULL;
}

#define CONFIRMED  0.25 /* of its change on the device: as much is left without the overlap */
#define SPAN_LEAST 5.0  /* %: a single span that changed less may have done so by chance */
#define MORE_MOST  0.01 /* of the launches: so many more, or … */
#define FEWER_MOST 0.05 /* … fewer where they take more time in all, are about as many */

static bool is_judged(const struct diff_row *row)
{
	return row->change.verdict != VERDICT_NONE && row->change.verdict < VERDICT_NEW &&
	       row->value[DIFF_A].median_ns > 0 && row->value[DIFF_B].median_ns > 0;
}

static bool moves(const struct diff_conclusion *c)
{
	return c->change.verdict == VERDICT_FASTER || c->change.verdict == VERDICT_SLOWER;
}

static double weight_of(const struct diff_row *row)
{
	return sqrt(row->value[DIFF_A].count * row->value[DIFF_B].count);
}

struct mix {
	const struct diff *d;
	struct diff_conclusion c;
	double weight, cost[DIFF_SIDES], below, above; /* below and above: squares */
	double *runs[DIFF_SIDES];                      /* cost of each run */
};

/* The median of one in each run of a side, 0 where a run has none. */
static double run_median(const struct diff_row *row, int side, size_t run)
{
	if (run >= row->runs[side].n)
		return 0;
	const struct diff_run *r = &row->runs[side].v[run];
	return (double)(row->by_device ? r->device_p50_ns : r->host_p50_ns);
}

static bool is_in_all_runs(const struct diff *d, const struct diff_row *row)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		for (size_t i = 0; i < d->inputs[s].n; i++)
			if (!(run_median(row, s, i) > 0))
				return false;
	return true;
}

static void mix_add(struct mix *m, const struct diff_row *row)
{
	const double w = weight_of(row), one = row->value[DIFF_A].median_ns / 100;
	m->weight += w;
	m->below += pow(w * one * row->change.below_pct, 2);
	m->above += pow(w * one * row->change.above_pct, 2);
	m->c.row = m->c.rows++ ? NULL : row;
	m->c.by_device = row->by_device;
	for (int s = 0; s < DIFF_SIDES; s++) {
		const struct hist *h = row->by_device ? &row->device[s] : &row->host[s];
		m->cost[s] += w * row->value[s].median_ns;
		m->c.n[s] += (double)h->count;
		for (size_t i = 0; i < m->d->inputs[s].n && m->runs[s]; i++)
			m->runs[s][i] += w * run_median(row, s, i);
	}
}

static void mix_judge(struct mix *m, bool several)
{
	const size_t na = m->d->inputs[DIFF_A].n, nb = m->d->inputs[DIFF_B].n;
	struct diff_conclusion *c = &m->c;
	struct stat_medians s = { .a = m->cost[DIFF_A] / m->weight,
		.b = m->cost[DIFF_B] / m->weight,
		.below = sqrt(m->below) / m->weight,
		.above = sqrt(m->above) / m->weight };
	s.noise = stat_noise(&s);
	s.p = stat_noise_p(s.b - s.a, s.noise);
	if (several) {
		for (size_t i = 0; i < na; i++)
			m->runs[DIFF_A][i] /= m->weight;
		for (size_t i = 0; i < nb; i++)
			m->runs[DIFF_B][i] /= m->weight;
		s = stat_runs_medians(m->runs[DIFF_A], na, m->runs[DIFF_B], nb);
		c->n[DIFF_A] = (double)na;
		c->n[DIFF_B] = (double)nb;
	}
	c->side[DIFF_A] = s.a;
	c->side[DIFF_B] = s.b;
	c->change = c->row ? c->row->change : diff_change_of(m->d, &s);
}

enum which_steps { ANY, MARKED, FOUND };

static bool is_wanted(const struct diff_row *row, enum which_steps which)
{
	return is_judged(row) && !(row->by_device && diff_is_resized(row)) &&
	       (which == ANY || (which == MARKED) == diff_has_marked_steps(row));
}

/* Without a row that can be judged *ret_c is ONE_NONE. */
static void judge_mix(const struct diff *d, enum diff_one one, enum diff_table table,
	enum which_steps which, struct diff_conclusion *ret_c)
{
	const bool several = d->inputs[DIFF_A].n > 1 && d->inputs[DIFF_B].n > 1;
	struct mix m = { .d = d, .c.one = one };
	*ret_c = (struct diff_conclusion){ .change.verdict = VERDICT_NONE };
	for (int s = 0; s < DIFF_SIDES && several; s++)
		m.runs[s] = xcalloc(d->inputs[s].n, sizeof *m.runs[s]);
	array_each(const struct diff_row, row, d->rows[table])
		if (is_wanted(row, which) && (!several || is_in_all_runs(d, row)))
			mix_add(&m, row);
	if (m.c.rows) {
		mix_judge(&m, several);
		*ret_c = m.c;
	}
	free(m.runs[DIFF_A]);
	free(m.runs[DIFF_B]);
}

/* Steps that were found by waits may be what the program does or not.  They say something that
 * launches do not where the host takes longer between these. */
static const struct diff_conclusion *choose(const struct diff *d,
	const struct diff_conclusion *steps, const struct diff_conclusion *launches)
{
	if (launches->one == ONE_NONE || (d->work.periods && d->work.same && !moves(launches)))
		return steps;
	return moves(steps) && !d->work.periods && steps->change.verdict != launches->change.verdict
		       ? steps
		       : launches;
}

/* How many activities run at a time, while any does. */
static double overlap(const struct diff *d, enum diff_side_id side)
{
	return d->sums[TOTAL_DEVICE].side[side] / d->sums[TOTAL_BUSY].side[side];
}

/* Whether launches take longer, or less, because others run beside them. */
static bool is_overlap(const struct diff *d, const struct diff_conclusion *c)
{
	if (!moves(c) || !c->by_device)
		return false;
	const double change = log(c->side[DIFF_B] / c->side[DIFF_A]),
		     beside = log(overlap(d, DIFF_B) / overlap(d, DIFF_A));
	return isfinite(beside) && (change - beside) / change < CONFIRMED;
}

static struct diff_conclusion none(enum diff_doubt doubt)
{
	return (struct diff_conclusion){ .doubt = doubt, .change.verdict = VERDICT_NONE };
}

/* If no unit takes longer, the same work may. */
static void judge_run(const struct diff *d, struct diff_conclusion *c)
{
	static const enum diff_total totals[] = { TOTAL_BUSY, TOTAL_WALL };
	for (size_t i = 0; i < 2 && d->work.same && !moves(c); i++) {
		const struct diff_sum *s = &d->sums[totals[i]];
		if (s->change.verdict != VERDICT_SLOWER && s->change.verdict != VERDICT_FASTER)
			continue;
		*c = (struct diff_conclusion){ .one = ONE_RUN,
			.by_device = totals[i] == TOTAL_BUSY,
			.side = { s->side[DIFF_A], s->side[DIFF_B] },
			.n = { (double)d->inputs[DIFF_A].n, (double)d->inputs[DIFF_B].n },
			.change = s->change };
	}
}

static void choose_one(const struct diff *d, struct diff_conclusion *ret_c)
{
	const bool kernels = d->rows[TABLE_KERNELS].n;
	struct diff_conclusion steps = { 0 }, launches = { 0 };
	judge_mix(d, ONE_REQUEST, TABLE_REQUESTS, ANY, ret_c);
	if (ret_c->one == ONE_NONE && d->work.steps)
		judge_mix(d, ONE_STEP, TABLE_STEPS, MARKED, ret_c);
	if (ret_c->one != ONE_NONE)
		return;
	if (d->work.steps)
		judge_mix(d, ONE_STEP, TABLE_STEPS, FOUND, &steps);
	if ((d->work.kernels || !kernels))
		judge_mix(d, kernels ? ONE_LAUNCH : ONE_CALL, kernels ? TABLE_KERNELS : TABLE_CALLS,
			ANY, &launches);
	if (is_overlap(d, &launches))
		launches = none(DOUBT_OVERLAP);
	*ret_c = *choose(d, &steps, &launches);
	if (d->work.periods && !d->work.same && !moves(ret_c))
		*ret_c = none(DOUBT_STEPS);
	else if (ret_c->one == ONE_NONE)
		*ret_c = none(launches.doubt       ? launches.doubt
			      : d->work.resized    ? DOUBT_SIZE
			      : d->work.relaunched ? DOUBT_INPUT
						   : DOUBT_FEW);
}

/* How long the program took: how long a process takes to start and to end varies by chance, so the
 * GPU span counts where it is known. */
static void find_whole(struct diff *d)
{
	struct diff_conclusion *c = &d->conclusion;
	const double *span = d->sums[TOTAL_SPAN].side;
	c->spans = span[DIFF_A] > 0 && span[DIFF_B] > 0;
	c->all = &d->sums[c->spans ? TOTAL_SPAN : TOTAL_WALL];
}

/* By an interval; one that is wide tells nothing. */
static enum diff_verdict way_of(const struct diff_change *c, double least)
{
	const bool narrow = fabs(c->pct) + fmax(c->below_pct, c->above_pct) < least;
	return c->verdict != VERDICT_SAME || narrow ? c->verdict : VERDICT_NONE;
}

static enum diff_verdict way(double pct, double least)
{
	return !(fabs(pct) >= least) ? VERDICT_SAME : pct > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
}

/* How the time of the same work changed, if that is more than chance. */
static enum diff_verdict sure_way(const struct diff *d, double least)
{
	const struct diff_conclusion *c = &d->conclusion;
	if (d->inputs[DIFF_A].n > 1 && d->inputs[DIFF_B].n > 1)
		return way_of(&c->all->change, least);
	if (!isnan(d->work.period.p))
		return way_of(&d->work.period, least);
	if (!c->spans ||
		(fabs(c->all->change.pct) >= least && fabs(c->all->change.pct) < SPAN_LEAST))
		return VERDICT_NONE;
	return way(c->all->change.pct, least);
}

/* About as many launches that take more time in all, though there are no more of them; or less. */
static bool is_no_matter_of_launches(const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	const double *n = d->sums[TOTAL_LAUNCHES].side,
		     more = (n[DIFF_B] / n[DIFF_A] - 1) * (c->all->change.pct > 0 ? 1 : -1);
	return c->spans && diff_has_totals(d) && more <= MORE_MOST && more >= -FEWER_MOST;
}

/* How the work as a whole changed, if that is more than chance. */
static enum diff_verdict whole_way(const struct diff *d)
{
	const double pct = d->conclusion.all->change.pct,
		     least = fmax(d->threshold_pct, DIFF_SAME * 100);
	const enum diff_verdict whole = way(pct, least);
	if (!d->work.same && (whole == VERDICT_SAME || !is_no_matter_of_launches(d)))
		return VERDICT_NONE;
	return whole == sure_way(d, least) ? whole : VERDICT_NONE;
}

/* As the whole changed, so may what is compared have done, as far as its interval tells. */
static bool may_be_the_whole(const struct diff_conclusion *c)
{
	return c->change.pct - c->change.below_pct <= c->all->change.pct &&
	       c->all->change.pct <= c->change.pct + c->change.above_pct;
}

void diff_conclude(struct diff *d)
{
	struct diff_conclusion *c = &d->conclusion;
	if (!(diff_is_empty(d, DIFF_A) || diff_is_empty(d, DIFF_B)))
		choose_one(d, c);
	judge_run(d, c);
	find_whole(d);
	c->whole = c->one == ONE_NONE || c->one == ONE_RUN ? VERDICT_NONE : whole_way(d);
	if (c->whole == c->change.verdict || (may_be_the_whole(c) && !diff_is_wide(&c->change)))
		c->whole = VERDICT_NONE;
	expect(!moves(c) || (c->side[DIFF_B] > c->side[DIFF_A]) ==
				    (c->change.verdict == VERDICT_SLOWER),
		"what takes longer is slower");
	diff_say(d);
}
