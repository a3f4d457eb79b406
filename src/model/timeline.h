/*
 * Accounts for the wall time: what the devices did at each moment, and why nothing ran. Filled
 * while activities are joined to calls (device_time.c). Internal to src/model.
 *
 * The devices count together, so a moment computes if any of them does. In an idle gap the activity
 * that ends it gives the cause. Until its call had returned, the host's state is the cause
 * (host_time.h). After that the activity was queued. The report and the rules of hints
 * (hint_idle.c) share this answer.
 */
#pragma once

#include "base/map.h"
#include "model/report.h"
#include "path/path.h"

/* Fills r->analysis from the activities and calls.  threads: (process, tid) to caller.thread, of
 * which there are thread_count.  0 or -errno. */
int timeline_fill(
	struct report *r, struct timeline *t, const struct map *threads, size_t thread_count);
void timeline_fini(struct timeline *t);
