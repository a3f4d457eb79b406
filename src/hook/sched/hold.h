/*
 * Waits on the device in place of the host. A hold is a kernel of one thread in front of each
 * grant.hold_ns of a stream's predicted best-effort work. It reads the shared file and ends when no
 * latency program is inside a request.
 *
 * The program's calls return at once, so it works ahead as it does alone. A hold ends by itself
 * after --max-wait, and later holds then ignore the same requests. Holds need MPS and a program
 * with one device. They are prepared while nothing of the program is on the device, since loading a
 * module may wait. If anything is missing, launches wait in their calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/segment.h"

enum hold_state { HOLD_NONE, HOLD_MAKING, HOLD_READY, HOLD_IMPOSSIBLE };

/* Holds of a program on a device. */
struct hold {
	_Atomic uint32_t state; /* enum hold_state */
	_Atomic uint32_t put,
		ended; /* holds; more than there is room for are not all seen to end */
	void *context, *module, *function;
	struct share_file *file; /* mapped for the device alone */
	struct hold_page *page;
	uint64_t file_at, page_at; /* where the device sees them */
};

/* The words that a hold reads, and how long it waits. */
struct hold_of {
	struct share_file *file;
	struct share_device *device;
	struct share_slot *slot;
	uint64_t max_wait_ns;
};

/* Holds on a stream. */
struct hold_stream {
	uint64_t ns;       /* predicted work since the last hold */
	uint64_t requests; /* begun when that was launched, plus 1 */
};

/* After a call that has waited for all of the program's work. */
void hold_prepare(struct hold *h, const struct hold_of *of);

/* Whether a launch in the current context may go ahead, behind a hold. */
bool hold_is_ready(const struct hold *h, const struct share_slot *slot);

/* In front of a launch of so much predicted work: a hold, when the stream needs one.  False: it
 * could not be launched. */
bool hold_put(struct hold *h, const struct hold_of *of, struct hold_stream *s, uint64_t ns,
	void *stream, int per_thread);

/* Adds the waits of holds since the last time to the slot's counts. */
void hold_collect(struct hold *h, const struct hold_of *of);

/* The context ends. */
void hold_leave(struct hold *h, const struct hold_of *of);
