/*
 * A model file: a forest, and the range of its training data. `weir train` writes it. The caller
 * owns the bytes, which are used in place, never change, and are aligned to 64.
 *
 * The file begins with struct model_file. Numbers are little-endian, floats have 32 bits. The
 * forest (forest.h) begins at a multiple of MODEL_ALIGN, inside the file and behind the header. A
 * file of another version or schema is refused.
 */
#pragma once

#include "base/error.h"
#include "predict/feature.h"
#include "predict/forest.h"
#include "predict/tables.h"

#define MODEL_MAGIC   "WEIRMDL\n"
#define MODEL_VERSION 3
#define MODEL_ALIGN   64

/* Errors for one family, by how much was known of the launches' work. */
struct model_family {
	float log_ratio; /* median log2(time / bound) */
	float scale; /* 90th percentile of the log2 error on held-out kernels / SCORE_FIRST_Q90 */
	uint32_t launches;
};

struct model_file {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	uint32_t check; /* CRC-32C of all behind this field */
	uint32_t kernels;
	uint64_t schema;  /* feature_schema() */
	uint64_t created; /* seconds since 1970, 0: not known */
	uint64_t launches;
	uint32_t cc, sms; /* cc: 10 * major + minor */
	uint8_t uuid[16]; /* zeros: any device of that kind */
	char device[64];
	uint64_t forest_offset, forest_bytes;
	float low[FEATURES], high[FEATURES]; /* what was seen in training; beyond is clamped */
	float answer_low, answer_high;       /* of log2(time / bound) */
	struct model_family families[FAMILIES][KNOWN_COSTS]; /* of FAMILY_UNKNOWN: of all */
};
static_assert(offsetof(struct model_file, schema) == 32, "on disk");
static_assert(offsetof(struct model_file, low) == 160, "on disk");
static_assert(sizeof(struct model_file) == 1088, "on disk");

struct predict_model {
	const struct model_file *file;
	const struct forest *forest;
};

static inline const struct forest *model_forest(const struct model_file *f)
{
	return (const struct forest *)((const char *)f + f->forest_offset);
}

/* The model's log2(time / bound), and how far off it may be. */
struct model_answer {
	float log_ratio, scale;
	bool unseen; /* no launch of the family was seen in training */
};

/* A model from the bytes of a file.  -EINVAL with the reason when they are none, are damaged, or
 * tell nonsense: wrong checksum, unknown features, numbers that are not finite, more blocks in less
 * time.  Nothing is copied. */
int model_open(const void *bytes, size_t n, struct predict_model *ret_m, struct error *err);

/* -ENODEV when the model was trained on another device than d. */
int model_fits_device(
	const struct predict_model *m, const struct predict_device *d, struct error *err);

void model_ask(const struct predict_model *m, const struct predict_question *q,
	struct model_answer *ret_a);

/*
 * Puts a new model in place of p's, if it is for p's device and, on the recent launches, not worse
 * than the present one by more than a twentieth.  *ret_old is then the model that was replaced, to
 * be freed when no thread can still be asking it.  -ENODEV or -ERANGE with the reason otherwise,
 * and nothing changes.  At most MODEL_SHADOW samples are looked at, the last.
 */
#define MODEL_SHADOW 1024
int predict_offer(struct predict *p, const struct predict_model *m,
	const struct predict_sample *recent, size_t n, const struct predict_model **ret_old,
	struct error *err);
