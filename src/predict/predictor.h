/*
 * The interface between predict.h and predictors. Each predictor is one struct in a file of its own
 * (predictor_NAME.c) and in the list of predict.c.
 */
#pragma once

#include "predict/launch.h"
#include "predict/tables.h"

/* A question to a predictor: the launch and what follows from it by arithmetic. */
struct predict_question {
	const struct predict_launch *launch;
	const struct predict_device *device;
	uint64_t key;
	uint32_t seen; /* learning: how often this launch was seen before */
	uint64_t blocks;
	uint32_t threads; /* a block */
	uint32_t blocks_per_sm;
	float waves;
	float imbalance; /* blocks of the SM that has most, as a multiple of the mean */
	float bytes_ns; /* the least time for the bytes, or the yardstick's; no less than any kernel
			 */
	float flops_ns; /* the least time for the FLOPs, 0 when they are not known */
	float bound_ns; /* the least time that what is known allows: that of the bytes, or that of
			   the FLOPs on the SM that has most blocks */
};

/* One way to tell a time.  ask() fills tier, t50_ns, t90_ns, confidence and class_only, and is
 * false when it does not know; learn() may be NULL.  Both are in time without slowdown: what the
 * device took is divided by it before learn() sees it. */
struct predictor {
	bool shaped; /* the question must have its shape, else launch, device and key are enough */
	bool (*ask)(const struct predict *p, const struct predict_question *q,
		struct predict_answer *a);
	void (*learn)(struct predict *p, const struct predict_question *q,
		const struct predict_sample *s);
};

extern const struct predictor predictor_history, predictor_shape, predictor_sibling,
	predictor_model, predictor_bound;

/* predictor_sibling.c */
/* log2(time / bound) by the siblings alone, and how like the nearest of their shapes is (0 to 1);
 * false when they say nothing. */
bool sibling_ratio(const struct predict *p, const struct predict_question *q, float *ret_ratio,
	float *ret_nearest);

/* predictor_shape.c */
/* The kernel's slot for launches of which so much is known (launch_known_cost()), or NULL. */
const struct kernel_slot *shape_slot(
	const struct predict *p, const struct predict_kernel *k, unsigned known_cost);

/* "linear", "bound", "nearest", "ratio", "power"; "none" before there are enough shapes. */
const char *fit_kind_word(enum fit_kind kind);

/* predictor_history.c: launches that ran before, one cache line each. */
/* How often the key was seen; 0 when it is not there. */
uint32_t history_seen(const struct predict *p, uint64_t key);

/* The entry's values are those of another device of the same kind: see predict_transfer(). */
void history_transfer(struct entry *e);

/* The place at which the key's entries begin. */
static inline const struct entry *history_home(const struct predict *p, uint64_t key)
{
	return &tables_entries(p->tables)[key & p->mask];
}

bool history_ask(
	const struct predict *p, const struct predict_question *q, struct predict_answer *a);

/* question.c: from a launch its shape and the least time that it can take. */
/* Geometry, occupancy and bound; false when the device refuses the launch. */
bool question_shape(struct predict_question *q);

/* Into the answer, for a launch that question_shape() took. */
void question_fit(const struct predict_question *q, struct predict_answer *a);

/* The launch's FLOPs and bytes where they are known and make sense; false where not. */
bool launch_bytes(const struct predict_launch *l, double *ret_bytes);
bool launch_flops(const struct predict_launch *l, double *ret_flops);

/* How much is known: 0 neither, 1 one of the two, 2 both. */
unsigned launch_known_cost(const struct predict_launch *l);
