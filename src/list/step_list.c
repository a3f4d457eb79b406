/*
 * Section steps: steps, one by one (trace/steps.h). The content of a step is found in two ordered
 * lists: when launches returned, and when GPUs were busy.
 */
#include "list/device_events.h"
#include "list/lists.h"

#include "base/search.h"
#include "base/sort.h"
#include "trace/steps.h"

/* Spans of each process, apart; before_ns is the length of all those before it. */
struct busy_span {
	uint32_t process;
	uint64_t from_ns, to_ns, before_ns;
};

struct launched {
	uint64_t begin, end;
	uint32_t process;
	uint32_t before; /* the thread's last one that is not inside of it; MAP_NONE */
	bool inside;     /* of another one */
};

struct step_lists {
	ARRAY(struct launched) launches; /* by process and end */
	ARRAY(struct busy_span) busy;
	struct steps steps;
};

ORDERING(launch_order, struct launched, ORDER(a->process, b->process), ORDER(a->end, b->end))

ORDERING(busy_order, struct busy_span, ORDER(a->process, b->process), ORDER(a->from_ns, b->from_ns))

/* A launch of the runtime and those of the driver that it makes are one: the thread's last ones
 * that began no earlier are inside. */
static void add_launch(struct step_lists *lists, struct map *threads, const struct step_call *m)
{
	struct launched *v = lists->launches.v;
	uint32_t *last = map_get(threads, MAP_KEY(m->process, m->tid));
	for (; *last != MAP_NONE && v[*last].begin >= m->begin; *last = v[*last].before)
		v[*last].inside = true;
	const uint32_t before = *last;
	*last = (uint32_t)lists->launches.n;
	*array_push(&lists->launches) = (struct launched){
		.begin = m->begin, .end = m->end, .process = m->process, .before = before
	};
}

static int take_launches(struct step_lists *lists, const struct step_calls *calls)
{
	struct map threads = { 0 };
	size_t n = 0;
	if (calls->v.n >= MAP_NONE)
		return -EOVERFLOW;
	for (size_t i = 0; i < calls->v.n; i++)
		if (!calls->v.v[i].waits)
			add_launch(lists, &threads, &calls->v.v[i]);
	map_fini(&threads);
	for (size_t i = 0; i < lists->launches.n; i++)
		if (!lists->launches.v[i].inside)
			lists->launches.v[n++] = lists->launches.v[i];
	lists->launches.n = n;
	SORT(lists->launches, launch_order);
	return 0;
}

static void merge_busy(struct step_lists *lists)
{
	size_t n = 0;
	SORT(lists->busy, busy_order);
	for (size_t i = 0; i < lists->busy.n; i++) {
		struct busy_span s = lists->busy.v[i];
		struct busy_span *last = n ? &lists->busy.v[n - 1] : NULL;
		const bool same = last && last->process == s.process;
		if (same && s.from_ns <= last->to_ns) {
			last->to_ns = s.to_ns > last->to_ns ? s.to_ns : last->to_ns;
			continue;
		}
		s.before_ns = same ? last->before_ns + last->to_ns - last->from_ns : 0;
		lists->busy.v[n++] = s;
	}
	lists->busy.n = n;
}

static int read_busy(const struct report *r, struct step_lists *lists)
{
	struct cursor at = { .t = r->trace };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		if (w.kind == GPU_SYNC || w.kind == GPU_SPAN)
			continue; /* of the host, and of idle time too */
		*array_push(&lists->busy) =
			(struct busy_span){ at.ref->process, w.start_ns, w.end_ns, 0 };
	}
	merge_busy(lists);
	return at.error;
}

/* How many returned after `from`, until `to`. */
static uint64_t launches_in(const struct step_lists *lists, const struct step *s)
{
	const struct launched *v = lists->launches.v;
	const size_t n = lists->launches.n;
	const size_t first = SEARCH(i, 0, n,
		v[i].process < s->process || (v[i].process == s->process && v[i].end <= s->from));
	return SEARCH(i, first, n, v[i].process == s->process && v[i].end <= s->to) - first;
}

/* How long GPUs were busy for a process until then. */
static uint64_t busy_until(const struct step_lists *lists, uint32_t process, uint64_t ns)
{
	const struct busy_span *v = lists->busy.v;
	const size_t behind = SEARCH(i, 0, lists->busy.n,
		v[i].process < process || (v[i].process == process && v[i].from_ns < ns));
	if (!behind || v[behind - 1].process != process)
		return 0;
	const struct busy_span *last = &v[behind - 1];
	return last->before_ns + (ns < last->to_ns ? ns : last->to_ns) - last->from_ns;
}

static void make_steps(struct rows *rows)
{
	struct step_lists *lists = xcalloc(1, sizeof *lists);
	rows_own(rows, lists, 0, sizeof *lists->steps.v.v);
	struct step_calls calls;
	int e = steps_load(rows->r->trace, &rows->r->meta, &calls, &lists->steps);
	if (!e)
		e = take_launches(lists, &calls);
	array_free(&calls.v);
	if (!e)
		e = read_busy(rows->r, lists);
	rows_take(rows, lists->steps.v.v, lists->steps.v.n, sizeof *lists->steps.v.v);
	rows->error = e;
}

static void free_steps(struct rows *rows)
{
	struct step_lists *lists = rows->own;
	steps_fini(&lists->steps);
	array_free(&lists->launches, &lists->busy);
	free(lists);
}

GETTER(get_start, uint64_t, it, value_u64(rows_since(row->rows, trace_ns(row->r->trace, *it))))

static uint64_t duration(const struct row *row, const struct step *s)
{
	const uint64_t from = trace_ns(row->r->trace, s->from), to = trace_ns(row->r->trace, s->to);
	return to > from ? to - from : 0;
}

GETTER(get_duration, void, of, value_u64(duration(row, of)))
GETTER(get_launches, void, of, value_u64(launches_in(row->rows->own, of)))

/* The times, if device times of all that ran were recorded. */
static const void *timed(const struct row *row)
{
	const struct step_lists *lists = row->rows->own;
	return lists->busy.n && !row->r->sampled ? row->at : NULL;
}

static uint64_t busy_in(const struct row *row, const struct step *s)
{
	const struct step_lists *lists = row->rows->own;
	return busy_until(lists, s->process, trace_ns(row->r->trace, s->to)) -
	       busy_until(lists, s->process, trace_ns(row->r->trace, s->from));
}

GETTER(get_busy, void, of, value_u64(busy_in(row, of)))
GETTER(get_busy_share, void, of, value_share(busy_in(row, of), duration(row, of)))

/* A step that a range or an optimizer names. */
FINDER(named, struct step, s, s->name ? s : NULL)
GETTER(get_kind, struct step, it, value_text(range_kind_name(it->kind)))
GETTER(get_name, struct step, s, value_text(rows_string(row->rows, s->process, s->name)))

static const struct column step_columns[] = {
	{ "number", UNIT_ID, "step", "of the range's name, or counted from 1",
		MEMBER(struct step, number) },
	{ "start_ns", UNIT_MOMENT, "at", "when it began", .get = get_start, AT(struct step, from) },
	{ "duration_ns", UNIT_NS, "time", "how long it was", .get = get_duration, .sums = true },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct step, process) },
	{ "launches", UNIT_COUNT, "launches",
		"launches of kernels and graphs that returned in the step; one of the runtime and that "
		"of the driver inside are one",
		.get = get_launches, .sums = true },
	{ "device_busy_ns", UNIT_NS, "busy",
		"of the step: something of this process ran on a GPU; null: not recorded, or sampled",
		.get = get_busy, .find = timed, .sums = true },
	{ "device_busy_share", UNIT_SHARE, "busy share", "`device_busy_ns` of `duration_ns`",
		.get = get_busy_share, .find = timed },
	{ "kind", UNIT_TEXT, "kind", "of the range; null: found by waits or kernels",
		.get = get_kind, .find = named },
	{ "name", UNIT_TEXT, "name", "of the range, or of the optimizer's", .get = get_name,
		.find = named },
	{ 0 },
};

const struct section section_steps = {
	.name = "steps",
	.heading = "Steps by time",
	.about =
		"Steps, one by one, in the order of their start, with the numbers that `--steps` takes. The first of these ways that finds steps counts. The other ways have to find two or more.\n"
		"\n"
		"1. Ranges that the program numbers. The name of a range of NVTX or of an annotation ends in `#` and a number, as `ProfilerStep#5`. Or it ends in `step`, `iteration`, `iter` or `batch` and a number, as `train_step 5`. If there are several names, the one that lasts longest together counts.\n"
		"2. The time from the end of one optimizer's step to the end of the next. PyTorch marks them (`Optimizer.step#…`).\n"
		"3. The launches of the process that launches most, until a call waited for them. The work until the next wait belongs to the same step if it launches less than a tenth of the usual. Such parts are three of four at most, and have a tenth of the time at most.\n"
		"4. From one launch of a kernel to the next, if as many launches are between them each time, over most of the run.\n"
		"5. From one range of a name to the next, if that range is in no other.\n"
		"\n"
		"Steps of the second and third way follow each other without a gap. Steps of a part have the numbers that they have in the whole.",
	.of = OF_STEPS,
	.columns = step_columns,
	.make = make_steps,
	.fini = free_steps,
	.asked = true,
	.shown = "number,start_ns,duration_ns,launches,device_busy_ns,device_busy_share,pid,kind,"
		 "name",
	.note = "Steps are ranges that the program numbers, as ProfilerStep#2 or step 2.  Otherwise a step ends when an optimizer's step ended, or a call waited, or a kernel or range of the same name came again.  Launches are kernels launched meanwhile.  Busy is the time in which something ran meanwhile.  --only range_kernels has what they launched, whenever it ran.",
};
