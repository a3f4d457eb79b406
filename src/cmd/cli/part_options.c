/* Parses the options that choose a part of a trace. */
#include "cmd/cli/part_options.h"

#include <string.h>

#include "base/atomic.h"
#include "base/number.h"
#include "base/search.h"
#include "cmd/cli/options.h"
#include "cmd/cli/values.h"
#include "join/links.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/part.h"

/*
 * Finds GPU activities that were launched while recording was switched off.
 *
 * CUPTI continues then, because no code of Weir runs at the switch. An activity belongs to that
 * time if no recorded call launched it and recording was off between its neighbours. Its neighbours
 * are the calls that got the correlation numbers before and after its own.
 */

static bool was_off(const struct trace *t)
{
	const struct trace_header *h = &t->header;
	return load_relaxed(&h->optional) & FEATURE_DEVICE && !h->sampled &&
	       (t->off.count || load_relaxed(&h->off_since_ns));
}

static bool is_off_between(const struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t since = load_relaxed(&t->header.off_since_ns);
	if (since && since < to_ns)
		return true;
	for (uint32_t i = 0; i < t->off.count; i++)
		if (t->off.v[i].from_ns < to_ns && t->off.v[i].to_ns > from_ns)
			return true;
	return false;
}

static bool is_before(const struct call_link *l, uint32_t process, uint64_t correlation)
{
	return l->process != process ? l->process < process : l->correlation < correlation;
}

/* Launched between the call of the number before and that of the number after, and before it began
 * to run. */
static bool is_of_off_time(const struct trace *t, const struct links *l, uint32_t process,
	const struct gpu_activity *w)
{
	const size_t i = SEARCH(k, 0, l->v.n, is_before(&l->v.v[k], process, w->correlation));
	const struct call_link *after = i < l->v.n ? &l->v.v[i] : NULL;
	const struct call_link *before = i ? &l->v.v[i - 1] : NULL;
	uint64_t from = 0, to = w->start_ns;
	if (before && before->process == process)
		from = trace_ns(t, before->ticks);
	if (after && after->process == process && trace_ns(t, after->ticks + after->dur) < to)
		to = trace_ns(t, after->ticks + after->dur);
	return is_off_between(t, from, to);
}

static int take_activities(struct trace *t, const struct links *l)
{
	struct cursor at = { .t = t };
	size_t hint = 0;
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const uint32_t process = at.ref->process;
		if (!(w.valid & GPU_HAS_CORRELATION) || !w.correlation ||
			links_of(l, process, &w, &hint) || !is_of_off_time(t, l, process, &w))
			continue;
		activity_filter_add(t, process, w.correlation);
	}
	return at.error;
}

/* Takes them out of t, before trace_cut() and before anything is loaded by several threads.  Costs
 * nothing where recording was on all the time.  0 or -errno, then with a sentence. */
static int off_activities_leave_out(struct trace *t, struct error *err)
{
	struct meta meta;
	struct links links;
	if (!was_off(t))
		return 0;
	int e = meta_load(t, &meta, err);
	if (e)
		return e;
	e = links_load(t, &meta, &links);
	if (!e) {
		e = take_activities(t, &links);
		links_fini(&links);
	}
	meta_fini(&meta);
	if (e)
		return error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
	activity_filter_finish(t);
	return 0;
}

static int take(const struct options *o, struct trace_cut *cut)
{
	const char *text = opt_str(o, "steps");
	struct step_numbers steps = { 0 };
	int code = take_time(o, "after", 1, UINT64_MAX, &cut->after_ns);
	code = code ? code : take_time(o, "before", 1, UINT64_MAX, &cut->before_ns);
	if (code)
		return code;
	if (cut->before_ns && cut->before_ns <= cut->after_ns)
		return complain(
			EXIT_USAGE, "--before is not later than --after. Nothing is between them");
	if (text && !step_numbers_parse(text, &steps))
		return complain(EXIT_USAGE,
			"--steps=%s: give the numbers of the first and the last step: 10-19, for example. `weir report --only steps` lists them",
			text);
	cut->steps = text;
	cut->first_step = steps.first;
	cut->last_step = steps.last;
	cut->range = opt_str(o, "range");
	cut->steady = opt_flag(o, "steady");
	if (cut->steady && text)
		return complain(EXIT_USAGE, "--steady finds the steps itself. Leave out --steps");
	return 0;
}

/* Which call asked for what, of the whole recording. */
static int take_launches(struct trace *t, struct trace_cut *cut, struct error *err)
{
	struct meta m;
	struct links l = { 0 };
	int e = meta_load(t, &m, err);
	if (!e)
		e = links_load(t, &m, &l);
	struct launch_time *v = e ? NULL : xmalloc((l.v.n + 1) * sizeof *v);
	if (e)
		error_set(err, e, "the trace's launches can't be read: %s", strerror(-e));
	for (size_t i = 0; v && i < l.v.n; i++)
		v[i] = (struct launch_time){ l.v.v[i].correlation, l.v.v[i].ticks,
			l.v.v[i].process };
	cut->launched = v;
	cut->launched_count = v ? l.v.n : 0;
	links_fini(&l);
	meta_fini(&m);
	return e;
}

static void say_part(const char *file, const struct trace *t)
{
	struct number part, whole;
	remark("%s is read in part, %s of %s%s%s", file, number_ns(&part, t->part.part_ns),
		number_ns(&whole, t->part.whole_ns), *t->part.how ? ": " : "", t->part.how);
}

int part_options_cut(const struct options *o, struct trace *t, const char *file)
{
	struct trace_cut cut = { 0 };
	struct error err;
	const int code = take(o, &cut);
	if (code)
		return code;
	int e = off_activities_leave_out(t, &err);
	if (!e && (cut.range || cut.steps || cut.steady))
		e = take_launches(t, &cut, &err);
	if (!e)
		e = trace_cut(t, &cut, &err);
	free((void *)cut.launched);
	if (!e && t->cut && strcmp(o->command->name, "report") != 0)
		say_part(file, t);
	return e ? complain(e == -ENODATA ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text) : 0;
}
