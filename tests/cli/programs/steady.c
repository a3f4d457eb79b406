/* Launches kernels, some at a time and never more, until it is killed: for whoever looks at
 * programs while they run.  `steady ranges` does so inside NVTX ranges; `steady killed` kills
 * itself after 1,000 launches, and `steady killed ranges` launches those inside ranges;
 * `steady runs KERNEL MS` has a kernel of that name, and so long pauses. */
#include "../../hostile/programs/cu.h"
#include "../../hostile/programs/nvtx.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

static void load_kernel(const char *name)
{
	char image[512];
	void *module;
	snprintf(image, sizeof image,
		".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry %s()\n{\n\tret;\n}\n",
		name);
	cu_need(cuModuleLoadData(&module, image), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&cu_kernel, module, name), "cuModuleGetFunction");
}

int main(int count, char **arguments)
{
	const bool named = count > 3 && !strcmp(arguments[1], "runs");
	const struct timespec pause = { 0,
		named ? strtol(arguments[3], NULL, 10) % 1000 * 1000000 : 2000000 };
	const bool killed = count > 1 && !strcmp(arguments[1], "killed");
	const bool ranges = count > 1 && !strcmp(arguments[count - 1], "ranges");
	cu_start();
	if (named)
		load_kernel(arguments[2]);
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
