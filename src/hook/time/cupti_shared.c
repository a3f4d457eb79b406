/* Copies CUPTI's records for another client in the program. */
#include "hook/time/cupti_shared.h"

#include <string.h>

#include "base/atomic.h"
#include "base/monotonic.h"
#include "base/sys.h"
#include "cupti_records.h"
#include "hook/core/lock.h"

#define SECOND_NS 1000000000u
#define KINDS     SHARE_KINDS

struct pair {
	uint64_t client, mono;
};

/* Written by the client's calls, read when a buffer comes back: single words, atomically. */
static struct {
	_Atomic(share_request *) request;
	_Atomic(share_complete *) complete;
	uint64_t (*_Atomic now)(void);
	struct {
		_Atomic uint64_t from_ns, until_ns; /* 0: never, not yet */
	} enabled[KINDS];
	_Atomic size_t dropped;
	_Atomic uint32_t
		listening; /* it has enabled something and not flushed since it ended that */
	_Atomic uint32_t flushing; /* calls of its cuptiActivityFlushAll that have not returned */
	_Atomic uint32_t left;     /* exit has come: what it was may be gone */
} client;

/* Readings of its clock: they belong together, and are changed and read under a lock. */
struct readings {
	uint64_t since_ns; /* we began to look: no date is older */
	struct pair first, last;
	bool switched; /* its clock came while we collected: work in flight has no date */
};

static struct {
	struct readings of;
	struct lock lock;
} clocks;

struct copy {
	uint8_t *to;
	size_t bytes, used, records, most;
};

/*
 * A buffer of the client's that is not full: CUPTI alone would have asked for one by the first
 * record, and kept it until the client flushes.  PyTorch's profiler takes having none with CUPTI
 * for having missed nothing.
 */
static struct {
	struct copy copy;
	bool asked;
	struct lock lock;
} spare;

/* A thread that has one of the two locks neither waits nor calls anybody. */
static struct copy take_spare(void)
{
	struct copy c = { 0 };
	if (!lock_take(&spare.lock, LOCK_NAPS))
		return c;
	c = spare.copy;
	spare.copy = (struct copy){ 0 };
	lock_give(&spare.lock);
	return c;
}

void share_forked(void)
{
	if (spare.asked)
		spare.asked = false; /* whoever asked is not here */
	if (lock_forked(&spare.lock))
		spare.copy = (struct copy){ 0 };
	if (lock_forked(&clocks.lock))
		clocks.of = (struct readings){ 0 };
}

void share_callbacks(share_request *request, share_complete *complete)
{
	if (complete != load_relaxed(&client.complete))
		take_spare(); /* of whoever was here before */
	store_release(&client.complete, complete);
	store_release(&client.request, request);
}

void share_forget(void)
{
	share_callbacks(NULL, NULL);
	store_release(&client.listening, 0);
	for (int i = 0; i < KINDS; i++)
		if (share_is_enabled(i))
			share_enable(i, false);
}

void share_clock(uint64_t (*now)(void), bool collecting)
{
	if (!share_is_clock(now)) {
		const bool has = lock_take(&clocks.lock, LOCK_NAPS);
		store_release(&client.now, now);
		if (has) { /* else no date fits any more: lost */
			clocks.of.first = clocks.of.last = (struct pair){ 0 };
			clocks.of.switched |= collecting;
			lock_give(&clocks.lock);
		}
	}
	share_read_clocks();
}

bool share_is_clock(uint64_t (*now)(void))
{
	return load_acquire(&client.now) == now;
}

void share_enable(int kind, bool on)
{
	if (kind < 0 || kind >= KINDS)
		return;
	const uint64_t now = monotonic_ns();
	if (on) {
		store_relaxed(&client.enabled[kind].until_ns, 0);
		store_release(&client.enabled[kind].from_ns, now);
		store_release(&client.listening, 1);
	} else {
		store_release(&client.enabled[kind].until_ns, now);
	}
}

bool share_is_enabled(int kind)
{
	return kind >= 0 && kind < KINDS && load_acquire(&client.enabled[kind].from_ns) &&
	       !load_acquire(&client.enabled[kind].until_ns);
}

bool share_has_client(void)
{
	return load_acquire(&client.request) != NULL;
}

bool share_has_clock(void)
{
	return load_acquire(&client.now) != NULL;
}

void share_add_dropped(size_t count)
{
	add_relaxed(&client.dropped, count);
}

size_t share_take_dropped(void)
{
	return atomic_exchange_explicit(&client.dropped, 0, memory_order_relaxed);
}

/* The closest of several pairs of readings. */
static struct pair read_pair(uint64_t (*now)(void))
{
	struct pair best = { 0 };
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 16; i++) {
		const uint64_t before = monotonic_ns();
		const uint64_t then = now();
		const uint64_t gap = monotonic_ns() - before;
		if (gap < least)
			best = (struct pair){ then, before + gap / 2 };
		least = gap < least ? gap : least;
	}
	return best;
}

void share_read_clocks(void)
{
	uint64_t (*now)(void) = load_acquire(&client.now);
	const struct pair p = now ? read_pair(now) : (struct pair){ 0 };
	if (!lock_take(&clocks.lock, LOCK_NAPS))
		return;
	if (!clocks.of.since_ns)
		clocks.of.since_ns = monotonic_ns();
	if (now && share_is_clock(now)) {
		if (!clocks.of.first.mono)
			clocks.of.first = p;
		clocks.of.last = p;
	}
	lock_give(&clocks.lock);
}

static struct readings readings(void)
{
	struct readings r = { .switched = true }; /* fits no date: what has one is lost */
	if (!lock_take(&clocks.lock, LOCK_NAPS))
		return r;
	r = clocks.of;
	lock_give(&clocks.lock);
	return r;
}

/* Dates from before the client's clock came count from CLOCK_MONOTONIC. */
static bool is_monotonic(const struct readings *r, uint64_t date)
{
	return date + SECOND_NS >= r->since_ns && date <= r->first.mono;
}

uint64_t share_to_monotonic(uint64_t date)
{
	if (!share_has_clock() || !date)
		return date;
	const struct readings r = readings();
	const struct pair a = r.first, b = r.last;
	if (is_monotonic(&r, date))
		return date;
	const double slope = b.client > a.client && b.mono > a.mono + 100000
				     ? (double)(b.mono - a.mono) / (double)(b.client - a.client)
				     : 1;
	return b.mono + (uint64_t)(int64_t)((double)(int64_t)(date - b.client) * slope);
}

bool share_is_date(uint64_t ns)
{
	const struct readings r = readings();
	return !r.switched || !ns ||
	       (ns + SECOND_NS >= r.since_ns && ns <= r.last.mono + SECOND_NS);
}

/* If we enabled a kind as well, it has more records than the client wants. */
static bool is_wanted(const void *record)
{
	const uint32_t kind = *(const uint32_t *)record;
	uint64_t start, end;
	if (kind >= KINDS)
		return true;
	const uint64_t from = load_acquire(&client.enabled[kind].from_ns);
	const uint64_t until = load_acquire(&client.enabled[kind].until_ns);
	if (!cupti_span(record, &start, &end))
		return true; /* a kind that only the client can have enabled */
	start = share_to_monotonic(start);
	return from && start >= from && (!until || start <= until);
}

static bool put_spare(const struct copy *c)
{
	if (!lock_take(&spare.lock, LOCK_NAPS))
		return false;
	const bool empty = !spare.copy.to;
	if (empty)
		spare.copy = *c;
	lock_give(&spare.lock);
	return empty;
}

static void open_copy(struct copy *c)
{
	share_request *request = load_acquire(&client.request);
	*c = (struct copy){ 0 };
	if (request)
		request(&c->to, &c->bytes, &c->most);
	if (!c->to)
		c->bytes = 0;
}

static void close_copy(struct copy *c, void *context, uint32_t stream)
{
	if (c->to && (c->used || !put_spare(c)))
		share_pass(context, stream, c->to, c->bytes, c->used);
	*c = (struct copy){ 0 };
}

static bool is_listening(void)
{
	return share_has_client() && load_acquire(&client.listening) && !share_is_shut();
}

void share_prepare(void)
{
	struct copy c;
	if (!is_listening())
		return;
	if (!lock_take(&spare.lock, LOCK_NAPS))
		return;
	const bool needed = !spare.copy.to && !spare.asked;
	spare.asked |= needed;
	lock_give(&spare.lock);
	if (!needed)
		return;
	open_copy(&c);
	if (lock_take(&spare.lock, LOCK_NAPS)) {
		spare.asked = false;
		lock_give(&spare.lock);
	}
	close_copy(&c, NULL, 0);
}

void share_begin_flush(void)
{
	atomic_fetch_add_explicit(&client.flushing, 1, memory_order_acq_rel);
}

static bool wants_any(void)
{
	for (int i = 0; i < KINDS; i++)
		if (share_is_enabled(i))
			return true;
	return false;
}

void share_end_flush(void)
{
	if (!wants_any()) {
		store_release(&client.listening, 0);
		const struct copy c = take_spare();
		if (c.to)
			share_pass(NULL, 0, c.to, c.bytes, 0);
	}
	atomic_fetch_sub_explicit(&client.flushing, 1, memory_order_acq_rel);
}

void share_leave(void)
{
	store_release(&client.left, 1);
}

bool share_is_shut(void)
{
	return load_acquire(&client.left) && !load_acquire(&client.flushing);
}

static void copy_record(
	struct copy *c, const void *record, size_t bytes, void *context, uint32_t stream)
{
	if (!c->to || c->bytes - c->used < bytes || (c->most && c->records >= c->most)) {
		struct copy full = *c;
		open_copy(c);
		close_copy(&full, context, stream);
	}
	if (c->bytes - c->used < bytes) {
		share_add_dropped(1);
		return;
	}
	memcpy(c->to + c->used, record, bytes);
	c->used += bytes;
	c->records++;
}

void share_copy(share_next *next, void *context, uint32_t stream, uint8_t *buffer, size_t valid)
{
	void *record = NULL;
	if (!is_listening() || !valid || next(buffer, valid, &record))
		return;
	struct copy c = take_spare();
	for (bool more = true; more;) {
		const uint8_t *at = record;
		more = !next(buffer, valid, &record);
		const uint8_t *end = more ? record : buffer + valid;
		if (is_wanted(at))
			copy_record(&c, at, (size_t)(end - at), context, stream);
	}
	if (c.used)
		share_prepare(); /* first: it shall never have none */
	close_copy(&c, context, stream);
}

void share_pass(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	share_complete *complete = load_acquire(&client.complete);
	if (complete)
		complete(context, stream, buffer, bytes, valid);
}
