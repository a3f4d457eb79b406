/*
 * Ten steps, of which step i launches i kernels and waits for them: how many launches a recording
 * has says which steps are in it.  Each is a range "step"; 3 and 4 are in a range "inner" as well,
 * and 7 and 8 between cuProfilerStart and cuProfilerStop.  Behind them come 100 launches that
 * nothing waits for.  `parts [PATH]`: waits behind each step until PATH is there, removes it, and
 * makes PATH.done.
 */
#include "../../hostile/programs/cu.h"
#include "../../hostile/programs/nvtx.h"

enum { STEPS = 10, REST = 100 };

static int (*profiler_start)(void), (*profiler_stop)(void);

static void find_profiler(void)
{
	void *start = dlsym(cu_library, "cuProfilerStart"),
	     *stop = dlsym(cu_library, "cuProfilerStop");

	memcpy(&profiler_start, &start, sizeof start);
	memcpy(&profiler_stop, &stop, sizeof stop);
	cu_need(!start || !stop, "cuProfilerStart");
}

/* The driver of this program says when it goes on, and waits until it has. */
static void wait_for(const char *path)
{
	char done[4096];

	while (access(path, F_OK))
		usleep(1000);
	unlink(path);
	snprintf(done, sizeof done, "%s.done", path);
	close(open(done, O_CREAT | O_WRONLY, 0600));
}

static void step(int i)
{
	uint64_t span = 0;

	if (i == 3)
		NVTX(push, "inner");
	if (i == 5)
		span = NVTX(start, "spanned");
	if (i == 7)
		profiler_start();
	NVTX(push, "step");
	cu_launch(i);
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	NVTX(pop);
	if (i == 4)
		NVTX(pop);
	if (i == 5)
		NVTX_VOID(end, span);
	if (i == 8)
		profiler_stop();
}

int main(int count, char **arguments)
{
	cu_start();
	find_profiler();
	nvtx_load();
	for (int i = 1; i <= STEPS; i++) {
		step(i);
		if (count > 1)
			wait_for(arguments[1]);
	}
	cu_launch(REST);
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	return 0;
}
