/*
 * Which kernels had their device for themselves, told from when they ran.
 *
 * They come in batches, and batches of several threads in any order, so the last ones are
 * remembered. What was found alone before a later batch says otherwise stays found alone.  For one
 * thread at a time; nothing allocates.
 */
#ifndef WEIR_HOOK_ONLINE_OVERLAP_H
#define WEIR_HOOK_ONLINE_OVERLAP_H

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

#endif
