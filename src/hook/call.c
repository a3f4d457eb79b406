/* The half of a wrapper that need not be inline: see call.h. */
#include "hook/call.h"

#include <linux/futex.h>
#include <limits.h>

#include "base/sys.h"
#include "event/level.h"
#include "hook/online/online.h"

/* This thread's counters; made at the first call that is counted.  A call that is neither recorded
 * nor counted is lost, and said to be. */
static struct counter *counters_make(void)
{
	if (!process_is_started() || !hook_recorder.header)
		return NULL;
	struct counter *c = writer_counters(&hook_recorder, &hook_self);
	if (!c)
		writer_lose(&hook_recorder, &hook_self);
	return c;
}

static struct counter *counters_of_thread(void)
{
	return hook_self.counters ? hook_self.counters : counters_make();
}

void count_bytes(enum fn fn, uint64_t bytes)
{
	struct counter *c = counters_of_thread();
	if (c)
		bump(&c[fn].bytes, bytes);
}

void count_query(enum fn fn)
{
	struct counter *c = counters_of_thread();
	if (c)
		bump(&c[fn].count, 1);
}

static void count_call(enum fn fn, uint64_t ticks, bool failed)
{
	struct counter *c = counters_of_thread();
	if (!c)
		return;
	bump(&c[fn].count, 1);
	bump(&c[fn].ticks, ticks);
	bump(&c[fn].errors, failed);
}

/* Tells the keeper of a flight recording, if there is one, that a call has failed. */
static void report_failure(void)
{
	struct trace_header *h = hook_recorder.header;
	if (!h)
		return;
	__atomic_fetch_add(&h->failures, 1, __ATOMIC_RELEASE);
	if (h->mode == TRACE_FLIGHT)
		sys(futex, &h->failures, FUTEX_WAKE, INT_MAX);
}

/* A first call of a process: it was let in before anybody knew what is wanted. */
static uint32_t wanted_after_start(uint32_t want)
{
	process_start();
	return (want | CONTROL_COUNT) & process_control();
}

/* A call that was entered before anybody knew that it is not wanted. */
static void call_unwanted(void)
{
	struct thread_account *a = hook_self.account;
	bump(a ? &a->entered : &hook_self.early, (uint64_t)-1);
	if (a)
		bump(&a->returned, (uint64_t)-1); /* call_left() follows */
}

/* Calls that take milliseconds pay for a reading of the clocks, which dates the trace. */
static void calibrate(struct chunk_header *c)
{
	if (c && hook_recorder.header)
		c->last = clock_pair_now(hook_recorder.header->clock);
}

struct record *call_leave_slowly(
	enum fn fn, uint64_t begun, uint64_t ticks, int result, uint32_t want, uint32_t words)
{
	struct writer *w = &hook_self;
	if (__builtin_expect(!process_is_started(), 0)) {
		want = wanted_after_start(want);
		if (!want)
			call_unwanted();
	}
	const bool failed = result && result != NOT_READY;
	if (__builtin_expect(failed, 0))
		report_failure();
	if (__builtin_expect(want & CONTROL_COUNT, 0))
		count_call(fn, ticks, failed);
	if (!(want & ~(CONTROL_COUNT | CONTROL_QUERY_COUNT)) && !(want & CONTROL_QUERY_COUNT))
		return NULL;
	struct record *r = writer_reserve(&hook_recorder, w, words);
	if (!r)
		return NULL;
	const bool is_long = ticks > UINT32_MAX;
	if (__builtin_expect(ticks > LONG_TICKS - 1, 0))
		calibrate(w->chunk);
	r->ticks = begun;
	r->dur = (uint32_t)(is_long ? ticks >> 10 : ticks);
	r->words = (uint16_t)words;
	r->aux = 0;
	r->result = (uint16_t)(result > UINT16_MAX || result < 0 ? UINT16_MAX : result);
	r->flags = is_long ? RECORD_LONG : 0;
	return r;
}

char *text_put(struct record *r, char *at, const char *s, uint32_t bytes)
{
	if (!s)
		return at;
	if (bytes > TEXT_KEPT) {
		bytes = TEXT_KEPT;
		r->flags |= RECORD_CUT;
	}
	memcpy(at, s, bytes);
	memset(at + bytes, 0, (8 - bytes % 8) % 8);
	return at + (bytes + 7) / 8 * 8;
}

uint32_t launch_given_read(uint32_t control, uint64_t function, void *const *params,
	void *const *extra, struct launch_given *ret_given)
{
	struct launch_given *g = ret_given;
	g->function = params_function(function);
	if (!g->function)
		return 0;
	g->has_args = params_read(g->function, params, extra, &g->args);
	g->keep = g->has_args && control & CONTROL_ARGS;
	g->predict = control & CONTROL_PREDICT;
	return (g->keep ? args_words(&g->args) : 0) + g->predict;
}

void launch_given_put(struct record *r, const struct launch_given *g, uint32_t at)
{
	if (g->keep) {
		r->flags |= RECORD_ARGS;
		args_put(&g->args, r->arg + at);
	}
	if (!g->predict)
		return;
	r->flags |= RECORD_PREDICTED;
	r->arg[at + (g->keep ? args_words(&g->args) : 0)] =
		forecast_launch(&g->function->kernel, g->has_args ? &g->args : NULL, r);
}

void graph_told_put(struct record *r)
{
	r->flags |= RECORD_PREDICTED;
	r->arg[GRAPH_LAUNCH_WORDS] = forecast_graph(r);
}

/* CUlaunchAttributeID */
enum { COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6 };

static uint64_t pack_attributes(const struct cu_launch_config *c)
{
	const struct cu_launch_attribute *const attrs = c->attrs;
	const uint32_t count = attrs ? c->attr_count : 0;
	uint64_t word = (uint64_t)(count > 255 ? 255 : count) << 56;
	for (uint32_t i = 0; i < count; i++) {
		const struct cu_launch_attribute *a = &attrs[i];
		if (a->id == CLUSTER)
			word |= (a->u.cluster.x & 0xffffull) | (a->u.cluster.y & 0xffffull) << 16 |
				(a->u.cluster.z & 0xffffull) << 32;
		else if (a->id == COOPERATIVE && a->u.value)
			word |= 1ull << 48;
		else if (a->id == PROGRAMMATIC && a->u.value)
			word |= 1ull << 49;
	}
	return word;
}

void launch_fill_config(
	struct record *r, uint64_t function, const struct cu_launch_config *c, uint32_t extended)
{
	static const struct cu_launch_config none;
	c = c ? c : &none;
	launch_fill(r, function, (uintptr_t)c->stream, c->grid_x, c->grid_y, c->grid_z, c->block_x,
		c->block_y, c->block_z, c->shared_bytes);
	if (!extended)
		return;
	r->flags |= RECORD_CLUSTER;
	r->arg[LAUNCH_CLUSTER] = pack_attributes(c);
}
