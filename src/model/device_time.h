/*
 * Reads the chunks of GPU activities, ranges and links, joins them and fills those parts of the
 * report. Internal to src/model.
 *
 * An activity belongs to the call with its correlation, and the call to the innermost range around
 * it on its thread. Without a call the activity may name a range itself.
 */
#pragma once

#include "base/map.h"
#include "model/report.h"
#include "path/path.h"

/* After the calls, kernels and links of r are there.  0 or -errno. */
int device_fill(struct report *r);
void device_fini(struct report *r);

/* Between device.c and device_rows.c.  The slot of a name of one kind of activity. */
uint32_t *device_text_slot(struct map *m, const char *text, uint16_t kind);
int device_make_rows(struct report *r);

/*
 * Accounts for the wall time: what the devices did at each moment, and why nothing ran
 * (timeline.c). The devices count together, so a moment computes if any of them does. In an idle
 * gap the activity that ends it gives the cause. Until its call had returned, the host's state is
 * the cause (host_time.h). After that the activity was queued.
 */
/* Fills r->analysis from the activities and calls.  threads: (process, tid) to caller.thread, of
 * which there are thread_count.  0 or -errno. */
int timeline_fill(
	struct report *r, struct timeline *t, const struct map *threads, size_t thread_count);
void timeline_fini(struct timeline *t);
