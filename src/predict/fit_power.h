/*
 * Fits a power law: log2(t) as a sum of logarithms of a launch's sizes, by least squares. Products
 * and roots of sizes are sums there. A small term on the diagonal gives sizes that did not vary no
 * weight, and everything is pure.
 */
#pragma once

#include <stdint.h>

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
