/*
 * One model's configuration, which Triton keeps in config.pbtxt: protobuf's text format of the
 * message ModelConfig. api/config.tbl lists its fields and says which of them Weir uses.
 *
 * A configuration is a JSON object with protobuf's names (`tree`), and struct model_config holds
 * what Weir uses of it. Strings are never NULL, and they and all arrays belong to the
 * configuration. config_complete() makes them anew. One thread owns a configuration, and sharing
 * it for reading is safe.
 *
 * A failure is -EINVAL and a sentence that begins with the file, and with the line where there is
 * one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "tensor/tensor.h"

struct config_tensor {
	const char *name, *label_filename; /* label_filename: of an output; NULL of an input */
	enum dtype type;      /* DTYPE_NONE: the configuration leaves it to the model */
	struct shape dims;    /* without the batch dimension */
	struct shape reshape; /* what the model itself takes or gives, without it too */
	bool has_reshape, optional;
};

struct config_version_policy {
	bool has_latest, all, has_specific; /* none: the version with the highest number */
	uint32_t latest;
	const int64_t *specific;
	unsigned specifics;
};

enum config_timeout_action { CONFIG_TIMEOUT_REJECT, CONFIG_TIMEOUT_DELAY };

struct config_queue_policy {
	const char *key; /* of dynamic_batching.level_policy: the level in digits */
	enum config_timeout_action timeout_action;
	uint64_t timeout_us; /* 0: none */
	bool allow_override;
	uint32_t max_queue; /* 0: the server's limit */
};

struct config_batching {
	const int32_t *preferred;
	unsigned preferreds;
	uint64_t max_delay_us;
	bool preserve_ordering, has_queue_policy;
	uint32_t priority_levels, default_priority; /* 1 is the highest level */
	struct config_queue_policy queue_policy;
	const struct config_queue_policy *level_policy;
	unsigned level_policies;
};

enum config_kind { CONFIG_KIND_AUTO, CONFIG_KIND_GPU, CONFIG_KIND_CPU, CONFIG_KIND_MODEL };

struct config_instance_group {
	const char *name;
	enum config_kind kind;
	int32_t count; /* 0: one */
	const int32_t *gpu;
	unsigned gpus;
};

struct config_warmup_input {
	const char *key; /* the input's name */
	enum dtype type;
	struct shape dims;
	bool zero, random;
	const char *file; /* in the folder `warmup` of the model's folder; "": zero or random */
};

struct config_warmup {
	const char *name;
	uint32_t batch_size, count; /* count 0: once */
	const struct config_warmup_input *input;
	unsigned inputs;
};

struct model_config {
	const char *name, *platform, *backend, *default_model_filename;
	uint32_t max_batch_size; /* 0: no batch dimension */
	const struct config_tensor *input, *output;
	unsigned inputs, outputs;
	struct config_version_policy version_policy;
	bool has_dynamic_batching;
	struct config_batching dynamic_batching;
	const struct config_instance_group *instance_group;
	unsigned instance_groups;
	const struct parameter *parameter;
	unsigned parameters;
	const struct config_warmup *warmup;
	unsigned warmups;
	int32_t graph_level;

	uint64_t weir_deadline_us;   /* 0: none */
	double weir_weight;          /* 1 where nothing is said */
	const uint32_t *weir_bucket; /* ascending */
	unsigned weir_buckets;

	char *file; /* what messages call it */
	json_t *tree;
	ARRAY(void *) memory;
};

#define CONFIG_TENSORS 64 /* the most inputs of a model, and the most outputs */

/* The batch size of a model that takes batches, if its configuration does not say one. */
#define CONFIG_DEFAULT_BATCH 4

/* Reads text format; `file` is for messages. Each ignored field is a line in warnings, which may be
 * NULL. */
int config_read(const char *text, size_t n, const char *file, struct model_config **ret,
	struct buf *warnings, struct error *err);

/* Reads the JSON form, with protobuf's names or those in lowerCamelCase. */
int config_from_json(const json_t *object, const char *file, struct model_config **ret,
	struct buf *warnings, struct error *err);

/*
 * Adds what the configuration leaves out and the model itself tells: inputs, outputs, types,
 * dimensions, and the batch size where all first dimensions are -1. A value that contradicts the
 * model is an error.
 */
int config_complete(struct model_config *c, const struct tensor_spec *in, unsigned nin,
	const struct tensor_spec *out, unsigned nout, struct error *err);
/* Batches run at the sizes 1, 2, 4 ... and max_batch_size, unless it says others. */
int config_pad(struct model_config *c, struct error *err);

/* The model's own description, as a text, and config_complete() with that text. */
char *config_model_text(
	const struct tensor_spec *in, unsigned nin, const struct tensor_spec *out, unsigned nout);
int config_complete_from(struct model_config *c, FILE *kept, struct error *err);

/* Gives a configuration without a name this one. */
void config_set_name(struct model_config *c, const char *name);
void config_set_backend(struct model_config *c, const char *backend);

/* All fields with their defaults. The caller owns the object. */
json_t *config_json(const struct model_config *c);

/* optimization.execution_accelerators.gpu_execution_accelerator, or NULL. */
const json_t *config_accelerators(const struct model_config *c);

/* The queue's limits for a level of priority; NULL: there are none. */
const struct config_queue_policy *config_queue_policy(const struct model_config *c, uint64_t level);

void config_free(struct model_config *c);
