/* Loading XGBoost's library: see xgboost.h. */
#include "train/xgboost.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/banned.h"

static const struct {
	size_t offset;
	const char *symbol;
} symbols[] = {
	{ offsetof(struct xgboost, matrix_create), "XGDMatrixCreateFromMat" },
	{ offsetof(struct xgboost, matrix_set), "XGDMatrixSetFloatInfo" },
	{ offsetof(struct xgboost, matrix_free), "XGDMatrixFree" },
	{ offsetof(struct xgboost, create), "XGBoosterCreate" },
	{ offsetof(struct xgboost, set), "XGBoosterSetParam" },
	{ offsetof(struct xgboost, update), "XGBoosterUpdateOneIter" },
	{ offsetof(struct xgboost, predict), "XGBoosterPredict" },
	{ offsetof(struct xgboost, proxy_create), "XGProxyDMatrixCreate" },
	{ offsetof(struct xgboost, predict_dense), "XGBoosterPredictFromDense" },
	{ offsetof(struct xgboost, dump), "XGBoosterDumpModelEx" },
	{ offsetof(struct xgboost, free), "XGBoosterFree" },
	{ offsetof(struct xgboost, error), "XGBGetLastError" },
};

static bool load(struct xgboost *x)
{
	void *library = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = dlopen("libxgboost.so", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && i < sizeof symbols / sizeof symbols[0]; i++) {
		void *symbol = dlsym(library, symbols[i].symbol);
		if (!symbol)
			return false;
		memcpy((char *)x + symbols[i].offset, &symbol, sizeof symbol);
	}
	return library != NULL;
}

const struct xgboost *xgboost_load(void)
{
	static struct xgboost x;
	static int state; /* 0: not tried */
	if (!state)
		state = load(&x) ? 1 : -1;
	return state > 0 ? &x : NULL;
}
