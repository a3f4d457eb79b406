/*
 * Places each GPU activity of a program in time, from the order of submission, its duration, and a
 * few measured moments.
 *
 * Pure: steps in, times out. A stream does its steps in order. A step begins when it has reached
 * the device, the step before it has ended, and its dependencies have ended. Two kinds of measured
 * moments correct that: a step with measured begin and end, and a host that waited and continued.
 * Steps between two moments stretch or shrink to fit, by the uncertainty of each duration.
 *
 * For any input, no step begins before its call or before the steps that it follows have ended.
 * None ends after the return of a host that waited for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

#define PLAY_NONE UINT32_MAX

/* One thing that a stream does; without a duration a mark: an event, or a wait for one. */
struct play_step {
	uint64_t called_ns;   /* when its call began: those of a program stand in this order */
	uint64_t returned_ns; /* when the call had returned */
	uint64_t dur_ns;
	uint64_t dur_sd_ns; /* standard deviation of dur_ns: how far it may be off */
	uint64_t start_ns;  /* measured, with is_measured */
	uint64_t end_ns;
	uint32_t stream;
	bool is_mark, is_measured;
	bool blocks; /* the call returns when the step has ended */
};

/* `after` does not begin before `before` has ended; before < after.  In the order of `after`. */
struct play_edge {
	uint32_t before, after;
};

/* The host was called, returned, and knew by then that these steps of its program had ended:
 * waited[first], … of the program. */
struct play_wait {
	uint64_t called_ns, returned_ns;
	uint32_t first, count;
};

/* How long things take that are no work; see play_learn(). */
struct play_delays {
	int64_t reach_ns;    /* from the return of a launch to its begin on an idle stream: < 0 when
			      * it begins before */
	uint64_t behind_ns;  /* from the end of a step to the begin of the next in a busy stream */
	uint64_t return_ns;  /* from the end of work to the return of who waited for it */
	uint64_t measure_ns; /* standard deviation of a measured moment */
};

struct play_program {
	ARRAY(struct play_step) steps;
	ARRAY(struct play_edge) edges;
	ARRAY(struct play_wait) waits; /* in the order of called_ns */
	ARRAY(uint32_t) waited;        /* steps, the last of each stream that was waited for */
	uint32_t streams;
	struct play_delays delays;
};

struct play_time {
	uint64_t start_ns, end_ns;
	uint64_t sd_ns;  /* standard deviation of where it lies */
	bool is_behind;  /* began when the step before it in its stream had ended */
	bool is_idle;    /* began when it reached the device: nothing was in front of it */
	bool is_bounded; /* was moved, to have ended when the host knew that it had */
};

/* The usual delays on a device of a data centre, until something is learnt. */
extern const struct play_delays play_usual;

/* ret_times: one a step. */
void play(const struct play_program *p, struct play_time *ret_times);

/* The delays as the measured steps show them; `times` are of a play(), with the same steps. */
struct play_delays play_learn(const struct play_program *p, const struct play_time *times);

void play_program_fini(struct play_program *p);
