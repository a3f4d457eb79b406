/*
 * See sample.h.  Pairs of events lie in rings, one a context.  Launches take the next pair of the
 * ring, so the oldest that waits to be asked is always at the ring's tail.
 *
 * A pair is owned by whoever has moved its state to TAKEN.  What becomes of a thread that never
 * comes back from the driver costs its pair.
 */
#include "hook/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "event/writer.h"
#include "hook/call.h"
#include "hook/note.h"
#include "hook/strings.h"

#define CONTEXTS 16u
#define PAIRS    32u
#define STREAMS  64u /* whose last end is remembered, by hash */
#define RELAXED  2   /* CUstreamCaptureMode */

/* The real function by its table name, typed by its first use. */
#define REAL(name, ...) ((int (*)(__VA_ARGS__))hook_real[FN_##name])

enum pair_state { NONE, FREE, TAKEN, PENDING };

struct sample {
	uint32_t state; /* enum pair_state */
	struct pool *pool;
	void *start, *stop; /* CUevent */
	void *stream;
	uint64_t returned_ns; /* when the launch had: CLOCK_MONOTONIC */
	bool per_thread;
	struct device_work work;
	struct link link;
};

enum pool_state { EMPTY, MAKING, READY };

struct pool {
	uint32_t state;   /* enum pool_state */
	uint64_t id;      /* that the driver gives each context once; without: its handle */
	uint64_t context; /* handle */
	int32_t device;
	bool has_id;
	uint32_t next, tail; /* of pairs, both grow; modulo PAIRS */
	uint64_t last_end[STREAMS];
	struct sample pairs[PAIRS];
};

static struct pool pools[CONTEXTS];
static uint32_t rate; /* 0: nobody wants times */
static uint64_t correlations;
static uint32_t threads_seen;

__thread uint32_t hook_sample_left = 1;

/* Where this thread is in its current N launches. */
static __thread struct {
	uint32_t offset; /* of the launch that was sampled last */
	uint32_t random; /* state of the generator; 0: not begun */
} turn __attribute__((tls_model("initial-exec")));

/* --- which launches ----------------------------------------------------------------------- */

static uint32_t random_below(uint32_t n)
{
	uint32_t x = turn.random; /* xorshift */
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	turn.random = x;
	return (uint32_t)((uint64_t)x * n >> 32);
}

/* Sets the counter to the next launch to be sampled.  False: this one, the first, is not. */
static bool next_turn(void)
{
	const uint32_t n = __atomic_load_n(&rate, __ATOMIC_RELAXED);
	if (!n) {
		hook_sample_left = 1024; /* asked again now and then: cuInit() may come yet */
		return false;
	}
	if (turn.random) {
		const uint32_t rest = n - turn.offset;
		turn.offset = random_below(n);
		hook_sample_left = rest + turn.offset;
		return true;
	}
	turn.random = (__atomic_add_fetch(&threads_seen, 1, __ATOMIC_RELAXED) * 0x9e3779b9u) | 1;
	turn.offset = random_below(n);
	if (turn.offset) {
		hook_sample_left = turn.offset;
		return false;
	}
	return next_turn();
}

static bool is_wanted(void)
{
	return process_is_started() && hook_recorder.header &&
	       __atomic_load_n(hook_hot.control, __ATOMIC_RELAXED) & CONTROL_SAMPLE &&
	       __atomic_load_n(&hook_hot.captures, __ATOMIC_RELAXED) <= 0;
}

/* --- the driver --------------------------------------------------------------------------- */

/*
 * Another thread may begin a capture at any time that forbids everybody what is no work of a
 * stream.  Not to a thread that says it means it.
 */
static int exchange_mode(int mode)
{
	if (hook_real[FN_cuThreadExchangeStreamCaptureMode])
		REAL(cuThreadExchangeStreamCaptureMode, int *)(&mode);
	return mode;
}

static int record_event(void *event, const struct sample *s)
{
	const enum fn fn = s->per_thread ? FN_cuEventRecord_ptsz : FN_cuEventRecord;
	return ((int (*)(void *, void *))hook_real[fn])(event, s->stream);
}

static uint64_t current_context(void)
{
	void *context = NULL;
	return REAL(cuCtxGetCurrent, void **)(&context) ? 0 : (uintptr_t)context;
}

/* Events have to be of the stream's context, and are of the current one. */
static bool is_of(void *stream, uint64_t context)
{
	void *its = NULL;
	if ((uintptr_t)stream <= 2) /* the legacy stream and the thread's: of any context */
		return true;
	return !hook_real[FN_cuStreamGetCtx] ||
	       (!REAL(cuStreamGetCtx, void *, void **)(stream, &its) && (uintptr_t)its == context);
}

static bool driver_can(void)
{
	static const enum fn needed[] = { FN_cuEventCreate, FN_cuEventRecord, FN_cuEventRecord_ptsz,
		FN_cuEventQuery, FN_cuEventElapsedTime, FN_cuCtxGetCurrent, FN_cuCtxGetDevice,
		FN_cuCtxPushCurrent_v2, FN_cuCtxPopCurrent_v2 };
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!hook_real[needed[i]])
			return false;
	return true;
}

/* --- pools -------------------------------------------------------------------------------- */

static void make_pair(struct pool *p, struct sample *s)
{
	void *start = NULL, *stop = NULL;
	s->pool = p;
	if (REAL(cuEventCreate, void **, unsigned)(&start, 0))
		return;
	if (REAL(cuEventCreate, void **, unsigned)(&stop, 0)) {
		if (hook_real[FN_cuEventDestroy_v2])
			REAL(cuEventDestroy_v2, void *)(start);
		return;
	}
	s->start = start;
	s->stop = stop;
	__atomic_store_n(&s->state, FREE, __ATOMIC_RELEASE);
}

static struct pool *make_pool(uint64_t context, uint64_t id, bool has_id)
{
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		uint32_t seen = EMPTY;
		if (!__atomic_compare_exchange_n(
			    &p->state, &seen, MAKING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		p->id = id;
		p->context = context;
		p->has_id = has_id;
		p->next = p->tail = 0;
		memset(p->last_end, 0, sizeof p->last_end);
		if (REAL(cuCtxGetDevice, int *)(&p->device))
			p->device = -1;
		for (uint32_t k = 0; k < PAIRS; k++)
			make_pair(p, &p->pairs[k]);
		__atomic_store_n(&p->state, READY, __ATOMIC_RELEASE);
		return p;
	}
	return NULL;
}

/* The current context's.  NULL: there are none left, or another thread is making it. */
static struct pool *pool_of(uint64_t context)
{
	unsigned long long id = 0;
	const bool has_id = hook_real[FN_cuCtxGetId] &&
			    !REAL(cuCtxGetId, void *, unsigned long long *)((void *)context, &id);
	id = has_id ? id : context;
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		const uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
		if (state == MAKING)
			return NULL;
		if (state == READY && p->id == id && p->context == context)
			return p;
	}
	return make_pool(context, id, has_id);
}

/* The events have gone with their context, or are left to it. */
static void drop(struct pool *p)
{
	uint32_t seen = READY;
	if (!__atomic_compare_exchange_n(
		    &p->state, &seen, MAKING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	uint64_t lost = 0;
	for (uint32_t i = 0; i < PAIRS; i++)
		lost += __atomic_exchange_n(&p->pairs[i].state, NONE, __ATOMIC_ACQ_REL) == PENDING;
	work_lose(&hook_recorder, lost);
	__atomic_store_n(&p->state, EMPTY, __ATOMIC_RELEASE);
}

void sample_context_gone(uint64_t context)
{
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (pools[i].context == context)
			drop(&pools[i]);
}

void sample_device_gone(int device)
{
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (pools[i].device == device)
			drop(&pools[i]);
}

/* --- what they say ------------------------------------------------------------------------ */

static void keep(struct sample *s, uint64_t ns)
{
	uint64_t *last = &s->pool->last_end[(uintptr_t)s->stream * 0x9e3779b97f4a7c15u >> 58];
	const uint64_t before = __atomic_load_n(last, __ATOMIC_RELAXED);
	s->work.start_ns = before > s->returned_ns ? before : s->returned_ns;
	s->work.end_ns = s->work.start_ns + ns;
	__atomic_store_n(last, s->work.end_ns, __ATOMIC_RELAXED);
	struct link *link = link_reserve(&hook_recorder);
	struct device_work *work = link ? work_reserve(&hook_recorder) : NULL;
	if (!work) {
		work_lose(&hook_recorder, 1);
		return;
	}
	const uint64_t correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	const uint16_t kind = s->work.kind;
	s->link.correlation = 0;
	*link = s->link;
	__atomic_store_n(&link->correlation, correlation, __ATOMIC_RELEASE);
	s->work.correlation = correlation;
	s->work.kind = 0;
	*work = s->work;
	__atomic_store_n(&work->kind, kind, __ATOMIC_RELEASE);
}

/* Of a pair that is the caller's.  False: the device is not through. */
static bool collect(struct sample *s)
{
	float ms = -1;
	const int done = REAL(cuEventQuery, void *)(s->stop);
	if (done == NOT_READY)
		return false;
	if (!done && !REAL(cuEventElapsedTime, float *, void *, void *)(&ms, s->start, s->stop) &&
		ms >= 0 && ms < 1e12f)
		keep(s, (uint64_t)((double)ms * 1e6 + 0.5));
	else
		work_lose(&hook_recorder, 1);
	return true;
}

static bool move(struct sample *s, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		&s->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* False: it waits for the device, or is not the caller's to ask. */
static bool collect_pair(struct sample *s)
{
	if (!move(s, PENDING, TAKEN))
		return false;
	const bool through = collect(s);
	move(s, TAKEN, through ? FREE : PENDING);
	return through;
}

/* Asks the oldest, `most` of them at most.  Ends at one that is not through. */
static void collect_oldest(struct pool *p, uint32_t most)
{
	const uint32_t tail = __atomic_load_n(&p->tail, __ATOMIC_RELAXED);
	const uint32_t next = __atomic_load_n(&p->next, __ATOMIC_RELAXED);
	for (uint32_t at = tail; at != next && most; at++) {
		struct sample *s = &p->pairs[at % PAIRS];
		most -= collect_pair(s);
		const uint32_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);
		if (state == PENDING)
			return;
		/* One that another thread has stays the oldest, unless it never comes back. */
		uint32_t seen = at;
		if (state != TAKEN || next - at >= PAIRS)
			__atomic_compare_exchange_n(
				&p->tail, &seen, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

/* --- around a launch ---------------------------------------------------------------------- */

/*
 * The next pair of the ring that nobody has.  NULL: all wait for the device.  Who has a pair and
 * does not find the ring where it was may have come a round late: that pair is not the next.
 */
static struct sample *next_pair(struct pool *p)
{
	for (uint32_t tries = 0; tries < PAIRS; tries++) {
		uint32_t next = __atomic_load_n(&p->next, __ATOMIC_RELAXED);
		struct sample *s = &p->pairs[next % PAIRS];
		collect_pair(s);
		if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) == PENDING)
			return NULL;
		const bool got = move(s, FREE, TAKEN);
		const bool was_next = __atomic_compare_exchange_n(
			&p->next, &next, next + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (got && was_next)
			return s;
		if (got)
			move(s, TAKEN, FREE);
	}
	return NULL;
}

/* A pair with its first event recorded, or NULL. */
static struct sample *begin(void *stream, bool per_thread)
{
	const uint64_t context = current_context();
	struct pool *p = context && is_of(stream, context) ? pool_of(context) : NULL;
	if (!p)
		return NULL;
	collect_oldest(p, 2);
	struct sample *s = next_pair(p);
	if (!s)
		return NULL;
	s->stream = stream;
	s->per_thread = per_thread;
	if (!record_event(s->start, s))
		return s;
	move(s, TAKEN, FREE);
	return NULL;
}

struct sample *sample_take(void *stream, bool per_thread)
{
	if (!next_turn() || !is_wanted() || stream_is_capturing(stream, per_thread))
		return NULL;
	const int kept = errno;
	const int mode = exchange_mode(RELAXED);
	struct sample *s = begin(stream, per_thread);
	exchange_mode(mode);
	errno = kept;
	return s;
}

struct sample *sample_take_config(const struct cu_launch_config *c, bool per_thread)
{
	enum { PROGRAMMATIC = 6 }; /* CUlaunchAttributeID: may begin before its predecessor ends */
	bool alone = c != NULL;
	for (uint32_t i = 0; alone && c->attrs && i < c->attr_count; i++)
		alone = c->attrs[i].id != PROGRAMMATIC;
	if (!alone) {
		hook_sample_left = 1; /* the next one, then */
		return NULL;
	}
	return sample_take(c->stream, per_thread);
}

static uint32_t stream_number(const struct sample *s, uint32_t *valid)
{
	unsigned long long id = 0;
	const enum fn fn = s->per_thread ? FN_cuStreamGetId_ptsz : FN_cuStreamGetId;
	int (*ask)(void *, unsigned long long *) = hook_real[fn];
	if (ask && !ask(s->stream, &id))
		*valid |= WORK_HAS_STREAM;
	return (uint32_t)id;
}

static void describe(struct sample *s, const struct sample_call *call)
{
	const struct pool *p = s->pool;
	const char *name = call->function ? ask_name(call->function) : "graph";
	uint32_t valid = WORK_HAS_CORRELATION | (p->device >= 0 ? WORK_HAS_DEVICE : 0) |
			 (p->has_id ? WORK_HAS_CONTEXT : 0) | (call->function ? WORK_HAS_SHAPE : 0);
	const uint32_t stream = stream_number(s, &valid);
	s->work = (struct device_work){
		.name = name ? string_id(name, strlen(name)) : 0,
		.device = (uint32_t)p->device,
		.context = (uint32_t)p->id,
		.stream = stream,
		.shared_dynamic = call->shared,
		.kind = call->function ? WORK_KERNEL : WORK_GRAPH,
		.valid = valid,
	};
	memcpy(s->work.grid, call->grid, sizeof s->work.grid);
	memcpy(s->work.block, call->block, sizeof s->work.block);
	s->link = (struct link){
		.ticks = call->begun,
		.dur = call->took,
		.tid = hook_self.tid ? hook_self.tid : (uint32_t)sys(gettid),
		.fn = (uint16_t)call->fn,
	};
}

void sample_end(struct sample *s, int result, const struct sample_call *call)
{
	const int kept = errno;
	const int mode = exchange_mode(RELAXED);
	s->returned_ns = clock_monotonic();
	if (!result && !record_event(s->stop, s)) {
		describe(s, call);
		move(s, TAKEN, PENDING);
	} else {
		move(s, TAKEN, FREE);
	}
	exchange_mode(mode);
	errno = kept;
}

void sample_end_config(struct sample *s, int result, const struct sample_call *call,
	const struct cu_launch_config *c)
{
	struct sample_call whole = *call;
	memcpy(whole.grid, &c->grid_x, sizeof whole.grid);
	memcpy(whole.block, &c->block_x, sizeof whole.block);
	whole.shared = c->shared_bytes;
	sample_end(s, result, &whole);
}

/* --- life --------------------------------------------------------------------------------- */

void sample_collect(void)
{
	const int kept = errno;
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct pool *p = &pools[i];
		void *popped;
		if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) != READY ||
			REAL(cuCtxPushCurrent_v2, void *)((void *)p->context))
			continue;
		const int mode = exchange_mode(RELAXED);
		for (uint32_t k = 0; k < PAIRS; k++)
			collect_pair(&p->pairs[k]);
		exchange_mode(mode);
		REAL(cuCtxPopCurrent_v2, void **)(&popped);
	}
	errno = kept;
}

/* When the program ends in order; what is not through is counted as lost. */
static void collect_last(void)
{
	sample_collect();
	for (uint32_t i = 0; i < CONTEXTS; i++)
		drop(&pools[i]);
}

bool sample_start(uint32_t n)
{
	struct trace_header *h = hook_recorder.header;
	if (!driver_can())
		return false;
	h->sampled = n;
	__atomic_fetch_or(&h->optional, FEATURE_DEVICE, __ATOMIC_RELAXED);
	__atomic_fetch_or(&h->control, CONTROL_SAMPLE, __ATOMIC_RELAXED);
	atexit(collect_last);
	__atomic_store_n(&rate, n, __ATOMIC_RELEASE);
	return true;
}

void sample_forget(void)
{
	memset(pools, 0, sizeof pools);
	rate = 0;
	hook_sample_left = 1;
	turn.random = 0;
}
