/*
 * A zoo of kernels for tests: each obeys a law that is known here and not to what is tested, plus
 * noise.  A stream of launches asks for few of them often and for many rarely, as programs do.
 */
#pragma once

#include "predict/predict.h"

#define ZOO_KERNELS 40
#define ZOO_SHAPES  24 /* of each kernel */

struct zoo {
	uint64_t random;
	double noise; /* standard deviation of log(time) */
	struct predict_device device;
	struct predict_kernel kernel[ZOO_KERNELS];
	double efficiency[ZOO_KERNELS];
	char name[ZOO_KERNELS][64];
};

/* The zoo of a seed; noise of 0.01 is one per cent. */
void zoo_init(struct zoo *z, uint64_t seed, double noise);

/* Kernel k in its shape-th shape: a launch and the time that it takes without noise. */
double zoo_launch(const struct zoo *z, unsigned k, unsigned shape, struct predict_launch *ret_l);

/* The next launch of the stream, as it ran. */
struct predict_sample zoo_next(struct zoo *z, uint64_t order);

double zoo_uniform(struct zoo *z); /* 0 to 1 */
double zoo_normal(struct zoo *z);
