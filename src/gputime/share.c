/* See share.h. */
#include "gputime/share.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "gputime/activity.h"

#define SECOND_NS 1000000000u
#define KINDS     64

struct pair {
	uint64_t client, mono;
};

/* Written by the client's calls, read when a buffer comes back: single words, atomically. */
static struct {
	share_request *request;
	share_complete *complete;
	uint64_t (*now)(void);
	uint64_t since_ns; /* we began to look: no date is older */
	struct pair first, last;
	struct {
		uint64_t from_ns, until_ns; /* 0: never, not yet */
	} enabled[KINDS];
	size_t dropped;
} client;

struct copy {
	uint8_t *to;
	size_t bytes, used, records, most;
};

/*
 * A buffer of the client's that is not full: CUPTI alone would have asked for one by the first
 * record, and a client may take having none for having missed nothing.
 */
static struct {
	struct copy copy;
	bool asked;
	volatile uint32_t held;
} spare;

static uint64_t monotonic_ns(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- the client's calls ---- */

void share_callbacks(share_request *request, share_complete *complete)
{
	if (complete != client.complete)
		spare.copy = (struct copy){ 0 }; /* of whoever was here before */
	__atomic_store_n(&client.complete, complete, __ATOMIC_RELEASE);
	__atomic_store_n(&client.request, request, __ATOMIC_RELEASE);
}

void share_clock(uint64_t (*now)(void))
{
	__atomic_store_n(&client.now, now, __ATOMIC_RELEASE);
	client.first = client.last = (struct pair){ 0 };
	share_sample();
}

void share_enable(int kind, bool on)
{
	if (kind < 0 || kind >= KINDS)
		return;
	const uint64_t now = monotonic_ns();
	if (on) {
		__atomic_store_n(&client.enabled[kind].until_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&client.enabled[kind].from_ns, now, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&client.enabled[kind].until_ns, now, __ATOMIC_RELEASE);
	}
}

bool share_has_client(void)
{
	return __atomic_load_n(&client.request, __ATOMIC_ACQUIRE) != NULL;
}

bool share_has_clock(void)
{
	return __atomic_load_n(&client.now, __ATOMIC_ACQUIRE) != NULL;
}

void share_add_dropped(size_t count)
{
	__atomic_fetch_add(&client.dropped, count, __ATOMIC_RELAXED);
}

size_t share_take_dropped(void)
{
	return __atomic_exchange_n(&client.dropped, 0, __ATOMIC_RELAXED);
}

/* ---- the clock ---- */

/* Of several pairs of readings, the closest together. */
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

void share_sample(void)
{
	uint64_t (*now)(void) = __atomic_load_n(&client.now, __ATOMIC_ACQUIRE);
	if (!client.since_ns)
		client.since_ns = monotonic_ns();
	if (!now)
		return;
	const struct pair p = read_pair(now);
	if (!client.first.mono)
		client.first = p;
	client.last = p;
}

/* Dates from before the client came count from CLOCK_MONOTONIC, as do those of a clock that
 * is the same. */
static bool is_monotonic(uint64_t date)
{
	return date + SECOND_NS >= client.since_ns && date <= client.last.mono + SECOND_NS;
}

uint64_t share_to_monotonic(uint64_t date)
{
	const struct pair a = client.first, b = client.last;
	if (!share_has_clock() || !date || is_monotonic(date))
		return date;
	const double slope = b.client > a.client && b.mono > a.mono + 100000
				     ? (double)(b.mono - a.mono) / (double)(b.client - a.client)
				     : 1;
	return b.mono + (uint64_t)(int64_t)((double)(int64_t)(date - b.client) * slope);
}

/* ---- copies ---- */

/* Of kinds that we enabled as well there is more than the client wants. */
static bool is_wanted(const void *record)
{
	const uint32_t kind = *(const uint32_t *)record;
	uint64_t start = 0;
	if (kind >= KINDS)
		return true;
	const uint64_t from = __atomic_load_n(&client.enabled[kind].from_ns, __ATOMIC_ACQUIRE);
	const uint64_t until = __atomic_load_n(&client.enabled[kind].until_ns, __ATOMIC_ACQUIRE);
	if (!activity_start(record, &start))
		return true; /* a kind that only the client can have enabled */
	start = share_to_monotonic(start);
	return from && start >= from && (!until || start <= until);
}

static void hold(void)
{
	while (__atomic_exchange_n(&spare.held, 1, __ATOMIC_ACQUIRE))
		sys(sched_yield);
}

static void release(void)
{
	__atomic_store_n(&spare.held, 0, __ATOMIC_RELEASE);
}

static struct copy take_spare(void)
{
	hold();
	const struct copy c = spare.copy;
	spare.copy = (struct copy){ 0 };
	release();
	return c;
}

static bool put_spare(const struct copy *c)
{
	hold();
	const bool empty = !spare.copy.to;
	if (empty)
		spare.copy = *c;
	release();
	return empty;
}

static bool open_copy(struct copy *c)
{
	share_request *request = __atomic_load_n(&client.request, __ATOMIC_ACQUIRE);
	*c = (struct copy){ 0 };
	if (request)
		request(&c->to, &c->bytes, &c->most);
	return c->to != NULL;
}

static void close_copy(struct copy *c, void *context, uint32_t stream)
{
	if (c->to && (c->used || !put_spare(c)))
		share_pass(context, stream, c->to, c->bytes, c->used);
	*c = (struct copy){ 0 };
}

static bool wants_any(void)
{
	for (int i = 0; i < KINDS; i++)
		if (client.enabled[i].from_ns && !client.enabled[i].until_ns)
			return share_has_client();
	return false;
}

void share_prepare(void)
{
	struct copy c;
	if (!wants_any())
		return;
	hold();
	const bool needed = !spare.copy.to && !spare.asked;
	spare.asked |= needed;
	release();
	if (!needed)
		return;
	open_copy(&c);
	hold();
	spare.copy = c;
	spare.asked = false;
	release();
}

static void copy_record(
	struct copy *c, const void *record, size_t bytes, void *context, uint32_t stream)
{
	if (c->to && (c->bytes - c->used < bytes || (c->most && c->records >= c->most)))
		close_copy(c, context, stream);
	if ((!c->to && !open_copy(c)) || c->bytes - c->used < bytes) {
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
	if (!share_has_client() || !valid || next(buffer, valid, &record))
		return;
	struct copy c = take_spare();
	for (bool more = true; more;) {
		const uint8_t *at = record;
		more = !next(buffer, valid, &record);
		const uint8_t *end = more ? record : buffer + valid;
		if (is_wanted(at))
			copy_record(&c, at, (size_t)(end - at), context, stream);
	}
	close_copy(&c, context, stream);
	share_prepare();
}

void share_pass(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	share_complete *complete = __atomic_load_n(&client.complete, __ATOMIC_ACQUIRE);
	if (complete)
		complete(context, stream, buffer, bytes, valid);
}
