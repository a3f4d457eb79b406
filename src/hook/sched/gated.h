/* A call between the gate and the driver: what it asks for, and what was decided. */
#ifndef WEIR_HOOK_SCHED_GATED_H
#define WEIR_HOOK_SCHED_GATED_H

#include <stdbool.h>
#include <stdint.h>

/* What is to be launched, as far as a call says. */
struct sched_launch {
	const void *what; /* function, graph; NULL: a copy or a set */
	void *stream;
	int per_thread;
	uint32_t grid[3], block[3], shared;
	uint64_t bytes; /* of a copy */
	bool plain;     /* a kernel that may go to another stream: no cluster, no attributes */
};

#define GATED_SMALL (1u << 20) /* bytes of a copy; less keeps no request waiting */

static inline bool gated_is_small(const struct sched_launch *l)
{
	return !l->what && l->bytes < GATED_SMALL;
}

struct cost;
struct cap_lane;
struct hold_stream;

/* A call between the gate and the driver's answer. */
struct gated {
	bool entered;             /* there is something to do behind it */
	struct stream_work *work; /* where it is counted; NULL: nowhere */
	struct hold_stream *held; /* of that stream */
	void *stream;             /* where it goes */
	void *own_stream;         /* where the program sent it */
	int per_thread;
	struct cost *cost;     /* what it is counted as; NULL: it is not marked */
	struct cap_lane *lane; /* NULL: it is not capped */
	uint64_t took_ns;      /* predicted */
	uint32_t more;         /* launches before it that count with it */
	uint64_t more_ns;      /* and what they take, predicted */
	float slower;          /* for being capped; 1 */
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

#endif
