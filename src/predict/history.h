/* The first predictor: launches that ran before, one cache line each. */
#ifndef WEIR_PREDICT_HISTORY_H
#define WEIR_PREDICT_HISTORY_H

#include "predict/predict.h"

/* How often the key was seen; 0 when it is not there. */
uint32_t history_seen(const struct predict *p, uint64_t key);

extern const struct predictor predictor_history;

#endif
