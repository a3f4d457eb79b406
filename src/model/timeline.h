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

#include "base/map.h"
#include "model/report.h"
#include "path/path.h"

/* Fills r->analysis from the activities and calls.  threads: (process, tid) to caller.thread, of
 * which there are thread_count.  0 or -ENOMEM. */
int timeline_fill(
	struct report *r, struct timeline *t, const struct map *threads, size_t thread_count);
void timeline_fini(struct timeline *t);

#endif
