/* Engines share this: the file that a model is loaded from, and the model's list of tensors. */
#pragma once

#include "engine/engine.h"

extern const struct engine engine_onnx, engine_torch, engine_kernels, engine_shared,
	engine_synthetic;

/* The whole file, from its beginning. */
int engine_read(int fd, const char *path, struct buf *ret, struct error *err);
/* For an engine's own struct, which begins with the model and was allocated zeroed. */
void engine_model_init(
	struct engine_model *m, const struct engine *e, const struct engine_config *c);
void engine_model_fini(struct engine_model *m);
/* The rows of a run's inputs; 1 if the model does not count rows. */
uint32_t engine_rows(const struct engine_model *m, const struct engine_run *r);

#ifdef WEIR_JANSSON
#include <jansson.h>

/* A file of JSON.  The caller ends the reference. */
int engine_read_json(int fd, const char *path, const char *name, json_t **ret, struct error *err);
/* The lists "inputs" and "outputs" of such a file, of objects with name, datatype and shape. */
int engine_read_specs(
	struct engine_model *m, const json_t *in, const json_t *out, struct error *err);
#endif
