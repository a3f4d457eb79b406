/* Opens and closes the windows in which CUPTI times launches beside events. */
#include "hook/time/calibration.h"

#include <stdint.h>
#include <string.h>

#include "hook/core/call.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/captures.h"
#include "hook/meta/graph_nodes.h"
#include "hook/core/own_range.h"
#include "hook/core/process.h"
#include "hook/time/cupti.h"

#define WINDOWS         4u
#define WINDOW_LAUNCHES 256u
#define WINDOW_NS       1000000000u
#define FIRST_PAUSE     1024u /* timed launches between two windows; then four times as many */

enum window_state { OFF, CLOSED, OPENING, OPEN, ENDING };

static struct {
	uint32_t state;
	uint32_t count; /* windows so far */
	uint32_t left;  /* launches, of the window or until the next */
	uint64_t until_ns;
	uint64_t range; /* id of the open one */
} window;

bool calibration_is_open(void)
{
	return __atomic_load_n(&window.state, __ATOMIC_RELAXED) == OPEN;
}

static bool move(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		&window.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void open_window(uint32_t from)
{
	if (!move(from, OPENING))
		return;
	const uint64_t asked = config_get()->window;
	window.until_ns = asked ? UINT64_MAX : clock_monotonic() + WINDOW_NS;
	window.range = own_range_begin(RANGE_OVERHEAD, "calibration");
	cupti_pause(false);
	__atomic_store_n(&window.left, asked ? (uint32_t)asked : WINDOW_LAUNCHES, __ATOMIC_RELAXED);
	move(OPENING, OPEN);
}

static void close_window(void)
{
	if (!move(OPEN, OPENING))
		return;
	cupti_pause(true);
	own_range_end(window.range);
	window.range = 0;
	__atomic_store_n(&window.left, FIRST_PAUSE << 2 * window.count++, __ATOMIC_RELAXED);
	move(OPENING, ENDING);
}

static bool is_idle(void *stream, bool per_thread)
{
	if (stream_is_capturing(stream, per_thread))
		return false;
	return per_thread ? hook_real[FN_cuStreamQuery_ptsz] &&
				    !REAL(cuStreamQuery_ptsz, void *)(stream)
			  : hook_real[FN_cuStreamQuery] && !REAL(cuStreamQuery, void *)(stream);
}

/* A graph that was made while CUPTI was there may hold what CUPTI put into it, and is not to be
 * launched without it. */
static void end_cupti(void *stream, bool per_thread)
{
	if (graph_nodes_any() || !is_idle(stream, per_thread) || !move(ENDING, OPENING))
		return;
	cupti_leave();
	move(OPENING, window.count < WINDOWS ? CLOSED : OFF);
}

void calibration_start(void)
{
	cupti_pause(true);
	__atomic_store_n(&window.left, 1, __ATOMIC_RELAXED);
	move(OFF, CLOSED);
}

void calibration_timed(void *stream, bool per_thread)
{
	const uint32_t state = __atomic_load_n(&window.state, __ATOMIC_ACQUIRE);
	if (state == OFF || state == OPENING)
		return;
	const bool over = __atomic_sub_fetch(&window.left, 1, __ATOMIC_RELAXED) == 0;
	if (state == ENDING && !over)
		end_cupti(stream, per_thread);
	else if (state != OPEN && over && window.count < WINDOWS)
		open_window(state);
	else if (state == OPEN && (over || clock_monotonic() > window.until_ns))
		close_window();
}

void calibration_forget(void)
{
	memset(&window, 0, sizeof window);
}
