/*
 * The three sentences that a comparison begins with: is it slower, what changed most, how sure.
 * None has more than 25 words, whatever kernels are called.
 */
#include "diff/diff.h"

#include "base/bounded.h"
#include "base/number.h"
#include "base/text.h"

#define NAME_CUT    40u  /* characters of a name … */
#define NAME_BLANKS 2    /* … and how many blanks are in it */
#define LEAST_SHARE 0.01 /* of the whole: what changed less is not named */
#define OFTEN       2.0  /* from there on a change is a factor */
#define SENTENCE    600u

struct name {
	char text[4 * NAME_CUT + 8];
};

static const char *short_name(struct name *n, const char *name)
{
	struct text_short cut;
	int blanks = 0;
	snprintf(n->text, sizeof n->text, "%s", text_short(&cut, text_kernel(name), NAME_CUT));
	for (char *at = n->text; *at; at++)
		if (*at == ' ' && ++blanks > NAME_BLANKS) {
			memcpy(at, "…", sizeof "…");
			break;
		}
	return n->text;
}

static const char *ns_text(struct number *n, double ns)
{
	return number_ns(n, ns > 0 ? (uint64_t)(ns + 0.5) : 0);
}

static uint64_t whole(double count)
{
	return count > 0 ? (uint64_t)(count + 0.5) : 0;
}

static const char *count_text(struct number *n, double count)
{
	return number_count(n, whole(count));
}

/* "1 launch", "20 steps" */
static const char *units_text(struct number *n, double count, enum diff_one one)
{
	return number_of(n, whole(count), diff_one_word(one));
}

static const char *pct_text(struct number *n, double pct)
{
	snprintf(n->text, sizeof n->text, fabs(pct) < 9.995 ? "%.2g %%" : "%.0f %%", fabs(pct));
	return n->text;
}

/* "7.5", "4,540" */
static const char *factor_text(struct number *n, double factor)
{
	if (factor >= 999.5)
		return count_text(n, factor);
	snprintf(n->text, sizeof n->text, "%.3g", factor);
	return n->text;
}

/* "-24.1 %", or "7.5 times as fast", which a percentage of nearly all hides. */
static const char *change_text(struct number *n, double from, double to)
{
	struct number factor;
	if (from > 0 && to >= OFTEN * from)
		snprintf(n->text, sizeof n->text, "%s times as long",
			factor_text(&factor, to / from));
	else if (to > 0 && from >= OFTEN * to)
		snprintf(n->text, sizeof n->text, "%s times as fast",
			factor_text(&factor, from / to));
	else
		snprintf(n->text, sizeof n->text, "%+.1f %%", (to - from) / from * 100);
	return n->text;
}

static bool is_moved(enum diff_verdict v)
{
	return v == VERDICT_FASTER || v == VERDICT_SLOWER;
}

/* "launch of axpy", "step", "request (decode request)" */
static void put_one(struct bounded *b, const struct diff_conclusion *c)
{
	struct name name;
	const char *of = c->row && c->one != ONE_STEP ? short_name(&name, c->row->name) : NULL;
	bounded_put(b, diff_one_word(c->one));
	if (c->one == ONE_LAUNCH && !c->by_device)
		bounded_put(b, " call");
	if (of && c->one == ONE_REQUEST && strcmp(of, "request") != 0)
		bounded_printf(b, " (%s)", of);
	else if (of && c->one != ONE_REQUEST)
		bounded_printf(b, " of %s", of);
}

static void put_how(struct bounded *b, const struct diff_conclusion *c)
{
	const double factor = c->side[DIFF_B] / c->side[DIFF_A];
	struct number n;
	if (factor >= OFTEN)
		bounded_printf(b, "takes %s times as long in B", factor_text(&n, factor));
	else if (factor <= 1 / OFTEN)
		bounded_printf(b, "is %s times as fast in B", factor_text(&n, 1 / factor));
	else
		bounded_printf(b, "is %s %s in B", pct_text(&n, c->change.pct),
			diff_verdict_word(c->change.verdict));
}

static void put_moved(struct bounded *b, const struct diff_conclusion *c)
{
	struct number from, to;
	if (c->one == ONE_RUN) {
		bounded_put(b, "The same work ");
		put_how(b, c);
		bounded_printf(b, " (%s → %s of %s)", ns_text(&from, c->side[DIFF_A]),
			ns_text(&to, c->side[DIFF_B]), c->by_device ? "GPU time" : "wall time");
		return;
	}
	bounded_put(b, "One ");
	put_one(b, c);
	bounded_char(b, ' ');
	put_how(b, c);
	bounded_printf(
		b, " (%s → %s)", ns_text(&from, c->side[DIFF_A]), ns_text(&to, c->side[DIFF_B]));
}

/* "over 14 kernels": what the mean is of. */
static void put_rows(struct bounded *b, const struct diff_conclusion *c)
{
	if (c->rows > 1)
		bounded_printf(b, ", over %zu %s that both have", c->rows,
			c->one == ONE_LAUNCH ? "kernels"
			: c->one == ONE_CALL ? "functions"
					     : "ranges");
}

static void put_same(struct bounded *b, const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	struct number from, to;
	if (diff_is_wide(&c->change) &&
		fabs(c->change.pct) >= fmax(d->threshold_pct, DIFF_SAME * 100))
		bounded_put(b, "It is not known which is faster: one ");
	else if (d->threshold_pct > 0)
		bounded_printf(b, "No difference above %g %% was found: one ", d->threshold_pct);
	else
		bounded_put(b, "No difference was found: one ");
	put_one(b, c);
	bounded_printf(b, " takes %s in A, %s in B", ns_text(&from, c->side[DIFF_A]),
		ns_text(&to, c->side[DIFF_B]));
	if (c->rows > 1)
		put_rows(b, c);
}

static bool has_same_steps(const struct diff *d)
{
	const double *steps = d->sums[TOTAL_STEPS].side;
	return d->work.steps && steps[DIFF_A] == steps[DIFF_B] && diff_has_totals(d);
}

/* Figures of as much work, which are too few to be judged. */
enum total { NO_TOTAL, OF_BUSY, OF_ALL };

static bool agrees(const struct diff *d, double pct)
{
	return (d->sums[TOTAL_BUSY].change.pct > 0) == (pct > 0) || fabs(pct) < d->threshold_pct;
}

/* Where only steps were found to be as many, a GPU span may be that of loading code. */
static enum total total_of(const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	const double *busy = d->sums[TOTAL_BUSY].side;
	const bool as_much = d->work.same || d->work.input;
	if (!as_much && !has_same_steps(d))
		return NO_TOTAL;
	if (busy[DIFF_A] > 0 && busy[DIFF_B] > 0 &&
		(agrees(d, c->all->change.pct) ||
			(!as_much && agrees(d, d->sums[TOTAL_WALL].change.pct))))
		return OF_BUSY;
	return c->all->side[DIFF_A] > 0 && c->all->side[DIFF_B] > 0 && (as_much || !c->spans)
		       ? OF_ALL
		       : NO_TOTAL;
}

static void put_total(struct bounded *b, const struct diff *d)
{
	static const char *const longer[] = { "B took", "B's GPU span is",
		"B kept the GPU busy for" };
	static const char *const same[] = { "the program took", "the GPU span is",
		"the GPU was busy" };
	const struct diff_conclusion *c = &d->conclusion;
	const bool busy = total_of(d) == OF_BUSY;
	const double *side = busy ? d->sums[TOTAL_BUSY].side : c->all->side,
		     pct = busy ? d->sums[TOTAL_BUSY].change.pct : c->all->change.pct;
	const int words = busy ? 2 : c->spans;
	struct number from, to, n;
	ns_text(&from, side[DIFF_A]);
	ns_text(&to, side[DIFF_B]);
	if (fabs(pct) < d->threshold_pct) {
		bounded_printf(b, "No difference above %g %% was found: %s %s in A, %s in B",
			d->threshold_pct, same[words], from.text, to.text);
		return;
	}
	bounded_printf(b, "%s %s instead of %s (%s) ", longer[words], to.text, from.text,
		change_text(&n, side[DIFF_A], side[DIFF_B]));
	if (d->work.same)
		bounded_put(b, "for the same work");
	else if (has_same_steps(d))
		bounded_printf(b, "in %s each",
			units_text(&n, d->sums[TOTAL_STEPS].side[DIFF_A], ONE_STEP));
	else
		bounded_put(b, "for as many bytes copied");
}

#define NARROW_PCT 5 /* an interval that reaches no further is that of no change */

static bool is_narrow(const struct diff_change *c)
{
	return c->pct - c->below_pct > -NARROW_PCT && c->pct + c->above_pct < NARROW_PCT;
}

/* A step or launch leaves out the time around it.  The work as a whole counts more. */
static void put_whole(struct bounded *b, const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	struct number from, to, n;
	ns_text(&from, c->all->side[DIFF_A]);
	ns_text(&to, c->all->side[DIFF_B]);
	bounded_put(b, c->spans ? "B's GPU span is " : "B took ");
	if (c->whole == VERDICT_SAME)
		bounded_printf(b, "as long (%s)", to.text);
	else
		bounded_printf(b, "%s instead of %s", to.text, from.text);
	bounded_printf(b, " for %s",
		d->work.same                 ? "the same work"
		: c->whole == VERDICT_SLOWER ? "no more launches"
					     : "no fewer launches");
	if (diff_is_wide(&c->change))
		return;
	bounded_put(b, ", though one ");
	put_one(b, c);
	if (is_moved(c->change.verdict))
		bounded_printf(b, " is %s %s", pct_text(&n, c->change.pct),
			diff_verdict_word(c->change.verdict));
	else
		bounded_put(b, is_narrow(&c->change) ? " takes as long" : " may take as long");
}

static void put_unknown(struct bounded *b, const struct diff *d)
{
	static const char *const why[] = {
		[DOUBT_FEW] = "nothing that both did came five times on each side",
		[DOUBT_SIZE] = "launches of the same kernels have other sizes in B",
		[DOUBT_INPUT] = "B made another number of launches for as many bytes copied",
		[DOUBT_OVERLAP] = "launches take another time, but as many more or fewer of them "
				  "run at once",
		[DOUBT_STEPS] = "one step takes longer, but steps end more often, or the reverse",
	};
	bounded_printf(b, "It is not known which is faster: %s", why[d->conclusion.doubt]);
}

static void put_empty(struct bounded *b, const struct diff *d)
{
	const bool one = diff_is_empty(d, DIFF_A), other = diff_is_empty(d, DIFF_B);
	if (d->off[DIFF_A] || d->off[DIFF_B])
		bounded_printf(b, "Recording was switched off in %s",
			!d->off[DIFF_B]  ? "A"
			: d->off[DIFF_A] ? "A and B"
					 : "B");
	else
		bounded_printf(b, "%s",
			one && other ? "Neither A nor B made a CUDA call"
			: one        ? "A made no CUDA call"
				     : "B made no CUDA call");
	bounded_put(b, d->part ? " in the part that was read, so there is nothing to compare"
			       : ", so there is nothing to compare");
}

static void say_slower(const struct diff *d, struct bounded *b)
{
	const struct diff_conclusion *c = &d->conclusion;
	if (diff_is_empty(d, DIFF_A) || diff_is_empty(d, DIFF_B)) {
		put_empty(b, d);
	} else if (c->whole != VERDICT_NONE) {
		put_whole(b, d);
	} else if (is_moved(c->change.verdict)) {
		put_moved(b, c);
		put_rows(b, c);
	} else if (c->one != ONE_NONE) {
		put_same(b, d);
	} else if (total_of(d)) {
		put_total(b, d);
	} else {
		put_unknown(b, d);
	}
}

/* Times of one side's, by one of these. */
struct changed {
	const struct diff_row *row; /* NULL: the idle time of GPUs */
	double side[DIFF_SIDES];
	double effect; /* of both sides, ns */
	bool there, a_launch;
};

static void take(struct changed *most, struct changed c)
{
	if (!isnan(c.effect) && fabs(c.effect) > fabs(most->effect))
		*most = c;
}

/* By what times of a side are divided; 1 where they are as they are. */
static double units_of(const struct diff *d, enum diff_one per, int side)
{
	return per == ONE_NONE ? 1 : diff_count(d, per, (enum diff_side_id)side);
}

static bool is_often_as(const struct diff_row *row, const double *units)
{
	const double a = row->value[DIFF_A].count / units[DIFF_A],
		     b = row->value[DIFF_B].count / units[DIFF_B];
	return fabs(a - b) <= LEAST_SHARE * fmax(a, b);
}

static void take_kernel(struct changed *most, const struct diff_row *row, const double *units)
{
	const struct diff_value *v = row->value;
	struct changed c = { .row = row, .there = true };
	for (int s = 0; s < DIFF_SIDES; s++)
		c.side[s] = v[s].there ? v[s].total_ns / units[s] : 0;
	c.effect = c.side[DIFF_B] - c.side[DIFF_A];
	if (is_moved(row->change.verdict) && is_often_as(row, units)) {
		c.a_launch = true;
		c.side[DIFF_A] = v[DIFF_A].median_ns;
		c.side[DIFF_B] = v[DIFF_B].median_ns;
	}
	take(most, c);
}

/* Takes a change of a launch: how much one takes, or that it is new or gone; how many there are is
 * told already.
 */
static void take_launch(struct changed *most, const struct diff_row *row, const double *units)
{
	const struct diff_value *v = row->value;
	const double both = sqrt(units[DIFF_A] * units[DIFF_B]),
		     weight = sqrt(v[DIFF_A].count * v[DIFF_B].count) / both;
	struct changed c = { .row = row, .there = true, .a_launch = true };
	for (int s = 0; s < DIFF_SIDES; s++)
		c.side[s] = v[s].there ? v[s].median_ns : 0;
	if (is_moved(row->change.verdict))
		c.effect = weight * (c.side[DIFF_B] - c.side[DIFF_A]);
	else if (row->change.verdict >= VERDICT_NEW)
		c.effect = v[DIFF_B].there ? v[DIFF_B].total_ns / units[DIFF_B]
					   : -v[DIFF_A].total_ns / units[DIFF_A];
	take(most, c);
}

/* Whether the figures are of time in which GPUs may be idle; a ring has that of its end only. */
static bool is_about_host(const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	if (d->window[DIFF_A] || d->window[DIFF_B])
		return false;
	if (c->one == ONE_NONE)
		return !(d->sums[TOTAL_BUSY].side[DIFF_A] > 0) ||
		       !(d->sums[TOTAL_BUSY].side[DIFF_B] > 0);
	return c->one == ONE_STEP || c->one == ONE_REQUEST || (c->one == ONE_RUN && !c->by_device);
}

/* Finds the largest changes inside a unit of the conclusion; nothing for a unit that is a single
 * row. */
static struct changed find_changed(const struct diff *d, enum diff_one per)
{
	const struct diff_conclusion *c = &d->conclusion;
	const double units[] = { units_of(d, per, DIFF_A), units_of(d, per, DIFF_B) };
	const enum diff_total total =
		d->by_device && !isnan(d->sums[TOTAL_BUSY].side[DIFF_A]) ? TOTAL_BUSY : TOTAL_WALL;
	const double whole = c->one == ONE_NONE || c->one == ONE_RUN
				     ? d->sums[total].side[DIFF_A] / units[DIFF_A]
				     : c->side[DIFF_A];
	struct changed most = { 0 };
	if (!(units[DIFF_A] > 0) || !(units[DIFF_B] > 0))
		return most;
	array_each(const struct diff_row, row, d->rows[TABLE_KERNELS]) {
		if (row == c->row || (d->apart && per == ONE_LAUNCH))
			continue;
		if (per == ONE_LAUNCH)
			take_launch(&most, row, units);
		else
			take_kernel(&most, row, units);
	}
	if (is_about_host(d)) {
		struct changed idle = { .there = true };
		for (int s = 0; s < DIFF_SIDES; s++)
			idle.side[s] = d->sums[TOTAL_IDLE].side[s] / units[s];
		idle.effect = idle.side[DIFF_B] - idle.side[DIFF_A];
		take(&most, idle);
	}
	most.there &= fabs(most.effect) >= LEAST_SHARE * whole;
	return most;
}

static bool differs(const struct diff *d, enum diff_one one)
{
	const double a = diff_count(d, one, DIFF_A), b = diff_count(d, one, DIFF_B);
	return fabs(a - b) > LEAST_SHARE * fmax(a, b);
}

/* "B is shorter because it": if how much was done explains it, and the speed does not. */
static void put_cause(struct bounded *b, const struct diff *d, enum diff_one one)
{
	const double *all = d->conclusion.all->side;
	const enum diff_verdict v = d->conclusion.change.verdict;
	const bool fewer = diff_count(d, one, DIFF_B) < diff_count(d, one, DIFF_A),
		   shorter = all[DIFF_B] < all[DIFF_A];
	if (fewer == shorter && v != (shorter ? VERDICT_FASTER : VERDICT_SLOWER))
		bounded_printf(b, "B is %s because it ", shorter ? "shorter" : "longer");
	else
		bounded_put(b, "B ");
}

static void put_counts(struct bounded *b, const struct diff *d, enum diff_one one)
{
	struct number from, to;
	bounded_printf(b, "%s %s instead of %s",
		one == ONE_REQUEST ? "answered"
		: one == ONE_STEP  ? "made"
				   : "ran",
		units_text(&to, diff_count(d, one, DIFF_B), one),
		count_text(&from, diff_count(d, one, DIFF_A)));
}

/* Says which counts agree, and then which do not. */
static void put_other_work(struct bounded *b, const struct diff *d, enum diff_one one)
{
	struct number n, from, to;
	const double *copied = d->sums[TOTAL_COPIED].side;
	if (differs(d, one)) {
		put_cause(b, d, one);
		put_counts(b, d, one);
		return;
	}
	bounded_printf(b, "Both %s %s, but ", one == ONE_STEP ? "made" : "ran",
		units_text(&n, diff_count(d, one, DIFF_A), one));
	if (one != ONE_LAUNCH && differs(d, ONE_LAUNCH)) {
		bounded_put(b, "B ");
		put_counts(b, d, ONE_LAUNCH);
	} else if (!diff_copied_same(d)) {
		bounded_printf(b, "B copied %s instead of %s",
			number_bytes(&to, (uint64_t)copied[DIFF_B]),
			number_bytes(&from, (uint64_t)copied[DIFF_A]));
	} else {
		bounded_put(b, "not of the same kernels");
	}
}

static void put_work(struct bounded *b, const struct diff *d)
{
	const enum diff_one concluded = d->conclusion.one, common = diff_common(d),
			    one = concluded >= ONE_LAUNCH && concluded <= ONE_REQUEST ? concluded
				  : common == ONE_NONE                                ? ONE_LAUNCH
										      : common;
	struct number from, to;
	if (d->work.same && differs(d, ONE_LAUNCH)) {
		bounded_printf(b, "Both did the same work, A in %s and B in %s",
			units_text(&from, diff_count(d, ONE_LAUNCH, DIFF_A), ONE_LAUNCH),
			count_text(&to, diff_count(d, ONE_LAUNCH, DIFF_B)));
	} else if (d->work.same) {
		bounded_put(b, "Both did the same work");
		if (!(diff_count(d, ONE_LAUNCH, DIFF_A) > 0))
			return;
		bounded_printf(b, " (%s",
			units_text(&from, diff_count(d, ONE_LAUNCH, DIFF_A), ONE_LAUNCH));
		if (common > ONE_LAUNCH)
			bounded_printf(b, ", %s",
				units_text(&from, diff_count(d, common, DIFF_A), common));
		bounded_char(b, ')');
	} else if (d->window[DIFF_A] || d->window[DIFF_B])
		bounded_printf(b, "The flight recordings hold %s of A and %s of B",
			units_text(&from, diff_count(d, ONE_LAUNCH, DIFF_A), ONE_LAUNCH),
			count_text(&to, diff_count(d, ONE_LAUNCH, DIFF_B)));
	else
		put_other_work(b, d, one);
}

static bool say_none(const struct diff *d, struct bounded *b)
{
	struct number from, to;
	if (!diff_is_empty(d, DIFF_A) && !diff_is_empty(d, DIFF_B))
		return false;
	if (d->off[DIFF_A] || d->off[DIFF_B])
		bounded_put(b, "At level off, Weir records neither calls nor launches");
	else
		bounded_printf(b, "A has %s and B has %s",
			units_text(&from, diff_count(d, ONE_LAUNCH, DIFF_A), ONE_LAUNCH),
			count_text(&to, diff_count(d, ONE_LAUNCH, DIFF_B)));
	return true;
}

static void say_changed(const struct diff *d, struct bounded *b)
{
	if (say_none(d, b))
		return;
	const struct diff_conclusion *c = &d->conclusion;
	const enum diff_one per = c->one == ONE_NONE ? (d->work.same ? ONE_NONE : diff_common(d))
				  : c->one == ONE_RUN || c->one == ONE_CALL ? ONE_NONE
									    : c->one;
	const bool totals = d->work.same || per != ONE_NONE;
	const struct changed most = totals ? find_changed(d, per) : (struct changed){ 0 };
	const bool one = d->lost[DIFF_A], other = d->lost[DIFF_B];
	struct number from, to;
	struct name name;
	if (one || other) {
		bounded_printf(b, "%s lost calls or %s damaged, so what both did is not compared",
			one && other ? "A and B"
			: one        ? "A"
				     : "B",
			one && other ? "are" : "is");
		return;
	}
	put_work(b, d);
	if (!most.there)
		return;
	bounded_printf(b, ", and %s changed most: %s → %s",
		most.row ? short_name(&name, most.row->name) : "GPU idle time",
		ns_text(&from, most.side[DIFF_A]), ns_text(&to, most.side[DIFF_B]));
	if (most.a_launch)
		bounded_put(b, " a launch");
	else if (per == ONE_NONE)
		bounded_put(b, " in all");
	else
		bounded_printf(b, " a %s", diff_one_word(per));
}

static void say_sure(const struct diff *d, struct bounded *b)
{
	const struct diff_conclusion *c = &d->conclusion;
	const size_t na = d->inputs[DIFF_A].n, nb = d->inputs[DIFF_B].n;
	struct number from, to;
	if (c->one == ONE_NONE) {
		bounded_put(b,
			d->off[DIFF_A] || d->off[DIFF_B]
				? "Record again without `--level off`, or switch recording on while the "
				  "program runs"
			: d->part && (diff_is_empty(d, DIFF_A) || diff_is_empty(d, DIFF_B))
				? "Read a larger part"
			: diff_is_empty(d, DIFF_A) || diff_is_empty(d, DIFF_B)
				? "`weir doctor` says why no call was seen"
			: !total_of(d) && c->doubt != DOUBT_FEW
				? "Ranges around steps or requests, for example of NVTX, would tell"
			: !total_of(d) ? "Longer recordings, or several of each version, would tell"
			: na > 1 && nb > 1
				? "The recordings differ too much to say how much of that "
				  "is chance"
				: "One recording of a version does not say how much of "
				  "that is chance: record each several times");
		return;
	}
	if (diff_is_wide(&c->change))
		bounded_put(
			b, "Single ones vary too much for a verdict, so record more: there are ");
	else
		bounded_printf(b, "The change%s%s is %s to %s with 99 %% confidence, from ",
			c->whole != VERDICT_NONE ? " of one " : "",
			c->whole != VERDICT_NONE ? diff_one_word(c->one) : "",
			number_change(&from, c->change.pct - c->change.below_pct),
			number_change(&to, c->change.pct + c->change.above_pct));
	if (na > 1 && nb > 1) {
		bounded_printf(b, "%zu and %zu recordings", na, nb);
		return;
	}
	bounded_printf(b, "%s and %s", count_text(&from, c->n[DIFF_A]),
		units_text(&to, c->n[DIFF_B], c->one));
	if (na == 1 && nb == 1)
		bounded_put(b, " in one recording each");
	else
		bounded_printf(b, " in %zu and %zu recordings", na, nb);
}

void diff_say(struct diff *d)
{
	static void (*const say[DIFF_SENTENCES])(
		const struct diff *, struct bounded *) = { say_slower, say_changed, say_sure };
	for (int i = 0; i < DIFF_SENTENCES; i++) {
		char text[SENTENCE];
		struct bounded b = BOUNDED(text);
		say[i](d, &b);
		bounded_char(&b, '.');
		d->conclusion.sentence[i] = xstrdup(bounded_end(&b));
	}
}
