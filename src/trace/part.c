/* See part.h: what is loaded, cut to the parts. */
#include "trace/part.h"

#include <string.h>

#include "base/search.h"
#include "trace/activity.h"

/* The last part that begins at `ticks` or before, NULL: none does. */
static const struct trace_part *part_at(const struct trace *t, uint64_t ticks)
{
	const size_t i = SEARCH(k, 0, t->parts.n, t->parts.v[k].from <= ticks);
	return i ? &t->parts.v[i - 1] : NULL;
}

static const struct trace_part *part_at_ns(const struct trace *t, uint64_t ns)
{
	const size_t i = SEARCH(k, 0, t->parts.n, t->parts.v[k].from_ns <= ns);
	return i ? &t->parts.v[i - 1] : NULL;
}

uint64_t part_ticks(const struct trace *t, uint64_t ticks)
{
	const struct trace_part *p = part_at(t, ticks);
	if (!p)
		return ticks;
	return (ticks < p->to ? ticks : p->to) - p->gaps;
}

/* How many of the asked begin at `ticks` or before. */
static size_t asked_until(const struct trace *t, uint64_t ticks)
{
	return SEARCH(k, 0, t->asked.n, t->asked.v[k].from <= ticks);
}

static bool is_asked(const struct trace *t, uint64_t ticks)
{
	const size_t i = asked_until(t, ticks);
	return i && ticks < t->asked.v[i - 1].to;
}

const struct launch_time *part_launch(const struct trace *t, uint32_t process, uint64_t correlation)
{
	const struct launch_time *v = t->launched;
	const size_t i = SEARCH(k, 0, t->launched_count,
		v[k].process < process ||
			(v[k].process == process && v[k].correlation < correlation));
	return i < t->launched_count && v[i].process == process && v[i].correlation == correlation
		       ? &v[i]
		       : NULL;
}

static uint64_t part_ns(const struct trace_part *p, uint64_t ns)
{
	if (!p)
		return ns;
	return (ns < p->to_ns ? ns : p->to_ns) - p->gaps_ns;
}

/* Allocations from before say what is live. */
static bool is_history(const struct trace *t, const struct record *r)
{
	const struct schema_fn *fn = schema_find(&t->schema, r->fn);
	return fn && (fn->api == API_ALLOCATOR || !strcmp(fn->class, "memory")) &&
	       r->ticks < t->parts.v[t->parts.n - 1].to;
}

static bool keeps_record(const struct trace *t, const struct chunk_buf *buf, struct record *r)
{
	if (!t->cut || r->fn >= META_PROCESS || is_asked(t, r->ticks))
		return true;
	if (!buf->history || !is_history(t, r))
		return false;
	r->flags |= RECORD_OUTSIDE;
	return true;
}

/* Behind what is damaged nothing is looked for; that it is remains to be seen. */
static void apply_records(const struct trace *t, struct chunk_buf *buf, bool all)
{
	struct records it = records_of(buf);
	uint8_t *to = buf->payload;
	const uint8_t *seen = buf->payload;
	for (const struct record *found; (found = records_next(&it)); seen = it.at) {
		struct record *r =
			(struct record *)(buf->payload + ((const uint8_t *)found - buf->payload));
		const size_t bytes = r->words * sizeof(uint64_t);
		if (!all && !keeps_record(t, buf, r))
			continue;
		r->ticks = part_ticks(t, r->ticks);
		memmove(to, r, bytes);
		to += bytes;
	}
	const size_t rest = it.damaged ? (size_t)(buf->payload + buf->bytes - seen) : 0;
	memmove(to, seen, rest);
	buf->bytes = (size_t)(to - buf->payload) + rest;
}

/* Begun in a part, or around one as a whole: the end of one that began before says nothing. */
static bool keeps_range(const struct trace *t, const struct range *g)
{
	const size_t before = asked_until(t, g->ticks), until = asked_until(t, range_end(g));
	if (g->kind == RANGE_CAPTURE)
		return false;
	return is_asked(t, g->ticks) || (before < until && range_end(g) >= t->asked.v[before].to);
}

static void apply_range(const struct trace *t, struct range *g)
{
	if (g->valid &
		RANGE_OPEN) { /* as recorded: t->last_ticks is without the time between parts */
		const uint64_t last = t->parts.v[t->parts.n - 1].to;
		g->dur = last > g->ticks ? last - g->ticks : 0;
		g->reserved = 0;
		g->valid &= (uint16_t)~RANGE_OPEN;
	}
	if (!keeps_range(t, g)) {
		g->kind = 0;
		return;
	}
	const uint64_t end = part_ticks(t, range_end(g)), start = part_ticks(t, g->ticks);
	g->ticks = start > t->parts.v[0].from ? start : t->parts.v[0].from;
	g->dur = end > g->ticks ? end - g->ticks : 0;
}

/* As its launch is, where that is told; else as it begins. */
static bool keeps_activity(const struct trace *t, uint32_t process, const struct gpu_activity *w)
{
	const struct trace_part *p = part_at_ns(t, w->start_ns);
	const struct launch_time *l = part_launch(t, process, w->correlation);
	return p && w->start_ns < p->to_ns && (!l || is_asked(t, l->ticks));
}

bool part_has(const struct trace *t, uint32_t process, const struct gpu_activity *w)
{
	return !t->cut || keeps_activity(t, process, w);
}

static void apply_activity(const struct trace *t, uint32_t process, struct gpu_activity *w)
{
	const struct trace_part *p = part_at_ns(t, w->start_ns);
	const uint64_t ns = w->end_ns > w->start_ns ? w->end_ns - w->start_ns : 0;
	if (!part_has(t, process, w)) {
		w->kind = 0;
		return;
	}
	w->start_ns = part_ns(p, w->start_ns);
	w->end_ns = w->start_ns + ns;
}

static void apply_sample(const struct trace *t, struct gpu_sample *s)
{
	const struct trace_part *p = part_at_ns(t, s->ns);
	if (t->cut && (!p || s->ns >= p->to_ns))
		s->valid = 0;
	s->ns = part_ns(p, s->ns);
}

/* One belongs to the part in which it began. */
static void apply_request(const struct trace *t, struct served_request *q)
{
	const struct trace_part *p = part_at_ns(t, q->ns[REQUEST_BEGAN]);
	if (t->cut && (!p || q->ns[REQUEST_BEGAN] >= p->to_ns))
		q->outcome = 0;
	const uint64_t gaps = q->ns[REQUEST_BEGAN] - part_ns(p, q->ns[REQUEST_BEGAN]);
	for (unsigned i = 0; i < REQUEST_STAMPS; i++)
		q->ns[i] -= q->ns[i] ? gaps : 0;
	q->deadline_ns -= q->deadline_ns ? gaps : 0;
}

/* A record that is cut off stays as it is. */
static void apply_array(const struct trace *t, struct chunk_buf *buf)
{
	const uint16_t kind = buf->ref->head.kind;
	const size_t each = array_record_bytes(kind);
	for (size_t at = 0; buf->bytes - at >= each; at += each) {
		uint8_t *here = buf->payload + at;
		if (kind == CHUNK_RANGES)
			apply_range(t, (struct range *)here);
		else if (kind == CHUNK_DEVICE)
			apply_activity(t, buf->ref->process, (struct gpu_activity *)here);
		else if (kind == CHUNK_SAMPLES)
			apply_sample(t, (struct gpu_sample *)here);
		else if (kind == CHUNK_REQUESTS)
			apply_request(t, (struct served_request *)here);
		else
			((struct link *)here)->ticks = part_ticks(t, ((struct link *)here)->ticks);
	}
}

void part_apply(const struct trace *t, struct chunk_buf *buf)
{
	switch (buf->ref->head.kind) {
	case CHUNK_EVENTS:
	case CHUNK_STACKS:
	case CHUNK_CALLERS:
		apply_records(t, buf, false);
		break;
	case CHUNK_META:
		apply_records(t, buf, true);
		break;
	case CHUNK_COUNTERS: /* when is not known */
		buf->bytes = t->cut ? 0 : buf->bytes;
		break;
	case CHUNK_RANGES:
	case CHUNK_DEVICE:
	case CHUNK_LINKS:
	case CHUNK_SAMPLES:
	case CHUNK_REQUESTS:
		apply_array(t, buf);
		break;
	default:
		break;
	}
}
