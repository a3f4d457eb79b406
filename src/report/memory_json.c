/* `weir memory --json`: the sections that it has at its top, which the text takes its tables from.
 */
#include "report/memory_print.h"
#include "report/memory_sections.h"

#include "base/expect.h"
#include "base/json.h"
#include "hint/summary.h"

FINDER(of_report, void, at, row->r)
FINDER(known_use, void, at, report_knows_bytes(row->r, &row->r->gpu_memory) ? at : NULL)

/* Calls that were only counted say nothing of what they did. */
static const void *known_vmm(const struct row *row)
{
	const struct report *r = row->r;
	const struct memory_detail *d = row->at;
	for (size_t i = 0; i < r->call_rows.n; i++)
		if (r->call_rows.v[i].vmm && r->call_rows.v[i].ok_counted)
			return NULL;
	return !report_is_off(r) && (r->trace->header.launched || d->vmm.creates || d->vmm.maps ||
					    d->vmm.reserves || d->vmm.segments.most)
		       ? d
		       : NULL;
}

FINDER(growth, struct memory_detail, d, d->growth.mark != MARK_NONE ? d : NULL)
FINDER(reserved, struct memory_detail, d, d->unused.known && d->unused.reserved_peak ? d : NULL)

/* The quota's refusals, or NULL. */
static const void *refused(const struct row *row)
{
	const struct refusals *refused = row->rows->own;
	return refused->count ? refused : NULL;
}

static void make_details(struct rows *rows)
{
	rows->v = rows->r->memory_detail;
	rows->own = xcalloc(1, sizeof(struct refusals));
	memory_refusals(rows->r, rows->own);
}

/* An object that has columns of its own, or null in its place. */
GETTER(get_nothing, void, of, value_absent())

static struct value get_rate(const struct row *row, const void *of)
{
	const struct report *r = row->r;
	const struct memory_detail *d = of;
	const double bytes = (double)(r->gpu_memory.allocated_bytes - d->before_bytes);
	return value_real(bytes * 1e9 / (double)(r->wall_ns - r->off_ns));
}

GETTER(get_pairs_per_launch, uint64_t, it, value_real((double)*it / (double)row->r->launches))
GETTER(get_mark, struct memory_growth, g,
	value_text(g->mark == MARK_KERNEL ? "launch" : "allocation"))

static struct value get_kernel(const struct row *row, const void *of)
{
	const struct memory_growth *g = of;
	if (g->mark != MARK_KERNEL)
		return value_absent();
	return value_text(g->kernel ? g->kernel : "(unknown kernel)");
}

GETTER(get_size_mark, struct memory_growth, g,
	g->mark == MARK_SIZE ? value_u64(g->size) : value_absent())
GETTER(get_busy, struct memory_time, t,
	value_u64_if(t->timed == t->count, trace_span_ns(row->r->trace, t->busy_ticks)))
GETTER(get_share_of_run, void, of, value_real(memory_time_share(row->r, NULL)))
GETTER(get_holders, struct refusal, x,
	(struct value){ .kind = VALUE_LIST, .list = x->holder, .n = x->holders })

static const struct column holder_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", MEMBER(struct refusal_holder, pid) },
	{ "program", UNIT_TEXT, "program", "its name", .get = get_chars,
		AT(struct refusal_holder, program) },
	{ "bytes", UNIT_BYTES, "bytes", "that it had", MEMBER(struct refusal_holder, bytes) },
	{ 0 },
};

static const struct section holders = {
	.columns = holder_columns,
	.each = sizeof(struct refusal_holder),
};

GETTER(get_source, uint8_t, it, value_text(reserved_source_name[*it]))

static struct value get_unused_share(const struct row *row, const void *of)
{
	const struct memory_unused *u = of;
	expect(u->unused_area <= u->reserved_area, "a part is no more than its whole");
	return value_real(u->unused_area / u->reserved_area);
}

GETTER(get_worst_unused, struct memory_unused, u, value_u64(u->worst_reserved - u->worst_live))
GETTER(get_worst_share, struct memory_unused, u,
	value_share(u->worst_reserved - u->worst_live, u->worst_reserved))

const struct section section_memory_worst = {
	.columns = memory_live_columns,
	ROWS_OF_MEMORY(unused.worst_blocks),
};

#define DETAIL(key, unit, heading, meaning, value, has, member)                                    \
	{                                                                                          \
		key, unit, heading, meaning, .get = value, .find = has,                            \
					     AT(struct memory_detail, member)                      \
	}
/* Left out with its object. */
#define DETAIL_OF(key, unit, heading, meaning, value, has, member)                                 \
	{                                                                                          \
		key, unit, heading, meaning, .get = value, .find = has, .absent = true,            \
					     AT(struct memory_detail, member)                      \
	}
#define LEVEL(key, words, what, member)                                                            \
	DETAIL("virtual_memory." key ".peak_bytes", UNIT_BYTES, words ", peak",                    \
		what ", at most at one time", get_u64, known_vmm, vmm.member.most),                \
		DETAIL("virtual_memory." key ".at_exit_bytes", UNIT_BYTES, words ", at exit",      \
			what ", at the end", get_u64, known_vmm, vmm.member.now)
#define REFUSED(key, unit, heading, meaning, value, member)                                        \
	{                                                                                          \
		"refused." key, unit, heading, meaning,                                            \
			.get = value, .find = refused, .absent = true, AT(struct refusals, member) \
	}
#define REFUSAL(key, words, member)                                                                \
	REFUSED(key ".at_ns", UNIT_MOMENT, words ", at", "when", get_since, member.ticks),         \
		REFUSED(key ".asked_bytes", UNIT_BYTES, words ", asked", "asked for", get_u64,     \
			member.asked),                                                             \
		REFUSED(key ".quota_bytes", UNIT_BYTES, words ", quota", "the quota", get_u64,     \
			member.quota),                                                             \
		REFUSED(key ".used_bytes", UNIT_BYTES, words ", used",                             \
			"of all programs of the quota", get_u64, member.used),                     \
		REFUSED(key ".context_bytes", UNIT_BYTES, words ", contexts", "of their contexts", \
			get_u64, member.contexts),                                                 \
	{                                                                                          \
		"refused." key ".holders", UNIT_LIST, words ", holders",                           \
			"up to three, largest first", .get = get_holders, .find = refused,         \
						      .absent = true, AT(struct refusals, member), \
						      .inner = &holders                            \
	}

static const struct column detail_columns[] = {
	DETAIL("churn.bytes_per_second", UNIT_BYTES_PER_S, "allocated", "allocated a second",
		get_rate, known_use, sources),
	DETAIL("churn.pairs", UNIT_COUNT, "freed blocks", "blocks whose free was seen", get_u64,
		known_use, matched),
	DETAIL("churn.pairs_per_launch", UNIT_REAL, "freed blocks a launch",
		"`churn.pairs` by kernels run", get_pairs_per_launch, known_use, matched),
	{ "growth", UNIT_LIST, "growth",
		"null: no iterations were found. *Period* is an iteration, *mark* what iterations are "
		"counted by",
		.get = get_nothing, .find = growth },
	DETAIL_OF("growth.mark", UNIT_TEXT, "counted by", "`launch` or `allocation`", get_mark,
		growth, growth),
	DETAIL_OF("growth.kernel", UNIT_KERNEL, "kernel", "the most frequent one; of `launch`",
		get_kernel, growth, growth),
	DETAIL_OF("growth.size", UNIT_BYTES, "size", "the most common one; of `allocation`",
		get_size_mark, growth, growth),
	DETAIL_OF("growth.marks", UNIT_COUNT, "marks", "marks seen", get_u64, growth, growth.marks),
	DETAIL_OF("growth.marks_per_period", UNIT_COUNT, "marks an iteration",
		"null: nothing repeats", get_nonzero, growth, growth.period),
	DETAIL_OF("growth.periods", UNIT_COUNT, "iterations", "iterations looked at", get_u64,
		growth, growth.periods),
	DETAIL("call_time.count", UNIT_COUNT, "calls", "calls that allocate or free", get_u64,
		row_recorded, time.count),
	DETAIL("call_time.timed_count", UNIT_COUNT, "timed", "those of known duration", get_u64,
		row_recorded, time.timed),
	DETAIL("call_time.busy_ns", UNIT_NS, "in a call",
		"some thread was in such a call; null: not all were timed", get_busy, row_recorded,
		time),
	DETAIL("call_time.share_of_run", UNIT_SHARE, "of run", "of the wall time", get_share_of_run,
		row_recorded, time),
	{ "call_time.calls", UNIT_LIST, "calls", "the rows of `--only allocation_calls`",
		.inner = &section_allocation_calls },
	DETAIL("virtual_memory.creates", UNIT_COUNT, "creates", "calls", get_u64, known_vmm,
		vmm.creates),
	DETAIL("virtual_memory.maps", UNIT_COUNT, "maps", "calls", get_u64, known_vmm, vmm.maps),
	DETAIL("virtual_memory.reserves", UNIT_COUNT, "reserves", "calls", get_u64, known_vmm,
		vmm.reserves),
	DETAIL("virtual_memory.unknown", UNIT_COUNT, "calls about unknown addresses",
		"calls about addresses whose mapping or reservation was not recorded", get_u64,
		known_vmm, vmm.unknown),
	LEVEL("reserved", "addresses reserved", "addresses", reserved),
	LEVEL("mapped", "mapped", "mapped addresses", mapped),
	LEVEL("backed", "backed", "memory of handles that are held or mapped", backed),
	LEVEL("segments", "segments", "segments of another allocator", segments),
	DETAIL("virtual_memory.segments_at_peak_bytes", UNIT_BYTES,
		"segments at the peak of blocks",
		"segments of another allocator, at the peak of blocks", get_u64, known_vmm,
		vmm.segments_at_peak),
	REFUSED("count", UNIT_COUNT, "refused",
		"allocations that `weir run --memory` refused; the object is absent without any",
		get_u64, count),
	REFUSAL("first", "first", first),
	REFUSAL("largest", "largest", largest),
	{ "live", UNIT_LIST, "live",
		"the 100 largest blocks that are live at the end, all with `-n 0`",
		.get = get_blocks, .find = of_report, AT(struct report, live),
		.inner = &section_memory_live },
	{ "reserved", UNIT_LIST, "reserved",
		"what an allocator has from the level below it; *unused* is what of that is not live. "
		"A state counts when it lasts: several changes at one time are one. Null: nothing was "
		"reserved, or it is not known",
		.get = get_nothing, .find = reserved },
	DETAIL_OF("reserved.source", UNIT_TEXT, "source",
		"`allocator`, `segments` or `pages`, as weir-memory(1) explains", get_source,
		reserved, unused.source),
	DETAIL_OF("reserved.peak_bytes", UNIT_BYTES, "peak", "reserved at most", get_u64, reserved,
		unused.reserved_peak),
	DETAIL_OF("reserved.peak_at_ns", UNIT_MOMENT, "peak at", "when that was", get_since,
		reserved, unused.peak_ticks),
	DETAIL_OF("reserved.live_at_peak_bytes", UNIT_BYTES, "live at the peak", "live then",
		get_u64, reserved, unused.peak_live),
	DETAIL_OF("reserved.unused_share", UNIT_SHARE, "unused",
		"unused by reserved, each summed over the time", get_unused_share, reserved,
		unused),
	DETAIL_OF("reserved.unknown_ns", UNIT_NS, "not known for",
		"nothing was said yet, or more was live than reserved", get_span, reserved,
		unused.unknown_ticks),
	DETAIL_OF("reserved.worst.at_ns", UNIT_MOMENT, "worst at",
		"the first moment with the most unused bytes", get_since, reserved,
		unused.worst_ticks),
	DETAIL_OF("reserved.worst.reserved_bytes", UNIT_BYTES, "worst, reserved", "reserved then",
		get_u64, reserved, unused.worst_reserved),
	DETAIL_OF("reserved.worst.live_bytes", UNIT_BYTES, "worst, live", "live then", get_u64,
		reserved, unused.worst_live),
	DETAIL_OF("reserved.worst.unused_bytes", UNIT_BYTES, "worst, unused", "the difference",
		get_worst_unused, reserved, unused),
	DETAIL_OF("reserved.worst.unused_share", UNIT_SHARE, "worst, unused share",
		"of what was reserved", get_worst_share, reserved, unused),
	DETAIL_OF("reserved.worst.blocks", UNIT_COUNT, "worst, blocks", "that were live", get_u64,
		reserved, unused.worst_blocks.n),
	{ "reserved.worst.live", UNIT_LIST, "worst, live",
		"the 100 largest of them, all with `-n 0`", .get = get_blocks, .find = reserved,
		.absent = true, AT(struct memory_detail, unused.worst_blocks),
		.inner = &section_memory_live },
	{ "series", UNIT_LIST, "series", "the rows of `--only memory_over_time`",
		.inner = &section_memory_over_time },
	{ 0 },
};

#define VMM "virtual_memory."

const struct section section_memory_details = {
	.heading = "Virtual memory and segments",
	.form = SECTION_MEMBERS,
	.columns = detail_columns,
	.make = make_details,
	.shown = VMM "reserved.peak_bytes," VMM "reserved.at_exit_bytes," VMM
		     "mapped.peak_bytes," VMM "mapped.at_exit_bytes," VMM "backed.peak_bytes," VMM
		     "backed.at_exit_bytes," VMM "segments.peak_bytes," VMM
		     "segments.at_exit_bytes," VMM "unknown",
};

#define SHOWN                                                                                      \
	"count,bytes,mean_bytes,mean_lifetime_ns,at_peak_bytes,at_peak_count,live_at_exit_bytes,"  \
	"live_at_exit_count,"

GETTER(get_lifetime, struct memory_row, m,
	m->freed ? value_u64(trace_span_ns(row->r->trace, m->lifetime_ticks / m->freed))
		 : value_null())
GETTER(get_mean, struct memory_row, m, value_u64(m->allocs ? m->bytes / m->allocs : 0))

#define ALLOCATIONS                                                                                \
	{ "count", UNIT_COUNT, "allocs", "allocations", MEMBER(struct memory_row, allocs) },       \
		{ "bytes", UNIT_BYTES, "bytes", "allocated in all",                                \
			MEMBER(struct memory_row, bytes) },                                        \
		{ "mean_bytes", UNIT_BYTES, "mean", "of one", .get = get_mean,                     \
			.text_only = true },                                                       \
		{ "freed_count", UNIT_COUNT, "freed", "allocations whose free was seen",           \
			MEMBER(struct memory_row, freed) },                                        \
		{ "mean_lifetime_ns", UNIT_NS, "mean lifetime", "null: none was freed",            \
			.get = get_lifetime },                                                     \
		{ "at_peak_count", UNIT_COUNT, "blocks", "blocks that were live at the peak",      \
			MEMBER(struct memory_row, at_peak) },                                      \
		{ "at_peak_bytes", UNIT_BYTES, "at peak", "their bytes",                           \
			MEMBER(struct memory_row, at_peak_bytes) },                                \
		{ "live_at_exit_count", UNIT_COUNT, "blocks", "blocks that were never freed",      \
			MEMBER(struct memory_row, live) },                                         \
	{                                                                                          \
		"live_at_exit_bytes", UNIT_BYTES, "at exit", "their bytes",                        \
			MEMBER(struct memory_row, live_bytes)                                      \
	}

GETTER(get_call, struct memory_row, it, function_name(row, (uint32_t)it->key))

static const struct column call_columns[] = {
	{ "name", UNIT_TEXT, "call", "function", .get = get_call },
	ALLOCATIONS,
	{ 0 },
};

const struct section section_memory_by_call = {
	.name = "by_call",
	.heading = "Allocations by call",
	.columns = call_columns,
	ROWS_OF_MEMORY(calls),
	.shown = SHOWN "name",
};

static struct value get_from(const struct row *row, const void *of)
{
	const uint64_t log2 = ((const struct memory_row *)of)->key;
	return value_u64(log2 ? 1ull << log2 : 0);
}

static const struct column size_columns[] = {
	{ "from_bytes", UNIT_BYTES, "size from", "to less than twice this; 0: up to 1 byte",
		.get = get_from },
	ALLOCATIONS,
	{ 0 },
};

const struct section section_memory_by_size = {
	.name = "by_size",
	.heading = "Allocations on the GPU by size",
	.columns = size_columns,
	ROWS_OF_MEMORY(classes),
	.shown = SHOWN "from_bytes",
};

static const void *source(const struct row *row)
{
	const struct memory_detail *d = row->r->memory_detail;
	const uint64_t key = ((const struct memory_row *)row->at)->key;
	return expect(key < d->sources.n, "where memory came from is one of all")
		       ? &d->sources.v[key]
		       : NULL;
}

static const void *seen_source(const struct row *row)
{
	const struct memory_source *s = source(row);
	return s && !s->unseen ? s : NULL;
}

static const void *stream_source(const struct row *row)
{
	const struct memory_source *s = source(row);
	return s && s->has_stream ? s : NULL;
}

static const struct column thread_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, .find = source,
		AT(struct memory_source, process) },
	{ "tid", UNIT_ID, "thread", "thread; null: not seen", .find = seen_source,
		MEMBER(struct memory_source, tid) },
	{ "stream", UNIT_ADDRESS, "stream", "handle, of allocations in stream order",
		.find = stream_source, MEMBER(struct memory_source, stream) },
	{ "pool", UNIT_ADDRESS, "pool", "handle, of allocations in stream order",
		.find = stream_source, MEMBER(struct memory_source, pool) },
	ALLOCATIONS,
	{ 0 },
};

const struct section section_memory_by_thread = {
	.name = "by_thread",
	.heading = "Allocations on the GPU by thread and stream",
	.columns = thread_columns,
	ROWS_OF_MEMORY(origins),
	.shown = SHOWN "pid,tid,stream,pool",
};

static const struct column operator_columns[] = {
	{ "name", UNIT_TEXT, "operator",
		"innermost operator or range around the allocation, beyond those that allocate for "
		"others, as `aten::empty`; null: outside of all, or before the recording",
		MEMBER(struct memory_operator, name) },
	{ "at_peak_count", UNIT_COUNT, "blocks", "blocks that were live at the peak",
		MEMBER(struct memory_operator, at_peak) },
	{ "at_peak_bytes", UNIT_BYTES, "at peak", "their bytes",
		MEMBER(struct memory_operator, at_peak_bytes) },
	{ "module", UNIT_TEXT, "mostly in", "named range around most of these bytes",
		MEMBER(struct memory_operator, module) },
	{ "line", UNIT_TEXT, "line", "Python function around most of these bytes",
		MEMBER(struct memory_operator, line) },
	{ 0 },
};

const struct section section_memory_by_operator = {
	.name = "by_operator",
	.heading =
		"Live at the peak by operator (-: outside of operators, or before the recording)",
	.columns = operator_columns,
	ROWS_OF_MEMORY(operators),
	.shown = "at_peak_bytes,at_peak_count,name,module,line",
};

static void make_by_stack(struct rows *rows)
{
	rows->absent = !rows->r->memory_detail->stacks;
}

static struct value get_key_called_by(const struct row *row, const void *of)
{
	const uint32_t stack = (uint32_t)((const struct memory_row *)of)->key;
	return get_called_by(row, &stack);
}

static struct value get_key_frames(const struct row *row, const void *of)
{
	const uint32_t stack = (uint32_t)((const struct memory_row *)of)->key;
	return get_frames(row, &stack);
}

static const struct column stack_columns[] = {
	ALLOCATIONS,
	{ "called_by", UNIT_STACK, "called by", "the innermost frames of the program, in a line",
		.get = get_key_called_by },
	{ "frames", UNIT_LIST, "frames", "innermost first", .get = get_key_frames,
		.inner = &section_frames },
	{ 0 },
};

const struct section section_memory_by_stack = {
	.name = "by_call_stack",
	.about =
		"For recordings with `weir record --stacks`, by what is live at exit. Stacks that differ only between the program and CUDA are one row.",
	.columns = stack_columns,
	ROWS_OF_MEMORY(callers),
	.make = make_by_stack,
};

struct space_row {
	const char *when, *kind, *of;
	const struct memory_space *space;
	const struct free_extents *extents;
};

static void add_spaces(struct space_row *to, size_t *n, const struct memory_space *space, int kind,
	const char *when)
{
	if (!space->used)
		return;
	to[(*n)++] =
		(struct space_row){ when, memory_kind_name[kind], "pages", space, &space->pages };
	to[(*n)++] =
		(struct space_row){ when, memory_kind_name[kind], "span", space, &space->span };
}

static void make_space(struct rows *rows)
{
	struct space_row *v = xcalloc(MEMORY_KINDS * 4, sizeof *v);
	size_t n = 0;
	for (int k = 0; k < MEMORY_KINDS; k++) {
		add_spaces(v, &n, &rows->r->memory_detail->at_peak[k], k, "peak");
		add_spaces(v, &n, &rows->r->memory_detail->at_end[k], k, "exit");
	}
	rows_own(rows, v, n, sizeof *v);
}

FINDER(space, struct space_row, it, it->space)
FINDER(extents, struct space_row, it, it->extents)

static struct value get_fragmentation(const struct row *row, const void *of)
{
	const struct free_extents *h = of;
	double share;
	expect(h->free_bytes <= h->reach_bytes, "what is free is part of the range");
	return fragmentation_of(h, &share) ? value_real(share) : value_null();
}

static const struct column space_columns[] = {
	{ "when", UNIT_TEXT, "when", "`peak` or `exit`", MEMBER(struct space_row, when) },
	{ "kind", UNIT_TEXT, "kind", "memory kind: `device`, `managed`, `vmm`, `host`",
		MEMBER(struct space_row, kind) },
	{ "of", UNIT_TEXT, "of",
		"`pages`: those of 2 MiB that a block has ever touched; `span`: from the lowest live "
		"address to the highest",
		MEMBER(struct space_row, of) },
	{ "live_bytes", UNIT_BYTES, "live", "in blocks", .find = space,
		MEMBER(struct memory_space, live_bytes) },
	{ "span_bytes", UNIT_BYTES, "range", "looked at", .find = extents,
		MEMBER(struct free_extents, reach_bytes) },
	{ "free_bytes", UNIT_BYTES, "free", "of these", .find = extents,
		MEMBER(struct free_extents, free_bytes) },
	{ "largest_free_extent_bytes", UNIT_BYTES, "largest extent",
		"the largest free extent of each process", .find = extents,
		MEMBER(struct free_extents, largest_bytes) },
	{ "free_extents", UNIT_COUNT, "extents", "free extents", .find = extents,
		MEMBER(struct free_extents, count) },
	{ "fragmentation", UNIT_SHARE, "fragmented",
		"one minus `largest_free_extent_bytes` by `free_bytes`; null: nothing is free",
		.get = get_fragmentation, .find = extents },
	{ 0 },
};

const struct section section_memory_space = {
	.name = "space",
	.heading = "Free extents between blocks",
	.columns = space_columns,
	.make = make_space,
	.shown = "live_bytes,span_bytes,free_bytes,largest_free_extent_bytes,free_extents,"
		 "fragmentation,kind,when,of",
};

static const struct section *const sections[] = { &section_memory_members, &section_memory_details,
	&section_memory_by_call, &section_memory_by_size, &section_memory_by_thread,
	&section_memory_by_operator, &section_memory_by_stack, &section_memory_space };
#define SECTIONS (sizeof sections / sizeof sections[0])

const struct section *memory_section_at(size_t i)
{
	return i < SECTIONS ? sections[i] : NULL;
}

void memory_print_json(const struct report *r, FILE *out, bool compact)
{
	struct json j;
	struct summary summary;
	(compact ? json_begin_compact : json_begin_document)(&j, out);
	summary_make_memory(r, &summary);
	summary_put_json(&summary, &j);
	for (size_t i = 0; i < SECTIONS; i++)
		section_put_json(&j, sections[i], r);
	json_end_object(&j);
}
