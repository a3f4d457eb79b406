/*
 * The rule about collective operations: how long a device only communicates, and whether it does so
 * because another one comes late.  An operation ends for all at once, and begins for each when that
 * one is there: who is last has the shortest.
 */
#include "hint_rules.h"

#include <math.h>

#include "base/number.h"
#include "base/sort.h"
#include "base/xmalloc.h"
#include "trace/activity.h"

#define LATE_LEAST 0.5 /* of the longest operations' time: what the shortest take less */

/* The begin or end of an activity of a device. */
struct edge {
	uint64_t ns;
	int communicating, computing; /* 1, -1 or 0 */
};

struct edges {
	ARRAY(struct edge) v;
};

struct traffic {
	uint32_t device;
	uint64_t count, total_ns;
	uint64_t exposed_ns; /* nothing else ran on the device */
};

ORDERING(edge_order, struct edge, ORDER(a->ns, b->ns))

static uint64_t exposed(struct edges *edges)
{
	uint64_t ns = 0;
	int communicating = 0, computing = 0;
	SORT(edges->v, edge_order);
	for (size_t i = 0; i < edges->v.n; i++) {
		const struct edge *e = &edges->v.v[i];
		if (communicating && !computing)
			ns += e->ns - edges->v.v[i - 1].ns;
		communicating += e->communicating;
		computing += e->computing;
	}
	return ns;
}

static void add_activity(struct edges *edges, const struct hint_activity *w, bool communicates)
{
	const int other = !communicates;
	*array_push(&edges->v) = (struct edge){ w->start_ns, communicates, other };
	*array_push(&edges->v) = (struct edge){ w->end_ns, -(int)communicates, -other };
}

static void traffic_of(const struct hint_facts *f, uint32_t device, struct traffic *ret)
{
	struct traffic t = { .device = device };
	struct edges edges = { 0 };
	array_each(const struct hint_activity, w, f->activities) {
		if (w->device != device)
			continue;
		const bool communicates = w->kernel != HINT_NONE &&
					  activity_communicates(f->kernels.v[w->kernel].name);
		t.count += communicates;
		t.total_ns += communicates ? w->end_ns - w->start_ns : 0;
		add_activity(&edges, w, communicates);
	}
	t.exposed_ns = exposed(&edges);
	array_free(&edges.v);
	*ret = t;
}

/* The devices whose operations last longest, and shortest; false without any. */
static void find_ends(
	const struct hint_facts *f, struct traffic *ret_longest, struct traffic *ret_last)
{
	struct traffic longest = { 0 }, last = { .total_ns = UINT64_MAX };
	for (size_t i = 0; i < f->report->devices.n; i++) {
		struct traffic t;
		traffic_of(f, f->report->devices.v[i].device, &t);
		if (!t.count)
			continue;
		longest = t.total_ns > longest.total_ns ? t : longest;
		last = t.total_ns < last.total_ns ? t : last;
	}
	*ret_longest = longest;
	*ret_last = last;
}

static void add_late(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	const struct traffic *t, const struct traffic *last)
{
	struct number total, other, only;
	const double waited =
		fmin((double)t->exposed_ns, (double)t->total_ns - (double)last->total_ns);
	/* With the work shared out evenly all meet in the middle. */
	hint_add(to, rule, facts_share(f, waited) / 2, 0.5,
		xasprintf("device %u, which waits for device %u", t->device, last->device),
		xasprintf(
			"%llu operations took %s on device %u, of which nothing else ran there for "
			"%s, and %s on device %u, which comes last",
			(unsigned long long)t->count, number_ns(&total, t->total_ns), t->device,
			number_ns(&only, t->exposed_ns), number_ns(&other, last->total_ns),
			last->device));
}

static void add_exposed(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	const struct traffic *t)
{
	struct number total, only;
	hint_add(to, rule, facts_share(f, (double)t->exposed_ns) / 2, 0.3,
		xasprintf("device %u", t->device),
		xasprintf("%llu operations took %s, of which nothing else ran on the device for %s "
			  "(%.0f %% of the analysed time). A recording of the other device, read "
			  "with this one, says whether they waited for it",
			(unsigned long long)t->count, number_ns(&total, t->total_ns),
			number_ns(&only, t->exposed_ns),
			100 * facts_share(f, (double)t->exposed_ns)));
}

HINT_RULE(collective)
{
	struct traffic longest, last;
	find_ends(f, &longest, &last);
	if (!longest.count)
		return;
	if ((double)last.total_ns <= LATE_LEAST * (double)longest.total_ns)
		add_late(f, rule, to, &longest, &last);
	else
		add_exposed(f, rule, to, &longest);
}
