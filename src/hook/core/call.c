/* The half of a call that need not be inline: see call.h. */
#include "hook/core/call.h"

#include <linux/futex.h>
#include <limits.h>

#include "base/sys.h"
#include "event/level.h"
#include "hook/core/hook_parts.h"

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
	struct counter *c = capture_is_closed() ? NULL : counters_of_thread();
	if (c)
		cpu_add(&c[fn].bytes, bytes);
}

void count_query(enum fn fn)
{
	struct counter *c = counters_of_thread();
	if (c)
		cpu_add(&c[fn].count, 1);
}

static void count_call(enum fn fn, uint64_t ticks, bool failed)
{
	struct counter *c = counters_of_thread();
	if (!c)
		return;
	cpu_add(&c[fn].count, 1);
	cpu_add(&c[fn].ticks, ticks);
	cpu_add(&c[fn].errors, failed);
}

/* Calls that fail by design: api/probe.tbl. */
static const struct {
	uint16_t fn, code; /* FN_NONE: any function */
} probes[] = {
#include "hook_probes.h"
};

static bool is_probe(enum fn fn, int code)
{
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
		if (probes[i].code == code && (probes[i].fn == fn || probes[i].fn == FN_NONE))
			return true;
	return false;
}

/* Tells the keeper of a flight recording, if there is one, that a call has failed.  It saves few
 * files, and a probe takes none. */
static void report_failure(enum fn fn, int code)
{
	struct trace_header *h = hook_recorder.header;
	if (!h || is_probe(fn, code))
		return;
	atomic_fetch_add_explicit(&h->failures, 1, memory_order_release);
	if (h->mode == TRACE_FLIGHT)
		sys(futex, &h->failures, FUTEX_WAKE, INT_MAX);
}

/* A first call of a process: it was let in before anybody knew what is wanted. */
static uint32_t wanted_after_start(enum fn fn, uint32_t want)
{
	process_start();
	return (want | CONTROL_COUNT | fn_stack_bits[fn]) & process_control();
}

/* A call that was entered before anybody knew that it is not wanted. */
static void call_unwanted(void)
{
	struct thread_account *a = hook_self.account;
	cpu_add(a ? &a->entered : &hook_self.early, (uint64_t)-1);
	if (a)
		cpu_add(&a->returned, (uint64_t)-1); /* call_left() follows */
}

/* False: nothing is recorded now, and the call was only looked at. */
static bool count_or_drop(enum fn fn, uint64_t ticks, int result)
{
	const bool drops = capture_is_closed();
	if (drops)
		call_unwanted();
	else
		count_call(fn, ticks, result && result != NOT_READY);
	if (load_relaxed(&hook_hot.listen) & LISTEN_CAPTURE)
		hook_above.capture_saw(fn, result, 0);
	return !drops;
}

void call_publish(const struct record *r)
{
	if (load_relaxed(&hook_hot.listen) & LISTEN_CAPTURE)
		hook_above.capture_saw(r->fn, r->result, r->flags);
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
		want = wanted_after_start(fn, want);
		if (!want_is_any(want))
			call_unwanted();
	}
	const bool failed = result && result != NOT_READY;
	if (__builtin_expect(failed, 0))
		report_failure(fn, result);
	if (__builtin_expect(want & CONTROL_COUNT, 0) && !count_or_drop(fn, ticks, result))
		return NULL;
	if (!(want & ~(CONTROL_COUNT | CONTROL_QUERY_COUNT | CONTROL_STACKS)) &&
		!(want & CONTROL_QUERY_COUNT))
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
	if (__builtin_expect(want & CONTROL_STACKS, 0))
		hook_above.stack_take(fn, r);
	return r;
}
