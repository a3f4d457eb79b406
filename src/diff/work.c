/*
 * Decides whether both sides did the same work: launches of each kernel, graphs, steps, requests
 * and copied bytes. If not, totals of time say nothing about speed, and conclusion.c compares
 * something else.
 */
#include "diff/diff.h"

#define STEP_TOLERANCE 0.05 /* of launches in a step: steps of other work are not compared */
#define STEPS_LEAST    2 /* a side: one step is the whole run, of which nobody says what it did */
#define COPIED_LITTLE  65536
#define AHEAD          0.9 /* of the time of devices: steps that take less end before those do */
#define COMMON_LEAST   0.9 /* of the time of kernels: what both ran stands for the whole */

static bool is_near(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fmax(a, b);
}

static bool totals_near(const struct diff *d, enum diff_total t)
{
	const double *side = d->sums[t].side;
	return is_near(side[DIFF_A], side[DIFF_B], DIFF_SAME);
}

bool diff_copied_same(const struct diff *d)
{
	const double *side = d->sums[TOTAL_COPIED].side;
	return totals_near(d, TOTAL_COPIED) || fabs(side[DIFF_A] - side[DIFF_B]) <= COPIED_LITTLE;
}

double diff_count(const struct diff *d, enum diff_one one, enum diff_side_id side)
{
	static const enum diff_total totals[] = { [ONE_CALL] = TOTAL_CALLS,
		[ONE_LAUNCH] = TOTAL_LAUNCHES,
		[ONE_STEP] = TOTAL_STEPS,
		[ONE_REQUEST] = TOTAL_REQUESTS };
	return one == ONE_NONE || one == ONE_RUN ? NAN : d->sums[totals[one]].side[side];
}

bool diff_is_empty(const struct diff *d, enum diff_side_id side)
{
	return d->off[side] ||
	       (d->sums[TOTAL_CALLS].side[side] == 0 && d->sums[TOTAL_LAUNCHES].side[side] == 0 &&
		       !(d->sums[TOTAL_DEVICE].side[side] > 0));
}

/* Launches that one side has more of weigh little, by number and by time.  One that has twice the
 * threads is two. */
static bool same_kernels(const struct diff *d)
{
	double more = 0, all[DIFF_SIDES] = { 0 }, more_ns = 0, all_ns[DIFF_SIDES] = { 0 };
	array_each(const struct diff_row, row, d->rows[TABLE_KERNELS]) {
		const struct diff_value *v = row->value;
		const double size =
			diff_is_resized(row) ? v[DIFF_B].threads / v[DIFF_A].threads : 1;
		const double one = fmax(v[DIFF_A].median_ns, v[DIFF_B].median_ns / size);
		const double off = fabs(v[DIFF_A].count - v[DIFF_B].count * size);
		more += off;
		more_ns += isnan(one) ? 0 : off * one;
		for (int s = 0; s < DIFF_SIDES; s++) {
			all[s] += v[s].count * (s == DIFF_B ? size : 1);
			all_ns[s] += isnan(v[s].median_ns) ? 0 : v[s].count * v[s].median_ns;
		}
	}
	return more <= DIFF_SAME * fmax(all[DIFF_A], all[DIFF_B]) &&
	       more_ns <= DIFF_SAME * fmax(all_ns[DIFF_A], all_ns[DIFF_B]);
}

/* Whether launches that both made, of the same size, take most of the time of each. */
static bool shares_kernels(const struct diff *d)
{
	double all[DIFF_SIDES] = { 0 }, common[DIFF_SIDES] = { 0 };
	array_each(const struct diff_row, row, d->rows[TABLE_KERNELS]) {
		const struct diff_value *v = row->value;
		const bool both =
			v[DIFF_A].count > 0 && v[DIFF_B].count > 0 && !diff_is_resized(row);
		for (int s = 0; s < DIFF_SIDES; s++) {
			const double ns = isnan(v[s].total_ns) ? 0 : v[s].total_ns;
			all[s] += ns;
			common[s] += both ? ns : 0;
		}
	}
	for (int s = 0; s < DIFF_SIDES; s++)
		if (!(common[s] > 0) || common[s] < COMMON_LEAST * all[s])
			return false;
	return true;
}

/* A host that only launches is through with its steps before the devices are. */
static bool is_ahead(const struct diff *d, const struct diff_row *row)
{
	for (int s = 0; s < DIFF_SIDES && !row->by_device; s++)
		if (row->value[s].total_ns < AHEAD * d->sums[TOTAL_BUSY].side[s])
			return true;
	return false;
}

/* Whether both copied as much, and not little. */
static bool is_same_input(const struct diff *d)
{
	const double *copied = d->sums[TOTAL_COPIED].side;
	return fmin(copied[DIFF_A], copied[DIFF_B]) > COPIED_LITTLE && diff_copied_same(d);
}

static bool is_same_copies(const struct diff *d)
{
	for (size_t i = 0; i < d->rows[TABLE_COPIES].n; i++) {
		const struct diff_value *v = d->rows[TABLE_COPIES].v[i].value;
		if (!is_near(v[DIFF_A].count, v[DIFF_B].count, DIFF_SAME))
			return false;
	}
	return is_same_input(d);
}

/* How many launches more of the kernels that both ran one side made, and whether some have another
 * size. */
static double count_more(const struct diff *d, bool *ret_resized)
{
	double more = 0;
	array_each(const struct diff_row, row, d->rows[TABLE_KERNELS]) {
		const struct diff_value *v = row->value;
		*ret_resized |= diff_is_resized(row);
		if (v[DIFF_A].count > 0 && v[DIFF_B].count > 0)
			more += fabs(v[DIFF_A].count - v[DIFF_B].count);
	}
	return more;
}

/* Whether steps that nobody marked do the same: as many launches of the same sizes, or as many
 * steps with as much input.  Without input there must not be more of the same kernels in them. */
static bool is_same_step(const struct diff *d)
{
	const double *steps = d->sums[TOTAL_STEPS].side, *launches = d->sums[TOTAL_LAUNCHES].side,
		     *copied = d->sums[TOTAL_COPIED].side;
	bool resized = false;
	const double more = count_more(d, &resized);
	if (!resized && is_near(launches[DIFF_A] / steps[DIFF_A], launches[DIFF_B] / steps[DIFF_B],
				STEP_TOLERANCE))
		return true;
	if (!totals_near(d, TOTAL_STEPS))
		return false;
	if (fmin(copied[DIFF_A], copied[DIFF_B]) > COPIED_LITTLE)
		return diff_copied_same(d);
	return !resized && more <= STEP_TOLERANCE * fmax(launches[DIFF_A], launches[DIFF_B]);
}

/* Steps that the program marks are its own. */
static bool shares_steps(const struct diff *d)
{
	array_each(const struct diff_row, row, d->rows[TABLE_STEPS]) {
		if (!strcmp(row->kind, DIFF_BY_PERIODS) ||
			fmin(row->value[DIFF_A].count, row->value[DIFF_B].count) < STEPS_LEAST ||
			is_ahead(d, row))
			continue;
		return diff_has_marked_steps(row) || is_same_step(d);
	}
	return false;
}

void diff_compare_work(struct diff *d)
{
	const double *requests = d->sums[TOTAL_REQUESTS].side,
		     *launches = d->sums[TOTAL_LAUNCHES].side;
	struct diff_work *w = &d->work;
	const double more = count_more(d, &w->resized);
	w->relaunched = is_same_input(d) &&
			more > STEP_TOLERANCE * fmax(launches[DIFF_A], launches[DIFF_B]);
	w->kernels = shares_kernels(d) && !w->relaunched;
	w->steps = shares_steps(d);
	w->input = is_same_copies(d) && diff_has_totals(d);
	w->requests = requests[DIFF_A] > 0 && requests[DIFF_B] > 0;
	w->same = diff_has_totals(d) && same_kernels(d) && totals_near(d, TOTAL_GRAPH_LAUNCHES) &&
		  diff_copied_same(d) && totals_near(d, TOTAL_REQUESTS) &&
		  (!w->steps || totals_near(d, TOTAL_STEPS)) &&
		  diff_is_empty(d, DIFF_A) == diff_is_empty(d, DIFF_B);
}

enum diff_one diff_common(const struct diff *d)
{
	return d->work.requests  ? ONE_REQUEST
	       : d->work.steps   ? ONE_STEP
	       : d->work.kernels ? ONE_LAUNCH
				 : ONE_NONE;
}
