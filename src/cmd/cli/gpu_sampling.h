/* --nvml: the state of the GPUs sampled beside a recording, by the command that records. */
#pragma once

#include "cmd/cli/child.h"
#include "cmd/cli/options.h"
#include "nvml/sampler.h"

struct gpu_sampling {
	struct nvml *nvml; /* NULL: nothing is asked for */
	uint64_t interval_ns;
	struct sampler *sampler;
};

/* NVML, the driver's or the simulated one; 0, or an exit code after complaining. */
int gpu_sampling_open(bool sim, struct nvml **ret_n);

/* Prepares the sampling that the option asks for.  0, or an exit code after complaining. */
int gpu_sampling_prepare(struct gpu_sampling *g, const struct options *o);

/* Begins, once the program has begun to write to its trace at `path`; says what goes wrong. */
void gpu_sampling_start(struct gpu_sampling *g, const struct child *c, const char *path);

/* Ends the samples; later NVML.  Also of one that was not prepared. */
void gpu_sampling_stop(struct gpu_sampling *g);
void gpu_sampling_done(struct gpu_sampling *g);
