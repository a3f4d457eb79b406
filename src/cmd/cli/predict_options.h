/*
 * Gives the injected library the source of predictions for weir record: a model, an earlier run's
 * history, or a trace. Tables made from a trace are removed afterwards.
 */
#pragma once

#include <limits.h>

#include "cmd/cli/options.h"
#include "cmd/cli/scratch.h"

struct predict_options {
	bool wanted;
	char config[3 * PATH_MAX]; /* as in WEIR: "predict,history=FILE," */
	struct scratch made;       /* tables made of a trace */
};

/* From --predict and --history.  0, or an exit code after complaining. */
int predict_options_prepare(struct predict_options *f, const struct options *o);
void predict_options_done(struct predict_options *f);
