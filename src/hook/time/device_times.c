/*
 * When device times begin, and what collects them.  They begin once the driver is there and before
 * anything can run on it.
 */

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "hook/meta/devices.h"
#include "hook/meta/facts.h"
#include "hook/time/calibration.h"
#include "hook/time/collector.h"
#include "hook/time/cupti.h"
#include "hook/time/event_timer.h"

/* That and why times are sampled, since CUPTI gives none. */
static void record_instead(const char *why)
{
	static const char no_times[] = "no device times: ";
	static_assert(SAMPLE_DEFAULT == 64, "as the sentence says");
	char text[512] = "one launch in 64 is timed with events, as without CUPTI: ";
	const size_t at = strlen(text), no = sizeof no_times - 1;
	why += strncmp(why, no_times, no) ? 0 : no;
	strncpy(text + at, why, sizeof text - at - 1);
	meta_message(text);
}

static const struct collector none;
static _Atomic(const struct collector *) collector = &none;

/* NULL, or why it can't.  Other threads may end contexts as soon as it has started. */
static const char *start_with(const struct collector *c, uint32_t rate)
{
	store_release(&collector, c);
	return c->start(rate);
}

/* Events, and CUPTI in windows. */
static void start_reconstructed(uint32_t rate)
{
	char text[512] = "launches are timed with events alone, and kernels below 20 us badly: ";
	event_timer_adapt();
	const char *why = start_with(&event_collector, rate);
	if (why) {
		meta_message(why);
		return;
	}
	cupti_number_apart();
	why = cupti_collector.start(0);
	if (!why) {
		calibration_start();
		return;
	}
	const size_t at = strlen(text);
	strncpy(text + at, why, sizeof text - at - 1);
	meta_message(text);
}

static void start_times(uint32_t rate)
{
	if (config_get()->reconstruct) {
		start_reconstructed(rate);
		return;
	}
	if (rate) {
		const char *why = start_with(&event_collector, rate);
		if (why)
			meta_message(why);
		return;
	}
	const char *why = start_with(&cupti_collector, 0);
	if (!why)
		return;
	if (start_with(&event_collector, SAMPLE_DEFAULT))
		meta_message(why);
	else
		record_instead(why);
}

/* For their times, or for what kernels get. */
static bool devices_matter(void)
{
	return config_get()->gpu ||
	       load_relaxed(&hook_recorder.header->control) & (CONTROL_ARGS | CONTROL_PREDICT);
}

/* Device times begin when the driver is there and before anything can run on it. */
void after_cuInit(int result, unsigned flags)
{
	static _Atomic uint32_t started;
	const bool matter = hook_recorder.header && devices_matter();
	if (result || !(hook_recorder.header || config_get()->sched) ||
		atomic_exchange_explicit(&started, 1, memory_order_relaxed))
		return;
	if (hook_recorder.header)
		facts_of_driver();
	if (matter)
		devices_describe();
	if (matter && config_get()->gpu)
		start_times(config_get()->sample_rate);
	if (matter || config_get()->sched)
		process_at_exit();
}

static const struct collector *collector_get(void)
{
	return load_acquire(&collector);
}

void device_times_collect(void)
{
	const struct collector *c = collector_get();
	if (c->collect)
		c->collect();
}

void device_times_hand_out(void)
{
	device_times_collect();
	cupti_hand_out();
}

static void device_gone(int device)
{
	const struct collector *c = collector_get();
	if (c->device_gone)
		c->device_gone(device);
}

void after_cuCtxDestroy(int result, void *context)
{
	const struct collector *c = collector_get();
	if (!result && c->context_gone)
		c->context_gone((uintptr_t)context);
}

void after_cuDevicePrimaryCtxReset(int result, int device)
{
	if (!result)
		device_gone(device);
}

/* The last to release it ends the context. */
void after_cuDevicePrimaryCtxRelease(int result, int device)
{
	unsigned flags;
	int active = 0;
	if (result || !real_at(FN_cuDevicePrimaryCtxGetState) ||
		REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active))
		return;
	if (!active)
		device_gone(device);
}

#define LISTENERS 4u

static completion_fn *listeners[LISTENERS];
static _Atomic uint32_t count;

bool completions_listen(completion_fn *f)
{
	const uint32_t n = load_relaxed(&count);
	if (n == LISTENERS)
		return false;
	listeners[n] = f;
	store_release(&count, n + 1); /* pairs with completions_publish() */
	return true;
}

bool completions_are_wanted(void)
{
	return load_relaxed(&count) > 0;
}

bool completions_publish(const struct gpu_activity *w, const char *name)
{
	const uint32_t n = load_acquire(&count);
	bool news = false;
	for (uint32_t i = 0; i < n; i++)
		news |= listeners[i](w, name);
	return news;
}

void completions_stop(void)
{
	store_relaxed(&count, 0);
}
