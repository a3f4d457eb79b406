/*
 * Where the time went on devices: reads the chunks of GPU activities, ranges and links, joins
 * them, and fills those parts of the report.  Internal to src/model.
 *
 * a GPU activity belongs to the call that its correlation names; the call to the innermost
 * range around it on its thread.  Where there is no call, the activity may name a range itself.
 */
#ifndef WEIR_MODEL_DEVICE_TIME_H
#define WEIR_MODEL_DEVICE_TIME_H

#include "base/map.h"
#include "model/report.h"

/* After the calls and kernels of r are there.  0 or -ENOMEM. */
int device_fill(struct report *r);
void device_fini(struct report *r);

/* Between device.c and device_rows.c.  The slot of a name of one kind of activity. */
uint32_t *device_text_slot(struct map *m, const char *text, uint16_t kind);
int device_make_rows(struct report *r);

#endif
