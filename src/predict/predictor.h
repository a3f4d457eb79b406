/*
 * The interface between predict.h and predictors. Each predictor is one struct in a file of its own
 * (predictor_NAME.c) and in the list of predict.c.
 */
#pragma once

#include "predict/launch.h"

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

/* In the order in which they are asked. */
extern const struct predictor *const predictors[];
extern const size_t predictor_count;
