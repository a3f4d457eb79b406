/*
 * Finds from the times of kernels which ones had their device to themselves.
 *
 * Kernels come in batches, in any order across threads, so the last ones are remembered. A kernel
 * once found alone stays so, even if a later batch overlaps it. One thread at a time calls, and
 * nothing allocates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OVERLAP_KEPT    256 /* kernels of earlier batches, of each of so many devices: */
#define OVERLAP_DEVICES 16

struct span {
	uint64_t from, to;
	bool shared; /* with another */
};

/* A batch of one device, in the order of `from`: fills in `shared`. */
void overlap_mark(uint32_t device, struct span *v, uint32_t n);

void overlap_forget(void);
