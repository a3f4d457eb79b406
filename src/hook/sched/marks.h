/*
 * Measures a best-effort program's work in flight in predicted device time. An event without
 * timing, a mark, follows a sixteenth to half of a budget of work. When two marks complete during
 * polling, the time between them is the time of that work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hook/core/lock.h"
#include "hook/sched/costs.h"
#include "share/segment.h"

#define MARKS      128u
#define MARK_COSTS 16u /* calls that one mark remembers */

struct mark {
	void *event, *stream;
	uint64_t ns;        /* predicted, of what it stands behind since the mark before */
	uint64_t capped_ns; /* of that, on part of the SMs */
	uint64_t first_ns;  /* when the first of them was sent: CLOCK_MONOTONIC */
	uint64_t requests;  /* of latency programs, begun by then */
	bool first_idle;    /* nothing of this program was in flight then */
	bool first_alone;   /* and no latency program was active */
	uint32_t launches;
	uint32_t calls; /* without repeats, which are counted with the next one */
	int per_thread;
	float slower; /* than at full width: on part of the SMs */
	bool teaches; /* nothing in it was capped, or is of another stream */
	bool alike;   /* all calls have one cost */
	struct cost *cost[MARK_COSTS];
};

/* The other programs that may have the device. */
struct others {
	const struct share_file *file;
	const struct share_device *device;
	uint32_t index; /* of this program's own slot */
};

/* Behind how much predicted work a mark is recorded.  is_dated: when it will have ended is kept,
 * for which each launch reads the clock. */
struct quantum {
	uint64_t ns;
	bool is_dated;
};

struct marks {
	struct lock lock;
	const void *context;        /* that the events are of */
	uint32_t head, tail;        /* both grow */
	_Atomic uint32_t measuring; /* head behind the last mark of what was never measured */
	_Atomic bool next_measures; /* there is such in next */
	uint32_t stuck;   /* tail + 1 when somebody waited for it in vain; 0: nobody did */
	struct mark next; /* what was submitted since the last mark */
	_Atomic uint64_t submitted_ns, retired_ns; /* predicted work */
	_Atomic uint64_t capped_ns;                /* of what is not retired: on part of the SMs */
	_Atomic uint64_t ends_ns;                  /* when all is expected to be done */
	/* The last mark that was seen to come, and what was going on then. */
	uint64_t came_ns, not_yet_ns;
	uint64_t requests; /* of latency programs, begun by then */
	void *came_stream;
	bool came_alone; /* none was active */
	struct mark ring[MARKS];
};

/* Work that is left to be done at full width.  If nothing is capped, this is the time until it is
 * expected to be done: work that runs now is half done by and by. */
uint64_t marks_inflight(const struct marks *m, uint64_t now);

static inline uint64_t marks_capped(const struct marks *m)
{
	return load_relaxed(&m->capped_ns);
}

/* A launch that has succeeded; records a mark when a quantum is together.  Counts what could
 * not be marked. */
void marks_add(struct marks *m, struct share_slot *slot, const struct others *others,
	const struct gated *g, struct quantum quantum);

/* A mark behind what has none, so that it can be waited for and what comes next is measured by
 * itself. */
void marks_cut(struct marks *m, struct share_slot *slot, const struct others *others);

/* The same before its stream goes: an event can't be recorded there any more. */
void marks_stream_ends(struct marks *m, struct share_slot *slot, const void *stream);

/* Asks after the oldest; learns.  others: who else is on the device. */
void marks_ask(struct marks *m, struct share_slot *slot, const struct others *others);

/* Whether something is in flight that was never measured: who asks after it measures it. */
bool marks_are_measuring(const struct marks *m);

/* Whether there is room for more. */
bool marks_have_room(const struct marks *m);

/* All is done. */
void marks_retire_all(struct marks *m);

/* Their context ends; has ended, with all that was made there. */
void marks_leave(struct marks *m);
void marks_forget(struct marks *m);
