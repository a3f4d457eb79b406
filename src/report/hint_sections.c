/* Sections of hints: what could be gained, in which part of the recording, and why GPUs were idle.
 */
#include "report/sections.h"

#include "hint/hint.h"

static void make_hints(struct rows *rows)
{
	const struct hints *h = rows->r->hints;
	rows->absent = !h;
	rows_take(rows, h ? h->v.v : NULL, h ? h->v.n : 0, sizeof(struct hint));
}

GETTER(get_id, struct hint, it, value_text(it->rule->id))
GETTER(get_title, struct hint, it, value_text(it->rule->title))
GETTER(get_rule, struct hint, it, value_text(it->rule->when))
GETTER(get_advice, struct hint, it, value_text(hint_advice(row->r->hints, it->rule)))
GETTER(get_gain_pct, struct hint, it, value_real(100 * it->gain))

static double gain_ns(const struct row *row, const struct hint *h)
{
	return hint_gain_ns(row->r->hints, h->gain);
}

static struct value get_gain_ns(const struct row *row, const void *of)
{
	const double ns = gain_ns(row, of);
	return isnan(ns) ? value_null() : value_u64((uint64_t)ns);
}

static struct value get_gain_of_wall(const struct row *row, const void *of)
{
	const uint64_t wall_ns = row->r->hints->wall_ns;
	return wall_ns ? value_real(100 * gain_ns(row, of) / (double)wall_ns) : value_null();
}

static struct value get_gain_of_step(const struct row *row, const void *of)
{
	const struct hint *h = of;
	const double step = hint_step_ns(row->r->hints);
	if (!(step > 0) || isnan(gain_ns(row, h)))
		return value_null();
	return value_u64((uint64_t)(h->gain * step));
}

GETTER(get_confidence_word, struct hint, it, value_text(hint_confidence_word(it->confidence)))

static struct value get_hint_text(const struct row *row, const void *of)
{
	const struct hint *h = of;
	FILE *out = fmemopen(row->text, ROW_TEXT, "w");
	if (!out)
		return value_text(h->rule->title);
	hint_put_sentence(row->r->hints, h, out);
	fclose(out);
	return value_text(row->text);
}

static const struct column hint_columns[] = {
	{ "id", UNIT_TEXT, "id", "the rule", .get = get_id },
	{ "where", UNIT_TEXT, "where", "what it is about", MEMBER(struct hint, where) },
	{ "gain_pct", UNIT_REAL, "gain, %", "of `hints_of_ns`; null: it is no time",
		.get = get_gain_pct },
	{ "gain_ns", UNIT_NS, "gain", "the same as a time", .get = get_gain_ns },
	{ "gain_of_wall_pct", UNIT_REAL, "of wall, %", "the same of the wall time",
		.get = get_gain_of_wall },
	{ "gain_of_step_ns", UNIT_NS, "gain of a step", "the same of one step",
		.get = get_gain_of_step },
	{ "confidence", UNIT_REAL, "confidence", "0 to 1", MEMBER(struct hint, confidence) },
	{ "confidence_word", UNIT_TEXT, "confidence", "the same in a word",
		.get = get_confidence_word },
	{ "text", UNIT_TEXT, "hint", "all of it in sentences", .get = get_hint_text },
	{ "title", UNIT_TEXT, "title", "what it is", .get = get_title },
	{ "rule", UNIT_TEXT, "rule", "the rule, in words", .get = get_rule },
	{ "evidence", UNIT_TEXT, "evidence", "what was measured", MEMBER(struct hint, evidence) },
	{ "advice", UNIT_TEXT, "advice", "what to do", .get = get_advice },
	{ 0 },
};

const struct section section_hints = {
	.name = "hints",
	.heading = "Hints",
	.about = "The keys of [`weir hints`](json-others.md).",
	.of = OF_HINTS,
	.facets = FACET(HINTS),
	.columns = hint_columns,
	.make = make_hints,
	.each = sizeof(struct hint),
	.shown = "gain_pct,confidence,rule,title",
};

static void make_of_hints(struct rows *rows)
{
	rows->v = rows->r->hints;
	rows->absent = !rows->v;
}

GETTER(get_together, struct hints, h,
	h->counted_ns ? value_u64((uint64_t)hint_gain_ns(h, h->together)) : value_null())

static const struct column sum_columns[] = {
	{ "hints_of_ns", UNIT_NS, "analysed", "the analysed time, of which `gain_pct` is a share",
		.get = get_nonzero, AT(struct hints, counted_ns) },
	{ "hints_together_ns", UNIT_NS, "all gains", "what all gains come to at most",
		.get = get_together },
	{ 0 },
};

const struct section section_hints_sum = {
	.name = "hints_sum",
	.form = SECTION_MEMBERS,
	.facets = FACET(HINTS),
	.columns = sum_columns,
	.make = make_of_hints,
};

static void make_window(struct rows *rows)
{
	make_of_hints(rows);
	rows->n = rows->v && rows->r->hints->counted_ns;
}

static struct value get_what(const struct row *row, const void *of)
{
	FILE *out = fmemopen(row->text, ROW_TEXT, "w");
	if (!out)
		return value_text("");
	hint_put_window(of, out);
	fclose(out);
	return value_text(row->text);
}

/* The steps, if the window is whole steps. */
FINDER(steps, struct hints, h, h->window.steps ? h : NULL)

static struct value get_step(const struct row *row, const void *of)
{
	const double ns = hint_step_ns(of);
	return ns > 0 ? value_u64((uint64_t)ns) : value_null();
}

static const struct column window_columns[] = {
	{ "what", UNIT_TEXT, "what", "the part in words", .get = get_what },
	{ "start_ns", UNIT_MOMENT, "begin", "when it begins", MEMBER(struct hints, before.ns) },
	{ "ns", UNIT_NS, "time", "how long it is", MEMBER(struct hints, window.ns) },
	{ "first_step", UNIT_ID, "first step", "number of its first step", .find = steps,
		MEMBER(struct hints, window.first) },
	{ "last_step", UNIT_ID, "last step", "number of its last step", .find = steps,
		MEMBER(struct hints, window.last) },
	{ "steps", UNIT_COUNT, "steps", "how many steps it has", .find = steps,
		MEMBER(struct hints, window.steps) },
	{ "step_ns", UNIT_NS, "step", "how long a step takes; null: none stands for all",
		.get = get_step },
	{ 0 },
};

const struct section section_hints_window = {
	.name = "hints_window",
	.heading = "What the hints are about",
	.about = "Which part of the recording the rules looked at.",
	.form = SECTION_OBJECT,
	.of = OF_HINTS,
	.facets = FACET(HINTS),
	.columns = window_columns,
	.make = make_window,
};

struct cause_row {
	enum gap_cause cause;
	struct hint_gaps gaps;
};

static void make_causes(struct rows *rows)
{
	const struct hints *h = rows->r->hints;
	struct cause_row *v = xcalloc(GAP_CAUSES, sizeof *v);
	size_t n = 0;
	for (enum gap_cause c = 0; h && c < GAP_CAUSES; c++)
		if (h->idle_gaps[c].count)
			v[n++] = (struct cause_row){ c, h->idle_gaps[c] };
	rows_own(rows, v, n, sizeof *v);
	rows->absent = !h;
}

GETTER(get_cause, struct cause_row, it, value_text(gap_cause_name[it->cause]))

static const struct column cause_columns[] = {
	{ "cause", UNIT_TEXT, "cause",
		"`sync`, `copy`, `alloc`, `load`, `launch`, `host`, `between`, `queued`, `unknown`; in "
		"the words of `breakdown`: `idle_waiting` (`sync`, `copy`), `idle_driver` (`alloc`, "
		"`load`), `idle_launch_bound` (`launch`), `idle_host` (`host`), `idle_queued` "
		"(`between`, `queued`), `idle_unknown`",
		.get = get_cause },
	{ "count", UNIT_COUNT, "gaps", "idle gaps", MEMBER(struct cause_row, gaps.count) },
	{ "ns", UNIT_NS, "time", "their time", MEMBER(struct cause_row, gaps.ns) },
	{ 0 },
};

const struct section section_hints_idle_gaps = {
	.name = "hints_idle_gaps",
	.heading = "Why GPUs were idle",
	.of = OF_IDLE,
	.facets = FACET(HINTS),
	.columns = cause_columns,
	.make = make_causes,
	.each = sizeof(struct cause_row),
};
