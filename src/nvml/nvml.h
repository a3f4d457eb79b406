/*
 * Asks the driver for the state of the machine's GPUs: utilisation, memory, power, temperature,
 * clocks and reasons for low clocks. It loads NVIDIA's management library, libnvidia-ml.so.1, when
 * needed. Weir is not linked to it.
 *
 * One thread uses a struct nvml at a time. A sample lacks values that the GPU, driver or container
 * does not tell (enum gpu_sample_valid). struct tegra tells of a Jetson's GPU, with or without
 * NVML. NVML measures PCIe's throughput during the call, so a sample may take 50 ms a GPU.
 * NVML_QUICK leaves that out.
 */
#pragma once

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

/*
 * The state of the GPU that sits on a Tegra processor (tegra.c), of a Jetson board, say. JetPack's
 * NVML knows little of it or is missing, and the kernel has files in its place. Their meaning is
 * read from NVIDIA's documents and from other programs. No board has tried it.
 */
struct tegra {
	const char *root;
	const char *gpu; /* its folder, below root */
	char name[96];   /* of the board */
	char clock[160]; /* path of the file, "": none */
	char temperature[160];
};

/* root: "" or a folder that stands for it; it must stay.  0, or -ENOENT: there is no such GPU. */
int tegra_find(const char *root, struct tegra *ret);

/* Utilisation, temperature, clock and the machine's memory, in place of what the sample has. */
void tegra_sample(const struct tegra *t, struct gpu_sample *s);
