/* A value as a cell of a table for people: each unit has one form, in all sections. */
#include "section/section.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"

#define LINE_SHOWN 120u /* bytes of a stack in a cell of a list */
#define LINE_INNER 45u  /* characters from its innermost function on, */
#define LINE_OUTER 72u  /* and bytes from its outermost */

/* A line of a stack, innermost first, with the middle left out where it is long: who called in the
 * program stands at its other end. */
static void cell_stack(struct table *t, const char *text)
{
	static const char between[] = " < ";
	const size_t bytes = strlen(text);
	const bool whole = bytes <= LINE_SHOWN;
	const char *outer = whole ? NULL : strstr(text + bytes - LINE_OUTER, between);
	struct text_short inner;
	table_cell(t, "%s%s", text_short(&inner, text, whole ? LINE_SHOWN : LINE_INNER),
		outer ? outer : "");
}

bool unit_is_number(enum unit unit)
{
	return unit < UNIT_BOOL;
}

/* In UTC; 0: not known. */
static void put_date(struct table *t, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / 1000000000u);
	struct tm parts;
	char text[40];
	if (ns && gmtime_r(&seconds, &parts) &&
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
		table_cell(t, "%s", text);
	else
		table_none(t);
}

/* "155 GFLOP", "27.3 TFLOP/s" */
static void put_flops(struct table *t, double flops, const char *behind)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
	size_t i = 0;
	for (; flops >= 999.5 && i + 1 < sizeof units / sizeof units[0]; i++)
		flops /= 1000;
	table_cell(t, "%.3g %sFLOP%s", flops, units[i], behind);
}

static void put_number(struct table *t, enum unit unit, const struct value *v)
{
	const double real = value_as_number(v);
	const uint64_t whole = v->kind == VALUE_U64 ? v->u64 : sat_from(real);
	struct number n;
	switch (unit) {
	case UNIT_COUNT:
		return table_count(t, whole);
	case UNIT_ID:
		return table_cell(t, "%llu", (unsigned long long)whole);
	case UNIT_ADDRESS:
		return table_cell(t, "0x%llx", (unsigned long long)whole);
	case UNIT_NS:
		return table_ns(t, whole);
	case UNIT_MOMENT:
		return table_cell(t, "%.6f s", (double)whole / 1e9);
	case UNIT_DATE:
		return put_date(t, whole);
	case UNIT_BYTES:
		return table_bytes(t, whole);
	case UNIT_BYTES_PER_S:
		return table_cell(t, "%s/s", number_bytes(&n, whole));
	case UNIT_FLOPS:
		return put_flops(t, real, "");
	case UNIT_FLOPS_PER_S:
		return put_flops(t, real, "/s");
	case UNIT_SHARE:
		return table_percent(t, real * 100);
	case UNIT_CHANGE:
		return table_cell(t, "%s", number_change(&n, real));
	case UNIT_CHANCE:
		return real < 0.001 ? table_cell(t, "<0.1 %%") : table_percent(t, real * 100);
	case UNIT_KHZ:
		return table_cell(t, "%.0f MHz", real / 1000);
	default:
		return table_cell(t, fabs(real) < 1000 ? "%.3g" : "%.0f", real);
	}
}

static void put_text(struct table *t, const char *text, const struct cell_style *style)
{
	if (style->full || !style->most)
		table_cell(t, "%s", text);
	else
		table_cell_name(t, text, style->most);
}

void section_put_cell(struct table *t, const struct column *c, const struct value *v,
	const struct cell_style *style)
{
	const uint32_t *d = v->dim3;
	switch (v->kind) {
	case VALUE_U64:
	case VALUE_REAL:
		return put_number(t, c->unit, v);
	case VALUE_BOOL:
		return table_cell(t, "%s", v->yes ? "yes" : "no");
	case VALUE_DIM3:
		return table_cell(t, "(%u,%u,%u)", d[0], d[1], d[2]);
	case VALUE_TEXT:
		break;
	default:
		return table_none(t);
	}
	if (v->guess)
		table_cell(t, "%s?", v->text);
	else if (c->unit == UNIT_STACK && !style->full)
		cell_stack(t, v->text);
	else
		put_text(t, c->unit == UNIT_KERNEL && !style->full ? text_kernel(v->text) : v->text,
			style);
}
