/* Sections of where the wall time went: its parts, overlap, the queue, the critical path, idle
 * gaps. */
#include "report/analysis.h"
#include "report/report_make.h"
#include "report/sections.h"

#include "base/bounded.h"
#include "base/expect.h"
#include "base/number.h"
#include "section/shared_columns.h"

/* Nothing here means anything unless something ran on a device. */
static void make_known(struct rows *rows)
{
	rows->absent = !rows->r->analysis.known;
}

static const struct column wall_columns[] = {
	{ "wall_ns", UNIT_NS, "wall time",
		"wall time; `breakdown` and `critical_path` add up to it",
		MEMBER(struct report, wall_ns) },
	{ 0 },
};

const struct section section_wall = {
	.name = "wall",
	.form = SECTION_MEMBERS,
	.facets = FACET(DEVICE),
	.columns = wall_columns,
};

/* A row is a time of the array; rows->all: that they add up to. */
static void make_parts(struct rows *rows, const uint64_t *ns, size_t n)
{
	make_known(rows);
	rows_take(rows, ns, n, sizeof *ns);
	rows->all = 0;
	for (size_t i = 0; i < n; i++)
		rows->all += (double)ns[i];
}

static void make_breakdown(struct rows *rows)
{
	make_parts(rows, rows->r->analysis.wall_ns, WALL_PARTS);
}

static void make_path(struct rows *rows)
{
	make_parts(rows, rows->r->analysis.path_ns, PATH_PARTS);
}

GETTER(get_wall_name, void, of, value_text(wall_part_name[row->index]))
GETTER(get_wall_text, void, of, value_text(wall_part_text[row->index]))
GETTER(get_path_name, void, of, value_text(path_part_name[row->index]))
GETTER(get_path_text, void, of, value_text(path_part_text[row->index]))

/* Shares of the wall time from the first activity to the last: a program's start is often longer
 * than all that it does.  NULL: the part is outside of it. */
static const void *inside(const struct row *row)
{
	const size_t n = row->rows->section == &section_breakdown ? WALL_BEFORE : PATH_BEFORE;
	return row->index < n ? row->at : NULL;
}

static struct value get_gpu_share(const struct row *row, const void *of)
{
	const uint64_t *wall = row->r->analysis.wall_ns;
	expect(wall[WALL_BEFORE] <= row->r->wall_ns &&
			wall[WALL_AFTER] <= row->r->wall_ns - wall[WALL_BEFORE],
		"what is before the first GPU activity and after the last is part of the wall time");
	return value_share(
		*(const uint64_t *)of, row->r->wall_ns - wall[WALL_BEFORE] - wall[WALL_AFTER]);
}

static struct value get_bar(const struct row *row, const void *of)
{
	static const char bar[] = "####################";
	const struct value share = inside(row) ? get_gpu_share(row, of) : value_null();
	const double n = share.kind == VALUE_REAL ? share.real * 20 + 0.5 : 0;
	return value_text(bar + 20 - (n < 20 ? (int)n : 20));
}

#define PART(names, name, words)                                                                   \
	{ "name", UNIT_TEXT, "name", names, .get = name },                                         \
		{ "ns", UNIT_NS, "time", "its time", .get = get_u64, .sums = true },               \
		{ "share", UNIT_SHARE, "of wall", "of the wall time, to which the parts add up",   \
			.get = get_share_of_all, .sums = true },                                   \
		{ "gpu_share", UNIT_SHARE, "of GPU span",                                          \
			"of the time from the first activity to the last", .get = get_gpu_share,   \
			.find = inside, .text_only = true },                                       \
		{ "bar", UNIT_TEXT, "", "the same as a bar", .get = get_bar, .text_only = true },  \
	{                                                                                          \
		"what", UNIT_TEXT, "what", "the part in words", .get = words                       \
	}

static const struct column breakdown_columns[] = {
	PART("`computing`, `communicating`, `copying`, `idle_launch_bound`, `idle_waiting`, "
	     "`idle_driver`, `idle_host`, `idle_queued`, `idle_unknown`, `off` (not recorded: "
	     "switched off), `before`, `after`",
		get_wall_name, get_wall_text),
	{ 0 },
};

const struct section section_breakdown = {
	.name = "breakdown",
	.heading = "Wall time by what happened",
	.of = OF_IDLE,
	.facets = FACET(DEVICE),
	.columns = breakdown_columns,
	.make = make_breakdown,
	.shown = "ns,share,name,what",
	.note = "Each moment counts once: as computing if any GPU computed, else as communicating, else as copying, else by what the host did.  A blocking copy is a synchronizing call, too.  Communicating means NCCL: gloo and MPI work on the host.  --steady, --steps N-M or --range NAME leaves out start-up.",
};

static const struct column path_columns[] = {
	PART("`computing`, `communicating`, `copying`, `queue`, `launch`, `host`, `waiting`, "
	     "`overlapped`, `unknown`, `before`, `after` "
	     "([what they mean](../explanation/critical-path.md))",
		get_path_name, get_path_text),
	{ 0 },
};

const struct section section_critical_path = {
	.name = "critical_path",
	.heading = "Critical path",
	.of = OF_IDLE,
	.facets = FACET(DEVICE),
	.columns = path_columns,
	.make = make_path,
	.shown = "ns,share,name,what",
	.note = "This is what the end of the run waited for, from the end backwards.  The parts add up to the wall time.  --steady, --steps N-M or --range NAME leaves out start-up.",
	.below = analysis_put_slack,
};

static void make_analysis(struct rows *rows)
{
	rows->v = &rows->r->analysis;
	make_known(rows);
}

GETTER(get_copy_share, struct analysis, a, value_share(a->copy_hidden_ns, a->copy_ns))
GETTER(get_communication_share, struct analysis, a,
	value_share(a->communication_hidden_ns, a->communication_ns))

static const struct column overlap_columns[] = {
	{ "copy_ns", UNIT_NS, "copying", "in all: of several devices the sum",
		MEMBER(struct analysis, copy_ns) },
	{ "copy_hidden_ns", UNIT_NS, "copying, hidden",
		"while the same device computed; the rest is exposed",
		MEMBER(struct analysis, copy_hidden_ns) },
	{ "copy_hidden_share", UNIT_SHARE, "share of copying that is hidden",
		"of `copy_ns`; null: there was none", .get = get_copy_share },
	{ "communication_ns", UNIT_NS, "communicating", "in all: of several devices the sum",
		MEMBER(struct analysis, communication_ns) },
	{ "communication_hidden_ns", UNIT_NS, "communicating, hidden",
		"while the same device computed; the rest is exposed",
		MEMBER(struct analysis, communication_hidden_ns) },
	{ "communication_hidden_share", UNIT_SHARE, "share of communicating that is hidden",
		"of `communication_ns`; null: there was none", .get = get_communication_share },
	{ 0 },
};

const struct section section_overlap = {
	.name = "overlap",
	.heading = "Overlap",
	.form = SECTION_OBJECT,
	.of = OF_IDLE,
	.facets = FACET(DEVICE),
	.columns = overlap_columns,
	.make = make_analysis,
	.note = "Hidden time is time in which the same GPU computed.  Communication means kernels of NCCL.  --only nccl has operations on the host, as those of gloo.",
};

static void make_queue(struct rows *rows)
{
	rows->v = &rows->r->analysis.queue;
	make_known(rows);
}

FINDER(queued, struct queue, q, q->calls ? q : NULL)
GETTER(get_queued_p99, struct hist, h, value_u64_if(h->count, hist_at(h, 0.99)))
GETTER(get_empty_share, struct queue, q, value_share(q->empty_ns, q->span_ns))

static const struct column queue_columns[] = {
	{ "calls", UNIT_COUNT, "calls", "calls whose activities were seen to run",
		MEMBER(struct queue, calls) },
	{ "api_ns", UNIT_NS, "in these calls", "sum of the times in the calls", .find = queued,
		MEMBER(struct queue, api_ns) },
	{ "queued_ns", UNIT_NS, "queued", "sum of the times from a call's return to the start",
		.find = queued, MEMBER(struct queue, queued_ns) },
	{ "queued_p50_ns", UNIT_NS, "queued, median", "of one", .get = get_hist_p50,
		AT(struct queue, queued) },
	{ "queued_p99_ns", UNIT_NS, "queued, p99", "of one", .get = get_queued_p99,
		AT(struct queue, queued) },
	{ "depth_most", UNIT_COUNT, "depth, most", "activities that waited, at most",
		.find = queued, MEMBER(struct queue, depth_most) },
	{ "depth_mean", UNIT_REAL, "depth, mean", "activities that waited, on average",
		.find = queued, MEMBER(struct queue, depth_mean) },
	{ "span_ns", UNIT_NS, "from first call to last start",
		"from the first call to the last start", .find = queued,
		MEMBER(struct queue, span_ns) },
	{ "empty_ns", UNIT_NS, "empty", "of `span_ns`, the time in which nothing waited",
		.find = queued, MEMBER(struct queue, empty_ns) },
	{ "empty_share", UNIT_SHARE, "empty share", "`empty_ns` of `span_ns`",
		.get = get_empty_share },
	{ 0 },
};

const struct section section_queue = {
	.name = "queue",
	.heading = "Queue",
	.form = SECTION_OBJECT,
	.of = OF_IDLE,
	.facets = FACET(DEVICE),
	.columns = queue_columns,
	.make = make_queue,
	.note = "The calls are those that launch kernels, memcpys and memsets.  Queued is the time from the call's return to the start on the GPU.  Depth is how many activities were launched and had not begun.  While the queue is empty, the GPU has to wait for the host after its current activity.  --steady, --steps N-M or --range NAME leaves out start-up.",
};

GETTER(get_host_most, struct analysis, a, value_u64_if(a->queue.calls, a->path_host_most_ns))

static const struct column host_columns[] = {
	{ "critical_path_host_most_ns", UNIT_NS, "host at most",
		"the path's slack: the most that a faster host can save; the parts `host`, "
		"`launch` and `waiting` together",
		.get = get_host_most },
	{ 0 },
};

const struct section section_path_host = {
	.name = "critical_path_host",
	.form = SECTION_MEMBERS,
	.facets = FACET(DEVICE),
	.columns = host_columns,
	.make = make_analysis,
};

FINDER(culprit_call, struct idle_gap, p, p->culprit.call_ns ? &p->culprit : NULL)
GETTER(get_cause, struct idle_gap, it, value_text(wall_part_name[it->cause]))
GETTER(get_call, struct idle_culprit, it, function_name(row, it->call_fn))
GETTER(get_name, uint32_t, name,
	value_text(*name == META_NONE ? NULL : row->r->meta.names.v[*name].text))

/* Into the row's room, or as it is where it does not lie in the other one. */
static struct value kept(const struct row *row, const char *text, const struct gap_text *room)
{
	if (!text || text < (const char *)room || text >= (const char *)(room + 1))
		return value_text(text);
	snprintf(row->text, ROW_TEXT, "%s", text);
	return value_text(row->text);
}

static struct value get_line(const struct row *row, const void *of)
{
	struct gap_text room;
	return kept(row, analysis_line(row->r, of, &room), &room);
}

static struct value get_before(const struct row *row, const void *of)
{
	struct gap_text room;
	return kept(row, analysis_began(row->r, of, &room), &room);
}

/* That the devices were idle need not be said of an idle gap. */
static struct value get_cause_text(const struct row *row, const void *of)
{
	static const char idle[] = "idle";
	const char *text = wall_part_text[((const struct idle_gap *)of)->cause];
	return value_text(strncmp(text, idle, sizeof idle - 1) ? text : text + sizeof idle + 1);
}

/* The call, the operator, the module, the line: those that are known. */
static struct value get_culprit(const struct row *row, const void *of)
{
	const struct idle_gap *gap = of;
	const struct idle_culprit *c = &gap->culprit;
	const struct meta_name *names = row->r->meta.names.v;
	struct fn_name fn;
	struct gap_text room;
	struct number ns;
	struct bounded b = { .to = row->text, .size = 512 };
	const char *line = analysis_line(row->r, gap, &room);
	if (c->call_ns)
		bounded_printf(&b, "%s %s", report_fn_name(row->r, c->call_fn, &fn),
			number_ns(&ns, c->call_ns));
	if (c->operator!= META_NONE)
		bounded_printf(&b, "%s%.60s", b.used ? " in " : "", names[c->operator].text);
	if (c->module != META_NONE)
		bounded_printf(&b, "%s%.60s", b.used ? ", " : "", names[c->module].text);
	if (line)
		bounded_printf(&b, "%s%.80s", b.used ? ", " : "", line);
	bounded_end(&b);
	return value_text(b.used ? row->text : NULL);
}

static const struct column gap_columns[] = {
	{ "start_ns", UNIT_MOMENT, "at", "when it began", MEMBER(struct idle_gap, start_ns) },
	{ "ns", UNIT_NS, "time", "how long it was", MEMBER(struct idle_gap, ns), .sums = true },
	{ "cause", UNIT_TEXT, "cause", "what the host did for most of it: a name of `breakdown`",
		.get = get_cause },
	{ "cause_text", UNIT_TEXT, "cause", "the same in words", .get = get_cause_text,
		.text_only = true },
	{ "culprit", UNIT_TEXT, "culprit", "call, operator, module and line, as they are known",
		.get = get_culprit, .text_only = true },
	{ "call", UNIT_TEXT, "call",
		"the call in which the host spent most of it; null: no call is to blame",
		.get = get_call, .find = culprit_call },
	{ "call_ns", UNIT_NS, "in call", "how much of it the host spent in that call",
		.find = culprit_call, MEMBER(struct idle_culprit, call_ns) },
	{ "operator", UNIT_TEXT, "operator",
		"innermost operator around that call; without one, in the middle of what the host did "
		"before it asked for the next activity. An operator that allocates for another one "
		"counts as that one",
		.get = get_name, AT(struct idle_gap, culprit.operator) },
	{ "module", UNIT_TEXT, "module", "innermost range that the program names, likewise",
		.get = get_name, AT(struct idle_gap, culprit.module) },
	{ "line", UNIT_TEXT, "line",
		"function of Python around it, with its line, in recordings that have them",
		.get = get_line },
	{ "after", UNIT_KERNEL, "after", "what ended last before it",
		MEMBER(struct idle_gap, ended) },
	{ "before", UNIT_KERNEL, "before",
		"what ran next; a memcpy or memset says its size and its operator, too",
		.get = get_before },
	{ 0 },
};

#define GAP_COLUMNS "start_ns,ns,cause,call,operator,module,line,after,before"

const struct section section_longest_gaps = {
	.name = "idle_gaps",
	.heading = "Longest idle gaps",
	.about = "The 20 longest idle gaps. `--only idle_gaps` has each, in the order of time.",
	.of = OF_IDLE,
	.facets = FACET(BLAME),
	.columns = gap_columns,
	ROWS_OF(analysis.idle_gaps),
	.make = make_known,
	.shown = GAP_COLUMNS,
};

static void make_all_gaps(struct rows *rows)
{
	struct report *with_gaps;
	struct error err;
	rows->error = report_make_with_gaps(rows->r, &with_gaps, &err);
	if (rows->error)
		return;
	rows->own = with_gaps;
	rows->r = with_gaps;
	rows->v = with_gaps->analysis.idle_gaps.v;
	rows->n = with_gaps->analysis.idle_gaps.n;
}

static void free_report(struct rows *rows)
{
	report_free(rows->own);
}

const struct section section_idle_gaps = {
	.name = "idle_gaps",
	.heading = "Idle gaps by time",
	.about = "Each idle gap, in the order of time.",
	.of = OF_IDLE,
	.columns = gap_columns,
	ROWS_OF(analysis.idle_gaps),
	.make = make_all_gaps,
	.fini = free_report,
	.asked = true,
	.shown = GAP_COLUMNS,
	.note = "No GPU ran anything in these times.  Each has the host's main reason, and the call, operator, module and line of Python, if they are known.  --sort ns puts the longest first, and --only breakdown has sums by cause.",
};
