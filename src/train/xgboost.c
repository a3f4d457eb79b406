/* Loading XGBoost's library: see xgboost.h. */
#include "train/xgboost.h"

#include <stdbool.h>

#include "base/shared_library.h"

static const struct library_symbol symbols[] = {
	{ "XGDMatrixCreateFromMat", offsetof(struct xgboost, matrix_create) },
	{ "XGDMatrixSetFloatInfo", offsetof(struct xgboost, matrix_set) },
	{ "XGDMatrixFree", offsetof(struct xgboost, matrix_free) },
	{ "XGBoosterCreate", offsetof(struct xgboost, create) },
	{ "XGBoosterSetParam", offsetof(struct xgboost, set) },
	{ "XGBoosterUpdateOneIter", offsetof(struct xgboost, update) },
	{ "XGBoosterPredict", offsetof(struct xgboost, predict) },
	{ "XGProxyDMatrixCreate", offsetof(struct xgboost, proxy_create) },
	{ "XGBoosterPredictFromDense", offsetof(struct xgboost, predict_dense) },
	{ "XGBoosterDumpModelEx", offsetof(struct xgboost, dump) },
	{ "XGBoosterFree", offsetof(struct xgboost, free) },
	{ "XGBGetLastError", offsetof(struct xgboost, error) },
};

static bool load(struct xgboost *x)
{
	const size_t n = sizeof symbols / sizeof symbols[0];
	return !library_load("libxgboost.so.0", symbols, n, x) ||
	       !library_load("libxgboost.so", symbols, n, x);
}

const struct xgboost *xgboost_load(void)
{
	static struct xgboost x;
	static int state; /* 0: not tried */
	if (!state)
		state = load(&x) ? 1 : -1;
	return state > 0 ? &x : NULL;
}
