/* Events are arrivals, the end of a batch, and the time at which the policy wants to look again. */
#include "batch/batch_simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

#define WARM_RUNS 3

struct request {
	struct batch_item item; /* first: what the batcher gives back */
	uint32_t model;
};

struct source {
	struct batch_model *model;
	uint64_t random, next_ns;
	size_t sent;
};

struct play {
	const struct simulation *s;
	struct simulated *ret;
	struct batcher *batcher;
	struct source *sources;
	ARRAY(struct request *) all, idle;
	struct batch_run *run;
	uint64_t random, end_ns, wake_ns; /* end of the batch that runs; BATCH_NEVER: none */
};

/* From 0 to 1, without both. */
static double draw(uint64_t *random)
{
	*random += 0x9e3779b97f4a7c15u;
	return ((double)(hash_mix(*random) >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(uint64_t *random)
{
	const double radius = sqrt(-2 * log(draw(random)));
	return radius * cos(6.283185307179586 * draw(random));
}

static void next_arrival(struct play *p, uint32_t i)
{
	const struct simulated_model *m = &p->s->models[i];
	struct source *source = &p->sources[i];
	double at = BATCH_NEVER;
	if (m->arrivals && source->sent < m->arrival_count)
		at = (double)m->arrivals[source->sent++];
	else if (!m->arrivals && m->rate > 0)
		at = (double)source->next_ns - log(draw(&source->random)) / m->rate * 1e9;
	source->next_ns = at < p->s->seconds * 1e9 ? (uint64_t)at : BATCH_NEVER;
}

static uint32_t soonest(const struct play *p)
{
	uint32_t first = 0;
	for (uint32_t i = 1; i < p->s->model_count; i++)
		if (p->sources[i].next_ns < p->sources[first].next_ns)
			first = i;
	return first;
}

static struct request *new_request(struct play *p)
{
	if (!p->idle.n) {
		struct request *r = xcalloc(1, sizeof *r);
		*(array_push(&p->all)) = r;
		return r;
	}
	return p->idle.v[--p->idle.n];
}

static void drop(struct play *p, struct request *r)
{
	*(array_push(&p->idle)) = r;
}

static uint64_t after(uint64_t now, uint64_t ns)
{
	return ns == BATCH_NEVER ? BATCH_NEVER : now + ns;
}

static void arrive(struct play *p, uint32_t i)
{
	const struct simulated_model *m = &p->s->models[i];
	const uint64_t now = p->sources[i].next_ns;
	struct request *r = new_request(p);
	uint64_t retry;
	*r = (struct request){
		.model = i,
		.item = {
			.arrived_ns = now,
			.deadline_ns = after(now, m->deadline_ns),
			.start_by_ns = after(now, m->timeout_ns),
			.rows = 1,
			.class = m->class,
		},
	};
	p->ret[i].arrived++;
	const enum batch_refusal refusal = batch_admit(p->sources[i].model, &r->item, now, &retry);
	p->ret[i].refused += refusal == BATCH_TOO_LATE;
	p->ret[i].full += refusal == BATCH_QUEUE_FULL;
	if (refusal != BATCH_ADMITTED)
		drop(p, r);
	next_arrival(p, i);
}

static double typical(const struct play *p, uint32_t i, uint32_t rows)
{
	const struct simulated_model *m = &p->s->models[i];
	return m->typical_ns[batch_bucket(p->sources[i].model, rows)];
}

static uint64_t duration(struct play *p, uint32_t i, uint32_t rows, uint64_t now)
{
	const struct simulation *s = p->s;
	double ns = typical(p, i, rows) * exp(s->models[i].deviation * draw_normal(&p->random));
	const double hiccup = draw(&p->random);
	if (now >= s->change_ns && now < s->back_ns)
		ns *= s->change;
	return (uint64_t)ns + (hiccup < s->hiccup_share ? s->hiccup_ns : 0);
}

static void begin(struct play *p, uint64_t now)
{
	batch_next(p->batcher, now, now, p->run);
	for (uint32_t k = 0; k < p->run->shed; k++) {
		struct request *r = (struct request *)p->run->gone[k];
		p->ret[r->model].shed++;
		drop(p, r);
	}
	p->wake_ns = p->run->wake_ns;
	if (!p->run->n)
		return;
	const uint32_t i = ((struct request *)p->run->item[0])->model;
	p->end_ns = now + duration(p, i, p->run->rows, now);
}

static void end(struct play *p)
{
	struct batch_run *run = p->run;
	const uint64_t now = p->end_ns;
	struct simulated *ret = &p->ret[((struct request *)run->item[0])->model];
	for (uint32_t k = 0; k < run->n; k++) {
		const struct batch_item *item = run->item[k];
		ret->late += now > item->deadline_ns;
		ret->met += now <= item->deadline_ns;
		ret->broken += now > run->began_ns + run->predicted_ns;
		hist_add(&ret->latency, now - item->arrived_ns);
	}
	ret->batches++;
	ret->busy_ns += now - run->began_ns;
	if (p->s->watch)
		p->s->watch(p->s->arg, run, now);
	for (uint32_t k = 0; k < run->n; k++)
		drop(p, (struct request *)run->item[k]);
	batch_done(p->batcher, run, now);
	p->end_ns = BATCH_NEVER;
}

static void play(struct play *p)
{
	for (;;) {
		const uint32_t i = soonest(p);
		const uint64_t arrival = p->sources[i].next_ns;
		uint64_t now = arrival < p->end_ns ? arrival : p->end_ns;
		if (p->end_ns == BATCH_NEVER && p->wake_ns < now)
			now = p->wake_ns;
		if (now == BATCH_NEVER)
			break;
		if (now == p->end_ns)
			end(p);
		else if (now == arrival)
			arrive(p, i);
		const bool more = p->sources[soonest(p)].next_ns == now;
		if (p->end_ns == BATCH_NEVER && !more)
			begin(p, now);
	}
}

/* Sizes that the engine is warmed up with: its buckets, or powers of two and the largest. */
static void warm(struct play *p, uint32_t i)
{
	const uint32_t most = p->s->models[i].config.max_rows;
	for (uint32_t rows = 1, last = 0; last < most; rows *= 2) {
		last = MIN(rows, most);
		for (int k = 0; k < WARM_RUNS; k++)
			batch_learn(p->sources[i].model, last, duration(p, i, last, 0));
	}
}

static void add(struct simulated *sum, const struct simulated *s)
{
	sum->arrived += s->arrived;
	sum->refused += s->refused;
	sum->full += s->full;
	sum->shed += s->shed;
	sum->late += s->late;
	sum->met += s->met;
	sum->batches += s->batches;
	sum->busy_ns += s->busy_ns;
	sum->broken += s->broken;
	hist_merge(&sum->latency, &s->latency);
}

void simulate(const struct simulation *s, struct simulated *ret)
{
	struct play p = {
		.s = s,
		.ret = ret,
		.batcher = batcher_new(s->policy),
		.sources = xcalloc(s->model_count, sizeof *p.sources),
		.run = xcalloc(1, sizeof *p.run),
		.random = hash_mix(s->seed),
		.end_ns = BATCH_NEVER,
		.wake_ns = BATCH_NEVER,
	};
	for (uint32_t i = 0; i <= s->model_count; i++)
		ret[i] = (struct simulated){ 0 };
	for (uint32_t i = 0; i < s->model_count; i++) {
		p.sources[i].model = batch_model_add(p.batcher, &s->models[i].config);
		p.sources[i].random = hash_mix(s->seed * 1000 + i + 1);
		next_arrival(&p, i);
		warm(&p, i);
	}
	if (s->model_count)
		play(&p);
	for (uint32_t i = 0; i < s->model_count; i++)
		add(&ret[s->model_count], &ret[i]);
	batcher_free(p.batcher);
	for (size_t i = 0; i < p.all.n; i++)
		free(p.all.v[i]);
	array_free(&p.all, &p.idle);
	free_all(p.sources, p.run);
}

double simulated_goodput(const struct simulated *s)
{
	return s->arrived ? (double)s->met / (double)s->arrived : 1;
}

void simulated_fini(struct simulated *s, uint32_t count)
{
	for (uint32_t i = 0; i <= count; i++)
		hist_fini(&s[i].latency);
}
