/*
 * Lists steps one by one (trace/steps.h). The content of a step is found in two ordered lists: when
 * launches returned, and when GPUs were busy.
 */
#include "report/lister.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "model/nested.h"
#include "trace/activity.h"
#include "trace/steps.h"

#include "base/banned.h"

/* Of one process, apart; before_ns is the length of all those before it. */
struct busy_span {
	uint32_t process;
	uint64_t from_ns, to_ns, before_ns;
};

struct step_lists {
	ARRAY(struct nested) launches; /* by process and end */
	ARRAY(struct busy_span) busy;
};

static int end_order(const void *one, const void *two)
{
	const struct nested *a = one, *b = two;
	return a->process != b->process ? ORDER(a->process, b->process) : ORDER(a->end, b->end);
}

static int busy_order(const void *one, const void *two)
{
	const struct busy_span *a = one, *b = two;
	return a->process != b->process ? ORDER(a->process, b->process)
					: ORDER(a->from_ns, b->from_ns);
}

/* ---- what is in them ---- */

static int add_launch(const struct report *r, struct step_lists *lists, const struct chunk_buf *buf,
	const struct record *c)
{
	const struct schema_fn *fn = schema_find(&r->trace->schema, c->fn);
	if (!fn || c->result || c->flags & RECORD_CAPTURED || strcmp(fn->class, "launch") != 0)
		return 0;
	struct nested *to = array_push(&lists->launches);
	if (!to)
		return -ENOMEM;
	*to = (struct nested){ .ticks = c->ticks,
		.end = record_end(c),
		.process = buf->ref->process,
		.tid = buf->ref->head.tid };
	return 0;
}

/* A launch of the runtime and the one of the driver that it makes are one. */
static int drop_inner(struct step_lists *lists)
{
	size_t n = 0;
	if (lists->launches.n >= NESTED_NONE)
		return -EOVERFLOW;
	NESTED(lists->launches);
	for (size_t i = 0; i < lists->launches.n; i++)
		if (lists->launches.v[i].parent == NESTED_NONE)
			lists->launches.v[n++] = lists->launches.v[i];
	lists->launches.n = n;
	return 0;
}

static int read_launches(const struct report *r, struct step_lists *lists)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next(r->trace, CHUNK_EVENTS, &at, &buf, NULL)) > 0) {
		struct records it = records_of(&buf);
		e = 0;
		for (const struct record *c; !e && (c = records_next(&it));)
			e = add_launch(r, lists, &buf, c);
		if (e)
			break;
	}
	chunk_buf_fini(&buf);
	if (!e)
		e = drop_inner(lists);
	SORT(lists->launches, end_order);
	return e;
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
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = r->trace, .buf = &buf };
	struct gpu_activity w;
	int e;
	while ((e = trace_next_activity(&at, &w)) > 0) {
		if (w.kind == GPU_SYNC || w.kind == GPU_SPAN)
			continue; /* of the host, and of idle time too */
		struct busy_span *to = array_push(&lists->busy);
		if (!to) {
			e = -ENOMEM;
			break;
		}
		*to = (struct busy_span){ buf.ref->process, w.start_ns, w.end_ns, 0 };
	}
	chunk_buf_fini(&buf);
	merge_busy(lists);
	return e;
}

/* How many returned after `from`, until `to`. */
static uint64_t launches_in(const struct step_lists *lists, const struct step *s)
{
	const struct nested *v = lists->launches.v;
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

/* ---- the rows ---- */

static int put_step(struct lister *l, const struct step_lists *lists, const struct step *s)
{
	const struct report *r = l->r;
	const uint64_t from = trace_ns(r->trace, s->from), to = trace_ns(r->trace, s->to);
	const bool timed = lists->busy.n && !r->sampled;
	struct json *j = lister_begin_row(l);
	json_u64(j, "number", s->number);
	json_u64(j, "start_ns", lister_since(l, from));
	json_u64(j, "duration_ns", to > from ? to - from : 0);
	json_u64(j, "pid", r->trace->processes.v[s->process].pid);
	json_u64(j, "launches", launches_in(lists, s));
	const uint64_t busy =
		busy_until(lists, s->process, to) - busy_until(lists, s->process, from);
	json_u64_or_null(j, "device_busy_ns", timed, busy);
	json_put_real(j, "device_busy_share",
		timed && to > from ? (double)busy / (double)(to - from) : NAN);
	json_str_or_null(j, "kind", s->name ? range_kind_name(s->kind) : NULL);
	json_str_or_null(j, "name", s->name ? lister_string(l, s->process, s->name) : NULL);
	return lister_end_row(l);
}

int list_steps(struct lister *l)
{
	struct step_lists lists = { 0 };
	struct steps steps;
	int e = steps_load(l->r->trace, &l->r->meta, &steps);
	if (!e)
		e = read_launches(l->r, &lists);
	if (!e)
		e = read_busy(l->r, &lists);
	for (size_t i = 0; i < steps.v.n && !e; i++)
		e = put_step(l, &lists, &steps.v.v[i]);
	steps_fini(&steps);
	array_free(&lists.launches);
	array_free(&lists.busy);
	return e;
}
