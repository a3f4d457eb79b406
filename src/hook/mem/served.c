/* See served.h.  The handles behind the pool are in served_handles.c. */
#include "hook/mem/served.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "hook/core/captures.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/own_calls.h"
#include "hook/core/process.h"
#include "hook/mem/account.h"
#include "hook/mem/served_state.h"
#include "share/quota.h"

#define INVALID_VALUE 1 /* CUresult */
#define NAP_NS        50000
#define LEGACY_STREAM ((void *)1)
#define THREAD_STREAM ((void *)2)
#define TRIM_NAPS     20 /* for what was recorded just now; the driver waits for nothing */
#define POLLS         20 /* for the same, while it holds the lock */

static struct served all[MEMBERS] OWN_PAGES;

/* Without the lock, and with the program's handlers: work may take long. */
static bool nap(void)
{
	const struct timespec t = { 0, NAP_NS };
	sys(nanosleep, &t, NULL);
	return true;
}

/* No handler of its thread comes while it is held, which might never return; calls of the driver
 * are made in the pool's context, and disturb nobody's capture. */
void served_calls(struct served *s)
{
	void *current = NULL;
	if (s->is_calling)
		return;
	own_calls_begin(&s->own);
	s->is_calling = true;
	s->calls_since_ns = monotonic_ns();
	REAL(cuCtxGetCurrent)(&current);
	s->has_pushed = current != s->context && !REAL(cuCtxPushCurrent_v2)(s->context);
}

/* -1: no block begins there. */
static int free_tagged(struct served *s, uint64_t address, uint32_t tag)
{
	struct served_stream *v = &s->streams[tag];
	if (pool_free(s->pool, address, tag))
		return -1;
	if (tag)
		v->frees = true;
	store_relaxed(&v->last, pool_now(s->pool));
	return 0;
}

/* Frees the blocks that came back while another thread had the lock. */
static void free_left(struct served *s)
{
	if (!load_relaxed(&s->has_left) ||
		!atomic_exchange_explicit(&s->has_left, false, memory_order_acquire))
		return;
	for (uint32_t i = 0; i < MOST_LEFT; i++) {
		const uint64_t left =
			atomic_exchange_explicit(&s->left[i], 0, memory_order_acquire);
		if (left)
			free_tagged(s, left - left % POOL_GRAIN, left % POOL_GRAIN);
	}
}

/* The holder may be waiting for the device, as in a call of the driver's.  One that was left in the
 * middle has left a pool that can't be trusted: the driver serves from then on, and what is freed
 * stays. */
static bool lock(struct served *s)
{
	if (!lock_take(&s->lock, LOCK_NAPS))
		return false;
	free_left(s);
	return true;
}

static void unlock(struct served *s)
{
	void *popped;
	struct own_calls own;
	if (!s->is_calling) {
		lock_give(&s->lock);
		return;
	}
	if (s->has_pushed)
		REAL(cuCtxPopCurrent_v2)(&popped);
	own = s->own;
	s->is_calling = false;
	lock_give(&s->lock);
	own_calls_end(&own);
}

static struct served *of_device(int device)
{
	if (device < 0 || device >= (int)MEMBERS)
		return NULL;
	struct served *s = &all[device];
	return load_acquire(&s->state) == SERVED_READY ? s : NULL;
}

static struct served *of_address(uint64_t address)
{
	for (int i = 0; i < (int)MEMBERS; i++) {
		struct served *s = of_device(i);
		if (s && address - s->base < s->bytes)
			return s;
	}
	return NULL;
}

/* The pool of the current device, which begins with the first block, and is for that context. */
static struct served *current(void)
{
	struct member *m = member_current();
	if (!m)
		return NULL;
	struct served *s = &all[m->ordinal];
	uint32_t seen = SERVED_NONE;
	if (load_acquire(&s->state) == SERVED_NONE &&
		replace_if(&s->state, &seen, SERVED_STARTING, acq_rel, acquire))
		store_release(&s->state, served_begin(s, m) ? SERVED_READY : SERVED_DECLINED);
	s = of_device(m->ordinal);
	return s && current_context() == s->context ? s : NULL;
}

static void *plain_stream(void *stream)
{
	return stream == LEGACY_STREAM ? NULL : stream;
}

static bool is_at_rest(const struct served *s, uint32_t tag)
{
	const struct served_stream *v = &s->streams[tag];
	return !v->recorded && !v->frees && !(s->pool->counters.unsettled >> tag & 1);
}

/* Its events can be recorded there. */
static bool is_its_stream(const struct served *s, void *stream)
{
	void *context = NULL;
	return !stream || !real_at(FN_cuStreamGetCtx) ||
	       (!REAL(cuStreamGetCtx)(stream, &context) && context == s->context);
}

/* 0: there is none. */
static uint32_t unused_tag(const struct served *s)
{
	for (uint32_t i = 1; i < POOL_TAGS; i++) {
		const struct served_stream *v = &s->streams[i];
		if (!v->taken || (v->stream == ENDED_STREAM && is_at_rest(s, i)))
			return i;
	}
	return 0;
}

static void take_tag(struct served *s, uint32_t tag, void *stream)
{
	struct served_stream *v = &s->streams[tag];
	*v = (struct served_stream){ .taken = true, .stream = stream, .event = v->event };
}

/* The tag of a stream; 0: there are too many, or it is of another context. */
static uint32_t tag_of(struct served *s, void *stream)
{
	for (uint32_t i = 1; i < POOL_TAGS && s->streams[i].taken; i++)
		if (s->streams[i].stream == stream)
			return i;
	const uint32_t unused = is_its_stream(s, stream) ? unused_tag(s) : 0;
	if (unused)
		take_tag(s, unused, stream);
	return unused;
}

/* Gives the memory that a stream has freed to all streams, which then wait for it: served_follow().
 */
static void share(struct served *s, uint32_t tag)
{
	struct served_stream *v = &s->streams[tag];
	const bool is_behind = v->recorded && !v->frees;
	if (!is_behind && !served_record(s, tag))
		return;
	pool_share(s->pool, tag);
	v->shared = ++s->shares;
}

static bool share_others(struct served *s, uint32_t own)
{
	const uint64_t others = s->pool->counters.unsettled & ~(1ull << own);
	for (uint64_t left = others; left; left &= left - 1)
		share(s, (uint32_t)__builtin_ctzll(left));
	return others;
}

/* The stream of a tag waits for all streams whose frees were shared since it last did.  The host
 * only looks: it may be what they wait for, and the driver may have other memory. */
static int follow(struct served *s, uint32_t own)
{
	uint64_t *seen = own ? &s->streams[own].seen : &s->host_seen;
	if (*seen == s->shares)
		return 0;
	served_calls(s);
	for (uint32_t i = 1; i < POOL_TAGS && s->streams[i].taken; i++) {
		const struct served_stream *v = &s->streams[i];
		if (v->shared <= *seen || i == own)
			continue;
		const int failed =
			own ? REAL(cuStreamWaitEvent)(s->streams[own].stream, v->event, 0)
			    : REAL(cuEventQuery)(v->event);
		if (failed)
			return !own && failed == NOT_READY && s->is_tight ? SERVED_LATER
									  : SERVED_ELSEWHERE;
	}
	*seen = s->shares;
	return 0;
}

/* Frees a stream's placed block in the stream's order again: it is to be asked how far it has come.
 */
static void undo(struct served *s, const struct pool_place *at)
{
	pool_undo(s->pool, at);
	if (at->tag)
		s->streams[at->tag].frees = true;
}

/* Memory that others have freed comes before new memory.  A stream waits for it; the host, which
 * does not unless memory is out, asks what has been reached. */
static bool may_gain(struct served *s, uint32_t tag, bool shares)
{
	if (shares)
		return share_others(s, tag);
	if (!s->pool->counters.unsettled)
		return false;
	served_poll(s);
	return true;
}

static bool place(
	struct served *s, uint64_t bytes, uint32_t tag, bool shares, struct pool_place *at)
{
	bool placed = !pool_place(s->pool, bytes, tag, at);
	if ((placed && !at->missing) || !may_gain(s, tag, shares))
		return placed;
	if (placed)
		undo(s, at);
	return !pool_place(s->pool, bytes, tag, at);
}

/* Gives the memory of a failed attempt to programs that want it, before the next attempt: two that
 * each kept a part would wait for each other. */
static void give_tried(struct served *s)
{
	if (!quota_wanted(s->member->file, s->member->index, monotonic_ns()))
		return;
	for (int i = 0; i < POLLS && served_poll(s); i++)
		;
	served_give_wanted(s);
}

static int alloc_with(
	struct served *s, uint64_t bytes, uint32_t tag, bool shares, uint64_t *ret_address)
{
	struct pool_place at;
	if (!place(s, bytes, tag, shares, &at))
		return SERVED_ELSEWHERE;
	int result = follow(s, tag);
	if (!result && at.missing)
		result = served_back(s, &at);
	if (result)
		undo(s, &at);
	else
		*ret_address = at.address;
	if (result == OUT_OF_MEMORY)
		give_tried(s);
	return result;
}

static int alloc_locked(struct served *s, uint64_t bytes, uint32_t tag, uint64_t *ret_address)
{
	served_give_wanted(s);
	const int result = alloc_with(s, bytes, tag, tag, ret_address);
	return !tag && s->is_tight && result ? alloc_with(s, bytes, tag, true, ret_address)
					     : result;
}

static bool is_captured(void *stream)
{
	return load_relaxed(&hook_hot.captures) > 0 && stream_is_capturing(stream, 0);
}

/* Sets *since_ns at the first call of the driver. */
static int try_alloc(struct served *s, uint64_t bytes, const struct served_order *order,
	uint64_t *ret_address, uint64_t *since_ns)
{
	if (!lock(s))
		return SERVED_ELSEWHERE;
	const uint32_t tag = order->ordered ? tag_of(s, plain_stream(order->stream)) : 0;
	const int result = order->ordered && !tag ? SERVED_ELSEWHERE
						  : alloc_locked(s, bytes, tag, ret_address);
	if (s->is_calling && !*since_ns)
		*since_ns = s->calls_since_ns;
	unlock(s);
	return result;
}

static void count(struct share_memory *m, uint64_t since_ns)
{
	if (since_ns)
		share_count(m->took, monotonic_ns() - since_ns);
	else
		add_relaxed(&m->hits, 1);
}

bool served_alloc(void *address, size_t bytes, const struct served_order *order, int *ret_result)
{
	uint64_t at = 0, since_ns = 0;
	if (!config_get()->pool || !address || !bytes ||
		(order->ordered && order->stream == THREAD_STREAM) ||
		(order->ordered ? is_captured(order->stream)
				: load_relaxed(&hook_hot.captures) > 0))
		return false;
	struct served *s = current();
	if (!s || bytes > s->bytes ||
		(order->ordered ? load_relaxed(&s->is_driver_used) : s->is_ordered_only))
		return false;
	struct reclaim w = { 0 };
	do
		*ret_result = try_alloc(s, bytes, order, &at, &since_ns);
	while (*ret_result == SERVED_LATER
			? nap()
			: *ret_result == OUT_OF_MEMORY && reclaim_goes_on(&w, s->member, bytes));
	reclaim_ends(s->member, *ret_result == OUT_OF_MEMORY);
	if (*ret_result == SERVED_ELSEWHERE)
		return false;
	if (*ret_result == OUT_OF_MEMORY)
		refusal_count(s->member, bytes);
	if (*ret_result)
		return true;
	memcpy(address, &at, sizeof at);
	count(&s->member->slot->memory, since_ns);
	return true;
}

/* The driver, too, frees at once only what no work can still use. */
static int wait_for_device(const struct served *s)
{
	void *before = NULL;
	REAL(cuCtxGetCurrent)(&before);
	if (before == s->context)
		return REAL(cuCtxSynchronize)();
	if (REAL(cuCtxPushCurrent_v2)(s->context))
		return INVALID_VALUE;
	const int result = REAL(cuCtxSynchronize)();
	REAL(cuCtxPopCurrent_v2)(&before);
	return result;
}

static void freed(struct served *s, uint32_t tag)
{
	const struct served_stream *v = &s->streams[tag];
	if (v->frees && s->is_tight && !v->recorded)
		served_record(s, tag);
	served_give_wanted(s);
	served_publish(s);
}

/* For who has the lock next. */
static void leave(struct served *s, uint64_t address, uint32_t tag)
{
	for (uint32_t i = 0; i < MOST_LEFT; i++) {
		uint64_t none = 0;
		if (!replace_if(&s->left[i], &none, address + tag, release, relaxed))
			continue;
		atomic_exchange_explicit(&s->has_left, true, memory_order_release);
		return;
	}
}

static int wait_for_stream(void *stream)
{
	struct own_calls own;
	own_calls_begin(&own);
	const int result = REAL(cuStreamSynchronize)(stream);
	own_calls_end(&own);
	return result;
}

static int free_with(struct served *s, uint64_t address, uint32_t tag)
{
	if (!lock(s)) {
		leave(s, address, tag);
		return 0;
	}
	const int result = free_tagged(s, address, tag) ? INVALID_VALUE : 0;
	if (!result)
		freed(s, tag);
	unlock(s);
	return result;
}

/* Frees that all streams were to come to, while one of them was captured: by when; 0: none. */
static uint64_t context_frees(struct served *s)
{
	const struct served_stream *v = &s->streams[CONTEXT_TAG];
	uint64_t until = 0;
	if (load_relaxed(&v->last) && lock(s)) {
		until = load_relaxed(&v->last);
		unlock(s);
	}
	return until;
}

static void context_reached(struct served *s, uint64_t until)
{
	struct served_stream *v = &s->streams[CONTEXT_TAG];
	if (!until || !lock(s))
		return;
	if (load_relaxed(&v->last) == until) {
		pool_settle(s->pool, CONTEXT_TAG);
		store_relaxed(&v->last, 0);
		v->frees = false;
		v->recorded = 0;
	}
	unlock(s);
}

static int free_after_device(struct served *s, uint64_t address)
{
	const uint64_t until = context_frees(s);
	const int result = wait_for_device(s);
	if (result)
		return result;
	context_reached(s, until);
	return free_with(s, address, 0);
}

/* While a stream is captured nobody may wait for its context.  Whether the program may free memory
 * then the driver says, of an address that is nobody's: the capture forbids it, or it is no block.
 */
static int free_while_capturing(struct served *s, uint64_t address)
{
	const int said = REAL(cuMemFree_v2)(address + 1);
	return said == INVALID_VALUE ? free_with(s, address, CONTEXT_TAG) : said;
}

/* No other thread can ask how far the stream of this one has come, so its event is recorded now,
 * and a tag stands for this free alone; 0: that can't be. */
static uint32_t record_own_stream(struct served *s)
{
	uint32_t tag = unused_tag(s);
	if (!tag && served_poll(s))
		tag = unused_tag(s);
	if (!tag)
		return 0;
	take_tag(s, tag, THREAD_STREAM);
	const bool recorded = served_record(s, tag);
	s->streams[tag].stream = ENDED_STREAM;
	return recorded ? tag : 0;
}

static int free_in_own_stream(struct served *s, uint64_t address, uint32_t tag)
{
	if (free_tagged(s, address, tag))
		return INVALID_VALUE;
	s->streams[tag].frees = false;
	s->streams[tag].recorded = pool_now(s->pool);
	return 0;
}

/* Nobody waits: what has no tag of its own is free when all streams have come to it. */
static int free_in_order(struct served *s, uint64_t address, void *stream)
{
	const bool is_own = stream == THREAD_STREAM;
	uint32_t tag = is_own ? record_own_stream(s) : tag_of(s, plain_stream(stream));
	if (tag && is_own)
		return free_in_own_stream(s, address, tag);
	if (!tag && !is_its_stream(s, stream))
		return SERVED_ELSEWHERE;
	tag = tag ? tag : CONTEXT_TAG;
	if (free_tagged(s, address, tag))
		return INVALID_VALUE;
	freed(s, tag);
	return 0;
}

static int free_by_stream(struct served *s, uint64_t address, void *stream)
{
	if (current_context() != s->context)
		return SERVED_ELSEWHERE;
	if (!lock(s)) {
		leave(s, address, CONTEXT_TAG);
		return 0;
	}
	const int result = free_in_order(s, address, stream);
	unlock(s);
	return result;
}

/* In a stream of another context. */
static int free_elsewhere(struct served *s, uint64_t address, void *stream)
{
	const int result = wait_for_stream(stream);
	return result ? result : free_with(s, address, 0);
}

bool served_free(uint64_t address, const struct served_order *order, int *ret_result)
{
	struct served *s = of_address(address);
	if (!s)
		return false;
	if (!order->ordered) {
		*ret_result = load_relaxed(&hook_hot.captures) > 0
				      ? free_while_capturing(s, address)
				      : free_after_device(s, address);
		return true;
	}
	/* A node that frees memory of the pool can't be made: it stays. */
	*ret_result = is_captured(order->stream) ? 0 : free_by_stream(s, address, order->stream);
	if (*ret_result == SERVED_ELSEWHERE)
		*ret_result = free_elsewhere(s, address, order->stream);
	return true;
}

bool served_find(uint64_t address, struct served_block *ret)
{
	struct pool_block b;
	struct served *s = of_address(address);
	if (!s || !lock(s))
		return false;
	const bool found = pool_find(s->pool, address, &b);
	unlock(s);
	*ret = found ? (struct served_block){ b.address, b.bytes } : (struct served_block){ 0 };
	return true;
}

void served_counts(int device, struct served_counts *ret)
{
	struct served *s = of_device(device);
	*ret = (struct served_counts){ 0 };
	if (!s || !lock(s))
		return;
	served_poll(s);
	const struct pool_counters *c = &s->pool->counters;
	*ret = (struct served_counts){ .used = c->live_bytes,
		.used_peak = c->live_bytes_peak,
		.reserved = c->backed_slots * SLOT_BYTES,
		.reserved_peak = c->backed_slots_peak * SLOT_BYTES,
		.idle = c->idle_slots * SLOT_BYTES };
	unlock(s);
}

void served_trim(int device, uint64_t keep)
{
	struct served *s = of_device(device);
	if (!s || !lock(s))
		return;
	for (int i = 0; i < TRIM_NAPS && served_poll(s); i++) {
		unlock(s);
		nap();
		if (!lock(s))
			return;
	}
	while (s->pool->counters.backed_slots * SLOT_BYTES > keep && served_release_idle(s))
		;
	unlock(s);
}

void served_use_driver(int device, bool yes)
{
	if (device >= 0 && device < (int)MEMBERS)
		store_relaxed(&all[device].is_driver_used, yes);
}

void served_reach(int device, int reader)
{
	if (device < 0 || device >= (int)MEMBERS || reader < 0 || reader >= (int)MEMBERS ||
		atomic_fetch_or_explicit(
			&all[device].readers, 1ull << reader, memory_order_seq_cst) >>
				reader &
			1)
		return;
	struct served *s = of_device(device);
	if (!s || !lock(s))
		return;
	served_let_reach(s);
	unlock(s);
}

void served_stream_ends(void *stream)
{
	for (int i = 0; i < (int)MEMBERS; i++) {
		struct served *s = of_device(i);
		if (!s || !lock(s))
			continue;
		for (uint32_t k = 1; k < POOL_TAGS && s->streams[k].taken; k++)
			if (s->streams[k].stream == plain_stream(stream) && stream) {
				if (s->pool->counters.unsettled >> k & 1)
					share(s, k);
				s->streams[k].stream = ENDED_STREAM;
			}
		unlock(s);
	}
}

static void reset(struct served *s)
{
	if (!lock(s))
		return;
	store_release(&s->state, SERVED_DECLINED);
	served_end(s);
	unlock(s);
	store_release(&s->state, SERVED_NONE);
}

void served_context_ended(void *context)
{
	for (int i = 0; i < (int)MEMBERS; i++) {
		struct served *s = of_device(i);
		if (s && s->context == context)
			reset(s);
	}
}

void served_forget(void)
{
	DROP(all);
}
