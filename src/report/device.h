/*
 * Where the time went on devices: reads the chunks of device work, ranges and links, joins
 * them, and fills those parts of the report.  Internal to src/report.
 *
 * A piece of work belongs to the call that its correlation names; the call to the innermost
 * range around it on its thread.  Where there is no call, the work may name a range itself.
 */
#ifndef WEIR_REPORT_DEVICE_H
#define WEIR_REPORT_DEVICE_H

#include "report/model.h"

/* After the calls and kernels of r are there.  0 or -ENOMEM. */
int device_fill(struct report *r);
void device_fini(struct report *r);

#endif
