/* Parses the options that choose a part of a trace. */
#include "cmd/cli/part_options.h"

#include <string.h>

#include "base/number.h"
#include "cmd/cli/off_activities.h"
#include "cmd/cli/options.h"
#include "cmd/cli/values.h"
#include "join/links.h"
#include "trace/meta.h"
#include "trace/part.h"

static int take_time(const struct options *o, const char *name, uint64_t *ret_ns)
{
	const char *text = opt_str(o, name);
	if (text && !duration_parse(text, ret_ns))
		return complain(EXIT_USAGE,
			"--%s=%s is no time. Give a number with its unit, counted from the begin of the recording: 2.5s, for example",
			name, text);
	return 0;
}

static int take(const struct options *o, struct trace_cut *cut)
{
	const char *text = opt_str(o, "steps");
	struct step_numbers steps = { 0 };
	int code = take_time(o, "after", &cut->after_ns);
	code = code ? code : take_time(o, "before", &cut->before_ns);
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
