/*
 * Recorded launches as rows for training and judging models. This module reads CSV files, and
 * model/samples.h reads traces.
 *
 * The dataset owns the kernels that samples point to, and they stay where they are. One thread.
 */
#pragma once

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "predict/predict.h"

struct dataset {
	ARRAY(struct predict_sample) samples;
	ARRAY(struct predict_kernel *) kernels;
	ARRAY(char *) names; /* of kernels, by predict_sample.name */
	struct map name_map, app_map, kernel_map;
	char device[64];     /* name, empty: not known */
	unsigned cc;         /* 10 * major + minor, 0: not known */
	uint32_t sms;        /* 0: not known */
	size_t without_time; /* rows whose time is missing */
};

/*
 * Appends the rows of a CSV text.  The first line names the columns, in any order; needed are
 * kernel, grid_x and block_x; known are further app (else trace), order, family, device, cc, sms,
 * grid_y, grid_z, block_y, block_z, smem_static, smem_dynamic, regs, local, args0 to args7, flops,
 * unit, bytes, contended and ns; others are passed over.  An empty field is not known.
 *
 * -EINVAL with file and line in words when the text is no such table, or is of another device than
 * the rows before.  The rows before the bad one are then in.
 */
int dataset_csv(
	struct dataset *d, const char *text, size_t bytes, const char *file, struct error *err);

/* The number of a name. */
uint32_t dataset_name(struct dataset *d, const char *name);
uint32_t dataset_app(struct dataset *d, const char *name);

/* The dataset's own copy of a kernel, one for each id and attributes. */
const struct predict_kernel *dataset_kernel(struct dataset *d, const struct predict_kernel *k);

void dataset_fini(struct dataset *d);
