/* See part.h: which parts of the time are asked for. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/part.h"
#include "trace/steps.h"

#define NAMES_SAID 5u

/* Ascending and apart once merged. */
struct spans {
	ARRAY(struct trace_span) v;
};

static void add(struct spans *s, uint64_t from, uint64_t to)
{
	if (from < to)
		*array_push(&s->v) = (struct trace_span){ from, to };
}

ORDERING(span_order, struct trace_span, ORDER(a->from, b->from))

static void merge(struct spans *s)
{
	size_t n = 0;
	SORT(s->v, span_order);
	array_each(const struct trace_span, next, s->v) {
		if (n && next->from <= s->v.v[n - 1].to)
			s->v.v[n - 1].to = MAX(next->to, s->v.v[n - 1].to);
		else
			s->v.v[n++] = *next;
	}
	s->v.n = n;
}

/* a becomes what is in both. */
static void intersect(struct spans *a, const struct spans *b)
{
	struct spans both = { 0 };
	for (size_t i = 0, k = 0; i < a->v.n && k < b->v.n;) {
		const struct trace_span *x = &a->v.v[i], *y = &b->v.v[k];
		add(&both, x->from > y->from ? x->from : y->from, x->to < y->to ? x->to : y->to);
		if (x->to < y->to)
			i++;
		else
			k++;
	}
	array_free(&a->v);
	*a = both;
}

/* The tick at which the clock shows `ns` or more: a search, since the clock is known one way. */
static uint64_t ticks_at(const struct trace *t, uint64_t ns, uint64_t last)
{
	return SEARCH(ticks, t->header.start.ticks, last, trace_ns(t, ticks) < ns);
}

static uint64_t last_ticks(const struct trace *t)
{
	const uint64_t end = t->header.end.ticks, last = MAX(t->last_ticks, end);
	return last > t->header.start.ticks ? last : t->header.start.ticks + 1;
}

/* A chunk that is being filled, or was left, has no reading of the clock behind its calls. */
static void find_last(struct trace *t)
{
	struct chunk_buf buf = { 0 };
	for (size_t i = 0; i < t->chunk_count; i++) {
		const struct chunk_header *head = &t->chunks[i].head;
		const bool closed = t->chunks[i].packed || head->state == CHUNK_CLOSED;
		if (head->kind != CHUNK_EVENTS || (closed && head->last.ticks) ||
			trace_load(t, i, &buf, NULL))
			continue;
		struct records it = records_of(&buf);
		for (const struct record *r; (r = records_next(&it));)
			t->last_ticks = MAX(record_end(r), t->last_ticks);
	}
	chunk_buf_fini(&buf);
}

static void cut_times(const struct trace *t, const struct trace_cut *cut, struct spans *s)
{
	struct spans one = { 0 };
	const uint64_t start = t->header.start.mono_ns, last = last_ticks(t);
	const uint64_t from = cut->after_ns ? ticks_at(t, start + cut->after_ns, last + 1)
					    : t->header.start.ticks;
	add(&one, from, cut->before_ns ? ticks_at(t, start + cut->before_ns, last + 1) : last + 1);
	intersect(s, &one);
	array_free(&one.v);
}

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

static void take_range(struct search *s, uint32_t process, const struct range *g)
{
	const uint32_t name = meta_find_string(&s->meta, process, g->name);
	if (name == META_NONE || g->kind == RANGE_CAPTURE)
		return;
	if (!strcmp(s->meta.names.v[name].text, s->name)) {
		add(&s->found, g->ticks, range_end(g));
		return;
	}
	if (g->kind != RANGE_OPERATOR && g->kind != RANGE_PYTHON)
		note_name(s, name);
}

static int take_ranges(struct search *s)
{
	struct cursor at = { .t = s->t };
	for (struct range g; trace_next_range(&at, &g);)
		take_range(s, at.ref->process, &g);
	merge(&s->found);
	return at.error;
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
		intersect(spans, &s.found);
	snprintf(t->part.how, sizeof t->part.how,
		"range %.60s: calls made while it was open, and the GPU work that they launched",
		name);
	array_free(&s.found.v);
	meta_fini(&s.meta);
	return e;
}

struct chosen {
	const struct steps *steps;
	const char *name; /* of the first; NULL: they were found by waits */
	int common;       /* bytes of it without the number */
	struct spans spans;
	uint64_t first, last; /* numbers */
	size_t warm;          /* how many are left out as warm-up */
};

/* Keeps those from v[from] on that have such a number. */
static void keep_steps(struct chosen *c, size_t from, uint64_t first, uint64_t last)
{
	for (size_t i = from; i < c->steps->v.n; i++) {
		const struct step *s = &c->steps->v.v[i];
		if (s->number < first || s->number > last)
			continue;
		c->first = !c->spans.v.n || s->number < c->first ? s->number : c->first;
		c->last = s->number > c->last ? s->number : c->last;
		add(&c->spans, s->from, s->to);
	}
	merge(&c->spans);
}

static void say_steps(struct trace *t, const struct chosen *c, const struct trace_cut *cut)
{
	const char *how[] = { [STEPS_NUMBERED] = ", ranges %.*sN",
		[STEPS_OPTIMIZER] = ", each until %.*s had ended",
		[STEPS_REPEATED] = ", each from one %.*s to the next" };
	const size_t warm = cut->steady ? c->warm : 0;
	struct bounded b = BOUNDED(t->part.how);
	bounded_printf(
		&b, "steps %" PRIu64 " to %" PRIu64 " of %zu", c->first, c->last, c->steps->v.n);
	if (c->name)
		bounded_printf(&b, how[c->steps->found], c->common, c->name);
	if (warm == 1)
		bounded_printf(&b, "; the first is left out as warm-up");
	else if (warm)
		bounded_printf(&b, "; the first %zu are left out as warm-up", warm);
	else if (cut->steady)
		bounded_printf(&b, "; none is left out as warm-up");
	bounded_end(&b);
}

/* "until a call waited for it": what a step is where nobody numbered them. */
static const char *meaning(enum steps_found found)
{
	switch (found) {
	case STEPS_OPTIMIZER:
		return ", what was done until an optimizer's step ended";
	case STEPS_WAITS:
		return ", what was launched until a call waited for it";
	case STEPS_KERNELS:
		return ", from one launch of a kernel to the next";
	case STEPS_REPEATED:
		return ", from one range to the next of its name";
	default:
		return "";
	}
}

static int choose_steps(const struct trace_cut *cut, struct chosen *c, struct error *err)
{
	const struct steps *s = c->steps;
	keep_steps(c, 0, cut->first_step, cut->last_step);
	if (c->spans.v.n)
		return 0;
	if (s->found != STEPS_NUMBERED)
		return error_set(err, -ENODATA, "there %s only %zu step%s in the trace%s",
			s->v.n == 1 ? "is" : "are", s->v.n, s->v.n == 1 ? "" : "s",
			meaning(s->found));
	return error_set(err, -ENODATA,
		"there is no such step in the trace: its %zu are %.*s%" PRIu64 " to %" PRIu64,
		s->v.n, c->common, c->name, s->v.v[0].number, s->v.v[s->v.n - 1].number);
}

static int choose_steady(struct chosen *c, struct error *err)
{
	const size_t n = c->steps->v.n;
	if (n < 2)
		return error_set(err, -ENODATA,
			"there %s in the trace%s. Warm-up shows only beside another step",
			n ? "is one step" : "are no steps", meaning(c->steps->found));
	uint64_t *length = xmalloc(n * sizeof *length);
	for (size_t i = 0; i < n; i++)
		length[i] = c->steps->v.v[i].to - c->steps->v.v[i].from;
	c->warm = steps_warm_up(length, n);
	free(length);
	keep_steps(c, c->warm, 0, UINT64_MAX);
	return 0;
}

static int choose_of(struct trace *t, const struct trace_cut *cut, const struct meta *m,
	struct spans *spans, struct error *err)
{
	struct steps s;
	int e = steps_load(t, m, NULL, &s);
	struct chosen c = { .steps = &s };
	if (!e && s.v.n && s.v.v[0].name) {
		c.name = m->names.v[meta_find_string(m, s.v.v[0].process, s.v.v[0].name)].text;
		c.common = (int)name_without_number(c.name);
	}
	if (!e)
		e = cut->steady ? choose_steady(&c, err) : choose_steps(cut, &c, err);
	if (!e)
		intersect(spans, &c.spans);
	if (!e && s.found != STEPS_NUMBERED)
		t->part.steps_before = c.first - 1;
	if (!e) {
		t->part.steps_found = (uint8_t)s.found;
		t->part.steps_name = s.name;
		say_steps(t, &c, cut);
	}
	array_free(&c.spans.v);
	steps_fini(&s);
	return e;
}

static int cut_steps(
	struct trace *t, const struct trace_cut *cut, struct spans *spans, struct error *err)
{
	struct meta m;
	int e = meta_load(t, &m, err);
	if (!e)
		e = choose_of(t, cut, &m, spans, err);
	meta_fini(&m);
	return e;
}

static int take_captures(const struct trace *t, struct spans *s)
{
	struct cursor at = { .t = t };
	for (struct range g; trace_next_range(&at, &g);)
		if (g.kind == RANGE_CAPTURE)
			add(s, g.ticks, range_end(&g));
	merge(s);
	return at.error;
}

/* Which span an activity that lasts until w->end_ns belongs to, from 1; 0: none. */
static size_t span_of(const struct trace *t, const struct spans *s, const struct spans *ns,
	uint32_t process, const struct gpu_activity *w)
{
	if (!t->launched)
		return SEARCH(k, 0, ns->v.n, ns->v.v[k].from <= w->start_ns);
	const struct launch_time *l = part_launch(t, process, w->correlation);
	const size_t i = l ? SEARCH(k, 0, s->v.n, s->v.v[k].from <= l->ticks) : 0;
	return i && l->ticks < s->v.v[i - 1].to ? i : 0;
}

/* In nanoseconds: each part until the end of the last activity that is of it: that was launched
 * there, where that is told, or began before the next. */
static int find_tails(const struct trace *t, const struct spans *s, struct spans *ns)
{
	struct cursor at = { .t = t };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const size_t i = span_of(t, s, ns, at.ref->process, &w);
		if (i && w.end_ns > ns->v.v[i - 1].to)
			ns->v.v[i - 1].to = w.end_ns;
	}
	return at.error;
}

/* Work that was launched in a part may run when it is over. */
static int add_tails(const struct trace *t, struct spans *s)
{
	struct spans ns = { 0 };
	const uint64_t last = last_ticks(t) + 1;
	array_reserve(&ns.v, s->v.n);
	for (size_t i = 0; i < s->v.n; i++)
		ns.v.v[ns.v.n++] = (struct trace_span){ trace_ns(t, s->v.v[i].from),
			trace_ns(t, s->v.v[i].to) };
	int e = find_tails(t, s, &ns);
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
		intersect(spans, &s);
	array_free(&s.v);
	return e;
}

static void put_asked(struct trace *t, const struct spans *s)
{
	array_reserve(&t->asked, s->v.n);
	for (size_t i = 0; i < s->v.n; i++)
		t->asked.v[t->asked.n++] = s->v.v[i];
}

/* Launches that are told make the parts as long as what they launched. */
static int take_launches(struct trace *t, const struct trace_cut *cut, struct spans *spans)
{
	const size_t bytes = cut->launched_count * sizeof *t->launched;
	if (!cut->launched_count)
		return 0;
	t->launched = xmalloc(bytes);
	memcpy(t->launched, cut->launched, bytes);
	t->launched_count = cut->launched_count;
	return add_tails(t, spans);
}

static void put_parts(struct trace *t, const struct spans *s)
{
	uint64_t gaps = 0, gaps_ns = 0;
	for (size_t i = 0; i < s->v.n; i++) {
		const struct trace_span *now = &s->v.v[i];
		const uint64_t from_ns = trace_ns(t, now->from), to_ns = trace_ns(t, now->to);
		if (i) {
			gaps += now->from - s->v.v[i - 1].to;
			gaps_ns += from_ns - t->parts.v[i - 1].to_ns;
		}
		*array_push(&t->parts) =
			(struct trace_part){ now->from, now->to, from_ns, to_ns, gaps, gaps_ns };
		t->part.part_ns += to_ns - from_ns;
	}
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
	store_relaxed(&h->off_ns, 0);
	store_relaxed(&h->off_since_ns, 0);
}

static int choose(
	struct trace *t, const struct trace_cut *cut, struct spans *spans, struct error *err)
{
	find_last(t);
	add(spans, t->header.start.ticks, last_ticks(t) + 1);
	int e = 0;
	if (load_relaxed(&t->header.optional) & FEATURE_CAPTURE)
		e = captured(t, spans);
	if (!e && (cut->after_ns || cut->before_ns))
		cut_times(t, cut, spans);
	if (!e && cut->range)
		e = cut_range(t, cut->range, spans, err);
	if (!e && (cut->steps || cut->steady))
		e = cut_steps(t, cut, spans, err);
	if (!e && !spans->v.n)
		e = error_set(
			err, -ENODATA, "the part that was chosen contains nothing of the trace");
	return e;
}

int trace_cut(struct trace *t, const struct trace_cut *cut, struct error *err)
{
	struct spans spans = { 0 };
	const bool wanted =
		cut->after_ns || cut->before_ns || cut->range || cut->steps || cut->steady;
	if (!wanted && !(load_relaxed(&t->header.optional) & FEATURE_CAPTURE))
		return 0;
	err->text[0] = '\0';
	int e = choose(t, cut, &spans, err);
	if (!e)
		put_asked(t, &spans);
	if (!e)
		e = take_launches(t, cut, &spans);
	if (!e)
		put_parts(t, &spans);
	if (!e)
		put_header(t);
	t->cut = wanted;
	array_free(&spans.v);
	if (e && !err->text[0])
		error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
	return e;
}
