/* The comparison as text: three sentences, fail conditions, then totals and tables, what changed
 * most on top. */
#include "diff/diff.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "diff/fail_condition.h"
#include "section/view.h"

#define NAME_CUT 90 /* bytes of a name */

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
		fprintf(p->out, ": %s",
			isinf(j->value) ? "A has none" : number_change(&n, j->value));
	else
		fprintf(p->out, ": %s%s",
			g->against == AGAINST_CHANGE ? (j->value < 0 ? "-" : "+") : "",
			diff_number(&n, g->unit, fabs(j->value)));
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

/* Ranges that are no operators have a table of their own. */
static bool is_operator(const struct row *row)
{
	return !strcmp(((const struct diff_row *)row->at)->kind, range_kind_name(RANGE_OPERATOR));
}

static void put_rows(
	const struct diff *d, const struct text_page *p, enum diff_table table, const char *heading)
{
	const struct section *s = section_diff_rows[table];
	struct rows rows = {
		.section = s, .v = d->rows[table].v, .n = d->rows[table].n, .each = s->each
	};
	view_put_rows(&(struct view){ .section = s,
			      .heading = heading,
			      .has = table == TABLE_OPERATORS ? is_operator : NULL },
		&rows, p);
}

/* One of each, not all together: see diff.h. */
static void put_phases(
	const struct diff *d, const struct text_page *p, enum diff_table table, const char *heading)
{
	bool spans = false;
	put_rows(d, p, table, heading);
	for (size_t i = 0; i < page_shown(p, d->rows[table].n); i++) {
		const struct diff_value *v = d->rows[table].v[i].value;
		spans |= !isnan(v[DIFF_A].span_ns) || !isnan(v[DIFF_B].span_ns);
	}
	if (spans)
		fprintf(p->out, "%s\n", range_span_meaning);
}

static bool is_nothing(double value)
{
	return isnan(value) || value == 0;
}

static bool is_something(const struct row *row)
{
	const struct diff_sum *s = row->at;
	return !is_nothing(s->side[DIFF_A]) || !is_nothing(s->side[DIFF_B]);
}

static void put_sums(const struct text_page *p, const char *heading, const struct section *s,
	const struct diff_sum *sums, size_t n)
{
	struct rows rows = { .section = s, .v = sums, .n = n, .each = s->each };
	view_put_rows(
		&(struct view){ .section = s, .heading = heading, .has = is_something }, &rows, p);
}

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
	const struct text_page p = text_page_of(out, rows, colour),
			       whole = text_page_of(out, 0, colour);
	put_conclusion(d, &p);
	put_side(d, &p, DIFF_A);
	put_side(d, &p, DIFF_B);
	put_notes(d, &p);
	put_conditions(d, &p);
	put_sums(&whole, "Totals", &section_diff_totals, d->sums, DIFF_TOTALS);
	put_sums(&whole, "Where the wall time went", &section_diff_parts, d->sums + TOTAL_BREAKDOWN,
		WALL_PARTS);
	put_sums(&whole, "Critical path: what was waited for last", &section_diff_parts,
		d->sums + TOTAL_PATH, PATH_PARTS);
	put_phases(d, &p, TABLE_REQUESTS, "Requests: median of one");
	put_phases(d, &p, TABLE_STEPS, "Steps: median of one");
	put_phases(d, &p, TABLE_PHASES, "Phases (ranges that the program names): median of each");
	put_rows(d, &p, TABLE_KERNELS,
		d->by_device ? "Kernels by change of their time on the device"
			     : "Kernels by change of their launches' time on the host");
	put_rows(d, &p, TABLE_OPERATORS, "Operators by change of their time");
	put_rows(d, &p, TABLE_CALLS, "Calls by change of their time on the host");
	put_rows(d, &whole, TABLE_COPIES, "Copies and memsets");
	put_meaning(d, &p);
}
