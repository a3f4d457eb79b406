/*
 * Wall time, accounted for: what the devices did at each moment, and where nothing ran, why.
 * Filled while GPU activities are joined to their calls (device_time.c); internal to src/model.
 *
 * The devices of a trace are taken together: a moment in which any of them computes is one of
 * computing.  Where nothing runs, the activity that ends the idle gap tells the cause: until its
 * call had returned, the host is asked what it was doing (host_time.h); after that, the activity
 * was queued and waited.  This is the one answer to why nothing ran: the report sums it up, and
 * rules of hints read it (hint_idle.c).
 */
#ifndef WEIR_MODEL_TIMELINE_H
#define WEIR_MODEL_TIMELINE_H

#include "base/array.h"
#include "base/map.h"
#include "model/report.h"

#define NO_CALL   UINT32_MAX
#define NO_STREAM UINT32_MAX

/* An activity that kept a device busy. */
struct activity {
	uint64_t start_ns, end_ns;
	uint64_t bytes;  /* 0: not known, or none */
	uint32_t call;   /* into timeline.calls, or NO_CALL */
	uint32_t row;    /* into report.activities */
	uint32_t device; /* into report.devices */
	uint32_t stream; /* below timeline.stream_count, or NO_STREAM */
	uint16_t kind;   /* enum gpu_activity_kind */
	bool communicates;
};

/* A call that launched activities. */
struct caller {
	uint64_t start_ns, end_ns;
	uint64_t first_ns; /* when its first activity began; 0: none did */
	uint32_t thread;
};

struct timeline {
	ARRAY(struct activity) activities; /* by start, once timeline_fill() has run */
	ARRAY(struct caller) calls;
	size_t stream_count;
};

/* Fills r->analysis from the activities and calls.  threads: (process, tid) to caller.thread, of
 * which there are thread_count.  0 or -ENOMEM. */
int timeline_fill(
	struct report *r, struct timeline *t, const struct map *threads, size_t thread_count);
void timeline_fini(struct timeline *t);

/*
 * The chain of what waited for what, from the end of the recording back to its beginning
 * (start_ns): for timeline_fill().  An activity waits for the one before it in its stream, or for
 * its call, whichever was later; if it began long after both, for the activities of another stream
 * that ended last.  A call waits for its thread, and that for what its last wait waited for.
 */
struct host_time;
int critical_fill(
	struct report *r, const struct timeline *t, const struct host_time *h, uint64_t start_ns);

#endif
