/*
 * Least squares with non-negative coefficients, since times do not shrink with work. It solves the
 * normal equations for a few terms (Lawson and Hanson 1974, chapter 23, and Bro and De Jong 1997).
 */
#pragma once

#include <stdint.h>

#define NNLS_TERMS 10

/* Sums over the observations: of products of terms, and of terms times the target. */
struct normal {
	double a[NNLS_TERMS][NNLS_TERMS];
	double b[NNLS_TERMS];
};

/* One observation: terms whose weighted sum should be 1, and how much it counts. */
void normal_add(struct normal *n, const double terms[static NNLS_TERMS], double weight);

/* Takes observations out again that were added before. */
void normal_less(struct normal *n, const struct normal *part);

/* The weights x >= 0 that bring |A x - b| to its least, with a ridge of 1e-5 of the diagonal
 * against terms that cannot be distinguished.  A term that is always 0 gets the weight 0. */
void normal_solve(const struct normal *n, double ret_x[static NNLS_TERMS]);

/*
 * A power law: log2(t) as a sum of logarithms of a launch's sizes, by least squares. Products and
 * roots of sizes are sums there.
 */
/* one, waves, rounds, width, bytes, FLOPs, eight arguments, waves begun, two sides of a tile */
#define POWER_TERMS 17

/* Sums over observations: the terms' products with each other and with what is to be predicted. The
 * first term is always 1. */
struct power_sums {
	double product[POWER_TERMS][POWER_TERMS + 1];
};

void power_add(struct power_sums *sums, const float terms[static POWER_TERMS], float log_ns);

/* All zero when there is nothing to go by.  `ridge` is how many observations, one unit away from
 * the others, it takes to move a weight half of the way: what is added to the diagonal. */
void power_solve(
	const struct power_sums *sums, double ridge, float ret_weights[static POWER_TERMS]);
