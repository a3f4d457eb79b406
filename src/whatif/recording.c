/* Reads recorded programs for a replay. */
#include "whatif/recording.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "whatif/device_ops.h"

#define LAUNCH_MOST_NS 50000u     /* a submission that took longer has waited */
#define COPY_LARGE     (1u << 20) /* bytes; a scheduler lets smaller ones pass */
#define USUAL_FIRST    7000u
#define USUAL_BEHIND   2300u
#define USUAL_RETURN   6000u
#define DELAY_MOST     50000u

/* A call, or the wait of a copy that returns when it is done, at its place in time. */
struct event {
	uint64_t at_ns, start_ns, end_ns;
	uint32_t call;
	bool is_wait;
};

/* The gatherer's facts of a kind of launch, beside its struct launch_cost. */
struct kind {
	struct device_op op;
	double sum_ns;
	uint32_t count;
};

/* A launch that was not timed. */
struct untimed {
	size_t op;
	uint32_t cost;
	float predicted_ns;
};

struct builder {
	const struct trace *t;
	const struct meta *m;
	const struct gpu_calls *calls;
	const struct timed_ops *ops;
	struct program *p;
	struct op_device device;
	ARRAY(struct event) events;
	ARRAY(struct kind) kinds;
	ARRAY(struct untimed) untimed;
	ARRAY(uint64_t) last_end; /* of the ops by stream, as recorded */
	struct map kind_map, stream_map, event_map;
	struct durations first, behind, back;
	uint64_t free_ns; /* the host was free at, as recorded */
	uint64_t busy_ns; /* what of the time before that was its own */
};

static uint32_t stream_of(struct builder *b, uint64_t handle)
{
	const uint32_t s = map_number(&b->stream_map, MAP_KEY(handle));
	while (s != MAP_NONE && b->last_end.n <= s)
		*array_push(&b->last_end) = 0;
	return s;
}

#define UNSIZED 65u /* more binary digits than a size has */

static struct map_key kind_key(const struct gpu_call *c)
{
	if (c->use == USE_MOVE)
		return MAP_KEY(USE_MOVE, !c->sized  ? UNSIZED
					 : c->bytes ? 64 - (uint64_t)__builtin_clzll(c->bytes)
						    : 0);
	uint64_t h = 0;
	for (int i = 0; i < 3; i++)
		h = hash_mix(h ^ ((uint64_t)c->grid[i] << 32 | c->block[i]));
	return MAP_KEY(c->use, c->what, h, c->shared);
}

static struct launch_cost cost_of(const struct builder *b, const struct gpu_call *c)
{
	if (c->use != USE_LAUNCH)
		return (struct launch_cost){ 0 };
	const struct device_op op = op_of_launch(
		&b->device, c, meta_find_attributes(b->m, c->process, c->what, c->start));
	return (struct launch_cost){
		.blocks = op.blocks, .resident = op.per_sm, .plain = c->plain
	};
}

static uint32_t kind_of(struct builder *b, const struct gpu_call *c)
{
	const uint32_t i = map_number(&b->kind_map, kind_key(c));
	if (i == MAP_NONE || i < b->kinds.n)
		return i;
	struct kind *k = array_push(&b->kinds);
	struct launch_cost *cost = array_push(&b->p->costs);
	*k = (struct kind){ 0 };
	*cost = cost_of(b, c);
	const uint64_t wide = cost->blocks < b->device.sms ? cost->blocks : b->device.sms;
	if (b->p->widest < wide)
		b->p->widest = (uint32_t)wide;
	return i;
}

static uint64_t gap_of(const struct builder *b, const struct event *e)
{
	const uint64_t at = e->start_ns;
	if (!b->p->steps.n)
		return 0;
	return at > b->free_ns ? b->busy_ns + (at - b->free_ns) : b->busy_ns;
}

static struct step *add_step(struct builder *b, const struct event *e, enum step_kind kind)
{
	const uint64_t gap = gap_of(b, e);
	struct step *s = array_push(&b->p->steps);
	*s = (struct step){
		.gap_ns = gap, .kind = (uint8_t)kind, .event = NO_EVENT, .stream = ALL_STREAMS
	};
	const bool waits = kind == STEP_SYNC;
	const uint64_t took = e->end_ns - e->start_ns;
	b->busy_ns = waits ? 0 : took < LAUNCH_MOST_NS ? took : LAUNCH_MOST_NS;
	b->free_ns = b->free_ns > e->end_ns ? b->free_ns : e->end_ns;
	return s;
}

static void note(struct durations *d, uint64_t from, uint64_t to)
{
	if (to < from)
		return;
	*array_push(&d->v) = MIN(to - from, DELAY_MOST);
}

static void note_begin(struct builder *b, const struct event *e, uint32_t stream, uint64_t began)
{
	const uint64_t before = b->last_end.v[stream];
	if (before <= e->start_ns) {
		note(&b->first, e->start_ns, began);
		return;
	}
	if (before >= e->end_ns)
		note(&b->behind, before, began);
}

static void add_timed(struct builder *b, struct step *s, const struct event *e, size_t at)
{
	struct kind *k = &b->kinds.v[s->cost];
	uint64_t *last = &b->last_end.v[s->stream], took = 0;
	note_begin(b, e, s->stream, b->ops->v.v[at].start_ns);
	array_reserve(&b->p->ops, s->op_count);
	for (uint32_t i = 0; i < s->op_count; i++) {
		const struct timed_op *o = &b->ops->v.v[at + i];
		b->p->ops.v[b->p->ops.n++] = o->op;
		took += o->op.alone_ns;
		*last = *last > o->end_ns ? *last : o->end_ns;
	}
	k->op = b->ops->v.v[at].op;
	k->sum_ns += (double)took;
	k->count++;
}

static void add_untimed(struct builder *b, struct step *s, const struct gpu_call *c)
{
	if (c->use != USE_LAUNCH) {
		b->p->left_out++;
		return;
	}
	struct device_op *op = array_push(&b->p->ops);
	struct untimed *u = array_push(&b->untimed);
	*op = op_of_launch(
		&b->device, c, meta_find_attributes(b->m, c->process, c->what, c->start));
	*u = (struct untimed){ b->p->ops.n - 1, s->cost, c->predicted_ns };
	s->op_count = 1;
}

static void add_submission(struct builder *b, const struct event *e, const struct gpu_call *c)
{
	uint32_t count;
	const size_t at = timed_ops_find(b->ops, c, &count);
	const uint32_t cost = kind_of(b, c), stream = stream_of(b, c->stream);
	struct step *s = add_step(b, e, STEP_SUBMIT);
	s->first_op = b->p->ops.n;
	s->op_count = count;
	s->cost = cost;
	s->stream = stream;
	s->counts = !c->apart;
	s->gated = c->use != USE_MOVE || (s->counts && c->bytes >= COPY_LARGE);
	if (count)
		add_timed(b, s, e, at);
	else
		add_untimed(b, s, c);
}

static uint64_t end_of(const struct builder *b, uint32_t stream)
{
	uint64_t end = 0;
	for (size_t i = 0; i < b->last_end.n; i++)
		if ((stream == ALL_STREAMS || stream == i) && b->last_end.v[i] > end)
			end = b->last_end.v[i];
	return end;
}

static void add_wait(struct builder *b, const struct event *e, const struct gpu_call *c)
{
	struct step *s = add_step(b, e, STEP_SYNC);
	if (c->event)
		s->event = map_number(&b->event_map, MAP_KEY(c->event));
	else if (c->stream)
		s->stream = stream_of(b, c->stream);
	if (c->event || c->use != USE_SYNC)
		return;
	const uint64_t end = end_of(b, s->stream);
	if (e->start_ns < end)
		note(&b->back, end, e->end_ns);
}

static void add_event(struct builder *b, const struct event *e, const struct gpu_call *c)
{
	struct step *s =
		add_step(b, e, c->use == USE_RECORD ? STEP_RECORD_EVENT : STEP_AWAIT_EVENT);
	s->event = map_number(&b->event_map, MAP_KEY(c->event));
	s->stream = stream_of(b, c->stream ? c->stream : 1);
}

static void take(struct builder *b, const struct event *e)
{
	const struct gpu_call *c = &b->calls->v.v[e->call];
	if (e->is_wait || c->use == USE_SYNC) {
		add_wait(b, e, c);
		return;
	}
	if (c->use == USE_RECORD || c->use == USE_AWAIT) {
		add_event(b, e, c);
		return;
	}
	add_submission(b, e, c);
}

ORDERING(event_order, struct event, ORDER(a->at_ns, b->at_ns), ORDER(a->call, b->call),
	ORDER(a->is_wait, b->is_wait))

static void push_event(struct builder *b, uint32_t call, bool is_wait)
{
	const struct gpu_call *c = &b->calls->v.v[call];
	const uint64_t start = trace_ns(b->t, c->start), end = trace_ns(b->t, c->end);
	struct event *e = array_push(&b->events);
	*e = (struct event){
		.start_ns = start, .end_ns = MAX(end, start), .call = call, .is_wait = is_wait
	};
	e->at_ns = is_wait || c->use == USE_SYNC ? e->end_ns : start;
	if (c->waits && !is_wait) /* the time of the call is that of the wait */
		e->end_ns = start;
}

static void order_events(struct builder *b, uint32_t process)
{
	for (size_t i = 0; i < b->calls->v.n; i++) {
		const struct gpu_call *c = &b->calls->v.v[i];
		if (c->process != process || c->use == USE_STREAM)
			continue;
		push_event(b, (uint32_t)i, false);
		if (c->waits)
			push_event(b, (uint32_t)i, true);
	}
	SORT(b->events, event_order);
}

static void set_means(struct builder *b)
{
	for (size_t i = 0; i < b->kinds.n; i++)
		if (b->kinds.v[i].count)
			b->p->costs.v[i].mean_ns =
				(uint64_t)(b->kinds.v[i].sum_ns / b->kinds.v[i].count);
}

/* The mean of its like; else what was predicted; else it takes no time, and is counted. */
static void set_untimed(struct builder *b)
{
	array_each(const struct untimed, u, b->untimed) {
		struct launch_cost *cost = &b->p->costs.v[u->cost];
		struct device_op *op = &b->p->ops.v[u->op];
		if (!cost->mean_ns && u->predicted_ns >= 1 && u->predicted_ns < 1e12f)
			cost->mean_ns = (uint64_t)u->predicted_ns;
		if (b->kinds.v[u->cost].count)
			*op = b->kinds.v[u->cost].op;
		op->alone_ns = cost->mean_ns;
		b->p->untimed += cost->mean_ns > 0;
		b->p->left_out += !cost->mean_ns;
	}
}

static uint64_t step_ns(const struct program *p, const struct step *s)
{
	uint64_t ns = 0;
	for (uint32_t i = 0; i < s->op_count; i++)
		ns += p->ops.v[s->first_op + i].alone_ns;
	return ns;
}

/* As the gate has it: 1.28 standard deviations, each 1.25 mean distances. */
static void set_t90(struct program *p)
{
	double *off = xcalloc(p->costs.n + 1, sizeof *off);
	uint32_t *count = xcalloc(p->costs.n + 1, sizeof *count);
	array_each(struct step, s, p->steps) {
		const uint64_t ns = s->kind == STEP_SUBMIT ? step_ns(p, s) : 0;
		if (!ns) { /* of which no time is known */
			s->op_count = 0;
			continue;
		}
		const uint64_t mean = p->costs.v[s->cost].mean_ns;
		off[s->cost] += (double)(ns > mean ? ns - mean : mean - ns);
		count[s->cost]++;
		p->work_ns += ns;
	}
	for (size_t i = 0; i < p->costs.n; i++)
		p->costs.v[i].t90_ns = p->costs.v[i].mean_ns +
				       (count[i] ? (uint64_t)(1.6 * off[i] / count[i]) : 0);
	free(off);
	free(count);
}

/* The work of each stream, and the part that was waited for, as a program that shares counts it. */
struct requests {
	uint64_t *given, *waited;
	struct {
		uint32_t stream;
		uint64_t given;
	} * event;
	bool inside;
};

static bool all_waited_for(const struct program *p, const struct requests *r)
{
	for (uint32_t i = 0; i < p->streams; i++)
		if (r->waited[i] < r->given[i])
			return false;
	return true;
}

static void settle(const struct program *p, struct requests *r, const struct step *s)
{
	for (uint32_t i = 0; i < p->streams && s->event == NO_EVENT; i++)
		if (s->stream == ALL_STREAMS || s->stream == i)
			r->waited[i] = r->given[i];
	if (s->event == NO_EVENT)
		return;
	const uint32_t stream = r->event[s->event].stream;
	r->waited[stream] = MAX(r->event[s->event].given, r->waited[stream]);
}

static void follow(struct program *p, struct requests *r, struct step *s)
{
	if (s->kind == STEP_SUBMIT && s->op_count && s->counts) {
		s->begins = !r->inside;
		r->inside = true;
		r->given[s->stream]++;
	} else if (s->kind == STEP_RECORD_EVENT) {
		r->event[s->event].stream = s->stream;
		r->event[s->event].given = r->given[s->stream];
	} else if (s->kind == STEP_SYNC) {
		settle(p, r, s);
		s->ends = r->inside && all_waited_for(p, r);
		r->inside = r->inside && !s->ends;
		p->requests += s->ends;
	}
}

static void find_requests(struct builder *b)
{
	struct program *p = b->p;
	struct requests r = { .given = xcalloc(p->streams + 1, sizeof *r.given),
		.waited = xcalloc(p->streams + 1, sizeof *r.waited),
		.event = xcalloc(p->events + 1, sizeof *r.event) };
	for (size_t i = 0; i < p->steps.n; i++)
		follow(p, &r, &p->steps.v[i]);
	if (r.inside) { /* the end of the program waits for the rest */
		const struct event end = { b->free_ns, b->free_ns, b->free_ns, 0, true };
		follow(p, &r, add_step(b, &end, STEP_SYNC));
	}
	free_all(r.given, r.waited, r.event);
}

/* A program that begins anew pauses as usual. */
static void set_first_gap(struct program *p)
{
	struct durations pauses = { 0 };
	for (size_t i = 1; i < p->steps.n; i++)
		if (p->steps.v[i].begins)
			*array_push(&pauses.v) = p->steps.v[i].gap_ns;
	SORT(pauses.v, order_u64);
	if (p->steps.n && p->steps.v[0].begins)
		p->steps.v[0].gap_ns = durations_quantile(&pauses, 0.5, 0);
	array_free(&pauses.v);
}

/* How long they took when they were recorded. */
static void time_requests(struct builder *b)
{
	struct durations d = { 0 };
	uint64_t begun = 0;
	for (size_t i = 0; i < b->events.n && i < b->p->steps.n; i++) {
		if (b->p->steps.v[i].begins)
			begun = b->events.v[i].at_ns;
		if (b->p->steps.v[i].ends)
			*array_push(&d.v) = b->events.v[i].at_ns - begun;
	}
	SORT(d.v, order_u64);
	b->p->recorded_p50_ns = durations_quantile(&d, 0.5, 0);
	array_free(&d.v);
}

static void set_delays(struct builder *b)
{
	SORT(b->first.v, order_u64);
	SORT(b->behind.v, order_u64);
	SORT(b->back.v, order_u64);
	b->p->first_ns = durations_quantile(&b->first, 0.5, USUAL_FIRST);
	b->p->behind_ns = durations_quantile(&b->behind, 0.5, USUAL_BEHIND);
	b->p->return_ns = durations_quantile(&b->back, 0.5, USUAL_RETURN);
}

static void build(struct builder *b, uint32_t process)
{
	order_events(b, process);
	for (size_t i = 0; i < b->events.n; i++)
		take(b, &b->events.v[i]);
	set_means(b);
	set_untimed(b);
	set_delays(b);
	b->p->streams = (uint32_t)b->last_end.n;
	b->p->events = (uint32_t)b->event_map.taken;
	set_t90(b->p);
	find_requests(b);
	set_first_gap(b->p);
	time_requests(b);
}

static void builder_fini(struct builder *b)
{
	array_free(&b->events, &b->kinds, &b->untimed, &b->last_end, &b->first.v, &b->behind.v,
		&b->back.v);
	map_fini(&b->kind_map, &b->stream_map, &b->event_map);
}

static void program_fini(struct program *p)
{
	array_free(&p->steps, &p->ops, &p->costs);
}

/* Without work it is none. */
static void add_program(struct builder b, struct recording *r, uint32_t process)
{
	struct program p = { 0 };
	b.p = &p;
	b.device = op_device_of(b.m, process);
	build(&b, process);
	builder_fini(&b);
	if (!p.work_ns) {
		program_fini(&p);
		return;
	}
	*array_push(&r->programs) = p;
	r->sms = r->sms ? r->sms : b.device.sms;
}

static int load_parts(const struct trace *t, struct recording *r, struct meta *m,
	struct gpu_calls *calls, struct timed_ops *ops, struct error *err)
{
	int e = meta_load(t, m, err);
	if (!e)
		e = gpu_calls_load(t, calls);
	if (!e)
		e = timed_ops_load(t, m, ops);
	const struct builder b = { .t = t, .m = m, .calls = calls, .ops = ops };
	for (size_t i = 0; i < t->processes.n && !e; i++)
		add_program(b, r, (uint32_t)i);
	return e;
}

static void name_programs(const char *path, const struct trace *t, struct recording *r)
{
	const char *name = basename(path);
	const char *dot = strrchr(name, '.');
	const int length = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
	for (size_t i = 0; i < r->programs.n; i++) {
		struct program *p = &r->programs.v[i];
		if (r->programs.n == 1)
			snprintf(p->name, sizeof p->name, "%.*s", length, name);
		else
			snprintf(p->name, sizeof p->name, "%.*s#%zu", length, name, i + 1);
	}
}

int recording_load(
	const char *path, const struct trace *t, struct recording *ret_r, struct error *err)
{
	struct meta m = { 0 };
	struct gpu_calls calls = { 0 };
	struct timed_ops ops = { 0 };
	*ret_r = (struct recording){ 0 };
	const int e = load_parts(t, ret_r, &m, &calls, &ops, err);
	meta_fini(&m);
	array_free(&calls.v, &ops.v);
	if (e) {
		recording_fini(ret_r);
		return error_set(err, e, "%s can't be replayed: %s", path, strerror(-e));
	}
	name_programs(path, t, ret_r);
	if (!ret_r->programs.n)
		return error_set(err, -ENODATA,
			"%s has no device times, so it can't be "
			"replayed. Record the program with: weir record --gpu",
			path);
	return 0;
}

void recording_fini(struct recording *r)
{
	for (size_t i = 0; i < r->programs.n; i++)
		program_fini(&r->programs.v[i]);
	array_free(&r->programs);
}
