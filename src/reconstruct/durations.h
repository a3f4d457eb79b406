/*
 * Learns durations of work from the measured pieces.
 *
 * Each piece has keys, from the closest notion of equal work to wider ones. The closest measured
 * key answers a question and says how far it may be off. A line through measured sizes, a start-up
 * plus a time a byte, answers for memcpys and memsets of other sizes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

#define DURATION_LEVELS 3

struct duration_key {
	struct map_key level[DURATION_LEVELS]; /* the closest first */
	uint64_t bytes;                        /* of memcpys and memsets; else 0 */
	uint8_t line;                          /* memcpys and memsets: which of DURATION_LINES */
};
#define DURATION_LINES 16u

struct duration {
	uint64_t ns, sd_ns;
	double event_more_ns; /* that an event says of its like, in the mean … */
	double event_sd_ns;   /* … and how far one is from that; 0: not known */
	bool is_known;        /* something like it was measured */
	bool is_bound;        /* … of which is only known that it took no longer */
};

struct duration_value {
	uint32_t group;  /* number of its key */
	uint8_t quality; /* enum duration_quality */
	uint64_t ns, event_ns;
};

struct duration_line {
	double n, x, y, xx, xy; /* weighted sums */
};

struct durations {
	struct map groups; /* of all levels */
	ARRAY(struct duration_value) values;
	ARRAY(struct duration) of_group;
	ARRAY(uint64_t) work; /* all values once, for what is like nothing */
	struct duration_line lines[DURATION_LINES];
	struct duration usual;
};

/* How far a duration is to be believed. */
enum duration_quality {
	DURATION_MOST,  /* it took no longer */
	DURATION_EVENT, /* some microseconds off: where something short has exact ones they alone
			   count */
	DURATION_EXACT,
};

/* event_ns: what an event said of the same piece, where `ns` is exact; 0: there was none. */
void durations_add(struct durations *d, const struct duration_key *key, uint64_t ns,
	uint64_t event_ns, enum duration_quality quality);

/* When all are there, before the first question. */
void durations_settle(struct durations *d);

struct duration durations_get(const struct durations *d, const struct duration_key *key);
void durations_fini(struct durations *d);

/*
 * The time that events measure besides the work (excess.c), learnt from launches that were timed
 * both ways, apart for busy and idle streams. It depends on how a launch is made, so each kernel
 * has its own. A kernel never timed both ways has the usual value.
 */
struct excess_value {
	uint32_t who; /* number of a kernel, and whether the stream was idle */
	int64_t ns;
};

struct excess {
	struct map kernels;
	ARRAY(struct excess_value) values;
	ARRAY(int64_t) of_kernel; /* by who; EXCESS_NONE: too few */
	int64_t usual[2];         /* busy, idle */
};

void excess_note(struct excess *x, struct map_key kernel, bool idle, int64_t ns);
void excess_settle(struct excess *x);
int64_t excess_of(const struct excess *x, struct map_key kernel, bool idle);
void excess_fini(struct excess *x);
