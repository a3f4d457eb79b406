/* The replay itself: each event to the design, and what that took, over time. */
#include "allocator/allocator.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"

static const struct alloc_design *const designs[ALLOC_DESIGNS] = { &design_pool, &design_expandable,
	&design_pytorch, &design_driver };

unsigned alloc_designs_parse(const char *names)
{
	unsigned mask = 0;
	for (const char *p = names; p; p = strchr(p, ',')) {
		p += *p == ',';
		const size_t n = strcspn(p, ",");
		unsigned found = 0;
		for (unsigned i = 0; i < ALLOC_DESIGNS; i++)
			if (strlen(designs[i]->name) == n && !strncmp(designs[i]->name, p, n))
				found = 1u << i;
		if (!found)
			return 0;
		mask |= found;
	}
	return mask;
}

struct clock {
	uint64_t span_ns, ns;
	uint32_t point;
	uint64_t live;
};

/* All was as it is since the event before. */
static void note_unused(struct clock *c, struct alloc_meter *m, uint64_t ns)
{
	if (ns <= c->ns)
		return;
	const double span = (double)(ns - c->ns);
	expect(c->live <= m->reserved, "what is live is reserved");
	const uint64_t unused = c->live < m->reserved ? m->reserved - c->live : 0;
	m->reserved_area += (double)m->reserved * span;
	m->unused_area += (double)unused * span;
	m->worst_unused = unused > m->worst_unused ? unused : m->worst_unused;
	c->ns = ns;
}

static void note_levels(struct clock *c, struct alloc_meter *m)
{
	const uint32_t i = c->point;
	m->live[i] = c->live > m->live[i] ? c->live : m->live[i];
	m->held[i] = m->reserved > m->held[i] ? m->reserved : m->held[i];
}

static void move_to(struct clock *c, struct alloc_meter *m, uint64_t ns)
{
	const __uint128_t at = (__uint128_t)ns * ALLOC_POINTS / (c->span_ns + 1);
	expect(at < ALLOC_POINTS, "an event lies in the time of all");
	while (c->point < at && c->point + 1 < ALLOC_POINTS) {
		c->point++;
		note_levels(c, m);
	}
}

static int step(const struct alloc_design *d, void *state, const struct alloc_event *e,
	struct alloc_meter *m)
{
	m->event_ns = 0;
	const int failed = (e->free ? d->release : d->place)(state, e, m);
	m->worst_ns = MAX(m->event_ns, m->worst_ns);
	return failed;
}

static int run(const struct alloc_trace *t, struct alloc_row *row, uint64_t *ret_minimum)
{
	const struct alloc_design *d = row->design;
	struct alloc_meter *m = &row->meter;
	struct clock c = { .span_ns = t->events.n ? t->events.v[t->events.n - 1].ns : 0 };
	void *state = d->open(t, &row->setup);
	int failed = 0;
	for (size_t i = 0; i < t->events.n && !failed; i++) {
		const struct alloc_event *e = &t->events.v[i];
		note_unused(&c, m, e->ns);
		move_to(&c, m, e->ns);
		failed = step(d, state, e, m);
		c.live += e->free ? -e->bytes : e->bytes;
		note_levels(&c, m);
	}
	move_to(&c, m, c.span_ns);
	if (!failed && d->minimum_limit)
		*ret_minimum = d->minimum_limit(state);
	d->close(state);
	return failed;
}

static struct alloc_row *add_row(
	struct alloc_replay *r, const struct alloc_design *d, uint64_t limit_bytes)
{
	struct alloc_row *row = &r->rows[r->count++];
	*row = (struct alloc_row){ .design = d, .setup = { r->handle_bytes, limit_bytes } };
	return row;
}

#define TRIES 8u

/* Again at the limit.  With several streams a block's place depends on what was settled when, and
 * that on the limit: then it may take some more. */
static int run_limited(const struct alloc_trace *t, struct alloc_replay *r, uint64_t limit)
{
	struct alloc_row *row = NULL;
	uint64_t unused;
	int e = 0;
	for (unsigned i = 0; i < TRIES && !e && (!row || row->meter.over); i++) {
		limit = row ? row->meter.reserved_peak : limit;
		r->count -= row != NULL;
		row = add_row(r, &design_pool, limit);
		e = run(t, row, &unused);
	}
	r->minimum_limit = limit;
	return e;
}

int allocator_replay(
	const struct alloc_trace *t, unsigned mask, uint64_t handle_bytes, struct alloc_replay *r)
{
	uint64_t minimum = 0;
	int e = 0;
	r->trace = t;
	r->handle_bytes = handle_bytes;
	r->minimum_limit = r->count = 0;
	for (unsigned i = 0; i < ALLOC_DESIGNS && !e; i++) {
		if (!(mask >> i & 1))
			continue;
		e = run(t, add_row(r, designs[i], 0), &minimum);
		if (!e && designs[i] == &design_pool)
			e = run_limited(t, r, minimum);
	}
	return e;
}

const char *alloc_row_name(const struct alloc_row *r, struct alloc_row_name *to)
{
	struct number n;
	if (r->setup.limit_bytes)
		snprintf(to->text, sizeof to->text, "%s, limit %s", r->design->name,
			number_bytes(&n, r->setup.limit_bytes));
	else
		snprintf(to->text, sizeof to->text, "%s", r->design->name);
	return to->text;
}

double alloc_row_share(const struct alloc_replay *r, const struct alloc_row *row)
{
	return row->meter.reserved_peak
		       ? (double)r->trace->live_peak / (double)row->meter.reserved_peak
		       : 0;
}

double alloc_row_unused(const struct alloc_row *row)
{
	const struct alloc_meter *m = &row->meter;
	return m->reserved_area > 0 ? m->unused_area / m->reserved_area : NAN;
}
