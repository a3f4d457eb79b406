/*
 * The used part of XGBoost's C library (Apache-2.0), loaded if it is there. Programs start without
 * it, and only training and its benchmark need it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef void *xgboost_handle;

struct xgboost {
	int (*matrix_create)(const float *data, uint64_t rows, uint64_t columns, float missing,
		xgboost_handle *ret_matrix);
	int (*matrix_set)(
		xgboost_handle matrix, const char *field, const float *values, uint64_t n);
	int (*matrix_free)(xgboost_handle matrix);
	int (*create)(const xgboost_handle *matrices, uint64_t n, xgboost_handle *ret_booster);
	int (*set)(xgboost_handle booster, const char *name, const char *value);
	int (*update)(xgboost_handle booster, int round, xgboost_handle matrix);
	int (*predict)(xgboost_handle booster, xgboost_handle matrix, int options, unsigned trees,
		int training, uint64_t *ret_n, const float **ret_values);
	int (*proxy_create)(xgboost_handle *ret_proxy);
	/* one row or more from memory, by the JSON of numpy's array interface */
	int (*predict_dense)(xgboost_handle booster, const char *values, const char *config,
		xgboost_handle matrix, const uint64_t **ret_shape, uint64_t *ret_dims,
		const float **ret_values);
	int (*dump)(xgboost_handle booster, const char *features, int statistics,
		const char *format, uint64_t *ret_n, const char ***ret_trees);
	int (*free)(xgboost_handle booster);
	const char *(*error)(void);
};

/* NULL when the library is not there. */
const struct xgboost *xgboost_load(void);
