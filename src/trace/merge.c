/* Reads several recordings as one. */
#include "trace/merge.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "trace/activity.h"
#include "trace/meta.h"

#define SAME_BOOT_NS 1000000000 /* the time of day may have been set a little since */

/* A device of another recording, in the first one's numbers. */
struct renamed {
	uint32_t from, to;
};

struct taken_in {
	struct trace *trace;
	bool same_clock;
	double rate;      /* ticks of the first a tick of this one */
	int64_t from;     /* this tick … */
	int64_t to;       /* … is that of the first */
	int64_t ahead_ns; /* to be added to its nanoseconds */
	ARRAY(struct renamed) devices;
};

static uint64_t ticks_in(const struct taken_in *s, uint64_t ticks)
{
	if (s->same_clock || !ticks)
		return ticks;
	const double off = (double)((int64_t)ticks - s->from) * s->rate;
	const int64_t there = s->to + (int64_t)off;
	return there > 0 ? (uint64_t)there : 1;
}

static uint64_t ns_in(const struct taken_in *s, uint64_t ns)
{
	const int64_t there = (int64_t)ns + s->ahead_ns;
	return there > 0 ? (uint64_t)there : 0;
}

static uint64_t length_in(const struct taken_in *s, uint64_t ticks)
{
	return s->same_clock ? ticks : (uint64_t)((double)ticks * s->rate + 0.5);
}

/* When the clocks of a recording stood at 0, by the time of day. */
static int64_t boot_ns(const struct trace_header *h)
{
	return (int64_t)(h->start.real_ns - h->start.mono_ns);
}

static void compare_clocks(const struct trace *t, struct taken_in *s)
{
	const struct trace_header *a = &t->header, *b = &s->trace->header;
	const int64_t apart = boot_ns(b) - boot_ns(a);
	const bool one_boot =
		!strcmp(a->host, b->host) && apart < SAME_BOOT_NS && apart > -SAME_BOOT_NS;
	const uint64_t second = 1000000000u;
	const uint64_t one = trace_span_ns(t, second), two = trace_span_ns(s->trace, second);
	s->same_clock = one_boot && a->clock == b->clock;
	s->ahead_ns = one_boot ? 0 : apart;
	s->rate = one && two ? (double)two / (double)one : 1;
	/* The begin of the other, on the clock of the first. */
	const int64_t since = (int64_t)b->start.mono_ns + s->ahead_ns - (int64_t)a->start.mono_ns;
	s->from = (int64_t)b->start.ticks;
	s->to = (int64_t)a->start.ticks +
		(int64_t)((double)since * (double)second / (double)(one ? one : second));
}

static struct clock_pair pair_in(const struct taken_in *s, struct clock_pair p)
{
	if (!p.ticks)
		return p;
	return (struct clock_pair){ ticks_in(s, p.ticks), ns_in(s, p.mono_ns), p.real_ns };
}

static bool has_uuid(const struct meta_device *d)
{
	static const uint8_t none[sizeof d->uuid];
	return memcmp(d->uuid, none, sizeof none) != 0;
}

static const struct meta_device *same_device(const struct meta *m, const struct meta_device *d)
{
	for (size_t i = 0; i < m->devices.n; i++)
		if (has_uuid(d) && !memcmp(m->devices.v[i].uuid, d->uuid, sizeof d->uuid))
			return &m->devices.v[i];
	return NULL;
}

/* The numbers of devices on which something ran. */
struct used {
	ARRAY(uint32_t) v;
};

static bool is_used(const struct used *u, uint32_t device)
{
	for (size_t i = 0; i < u->v.n; i++)
		if (u->v.v[i] == device)
			return true;
	return false;
}

static int find_used(const struct trace *t, struct used *u)
{
	struct cursor at = { .t = t };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		if (!(w.valid & GPU_HAS_DEVICE) || is_used(u, w.device))
			continue;
		*array_push(&u->v) = w.device;
	}
	return at.error;
}

static uint32_t next_number(uint32_t next, const struct meta *m)
{
	for (size_t i = 0; i < m->devices.n; i++)
		if (m->devices.v[i].device >= next)
			next = m->devices.v[i].device + 1;
	return next;
}

/* first: what is said of the devices of all that were taken in before. */
static int number_devices(
	struct trace *t, const struct meta *first, const struct meta *other, struct taken_in *s)
{
	struct used here = { 0 }, there = { 0 };
	bool named = true;
	int e = 0;
	t->next_device = next_number(t->next_device, first);
	for (size_t i = 0; i < other->devices.n; i++)
		named = named && has_uuid(&other->devices.v[i]);
	if (!named) { /* of these some keep their numbers */
		t->next_device = next_number(t->next_device, other);
		e = find_used(t, &here);
	}
	if (!named && !e)
		e = find_used(s->trace, &there);
	for (size_t i = 0; i < other->devices.n && !e; i++) {
		const struct meta_device *d = &other->devices.v[i], *known = same_device(first, d);
		struct renamed *to = array_push(&s->devices);
		const bool two =
			has_uuid(d) || (is_used(&here, d->device) && is_used(&there, d->device));
		*to = (struct renamed){ d->device, known ? known->device
						   : two ? t->next_device++
							 : d->device };
	}
	array_free(&here.v, &there.v);
	return e;
}

static uint32_t device_in(const struct taken_in *s, uint32_t device)
{
	for (size_t i = 0; i < s->devices.n; i++)
		if (s->devices.v[i].from == device)
			return s->devices.v[i].to;
	return device;
}

static int compare_devices(struct trace *t, struct taken_in *s, struct error *err)
{
	struct meta first = { 0 }, other = { 0 };
	int e = meta_load(t, &first, err);
	if (!e)
		e = meta_load(s->trace, &other, err);
	if (!e)
		e = number_devices(t, &first, &other, s);
	meta_fini(&first);
	meta_fini(&other);
	return e;
}

const struct trace *merge_owner(const struct trace *t, const struct chunk_ref *ref)
{
	return ref->source ? t->taken_in.v[ref->source - 1]->trace : t;
}

static void apply_records(const struct taken_in *s, struct chunk_buf *buf, bool meta)
{
	struct records it = records_of(buf);
	for (const struct record *found; (found = records_next(&it));) {
		struct record *r =
			(struct record *)(buf->payload + ((const uint8_t *)found - buf->payload));
		r->ticks = ticks_in(s, r->ticks);
		const uint64_t dur = length_in(s, r->dur);
		r->dur = dur < UINT32_MAX ? (uint32_t)dur : UINT32_MAX;
		const bool device =
			r->fn == META_DEVICE || r->fn == META_UUID || r->fn == META_CLOCKS;
		if (meta && device && r->words > RECORD_WORDS)
			r->arg[0] = device_in(s, (uint32_t)r->arg[0]);
	}
}

static void apply_one(const struct taken_in *s, uint16_t kind, uint8_t *at)
{
	struct range *g = (struct range *)at;
	struct gpu_activity *w = (struct gpu_activity *)at;
	struct link *l = (struct link *)at;
	if (kind == CHUNK_RANGES) {
		g->ticks = ticks_in(s, g->ticks);
		g->dur = g->valid & RANGE_OPEN ? g->dur : length_in(s, g->dur);
	} else if (kind == CHUNK_DEVICE) {
		w->start_ns = ns_in(s, w->start_ns);
		w->end_ns = ns_in(s, w->end_ns);
		w->device = device_in(s, w->device);
	} else if (kind == CHUNK_REQUESTS) {
		struct served_request *q = (struct served_request *)at;
		for (unsigned i = 0; i < REQUEST_STAMPS; i++)
			q->ns[i] = q->ns[i] ? ns_in(s, q->ns[i]) : 0;
		q->deadline_ns = q->deadline_ns ? ns_in(s, q->deadline_ns) : 0;
	} else {
		l->ticks = ticks_in(s, l->ticks);
		l->dur = length_in(s, l->dur);
	}
}

void merge_apply(const struct trace *t, struct chunk_buf *buf)
{
	const struct taken_in *s = t->taken_in.v[buf->ref->source - 1];
	const uint16_t kind = buf->ref->head.kind;
	const size_t each = array_record_bytes(kind);
	if (kind == CHUNK_EVENTS || kind == CHUNK_META || kind == CHUNK_STACKS ||
		kind == CHUNK_CALLERS)
		apply_records(s, buf, kind == CHUNK_META);
	for (size_t at = 0; each && buf->bytes - at >= each; at += each)
		apply_one(s, kind, buf->payload + at);
	if (kind != CHUNK_COUNTERS || s->same_clock)
		return;
	struct counter *c = (struct counter *)buf->payload;
	for (size_t i = 0; i < buf->bytes / sizeof *c; i++)
		c[i].ticks = length_in(s, c[i].ticks);
}

static bool same_functions(const struct schema *a, const struct schema *b)
{
	if (a->fn_count != b->fn_count)
		return false;
	for (uint32_t i = 0; i < a->fn_count; i++)
		if (a->fns[i].id != b->fns[i].id || strcmp(a->fns[i].name, b->fns[i].name) != 0 ||
			a->fns[i].arg_words != b->fns[i].arg_words)
			return false;
	return true;
}

static bool is_the_same(const struct trace_header *a, const struct trace_header *b)
{
	return a->root_pid == b->root_pid && a->root_start == b->root_start &&
	       a->start.ticks == b->start.ticks && a->start.real_ns == b->start.real_ns &&
	       !strcmp(a->host, b->host);
}

static bool is_there(const struct trace *t, const struct trace *other)
{
	if (is_the_same(&t->header, &other->header))
		return true;
	for (size_t i = 0; i < t->taken_in.n; i++)
		if (is_the_same(&t->taken_in.v[i]->trace->header, &other->header))
			return true;
	return false;
}

static int check_alike(
	const struct trace *t, const struct trace *other, const char *name, struct error *err)
{
	if (is_there(t, other))
		return error_set(err, -EEXIST, "%s is given twice", name);
	if (!same_functions(&t->schema, &other->schema))
		return error_set(err, -EINVAL,
			"%s can't be read together with the first: they were recorded by different versions of Weir, or by other tools",
			name);
	if (t->header.sampled != other->header.sampled)
		return error_set(err, -EINVAL,
			"%s can't be read together with the first: only one of them has sampled device times, or they sampled at different rates",
			name);
	return 0;
}

static void add_chunks(struct trace *t, const struct taken_in *s, uint32_t source)
{
	const struct trace *other = s->trace;
	const size_t all = t->chunk_count + other->chunk_count;
	t->chunks = xrealloc(t->chunks, all + 1, sizeof *t->chunks);
	array_reserve(&t->processes, other->processes.n);
	const uint32_t first = (uint32_t)t->processes.n;
	for (size_t i = 0; i < other->processes.n; i++)
		t->processes.v[t->processes.n++] = other->processes.v[i];
	for (size_t i = 0; i < other->chunk_count; i++) {
		struct chunk_ref ref = other->chunks[i];
		if (ref.head.kind == CHUNK_SCHEMA)
			continue;
		ref.source = source;
		ref.number = (uint32_t)i;
		ref.process += first;
		ref.head.open = pair_in(s, ref.head.open);
		ref.head.last = pair_in(s, ref.head.last);
		t->chunks[t->chunk_count++] = ref;
	}
}

static void add_header(struct trace *t, const struct taken_in *s)
{
	struct trace_header *h = &t->header;
	const struct trace_header *o = &s->trace->header;
	const struct clock_pair start = pair_in(s, o->start), end = pair_in(s, o->end);
	const uint64_t last = ticks_in(s, s->trace->last_ticks);
	h->start = start.mono_ns < h->start.mono_ns ? start : h->start;
	h->end = !h->end.ticks || (end.ticks && end.mono_ns > h->end.mono_ns) ? end : h->end;
	t->last_ticks = last > t->last_ticks ? last : t->last_ticks;
	const uint64_t accounts =
		load_relaxed(&h->optional) & load_relaxed(&o->optional) & FEATURE_ACCOUNTS;
	store_relaxed(&h->optional, ((load_relaxed(&h->optional) | load_relaxed(&o->optional)) &
					    ~(uint64_t)FEATURE_ACCOUNTS) |
					    accounts);
	if (load_relaxed(&h->state) == TRACE_FINISHED)
		store_relaxed(&h->state, load_relaxed(&o->state));
	h->exit_status = h->exit_status ? h->exit_status : o->exit_status;
	add_alone(&h->lost, load_relaxed(&o->lost));
	add_alone(&h->lost_ranges, load_relaxed(&o->lost_ranges));
	add_alone(&h->lost_stacks, load_relaxed(&o->lost_stacks));
	add_alone(&h->unnamed, load_relaxed(&o->unnamed));
	add_alone(&h->reused, load_relaxed(&o->reused));
	add_alone(&h->overwritten, load_relaxed(&o->overwritten));
	add_alone(&h->unaccounted, load_relaxed(&o->unaccounted));
	store_relaxed(&h->off_ns, 0);
	store_relaxed(&h->off_since_ns, 0); /* each had its own */
	t->off.count = 0;
	if (strcmp(h->host, o->host) != 0)
		snprintf(h->host, sizeof h->host, "several hosts");
	t->damage_count += s->trace->damage_count;
	t->damage_bytes += s->trace->damage_bytes;
}

static void free_one(struct taken_in *s)
{
	array_free(&s->devices);
	free(s);
}

int trace_take_in(struct trace *t, struct trace *other, const char *name, struct error *err)
{
	struct taken_in *s = xcalloc(1, sizeof *s);
	int e = check_alike(t, other, name, err);
	if (e) {
		free(s);
		return e;
	}
	*array_push(&t->taken_in) = s;
	s->trace = other;
	compare_clocks(t, s);
	e = compare_devices(t, s, err);
	if (!e)
		add_chunks(t, s, (uint32_t)t->taken_in.n);
	if (e) {
		t->taken_in.n--;
		free_one(s);
		return error_set(
			err, e, "%s can't be read together with the first: %s", name, strerror(-e));
	}
	add_header(t, s);
	return 0;
}

void merge_free(struct trace *t)
{
	for (size_t i = 0; i < t->taken_in.n; i++) {
		trace_close(t->taken_in.v[i]->trace);
		free_one(t->taken_in.v[i]);
	}
	array_free(&t->taken_in);
}
