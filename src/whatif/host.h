/* One program of a replay, and all of them: for replay.c and regulate.c. */
#pragma once

#include "share/arrival.h"
#include "whatif/inflight.h"
#include "whatif/replay.h"

#define EPOCH_NS 1000000000u /* when a replay begins: policies take date 0 for none */
#define POLL_NS  1000u       /* between two looks of a launch that waits */

enum host_state {
	HOST_RUNS,    /* does its step at at_ns */
	HOST_GATED,   /* asks again at at_ns, or when something changes */
	HOST_FULL,    /* its queue has no room */
	HOST_WAITS,   /* for its work */
	HOST_RETURNS, /* from a wait, at at_ns */
};

/* The work that an event stands for. */
struct host_event {
	uint32_t stream;
	uint64_t given, id;
};

struct host {
	const struct program *p;
	enum share_class class;
	unsigned client;
	enum host_state state;
	uint64_t at_ns; /* LAW_NEVER: something else has to happen first */
	size_t step;
	uint32_t sent;                     /* ops of the step */
	bool passed;                       /* the gate, in this step */
	uint32_t cap_sms;                  /* of this step; 0: all */
	uint64_t extra_ns;                 /* that the gate has taken of the host's time */
	uint64_t rounds;                   /* through the recording */
	uint64_t random;                   /* state of the arrivals */
	uint64_t due_ns;                   /* of the request at hand */
	uint64_t pending;                  /* ops that have not ended */
	uint64_t *given, *ended, *last_id; /* by stream */
	struct host_event *events;
	uint32_t wait_stream; /* ALL_STREAMS */
	uint64_t wait_given;
	/* Requests, as a member of the shared file counts them. */
	bool inside;
	uint64_t requests, next_ns;
	struct arrival arrival;
	uint32_t took[SHARE_BUCKETS];
	struct arrival_run run;
	uint64_t quiet; /* best effort's work when the request began, as in hook/sched/sched.c */
	uint64_t request[SHARE_RECENT];
	uint32_t fresh;
	/* The gate. */
	struct inflight work;
	struct share_grant grant;
	uint64_t since_ns; /* waits there; 0: not */
	uint64_t until_ns; /* the request that it waits for is expected to last */
	enum rule_reason reason;
	struct replay_result *result;
};

struct world {
	const struct replay *r;
	struct law *law;
	uint64_t now;
	uint64_t policy_ns; /* is asked again */
	size_t count;
	struct host hosts[REPLAY_PROGRAMS];
	struct policy_state policy;
	struct policy_view view;
	struct share_grant grants[SHARE_SLOTS];
	struct replay_results *results;
};

/* Asks the policy. */
void world_decide(struct world *w);

/* Whether the step may be sent now; else the host is gated. */
bool host_may_pass(struct world *w, struct host *h, const struct step *s);
void host_has_passed(struct world *w, struct host *h, const struct step *s);

/* Something has changed that those who wait at their gates would see. */
void world_wake_gated(struct world *w);
void host_wake_gated(struct world *w, struct host *h);

void host_begins_request(struct world *w, struct host *h);
void host_ends_request(struct world *w, struct host *h);
