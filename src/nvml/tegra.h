/*
 * The state of the GPU that sits on a Tegra processor, of a Jetson board, say. JetPack's NVML knows
 * little of it or is missing, and the kernel has files in its place.
 *
 * Their meaning is read from NVIDIA's documents and from other programs. No board has tried it.
 */
#pragma once

#include "event/format.h"

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
