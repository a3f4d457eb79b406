/*
 * The pool of weir run --pool serves cuMemAlloc and cuMemAllocAsync from one range of addresses a
 * device. Handles of physical memory stand behind that range (src/pool/pool.h). The driver serves
 * captured allocations, the program's own pools, default streams of threads, memory that others
 * open, and further contexts of a device.
 *
 * Streams order frees: the freeing stream may reuse a block at once. The pool makes any other
 * stream wait for the first, as the driver's pools do. A handle loses its addresses only when the
 * device has reached all frees there. A free outside any stream's order waits for an event of its
 * own or of the whole context. Only cuMemFree waits for the context itself.
 *
 * Any thread may call. Each device has a lock, and the wait for it is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order in which a call wants its memory, or gives it back. */
struct served_order {
	void *stream;
	bool ordered; /* false: at once, by the host */
};

/* Whether the pool has answered, in *ret_result; if not, the driver is to. */
bool served_alloc(void *address, size_t bytes, const struct served_order *order, int *ret_result);
bool served_free(uint64_t address, const struct served_order *order, int *ret_result);

struct served_block {
	uint64_t address, bytes;
};
/* The block of the pool around an address; of no bytes where none is.  False: the address is not
 * the pool's. */
bool served_find(uint64_t address, struct served_block *ret);

/* A pool's bytes on a device; zeros if there is none. */
struct served_counts {
	uint64_t used, used_peak;         /* by blocks, as asked for */
	uint64_t reserved, reserved_peak; /* handles */
	uint64_t idle;                    /* of them, that could be given back now */
};
void served_counts(int device, struct served_counts *ret);

/* Gives idle handles back, until `keep` bytes are reserved. */
void served_trim(int device, uint64_t keep);

/* Another device may read and write what this one has. */
void served_reach(int device, int reader);

/* Allocations in the order of streams are from a pool of the program's own, or are again from the
 * default one. */
void served_use_driver(int device, bool yes);

/* A stream ends: what was freed in its order is still to be waited for. */
void served_stream_ends(void *stream);

/* All blocks that were had in a context are gone with it. */
void served_context_ended(void *context);

void served_forget(void);
