/* Switches a running recording. */
#include "record/control.h"

#include <string.h>

#include "base/atomic.h"
#include "event/level.h"
#include "record/clock_readings.h"

/* The header is mapped with the whole granule that it stands in. */
static void keep_off_time(struct trace_header *h, uint64_t from, uint64_t to)
{
	if (h->header_bytes < HEADER_WITH_OFF_TIMES)
		return;
	struct off_times *o = (struct off_times *)(h + 1);
	const uint32_t n = load_acquire(shared(&o->count));
	if (n >= OFF_TIMES) {
		o->v[OFF_TIMES - 1].to_ns = to;
		return;
	}
	o->v[n] = (struct off_time){ from, to };
	store_release(shared(&o->count), n + 1);
}

/* Reports take the time in which nothing was recorded out of rates. */
static void store_off(struct trace_header *h, bool off)
{
	const uint64_t now = clock_pair_now(h->clock).mono_ns;
	uint64_t none = 0;
	if (off) {
		replace_if(&h->off_since_ns, &none, now, relaxed, relaxed);
		return;
	}
	const uint64_t since = atomic_exchange_explicit(&h->off_since_ns, 0, memory_order_relaxed);
	if (!since || since >= now)
		return;
	add_relaxed(&h->off_ns, now - since);
	keep_off_time(h, since, now);
}

void control_stop(struct trace_header *h, enum trace_stop why)
{
	uint32_t none = STOP_NOT;
	store_relaxed(&h->stopped_ticks, clock_pair_now(h->clock).ticks);
	store_off(h, true);
	replace_if(&h->stopped, &none, (uint32_t)why, acq_rel, relaxed);
	store_release(&h->control, 0);
}

enum control_result control_switch(struct trace_header *h, const char *what)
{
	const uint32_t now = load_acquire(&h->control);
	uint32_t control;
	if (h->form != TRACE_RAW || h->state != TRACE_RECORDING)
		return CONTROL_FINISHED;
	if (h->stopped != STOP_NOT)
		return h->stopped == STOP_ASKED ? CONTROL_STOPPED : CONTROL_NO_ROOM;
	if (!strcmp(what, "stop")) {
		control_stop(h, STOP_ASKED);
		return CONTROL_DONE;
	}
	if (!strcmp(what, "args")) {
		atomic_fetch_or_explicit(&h->control, CONTROL_ARGS, memory_order_release);
		return CONTROL_DONE;
	}
	if (!strcmp(what, "no-args")) {
		atomic_fetch_and_explicit(&h->control, ~CONTROL_ARGS, memory_order_release);
		return CONTROL_DONE;
	}
	if (!control_of_level(strcmp(what, "on") ? what : "full", &control))
		return CONTROL_UNKNOWN;
	store_off(h, control_is_off(control));
	store_release(&h->control, control | (now & CONTROL_MORE));
	return CONTROL_DONE;
}
