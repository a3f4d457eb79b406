/* Launches kernels, some at a time and never more, until it is killed: for whoever looks at
 * programs while they run. */
#include "../../hostile/programs/cu.h"

#include <stdio.h>
#include <time.h>

int main(void)
{
	const struct timespec pause = { 0, 2000000 };
	cu_start();
	puts("runs");
	fflush(stdout);
	for (;;) {
		cu_launch(10);
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
		nanosleep(&pause, NULL);
	}
}
