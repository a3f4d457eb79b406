/*
 * Calls marked `gate` in api/cuda.tbl pass the gate before they put work on a device, recorded or
 * not. Calls marked `settles` tell it when work is done.
 *
 * While nobody shares, the gate is one look at a word that each wrapper reads
 * anyway. sched/sched.h describes the regulation behind that word. The gate may wait for a bounded
 * time and leaves errno alone. Calls that only CUPTI reports (inject.c) do not pass it.
 */
#pragma once

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/process.h"
#include "hook/core/hook_parts.h"
#include "hook/core/launch_shape.h"

struct cost;
struct cap_lane;
struct hold_stream;
struct stream_work;

/* A call between the gate and the driver's answer. */
struct gated {
	bool entered;             /* there is something to do behind it */
	bool per_thread;          /* stream 0 is the thread's own */
	struct stream_work *work; /* where it is counted; NULL: nowhere */
	struct hold_stream *held; /* of that stream */
	void *stream;             /* where it goes */
	void *own_stream;         /* where the program sent it */
	struct cost *cost;        /* what it is counted as; NULL: it is not marked */
	struct cap_lane *lane;    /* NULL: it is not capped */
	uint64_t took_ns;         /* predicted */
	uint32_t more;            /* launches before it that count with it */
	uint64_t more_ns;         /* and what they take, predicted */
	float slower;             /* for being capped; 1 */
};

enum settles {
	SETTLES_NOTHING,
	SETTLES_STREAM, /* one stream, or an event */
	SETTLES_COPY,   /* a default stream, by a copy there: the legacy one waits for others */
	SETTLES_ALL,    /* the context */
	SETTLES_ENDED,  /* a context ends, with what was made there, or one that uses it less */
	SETTLES_RESET,  /* it ends whoever uses it */
	SETTLES_FORGET, /* the stream goes, whatever is in it, or the event */
	SETTLES_RECORD, /* nothing yet: an event is recorded in a stream */
	SETTLES_WAIT,   /* nothing yet: a stream waits for an event */
};

struct settling {
	enum settles what;
	struct stream_work *stream; /* NULL: nothing is known of it */
	uint64_t upto;              /* launches that were entered before */
	uint64_t when;              /* it was asked: streams_epoch */
	void *event;
	struct stream_work *waiting; /* SETTLES_WAIT: who waits */
	bool blocking;               /* and all streams that the legacy one waits for */
};

static inline bool gate_is_open(void)
{
	return __builtin_expect(!load_relaxed(&hook_hot.gate), 1);
}

/* A call on its way: where it goes, and that nothing is to be done behind it; then the gate. */
static inline void gate_enter(struct gated *g, const struct launch_shape *s)
{
	g->entered = false;
	g->work = NULL;
	g->lane = NULL;
	g->stream = s->stream;
	if (!gate_is_open())
		hook_above.gate_launch(g, s);
}

/* If the gate has replaced the stream of the configuration, ret_copy is passed on in its place. */
static inline const struct cu_launch_config *gate_config(
	const struct gated *g, const struct cu_launch_config *c, struct cu_launch_config *ret_copy)
{
	if (!c || g->stream == c->stream)
		return c;
	*ret_copy = *c;
	ret_copy->stream = g->stream;
	return ret_copy;
}

/* The driver has answered: what was sent to another stream is joined to its own. */
static inline void gate_returned(const struct gated *g)
{
	if (__builtin_expect(g->lane != NULL, 0))
		hook_above.gate_joined(g);
}

/* And what else is to be done. */
static inline void gate_passed(const struct gated *g, int result)
{
	if (__builtin_expect(g->entered || (result && g->work), 0))
		hook_above.gate_passed(g, result);
}

/* Before a call that returns when work is done; with both, the event is recorded there. */
static inline void gate_settling(
	struct settling *s, enum settles what, void *event, void *stream, bool per_thread)
{
	s->what = SETTLES_NOTHING;
	if (!gate_is_open())
		hook_above.gate_settling(s, what, event, stream, per_thread);
}

static inline void gate_settled(const struct settling *s, int result)
{
	if (__builtin_expect(s->what != SETTLES_NOTHING, 0))
		hook_above.gate_settled(s, result);
}
