/* The clock fit: see clock.h. */
#include "trace/clock.h"

#include "base/expect.h"

/* A pair is read within some tens of nanoseconds: closer ones say nothing about the slope. */
#define LEAST_SPAN_NS 20000u
#define SAME_CLOCK_NS 10000000

/* CLOCK_MONOTONIC is another in each time namespace; CLOCK_REALTIME and the ticks are not. */
static bool is_of_another(const struct clock_pair *a, const struct clock_pair *b)
{
	/* The bytes of a damaged file may make it wrap, and it is far apart. */
	const uint64_t apart = (a->real_ns - a->mono_ns) - (b->real_ns - b->mono_ns);
	const uint64_t most = SAME_CLOCK_NS;
	return a->real_ns && b->real_ns && apart > most && apart < -most;
}

void clock_fit_add(struct clock_fit *fit, const struct clock_pair *pair)
{
	if (!pair->mono_ns || (fit->any && is_of_another(&fit->first, pair)))
		return;
	if (!fit->any || pair->mono_ns < fit->first.mono_ns)
		fit->first = *pair;
	if (!fit->any || pair->mono_ns > fit->last.mono_ns)
		fit->last = *pair;
	fit->any = true;
	expect(fit->first.mono_ns <= fit->last.mono_ns, "the readings kept are in order");
}

void clock_fit_finish(
	struct clock_fit *fit, enum trace_clock clock, const struct clock_pair *origin)
{
	const uint64_t ns = fit->last.mono_ns - fit->first.mono_ns;
	const uint64_t ticks = fit->last.ticks - fit->first.ticks;
	fit->origin = *origin;
	fit->slope = 1;
	fit->known = clock == CLOCK_IS_MONOTONIC;
	if (fit->known || !fit->any || ns < LEAST_SPAN_NS || fit->last.ticks <= fit->first.ticks)
		return;
	const double slope = (double)ns / (double)ticks;
	if (slope < 1e-4 || slope > 1e4) /* no clock of any machine: a damaged pair */
		return;
	fit->slope = slope;
	fit->known = true;
	expect(slope > 0, "the clock runs forwards");
}

static uint64_t to_u64(double ns)
{
	return ns < 1 ? 0 : ns >= 1.8e19 ? UINT64_MAX : (uint64_t)ns;
}

uint64_t clock_fit_span_ns(const struct clock_fit *fit, uint64_t ticks)
{
	return to_u64((double)ticks * fit->slope + 0.5);
}

uint64_t clock_fit_ns(const struct clock_fit *fit, uint64_t ticks)
{
	const uint64_t origin = fit->origin.mono_ns;
	if (ticks < fit->origin.ticks) {
		const uint64_t before = clock_fit_span_ns(fit, fit->origin.ticks - ticks);
		return before > origin ? 0 : origin - before;
	}
	expect_slow(fit->slope > 0, "the clock runs forwards");
	const uint64_t after = clock_fit_span_ns(fit, ticks - fit->origin.ticks);
	return after > UINT64_MAX - origin ? UINT64_MAX : origin + after;
}

uint64_t clock_fit_error_ns(const struct clock_fit *fit, const struct clock_pair *pair)
{
	const uint64_t ns = clock_fit_ns(fit, pair->ticks);
	if (!pair->mono_ns)
		return 0;
	return ns > pair->mono_ns ? ns - pair->mono_ns : pair->mono_ns - ns;
}
