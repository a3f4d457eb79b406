/*
 * A control loop for the work that best effort may have in flight, so that requests keep their
 * slowdown. It is a pure function of its memory and the observations.
 *
 * The time alone is measured: best effort is held in short windows at random moments, and requests
 * then have the GPU to themselves. Requests that meet no best-effort work count too. The budget
 * follows the slower of the median and the p90, each as a multiple of alone. The p99 joins when
 * there are enough requests. Nothing here reads a clock or makes a call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/segment.h"

#define SLOWDOWN_DEFAULT 1.15
#define SLOWDOWN_LEAST   1.01
#define SLOWDOWN_MOST    100.0
#define SLOWDOWN_KEPT    256u

/* Durations of the newest requests of one kind. */
struct slowdown_times {
	float ns[SLOWDOWN_KEPT];
	uint32_t count; /* ever */
};

/* A program's known times from before. */
struct slowdown_alone {
	double p50_ns, p90_ns, p99_ns; /* 0: nothing */
	double run; /* requests in quick succession, as the tokens of an answer, in the mean */
};

/* One latency program. */
struct slowdown_program {
	uint64_t who; /* of whom this is remembered; 0: nobody */
	struct slowdown_times alone, beside;
	struct slowdown_alone known;
	uint32_t settled;           /* beside.count when the setting changed last */
	uint32_t free;              /* of those since, that were alone all the same */
	uint32_t tails;             /* beside.count when the 99th percentile was looked at last */
	bool is_regular;            /* its requests don't queue */
	double tail;                /* share of what is allowed that the p99 leaves, up to 1 */
	double run;                 /* as above, of the newest; 0: none yet */
	double inside_ns, requests; /* over about the last second; a run is one */
	double windows_ns;          /* in which it could be alone */
	bool was_elsewhere; /* measured before, but under MPS and now without, or the other way */
	struct share_steer steer; /* as weir sched status tells it */
};

#define SLOWDOWN_SQUEEZES 4u

struct slowdown {
	uint64_t now_ns;              /* of the last step; 0: none yet */
	double budget_ns;             /* 0: the first one still */
	uint32_t squeeze;             /* of caps: 0 as they are, up to SLOWDOWN_SQUEEZES: none */
	bool window;                  /* best effort is held */
	double credit_ns;             /* that windows may take */
	double window_ns;             /* how long the open one has lasted */
	double windows_ns, passed_ns; /* of all, and of all time with best effort */
	uint32_t window_saw;          /* requests alone in it */
	uint64_t random;
	uint64_t looked_ns, squeezed_ns;
	double ceiling_ns; /* a budget that was too much; until when that is believed */
	uint64_t ceiling_until_ns;
	bool had_best_effort;
	bool grew;  /* by the last move */
	bool moved; /* the budget is no longer the first one */
	struct slowdown_program program[SHARE_SLOTS];
};

/* The observations of one latency program since the step before. */
struct slowdown_seen {
	uint64_t who;            /* tells it from another in the same slot; 0: there is none */
	double target;           /* times as long as alone */
	const uint64_t *request; /* as in struct share_recent */
	uint32_t count;
};

struct slowdown_input {
	uint64_t now_ns;
	bool has_best_effort, has_caps; /* best effort is there; some of its work is capped */
	bool is_fixed;                  /* the setting is not to be moved: only looked at */
	double drains_ns; /* so long what best effort has launched goes on in a window */
	double first_ns, least_ns, most_ns; /* the first budget, and between which */
	struct slowdown_seen seen[SHARE_SLOTS];
};

/* Afterwards budget_ns, squeeze and window are as they are to be. */
void slowdown_step(struct slowdown *s, const struct slowdown_input *in);

/* Sets a program's times alone, from a file of before; they hold until they are measured.  Times
 * elsewhere, under MPS or without it, only make windows rarer. */
void slowdown_remember(
	struct slowdown_program *p, const struct slowdown_alone *known, bool was_elsewhere);

/* Its measured times; false: too few requests were. */
bool slowdown_learnt(const struct slowdown_program *p, struct slowdown_alone *ret);

/* Those of the requests beside best effort that were hardly delayed, as all three; false: too few.
 */
bool slowdown_guess(const struct slowdown_program *p, struct slowdown_alone *ret);

/* Whether what it measured is of the requests that it is there for: a program that starts has
 * others, before best effort comes. */
bool slowdown_has_begun(const struct slowdown_program *p);

/* How long its requests take when nothing delays them, as far as that is known; 0: it is not.  A
 * run, in which best effort waits for the last, is one. */
double slowdown_lasts(const struct slowdown_program *p);

/* The same of each request, also in a run. */
double slowdown_each_lasts(const struct slowdown_program *p);

/* The least budget that is worth trying for requests that take `each_ns` each.  Of a run, best
 * effort may delay each: it gets in wherever the next is late. */
double slowdown_least(double each_ns, double target);

/* The multiple of its time alone that a request may take beside best effort, so that the 99th
 * percentile, with the wait for requests before it, is `target` times that of alone; load: share of
 * the time inside requests. */
double slowdown_allowed(double target, double load);
