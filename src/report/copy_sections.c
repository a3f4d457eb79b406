/* Sections of memory that was copied and set: as calls asked for it, and as devices did it. */
#include "section/section.h"
#include "report/sections.h"

/* The rate of copies whose size is known, which took so long. */
static struct value rate(uint64_t bytes, uint64_t ns)
{
	return value_u64_if(ns, ns ? sat_from((double)bytes * 1e9 / (double)ns) : 0);
}

GETTER(get_bytes, struct moved_row, m,
	value_u64_if(!report_is_off(row->r) && (m->sized || !m->count), m->bytes))
GETTER(get_mean, struct moved_row, m, m->sized ? value_u64(m->bytes / m->sized) : value_null())
GETTER(get_device_total, struct moved_row, it, value_u64_if(row->r->device_copies.n, it->device_ns))
GETTER(get_rate, struct moved_row, m, rate(m->bytes, m->sized_ns))

#define AMOUNTS                                                                                    \
	{ "count", UNIT_COUNT, "calls", "calls", .find = row_recorded,                             \
		MEMBER(struct moved_row, count), .sums = true },                                   \
		{ "bytes", UNIT_BYTES, "bytes", "of the calls whose size is known; null: of none", \
			.get = get_bytes, .sums = true },                                          \
		{ "mean_bytes", UNIT_BYTES, "mean", "of one of them", .get = get_mean,             \
			.text_only = true },                                                       \
		{ "device_total_ns", UNIT_NS, "time", "time on the device; null: not recorded",    \
			.get = get_device_total, .sums = true },                                   \
	{                                                                                          \
		"bytes_per_second", UNIT_BYTES_PER_S, "rate", "of the calls whose size is known",  \
			.get = get_rate                                                            \
	}

static const struct column copies_columns[] = {
	{ "direction", UNIT_TEXT, "direction", "`HtoD`, `DtoH`, `DtoD` …",
		MEMBER(struct moved_row, direction) },
	AMOUNTS,
	{ 0 },
};

const struct section section_memcpys = {
	.name = "memcpys",
	.heading = "Memcpys by bytes",
	.of = OF_COPIES,
	.facets = FACET(CALLS) | FACET(DEVICE),
	.columns = copies_columns,
	ROWS_OF(copies),
	.shown = "count,bytes,device_total_ns,bytes_per_second,direction",
};

static const struct column sets_columns[] = {
	AMOUNTS,
	{ 0 },
};

static void make_sets(struct rows *rows)
{
	rows_take(rows, &rows->r->sets, 1, sizeof rows->r->sets);
}

const struct section section_memsets = {
	.name = "memsets",
	.heading = "Memsets",
	.form = SECTION_OBJECT,
	.of = OF_COPIES,
	.facets = FACET(CALLS) | FACET(DEVICE),
	.columns = sets_columns,
	.make = make_sets,
};

GETTER(get_kind, struct copy_row, it, value_text(it->is_memset ? "memset" : "memcpy"))
GETTER(get_direction, struct copy_row, it, value_text(copy_direction_name(it->what)))
GETTER(get_from, struct copy_row, c,
	value_text(c->is_memset ? NULL : activity_memory_kind_name(c->from)))
GETTER(get_to, struct copy_row, c,
	value_text(activity_memory_kind_name(c->is_memset ? c->from : c->to)))

/* "HtoD, pageable to device" */
static struct value get_route(const struct row *row, const void *of)
{
	const struct copy_row *c = of;
	const char *direction = c->is_memset ? "memset" : copy_direction_name(c->what);
	const char *from = activity_memory_kind_name(c->from),
		   *to = activity_memory_kind_name(c->to);
	snprintf(row->text, ROW_TEXT, "%s%s%s%s%s", direction ? direction : "copy",
		from ? ", " : "", from ? from : "", to ? " to " : "", to ? to : "");
	return value_text(row->text);
}

/* One of the four sums, of those whose size is known. */
FINDER(sized, struct copy_row, c, c->sized ? c : NULL)
GETTER(get_mean_bytes, struct copy_row, c, value_u64(c->bytes / c->sized))
GETTER(get_p50, struct copy_row, it, value_u64(hist_at(&it->hist, 0.5)))
GETTER(get_device_rate, struct copy_row, c, rate(c->bytes, c->sized_ns))

static const struct column device_copy_columns[] = {
	{ "kind", UNIT_TEXT, "kind", "`memcpy` or `memset`", .get = get_kind },
	{ "direction", UNIT_TEXT, "direction", "`HtoD` …; null of memset", .get = get_direction },
	{ "route", UNIT_TEXT, "direction", "direction, memory kinds", .get = get_route,
		.text_only = true },
	{ "from", UNIT_TEXT, "from", "memory kind that is read; null of memset", .get = get_from },
	{ "to", UNIT_TEXT, "to", "memory kind that is written", .get = get_to },
	{ "count", UNIT_COUNT, "count", "activities", MEMBER(struct copy_row, count),
		.sums = true },
	{ "bytes", UNIT_BYTES, "bytes", "of those whose size is known; null: of none",
		.find = sized, MEMBER(struct copy_row, bytes), .sums = true },
	{ "min_bytes", UNIT_BYTES, "min", "of one of them", .find = sized,
		MEMBER(struct copy_row, min_bytes) },
	{ "mean_bytes", UNIT_BYTES, "mean", "of one of them", .get = get_mean_bytes,
		.find = sized },
	{ "max_bytes", UNIT_BYTES, "max", "of one of them", .find = sized,
		MEMBER(struct copy_row, max_bytes) },
	{ "device_total_ns", UNIT_NS, "time", "time on the device",
		MEMBER(struct copy_row, total_ns), .sums = true },
	{ "device_p50_ns", UNIT_NS, "median", "of one", .get = get_p50 },
	{ "bytes_per_second", UNIT_BYTES_PER_S, "rate", "of those whose size is known",
		.get = get_device_rate },
	{ 0 },
};

const struct section section_memops = {
	.name = "memops",
	.heading = "Copies and memsets by time on the device",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = device_copy_columns,
	ROWS_OF(device_copies),
	.note = "The driver copies from or to pageable memory through a buffer of its own, at a fraction of the rate of pinned memory.  weir hints says what that costs.  --only gpu_trace --filter 'kind = memcpy' --sort bytes lists each copy.",
};
