/*
 * Least squares with non-negative coefficients, since times do not shrink with work. It solves the
 * normal equations for a few terms (Lawson and Hanson 1974, chapter 23, and Bro and De Jong 1997).
 */
#pragma once

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
