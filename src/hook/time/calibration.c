/* See calibration.h. */
#include "hook/time/calibration.h"

#include <stdint.h>
#include <string.h>

#include "base/sys.h"
#include "hook/config.h"
#include "hook/meta/strings.h"
#include "hook/process.h"
#include "hook/time/cupti.h"
#include "record/writer.h"

#define WINDOWS         4u
#define WINDOW_LAUNCHES 256u
#define WINDOW_NS       1000000000u
#define FIRST_PAUSE     1024u /* timed launches between two windows; then four times as many */

enum window_state { OFF, CLOSED, OPENING, OPEN };

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

static void begin_range(void)
{
	static const char name[] = "calibration";
	uint64_t id = 0;
	struct range *g = span_reserve(&hook_recorder, &id);
	if (!g)
		return;
	g->ticks = clock_now();
	g->tid = (uint32_t)sys(gettid);
	g->name = string_id(name, sizeof name - 1);
	__atomic_store_n((uint32_t *)(void *)&g->kind, RANGE_OVERHEAD | (uint32_t)RANGE_OPEN << 16,
		__ATOMIC_RELEASE);
	window.range = id;
}

static void end_range(void)
{
	struct range *g = window.range ? span_find(window.range) : NULL;
	window.range = 0;
	if (!g)
		return;
	const uint64_t now = clock_now();
	g->dur = now > g->ticks ? now - g->ticks : 0;
	__atomic_store_n(&g->valid, (uint16_t)0, __ATOMIC_RELEASE);
}

static void open_window(void)
{
	if (!move(CLOSED, OPENING))
		return;
	const uint64_t asked = config_get()->window;
	window.until_ns = asked ? UINT64_MAX : clock_monotonic() + WINDOW_NS;
	begin_range();
	cupti_pause(false);
	__atomic_store_n(&window.left, asked ? (uint32_t)asked : WINDOW_LAUNCHES, __ATOMIC_RELAXED);
	move(OPENING, OPEN);
}

static void close_window(void)
{
	if (!move(OPEN, OPENING))
		return;
	cupti_pause(true);
	end_range();
	const uint32_t n = ++window.count;
	__atomic_store_n(&window.left, FIRST_PAUSE << 2 * (n - 1), __ATOMIC_RELAXED);
	move(OPENING, n < WINDOWS ? CLOSED : OFF);
}

void calibration_start(void)
{
	cupti_pause(true);
	__atomic_store_n(&window.left, 1, __ATOMIC_RELAXED);
	move(OFF, CLOSED);
}

void calibration_timed(void)
{
	const uint32_t state = __atomic_load_n(&window.state, __ATOMIC_ACQUIRE);
	if (state != OPEN && state != CLOSED)
		return;
	const bool over = __atomic_sub_fetch(&window.left, 1, __ATOMIC_RELAXED) == 0;
	if (state == CLOSED && over)
		open_window();
	else if (state == OPEN && (over || clock_monotonic() > window.until_ns))
		close_window();
}

void calibration_forget(void)
{
	memset(&window, 0, sizeof window);
}
