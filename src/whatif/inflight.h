/*
 * The injected library's knowledge of its own work in flight (src/hook/sched/marks.h), in virtual
 * time. It has the submitted predicted device time, the marks behind parts of it, and the expected
 * end. Nothing is learnt, because the predictions are those of the recording.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/rule.h"

#define INFLIGHT_MARKS 64u

/* Behind the `given`-th op of a stream. */
struct inflight_mark {
	uint64_t ns, capped_ns, given;
	uint32_t stream, launches;
};

struct inflight {
	uint64_t submitted_ns, retired_ns, capped_ns, ends_ns;
	uint32_t head, tail;
	struct inflight_mark next, ring[INFLIGHT_MARKS];
};

/* A launch as it was let pass. */
struct inflight_launch {
	uint64_t took_ns; /* predicted */
	uint64_t given;   /* ops of its stream, with this one's */
	uint32_t stream;
	bool capped;
};

uint64_t inflight_left(const struct inflight *g, uint64_t now);

/* Whether a mark was recorded. */
bool inflight_add(
	struct inflight *g, const struct inflight_launch *l, uint64_t now, uint64_t budget_ns);
bool inflight_cut(struct inflight *g);

/* ended: ops by stream that have. */
void inflight_poll(struct inflight *g, const uint64_t *ended, uint64_t now);
void inflight_retire_all(struct inflight *g);

/* The first moment at which time alone may change a verdict; UINT64_MAX: it can't. */
uint64_t inflight_patience(const struct inflight *g, const struct share_grant *grant,
	const struct rule_view *v, const struct rule_launch *l, enum rule_reason reason);
