/*
 * How long a stream waited for the host inside pairs of events: from when it had come to the event
 * in front until the launch had returned. A pair measures that wait beside the work. It may be
 * long: the first launch of a kernel loads its module, and the host may lose its processor.
 *
 * The dates of events are the device's, those of the host its own. A stream never comes to an
 * event before the host began to record it, and one that it came to at once ties both clocks
 * together. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An event of one stream, the events in their order. */
struct event_date {
	uint64_t begun_ns,
		recorded_ns; /* when the host began to record it, and had: by its clock */
	int64_t at_ns;       /* when the stream came to it: by the device's */
};

/* The host's date less the device's: the stream came to none of the n before the host had handed it
 * over, near the end of recording it. Interruptions of that do not count. */
int64_t event_clock(const struct event_date *dates, size_t n);

/* How long the stream waited for the launch that returned at returned_ns, from the event `front`
 * on: at most since the host began to record that. */
uint64_t event_wait(const struct event_date *front, int64_t clock, uint64_t returned_ns);
