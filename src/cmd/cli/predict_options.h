/*
 * What weir record gives the guest to foretell times from: a model, what an earlier run has learnt,
 * or a trace of one, from which tables are made that are gone afterwards.
 */
#ifndef WEIR_CMD_CLI_PREDICT_OPTIONS_H
#define WEIR_CMD_CLI_PREDICT_OPTIONS_H

#include <limits.h>

#include "cmd/cli/options.h"
#include "cmd/cli/scratch.h"

struct foretell {
	bool wanted;
	char orders[3 * PATH_MAX]; /* as in WEIR: "predict,history=FILE," */
	struct scratch made;       /* tables made of a trace */
};

/* From --predict and --history.  0, or an exit code after complaining. */
int foretell_prepare(struct foretell *f, const struct options *o);
void foretell_done(struct foretell *f);

#endif
