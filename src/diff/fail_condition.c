/* See fail_condition.h.  An expression is read from its end: names of kernels may hold anything, <,
 * > and blanks included, but the value holds no operator. */
#include "diff/fail_condition.h"

#include <ctype.h>
#include <fnmatch.h>

#include "base/expect.h"
#include "base/slice.h"
#include "base/text.h"

static struct slice trim(struct slice w)
{
	while (w.n && isspace((unsigned char)w.at[0]))
		w.at++, w.n--;
	while (w.n && isspace((unsigned char)w.at[w.n - 1]))
		w.n--;
	return w;
}

struct unit_name {
	const char *name;
	enum unit unit;
	double factor;
};

static const struct unit_name units[] = { { "", UNIT_COUNT, 1 }, { "ns", UNIT_NS, 1 },
	{ "us", UNIT_NS, 1e3 }, { "ms", UNIT_NS, 1e6 }, { "s", UNIT_NS, 1e9 },
	{ "B", UNIT_BYTES, 1 }, { "KB", UNIT_BYTES, 1e3 }, { "MB", UNIT_BYTES, 1e6 },
	{ "GB", UNIT_BYTES, 1e9 }, { "KiB", UNIT_BYTES, 1024 }, { "MiB", UNIT_BYTES, 1048576 },
	{ "GiB", UNIT_BYTES, 1073741824 } };

static int wrong_value(const struct fail_condition *g, struct slice v, struct error *err)
{
	return error_set(err, -EINVAL,
		"'%.200s': '%.*s' is no value. Write +5%% (a change against A), 10ms, 4GiB or 3",
		g->text, (int)(v.n < 60 ? v.n : 60), v.at);
}

static int take_unit(struct fail_condition *g, struct slice v, struct slice unit, struct error *err)
{
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (!slice_is(unit, units[i].name))
			continue;
		if (units[i].unit != g->unit && (unit.n || g->unit == UNIT_NS) && g->value != 0)
			return error_set(err, -EINVAL, "'%.200s' compares a %s with %.*s", g->text,
				g->unit == UNIT_NS      ? "time (write ns, us, ms or s)"
				: g->unit == UNIT_BYTES ? "number of bytes"
							: "number",
				(int)(v.n < 60 ? v.n : 60), v.at);
		g->value *= units[i].factor;
		return 0;
	}
	return wrong_value(g, v, err);
}

static int parse_value(struct fail_condition *g, struct slice v, struct error *err)
{
	char text[64], *end;
	v = trim(v);
	if (!v.n || v.n >= sizeof text || memchr(v.at, 'x', v.n) || memchr(v.at, 'X', v.n))
		return wrong_value(g, v, err);
	memcpy(text, v.at, v.n);
	text[v.n] = '\0';
	const bool is_signed = text[0] == '+' || text[0] == '-';
	if (!isdigit((unsigned char)text[is_signed]))
		return wrong_value(g, v, err);
	g->value = strtod(text, &end);
	if (!isfinite(g->value))
		return wrong_value(g, v, err);
	g->against = is_signed ? AGAINST_CHANGE : AGAINST_NUMBER;
	const struct slice unit = trim((struct slice){ end, strlen(end) });
	if (!slice_is(unit, "%"))
		return take_unit(g, v, unit, err);
	if (!is_signed)
		return error_set(err, -EINVAL,
			"'%.200s': a percentage is a change against A: write +%s or -%s", g->text,
			text, text);
	g->against = AGAINST_PCT;
	return 0;
}

/* Splits at the last operator; false when there is none. */
static bool split(const char *text, struct slice *ret_left, enum condition_op *ret_op,
	struct slice *ret_value)
{
	static const struct {
		const char *text;
		enum condition_op op;
	} ops[] = { { ">=", OP_LEAST }, { "<=", OP_MOST }, { "==", OP_EQUAL }, { "!=", OP_OTHER },
		{ ">", OP_MORE }, { "<", OP_LESS } };
	size_t end = strlen(text);
	while (end && !strchr("<>=", text[end - 1]))
		end--;
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		const size_t n = strlen(ops[i].text);
		if (end < n || memcmp(text + end - n, ops[i].text, n) != 0)
			continue;
		*ret_op = ops[i].op;
		*ret_left = trim((struct slice){ text, end - n });
		expect(ret_left->at + ret_left->n <= text + end,
			"the metric stands before the operator");
		*ret_value = (struct slice){ text + end, strlen(text + end) };
		return true;
	}
	return false;
}

static struct slice first_word(struct slice *rest)
{
	struct slice w = *rest = trim(*rest);
	for (w.n = 0; w.n < rest->n && !isspace((unsigned char)rest->at[w.n]);)
		w.n++;
	*rest = trim((struct slice){ rest->at + w.n, rest->n - w.n });
	return w;
}

enum metric_of { METRIC_OF_TABLE, METRIC_OF_ONE, METRIC_OF_ROW, METRIC_OF_ROWS, METRIC_OF_RUN };

struct metric_row {
	const char *name, *help;
	enum metric_of of;
	unsigned constant; /* of enum diff_table, condition_metric or diff_total */
	enum unit unit;
};

#include "diff_metrics.h"

#define METRICS        (sizeof metric_rows / sizeof metric_rows[0])
#define METRICS_LISTED 12u

static const struct metric_row *find_metric(struct slice w)
{
	for (size_t i = 0; i < METRICS; i++)
		if (slice_is(w, metric_rows[i].name))
			return &metric_rows[i];
	return NULL;
}

static bool is_of_rows(const struct metric_row *m)
{
	return m->of == METRIC_OF_ROW || m->of == METRIC_OF_ROWS;
}

/* The nearest of those that may stand there, nearest first: whatever has the word in it is. */
static void list_metrics(const char *word, bool of_rows, char *text, size_t bytes)
{
	size_t n = 0, listed = 0;
	for (unsigned off = 0; off <= 32; off++)
		for (size_t i = 0; i < METRICS && listed < METRICS_LISTED; i++) {
			const struct metric_row *m = &metric_rows[i];
			const unsigned far =
				strstr(m->name, word) ? 0 : text_distance(word, m->name, 32);
			if (far != off || (of_rows && !is_of_rows(m)) || n >= bytes)
				continue;
			listed++;
			const int put =
				snprintf(text + n, bytes - n, "%s%s", n ? ", " : "", m->name);
			n += put > 0 ? (size_t)put : 0;
		}
}

static int wrong_metric(
	const struct fail_condition *g, struct slice w, bool of_rows, struct error *err)
{
	char word[33], list[400] = "";
	snprintf(word, sizeof word, "%.*s", (int)(w.n < 32 ? w.n : 32), w.at);
	list_metrics(word, of_rows, list, sizeof list);
	if (!w.n)
		return error_set(err, -EINVAL,
			"'%.100s': which metric? There are %s …. `weir diff --fail-on=help` lists all",
			g->text, list);
	return error_set(err, -EINVAL,
		"'%.100s': '%s' is no metric. There are %s …. `weir diff --fail-on=help` lists all",
		g->text, word, list);
}

/* "per step", behind a total. */
static int parse_per(struct fail_condition *g, struct slice rest, struct error *err)
{
	for (enum diff_one one = ONE_LAUNCH; one <= ONE_REQUEST; one++)
		if (slice_is(rest, diff_one_word(one))) {
			g->per = one;
			return 0;
		}
	return error_set(
		err, -EINVAL, "'%.200s': per what? There are launch, step and request", g->text);
}

static int parse_pattern(
	struct fail_condition *g, const char *name, struct slice rest, struct error *err)
{
	struct slice behind = rest;
	if (!rest.n)
		return 0;
	if (g->metric == METRIC_TOTAL_OF_RUN && slice_is(first_word(&behind), "per"))
		return parse_per(g, behind, err);
	if (!slice_is(first_word(&rest), "of") || !rest.n)
		return error_set(err, -EINVAL,
			"'%.200s': after the metric comes an operator, or 'of' and a name",
			g->text);
	if (g->metric == METRIC_TOTAL_OF_RUN)
		return error_set(err, -EINVAL, "'%.200s': %s is of the whole run, not of a name",
			g->text, name);
	if (rest.n > 1 && rest.at[0] == '"' && rest.at[rest.n - 1] == '"')
		rest = (struct slice){ rest.at + 1, rest.n - 2 };
	if (rest.n >= sizeof g->pattern)
		return error_set(
			err, -EINVAL, "the name in '%.60s…' is too long. Use a *", g->text);
	memcpy(g->pattern, rest.at, rest.n);
	g->pattern[rest.n] = '\0';
	return 0;
}

static int parse_metric(struct fail_condition *g, struct slice left, struct error *err)
{
	struct slice rest = left, w = first_word(&rest);
	const struct metric_row *m = find_metric(w);
	const bool of_one = m && m->of == METRIC_OF_ONE,
		   of_rows = of_one || (m && m->of == METRIC_OF_TABLE);
	g->table = of_rows ? (enum diff_table)m->constant : TABLE_KERNELS;
	if (of_rows) {
		struct slice behind = rest;
		w = first_word(&behind);
		if (of_one && (!w.n || slice_is(w, "of")))
			w = (struct slice){ "p50", 3 };
		else
			rest = behind;
		m = find_metric(w);
	}
	if (!m || (of_rows ? !is_of_rows(m) : m->of < METRIC_OF_ROW))
		return wrong_metric(g, w, of_rows, err);
	g->unit = m->unit;
	if (m->of == METRIC_OF_RUN)
		g->total = (enum diff_total)m->constant;
	else
		g->metric = (enum condition_metric)m->constant;
	expect(m->of != METRIC_OF_RUN || g->unit == diff_total_name(g->total).unit,
		"a total has one unit");
	return parse_pattern(g, m->name, rest, err);
}

void condition_print_help(FILE *out)
{
	static const char *const of[] = { [METRIC_OF_TABLE] = "before a metric",
		[METRIC_OF_ONE] = "before a metric, or alone",
		[METRIC_OF_ROW] = "each row",
		[METRIC_OF_ROWS] = "all rows",
		[METRIC_OF_RUN] = "the whole run" };
	static const char *const values[] = {
		[UNIT_NS] = "10ms", [UNIT_COUNT] = "3", [UNIT_BYTES] = "4GiB"
	};
	fputs("[kernel|call|operator|phase] METRIC [of PATTERN] OP VALUE\n"
	      "launch|step|request [METRIC] [of PATTERN] OP VALUE\n"
	      "METRIC per launch|step|request OP VALUE\n\n",
		out);
	struct table t = table_of("<metric|<of|>value|<meaning");
	for (size_t i = 0; i < METRICS; i++) {
		const struct metric_row *m = &metric_rows[i];
		table_cell(&t, "%s", m->name);
		table_cell(&t, "%s", of[m->of]);
		table_cell(&t, "%s", m->of == METRIC_OF_TABLE ? "" : values[m->unit]);
		table_cell(&t, "%s", m->help);
	}
	table_print(&t, out);
	fputs("\nOP: > >= < <= == !=.  A VALUE with a sign is a change against A: +10ms, -1, +5%; "
	      "without one it is B's.\nIf A and B did different work, a change of a time of the whole run is judged per "
	      "request, step or launch.\n",
		out);
}

int condition_parse(const char *text, struct fail_condition *ret_condition, struct error *err)
{
	struct fail_condition g = { .text = text };
	struct slice left, value;
	if (!split(text, &left, &g.op, &value))
		return error_set(err, -EINVAL,
			"'%.200s' compares nothing: write METRIC OP VALUE, 'p95 > +5%%' say", text);
	int e = parse_metric(&g, left, err);
	if (!e)
		e = parse_value(&g, value, err);
	if (!e && g.metric >= METRIC_SLOWER && g.against != AGAINST_NUMBER)
		e = error_set(err, -EINVAL,
			"'%.200s': A has no number of rows to compare with. Write a "
			"plain number",
			text);
	expect(e || (g.table < DIFF_TABLES && g.total < DIFF_SUMS),
		"what a condition is about is in the tables");
	if (!e)
		*ret_condition = g;
	return e;
}

static bool compare(enum condition_op op, double a, double b)
{
	switch (op) {
	case OP_MORE:
		return a > b;
	case OP_LEAST:
		return a >= b;
	case OP_LESS:
		return a < b;
	case OP_MOST:
		return a <= b;
	case OP_EQUAL:
		return a == b;
	case OP_OTHER:
		return a != b;
	}
	return false;
}

/* The value that the condition compares, from both sides; NAN if there is none. */
static double measure(const struct fail_condition *g, double a, double b)
{
	if (g->against == AGAINST_NUMBER)
		return b;
	if (g->against == AGAINST_CHANGE || a == b)
		return b - a;
	return a == 0 ? (b > 0 ? INFINITY : -INFINITY) : (b - a) / fabs(a) * 100;
}

/* By what a sum of times has to be divided: those of different work can't be compared. */
static enum diff_one per_of(const struct fail_condition *g, const struct diff *d, bool is_time)
{
	if (g->per != ONE_NONE || !is_time || g->against == AGAINST_NUMBER || d->work.same)
		return g->per;
	return diff_common(d);
}

static bool lacks_common(const struct fail_condition *g, const struct diff *d, bool is_time)
{
	return is_time && g->against != AGAINST_NUMBER && !d->work.same && g->per == ONE_NONE &&
	       diff_common(d) == ONE_NONE;
}

static double row_total(
	const struct diff *d, const struct diff_row *row, enum diff_side_id side, enum diff_one per)
{
	const struct diff_value *v = &row->value[side];
	const double times = per == ONE_NONE     ? 1
			     : per == ONE_LAUNCH ? v->count
						 : diff_count(d, per, side);
	return v->there && times > 0 ? v->total_ns / times : v->total_ns;
}

static double row_value(const struct fail_condition *g, const struct diff *d,
	const struct diff_row *row, enum diff_side_id side)
{
	const struct diff_value *v = &row->value[side];
	switch (g->metric) {
	case METRIC_COUNT:
		return v->count;
	case METRIC_TOTAL:
		return row_total(d, row, side, per_of(g, d, true));
	case METRIC_MEAN:
		return v->mean_ns;
	case METRIC_P50:
		return v->median_ns;
	case METRIC_P95:
		return v->p95_ns;
	default:
		return v->p99_ns;
	}
}

/* The wall time of a flight recording is that of the program, and its counts are of the end. */
static bool is_of_window(const struct diff *d, enum diff_total t)
{
	const bool wall = t == TOTAL_WALL || t >= TOTAL_BREAKDOWN;
	return wall && (d->window[DIFF_A] || d->window[DIFF_B]);
}

static void judge_total(const struct fail_condition *g, const struct diff *d, struct judgement *j)
{
	const bool is_time = g->unit == UNIT_NS;
	double value[DIFF_SIDES];
	j->per = per_of(g, d, is_time);
	j->undecided =
		lacks_common(g, d, is_time) ||
		(is_of_window(d, g->total) && (g->against != AGAINST_NUMBER || j->per != ONE_NONE));
	if (j->undecided)
		return;
	for (int s = 0; s < DIFF_SIDES; s++) {
		const double times =
			j->per == ONE_NONE ? 1 : diff_count(d, j->per, (enum diff_side_id)s);
		value[s] = times > 0 ? d->sums[g->total].side[s] / times : NAN;
	}
	j->value = measure(g, value[DIFF_A], value[DIFF_B]);
	j->known = !isnan(j->value);
	j->failed = j->known && compare(g->op, j->value, g->value);
}

/* The row that is named is the one farthest in the condition's direction. */
static bool farther(
	const struct fail_condition *g, const struct judgement *j, double value, bool failed)
{
	if (!j->known || failed != j->failed)
		return !j->known || failed;
	if (g->op == OP_LESS || g->op == OP_MOST)
		return value < j->value;
	return value > j->value;
}

/* Requests that nobody names last as long as steps that a wait ends, as under weir run. */
static enum diff_table compared_table(const struct fail_condition *g, const struct diff *d)
{
	const bool named = d->rows[TABLE_REQUESTS].n;
	return g->table == TABLE_REQUESTS && !named ? TABLE_STEPS : g->table;
}

static void judge_rows(const struct fail_condition *g, const struct diff *d, struct judgement *j)
{
	const enum diff_table table = compared_table(g, d);
	j->unmatched = *g->pattern;
	if (g->metric == METRIC_TOTAL) {
		j->per = per_of(g, d, true);
		j->undecided = lacks_common(g, d, true);
	}
	j->undecided |= table == TABLE_STEPS && g->against != AGAINST_NUMBER &&
			g->metric != METRIC_COUNT && !d->work.steps;
	for (size_t i = 0; i < d->rows[table].n && !j->undecided; i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		if (*g->pattern && fnmatch(g->pattern, row->name, FNM_NOESCAPE))
			continue;
		j->unmatched = false;
		const double value =
			measure(g, row_value(g, d, row, DIFF_A), row_value(g, d, row, DIFF_B));
		if (isnan(value))
			continue;
		const bool failed = compare(g->op, value, g->value);
		j->rows += failed;
		if (!farther(g, j, value, failed))
			continue;
		j->known = true;
		j->failed = failed;
		j->value = value;
		j->where = row->name;
	}
	expect(!j->failed == !j->rows, "a condition fails if it does for a row");
	expect(j->rows <= d->rows[table].n, "rows that fail are part of all");
}

static void count_rows(const struct fail_condition *g, const struct diff *d, struct judgement *j)
{
	static const enum diff_verdict verdicts[] = { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_NEW,
		VERDICT_GONE };
	uint64_t n = 0;
	if (!expect(g->metric - METRIC_SLOWER < sizeof verdicts / sizeof verdicts[0],
		    "rows are counted by a verdict"))
		return;
	if (d->apart && g->table == TABLE_KERNELS && g->metric <= METRIC_FASTER)
		return; /* nobody judged */
	const enum diff_table table = compared_table(g, d);
	array_each(const struct diff_row, row, d->rows[table]) {
		if (row->change.verdict != verdicts[g->metric - METRIC_SLOWER])
			continue;
		n += !*g->pattern || !fnmatch(g->pattern, row->name, FNM_NOESCAPE);
	}
	j->known = true;
	j->value = (double)n;
	j->failed = compare(g->op, j->value, g->value);
}

void condition_judge(
	const struct fail_condition *g, const struct diff *d, struct judgement *ret_judgement)
{
	struct judgement j = { .of = g };
	if (diff_is_empty(d, DIFF_A) || diff_is_empty(d, DIFF_B))
		j.undecided = true;
	else if (g->metric == METRIC_TOTAL_OF_RUN)
		judge_total(g, d, &j);
	else if (g->metric >= METRIC_SLOWER)
		count_rows(g, d, &j);
	else
		judge_rows(g, d, &j);
	*ret_judgement = j;
}
