/*
 * Does what a live system does between programs: it notes requests, asks the policy, and lets a
 * launch ask the rule until it may go. src/hook/sched/wait.c and src/share/arbiter.c are the live
 * side. Waiting launches are not polled but woken at a change, when a poll would have seen it.
 */
#include "whatif/host.h"

#include <string.h>

#define UNDISTURBED 0.1      /* the quickest requests are those that nothing delayed */
#define AWAKE_NS    200000u  /* so long it polls without sleeping */
#define NAP_NS      75000u   /* a nap of 50 us lasts that long */
#define GATE_NS     300u     /* of the host's time: a launch that asks */
#define MARK_NS     1500u    /* recording a mark */
#define CAP_NS      5000u    /* two events that are recorded and waited for */
#define DECIDE_NS   1000000u /* the arbiter sleeps so long at least */
#define SM_STEP     8u       /* what a green context's number of SMs is a multiple of */

/* Sum of best effort's submitted work; 0: some of it is not done. */
static uint64_t quiet(const struct world *w)
{
	uint64_t sum = 1;
	for (size_t i = 0; i < w->count; i++) {
		const struct host *o = &w->hosts[i];
		if (o->class != CLASS_BEST_EFFORT)
			continue;
		if (o->work.submitted_ns != o->work.retired_ns)
			return 0;
		sum += o->work.submitted_ns;
	}
	return sum;
}

static void tell(struct host *h, uint64_t request)
{
	if (h->fresh < SHARE_RECENT)
		h->request[h->fresh++] = request;
}

static void tell_request(struct world *w, struct host *h)
{
	const uint64_t begun = h->arrival.begun_ns,
		       mark = h->quiet && quiet(w) == h->quiet ? h->quiet : 0;
	if (arrival_makes_runs(&h->arrival))
		arrival_run_add(&h->run, begun, w->now, mark);
	else
		tell(h, share_packed(w->now - begun, 1,
				(mark ? SHARE_ALONE : 0) |
					(arrival_is_regular(&h->arrival) ? SHARE_REGULAR : 0)));
}

void host_begins_request(struct world *w, struct host *h)
{
	arrival_begins(&h->arrival, w->now);
	if (arrival_run_ends(&h->run, w->now))
		tell(h, arrival_run_end(&h->run, w->now));
	for (size_t i = 0; i < w->count; i++)
		inflight_poll(&w->hosts[i].work, w->hosts[i].ended, w->now);
	h->quiet = quiet(w);
	h->inside = true;
	h->requests++;
	world_wake_gated(w);
}

void host_ends_request(struct world *w, struct host *h)
{
	inflight_retire_all(&h->work);
	h->inside = false;
	h->next_ns = arrival_ends(&h->arrival, w->now);
	if (h->class != CLASS_LATENCY)
		return;
	share_count(h->took, w->now - h->arrival.begun_ns);
	tell_request(w, h);
	world_wake_gated(w);
}

static struct policy_program seen(const struct world *w, const struct host *h, uint32_t i)
{
	return (struct policy_program){ .here = true,
		.class = h->class,
		.weight = 1,
		.widest = h->p->widest,
		.inside = h->inside || h->work.submitted_ns > h->work.retired_ns,
		.begun_ns = h->arrival.begun_ns,
		.max_wait_ns = w->r->max_wait_ns,
		.retired_ns = h->work.retired_ns,
		.requests = h->requests,
		.lasts_ns = h->class == CLASS_LATENCY ? share_percentile(h->took, UNDISTURBED) : 0,
		.who = i + 1,
		.request = h->request,
		.fresh = h->fresh };
}

static uint64_t requests_begun(const struct world *w)
{
	uint64_t n = 0;
	for (size_t i = 0; i < w->count; i++)
		n += w->hosts[i].class == CLASS_LATENCY ? w->hosts[i].requests : 0;
	return n;
}

void world_decide(struct world *w)
{
	uint64_t again = w->now;
	w->view.now_ns = w->now;
	w->view.requests = requests_begun(w);
	w->view.sms = w->r->device.sms;
	w->view.step = SM_STEP;
	w->view.mps = w->r->device.sharing == LAW_MPS;
	for (size_t i = 0; i < w->count; i++)
		w->view.program[i] = seen(w, &w->hosts[i], (uint32_t)i);
	w->r->policy->decide(&w->view, &w->r->params, &w->policy, w->grants, &again);
	policy_check(&w->view, w->grants, again);
	for (size_t i = 0; i < w->count; i++) {
		w->hosts[i].grant = w->grants[i];
		w->hosts[i].fresh = 0;
	}
	w->policy_ns = again > w->now + DECIDE_NS ? again : w->now + DECIDE_NS;
	world_wake_gated(w);
}

static bool is_regulated(const struct world *w, const struct host *h, const struct step *s)
{
	const uint32_t mode = h->grant.mode;
	if (!w->r->policy || !s->gated || mode == MODE_OPEN)
		return false;
	if (mode == MODE_HOLD || mode == MODE_BUDGET)
		return true;
	for (size_t i = 0; i < w->count; i++)
		if (w->hosts[i].class == CLASS_LATENCY)
			return true;
	return false;
}

static struct rule_view view_of(const struct world *w, struct host *h)
{
	struct rule_view v = { .alone = h->grant.rest == (uint32_t)requests_begun(w) + 1,
		.inflight_ns = inflight_left(&h->work, w->now),
		.capped_ns = h->work.capped_ns,
		.now_ns = w->now };
	for (size_t i = 0; i < w->count; i++) {
		const struct host *o = &w->hosts[i];
		if (o->class != CLASS_LATENCY)
			continue;
		if (o != h && o->inside && w->now - o->arrival.begun_ns < w->r->max_wait_ns &&
			!v.active) {
			v.active = true;
			h->until_ns = o->arrival.begun_ns + (uint64_t)o->arrival.lasts.ns;
		}
		if (h->grant.ahead_ns && o->next_ns && (!v.next_ns || o->next_ns < v.next_ns))
			v.next_ns = o->next_ns;
	}
	return v;
}

/* Blocks that wait for each other would still all run (src/hook/sched/cap.h). */
static bool cap_is_safe(const struct launch_cost *c, uint32_t sms, uint32_t cap_sms)
{
	if (!c->plain || !c->resident || !cap_sms)
		return false;
	return c->blocks > (uint64_t)sms * c->resident ||
	       c->blocks <= (uint64_t)cap_sms * c->resident;
}

/* Whether it sleeps between two looks: not while the end of what it waits for is near. */
static bool naps(const struct host *h, uint64_t t)
{
	if (h->reason == REASON_BUDGET || t <= h->since_ns + AWAKE_NS)
		return false;
	return h->reason != REASON_REQUEST || t + AWAKE_NS < h->until_ns ||
	       t > h->until_ns + AWAKE_NS;
}

/* The look, of those every POLL_NS or NAP_NS, that sees what happens at t. */
static uint64_t look_after(const struct host *h, uint64_t t)
{
	const uint64_t each = naps(h, t) ? NAP_NS : POLL_NS;
	const uint64_t waited = t > h->since_ns ? t - h->since_ns : 0;
	return h->since_ns + (waited + each - 1) / each * each;
}

void host_wake_gated(struct world *w, struct host *h)
{
	const uint64_t at = look_after(h, w->now);
	if (h->state == HOST_GATED && at < h->at_ns)
		h->at_ns = at;
}

void world_wake_gated(struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		host_wake_gated(w, &w->hosts[i]);
}

static void wait_until(struct world *w, struct host *h, uint64_t patience)
{
	const uint32_t tail = h->work.tail;
	const uint64_t expires = h->since_ns + w->r->max_wait_ns;
	if (h->reason == REASON_BUDGET && h->work.head == h->work.tail && inflight_cut(&h->work))
		h->extra_ns += MARK_NS;
	inflight_poll(&h->work, h->ended, w->now);
	uint64_t at = patience < expires ? look_after(h, patience) : expires;
	if (h->work.tail != tail || at <= w->now)
		at = w->now + POLL_NS;
	h->at_ns = at;
	h->state = HOST_GATED;
}

static void pass(struct world *w, struct host *h, uint32_t cap_sms)
{
	h->passed = true;
	h->cap_sms = cap_sms;
	h->extra_ns += GATE_NS + (cap_sms ? CAP_NS : 0);
	h->result->capped += cap_sms > 0;
	if (h->since_ns)
		h->result->waited_ns += w->now - h->since_ns;
	h->since_ns = 0;
	h->state = HOST_RUNS;
}

bool host_may_pass(struct world *w, struct host *h, const struct step *s)
{
	const struct launch_cost *c = &h->p->costs.v[s->cost];
	uint32_t sms;
	if (!is_regulated(w, h, s)) {
		h->state = HOST_RUNS;
		h->since_ns = 0;
		h->cap_sms = 0;
		return h->passed = true;
	}
	if (h->since_ns)
		inflight_poll(&h->work, h->ended, w->now);
	const struct rule_view v = view_of(w, h);
	const struct rule_launch l = { .t90_ns = c->t90_ns,
		.may_be_capped = cap_is_safe(c, w->r->device.sms, h->grant.cap_sms) };
	const enum rule_verdict verdict = rule_of(&h->grant, &v, &l, &sms, &h->reason);
	const bool expired = h->since_ns && w->now - h->since_ns >= w->r->max_wait_ns;
	if (verdict != RULE_WAIT || expired) {
		h->result->expired += verdict == RULE_WAIT;
		pass(w, h, verdict == RULE_CAP ? sms : 0);
		return true;
	}
	if (!h->since_ns) {
		h->since_ns = w->now;
		h->result->waits++;
	}
	wait_until(w, h, inflight_patience(&h->work, &h->grant, &v, &l, h->reason));
	return false;
}

/* It was sent: what is in flight grows. */
void host_has_passed(struct world *w, struct host *h, const struct step *s)
{
	const uint64_t took = h->p->costs.v[s->cost].mean_ns;
	if (!is_regulated(w, h, s))
		return;
	const struct inflight_launch l = {
		.took_ns = h->cap_sms ? took * w->r->device.sms / h->cap_sms : took,
		.given = h->given[s->stream],
		.stream = s->stream,
		.capped = h->cap_sms > 0
	};
	if (inflight_add(&h->work, &l, w->now, h->grant.budget_ns))
		h->extra_ns += MARK_NS;
}
