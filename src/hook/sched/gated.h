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

struct cost;
struct cap_lane;

/* A call between the gate and the driver's answer. */
struct gated {
	bool entered;     /* there is something to do behind it */
	void *stream;     /* where it goes */
	void *own_stream; /* where the program sent it */
	int per_thread;
	struct cost *cost;     /* what it is counted as; NULL: it is not marked */
	struct cap_lane *lane; /* NULL: it is not capped */
	uint64_t took_ns;      /* predicted */
	float slower;          /* for being capped; 1 */
};

enum settles {
	SETTLES_NOTHING,
	SETTLES_STREAM, /* one stream, or an event */
	SETTLES_ALL,    /* the context */
	SETTLES_FORGET, /* the stream goes, whatever is in it */
	SETTLES_RECORD, /* nothing yet: an event is recorded in a stream */
};

struct settling {
	enum settles what;
	struct stream_work *stream; /* NULL: of all */
	uint64_t upto;              /* launches that were entered before */
	void *event;
};

#endif
