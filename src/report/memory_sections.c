/* Sections of memory: use by kind, blocks that are live, allocating calls, memory over time. */
#include "report/memory_print.h"
#include "report/memory_sections.h"

#include "base/expect.h"
#include "section/shared_columns.h"

static struct value use(const struct row *row, const struct memory_use *u, uint64_t value)
{
	return value_u64_if(report_knows_use(row->r, u), value);
}

static struct value live(const struct row *row, const struct memory_use *u, uint64_t value)
{
	return value_u64_if(report_knows_bytes(row->r, u), value);
}

GETTER(get_allocs, struct memory_use, it, use(row, it, it->allocs))
GETTER(get_frees, struct memory_use, it, use(row, it, it->frees))
GETTER(get_allocated, struct memory_use, it, live(row, it, it->allocated_bytes))
GETTER(get_peak, struct memory_use, it, live(row, it, it->peak_bytes))
GETTER(get_live_bytes, struct memory_use, it, live(row, it, it->live_bytes))
GETTER(get_live_count, struct memory_use, it, live(row, it, it->live))
GETTER(get_leaked, struct report, r,
	value_u64_if(r->memory_detail->leaks_known && !report_is_off(r), r->gpu_memory.live_bytes))

static struct value get_fragmentation(const struct row *row, const void *of)
{
	double share;
	const bool known =
		fragmentation_of(&row->r->memory_detail->at_peak[MEMORY_DEVICE].pages, &share);
	expect(!known || (share >= 0 && share <= 1), "fragmentation is a share");
	return value_real(known ? share : NAN);
}

GETTER(get_peak_at, struct report, r,
	value_u64_if(
		r->gpu_memory.peak_bytes, trace_since_ns(r->trace, r->memory_detail->peak_ticks)))

/* Null where too few iterations are known. */
static const void *growth(const struct row *row)
{
	const struct memory_growth *g = &row->r->memory_detail->growth;
	return g->periods >= GROWTH_PERIODS ? g : NULL;
}

struct value get_blocks(const struct row *row, const void *of)
{
	const struct live_blocks *b = of;
	const size_t n = row->r->all_live || b->n < LIVE_SHOWN ? b->n : LIVE_SHOWN;
	return (struct value){ .kind = VALUE_LIST, .list = b->v, .n = n };
}

#define USE(kind, words, member)                                                                   \
	{ kind "alloc_count", UNIT_COUNT, words "allocations", "allocations", .get = get_allocs,   \
		AT(struct report, member) },                                                       \
		{ kind "free_count", UNIT_COUNT, words "frees", "frees", .get = get_frees,         \
			AT(struct report, member) },                                               \
		{ kind "allocated_bytes", UNIT_BYTES, words "allocated", "bytes in all",           \
			.get = get_allocated, AT(struct report, member) },                         \
		{ kind "peak_bytes", UNIT_BYTES, words "peak",                                     \
			"bytes that were live at one time, at most", .get = get_peak,              \
			AT(struct report, member) },                                               \
		{ kind "live_at_exit_bytes", UNIT_BYTES, words "live at exit",                     \
			"bytes that were never freed", .get = get_live_bytes,                      \
			AT(struct report, member) },                                               \
	{                                                                                          \
		kind "live_at_exit_count", UNIT_COUNT, words "blocks live at exit",                \
			"blocks that were never freed", .get = get_live_count,                     \
							AT(struct report, member)                  \
	}

#define ALL_OF_GPUS                                                                                  \
	USE("", "", gpu_memory),                                                                     \
		{ "leaked_bytes", UNIT_BYTES, "leaked",                                              \
			"live at exit; null: the recording has not seen the end, or not every call", \
			.get = get_leaked },                                                         \
		{ "fragmentation", UNIT_SHARE, "external fragmentation at the peak",                 \
			"external fragmentation at the peak, of the pages touched",                  \
			.get = get_fragmentation },                                                  \
		{ "peak_at_ns", UNIT_MOMENT, "peak at", "when the peak was", .get = get_peak_at },   \
		{ "growth_bytes_per_period", UNIT_REAL, "growth, bytes per iteration",               \
			"how much is live more after an iteration than before", .find = growth,      \
			MEMBER(struct memory_growth, bytes_a_period) },                              \
	{                                                                                            \
		"growth_confidence", UNIT_REAL, "growth, Kendall's tau", "Kendall's tau, −1 to 1",   \
			.find = growth, MEMBER(struct memory_growth, confidence)                     \
	}

static const struct column memory_columns[] = {
	ALL_OF_GPUS,
	USE("device.", "device: ", memory[MEMORY_DEVICE]),
	USE("managed.", "managed: ", memory[MEMORY_MANAGED]),
	USE("vmm.", "vmm: ", memory[MEMORY_VMM]),
	USE("host.", "host: ", memory[MEMORY_HOST]),
	{ "live", UNIT_LIST, "live", "the largest blocks that were never freed, at most 100",
		.get = get_blocks, AT(struct report, live), .inner = &section_memory_live },
	{ 0 },
};

const struct section section_memory = {
	.name = "memory",
	.heading = "Memory",
	.about =
		"Keys outside of an object count all memory on GPUs. Null: an imported trace does not tell it, or calls were only counted.",
	.form = SECTION_OBJECT,
	.of = OF_ALLOCATIONS,
	.facets = FACET(MEMORY),
	.columns = memory_columns,
};

static const struct column member_columns[] = {
	ALL_OF_GPUS,
	{ 0 },
};

/* The top of weir memory --json. */
const struct section section_memory_members = {
	.name = "memory_members",
	.form = SECTION_MEMBERS,
	.facets = FACET(MEMORY),
	.columns = member_columns,
};

static struct value get_kind(const struct row *row, const void *of)
{
	const uint8_t kind = ((const struct live_block *)of)->kind;
	if (!expect(kind < MEMORY_KINDS, "the kind of a block is one of all"))
		return value_null();
	return value_text(memory_kind_name[kind]);
}

GETTER(get_block_function, struct live_block, it, function_name(row, it->fn_id))

/* The stack of a block, in recordings with call stacks. */
FINDER(block_stack, struct live_block, it, row->r->memory_detail->stacks ? &it->stack : NULL)

const struct column memory_live_columns[] = {
	{ "address", UNIT_ADDRESS, "address", "where it begins",
		MEMBER(struct live_block, pointer) },
	{ "bytes", UNIT_BYTES, "bytes", "its size", MEMBER(struct live_block, bytes) },
	{ "kind", UNIT_TEXT, "kind", "memory kind: `device`, `managed`, `vmm`, `host`",
		.get = get_kind },
	{ "name", UNIT_TEXT, "allocated by", "the call that allocated it",
		.get = get_block_function },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct live_block, process) },
	{ "at_ns", UNIT_MOMENT, "at", "when it was allocated", .get = get_since,
		AT(struct live_block, ticks) },
	STACK(block_stack, 0),
	{ 0 },
};

const struct section section_memory_live = {
	.name = "memory.live",
	.heading = "Largest blocks live at exit",
	.about = "Blocks that were never freed, the largest first.",
	.of = OF_ALLOCATIONS,
	.facets = FACET(MEMORY),
	.columns = memory_live_columns,
	ROWS_OF(live),
	.nested = true,
	.shown = "bytes,kind,at_ns,pid,address,name,called_by",
};

FINDER(time_call, struct memory_call_time, it, it->call)
GETTER(get_waits, struct call_row, it, value_bool(it->memory_call == MEMORY_CALL_WAITS))
GETTER(get_share_of_run, void, of, value_real(memory_time_share(row->r, of)))

/* Durations from 2^n ns to less than twice that. */
struct time_class {
	uint64_t from_ns, count;
};

static struct value get_histogram(const struct row *row, const void *of)
{
	struct time_classes classes;
	struct time_class *v = (void *)row->text;
	static_assert(sizeof *v * TIME_CLASSES <= ROW_TEXT, "all classes have room");
	memory_time_classes(row->r, of, &classes);
	size_t n = 0;
	for (unsigned i = classes.first; i <= classes.last; i++)
		v[n++] = (struct time_class){ i ? 1ull << i : 0, classes.count[i] };
	return (struct value){ .kind = VALUE_LIST, .list = v, .n = n };
}

static const struct column histogram_columns[] = {
	{ "from_ns", UNIT_NS, "from", "durations from this to less than twice this",
		MEMBER(struct time_class, from_ns) },
	{ "count", UNIT_COUNT, "calls", "calls", MEMBER(struct time_class, count) },
	{ 0 },
};

static const struct section histogram = {
	.name = "allocation_calls[].histogram",
	.columns = histogram_columns,
	.each = sizeof(struct time_class),
};

static const struct column time_columns[] = {
	{ "name", UNIT_TEXT, "function", "function", .get = get_function, .find = time_call,
		AT(struct call_row, id) },
	{ "waits", UNIT_BOOL, "waits", "the function waits for the GPU", .get = get_waits,
		.find = time_call },
	{ "count", UNIT_COUNT, "calls", "calls", .find = time_call,
		MEMBER(struct call_row, count) },
	{ "timed_count", UNIT_COUNT, "timed", "calls whose duration is known", .find = time_call,
		MEMBER(struct call_row, timed) },
	{ "total_ns", UNIT_NS, "total",
		"of all threads together; null: of some of the calls it is not known",
		.get = get_call_total, .find = time_call },
	{ "share_of_run", UNIT_SHARE, "of run",
		"of the wall time, in which some thread was in this function",
		.get = get_share_of_run },
	{ "p50_ns", UNIT_NS, "median", "of the calls that are timed", .get = get_call_p50,
		.find = time_call },
	{ "p90_ns", UNIT_NS, "p90", "of the calls that are timed", .get = get_call_p90,
		.find = time_call },
	{ "p99_ns", UNIT_NS, "p99", "of the calls that are timed", .get = get_call_p99,
		.find = time_call },
	{ "max_ns", UNIT_NS, "max", "of the calls that are timed", .get = get_call_max,
		.find = time_call },
	{ "histogram", UNIT_LIST, "histogram", "the timed calls by their duration, in JSON alone",
		.get = get_histogram, .find = time_call, .inner = &histogram },
	{ 0 },
};

const struct section section_allocation_calls = {
	.name = "allocation_calls",
	.heading = "Allocating and freeing calls by total time",
	.about =
		"Functions that allocate and free memory. [`weir memory --json`](json-memory.md) has the same rows in `call_time.calls[]`.",
	.of = OF_ALLOCATIONS,
	.facets = FACET(CALL_TIMES) | FACET(MEMORY) | FACET(DEVICE),
	.columns = time_columns,
	ROWS_OF_MEMORY(time.calls),
	.asked = true,
	.shown = "total_ns,share_of_run,count,p50_ns,p90_ns,p99_ns,max_ns,waits,name",
	.note = "A call of the runtime contains the call of the driver that it makes, so do not add their times.",
};

static struct value get_point_at(const struct row *row, const void *of)
{
	const struct memory_detail *d = row->r->memory_detail;
	expect(d->first_ticks <= d->last_ticks, "the last moment is not before the first");
	const uint64_t span = d->last_ticks - d->first_ticks;
	const uint64_t end = (uint64_t)((__uint128_t)span * (row->index + 1) / MEMORY_POINTS);
	return value_u64(trace_since_ns(row->r->trace, d->first_ticks + end));
}

FINDER(gpu_point, void, at, report_knows_bytes(row->r, &row->r->gpu_memory) ? at : NULL)
FINDER(host_point, void, at, report_knows_bytes(row->r, &row->r->memory[MEMORY_HOST]) ? at : NULL)

/* If more was live than is known to be reserved, part of what is reserved is not known. */
static const void *reserved_point(const struct row *row)
{
	const struct memory_point *p = gpu_point(row);
	return p && p->reserved_known && p->reserved_most >= p->most ? p : NULL;
}

static const struct column point_columns[] = {
	{ "at_ns", UNIT_MOMENT, "at", "end of the step", .get = get_point_at },
	{ "bytes", UNIT_BYTES, "live", "on GPUs, at the end of the step", .find = gpu_point,
		MEMBER(struct memory_point, live) },
	{ "max_bytes", UNIT_BYTES, "most live", "on GPUs, at most in the step", .find = gpu_point,
		MEMBER(struct memory_point, most) },
	{ "host_bytes", UNIT_BYTES, "pinned", "pinned host memory, at the end of the step",
		.find = host_point, MEMBER(struct memory_point, host_live) },
	{ "host_max_bytes", UNIT_BYTES, "most pinned", "pinned host memory, at most in the step",
		.find = host_point, MEMBER(struct memory_point, host_most) },
	{ "reserved_bytes", UNIT_BYTES, "reserved",
		"at most in the step; never less than `max_bytes`; null: not known in all of it",
		.find = reserved_point, MEMBER(struct memory_point, reserved_most) },
	{ "unused_bytes", UNIT_BYTES, "unused", "reserved but not live, at most in the step",
		.find = reserved_point, MEMBER(struct memory_point, unused) },
	{ 0 },
};

static void make_points(struct rows *rows)
{
	const struct report *r = rows->r;
	const size_t n = r->calls || r->allocator_events ? MEMORY_POINTS : 0;
	rows_take(rows, r->memory_detail->points, n, sizeof *r->memory_detail->points);
}

const struct section section_memory_over_time = {
	.name = "memory_over_time",
	.heading = "Memory over time",
	.about = "[`weir memory --json`](json-memory.md) has the same rows in `series[]`.",
	.of = OF_CALLS,
	.facets = FACET(MEMORY),
	.columns = point_columns,
	.make = make_points,
	.each = sizeof(struct memory_point),
	.asked = true,
	.shown = "at_ns,bytes,max_bytes,reserved_bytes,unused_bytes,host_bytes",
};
