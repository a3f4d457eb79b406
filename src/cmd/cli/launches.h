/*
 * Reads launches that ran from a command's files: traces and CSV tables of launches. complain()
 * prints errors.
 */
#pragma once

#include <limits.h>

#include "cmd/cli/command.h"
#include "predict/model.h"
#include "train/dataset.h"

/* The launches of all files from the first-th on, in their order; 0 or an exit code.  The dataset
 * is the caller's to give back in either case. */
int launches_load(const struct options *o, int first, struct dataset *d);

/* Which device they ran on: by --device, else by what the files say.  0 or an exit code. */
int launches_device(
	const struct options *o, const struct dataset *d, struct predict_device *ret_device);

/* A model file; *ret_bytes is to be freed after the model. */
int model_load(const char *path, struct predict_model *ret_m, void **ret_bytes);

/* The model that was installed for the device, and its file, if there is one that fits it: false
 * otherwise. */
bool model_default(const struct predict_device *d, struct predict_model *ret_m, void **ret_bytes,
	char ret_path[static PATH_MAX]);
