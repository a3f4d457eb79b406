/*
 * Finds the steps of a recording in the first of these ways that gives any, and for all but the
 * first at least two:
 *
 *	- ranges that the program numbers, such as ProfilerStep#5
 *	- a process's work until an optimizer's step ends, as PyTorch marks it (Optimizer.step#…)
 *	- the work of the busiest process until a call waits for it, together with what follows that
 *	  launches little and lasts no time, until the next waits
 *	- from one launch of a kernel to the next, for kernels that come once in as many launches
 *	- from one range to the next of the same name, for ranges that are in no other
 *
 * All but the first are counted from 1. If ranges of several names are numbered, the name with the
 * longest total counts. If there are several optimizers, the one with the most frequent step
 * counts.
 */
#pragma once

#include "trace/meta.h"
#include "trace/trace.h"

struct step {
	uint64_t from, to; /* ticks */
	uint64_t launched; /* found by waits: when its first launch was called */
	uint64_t number;
	uint32_t process;
	uint32_t name; /* of its range: a string of the process; 0: it was found by waits */
	uint16_t kind; /* enum range_kind, with a name */
};

enum steps_found {
	STEPS_NONE,
	STEPS_NUMBERED,
	STEPS_OPTIMIZER,
	STEPS_WAITS,
	STEPS_KERNELS,
	STEPS_REPEATED
};

struct steps {
	ARRAY(struct step) v; /* by `from` */
	enum steps_found found;
	uint64_t name; /* hash of their ranges' name without the number; by waits: launches that are
			* too few for a step */
};

/* A launch that succeeded, or a call that waits. */
struct step_call {
	uint64_t begin, end; /* ticks */
	uint32_t process, tid;
	uint32_t function; /* launches: of its handle; 0: not known */
	bool waits;
};

struct step_calls {
	ARRAY(struct step_call) v; /* by end, and those around behind those inside */
};

/* 0 or -errno of the machine.  ret_calls: all such calls, which the caller frees; or NULL. */
int steps_load(const struct trace *t, const struct meta *m, struct step_calls *ret_calls,
	struct steps *ret_steps);
void steps_fini(struct steps *s);

/* Whether a range has its name from the program; and how long a name is without the number that
 * steps bear: ProfilerStep#5 and ProfilerStep#6 are ProfilerStep#. */
bool range_is_named(uint16_t kind);
size_t name_without_number(const char *name);

/* Whether a length is within a quarter of the usual one; and how many at the begin are not, where
 * that is the median of the second half: half of them at most.  room: for as many. */
bool step_is_usual(uint64_t length, uint64_t usual);
size_t steps_unusual(const uint64_t *length, size_t count, uint64_t *room);

/* How long a name is without what numbers it, if the rest says that the range is a request, as
 * "request 17" or "handle_request"; 0: it does not. */
size_t name_of_request(const char *name);

/*
 * How many at the begin are warm-up, by their lengths: as many as have to be left out for the mean
 * of the rest to be known best (MSER: White, Simulation 69(6), 1997), half of them at most.  Fewer
 * than STEPS_FEW have no such mean: of those, steps_unusual().
 */
#define STEPS_FEW 10u
size_t steps_warm_up(const uint64_t *length, size_t count);
