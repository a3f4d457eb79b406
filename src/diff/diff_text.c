/* The comparison as text: three sentences, fail conditions, then totals and tables, what changed
 * most on top. */
#include "diff/diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/table.h"
#include "base/text.h"
#include "diff/fail_condition.h"
#include "trace/activity.h"

#include "base/banned.h"

#define NAME_CUT 90 /* bytes of a name */

static const char *text_of(struct number *n, enum unit unit, double value)
{
	const uint64_t v = value > 0 ? (uint64_t)value : 0;
	if (isnan(value))
		return "-";
	return unit == UNIT_NS      ? number_ns(n, v)
	       : unit == UNIT_BYTES ? number_bytes(n, v)
				    : number_count(n, v);
}

static void cell(struct table *t, enum unit unit, double value)
{
	struct number n;
	table_cell(t, "%s", text_of(&n, unit, value));
}

static const char *percent(struct number *n, double pct)
{
	struct number factor;
	if (isnan(pct))
		snprintf(n->text, sizeof n->text, "-");
	else if (pct >= 99900)
		snprintf(n->text, sizeof n->text, "x %s",
			number_count(&factor, (uint64_t)fmin(1.5 + pct / 100, 1e18)));
	else if (pct > 999.95)
		snprintf(n->text, sizeof n->text, "x %.3g", 1 + pct / 100);
	else
		snprintf(n->text, sizeof n->text, "%+.1f %%", pct == 0 ? 0 : pct);
	return n->text;
}

/* "±1.2 %": a change that is no larger is none.  "large": of samples that say nothing. */
static void cell_noise(struct table *t, double pct)
{
	if (isnan(pct))
		table_none(t);
	else if (pct > DIFF_NOISE_MOST_PCT)
		table_cell(t, "large");
	else
		table_cell(t, "±%.1f %%", pct);
}

static void cell_change(struct table *t, double pct)
{
	struct number n;
	table_cell(t, "%s", percent(&n, pct));
}

/* How often chance alone makes such a difference. */
static void cell_chance(struct table *t, double p)
{
	if (isnan(p))
		table_none(t);
	else if (p < 0.001)
		table_cell(t, "<0.1 %%");
	else
		table_percent(t, p * 100);
}

static void cell_verdict(struct table *t, enum diff_verdict v)
{
	const char *word = diff_verdict_word(v);
	table_cell(t, "%s", word ? word : "-");
}

static void put_side(const struct diff *d, const struct text_page *p, enum diff_side_id side)
{
	const size_t n = d->inputs[side].n;
	const struct diff_input *first = &d->inputs[side].v[0];
	fprintf(p->out, "%s%s%s  ", p->bold, side == DIFF_A ? "A" : "B", p->plain);
	text_put_safe(p->out, first->file);
	if (n > 1)
		fprintf(p->out, " and %zu more run%s", n - 1, n == 2 ? "" : "s");
	fputs(": ", p->out);
	text_put_safe(p->out, *first->program ? first->program : "(program unknown)");
	putc('\n', p->out);
}

static void put_notes(const struct diff *d, const struct text_page *p)
{
	for (size_t i = 0; i < d->notes.n; i++)
		fprintf(p->out, "\n%s\n", d->notes.v[i]);
}

/* ---- fail conditions ---- */

static void put_condition(const struct text_page *p, const struct judgement *j)
{
	const struct fail_condition *g = j->of;
	struct text_short name;
	struct number n;
	fprintf(p->out, "  %s%s%s  ", j->failed ? p->red : "", j->failed ? "FAIL" : "pass",
		p->plain);
	text_put_safe(p->out, g->text);
	if (j->undecided) {
		fputs(": can't be judged, A and B have no work in common\n", p->out);
		return;
	}
	if (!j->known) {
		fputs(j->unmatched ? ": nothing to compare, no recording has that name\n"
				   : ": nothing to compare\n",
			p->out);
		return;
	}
	if (g->against == AGAINST_PCT)
		fprintf(p->out, ": %s", isinf(j->value) ? "A has none" : percent(&n, j->value));
	else
		fprintf(p->out, ": %s%s",
			g->against == AGAINST_CHANGE ? (j->value < 0 ? "-" : "+") : "",
			text_of(&n, g->unit, fabs(j->value)));
	if (j->where) {
		fputs(" of ", p->out);
		text_put_safe(p->out, text_short(&name, j->where, NAME_CUT));
	}
	if (j->rows > 1)
		fprintf(p->out, ", and %" PRIu64 " more", j->rows - 1);
	if (j->per != ONE_NONE)
		fprintf(p->out, " a %s%s", diff_one_word(j->per),
			j->per == g->per ? "" : ", since A and B did different work");
	putc('\n', p->out);
}

static void put_conditions(const struct diff *d, const struct text_page *p)
{
	if (d->judged.n)
		page_heading(p, "Fail conditions");
	for (size_t i = 0; i < d->judged.n; i++)
		put_condition(p, &d->judged.v[i]);
}

/* ---- tables ---- */

static bool is_nothing(double value)
{
	return isnan(value) || value == 0;
}

/* Those from `from` to before `to`; without a heading where none is known, or all are 0. */
static void put_sums(const struct diff *d, const struct text_page *p, const char *heading,
	unsigned from, unsigned to)
{
	const char *const headings[] = { "A", "B", "change", "noise", "verdict", "p-value",
		from ? "part" : "total" };
	struct table t;
	unsigned shown = 0;
	table_init(&t, ">>>><><", headings);
	for (unsigned i = from; i < to; i++) {
		const struct diff_sum *s = &d->sums[i];
		if (is_nothing(s->side[DIFF_A]) && is_nothing(s->side[DIFF_B]))
			continue;
		shown++;
		cell(&t, diff_total_name(i).unit, s->side[DIFF_A]);
		cell(&t, diff_total_name(i).unit, s->side[DIFF_B]);
		cell_change(&t, s->change.pct);
		cell_noise(&t, s->change.noise_pct);
		cell_verdict(&t, s->change.verdict);
		cell_chance(&t, s->change.p);
		table_cell(&t, "%s", s->text);
	}
	if (shown) {
		page_heading(p, heading);
		table_print(&t, p->out, p->dim, p->plain);
	}
	table_fini(&t);
}

static void cell_counts(struct table *t, const struct diff_row *row)
{
	struct number a, b;
	const double from = row->value[DIFF_A].count, to = row->value[DIFF_B].count;
	if (from == to)
		cell(t, UNIT_COUNT, to);
	else
		table_cell(
			t, "%s → %s", text_of(&a, UNIT_COUNT, from), text_of(&b, UNIT_COUNT, to));
}

static void cell_both(struct table *t, double a, double b)
{
	struct number from, to;
	table_cell(t, "%s → %s", text_of(&from, UNIT_NS, a), text_of(&to, UNIT_NS, b));
}

static void cell_name(struct table *t, const char *name)
{
	table_cell_name(t, name, NAME_CUT);
}

/* Ranges that are no operators have a table of their own. */
static bool belongs(const struct diff_row *row, enum diff_table table)
{
	return table != TABLE_OPERATORS || !strcmp(row->kind, range_kind_name(RANGE_OPERATOR));
}

static void put_row(struct table *t, const struct diff_row *row, enum diff_table table)
{
	const struct diff_value *a = &row->value[DIFF_A], *b = &row->value[DIFF_B];
	cell_verdict(t, row->change.verdict);
	cell_chance(t, row->change.p);
	cell_both(t, a->median_ns, b->median_ns);
	cell_change(t, row->change.pct);
	cell_noise(t, row->change.noise_pct);
	cell_both(t, a->p95_ns, b->p95_ns);
	cell_counts(t, row);
	cell_both(t, a->there ? a->total_ns : NAN, b->there ? b->total_ns : NAN);
	cell_name(t, table == TABLE_KERNELS ? text_kernel(row->name) : row->name);
}

static void put_rows(
	const struct diff *d, const struct text_page *p, enum diff_table table, const char *title)
{
	static const char *const headings[] = { "verdict", "p-value", "median", "change", "noise",
		"p95", "count", "total", "name" };
	struct table t;
	size_t rows = 0, put = 0;
	for (size_t i = 0; i < d->rows[table].n; i++)
		rows += belongs(&d->rows[table].v[i], table);
	if (!rows)
		return;
	page_heading(p, title);
	table_init(&t, "<>>>>>>><", headings);
	for (size_t i = 0; put < page_shown(p, rows); i++) {
		if (!belongs(&d->rows[table].v[i], table))
			continue;
		put_row(&t, &d->rows[table].v[i], table);
		put++;
	}
	expect(put <= rows, "no more rows are shown than there are");
	page_end_table(p, &t, rows);
}

/* One of each, not all together: see diff.h. */
static void put_phases(
	const struct diff *d, const struct text_page *p, enum diff_table table, const char *title)
{
	static const char *const headings[] = { "verdict", "p-value", "span on device", "factor",
		"noise", "busy inside", "on the host", "count", "name" };
	bool spans = false;
	struct table t;
	if (!d->rows[table].n)
		return;
	page_heading(p, title);
	table_init(&t, "<>>>>>>><", headings);
	for (size_t i = 0; i < page_shown(p, d->rows[table].n); i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		const struct diff_value *a = &row->value[DIFF_A], *b = &row->value[DIFF_B];
		cell_verdict(&t, row->change.verdict);
		cell_chance(&t, row->change.p);
		cell_both(&t, a->span_ns, b->span_ns);
		spans |= !isnan(a->span_ns) || !isnan(b->span_ns);
		if (isnan(row->factor))
			table_none(&t);
		else
			table_cell(&t, "%.2f×%s", row->factor, row->by_device ? "" : " host");
		cell_noise(&t, row->change.noise_pct);
		cell_both(&t, a->busy_ns, b->busy_ns);
		cell_both(&t, a->host_ns, b->host_ns);
		cell_counts(&t, row);
		cell_name(&t, strcmp(row->kind ? row->kind : "", DIFF_BY_PERIODS)
				      ? row->name
				      : "step, from the end of the one before");
	}
	page_end_table(p, &t, d->rows[table].n);
	if (spans)
		fprintf(p->out, "%s\n", range_span_meaning);
}

static void put_copies(const struct diff *d, const struct text_page *p)
{
	static const char *const headings[] = { "bytes A", "bytes B", "change", "count", "time A",
		"time B", "direction" };
	struct table t;
	if (!d->rows[TABLE_COPIES].n)
		return;
	page_heading(p, "Copies and memsets");
	table_init(&t, ">>>>>><", headings);
	for (size_t i = 0; i < d->rows[TABLE_COPIES].n; i++) {
		const struct diff_row *row = &d->rows[TABLE_COPIES].v[i];
		const double a = row->value[DIFF_A].bytes, b = row->value[DIFF_B].bytes;
		cell(&t, UNIT_BYTES, a);
		cell(&t, UNIT_BYTES, b);
		cell_change(&t, a > 0 ? (b - a) / a * 100 : b > 0 || isnan(a + b) ? NAN : 0);
		cell_counts(&t, row);
		cell(&t, UNIT_NS, row->value[DIFF_A].total_ns);
		cell(&t, UNIT_NS, row->value[DIFF_B].total_ns);
		cell_name(&t, row->name);
	}
	table_print(&t, p->out, p->dim, p->plain);
	table_fini(&t);
}

/* ---- how it begins and ends ---- */

static void put_conclusion(const struct diff *d, const struct text_page *p)
{
	for (size_t i = 0; i < DIFF_SENTENCES; i++) {
		text_put_safe(p->out, d->conclusion.sentence[i]);
		putc('\n', p->out);
	}
	putc('\n', p->out);
}

static void put_counted(const struct text_page *p, const size_t *by)
{
	static const enum diff_verdict order[] = { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_NEW,
		VERDICT_GONE, VERDICT_SAME };
	bool any = false;
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		if (!by[order[i]])
			continue;
		fprintf(p->out, "%s%zu %s", any ? ", " : "", by[order[i]],
			diff_verdict_word(order[i]));
		any = true;
	}
	if (by[VERDICT_NONE])
		fprintf(p->out, "%s%zu undecided", any ? ", " : "", by[VERDICT_NONE]);
}

static void put_meaning(const struct diff *d, const struct text_page *p)
{
	const enum diff_table table = d->rows[TABLE_KERNELS].n ? TABLE_KERNELS : TABLE_CALLS;
	size_t by[VERDICT_GONE + 1] = { 0 };
	for (size_t i = 0; i < d->rows[table].n; i++)
		by[d->rows[table].v[i].change.verdict]++;
	if (d->rows[table].n) {
		fprintf(p->out, "\n%s: ", table == TABLE_KERNELS ? "Kernels" : "Calls");
		put_counted(p, by);
		fputs(".\n", p->out);
	}
	fputs("Verdict, change and noise are about the median of one launch, operator or call. More of "
	      "them\nmake none slower. A dash means that Weir cannot tell: too few calls, no times, or "
	      "one run\na side. Tables begin with the largest change of the total.\n",
		p->out);
	if (d->analysed[DIFF_A] && d->analysed[DIFF_B])
		fputs("A part may leave the critical path and take as long as before.\n", p->out);
	if (!d->work.same)
		fputs("Totals have no verdict: A and B did different work.\n", p->out);
	if (d->inputs[DIFF_A].n < 2 || d->inputs[DIFF_B].n < 2)
		fputs("With one run on a side, verdicts rest on the single calls of that run. The "
		      "variation\nbetween runs needs several: weir diff A... -- B...\n",
			p->out);
}

void diff_print_text(const struct diff *d, FILE *out, unsigned rows, bool colour)
{
	const struct text_page p = text_page_of(out, rows, colour);
	put_conclusion(d, &p);
	put_side(d, &p, DIFF_A);
	put_side(d, &p, DIFF_B);
	put_notes(d, &p);
	put_conditions(d, &p);
	put_sums(d, &p, "Totals", 0, DIFF_TOTALS);
	put_sums(d, &p, "Where the wall time went", TOTAL_BREAKDOWN, TOTAL_PATH);
	put_sums(d, &p, "Critical path: what was waited for last", TOTAL_PATH, DIFF_SUMS);
	put_phases(d, &p, TABLE_REQUESTS, "Requests: median of one");
	put_phases(d, &p, TABLE_STEPS, "Steps: median of one");
	put_phases(d, &p, TABLE_PHASES, "Phases (ranges that the program names): median of each");
	put_rows(d, &p, TABLE_KERNELS,
		d->by_device ? "Kernels by change of their time on the device"
			     : "Kernels by change of their launches' time on the host");
	put_rows(d, &p, TABLE_OPERATORS, "Operators by change of their time");
	put_rows(d, &p, TABLE_CALLS, "Calls by change of their time on the host");
	put_copies(d, &p);
	put_meaning(d, &p);
}
