/* Samples the state of the GPUs beside a recording. */
#include "cmd/cli/gpu_sampling.h"

#include <stdio.h>
#include <unistd.h>

#include "base/library_path.h"
#include "cmd/cli/values.h"

#define INTERVAL_DEFAULT  100000000u
#define INTERVAL_SHORTEST 1000000u

int gpu_sampling_open(bool sim, struct nvml **ret_n)
{
	char path[PATH_MAX];
	struct error err;
	if (sim && library_path("sim/libnvidia-ml.so.1", path, sizeof path))
		return complain(EXIT_ENVIRONMENT,
			"the simulated driver is not in ../lib/weir/sim. Install Weir again");
	if (nvml_open(sim ? path : NULL, ret_n, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	return 0;
}

int gpu_sampling_prepare(struct gpu_sampling *g, const struct options *o)
{
	const char *interval = opt_str(o, "nvml");
	if (!interval)
		return 0;
	g->interval_ns = INTERVAL_DEFAULT;
	if (*interval &&
		(!duration_parse(interval, &g->interval_ns) || g->interval_ns < INTERVAL_SHORTEST))
		return complain(EXIT_USAGE,
			"--nvml=%s: give the time between two samples, at least 1ms: 100ms, for example",
			interval);
	return gpu_sampling_open(opt_flag(o, "sim"), &g->nvml);
}

void gpu_sampling_start(struct gpu_sampling *g, const struct child *c, const char *path)
{
	struct recorder to = { .header = c->header,
		.pid = (uint32_t)getpid(),
		.process_start = process_start_of(0),
		.device = c->device,
		.inode = c->inode };
	if (!g->nvml || snprintf(to.path, sizeof to.path, "%s", path) >= (int)sizeof to.path)
		return;
	const int e = sampler_start(g->nvml, &to, g->interval_ns, &g->sampler);
	if (e)
		remark("the state of the GPUs is not recorded: %s", strerror(-e));
}

void gpu_sampling_stop(struct gpu_sampling *g)
{
	sampler_stop(g->sampler);
	g->sampler = NULL;
}

void gpu_sampling_done(struct gpu_sampling *g)
{
	gpu_sampling_stop(g);
	nvml_close(g->nvml);
	g->nvml = NULL;
}
