/* Tracks a program's work in flight in virtual time. */
#include "whatif/inflight.h"

#define QUANTUM_LEAST 20000u
#define QUANTUM_MOST  100000u
#define SENDING_NS    3000u /* from a launch's return to its begin on an idle device */
#define MARK_LAUNCHES 16u   /* that one mark stands behind, at most */

uint64_t inflight_left(const struct inflight *g, uint64_t now)
{
	const uint64_t all = g->submitted_ns - g->retired_ns;
	if (g->capped_ns)
		return all > g->capped_ns ? all - g->capped_ns : 0;
	if (g->ends_ns > now)
		return g->ends_ns - now < all ? g->ends_ns - now : all;
	return g->head - g->tail > 1 ? all : 0;
}

static void retire(struct inflight *g, const struct inflight_mark *k)
{
	g->retired_ns += k->ns;
	g->capped_ns -= k->capped_ns;
}

static bool put(struct inflight *g)
{
	const bool room = g->head - g->tail < INFLIGHT_MARKS;
	if (room)
		g->ring[g->head++ % INFLIGHT_MARKS] = g->next;
	else
		retire(g, &g->next);
	g->next = (struct inflight_mark){ 0 };
	return room;
}

bool inflight_add(
	struct inflight *g, const struct inflight_launch *l, uint64_t now, uint64_t budget_ns)
{
	const uint64_t quantum = budget_ns / 2 > QUANTUM_MOST    ? QUANTUM_MOST
				 : budget_ns / 2 < QUANTUM_LEAST ? QUANTUM_LEAST
								 : budget_ns / 2;
	const uint64_t from = g->ends_ns > now + SENDING_NS ? g->ends_ns : now + SENDING_NS;
	struct inflight_mark *n = &g->next;
	g->ends_ns = from + l->took_ns;
	g->submitted_ns += l->took_ns;
	g->capped_ns += l->capped ? l->took_ns : 0;
	n->ns += l->took_ns;
	n->capped_ns += l->capped ? l->took_ns : 0;
	n->stream = l->stream;
	n->given = l->given;
	n->launches++;
	return (n->ns >= quantum || n->launches == MARK_LAUNCHES) && put(g);
}

bool inflight_cut(struct inflight *g)
{
	return g->next.launches && put(g);
}

void inflight_poll(struct inflight *g, const uint64_t *ended, uint64_t now)
{
	const uint32_t before = g->tail;
	for (; g->tail != g->head; g->tail++) {
		const struct inflight_mark *k = &g->ring[g->tail % INFLIGHT_MARKS];
		if (ended[k->stream] < k->given)
			break;
		retire(g, k);
	}
	if (g->tail != before)
		g->ends_ns = now + g->submitted_ns - g->retired_ns;
}

void inflight_retire_all(struct inflight *g)
{
	g->tail = g->head;
	g->next = (struct inflight_mark){ 0 };
	g->retired_ns = g->submitted_ns;
	g->capped_ns = g->ends_ns = 0;
}

static uint64_t until_it_fits(const struct inflight *g, const struct share_grant *grant,
	const struct rule_view *v, uint64_t t90)
{
	const uint64_t most = v->alone ? grant->alone_ns : grant->budget_ns;
	const uint64_t by_budget = most > t90 ? most - t90 : 0;
	const uint64_t allowed = by_budget > RULE_LEAD_NS ? by_budget : RULE_LEAD_NS;
	if (g->capped_ns || g->ends_ns <= v->now_ns)
		return UINT64_MAX;
	return g->ends_ns > v->now_ns + allowed ? g->ends_ns - allowed : v->now_ns;
}

uint64_t inflight_patience(const struct inflight *g, const struct share_grant *grant,
	const struct rule_view *v, const struct rule_launch *l, enum rule_reason reason)
{
	if (reason == REASON_BUDGET)
		return until_it_fits(g, grant, v, l->t90_ns);
	return reason == REASON_SOON ? v->next_ns + grant->ahead_ns : UINT64_MAX;
}
