/* Switches a running recording. */
#include "record/control.h"

#include <string.h>

#include "event/level.h"
#include "event/off_times.h"
#include "record/clock_readings.h"

/* The header is mapped with the whole granule that it stands in. */
static void keep_off_time(struct trace_header *h, uint64_t from, uint64_t to)
{
	if (h->header_bytes < HEADER_WITH_OFF_TIMES)
		return;
	struct off_times *o = (struct off_times *)(h + 1);
	const uint32_t n = __atomic_load_n(&o->count, __ATOMIC_ACQUIRE);
	if (n >= OFF_TIMES) {
		o->v[OFF_TIMES - 1].to_ns = to;
		return;
	}
	o->v[n] = (struct off_time){ from, to };
	__atomic_store_n(&o->count, n + 1, __ATOMIC_RELEASE);
}

/* Reports take the time in which nothing was recorded out of rates. */
static void store_off(struct trace_header *h, bool off)
{
	const uint64_t now = clock_pair_now(h->clock).mono_ns;
	uint64_t none = 0;
	if (off) {
		__atomic_compare_exchange_n(
			&h->off_since_ns, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		return;
	}
	const uint64_t since = __atomic_exchange_n(&h->off_since_ns, 0, __ATOMIC_RELAXED);
	if (!since || since >= now)
		return;
	__atomic_fetch_add(&h->off_ns, now - since, __ATOMIC_RELAXED);
	keep_off_time(h, since, now);
}

void control_stop(struct trace_header *h, enum trace_stop why)
{
	uint32_t none = STOP_NOT;
	__atomic_store_n(&h->stopped_ticks, clock_pair_now(h->clock).ticks, __ATOMIC_RELAXED);
	store_off(h, true);
	__atomic_compare_exchange_n(
		&h->stopped, &none, (uint32_t)why, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	__atomic_store_n(&h->control, 0, __ATOMIC_RELEASE);
}

enum control_result control_switch(struct trace_header *h, const char *what)
{
	const uint32_t now = __atomic_load_n(&h->control, __ATOMIC_ACQUIRE);
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
		__atomic_fetch_or(&h->control, CONTROL_ARGS, __ATOMIC_RELEASE);
		return CONTROL_DONE;
	}
	if (!strcmp(what, "no-args")) {
		__atomic_fetch_and(&h->control, ~CONTROL_ARGS, __ATOMIC_RELEASE);
		return CONTROL_DONE;
	}
	if (!control_of_level(strcmp(what, "on") ? what : "full", &control))
		return CONTROL_UNKNOWN;
	store_off(h, control_is_off(control));
	__atomic_store_n(&h->control, control | (now & CONTROL_MORE), __ATOMIC_RELEASE);
	return CONTROL_DONE;
}
