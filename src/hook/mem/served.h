/*
 * The pool (weir run --pool): blocks of device memory served by this library, from one range of
 * addresses a device with handles behind it (src/pool/pool.h).  It answers for cuMemAlloc and
 * cuMemAllocAsync; what it can't do, the driver does: captured allocations, pools of the program's
 * own, the default stream of a thread, memory that others are to open, other contexts of the device
 * than the first that asked.
 *
 * Frees are ordered by streams: what was freed in one may be had in the same at once.  Where
 * another needs it, that one is made to wait for the first, as the driver's own pools do; a handle
 * loses its addresses only when the device has come to all frees there.  A free that no stream's
 * order stands for (in a thread's own stream, one too many, or while another stream is captured) is
 * behind an event of its own or of the whole context: no free but cuMemFree waits for the context.
 *
 * Any thread; a lock for each device that is waited for only for a bounded time.
 */
#ifndef WEIR_HOOK_MEM_SERVED_H
#define WEIR_HOOK_MEM_SERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a call wants its memory, or gives it back. */
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

/* What it has on a device, in bytes; zeros where there is none. */
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

#endif
