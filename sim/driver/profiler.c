/*
 * The profiler's switches.
 */
#include "driver/sim.h"

int sim_cuProfilerStart(void)
{
	struct context *ctx;

	return context_get(&ctx);
}

int sim_cuProfilerStop(void)
{
	struct context *ctx;

	return context_get(&ctx);
}
