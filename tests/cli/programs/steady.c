/* Launches kernels, some at a time and never more, until it is killed: for whoever looks at
 * programs while they run.  `steady ranges` does so inside NVTX ranges; `steady killed` kills
 * itself after 1,000 launches. */
#include "../../hostile/programs/cu.h"
#include "../../hostile/programs/nvtx.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

int main(int count, char **arguments)
{
	const struct timespec pause = { 0, 2000000 };
	const bool ranges = count > 1 && !strcmp(arguments[1], "ranges");
	const bool killed = count > 1 && !strcmp(arguments[1], "killed");
	cu_start();
	if (ranges)
		nvtx_load();
	puts("runs");
	fflush(stdout);
	for (unsigned n = 0; !killed || n < 100; n++) {
		if (ranges)
			NVTX(push, "some");
		cu_launch(10);
		if (ranges)
			NVTX(pop);
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
		nanosleep(&pause, NULL);
	}
	raise(SIGKILL);
}
