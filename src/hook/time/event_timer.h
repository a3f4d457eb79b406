/*
 * Takes device times without CUPTI: one launch in N, between two events.
 *
 * A launch's wrapper calls timing_begin() before the driver, which mostly returns NULL at the cost
 * of a counter. Otherwise an event is on the launch's stream, and event_timer_end() records
 * the second one. Later launches and the end of the program collect the results. Nothing waits for
 * a device.
 *
 * Some launches in a row are timed, then N times as many are not, with a random offset against
 * periodic programs. In a row one event can end a launch and begin the next. Launches are skipped
 * during captures. A launch that may overlap the kernel before it is also skipped, since an event
 * would prevent the overlap.
 *
 * A duration includes the device's wait for the kernel, which on an idle stream is about the
 * launch's own time. The begin of a kernel is estimated. Events belong to a context, some hundreds
 * at most, and any thread takes the next. There are no locks and no heap. Signal handlers may come
 * between any two lines.
 */
#pragma once

#include <stdint.h>

#include "hook/core/timing.h"

void event_timer_adapt(void); /* before it starts: see timing_adapts */

struct sample *event_timer_take(uint32_t fn, const struct launch_shape *s);

/* After the call, with its result. */
void event_timer_end(
	struct sample *s, const struct launch_shape *shape, const struct timed_call *call);

void event_timer_forget(void); /* after a fork */
void event_timer_at_exit(void);
