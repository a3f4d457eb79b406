/*
 * What the driver says of the machine's GPUs: utilisation, memory, power, temperature, clocks and
 * why they are what they are.  The library is NVIDIA's management library, libnvidia-ml.so.1, which
 * comes with the driver; it is loaded when it is asked for, and Weir is not linked to it.
 *
 * One thread uses a struct nvml at a time.  What a GPU, a driver or a container does not tell is
 * not in a sample: see enum gpu_sample_valid.  A sample may take some 50 ms a GPU, since NVML
 * measures PCIe's throughput while it is asked; NVML_QUICK leaves that out.
 */
#ifndef WEIR_NVML_NVML_H
#define WEIR_NVML_NVML_H

#include <stdint.h>

#include "base/error.h"
#include "event/format.h"

struct nvml;

/* path: NULL for the driver's.  0 or -errno; -ENOENT: there is no such library. */
int nvml_open(const char *path, struct nvml **ret_n, struct error *err);
void nvml_close(struct nvml *n); /* may be NULL */

unsigned nvml_count(const struct nvml *n); /* of GPUs; 0 of NULL */

/* "NVIDIA H200", or "". */
const char *nvml_name(const struct nvml *n, unsigned gpu);

enum nvml_how { NVML_ALL, NVML_QUICK };

/* The state of a GPU now; ret->valid is 0 when it says nothing. */
void nvml_sample(const struct nvml *n, unsigned gpu, enum nvml_how how, struct gpu_sample *ret);

#endif
