/*
 * Policies as pure functions that decide which program may run when and where. A device's arbiter
 * asks one some hundred times a second, and so do simulations and tests. Programs then decide
 * launch by launch from its grants (rule.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "share/segment.h"
#include "share/slowdown.h"

/*
 * Tells whether a latency program rests: nothing has been asked of it for much longer than its
 * requests are apart, so that hardly any of them comes to find it so. Pure.
 */
#define REST_GAPS                                                                                  \
	6u /* of requests by chance, fewer than one in 100 come after so many mean ones            \
	    */
#define REST_LEAST_NS 200000000u
#define REST_MEMORY   8u /* requests that the mean gap is of */

struct rest {
	uint64_t who; /* of whom this is remembered */
	uint64_t requests, since_ns;
	double gap_ns; /* mean pause before a request; 0: none yet */
};

/* requests: ever begun. */
static inline bool rest_look(
	struct rest *r, uint64_t who, uint64_t requests, bool inside, uint64_t now_ns)
{
	if (r->who != who || requests < r->requests || now_ns < r->since_ns)
		*r = (struct rest){ .who = who, .requests = requests, .since_ns = now_ns };
	const double passed = (double)(now_ns - r->since_ns);
	const uint64_t fresh = requests - r->requests;
	if (fresh) {
		const double weight = fresh < REST_MEMORY ? (double)fresh / REST_MEMORY : 1;
		r->gap_ns += weight * (passed / (double)fresh - r->gap_ns);
		r->requests = requests;
	}
	if (fresh || inside)
		r->since_ns = now_ns;
	return !fresh && !inside && passed >= REST_LEAST_NS && passed >= REST_GAPS * r->gap_ns;
}

/* One program as the policy sees it. */
struct policy_program {
	bool here; /* the slot is taken */
	enum share_class class;
	uint32_t weight;
	uint32_t sms;      /* most that it may use; 0: all */
	uint32_t widest;   /* SMs that its widest launch fills; 0: not known, a graph say */
	bool inside;       /* a request, or work that is not done */
	uint64_t begun_ns; /* of that request */
	uint64_t deadline_ns, target_p99_ns, max_wait_ns;
	uint64_t who;            /* tells it from another in the same slot */
	double slowdown;         /* that is asked for; 0: as params have it */
	const uint64_t *request; /* fresh ones, as in struct share_recent */
	uint32_t fresh;
	uint64_t retired_ns;         /* predicted device time that is done, ever growing */
	uint64_t requests, launches; /* ever */
	uint64_t lasts_ns;           /* its requests, when nothing delays them; 0: not known */
	uint64_t p99_ns; /* of its requests since the last answer but some; 0: too few */
};

struct policy_view {
	uint64_t now_ns;
	uint64_t requests;  /* of latency programs, ever begun, read before all else */
	uint32_t sms, step; /* of the device; what a number of SMs is a multiple of */
	bool mps;           /* programs are resident together, caps are of use */
	struct policy_program program[SHARE_SLOTS];
};

struct policy_params {
	double min_share;       /* of the device time, that best-effort programs get at least */
	uint64_t budget_ns;     /* in flight, without another reason */
	uint64_t full_below_ns; /* t90 that runs at full width while no latency program is active;
				   0: by the budget */
	uint32_t cap_sms;       /* for what is capped; 0: what the latency programs leave */
	uint64_t hold_ns;       /* hold on the device in front of so much work; 0: in calls */
	double slowdown;        /* of requests, times as long as alone */
	uint64_t alone_ns;      /* of best effort in flight while no latency program is there, or
				   all rest */
};

/* A policy's state; zeros at the start. */
struct policy_state {
	uint64_t window_ns; /* when the last look at shares was */
	uint64_t retired_then[SHARE_SLOTS];
	uint64_t paid_until_ns[SHARE_SLOTS]; /* best effort goes on below its floor */
	double virtual_ns[SHARE_SLOTS];      /* work by weight, for fair */
	uint64_t seen_ns[SHARE_SLOTS];       /* retired_ns when virtual_ns was brought up to date */
	uint64_t still_ns[SHARE_SLOTS];      /* how long it might have gone on, and did not */
	bool held[SHARE_SLOTS];              /* by the last decision of fair */
	uint32_t turn;       /* whose turn it is, of fair: a slot plus 1; 0: nobody's */
	uint64_t charged_ns; /* when it was charged for it last */
	double tightness;    /* of the control loop, 1: as params say; smaller: less waits */
	uint64_t tuned_ns;
	struct rest rest[SHARE_SLOTS];
	bool rests;               /* every latency program does */
	struct slowdown slowdown; /* of fit */
	bool holds;               /* best effort waits on the device */
	uint64_t calls_until_ns;  /* till then it does not: requests were too slow */
};

/* again_ns: when it wants to be asked again, at the latest. */
typedef void policy_fn(const struct policy_view *v, const struct policy_params *p,
	struct policy_state *s, struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns);

struct policy {
	const char *name, *help;
	policy_fn *decide;
};
extern const struct policy policies[]; /* the last has no name */

/* Checks each answer for the programs that are there. */
void policy_check(const struct policy_view *v, const struct share_grant grants[SHARE_SLOTS],
	uint64_t again_ns);

/* NULL when there is none of that name. */
const struct policy *policy_find(const char *name);

#define POLICY_DEFAULT "fit"

/* That which a person has chosen, or the default. */
static inline const struct policy *policy_of(const struct share_file *f)
{
	char name[sizeof f->arbiter.policy + 1] = { 0 };
	memcpy(name, f->arbiter.policy, sizeof f->arbiter.policy);
	const struct policy *p = policy_find(name);
	return p ? p : policy_find(POLICY_DEFAULT);
}

static inline void policy_set(struct share_file *f, const struct policy *p)
{
	memset(f->arbiter.policy, 0, sizeof f->arbiter.policy);
	memcpy(f->arbiter.policy, p->name, strlen(p->name));
}

extern const struct policy_params policy_params_default;

/* The default, but for what a person has asked for. */
struct policy_params policy_params_of(const struct share_tuning *t);
