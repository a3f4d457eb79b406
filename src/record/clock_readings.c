/* The processor's counter where the system trusts it, and the clocks of the vDSO. */
#include "record/clock_readings.h"

#include <fcntl.h>
#include <time.h>

#include "base/cpu.h"
#include "base/monotonic.h"
#include "base/sys.h"

static uint64_t ticks_now(enum trace_clock clock)
{
	return clock == CLOCK_IS_TSC ? cpu_ticks() : monotonic_ns();
}

struct clock_pair clock_pair_now(enum trace_clock clock)
{
	struct clock_pair best = { 0 };
	uint64_t narrowest = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		const uint64_t before = ticks_now(clock);
		const uint64_t mono = monotonic_ns();
		const uint64_t after = ticks_now(clock);
		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		best.ticks = before + (after - before) / 2;
		best.mono_ns = mono;
	}
	best.real_ns = clock_ns(CLOCK_REALTIME) - (monotonic_ns() - best.mono_ns);
	return best;
}

/* The processor's counter, only where its rate is constant and the kernel trusts it itself. */
enum trace_clock clock_best(void)
{
	if (!cpu_has_ticks())
		return CLOCK_IS_MONOTONIC;
	char source[32] = { 0 };
	const long fd = sys(openat, AT_FDCWD,
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
		O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return CLOCK_IS_TSC;
	sys(read, fd, source, sizeof source - 1);
	sys(close, fd);
	return cpu_ticks_trusted(source) ? CLOCK_IS_TSC : CLOCK_IS_MONOTONIC;
}
