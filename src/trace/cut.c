/* See part.h: which parts of the time are asked for. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounded.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/part.h"
#include "trace/steps.h"

#include "base/banned.h"

#define STEADY_LEAST 10u /* steps: of fewer, none can be told to be warm-up */
#define NAMES_SAID   5u

/* Ticks, [from, to); ascending and apart once merged. */
struct span {
	uint64_t from, to;
};
struct spans {
	ARRAY(struct span) v;
};

static int add(struct spans *s, uint64_t from, uint64_t to)
{
	struct span *new = from < to ? array_push(&s->v) : NULL;
	if (new)
		*new = (struct span){ from, to };
	return new || from >= to ? 0 : -ENOMEM;
}

static int span_order(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	return ORDER(a->from, b->from);
}

static void merge(struct spans *s)
{
	size_t n = 0;
	SORT(s->v, span_order);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct span *next = &s->v.v[i];
		if (n && next->from <= s->v.v[n - 1].to)
			s->v.v[n - 1].to =
				next->to > s->v.v[n - 1].to ? next->to : s->v.v[n - 1].to;
		else
			s->v.v[n++] = *next;
	}
	s->v.n = n;
}

/* a becomes what is in both. */
static int intersect(struct spans *a, const struct spans *b)
{
	struct spans both = { 0 };
	int e = 0;
	for (size_t i = 0, k = 0; i < a->v.n && k < b->v.n && !e;) {
		const struct span *x = &a->v.v[i], *y = &b->v.v[k];
		e = add(&both, x->from > y->from ? x->from : y->from,
			x->to < y->to ? x->to : y->to);
		if (x->to < y->to)
			i++;
		else
			k++;
	}
	array_free(&a->v);
	*a = both;
	return e;
}

/* ---- times ---- */

/* The tick at which the clock shows `ns` or more: a search, since the clock is known one way. */
static uint64_t ticks_at(const struct trace *t, uint64_t ns, uint64_t last)
{
	uint64_t low = t->header.start.ticks, high = last;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (trace_ns(t, middle) < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t last_ticks(const struct trace *t)
{
	const uint64_t end = t->header.end.ticks, last = t->last_ticks > end ? t->last_ticks : end;
	return last > t->header.start.ticks ? last : t->header.start.ticks + 1;
}

static int cut_times(const struct trace *t, const struct trace_cut *cut, struct spans *s)
{
	struct spans one = { 0 };
	const uint64_t start = t->header.start.mono_ns, last = last_ticks(t);
	const uint64_t from = cut->after_ns ? ticks_at(t, start + cut->after_ns, last + 1)
					    : t->header.start.ticks;
	int e = add(&one, from,
		cut->before_ns ? ticks_at(t, start + cut->before_ns, last + 1) : last + 1);
	if (!e)
		e = intersect(s, &one);
	array_free(&one.v);
	return e;
}

/* ---- ranges ---- */

struct search {
	const struct trace *t;
	struct meta meta;
	const char *name;
	struct spans found;
	uint32_t names[NAMES_SAID]; /* that are there instead */
	size_t name_count;
};

static void note_name(struct search *s, uint32_t name)
{
	for (size_t i = 0; i < s->name_count; i++)
		if (s->names[i] == name)
			return;
	if (s->name_count < NAMES_SAID)
		s->names[s->name_count++] = name;
}

static int take_range(struct search *s, uint32_t process, const struct range *g)
{
	const uint32_t name = meta_find_string(&s->meta, process, g->name);
	if (name == META_NONE || g->kind == RANGE_CAPTURE)
		return 0;
	if (!strcmp(s->meta.names.v[name].text, s->name))
		return add(&s->found, g->ticks, range_end(g));
	if (g->kind != RANGE_OPERATOR && g->kind != RANGE_PYTHON)
		note_name(s, name);
	return 0;
}

static int take_ranges(struct search *s)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = s->t, .buf = &buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0 && !(e = take_range(s, buf.ref->process, &g)))
		;
	chunk_buf_fini(&buf);
	merge(&s->found);
	return e;
}

static int no_range(const struct search *s, struct error *err)
{
	char list[512] = "";
	struct bounded b = BOUNDED(list);
	for (size_t i = 0; i < s->name_count; i++)
		bounded_printf(&b, "%s%.60s", i ? ", " : "; there are ",
			s->meta.names.v[s->names[i]].text);
	bounded_end(&b);
	return error_set(err, -ENODATA, "there is no range %s in the trace%s", s->name,
		s->name_count ? list : ", nor any other that the program has marked");
}

static int cut_range(struct trace *t, const char *name, struct spans *spans, struct error *err)
{
	struct search s = { .t = t, .name = name };
	int e = meta_load(t, &s.meta, err);
	if (!e)
		e = take_ranges(&s);
	if (!e && !s.found.v.n)
		e = no_range(&s, err);
	if (!e)
		e = intersect(spans, &s.found);
	snprintf(t->part.how, sizeof t->part.how, "range %s", name);
	array_free(&s.found.v);
	meta_fini(&s.meta);
	return e;
}

/* ---- steps ---- */

static int keep_steps(const struct trace *t, const struct steps *s, size_t first, size_t last,
	struct spans *spans)
{
	struct spans one = { 0 };
	int e = add(
		&one, first > 1 ? s->end.v[first - 2] : t->header.start.ticks, s->end.v[last - 1]);
	if (!e)
		e = intersect(spans, &one);
	array_free(&one.v);
	return e;
}

static int choose_steps(struct trace *t, const struct trace_cut *cut, const struct steps *s,
	struct spans *spans, struct error *err)
{
	const size_t n = s->end.n;
	if (cut->first_step > n)
		return error_set(err, -ENODATA,
			"there are only %zu steps in the trace: what was launched until a call waited for it",
			n);
	const size_t last = cut->last_step < n ? cut->last_step : n;
	snprintf(t->part.how, sizeof t->part.how, "steps %" PRIu32 " to %zu of %zu",
		cut->first_step, last, n);
	return keep_steps(t, s, cut->first_step, last, spans);
}

static int choose_steady(
	struct trace *t, const struct steps *s, struct spans *spans, struct error *err)
{
	const size_t n = s->end.n;
	if (n < STEADY_LEAST)
		return error_set(err, -ENODATA,
			"there are only %zu steps in the trace, what was launched until a call waited for it; of fewer than %u none can be said to be warm-up",
			n, STEADY_LEAST);
	uint64_t *length = malloc(n * sizeof *length);
	if (!length)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		length[i] = s->end.v[i] - (i ? s->end.v[i - 1] : t->header.start.ticks);
	const size_t warm = steps_warm_up(length, n);
	free(length);
	snprintf(t->part.how, sizeof t->part.how,
		"steps %zu to %zu of %zu: %zu at the begin are warm-up and left out", warm + 1, n,
		n, warm);
	return keep_steps(t, s, warm + 1, n, spans);
}

static int cut_steps(
	struct trace *t, const struct trace_cut *cut, struct spans *spans, struct error *err)
{
	struct steps s;
	int e = steps_load(t, &s);
	if (!e)
		e = cut->steady ? choose_steady(t, &s, spans, err)
				: choose_steps(t, cut, &s, spans, err);
	steps_fini(&s);
	return e;
}

/* ---- what was recorded of the run ---- */

static int take_captures(const struct trace *t, struct spans *s)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0)
		if (g.kind == RANGE_CAPTURE && (e = add(s, g.ticks, range_end(&g))))
			break;
	chunk_buf_fini(&buf);
	merge(s);
	return e;
}

/* In nanoseconds: each part until the end of the last activity that began before the next. */
static int find_tails(const struct trace *t, struct spans *ns)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct gpu_activity w;
	int e;
	while ((e = trace_next_activity(&at, &w)) > 0) {
		const size_t i = SEARCH(k, 0, ns->v.n, ns->v.v[k].from <= w.start_ns);
		if (i && w.end_ns > ns->v.v[i - 1].to)
			ns->v.v[i - 1].to = w.end_ns;
	}
	chunk_buf_fini(&buf);
	return e;
}

/* What was launched in a part may run when it is over. */
static int add_tails(const struct trace *t, struct spans *s)
{
	struct spans ns = { 0 };
	const uint64_t last = last_ticks(t) + 1;
	int e = array_reserve(&ns.v, s->v.n) ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->v.n && !e; i++)
		ns.v.v[ns.v.n++] =
			(struct span){ trace_ns(t, s->v.v[i].from), trace_ns(t, s->v.v[i].to) };
	if (!e)
		e = find_tails(t, &ns);
	for (size_t i = 0; i < ns.v.n && !e; i++)
		if (ns.v.v[i].to > trace_ns(t, s->v.v[i].to))
			s->v.v[i].to = ticks_at(t, ns.v.v[i].to, last);
	array_free(&ns.v);
	merge(s);
	return e;
}

static int captured(struct trace *t, struct spans *spans)
{
	struct spans s = { 0 };
	int e = take_captures(t, &s);
	t->captures = s.v.n;
	if (!e)
		e = add_tails(t, &s);
	if (!e && s.v.n)
		e = intersect(spans, &s);
	array_free(&s.v);
	return e;
}

/* ---- the whole ---- */

static int put_parts(struct trace *t, const struct spans *s)
{
	uint64_t gaps = 0, gaps_ns = 0;
	for (size_t i = 0; i < s->v.n; i++) {
		const struct span *now = &s->v.v[i];
		const uint64_t from_ns = trace_ns(t, now->from), to_ns = trace_ns(t, now->to);
		if (i) {
			gaps += now->from - s->v.v[i - 1].to;
			gaps_ns += from_ns - t->parts.v[i - 1].to_ns;
		}
		struct trace_part *p = array_push(&t->parts);
		if (!p)
			return -ENOMEM;
		*p = (struct trace_part){ now->from, now->to, from_ns, to_ns, gaps, gaps_ns };
		t->part.part_ns += to_ns - from_ns;
	}
	return 0;
}

/* The recording is from now on what is left of it. */
static void put_header(struct trace *t)
{
	struct trace_header *h = &t->header;
	const struct trace_part *first = &t->parts.v[0], *last = &t->parts.v[t->parts.n - 1];
	const uint64_t real = h->start.real_ns, mono = h->start.mono_ns;
	t->part.whole_ns = trace_since_ns(t, last_ticks(t));
	t->part.from_ns = trace_since_ns(t, first->from);
	t->part.to_ns = trace_since_ns(t, last->to);
	t->last_ticks = last->to - last->gaps;
	h->start =
		(struct clock_pair){ first->from, first->from_ns, real + (first->from_ns - mono) };
	h->end = (struct clock_pair){ t->last_ticks, last->to_ns - last->gaps_ns,
		real + (last->to_ns - last->gaps_ns - mono) };
	h->off_ns = h->off_since_ns = 0;
}

static int choose(
	struct trace *t, const struct trace_cut *cut, struct spans *spans, struct error *err)
{
	int e = add(spans, t->header.start.ticks, last_ticks(t) + 1);
	if (!e && t->header.optional & FEATURE_CAPTURE)
		e = captured(t, spans);
	if (!e && (cut->after_ns || cut->before_ns))
		e = cut_times(t, cut, spans);
	if (!e && cut->range)
		e = cut_range(t, cut->range, spans, err);
	if (!e && (cut->first_step || cut->steady))
		e = cut_steps(t, cut, spans, err);
	if (!e && !spans->v.n)
		e = error_set(
			err, -ENODATA, "nothing of the trace is in the part that is asked for");
	return e;
}

int trace_cut(struct trace *t, const struct trace_cut *cut, struct error *err)
{
	struct spans spans = { 0 };
	const bool wanted =
		cut->after_ns || cut->before_ns || cut->range || cut->first_step || cut->steady;
	if (!wanted && !(t->header.optional & FEATURE_CAPTURE))
		return 0;
	err->text[0] = '\0';
	int e = choose(t, cut, &spans, err);
	if (!e)
		e = put_parts(t, &spans);
	if (!e)
		put_header(t);
	t->cut = wanted;
	array_free(&spans.v);
	if (e && !err->text[0])
		error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
	return e;
}
