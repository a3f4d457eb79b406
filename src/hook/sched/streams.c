/* Counts the launches of each stream. */
#include "hook/sched/streams.h"

#include <string.h>

#include "hook/core/hook_table.h"
#include "hook/sched/sched.h"

#define STREAMS      256u
#define EVENTS       1024u
#define DEPTH        8u /* of streams that have waited for streams */
#define LEGACY       1u
#define NON_BLOCKING 1u

/* What events stand for: the newest of those that share a place. */
struct noted {
	uintptr_t event;
	struct stream_work *stream;
	uint64_t upto;
};

uint64_t streams_epoch;
static struct stream_work streams[STREAMS];
static uint32_t used; /* the first so many: with gaps */
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
	if (last && __atomic_load_n(&last->key, __ATOMIC_RELAXED) == key)
		return last;
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&streams[i].key, __ATOMIC_RELAXED) == key)
			return last = &streams[i];
	return NULL;
}

static bool is_done(const struct stream_work *s)
{
	return __atomic_load_n(&s->retired, __ATOMIC_ACQUIRE) >=
	       __atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE);
}

static bool take(struct stream_work *s, uintptr_t from, uintptr_t key)
{
	if (from) /* threads remember it */
		__atomic_fetch_add(&sched_generation, 1, __ATOMIC_ACQ_REL);
	return __atomic_compare_exchange_n(
		&s->key, &from, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A free entry, else one whose stream has nothing left: should that stream be used again meanwhile,
 * both are counted in it. */
static struct stream_work *take_any(uintptr_t key)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		if (!__atomic_load_n(&streams[i].key, __ATOMIC_RELAXED) &&
			take(&streams[i], 0, key))
			return &streams[i];
	for (uint32_t i = 0; i < STREAMS; i++) {
		const uintptr_t before = __atomic_load_n(&streams[i].key, __ATOMIC_RELAXED);
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
	return hook_real[FN_cuStreamGetFlags] &&
	       !REAL(cuStreamGetFlags, void *, unsigned *)(stream, &flags) &&
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
	const uint32_t i = (uint32_t)(s - streams);
	for (uint32_t k = 0; k < i; k++) /* another thread had the same in mind */
		if (__atomic_load_n(&streams[k].key, __ATOMIC_ACQUIRE) == key && take(s, key, 0))
			return last = &streams[k];
	uint32_t n = __atomic_load_n(&used, __ATOMIC_RELAXED);
	while (n <= i && !__atomic_compare_exchange_n(
				 &used, &n, i + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return last = s;
}

void streams_take_back(struct stream_work *s)
{
	uint64_t others = __atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE) - 1;
	__atomic_compare_exchange_n(
		&s->retired, &others, others + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void retire(struct stream_work *s, uint64_t upto, uint32_t depth)
{
	uint64_t now = __atomic_load_n(&s->retired, __ATOMIC_RELAXED);
	while (now < upto && !__atomic_compare_exchange_n(&s->retired, &now, upto, false,
				     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	for (uint32_t i = 0; depth && i < STREAM_WAITS; i++) {
		struct stream_wait *w = &s->waits[i];
		if (!__atomic_load_n(&w->other, __ATOMIC_ACQUIRE) || w->at > upto)
			continue;
		const uint64_t of_other = w->upto;
		struct stream_work *other = __atomic_exchange_n(&w->other, NULL, __ATOMIC_ACQ_REL);
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
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t submitted = __atomic_load_n(&streams[i].submitted, __ATOMIC_ACQUIRE);
		if ((streams[i].blocking || !blocking_only) &&
			__atomic_load_n(&streams[i].newest, __ATOMIC_RELAXED) <= when)
			streams_retire(&streams[i], submitted);
	}
}

void streams_end(struct stream_work *s)
{
	const uintptr_t key = __atomic_load_n(&s->key, __ATOMIC_RELAXED);
	streams_retire(s, __atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE));
	if (key != LEGACY)
		take(s, key, 0);
}

bool streams_are_done(void)
{
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		if (!is_done(&streams[i]))
			return false;
	return true;
}

void streams_note_wait(struct stream_work *s, struct stream_work *other, uint64_t upto)
{
	struct stream_wait *w = NULL;
	for (uint32_t i = 0; i < STREAM_WAITS && !w; i++)
		if (__atomic_load_n(&s->waits[i].other, __ATOMIC_RELAXED) == other)
			w = &s->waits[i];
	if (!w)
		w = &s->waits[__atomic_fetch_add(&s->waits_put, 1, __ATOMIC_RELAXED) %
			      STREAM_WAITS];
	w->upto = upto;
	w->at = __atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE);
	__atomic_store_n(&w->other, other, __ATOMIC_RELEASE);
}

static struct noted *place_of(void *event)
{
	return &events[(uintptr_t)event * 0x9e3779b97f4a7c15u >> 54];
}

void streams_note_event(void *event, struct stream_work *s)
{
	struct noted *n = place_of(event);
	if (!s && __atomic_load_n(&n->event, __ATOMIC_RELAXED) != (uintptr_t)event)
		return;
	__atomic_store_n(&n->event, 0, __ATOMIC_RELEASE);
	if (!s)
		return;
	n->stream = s;
	n->upto = __atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE);
	__atomic_store_n(&n->event, (uintptr_t)event, __ATOMIC_RELEASE);
}

bool streams_of_event(void *event, struct stream_work **ret_s, uint64_t *ret_upto)
{
	const struct noted *n = place_of(event);
	if (__atomic_load_n(&n->event, __ATOMIC_ACQUIRE) != (uintptr_t)event || !n->stream)
		return false;
	*ret_s = n->stream;
	*ret_upto = n->upto;
	return __atomic_load_n(&n->event, __ATOMIC_ACQUIRE) == (uintptr_t)event;
}

void streams_forget(void)
{
	memset(streams, 0, sizeof streams);
	memset(events, 0, sizeof events);
	used = 0;
	last = NULL;
}
