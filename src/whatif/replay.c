/* Replays recorded programs on one device. */
#include "whatif/replay.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "whatif/host.h"

#define QUEUE_MOST 1024u /* ops that a program may have in flight, as a driver allows */
#define VARIES     0.03  /* of a pause: what is left to chance */
#define TAG_SHIFT  40    /* of a work: its stream, above the number of its op */

/* In (0, 1]. */
static double draw(uint64_t *state)
{
	const uint64_t z = hash_mix(*state += 0x9e3779b97f4a7c15u);
	return (double)((z >> 11) + 1) / 9007199254740992.0;
}

static uint64_t draw_exponential(struct host *h, double mean_ns)
{
	return (uint64_t)(-log(draw(&h->random)) * mean_ns);
}

/* A pause that is always the same would keep in step with the device's slices, and each request
 * meet the same moment of one: it varies, by less than what arrival.h takes for regular. */
static uint64_t varied(struct host *h, uint64_t ns)
{
	const double part = (double)ns * VARIES;
	return ns - (uint64_t)part + draw_exponential(h, part);
}

static uint64_t pause_of(const struct world *w, struct host *h, uint64_t recorded_ns)
{
	if (h->class != CLASS_LATENCY)
		return recorded_ns;
	if (w->r->arrivals.kind == ARRIVE_CLOSED)
		return varied(h, w->r->arrivals.time_ns);
	return h->rounds ? varied(h, recorded_ns) : recorded_ns;
}

/* When the next request begins, and when it is due. */
static uint64_t arrive(const struct world *w, struct host *h, uint64_t recorded_ns)
{
	const struct arrivals *a = &w->r->arrivals;
	const enum arrival_kind kind = h->class == CLASS_LATENCY ? a->kind : ARRIVE_RECORDED;
	if (kind == ARRIVE_PERIODIC)
		h->due_ns += a->time_ns;
	else if (kind == ARRIVE_POISSON)
		h->due_ns += draw_exponential(h, (double)a->time_ns);
	else
		h->due_ns = w->now + pause_of(w, h, recorded_ns);
	return h->due_ns > w->now ? h->due_ns : w->now;
}

static const struct step *step_of(const struct host *h)
{
	return &h->p->steps.v[h->step];
}

/* The host's work between two requests is no part of requests that come otherwise. */
static bool is_between(const struct world *w, const struct host *h)
{
	return !h->inside && h->class == CLASS_LATENCY && w->r->arrivals.kind != ARRIVE_RECORDED;
}

static void schedule(const struct world *w, struct host *h)
{
	const struct step *s = step_of(h);
	const uint64_t gap = s->gap_ns + h->extra_ns;
	h->extra_ns = 0;
	h->state = HOST_RUNS;
	if (s->begins)
		h->at_ns = arrive(w, h, gap);
	else
		h->at_ns = w->now + (is_between(w, h) ? 0 : gap);
}

static void next_step(struct world *w, struct host *h)
{
	h->sent = 0;
	h->passed = false;
	if (++h->step == h->p->steps.n) {
		h->step = 0;
		h->rounds++;
	}
	schedule(w, h);
}

static struct law_work work_of(const struct host *h, const struct step *s, size_t op)
{
	const struct device_op *o = &h->p->ops.v[op];
	const uint32_t stream = s->stream;
	const bool behind = h->ended[stream] < h->given[stream];
	struct law_work work = { .kind = o->kind,
		.client = h->client,
		.stream = stream + 1,
		.lead_ns = op > s->first_op ? o->lead_ns
			   : behind         ? h->p->behind_ns
					    : h->p->first_ns,
		.alone_ns = o->alone_ns,
		.tag = (uint64_t)stream << TAG_SHIFT | op };
	if (o->kind != LAW_KERNEL) {
		work.engine = o->engine;
		return work;
	}
	work.blocks = o->blocks;
	work.warps = o->warps ? o->warps : 1;
	work.per_sm = o->per_sm;
	work.end_sm = h->cap_sms;
	return work;
}

static int hand_over(struct world *w, struct host *h, const struct law_work *work)
{
	uint64_t id;
	const int e = h->pending < QUEUE_MOST ? law_submit(w->law, work, &id) : -EAGAIN;
	if (e == -EAGAIN) {
		h->state = HOST_FULL;
		h->at_ns = h->pending ? LAW_NEVER : w->now + POLL_NS;
		return e;
	}
	if (e)
		return e;
	h->pending++;
	h->given[work->stream - 1]++;
	h->last_id[work->stream - 1] = id;
	return 0;
}

static int submit(struct world *w, struct host *h, const struct step *s)
{
	if (!h->sent && !h->passed && s->begins && !h->inside)
		host_begins_request(w, h);
	if (!h->passed && !host_may_pass(w, h, s))
		return 0;
	for (; h->sent < s->op_count; h->sent++) {
		const struct law_work work = work_of(h, s, s->first_op + h->sent);
		const int e = hand_over(w, h, &work);
		if (e)
			return e == -EAGAIN ? 0 : e;
	}
	w->results->launches++;
	host_has_passed(w, h, s);
	next_step(w, h);
	return 0;
}

static bool is_done(const struct host *h)
{
	if (h->wait_stream == ALL_STREAMS)
		return !h->pending;
	return h->ended[h->wait_stream] >= h->wait_given;
}

static void returned(struct world *w, struct host *h)
{
	struct replay_result *r = h->result;
	if (step_of(h)->ends) {
		host_ends_request(w, h);
		r->requests++;
		const bool kept = h->class == CLASS_LATENCY && r->latency.v.n < w->r->requests;
		if (kept)
			*array_push(&r->latency.v) = w->now - h->due_ns;
	}
	next_step(w, h);
}

static void wait(struct world *w, struct host *h, const struct step *s)
{
	h->wait_stream = s->stream;
	if (s->event != NO_EVENT) {
		h->wait_stream = h->events[s->event].stream;
		h->wait_given = h->events[s->event].given;
	} else if (s->stream != ALL_STREAMS) {
		h->wait_given = h->given[s->stream];
	}
	if (is_done(h)) {
		returned(w, h);
		return;
	}
	h->state = HOST_WAITS;
	h->at_ns = LAW_NEVER;
}

static int await_event(struct world *w, struct host *h, const struct step *s)
{
	const uint64_t id = h->events[s->event].id;
	const struct law_work mark = { .kind = LAW_MARK,
		.client = h->client,
		.stream = s->stream + 1,
		.after = &id,
		.after_count = id != 0,
		.tag = (uint64_t)s->stream << TAG_SHIFT | h->p->ops.n };
	const int e = hand_over(w, h, &mark);
	if (!e)
		next_step(w, h);
	return e == -EAGAIN ? 0 : e;
}

static int act(struct world *w, struct host *h)
{
	const struct step *s = step_of(h);
	if (h->state == HOST_RETURNS) {
		returned(w, h);
		return 0;
	}
	if (s->kind == STEP_SYNC) {
		wait(w, h, s);
		return 0;
	}
	if (s->kind == STEP_SUBMIT && s->op_count)
		return submit(w, h, s);
	if (s->kind == STEP_AWAIT_EVENT)
		return await_event(w, h, s);
	if (s->kind == STEP_RECORD_EVENT)
		h->events[s->event] = (struct host_event){ s->stream, h->given[s->stream],
			h->last_id[s->stream] };
	next_step(w, h);
	return 0;
}

static void count_done(struct world *w, struct host *h, const struct law_done *done)
{
	const uint64_t op = done->tag & (((uint64_t)1 << TAG_SHIFT) - 1);
	h->ended[done->tag >> TAG_SHIFT]++;
	h->pending--;
	if (op >= h->p->ops.n)
		return;
	h->result->work_ns += h->p->ops.v[op].alone_ns;
	h->result->ops++;
	if (w->r->ends)
		*array_push(&w->r->ends->v) = done->end_ns - EPOCH_NS;
}

static void collect(struct world *w, struct host *h)
{
	struct law_done done;
	bool any = false;
	while (law_pop(w->law, h->client, &done)) {
		count_done(w, h, &done);
		any = true;
	}
	if (!any)
		return;
	if (h->state == HOST_WAITS && is_done(h)) {
		h->state = HOST_RETURNS;
		h->at_ns = w->now + h->p->return_ns;
	} else if (h->state == HOST_FULL) {
		h->at_ns = w->now;
	} else {
		host_wake_gated(w, h);
	}
}

/* Grants matter to those who wait; for the others the policy is asked when something happens. */
static uint64_t next_date(const struct world *w)
{
	uint64_t t = law_next(w->law);
	for (size_t i = 0; i < w->count; i++) {
		const struct host *h = &w->hosts[i];
		t = MIN(h->at_ns, t);
		if (h->state == HOST_GATED && w->policy_ns < t)
			t = w->policy_ns;
	}
	return t;
}

static bool is_through(const struct world *w)
{
	bool any_latency = false, all = true, once = true;
	for (size_t i = 0; i < w->count; i++) {
		const struct host *h = &w->hosts[i];
		any_latency |= h->class == CLASS_LATENCY;
		all &= h->class != CLASS_LATENCY || h->result->latency.v.n >= w->r->requests;
		once &= h->rounds > 0;
	}
	return any_latency ? all : once;
}

static int go_on(struct world *w, uint64_t t)
{
	int e = 0;
	law_advance(w->law, t);
	w->now = t;
	for (size_t i = 0; i < w->count; i++)
		collect(w, &w->hosts[i]);
	if (w->r->policy && w->policy_ns <= t)
		world_decide(w);
	for (size_t i = 0; i < w->count && !e; i++)
		if (w->hosts[i].at_ns <= t)
			e = act(w, &w->hosts[i]);
	return e;
}

static int run(struct world *w)
{
	int e = 0;
	while (!e && !is_through(w)) {
		const uint64_t t = next_date(w);
		if (t == LAW_NEVER || t > EPOCH_NS + w->r->most_ns)
			return 0;
		e = go_on(w, t);
	}
	w->results->finished = !e;
	return e;
}

static int host_init(struct world *w, size_t i)
{
	const struct replay_program *from = &w->r->programs[i];
	const struct program *p = from->recorded;
	struct host *h = &w->hosts[i];
	*h = (struct host){ .p = p,
		.class = from->class,
		.client = (unsigned)i,
		.random = hash_mix(w->r->arrivals.seed + i + 1),
		.due_ns = EPOCH_NS,
		.given = xcalloc(p->streams + 1, sizeof *h->given),
		.ended = xcalloc(p->streams + 1, sizeof *h->ended),
		.last_id = xcalloc(p->streams + 1, sizeof *h->last_id),
		.events = xcalloc(p->events + 1, sizeof *h->events),
		.result = &w->results->programs[i] };
	/* Under MPS, weir run has best-effort blocks placed behind those of latency programs. */
	const bool behind = w->r->policy && h->class != CLASS_LATENCY;
	const int e = law_client_open(w->law, h->client, behind ? -1 : 0, 0);
	schedule(w, h);
	return e;
}

static int start(struct world *w)
{
	w->law = xmalloc(law_size());
	int e = law_reset(w->law, &w->r->device);
	if (e)
		return e;
	law_advance(w->law, EPOCH_NS);
	w->now = w->policy_ns = EPOCH_NS;
	for (; w->count < w->r->count && !e; w->count++)
		e = host_init(w, w->count);
	return e;
}

static void world_free(struct world *w)
{
	for (size_t i = 0; i < w->count; i++) {
		free_all(w->hosts[i].given, w->hosts[i].ended, w->hosts[i].last_id,
			w->hosts[i].events);
	}
	free(w->law);
	free(w);
}

int replay_run(const struct replay *r, struct replay_results *ret_results)
{
	*ret_results = (struct replay_results){ 0 };
	struct world *w = xcalloc(1, sizeof *w);
	w->r = r;
	w->results = ret_results;
	int e = start(w);
	e = e ? e : run(w);
	ret_results->end_ns = w->now - EPOCH_NS;
	if (!e)
		ret_results->totals = law_totals(w->law);
	for (size_t i = 0; i < r->count; i++)
		SORT(ret_results->programs[i].latency.v, order_u64);
	world_free(w);
	return e;
}

void replay_fini(struct replay_results *results)
{
	for (size_t i = 0; i < REPLAY_PROGRAMS; i++)
		array_free(&results->programs[i].latency.v);
}
