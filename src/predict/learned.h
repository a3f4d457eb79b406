/* The fourth predictor: a model that was trained on other kernels. */
#ifndef WEIR_PREDICT_LEARNED_H
#define WEIR_PREDICT_LEARNED_H

#include "predict/predict.h"

extern const struct predictor predictor_learned;

#endif
