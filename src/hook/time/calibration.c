/* Opens and closes the windows in which CUPTI times launches beside events. */
#include "hook/time/calibration.h"

#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/core/call.h"
#include "hook/core/captures.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "hook/meta/graph_nodes.h"
#include "hook/time/cupti.h"

#define WINDOWS         4u
#define WINDOW_LAUNCHES 256u
#define WINDOW_NS       1000000000u
#define FIRST_PAUSE     1024u /* timed launches between two windows; then four times as many */

enum window_state { OFF, CLOSED, OPENING, OPEN, ENDING };

static struct {
	_Atomic uint32_t state;
	uint32_t count;        /* windows so far */
	_Atomic uint32_t left; /* launches, of the window or until the next */
	uint64_t until_ns;
	uint64_t range; /* id of the open one */
} window;

bool calibration_is_open(void)
{
	return load_relaxed(&window.state) == OPEN;
}

static bool move(uint32_t from, uint32_t to)
{
	return replace_if(&window.state, &from, to, acq_rel, relaxed);
}

static void open_window(uint32_t from)
{
	if (!move(from, OPENING))
		return;
	const uint64_t asked = config_get()->window;
	window.until_ns = asked ? UINT64_MAX : monotonic_ns() + WINDOW_NS;
	window.range = own_range_begin(RANGE_OVERHEAD, "calibration");
	cupti_pause(false);
	store_relaxed(&window.left, asked ? (uint32_t)asked : WINDOW_LAUNCHES);
	move(OPENING, OPEN);
}

static void close_window(void)
{
	if (!move(OPEN, OPENING))
		return;
	cupti_pause(true);
	own_range_end(window.range);
	window.range = 0;
	store_relaxed(&window.left, FIRST_PAUSE << 2 * window.count++);
	move(OPENING, ENDING);
}

static bool is_idle(void *stream, bool per_thread)
{
	real_cuStreamQuery *const ask = REAL_OF(cuStreamQuery, per_thread);
	return !stream_is_capturing(stream, per_thread) && ask && !ask(stream);
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
	store_relaxed(&window.left, 1);
	move(OFF, CLOSED);
}

void calibration_timed(void *stream, bool per_thread)
{
	const uint32_t state = load_acquire(&window.state);
	if (state == OFF || state == OPENING)
		return;
	const bool over = sub_relaxed(&window.left, 1) == 1;
	if (state == ENDING && !over)
		end_cupti(stream, per_thread);
	else if (state != OPEN && over && window.count < WINDOWS)
		open_window(state);
	else if (state == OPEN && (over || monotonic_ns() > window.until_ns))
		close_window();
}

void calibration_forget(void)
{
	memset(&window, 0, sizeof window);
}
