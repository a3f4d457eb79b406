/*
 * Times launches in runs of several in a row, which share events and most queries of the driver.
 * Each context has a ring of runs, and the oldest is taken next.
 *
 * A thread owns a run once it has moved the run's state to TAKEN, under a number of its own.
 * Between two launches the run is OPEN, and its thread continues it unless another thread takes it.
 * A thread that never returns from the driver costs its run.
 */
#include "hook/time/event_timer.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "record/writer.h"
#include "hook/core/call.h"
#include "hook/core/elf.h"
#include "hook/core/captures.h"
#include "hook/meta/kernels.h"
#include "hook/core/own_calls.h"
#include "hook/core/pages.h"
#include "hook/time/calibration.h"
#include "hook/time/collector.h"
#include "hook/time/event_waits.h"
#include "hook/time/shape_counts.h"
#include "hook/core/strings.h"

#define CONTEXTS   16u
#define RUNS       32u
#define RUN        16u           /* launches of one run, at most */
#define EVENTS     (2 * RUN + 1) /* of one run: around its launches, and the last of an empty pair */
#define STREAMS    64u           /* whose last end is remembered, by hash */
#define SHARED_NS  4000u         /* that may pass between launches which share an event */
#define LOST_SIGHT 1024u /* launches until a thread asks again whether anybody wants times */

enum run_state { NONE, FREE, TAKEN, OPEN, PENDING };
#define STATES 8u /* a state is one of these, plus whose it is: a multiple */

struct sample {
	struct run *run;
	uint32_t from, to;    /* of the run's events */
	uint64_t returned_ns; /* when the launch had: CLOCK_MONOTONIC */
	uint32_t stream;      /* GPU_STREAM_BUSY or _IDLE; 0: not known */
	struct gpu_activity activity;
	struct link link;
};

struct run {
	_Atomic uint64_t state;
	struct pool *pool;
	void *stream;
	bool per_thread;
	uint32_t stream_id, stream_valid; /* GPU_HAS_STREAM or 0 */
	uint32_t count;                   /* launches that were timed */
	uint32_t events;                  /* that they have used */
	uint64_t begun;                   /* when the last launch had: ticks */
	uint64_t returned_ns;             /* when it had */
	const char *pos;                  /* where this thread's records ended then */
	void *event[EVENTS];
	struct event_date date[EVENTS]; /* at_ns: from the first one on */
	int64_t clock;                  /* event_clock() of them */
	bool has_pair;                  /* the last launch's event and the one behind it: empty */
	uint32_t pair_ns;               /* what that took; with GPU_HAS_PAIR in pair_valid */
	uint32_t pair_valid;
	struct sample launch[RUN];
};

enum pool_state { EMPTY, MAKING, READY };

struct pool {
	_Atomic uint32_t state; /* enum pool_state */
	uint64_t id;            /* that the driver gives each context once; without: its handle */
	uint64_t context;       /* handle */
	const void *driver;     /* one function of the driver that its events are of */
	int32_t device;
	bool has_id;
	_Atomic uint32_t next, tail; /* of runs, both grow; modulo RUNS */
	_Atomic uint64_t last_end[STREAMS];
	struct run runs[RUNS];
} OWN_PAGES;

static struct pool pools[CONTEXTS];
static _Atomic uint32_t rate; /* 0: nobody wants times */
static _Atomic uint64_t correlations;
static _Atomic uint64_t owners;
static _Atomic uint32_t threads_seen;

/* This thread's place in its runs. */
static __thread struct {
	struct run *run; /* the open one, or NULL */
	uint64_t owner;  /* as which it was taken */
	uint32_t length; /* launches of this run of the thread's */
	uint32_t left;   /* of them */
	uint32_t random; /* state of the generator; 0: not begun */
} turn __attribute__((tls_model("initial-exec")));

static uint32_t random_below(uint64_t n)
{
	uint32_t x = turn.random; /* xorshift */
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	turn.random = x;
	return (uint32_t)(x * n >> 32);
}

/*
 * Sets the counter to the next launch to be timed.  False: this one is not.  Between two runs lie
 * as many launches as one in n asks for, on average and by lot, so that no period of the program's
 * is met.  The first runs of a thread are short: it may not launch much.
 */
static bool is_next(void)
{
	const uint64_t n = load_relaxed(&rate);
	if (!n) {
		timing_left = LOST_SIGHT; /* cuInit() may come yet */
		return false;
	}
	if (!turn.random) {
		turn.random = ((add_relaxed(&threads_seen, 1) + 1) * 0x9e3779b9u) | 1;
		timing_left = random_below(n);
		if (timing_left)
			return false;
	}
	if (!turn.left) {
		turn.length = !turn.length ? 1 : turn.length < RUN ? 2 * turn.length : RUN;
		turn.left = turn.length;
	}
	turn.left--;
	timing_left = turn.left ? 1 : 1 + random_below(2 * (n - 1) * turn.length + 1);
	return true;
}

void event_timer_adapt(void)
{
	store_relaxed(&timing_adapts, 1);
}

static bool is_wanted(void)
{
	return process_is_started() && hook_recorder.header && process_control() & CONTROL_SAMPLE &&
	       load_relaxed(&hook_hot.captures) <= 0;
}

static bool record_event(struct run *r, uint32_t i)
{
	struct event_date *d = &r->date[i];
	d->begun_ns = monotonic_ns();
	if (REAL_OF(cuEventRecord, r->per_thread)(r->event[i], r->stream))
		return false;
	d->recorded_ns = monotonic_ns();
	return true;
}

/* Whether the stream has come to the event: if not, it has not waited for what came since.  Asked
 * last: an event behind short work is late enough. */
static uint32_t stream_at(const struct run *r, uint32_t i)
{
	if (!real_at(FN_cuEventQuery))
		return 0;
	int mode = RELAXED;
	own_calls_exchange(&mode);
	const int e = REAL(cuEventQuery)(r->event[i]);
	own_calls_exchange(&mode);
	return e == NOT_READY ? GPU_STREAM_BUSY : e ? 0 : GPU_STREAM_IDLE;
}

/* Events have to be of the stream's context, and are of the current one. */
static bool is_of(void *stream, uint64_t context)
{
	void *its = NULL;
	if ((uintptr_t)stream <= 2) /* the legacy stream and the thread's: of any context */
		return true;
	return !real_at(FN_cuStreamGetCtx) ||
	       (!REAL(cuStreamGetCtx)(stream, &its) && (uintptr_t)its == context);
}

static bool driver_can(void)
{
	static const enum fn needed[] = { FN_cuEventCreate, FN_cuEventRecord, FN_cuEventRecord_ptsz,
		FN_cuEventElapsedTime, FN_cuCtxGetCurrent, FN_cuCtxGetDevice,
		FN_cuCtxPushCurrent_v2, FN_cuCtxPopCurrent_v2 };
	return ALL_FOUND(needed);
}

static const void *driver(void)
{
	return real_at(FN_cuCtxPushCurrent_v2);
}

static struct pool *make_pool(uint64_t context, uint64_t id, bool has_id)
{
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		uint32_t seen = EMPTY;
		if (!replace_if(&p->state, &seen, MAKING, acquire, relaxed))
			continue;
		p->id = id;
		p->context = context;
		p->has_id = has_id;
		p->driver = driver();
		store_relaxed(&p->next, 0);
		store_relaxed(&p->tail, 0);
		memset(p->last_end, 0, sizeof p->last_end);
		if (REAL(cuCtxGetDevice)(&p->device))
			p->device = -1;
		store_release(&p->state, READY);
		return p;
	}
	return NULL;
}

/* The events have gone with their context, or are left to it. */
static void drop(struct pool *p)
{
	uint32_t seen = READY;
	if (!replace_if(&p->state, &seen, MAKING, acquire, relaxed))
		return;
	uint64_t lost = 0;
	for (uint32_t i = 0; i < RUNS; i++) {
		const uint64_t was =
			atomic_exchange_explicit(&p->runs[i].state, NONE, memory_order_acq_rel);
		if (was % STATES == OPEN || was % STATES == PENDING)
			lost += p->runs[i].count;
	}
	activity_lose(&hook_recorder, lost);
	store_release(&p->state, EMPTY);
}

/* The current context's.  NULL: there are none left, or another thread is making it. */
static struct pool *pool_of(uint64_t context)
{
	unsigned long long id = 0;
	const bool has_id = real_at(FN_cuCtxGetId) && !REAL(cuCtxGetId)((void *)context, &id);
	id = has_id ? id : context;
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		const uint32_t state = load_acquire(&p->state);
		if (state == MAKING)
			return NULL;
		if (state == READY && p->driver != driver()) /* loaded anew: events of none */
			drop(p);
		else if (state == READY && p->id == id && p->context == context)
			return p;
	}
	return make_pool(context, id, has_id);
}

static void context_gone(uint64_t context)
{
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (pools[i].context == context)
			drop(&pools[i]);
}

static void device_gone(int device)
{
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (pools[i].device == device)
			drop(&pools[i]);
}

static bool move(struct run *r, uint64_t from, uint64_t to)
{
	return replace_if(&r->state, &from, to, acq_rel, relaxed);
}

static uint64_t span_ns(uint64_t from, uint64_t to)
{
	return to <= from ? 0 : to - from < UINT32_MAX ? to - from : UINT32_MAX;
}

/* How long the stream waited for the host, and how late the event behind was. */
static uint64_t host_ns(const struct run *r, const struct sample *s)
{
	const uint64_t waited = s->stream == GPU_STREAM_IDLE
					? event_wait(&r->date[s->from], r->clock, s->returned_ns)
					: 0;
	return span_ns(0, waited) | span_ns(s->returned_ns, r->date[s->to].recorded_ns) << 32;
}

static void keep(const struct run *r, struct sample *s, uint64_t ns)
{
	_Atomic uint64_t *last =
		&r->pool->last_end[(uintptr_t)r->stream * 0x9e3779b97f4a7c15u >> 58];
	const uint64_t before = load_relaxed(last);
	s->activity.start_ns = before > s->returned_ns ? before : s->returned_ns;
	s->activity.end_ns = s->activity.start_ns + ns;
	s->activity.host_ns = host_ns(r, s);
	s->activity.pair_ns = r->pair_ns;
	s->activity.valid |= r->pair_valid | s->stream;
	store_relaxed(last, s->activity.end_ns);
	struct link *link = link_reserve(&hook_recorder);
	struct gpu_activity *activity = link ? activity_reserve(&hook_recorder) : NULL;
	if (!activity) {
		activity_lose(&hook_recorder, 1);
		return;
	}
	const uint64_t correlation = add_relaxed(&correlations, 1) + 1;
	const uint16_t kind = s->activity.kind;
	s->link.correlation = 0;
	*link = s->link;
	store_release(shared(&link->correlation), correlation);
	s->activity.correlation = correlation;
	s->activity.kind = 0;
	*activity = s->activity;
	store_release(shared(&activity->kind), kind);
}

static int elapsed(const struct run *r, uint32_t from, uint32_t to, uint64_t *ret_ns)
{
	float ms = -1;
	const int e = REAL(cuEventElapsedTime)(&ms, r->event[from], r->event[to]);
	if (e || !(ms >= 0 && ms < 1e12f))
		return e ? e : -1;
	*ret_ns = (uint64_t)((double)ms * 1e6 + 0.5);
	return 0;
}

/* Measures the time of two events with nothing between them.  False: the device is not through. */
static bool collect_pair(struct run *r)
{
	uint64_t ns;
	const int e = r->has_pair ? elapsed(r, r->events - 1, EVENTS - 1, &ns) : -1;
	r->pair_valid = !e && ns < UINT32_MAX ? GPU_HAS_PAIR : 0;
	r->pair_ns = r->pair_valid ? (uint32_t)ns : 0;
	return e != NOT_READY;
}

/* When the stream came to the events, from the first one on; unknown ones say nothing about the
 * clocks. */
static void date_events(struct run *r, uint32_t count)
{
	struct event_date *d = r->date;
	d[0].at_ns = 0;
	for (uint32_t i = 1; i < count; i++) {
		uint64_t ns = d[i].begun_ns - d[0].begun_ns;
		elapsed(r, 0, i, &ns);
		d[i].at_ns = (int64_t)ns;
	}
	r->clock = event_clock(d, count);
}

/* Collects a run that is the caller's.  False: the device is not through.  Its last event tells: a
 * stream is in order. */
static bool collect(struct run *r)
{
	uint64_t ns;
	const struct sample *last = r->count ? &r->launch[r->count - 1] : NULL;
	if (last && (!collect_pair(r) || elapsed(r, last->from, last->to, &ns) == NOT_READY))
		return false;
	date_events(r, last ? last->to + 1 : 0);
	for (uint32_t i = 0; i < r->count; i++) {
		struct sample *s = &r->launch[i];
		if (!elapsed(r, s->from, s->to, &ns))
			keep(r, s, ns);
		else
			activity_lose(&hook_recorder, 1);
	}
	return true;
}

/* False: it waits for the device, or is not the caller's to ask. */
static bool collect_run(struct run *r, enum run_state which)
{
	const uint64_t seen = load_acquire(&r->state);
	const uint64_t taken = seen - seen % STATES + TAKEN;
	if (seen % STATES != which || !move(r, seen, taken))
		return false;
	const bool through = collect(r);
	move(r, taken, taken - TAKEN + (through ? FREE : PENDING));
	return through;
}

static bool is(const struct run *r, enum run_state which)
{
	return load_acquire(&r->state) % STATES == which;
}

/* From the oldest on, until one that is not through.  A run that another thread has just now waits
 * until the ring comes round. */
static void collect_oldest(struct pool *p)
{
	uint32_t at = load_relaxed(&p->tail);
	const uint32_t next = load_relaxed(&p->next);
	at = next - at > RUNS ? next - RUNS : at;
	while (at != next) {
		struct run *r = &p->runs[at % RUNS];
		if (!collect_run(r, PENDING) && is(r, PENDING))
			break;
		at++;
	}
	store_relaxed(&p->tail, at);
}

static bool make_events(struct run *r)
{
	for (uint32_t i = 0; i < EVENTS; i++)
		if (REAL(cuEventCreate)(&r->event[i], 0)) {
			while (i-- && real_at(FN_cuEventDestroy_v2))
				REAL(cuEventDestroy_v2)(r->event[i]);
			return false;
		}
	return true;
}

/* For this thread, unless another was quicker. */
static bool take(struct run *r)
{
	const uint64_t seen = load_acquire(&r->state);
	const uint64_t owner = add_relaxed(&owners, STATES) + STATES;
	if ((seen % STATES != NONE && seen % STATES != FREE) || !move(r, seen, owner + TAKEN))
		return false;
	if (seen % STATES == NONE && !make_events(r)) {
		move(r, owner + TAKEN, NONE);
		return false;
	}
	return true;
}

/* The next run of the ring that nobody has, else one that its thread has left open.  NULL: they
 * wait for the device. */
static struct run *take_run(struct pool *p)
{
	const uint32_t next = load_relaxed(&p->next);
	for (uint32_t i = 0; i < 2 * RUNS; i++) {
		struct run *r = &p->runs[(next + i) % RUNS];
		collect_run(r, i < RUNS ? PENDING : OPEN);
		if (is(r, PENDING))
			return NULL;
		if (!take(r))
			continue;
		store_relaxed(&p->next, next + i % RUNS + 1);
		return r;
	}
	return NULL;
}

static void ask_stream(struct run *r)
{
	unsigned long long id = 0;
	real_cuStreamGetId *const ask = REAL_OF(cuStreamGetId, r->per_thread);
	r->stream_valid = ask && !ask(r->stream, &id) ? GPU_HAS_STREAM : 0;
	r->stream_id = (uint32_t)id;
}

static struct run *begin(void *stream, bool per_thread)
{
	const uint64_t context = (uintptr_t)current_context();
	if (!context || stream_is_capturing(stream, per_thread) || !is_of(stream, context))
		return NULL;
	int mode = RELAXED;
	own_calls_exchange(&mode);
	struct pool *p = pool_of(context);
	if (p)
		collect_oldest(p);
	struct run *r = p ? take_run(p) : NULL;
	own_calls_exchange(&mode);
	if (!r)
		return NULL;
	r->pool = p;
	r->stream = stream;
	r->per_thread = per_thread;
	r->count = r->events = 0;
	r->has_pair = false;
	ask_stream(r);
	return r;
}

/* This thread's open run, when the launch can be of it.  When not, the run is over. */
static struct run *resume(void *stream, bool per_thread)
{
	struct run *r = turn.run;
	const uint64_t owner = turn.owner;
	turn.run = NULL;
	if (!r || !move(r, owner + OPEN, owner + TAKEN))
		return NULL;
	if (r->stream == stream && r->per_thread == per_thread &&
		(uintptr_t)current_context() == r->pool->context)
		return r;
	move(r, owner + TAKEN, owner + PENDING);
	return NULL;
}

/* Whether this thread has made no call since, but those that are around the launch itself.  Only
 * when all calls are recorded can that be seen. */
static bool nothing_since(const struct run *r)
{
	const uint32_t all = (1u << CLASS_COUNT) - 1;
	const char *at = r->pos, *const pos = hook_self.pos;
	if ((process_control() & all) != all || !at || at < (const char *)hook_self.chunk ||
		at > pos)
		return false;
	while (at < pos) {
		const struct record *record = (const struct record *)at;
		if (pos - at < (long)sizeof *record || record->ticks > r->begun)
			return false;
		const uint16_t words = load_relaxed(shared(&record->words));
		if (words < RECORD_WORDS)
			return false;
		at += words * 8u;
	}
	return true;
}

/* Whether the event behind the last launch is in front of this one as well: the host has not let
 * the stream run dry. */
static bool follows(const struct run *r)
{
	return r->count && monotonic_ns() - r->returned_ns < SHARED_NS && nothing_since(r);
}

static bool is_over(const struct run *r)
{
	return r->count == RUN || !turn.left;
}

/* The run is over, goes on with the next launch, or has come to nothing. */
static void leave(struct run *r)
{
	const uint64_t taken = load_relaxed(&r->state);
	const uint64_t owner = taken - taken % STATES;
	if (taken % STATES != TAKEN) /* its context has gone */
		return;
	const bool over = is_over(r);
	if (!over) {
		turn.run = r;
		turn.owner = owner;
	}
	move(r, taken, owner + (!over ? OPEN : r->count ? PENDING : FREE));
}

/* The place of the next launch, behind an event. */
static struct sample *start(struct run *r)
{
	struct sample *s = &r->launch[r->count % RUN];
	const bool shares = follows(r);
	s->run = r;
	s->from = shares ? r->events - 1 : r->events;
	s->to = s->from + 1;
	if (shares || record_event(r, s->from))
		return s;
	leave(r);
	return NULL;
}

/* CUlaunchAttributeID: may begin before its predecessor ends, if its value is not 0.  An event
 * between them keeps it from that; where all kernels are to be known, one in N is worth it. */
static bool may_overlap(const struct launch_shape *s)
{
	enum { PROGRAMMATIC = 6 };
	const struct cu_launch_attribute *const attrs = s->config ? s->config->attrs : NULL;
	const uint32_t count = attrs && !load_relaxed(&timing_adapts) ? s->config->attr_count : 0;
	for (uint32_t i = 0; i < count; i++)
		if (attrs[i].id == PROGRAMMATIC && attrs[i].u.value)
			return true;
	return false;
}

struct sample *event_timer_take(uint32_t fn, const struct launch_shape *shape)
{
	const bool adapts = load_relaxed(&timing_adapts);
	if (adapts && shape_is_new(fn, shape))
		timing_left = 1;
	if (adapts && --timing_left)
		return NULL;
	if (may_overlap(shape)) {
		timing_left = 1; /* the next one, then */
		return NULL;
	}
	if (!is_next() || !is_wanted())
		return NULL;
	const int kept = errno;
	if (adapts)
		calibration_timed(shape->stream, shape->per_thread);
	struct run *r = resume(shape->stream, shape->per_thread);
	if (!r)
		r = begin(shape->stream, shape->per_thread);
	struct sample *s = r ? start(r) : NULL;
	errno = kept;
	return s;
}

static const char *name_of(const struct launch_shape *shape, const struct timed_call *call)
{
	static const char *const copies[COPY_DIRECTIONS] = { "Memcpy", "Memcpy HtoD", "Memcpy DtoH",
		"Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
		"Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP" };
	if (call->kind == GPU_KERNEL)
		return kernel_name((uintptr_t)shape->what);
	return call->kind == GPU_GRAPH    ? "graph"
	       : call->kind == GPU_MEMSET ? "Memset"
					  : copies[call->direction % COPY_DIRECTIONS];
}

static uint32_t valid_of(const struct timed_call *call)
{
	if (call->kind == GPU_KERNEL)
		return GPU_HAS_SHAPE;
	if (call->kind == GPU_GRAPH)
		return 0;
	return GPU_HAS_BYTES | (call->direction ? GPU_HAS_WHAT : 0);
}

static void describe(
	struct sample *s, const struct launch_shape *shape, const struct timed_call *call)
{
	const struct run *r = s->run;
	const struct pool *p = r->pool;
	const char *name = name_of(shape, call);
	const uint32_t valid = GPU_HAS_CORRELATION | r->stream_valid |
			       (p->device >= 0 ? GPU_HAS_DEVICE : 0) |
			       (p->has_id ? GPU_HAS_CONTEXT : 0) | valid_of(call);
	s->activity = (struct gpu_activity){
		.name = string_of(name),
		.device = (uint32_t)p->device,
		.context = (uint32_t)p->id,
		.stream = r->stream_id,
		.shared_dynamic = shape->shared,
		.bytes = shape->bytes,
		.what = call->direction,
		.kind = call->kind,
		.valid = valid,
	};
	memcpy(s->activity.grid, shape->grid, sizeof s->activity.grid);
	memcpy(s->activity.block, shape->block, sizeof s->activity.block);
	s->link = (struct link){
		.ticks = call->begun,
		.dur = call->took,
		.tid = hook_self.tid ? hook_self.tid : (uint32_t)sys(gettid),
		.fn = (uint16_t)call->fn,
	};
}

void event_timer_end(
	struct sample *s, const struct launch_shape *shape, const struct timed_call *call)
{
	struct run *r = s->run;
	const int kept = errno;
	s->returned_ns = monotonic_ns();
	r->pos = NULL;
	if (!call->result && r->count < RUN && record_event(r, s->to)) {
		describe(s, shape, call);
		r->count++;
		r->events = s->to + 1;
		r->begun = call->begun;
		r->pos = hook_self.pos;
		r->returned_ns = s->returned_ns;
		r->has_pair = is_over(r) && record_event(r, EVENTS - 1);
		s->stream = stream_at(r, s->from);
	}
	leave(r);
	errno = kept;
}

/* Whether what is made of the pool's context can be asked: the program may have unloaded the
 * driver, and its events with it. */
static bool is_there(const struct pool *p)
{
	struct elf e;
	return load_acquire(&p->state) == READY && p->driver == driver() &&
	       elf_of_address(&e, p->driver);
}

static void collect_all(void)
{
	const int kept = errno;
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		void *popped;
		if (!is_there(p) || REAL(cuCtxPushCurrent_v2)((void *)p->context))
			continue;
		int mode = RELAXED;
		own_calls_exchange(&mode);
		for (uint32_t k = 0; k < RUNS; k++) {
			collect_run(&p->runs[k], OPEN);
			collect_run(&p->runs[k], PENDING);
		}
		own_calls_exchange(&mode);
		REAL(cuCtxPopCurrent_v2)(&popped);
	}
	errno = kept;
}

/* When the program ends in order; what is not through is counted as lost. */
void event_timer_at_exit(void)
{
	if (!process_is_started())
		return; /* a forked child's: what is here is its parent's */
	collect_all();
	for (uint32_t i = 0; i < CONTEXTS; i++)
		drop(&pools[i]);
}

static const char *start_timing(uint32_t n)
{
	struct trace_header *h = hook_recorder.header;
	if (!driver_can())
		return "no device times: the driver lacks what sampling needs";
	h->sampled = n;
	atomic_fetch_or_explicit(&h->optional, FEATURE_DEVICE, memory_order_relaxed);
	atomic_fetch_or_explicit(&h->control, CONTROL_SAMPLE, memory_order_relaxed);
	store_release(&rate, n);
	return NULL;
}

void event_timer_forget(void)
{
	DROP(pools);
	shape_counts_forget();
	store_relaxed(&timing_adapts, 0);
	store_relaxed(&rate, 0);
	timing_left = 1;
	memset(&turn, 0, sizeof turn);
}

const struct collector event_collector = {
	.name = "events",
	.start = start_timing,
	.collect = collect_all,
	.context_gone = context_gone,
	.device_gone = device_gone,
};
