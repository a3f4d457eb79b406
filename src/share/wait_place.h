/*
 * Decides by trial whether best effort waits in its calls or on the device. A program limited by
 * its host launches more when its calls return at once. Any other launches less behind holds, and
 * nothing here reads a clock or makes a call.
 */
#ifndef WEIR_SHARE_WAIT_PLACE_H
#define WEIR_SHARE_WAIT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct wait_place {
	bool holds;                        /* on the device, now */
	bool chosen;                       /* outside trials */
	uint32_t turn;                     /* of a trial, from 1; 0: there is none */
	uint64_t due_ns;                   /* when something is next; 0: nobody waits for anybody */
	uint64_t counts_ns, launches_then; /* since when launches count in this turn; 0: not yet */
	double rate[2];                    /* launches a ns, in calls and on the device */
};

/* launches: of best effort, ever.  can: there is somebody to wait for, and holds can be had. */
void wait_place_step(struct wait_place *a, uint64_t now_ns, uint64_t launches, bool can);

/* Requests are too slow behind holds. */
void wait_place_give_up(struct wait_place *a, uint64_t now_ns);

#endif
