/*
 * Small functions of no larger topic: the profiler's switches and the RDMA flush.
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

int sim_cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	struct context *ctx;

	return context_get(&ctx);
}
