/*
 * Samples the GPUs' state beside a recording. A thread of the recording command, never of the
 * program, asks NVML once an interval. It writes into chunks of its own (CHUNK_SAMPLES) of the same
 * file, so a killed recording keeps its samples.
 *
 * After each SAMPLES_DOUBLE samples the interval doubles, which limits long recordings.
 */
#pragma once

#include <stdint.h>

#include "nvml/nvml.h"
#include "record/writer.h"

#define SAMPLES_DOUBLE 32768u

struct sampler;

/* to: the trace, with header, path, device and inode; copied.  0 or -errno. */
int sampler_start(
	struct nvml *n, const struct recorder *to, uint64_t interval_ns, struct sampler **ret_s);

/* Ends the thread and closes its chunk; may be NULL. */
void sampler_stop(struct sampler *s);
