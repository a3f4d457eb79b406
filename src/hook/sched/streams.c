/* Counts the launches of each stream. */
#include "hook/sched/streams.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/core/hook_table.h"
#include "hook/sched/sched.h"

#define STREAMS      256u
#define EVENTS       1024u
#define DEPTH        8u /* of streams that have waited for streams */
#define LEGACY       1u
#define NON_BLOCKING 1u

/* The work that each event stands for: the newest of those that share a place. */
struct noted {
	_Atomic uintptr_t event;
	struct stream_work *stream;
	uint64_t upto;
};

_Atomic uint64_t streams_epoch;
static struct stream_work streams[STREAMS];
static _Atomic uint32_t used; /* the first so many: with gaps */
static struct noted events[EVENTS];
static __thread struct stream_work *last __attribute__((tls_model("initial-exec")));

/* Handles 0 and 1 are the legacy stream, 2 the thread's own: known by where its variables are. */
static uintptr_t key_of(void *stream, int per_thread)
{
	const uintptr_t s = (uintptr_t)stream;
	if (s == 2 || (s == 0 && per_thread))
		return (uintptr_t)&last | 2;
	return s ? s : LEGACY;
}

struct stream_work *streams_find(void *stream, int per_thread)
{
	const uintptr_t key = key_of(stream, per_thread);
	struct stream_work *const before = last; /* read once: a signal's handler changes it */
	if (before && load_relaxed(&before->key) == key)
		return before;
	const uint32_t n = load_acquire(&used);
	for (uint32_t i = 0; i < n; i++)
		if (load_relaxed(&streams[i].key) == key)
			return last = &streams[i];
	return NULL;
}

static bool is_done(const struct stream_work *s)
{
	return load_acquire(&s->retired) >= load_acquire(&s->submitted);
}

static bool take(struct stream_work *s, uintptr_t from, uintptr_t key)
{
	if (from) /* threads remember it */
		atomic_fetch_add_explicit(&sched_generation, 1, memory_order_acq_rel);
	return replace_if(&s->key, &from, key, acq_rel, relaxed);
}

/* A free entry, else one whose stream has nothing left: should that stream be used again meanwhile,
 * both are counted in it. */
static struct stream_work *take_any(uintptr_t key)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		if (!load_relaxed(&streams[i].key) && take(&streams[i], 0, key))
			return &streams[i];
	for (uint32_t i = 0; i < STREAMS; i++) {
		const uintptr_t before = load_relaxed(&streams[i].key);
		if (before != LEGACY && is_done(&streams[i]) && take(&streams[i], before, key))
			return &streams[i];
	}
	return &streams[STREAMS - 1];
}

static bool is_blocking(void *stream, uintptr_t key)
{
	unsigned flags = 0;
	if (key == LEGACY || key & 2)
		return true;
	return real_at(FN_cuStreamGetFlags) && !REAL(cuStreamGetFlags)(stream, &flags) &&
	       !(flags & NON_BLOCKING);
}

struct stream_work *streams_of(void *stream, int per_thread)
{
	struct stream_work *s = streams_find(stream, per_thread);
	if (s)
		return s;
	const uintptr_t key = key_of(stream, per_thread);
	s = take_any(key);
	s->blocking = is_blocking(stream, key);
	s->held = (struct hold_stream){ 0 };
	store_relaxed(&s->skipped, 0);
	store_relaxed(&s->skipped_at, 0);
	const uint32_t i = (uint32_t)(s - streams);
	for (uint32_t k = 0; k < i; k++) /* another thread had the same in mind */
		if (load_acquire(&streams[k].key) == key && take(s, key, 0))
			return last = &streams[k];
	uint32_t n = load_relaxed(&used);
	while (n <= i && !replace_if(&used, &n, i + 1, release, relaxed))
		;
	return last = s;
}

void streams_take_back(struct stream_work *s)
{
	uint64_t others = load_acquire(&s->submitted) - 1;
	replace_if(&s->retired, &others, others + 1, acq_rel, relaxed);
}

static void retire(struct stream_work *s, uint64_t upto, uint32_t depth)
{
	uint64_t now = load_relaxed(&s->retired);
	if (now < upto)
		store_relaxed(&s->skipped, 0);
	while (now < upto && !replace_if(&s->retired, &now, upto, acq_rel, relaxed))
		;
	for (uint32_t i = 0; depth && i < STREAM_WAITS; i++) {
		struct stream_wait *w = &s->waits[i];
		if (!load_acquire(&w->other) || w->at > upto)
			continue;
		const uint64_t of_other = w->upto;
		struct stream_work *other =
			atomic_exchange_explicit(&w->other, NULL, memory_order_acq_rel);
		if (other)
			retire(other, of_other, depth - 1);
	}
}

void streams_retire(struct stream_work *s, uint64_t upto)
{
	retire(s, upto, DEPTH);
}

void streams_retire_all(uint64_t when, bool blocking_only)
{
	const uint32_t n = load_acquire(&used);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t submitted = load_acquire(&streams[i].submitted);
		if ((streams[i].blocking || !blocking_only) &&
			load_relaxed(&streams[i].newest) <= when)
			streams_retire(&streams[i], submitted);
	}
}

void streams_end(struct stream_work *s)
{
	const uintptr_t key = load_relaxed(&s->key);
	streams_retire(s, load_acquire(&s->submitted));
	if (key != LEGACY)
		take(s, key, 0);
}

bool streams_are_done(void)
{
	const uint32_t n = load_acquire(&used);
	for (uint32_t i = 0; i < n; i++)
		if (!is_done(&streams[i]))
			return false;
	return true;
}

void streams_await(struct stream_work *s)
{
	store_relaxed(&s->skipped, 0);
	add_relaxed(&s->waiters, 1);
}

void streams_awaited(struct stream_work *s)
{
	sub_relaxed(&s->waiters, 1);
}

bool streams_is_left(const struct stream_work *s)
{
	return load_relaxed(&s->skipped) >= STREAM_SKIPS && !load_relaxed(&s->waiters);
}

bool streams_have_request(void)
{
	const uint32_t n = load_acquire(&used);
	for (uint32_t i = 0; i < n; i++)
		if (!is_done(&streams[i]) && !streams_is_left(&streams[i]))
			return true;
	return false;
}

/* Several waits in a row end one request: the next one is of work that was launched since. */
static bool is_skipped_anew(const struct stream_work *s, const struct stream_work *waited)
{
	return !is_done(s) && load_relaxed(&waited->newest) >= load_relaxed(&s->skipped_at);
}

void streams_skip(const struct stream_work *waited)
{
	const uint32_t n = load_acquire(&used);
	for (uint32_t i = 0; i < n; i++)
		if (!is_done(&streams[i]) && load_relaxed(&streams[i].waiters))
			return;
	for (uint32_t i = 0; i < n; i++) {
		struct stream_work *s = &streams[i];
		if (!is_skipped_anew(s, waited))
			continue;
		store_relaxed(&s->skipped_at, load_relaxed(&streams_epoch));
		add_relaxed(&s->skipped, 1);
	}
}

void streams_note_wait(struct stream_work *s, struct stream_work *other, uint64_t upto)
{
	struct stream_wait *w = NULL;
	for (uint32_t i = 0; i < STREAM_WAITS && !w; i++)
		if (load_relaxed(&s->waits[i].other) == other)
			w = &s->waits[i];
	if (!w)
		w = &s->waits[add_relaxed(&s->waits_put, 1) % STREAM_WAITS];
	w->upto = upto;
	w->at = load_acquire(&s->submitted);
	store_release(&w->other, other);
}

static struct noted *place_of(void *event)
{
	return &events[(uintptr_t)event * 0x9e3779b97f4a7c15u >> 54];
}

void streams_note_event(void *event, struct stream_work *s)
{
	struct noted *n = place_of(event);
	if (!s && load_relaxed(&n->event) != (uintptr_t)event)
		return;
	store_release(&n->event, 0);
	if (!s)
		return;
	n->stream = s;
	n->upto = load_acquire(&s->submitted);
	store_release(&n->event, (uintptr_t)event);
}

bool streams_of_event(void *event, struct stream_work **ret_s, uint64_t *ret_upto)
{
	const struct noted *n = place_of(event);
	if (load_acquire(&n->event) != (uintptr_t)event || !n->stream)
		return false;
	*ret_s = n->stream;
	*ret_upto = n->upto;
	return load_acquire(&n->event) == (uintptr_t)event;
}

void streams_forget(void)
{
	memset(streams, 0, sizeof streams);
	memset(events, 0, sizeof events);
	store_relaxed(&used, 0);
	last = NULL;
}
