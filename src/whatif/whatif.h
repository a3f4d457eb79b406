/*
 * Simulates how recorded programs would share a GPU: a replay (src/whatif/replay.h) for each policy
 * and way of sharing, and its results beside each program alone.
 */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "whatif/replay.h"

#define WHATIF_WAYS 24u

/* Given back by whatif_fini(); what is asked for is filled in before whatif_run(). */
struct whatif {
	size_t count;
	struct replay_program programs[REPLAY_PROGRAMS];
	struct law_device device;
	bool sms_assumed; /* no recording says how many the device has, or more than can be replayed
			   */
	struct arrivals arrivals;
	uint64_t
		requests; /* of each latency program; 0: as many as it has recorded, 100 at least */
	const struct policy *policies[8];
	size_t policy_count; /* 0: all but edf, which without deadlines is strict */

	/* The results. */
	struct whatif_alone {
		struct replay_results results;
		struct durations ends; /* when each op of one round had ended; of best effort */
	} alone[REPLAY_PROGRAMS];
	struct whatif_way {
		const struct policy *policy; /* NULL: none, as the driver shares */
		enum law_sharing sharing;
		bool both; /* the other way of sharing has the same answer */
		struct replay_results results;
	} ways[WHATIF_WAYS];
	size_t way_count;
};

/* 0 or -errno with a sentence. */
int whatif_run(struct whatif *w, struct error *err);
void whatif_fini(struct whatif *w);

static inline bool whatif_is_latency(const struct whatif *w, size_t program)
{
	return w->programs[program].class == CLASS_LATENCY;
}

/* For a latency program: how long its requests took; as a multiple of alone. */
uint64_t whatif_latency(const struct replay_results *r, size_t program, double q);
double whatif_slowdown(
	const struct whatif *w, const struct replay_results *r, size_t program, double q);

/* For a best-effort program: its rate as a share of its rate alone. */
double whatif_share(const struct whatif *w, const struct replay_results *r, size_t program);

void whatif_put_text(const struct whatif *w, FILE *out, bool colour);
void whatif_put_json(const struct whatif *w, FILE *out);
