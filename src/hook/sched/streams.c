/* See streams.h. */
#include "hook/sched/streams.h"

#include <string.h>

#include "base/sys.h"
#include "hook/process.h"

#define STREAMS 256u
#define EVENTS  1024u

/* What events stand for: the newest of those that share a place. */
struct noted {
	uintptr_t event;
	struct stream_work *stream;
	uint64_t upto;
};

static struct stream_work streams[STREAMS]; /* from the first on, no gaps but for a moment */
static uint32_t used;
static struct noted events[EVENTS];
static __thread struct stream_work *last __attribute__((tls_model("initial-exec")));

/* Handles 0 and 1 are the legacy stream, 2 the thread's own. */
static uintptr_t key_of(void *stream, int per_thread)
{
	const uintptr_t s = (uintptr_t)stream;
	if (s == 2 || (s == 0 && per_thread))
		return 2 | (uintptr_t)(hook_self.tid ? hook_self.tid : (uint32_t)sys(gettid)) << 8;
	return s ? s : 1;
}

struct stream_work *streams_find(void *stream, int per_thread)
{
	const uintptr_t key = key_of(stream, per_thread);
	if (last && last->key == key)
		return last;
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&streams[i].key, __ATOMIC_RELAXED) == key)
			return last = &streams[i];
	return n == STREAMS ? &streams[STREAMS - 1] : NULL;
}

struct stream_work *streams_of(void *stream, int per_thread)
{
	struct stream_work *s = streams_find(stream, per_thread);
	const uintptr_t key = key_of(stream, per_thread);
	for (uint32_t i = 0; !s && i < STREAMS; i++) {
		uintptr_t seen = 0;
		if (!__atomic_compare_exchange_n(&streams[i].key, &seen, key, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
			seen != key)
			continue;
		uint32_t n = __atomic_load_n(&used, __ATOMIC_RELAXED);
		while (n <= i && !__atomic_compare_exchange_n(&used, &n, i + 1, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		s = &streams[i];
	}
	return s ? last = s : &streams[STREAMS - 1];
}

void streams_retire(struct stream_work *s, uint64_t upto)
{
	uint64_t now = __atomic_load_n(&s->retired, __ATOMIC_RELAXED);
	while (now < upto && !__atomic_compare_exchange_n(&s->retired, &now, upto, false,
				     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

void streams_retire_all(void)
{
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		streams_retire(
			&streams[i], __atomic_load_n(&streams[i].submitted, __ATOMIC_ACQUIRE));
}

bool streams_are_done(void)
{
	const uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&streams[i].retired, __ATOMIC_ACQUIRE) <
			__atomic_load_n(&streams[i].submitted, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static struct noted *place_of(void *event)
{
	return &events[(uintptr_t)event * 0x9e3779b97f4a7c15u >> 54];
}

void streams_note_event(void *event, struct stream_work *s)
{
	struct noted *n = place_of(event);
	__atomic_store_n(&n->event, 0, __ATOMIC_RELEASE);
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
