/* See share.h. */
#include "gputime/share.h"

#include <string.h>
#include <time.h>

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

static uint64_t monotonic_ns(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- the client's calls ---- */

void share_callbacks(share_request *request, share_complete *complete)
{
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

struct copy {
	uint8_t *to;
	size_t bytes, used, records, most;
};

static bool open_copy(struct copy *c)
{
	*c = (struct copy){ 0 };
	client.request(&c->to, &c->bytes, &c->most);
	return c->to != NULL;
}

static void close_copy(struct copy *c, void *context, uint32_t stream)
{
	if (c->to)
		client.complete(context, stream, c->to, c->bytes, c->used);
	*c = (struct copy){ 0 };
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
	struct copy c = { 0 };
	void *record = NULL;
	if (!share_has_client() || !valid || next(buffer, valid, &record))
		return;
	for (bool more = true; more;) {
		const uint8_t *at = record;
		more = !next(buffer, valid, &record);
		const uint8_t *end = more ? record : buffer + valid;
		if (is_wanted(at))
			copy_record(&c, at, (size_t)(end - at), context, stream);
	}
	close_copy(&c, context, stream);
}

void share_pass(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	share_complete *complete = __atomic_load_n(&client.complete, __ATOMIC_ACQUIRE);
	if (complete)
		complete(context, stream, buffer, bytes, valid);
}
