/* Sections of operators and of the ranges that a program names. */
#include "report/report_make.h"
#include "report/sections.h"
#include "section/shared_columns.h"

#include "model/roofline.h"

/* rows->all: what they launched themselves took on devices. */
static void make_operators(struct rows *rows)
{
	rows->all = 0;
	array_each(const struct operator_row, o, rows->r->operators)
		rows->all += (double)o->device_self_ns;
}

/* The values of devices, if they were recorded. */
FINDER(timed, void, at, report_has_device_times(row->r) ? at : NULL)
GETTER(get_host_p50, struct hist, h,
	value_u64_if(h->count, trace_span_ns(row->r->trace, hist_at(h, 0.5))))

FINDER(no_operator, struct operator_row, o, o->kind == RANGE_OPERATOR ? NULL : o)

static struct value get_shape(const struct row *row, const void *of)
{
	const struct operator_row *o = of;
	if (!o->shape_bytes)
		return value_null();
	return (struct value){ .kind = VALUE_TEXT, .text = o->shape, .n = o->shape_bytes };
}

FINDER(operator_bound, struct operator_row, it, &it->roofline)

#define OPERATOR                                                                                   \
	{ "name", UNIT_TEXT, "name", "name", MEMBER(struct operator_row, name) },                  \
		{ "kind", UNIT_TEXT, "kind", "`operator`, `annotation`, `nvtx` …",                 \
			.get = get_range_kind, AT(struct operator_row, kind) },                    \
		{ "count", UNIT_COUNT, "count", "how often it ran",                                \
			MEMBER(struct operator_row, count) },                                      \
		{ "device_count", UNIT_COUNT, "activities",                                        \
			"GPU activities that it launched itself", .find = timed,                   \
			MEMBER(struct operator_row, activity_count), .sums = true },               \
		{ "device_self_ns", UNIT_NS, "self", "their time on devices", .find = timed,       \
			MEMBER(struct operator_row, device_self_ns), .sums = true },               \
		{ "device_total_ns", UNIT_NS, "total", "the same with those of ranges inside",     \
			.find = timed, MEMBER(struct operator_row, device_total_ns) },             \
		{ "total_share", UNIT_SHARE, "total share", "`device_total_ns` of all that ran",   \
			.get = get_share_of_all, .find = timed,                                    \
			AT(struct operator_row, device_total_ns) },                                \
		{ "share", UNIT_SHARE, "share", "`device_self_ns` of that of all operators",       \
			.get = get_share_of_all, .find = timed,                                    \
			AT(struct operator_row, device_self_ns), .sums = true },                   \
		{ "host_self_ns", UNIT_NS, "host self",                                            \
			"time on the host without the ranges inside", .get = get_span,             \
			AT(struct operator_row, host_self_ticks), .sums = true },                  \
		{ "host_total_ns", UNIT_NS, "host total", "time on the host", .get = get_span,     \
			AT(struct operator_row, host_ticks) },                                     \
		{ "host_p50_ns", UNIT_NS, "median host", "of one", .get = get_host_p50,            \
			AT(struct operator_row, host_hist) },                                      \
		{ "device_p50_ns", UNIT_NS, "median", "of one: the total on devices",              \
			.get = get_hist_p50, AT(struct operator_row, device_hist) },               \
		{ "span_p50_ns", UNIT_NS, "median span on device",                                 \
			"of one: from the start of the first GPU activity that was launched "      \
			"inside to the end of the last, idle gaps included; not of operators",     \
			.get = get_hist_p50, .find = no_operator,                                  \
			AT(struct operator_row, span_hist), .absent = true },                      \
		ROOFLINE(operator_bound, false)

static const struct column operator_columns[] = {
	OPERATOR,
	{ 0 },
};

static void put_unknown(const struct report *r, FILE *out)
{
	roofline_put_unknown(out, r);
}

const struct section section_operators = {
	.name = "operators",
	.heading = "Operators by their own time on the device",
	.about =
		"Operators, annotations and nested ranges. Keys about devices are null if no device times were recorded.",
	.of = OF_RANGES,
	.facets = FACET(DEVICE),
	.columns = operator_columns,
	ROWS_OF(operators),
	.make = make_operators,
	.shown =
		"device_self_ns,share,device_total_ns,total_share,host_self_ns,host_total_ns,count,"
		"class,kind,name",
	.note = "Self is what the operator itself launched, and adds up over the rows.  A call of cuBLAS or cuDNN counts for the operator around it.  Total, FLOPs and bytes include the operators inside, which have rows, too.  An operator inside another of its name counts with that.  Share is of all that ran.  Modules have the forward pass, because autograd launches the backward pass outside of them.  Class is explained at kernels.  A dash means that it is not known.",
	.below = put_unknown,
	.below_with = "flops",
};

static const struct column shape_columns[] = {
	OPERATOR,
	{ "shape", UNIT_TEXT, "shape",
		"its `Input Dims`; null: not known. Of an overload, those of the one around that does "
		"nothing but call it",
		.get = get_shape },
	{ 0 },
};

static void make_by_shape(struct rows *rows)
{
	struct report *by_shape;
	struct error err;
	rows->error = report_make_by_shape(rows->r, &by_shape, &err);
	if (rows->error)
		return;
	rows->own = by_shape;
	rows->r = by_shape;
	rows->v = by_shape->operators.v;
	rows->n = by_shape->operators.n;
	make_operators(rows);
}

static void free_report(struct rows *rows)
{
	report_free(rows->own);
}

const struct section section_operators_by_shape = {
	.name = "operators_by_shape",
	.heading = "Operators by shape",
	.about =
		"The columns of `operators`, a row for each of the shapes that an operator was given.",
	.of = OF_OPERATORS,
	.columns = shape_columns,
	ROWS_OF(operators),
	.make = make_by_shape,
	.fini = free_report,
	.asked = true,
	.shown = "device_self_ns,share,device_total_ns,host_total_ns,count,class,name,shape",
	.note = "Self is what the operator itself launched, and adds up over the rows.  Share is its self time, of all that ran.",
};

static const struct column span_columns[] = {
	{ "name", UNIT_TEXT, "name", "name", MEMBER(struct span_row, name) },
	{ "kind", UNIT_TEXT, "kind", "`nvtx span`, `nvtx mark` …", .get = get_range_kind,
		AT(struct span_row, kind) },
	{ "count", UNIT_COUNT, "count", "how often", MEMBER(struct span_row, count) },
	{ "host_total_ns", UNIT_NS, "host", "time on the host", .get = get_span,
		AT(struct span_row, host_ticks) },
	{ "host_p50_ns", UNIT_NS, "median host", "of one; null: marks have no length",
		.get = get_host_p50, AT(struct span_row, host_hist) },
	{ 0 },
};

const struct section section_spans = {
	.name = "spans",
	.heading = "Ranges that may cross others, and marks",
	.about = "Ranges of NVTX with a start and an end, which may cross others, and marks.",
	.of = OF_CROSSING,
	.facets = FACET(DEVICE),
	.columns = span_columns,
	ROWS_OF(span_rows),
	.shown = "host_total_ns,count,host_p50_ns,kind,name",
};
