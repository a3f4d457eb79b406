/*
 * The data that the search for the path shares: the threads with their known activity, and the
 * dependencies. Internal to src/path.
 */
#pragma once

#include "path/path.h"

#define NONE UINT32_MAX

/* An activity that begins so soon after another may have waited for it. */
#define HANDOVER_NS       10000u
#define HANDOVER_USUAL_NS 1000u /* where the recording does not tell */

/* A call that takes so long may have waited for an activity: it then returned sooner than that
 * after its end. */
#define LONG_CALL_NS 20000u

enum mark_kind {
	MARK_MOMENT,   /* the begin or end of a range */
	MARK_CALL,     /* a call that waits for no device */
	MARK_MAY_WAIT, /* one that does so if a device has work: it frees memory, say */
	MARK_WAIT      /* a call that returns when something is done */
};

/* A time at which a thread is known to have run, or to have waited in a call. */
struct mark {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t activity;  /* whose end it waits for, or NONE */
	uint16_t fn;        /* of the call; 0: a range */
	uint8_t kind;       /* enum mark_kind */
	bool host_function; /* not that end, but a host function behind it in the stream */
};

/* A moment at which a lane may have made another go on: the end of a mark. */
struct edge {
	uint64_t ns;
	uint32_t mark;
};

/*
 * One thread, or several that are never in calls at the same time: those hand work to each other,
 * and count as one.  The host functions that a lane puts into streams are a lane, too: each is a
 * mark that waits.
 */
struct lane {
	uint32_t process;
	uint32_t owner;           /* of host functions: the lane that launches them; else NONE */
	ARRAY(struct mark) marks; /* apart from each other, by time */
	ARRAY(struct edge) edges; /* by time */
};

enum order_kind {
	ORDER_LAUNCH,
	ORDER_RECORD,
	ORDER_WAIT_EVENT,
	ORDER_HOST_FUNCTION,
	ORDER_SYNC_STREAM,
	ORDER_SYNC_EVENT,
	ORDER_SYNC_ALL
};

/* A call that puts something into a stream, or waits for what is there. */
struct order {
	uint64_t start_ns;
	uint64_t stream, event; /* handles; UINT64_MAX: not recorded */
	uint32_t number;        /* of the stream, or NO_STREAM: only the handle is known */
	uint32_t thread;
	uint8_t kind; /* enum order_kind */
};

/* Activities by their end. */
struct ended {
	uint64_t end_ns;
	uint32_t activity;
};

/* Whether a lane makes another go on at a place; always: nearly each idle gap there ended so. */
enum wakes { WAKES_NOT, WAKES_MAYBE, WAKES, WAKES_ALWAYS };

/* Whether the recording fits two causes.  CLOSE: either may be it this time.  WAKES: the recording
 * does not show whether a lane makes another go on at this place at all. */
enum doubt { DOUBT_NONE, DOUBT_CLOSE, DOUBT_WAKES };

struct host {
	const struct path_input *in;
	ARRAY(struct lane) lanes;
	uint32_t *lane_of; /* by thread */
	ARRAY(struct order) orders;
	struct ended *ended;
	/* From one activity to the next in a stream, where nothing else is waited for: the mean,
	 * and what nearly all take. */
	uint64_t handover_ns, handover_least_ns, handover_most_ns;
	/* From a call to the activity that it launches, where that waits for nothing else: what
	 * nearly all take.  Most 0: not known. */
	uint64_t launch_least_ns, launch_most_ns;
	uint32_t *previous; /* by activity: the one before in the same stream, or NONE */
	uint32_t *awaits;   /* by activity: that of another stream for which it waits, or NONE */
	bool *behind_host;  /* by activity: a host function stands in front of it in the stream */
	struct map places;  /* (lane, call before, call behind) to where a lane may wait */
	/* By lane: the least and the longest time from what woke it to its next call. */
	uint64_t *soonest_ns, *latest_ns;
	uint8_t *wakes; /* enum wakes, by place * lanes + the lane that wakes; or NULL */
};

/* The cause that made a lane go on to one of its marks. */
struct cause {
	uint32_t lane, mark; /* mark NONE: nothing before */
};

/* Reads what threads did; a lane for each.  0 or -errno. */
int host_read(struct host *h);

/* Finds the order of activities, and which ended each wait. */
void host_order(struct host *h);

/* Joins threads that take turns; then, once waits are known, finds who wakes whom.
 */
void host_join_lanes(struct host *h);
void host_find_wakes(struct host *h);

/* The likelier one; or where the recording fits two, and `other`, the other one. */
struct cause host_cause(
	const struct host *h, uint32_t lane, uint32_t mark, bool other, enum doubt *ret_doubt);

/* The last mark of the lane that had begun at that time, or NONE. */
uint32_t host_mark_at(const struct host *h, uint32_t lane, uint64_t ns);

/* The activity whose end let the mark's call return, or NONE: it had ended before. */
uint32_t host_waited(const struct host *h, const struct mark *m);

/* The activity for whose end another waited, or NONE: nothing but its launch. */
uint32_t host_behind(const struct host *h, uint32_t activity);

/* How much of the time from the first activity's start to the last one's end a host that takes no
 * time saves. */
void host_replay(const struct host *h, uint64_t *ret_saved_ns);
