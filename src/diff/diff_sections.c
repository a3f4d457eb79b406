/* The comparison's tables of columns, of which text and JSON are made.  Keys are a promise: they
 * are added to, not renamed. */
#include "diff/diff.h"

#include "base/number.h"
#include "diff/fail_condition.h"

/* Sums are whole numbers, unless they are the median of two. */
GETTER(get_whole, double, value,
	*value >= 0 && *value < 9e15 ? value_u64((uint64_t)(*value + 0.5)) : value_real(*value))

static struct value get_array(const struct row *row, const void *of)
{
	const ARRAY(char) *array = of;
	return (struct value){ .kind = VALUE_LIST, .list = array->v, .n = array->n };
}

GETTER(get_one, enum diff_one, it, value_text(diff_one_word(*it)))
GETTER(get_verdict, enum diff_verdict, it, value_text(diff_verdict_word(*it)))
GETTER(get_noise, double, pct, *pct > DIFF_NOISE_MOST_PCT ? value_null() : value_real(*pct))

const char *diff_number(struct number *n, enum unit unit, double value)
{
	const uint64_t v = value > 0 ? (uint64_t)value : 0;
	if (isnan(value))
		return "-";
	return unit == UNIT_NS      ? number_ns(n, v)
	       : unit == UNIT_BYTES ? number_bytes(n, v)
				    : number_count(n, v);
}

/* "±1.2 %": a change that is no larger is none.  "large": of samples that say nothing. */
static struct value get_noise_text(const struct row *row, const void *of)
{
	const double pct = *(const double *)of;
	if (isnan(pct))
		return value_null();
	if (pct > DIFF_NOISE_MOST_PCT)
		return value_text("large");
	snprintf(row->text, ROW_TEXT, "±%.1f %%", pct);
	return value_text(row->text);
}

/* noise: what it is of.  verdicts: on what, and which words. */
#define JUDGED(type, noise, verdicts)                                                              \
	{ "noise_pct", UNIT_CHANGE, "noise", noise, .get = get_noise,                              \
		AT(struct type, change.noise_pct) },                                               \
		{ "noise", UNIT_CHANGE, "noise", noise, .get = get_noise_text,                     \
			AT(struct type, change.noise_pct), .text_only = true },                    \
		{ "verdict", UNIT_TEXT, "verdict", verdicts, .get = get_verdict,                   \
			AT(struct type, change.verdict) },                                         \
	{                                                                                          \
		"p", UNIT_CHANCE, "p-value", "of the change", MEMBER(struct type, change.p)        \
	}

static const struct column text_columns[] = {
	{ "text", UNIT_TEXT, "text", "a sentence", .get = get_text },
	{ 0 },
};

static const struct section texts = {
	.columns = text_columns,
	.each = sizeof(char *),
	.texts = true,
};

static const struct column input_columns[] = {
	{ "file", UNIT_TEXT, "file", "the recording", MEMBER(struct diff_input, file) },
	{ "program", UNIT_TEXT, "program", "what was recorded",
		MEMBER(struct diff_input, program) },
	{ "sampled", UNIT_COUNT, "sampled", "one launch in so many was timed",
		.get = get_nonzero_u32, AT(struct diff_input, sampled) },
	{ 0 },
};

static const struct section inputs = {
	.columns = input_columns,
	.each = sizeof(struct diff_input),
};

static struct value get_in_unit(const struct row *row, const void *of)
{
	const struct diff_sum *s = row->at;
	struct number n;
	const char *text = diff_number(&n, s->unit, *(const double *)of);
	snprintf(row->text, ROW_TEXT, "%s", text);
	return value_text(row->text);
}

#define SUMS_SHOWN "in_unit.a,in_unit.b,change_pct,noise,verdict,p,text"

#define SUM                                                                                        \
	{ "a", UNIT_COUNT, "A", "of A, in the unit of the name", .get = get_whole,                 \
		AT(struct diff_sum, side[DIFF_A]) },                                               \
		{ "b", UNIT_COUNT, "B", "the same of B", .get = get_whole,                         \
			AT(struct diff_sum, side[DIFF_B]) },                                       \
		{ "in_unit.a", UNIT_COUNT, "A", "in its unit", .get = get_in_unit,                 \
			AT(struct diff_sum, side[DIFF_A]), .text_only = true },                    \
		{ "in_unit.b", UNIT_COUNT, "B", "the same of B", .get = get_in_unit,               \
			AT(struct diff_sum, side[DIFF_B]), .text_only = true },                    \
		{ "change_pct", UNIT_CHANGE, "change", "in percent of A",                          \
			MEMBER(struct diff_sum, change.pct) },                                     \
		JUDGED(diff_sum, "[noise](../glossary.md#comparing); null also above 1000 %",      \
			"on `change_pct`: `faster`, `slower`, `same`; null: cannot tell")

static const struct column total_columns[] = {
	{ "name", UNIT_TEXT, "total", "its key", MEMBER(struct diff_sum, key), .text_only = true },
	{ "text", UNIT_TEXT, "total", "what `weir diff` calls it", MEMBER(struct diff_sum, text) },
	SUM,
	{ 0 },
};

const struct section section_diff_totals = {
	.form = SECTION_KEYED,
	.shown = SUMS_SHOWN,
	.about =
		"`wall_ns`, `device_total_ns`, `device_busy_ns`, `host_total_ns`, `span_ns`, `idle_ns` (from the first GPU activity to the last). `untimed_calls`, `calls`, `launches`, `graph_launches`, `steps`, `requests`, `errors`, `lost`, `peak_bytes`, `allocated_bytes`, `allocs`, `copied_bytes`. `host_total_ns` is the time in timed calls of the driver. `untimed_calls` were only counted.",
	.columns = total_columns,
	.each = sizeof(struct diff_sum),
};

static const struct column part_columns[] = {
	{ "name", UNIT_TEXT, "part", "as in [`weir report --json`](json-report.md)",
		MEMBER(struct diff_sum, key) },
	{ "text", UNIT_TEXT, "part", "its name", MEMBER(struct diff_sum, text), .text_only = true },
	SUM,
	{ 0 },
};

const struct section section_diff_parts = {
	.shown = SUMS_SHOWN,
	.about =
		"The parts of the wall time and of the critical path. For a side with one run they add up to its `wall_ns`.",
	.columns = part_columns,
	.each = sizeof(struct diff_sum),
};

static struct value sums(const void *of, size_t n)
{
	return (struct value){ .kind = VALUE_LIST, .list = of, .n = n };
}

GETTER(get_totals, void, of, sums(of, DIFF_TOTALS))
GETTER(get_breakdown, void, of, sums(of, WALL_PARTS))
GETTER(get_path, void, of, sums(of, PATH_PARTS))
GETTER(get_side, struct diff_value, v,
	(struct value){ .kind = VALUE_LIST, .list = v, .n = v->there })

static struct value put_both(const struct row *row, enum unit unit, double a, double b)
{
	struct number from, to;
	if (unit == UNIT_COUNT && a == b)
		snprintf(row->text, ROW_TEXT, "%s", diff_number(&to, unit, b));
	else
		snprintf(row->text, ROW_TEXT, "%s → %s", diff_number(&from, unit, a),
			diff_number(&to, unit, b));
	return value_text(row->text);
}

/* A member of A's value and the same of B's. */
GETTER(get_both, char, it,
	put_both(row, UNIT_NS, *(const double *)it,
		*(const double *)(it + sizeof(struct diff_value))))
GETTER(get_counts, struct diff_value, v,
	put_both(row, UNIT_COUNT, v[DIFF_A].count, v[DIFF_B].count))

static struct value get_total_times(const struct row *row, const void *of)
{
	const struct diff_value *a = of, *b = a + DIFF_B;
	return put_both(row, UNIT_NS, a->there ? a->total_ns : NAN, b->there ? b->total_ns : NAN);
}

static struct value get_factor(const struct row *row, const void *of)
{
	const struct diff_row *r = of;
	if (isnan(r->factor))
		return value_null();
	snprintf(row->text, ROW_TEXT, "%.2f×%s", r->factor, r->by_device ? "" : " host");
	return value_text(row->text);
}

static struct value get_bytes_change(const struct row *row, const void *of)
{
	const struct diff_value *v = of;
	const double a = v[DIFF_A].bytes, b = v[DIFF_B].bytes;
	return value_real(a > 0 ? (b - a) / a * 100 : b > 0 || isnan(a + b) ? NAN : 0);
}

GETTER(get_phase, struct diff_row, r,
	value_text(r->kind && !strcmp(r->kind, DIFF_BY_PERIODS)
			   ? "step, from the end of the one before"
			   : r->name))
GETTER(get_compared, bool, it, value_text(*it ? "span" : "host"))

#define SIDE(key, unit, heading, meaning, member)                                                  \
	{                                                                                          \
		key, unit, heading, meaning, .get = get_whole, AT(struct diff_value, member)       \
	}
#define SIDE_OF(name, ...)                                                                         \
	static const struct column name##_columns[] = {                                            \
		SIDE("count", UNIT_COUNT, "count", "how many there are", count),                   \
		__VA_ARGS__,                                                                       \
		{ 0 },                                                                             \
	};                                                                                         \
	static const struct section name = {                                                       \
		.form = SECTION_OBJECT,                                                            \
		.columns = name##_columns,                                                         \
		.each = sizeof(struct diff_value),                                                 \
	}

SIDE_OF(times, SIDE("total_ns", UNIT_NS, "total", "of all of them", total_ns),
	SIDE("mean_ns", UNIT_NS, "mean", "of single ones", mean_ns),
	SIDE("p50_ns", UNIT_NS, "median", "of single ones; with several runs the median of medians",
		median_ns),
	SIDE("p95_ns", UNIT_NS, "p95", "of single ones of all runs", p95_ns),
	SIDE("p99_ns", UNIT_NS, "p99", "of single ones of all runs", p99_ns));
SIDE_OF(bytes, SIDE("total_ns", UNIT_NS, "time", "of all of them", total_ns),
	SIDE("bytes", UNIT_BYTES, "bytes", "of all of them; null: the size of some is not known",
		bytes));
SIDE_OF(spans, SIDE("span_p50_ns", UNIT_NS, "span on device", "median", span_ns),
	SIDE("device_p50_ns", UNIT_NS, "busy inside", "median of the busy time inside", busy_ns),
	SIDE("host_p50_ns", UNIT_NS, "on the host", "median of the time on the host", host_ns));

#define SIDES(section)                                                                             \
	{ "a", UNIT_LIST, "A", "null: A has none", .get = get_side, .inner = &section,             \
		AT(struct diff_row, value[DIFF_A]) },                                              \
	{                                                                                          \
		"b", UNIT_LIST, "B", "null: B has none", .get = get_side, .inner = &section,       \
							 AT(struct diff_row, value[DIFF_B])        \
	}

#define NAME(unit, heading)                                                                        \
	{                                                                                          \
		"name", unit, heading, "its name", MEMBER(struct diff_row, name)                   \
	}
/* For text: of A and of B in one cell. */
#define BOTH(key, heading, member)                                                                 \
	{                                                                                          \
		key, UNIT_NS, heading, "of A and of B", .get = get_both,                           \
							AT(struct diff_row, value[DIFF_A].member), \
							.text_only = true                          \
	}
#define COUNTS                                                                                     \
	{                                                                                          \
		"counts", UNIT_COUNT, "count", "of A and of B, if they differ",                    \
			.get = get_counts, AT(struct diff_row, value), .text_only = true           \
	}
#define KIND(key, meaning)                                                                         \
	{                                                                                          \
		key, UNIT_TEXT, key, meaning, MEMBER(struct diff_row, kind)                        \
	}
#define CHANGE                                                                                     \
	JUDGED(diff_row, "of the change of the median",                                            \
		"on the change of the median: `faster`, `slower`, `same`, `new`, `gone`; null: "   \
		"cannot tell"),                                                                    \
	{                                                                                          \
		"b_longer", UNIT_SHARE, "B longer",                                                \
			"share of pairs of single runs in which B's is longer",                    \
			MEMBER(struct diff_row, longer)                                            \
	}
#define ROW                                                                                        \
	COUNTS, BOTH("both.median", "median", median_ns), BOTH("both.p95", "p95", p95_ns),         \
		{ "both.total", UNIT_NS, "total", "of A and of B", .get = get_total_times,         \
			AT(struct diff_row, value), .text_only = true },                           \
		{ "change_ns", UNIT_REAL, "change, ns", "of the total time",                       \
			MEMBER(struct diff_row, total_ns) },                                       \
		{ "change_pct", UNIT_CHANGE, "change of the total",                                \
			"of the total time, in percent of A's",                                    \
			MEMBER(struct diff_row, total_pct) },                                      \
		{ "median_change_pct", UNIT_CHANGE, "change",                                      \
			"of the median of one launch or call, `p50_ns`",                           \
			MEMBER(struct diff_row, change.pct) },                                     \
		CHANGE
#define PHASE                                                                                      \
	{ "compared", UNIT_TEXT, "compared", "`span` (on the device) or `host`",                   \
		.get = get_compared, AT(struct diff_row, by_device) },                             \
		SIDES(spans), COUNTS, BOTH("both.span", "span on device", span_ns),                \
		BOTH("both.busy", "busy inside", busy_ns),                                         \
		BOTH("both.host", "on the host", host_ns),                                         \
		{ "factor.text", UNIT_REAL, "factor", "the same, and by what", .get = get_factor,  \
			.text_only = true },                                                       \
		{ "phase", UNIT_TEXT, "name", "its name", .get = get_phase, .text_only = true },   \
		{ "factor", UNIT_REAL, "factor", "A's by B's: 2 means that B is twice as fast",    \
			MEMBER(struct diff_row, factor) },                                         \
		{ "change_pct", UNIT_CHANGE, "change", "of the median, in percent of A's",         \
			MEMBER(struct diff_row, change.pct) },                                     \
		CHANGE
#define ROWS_SHOWN   "verdict,p,both.median,median_change_pct,noise,both.p95,counts,both.total,name"
#define PHASES_SHOWN "verdict,p,both.span,factor.text,noise,both.busy,both.host,counts,phase"
#define COPIES_SHOWN "bytes.a,bytes.b,bytes.change_pct,counts,time.a,time.b,name"
#define ROWS_WITH(name, keys, ...)                                                                 \
	static const struct column name##_columns[] = { __VA_ARGS__, { 0 } };                      \
	static const struct section name = {                                                       \
		.shown = keys,                                                                     \
		.columns = name##_columns,                                                         \
		.each = sizeof(struct diff_row),                                                   \
	}

ROWS_WITH(kernels, ROWS_SHOWN, NAME(UNIT_KERNEL, "name"), SIDES(times), ROW);
ROWS_WITH(operators, ROWS_SHOWN, NAME(UNIT_TEXT, "name"), KIND("kind", "kind of the range"),
	SIDES(times), ROW);
ROWS_WITH(calls, ROWS_SHOWN, NAME(UNIT_TEXT, "name"), KIND("api", "`driver` or `runtime`"),
	SIDES(times), ROW);
ROWS_WITH(copies, COPIES_SHOWN, NAME(UNIT_TEXT, "direction"), SIDES(bytes), ROW,
	{ "bytes.a", UNIT_BYTES, "bytes A", "of A", .get = get_whole,
		AT(struct diff_row, value[DIFF_A].bytes), .text_only = true },
	{ "bytes.b", UNIT_BYTES, "bytes B", "of B", .get = get_whole,
		AT(struct diff_row, value[DIFF_B].bytes), .text_only = true },
	{ "bytes.change_pct", UNIT_CHANGE, "change", "of the bytes", .get = get_bytes_change,
		AT(struct diff_row, value), .text_only = true },
	{ "time.a", UNIT_NS, "time A", "of A", .get = get_whole,
		AT(struct diff_row, value[DIFF_A].total_ns), .text_only = true },
	{ "time.b", UNIT_NS, "time B", "of B", .get = get_whole,
		AT(struct diff_row, value[DIFF_B].total_ns), .text_only = true });
ROWS_WITH(phases, PHASES_SHOWN, NAME(UNIT_TEXT, "name"),
	KIND("kind",
		"kind of the range; of steps how they were found: `numbered`, `optimizer`, `waits`, "
		"`periods` (found by waits, from the end of one step to the next), `repeated`"),
	PHASE);
ROWS_WITH(requests, PHASES_SHOWN, NAME(UNIT_TEXT, "name"), PHASE);

const struct section *const section_diff_rows[DIFF_TABLES] = {
	[TABLE_KERNELS] = &kernels,
	[TABLE_CALLS] = &calls,
	[TABLE_OPERATORS] = &operators,
	[TABLE_COPIES] = &copies,
	[TABLE_PHASES] = &phases,
	[TABLE_STEPS] = &phases,
	[TABLE_REQUESTS] = &requests,
};

FINDER(judged, struct diff, d, d->conclusion.one ? &d->conclusion : NULL)
FINDER(judged_row, struct diff, it, it->conclusion.row)
GETTER(get_from, struct diff_change, c, value_real(c->pct - c->below_pct))
GETTER(get_to, struct diff_change, c, value_real(c->pct + c->above_pct))
GETTER(get_sentences, void, of,
	(struct value){ .kind = VALUE_LIST, .list = of, .n = DIFF_SENTENCES })
GETTER(get_common, void, of, value_text(diff_one_word(diff_common(of))))
GETTER(get_flight, bool, window, value_bool(window[DIFF_A] || window[DIFF_B]))
GETTER(get_kernel_times, bool, it, value_text(*it ? "device" : "host"))
FINDER(known, struct judgement, it, it->known ? row->at : NULL)
FINDER(condition, struct judgement, it, it->of)

static const struct column condition_columns[] = {
	{ "expression", UNIT_TEXT, "condition", "as it was given", .find = condition,
		MEMBER(struct fail_condition, text) },
	{ "value", UNIT_REAL, "value", "what was compared; null: nothing to compare", .find = known,
		MEMBER(struct judgement, value) },
	{ "failed", UNIT_BOOL, "failed", "it was true: exit status 1",
		MEMBER(struct judgement, failed) },
	{ "name", UNIT_TEXT, "name", "the row that has this value",
		MEMBER(struct judgement, where) },
	{ "rows", UNIT_COUNT, "rows", "for how many rows it was true",
		MEMBER(struct judgement, rows) },
	{ "per", UNIT_TEXT, "per", "`launch`, `step` or `request`: the value is of one of these",
		.get = get_one, AT(struct judgement, per) },
	{ "undecided", UNIT_BOOL, "undecided", "no common work to judge by: exit status 2",
		MEMBER(struct judgement, undecided) },
	{ 0 },
};

static const struct section conditions = {
	.columns = condition_columns,
	.each = sizeof(struct judgement),
};

#define LIST(key, heading, meaning, getter, section, member)                                       \
	{                                                                                          \
		key, UNIT_LIST, heading, meaning, .get = getter, .inner = &section,                \
						  AT(struct diff, member)                          \
	}
#define TABLE(key, heading, section, table)                                                        \
	LIST(key, heading, "largest change first", get_array, section, rows[table])
#define WORK(key, unit, heading, meaning, total)                                                   \
	{ key "_a", unit, heading " of A", meaning, .get = get_whole,                              \
		AT(struct diff, sums[total].side[DIFF_A]) },                                       \
	{                                                                                          \
		key "_b", unit, heading " of B", meaning,                                          \
			.get = get_whole, AT(struct diff, sums[total].side[DIFF_B])                \
	}

static const struct column diff_columns[] = {
	LIST("runs.a", "A", "recordings of A", get_array, inputs, inputs[DIFF_A]),
	LIST("runs.b", "B", "recordings of B", get_array, inputs, inputs[DIFF_B]),
	LIST("conclusion", "conclusion", "three sentences", get_sentences, texts,
		conclusion.sentence),
	{ "judged.of", UNIT_TEXT, "subject of the first sentence",
		"`request`, `step`, `launch`, `call` or `run`; null, as the others, if nothing can be judged",
		.get = get_one, AT(struct diff, conclusion.one) },
	{ "judged.name", UNIT_TEXT, "its name", "the row that it is; null: the mean of several",
		.find = judged_row, MEMBER(struct diff_row, name) },
	{ "judged.names", UNIT_COUNT, "rows", "of how many rows",
		MEMBER(struct diff, conclusion.rows) },
	{ "judged.by_device", UNIT_BOOL, "by device", "times are the device's",
		MEMBER(struct diff, conclusion.by_device) },
	{ "judged.a_ns", UNIT_NS, "A", "of one", .get = get_whole, .find = judged,
		AT(struct diff_conclusion, side[DIFF_A]) },
	{ "judged.b_ns", UNIT_NS, "B", "of one", .get = get_whole, .find = judged,
		AT(struct diff_conclusion, side[DIFF_B]) },
	{ "judged.change_pct", UNIT_CHANGE, "change", "in percent of A", .find = judged,
		MEMBER(struct diff_conclusion, change.pct) },
	{ "judged.from_pct", UNIT_CHANGE, "from", "99 % confidence interval of the change",
		.get = get_from, .find = judged, AT(struct diff_conclusion, change) },
	{ "judged.to_pct", UNIT_CHANGE, "to", "its other end", .get = get_to, .find = judged,
		AT(struct diff_conclusion, change) },
	{ "judged.verdict", UNIT_TEXT, "verdict", "`faster`, `slower`, `same`; null: cannot tell",
		.get = get_verdict, AT(struct diff, conclusion.change.verdict) },
	{ "judged.p", UNIT_CHANCE, "p-value", "of the change", .find = judged,
		MEMBER(struct diff_conclusion, change.p) },
	{ "work.same", UNIT_BOOL, "same work", "to within 1 %; else no total of time has a verdict",
		MEMBER(struct diff, work.same) },
	{ "work.common", UNIT_TEXT, "common work",
		"`request`, `step` or `launch`, by which fail conditions judge totals of different work",
		.get = get_common },
	{ "work.flight", UNIT_BOOL, "flight", "a flight recording is among them", .get = get_flight,
		AT(struct diff, window) },
	WORK("work.launches", UNIT_COUNT, "launches", "how many there are", TOTAL_LAUNCHES),
	WORK("work.steps", UNIT_COUNT, "steps", "how many there are", TOTAL_STEPS),
	WORK("work.requests", UNIT_COUNT, "requests", "how many there are", TOTAL_REQUESTS),
	WORK("work.copied_bytes", UNIT_BYTES, "copied", "of all copies", TOTAL_COPIED),
	{ "kernel_times", UNIT_TEXT, "kernels by",
		"`device` or `host`: what kernels are compared by", .get = get_kernel_times,
		AT(struct diff, by_device) },
	{ "threshold_pct", UNIT_REAL, "threshold", "smaller changes count as none",
		MEMBER(struct diff, threshold_pct) },
	LIST("notes", "notes", "what limits the comparison", get_array, texts, notes),
	LIST("fail_conditions", "fail conditions", "in the order of `--fail-on`", get_array,
		conditions, judged),
	LIST("totals", "totals", "of each side", get_totals, section_diff_totals, sums),
	LIST("breakdown", "where the wall time went", "parts of the wall time", get_breakdown,
		section_diff_parts, sums[TOTAL_BREAKDOWN]),
	LIST("critical_path", "critical path", "parts of the critical path", get_path,
		section_diff_parts, sums[TOTAL_PATH]),
	TABLE("phases", "phases", phases, TABLE_PHASES),
	TABLE("steps", "steps", phases, TABLE_STEPS),
	TABLE("requests", "requests", requests, TABLE_REQUESTS),
	TABLE("kernels", "kernels", kernels, TABLE_KERNELS),
	TABLE("calls", "calls", calls, TABLE_CALLS),
	TABLE("operators", "operators", operators, TABLE_OPERATORS),
	TABLE("memops", "copies and memsets", copies, TABLE_COPIES),
	{ 0 },
};

const struct section section_diff = {
	.form = SECTION_MEMBERS,
	.columns = diff_columns,
};

void diff_print_json(const struct diff *d, FILE *out)
{
	struct rows rows = { .section = &section_diff, .v = d, .n = 1 };
	const struct row row = row_at(&rows, 0);
	struct json j;
	json_begin_document(&j, out);
	section_put_row(&j, &row);
	json_end_object(&j);
}
