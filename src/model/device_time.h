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

/* After the calls, kernels and links of r are there.  0 or -errno. */
int device_fill(struct report *r);
void device_fini(struct report *r);

/* Between device.c and device_rows.c.  The slot of a name of one kind of activity. */
uint32_t *device_text_slot(struct map *m, const char *text, uint16_t kind);
int device_make_rows(struct report *r);
