/* Dates the events of a run by the host's clock, and so the waits of a stream for the host. */
#include "hook/time/event_waits.h"

int64_t event_clock(const struct event_date *dates, size_t n)
{
	int64_t clock = INT64_MIN;
	uint64_t least = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		const int64_t here = (int64_t)dates[i].begun_ns - dates[i].at_ns;
		const uint64_t took = dates[i].recorded_ns - dates[i].begun_ns;
		clock = here > clock ? here : clock;
		least = took < least ? took : least;
	}
	return n ? clock + (int64_t)least : 0;
}

uint64_t event_wait(const struct event_date *front, int64_t clock, uint64_t returned_ns)
{
	const int64_t reached = front->at_ns + clock, returned = (int64_t)returned_ns;
	return returned > reached ? (uint64_t)(returned - reached) : 0;
}
