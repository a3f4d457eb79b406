/*
 * Replays recorded programs on one device in virtual time. The hosts of src/whatif/recording.h
 * submit work to the law of a shared GPU (src/law). Under a policy each launch asks
 * src/share/rule.h, and the policy is asked like a live arbiter's.
 *
 * Nothing reads a clock, and random numbers come from the seed, so equal questions have equal
 * answers everywhere. A latency program sends its recorded requests by its arrivals and repeats
 * them. A best-effort program repeats its recording. The replay ends when the latency programs have
 * their answers, or without any when each program has run once.
 */
#pragma once

#include "law/law.h"
#include "share/policy.h"
#include "whatif/recording.h"

#define REPLAY_PROGRAMS LAW_CLIENTS

enum arrival_kind {
	ARRIVE_RECORDED, /* after the pause that was recorded; anew, about as long */
	ARRIVE_CLOSED,   /* after a pause of time_ns on average, that varies a little */
	ARRIVE_PERIODIC, /* each time_ns, whether the last is answered or not */
	ARRIVE_POISSON,  /* at random, time_ns apart on average */
};

struct arrivals {
	enum arrival_kind kind;
	uint64_t time_ns;
	uint64_t seed;
};

struct replay_program {
	const struct program *recorded;
	enum share_class class;
};

struct replay {
	struct law_device device;
	const struct policy *policy; /* NULL: nobody asks anybody */
	struct policy_params params;
	struct arrivals arrivals;
	uint64_t requests;    /* of each latency program */
	uint64_t max_wait_ns; /* no launch waits longer */
	uint64_t most_ns;     /* gives up then */
	struct durations
		*ends; /* NULL, or where the ends of all ops go, from 0 on; of one program */
	size_t count;
	struct replay_program programs[REPLAY_PROGRAMS];
};

struct replay_result {
	struct durations latency; /* of the requests that count, in order of length; from when each
				     was due */
	uint64_t work_ns;         /* device time alone of what it got done … */
	uint64_t ops;
	uint64_t requests; /* answered, also those that don't count */
	uint64_t waits, waited_ns, expired, capped;
};

struct replay_results {
	uint64_t end_ns;
	uint64_t launches; /* of all */
	bool finished;     /* false: it gave up */
	struct law_totals totals;
	struct replay_result programs[REPLAY_PROGRAMS];
};

/* 0, or -EINVAL for a device that can't be; replay_fini() follows in either case. */
int replay_run(const struct replay *r, struct replay_results *ret_results);
void replay_fini(struct replay_results *results);
