/*
 * ONNX Runtime, loaded when the first model needs it.  Its functions come by slot from api/ort.tbl,
 * so Weir is built without its headers and runs with each version from 1.22 on.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/model_base.h"
#include "ort_functions.h"

/* The process's own: loaded once, never unloaded. */
struct onnx_runtime {
	pthread_mutex_t lock;
	bool ready;
	const char *version;
	char path[PATH_MAX]; /* of the library, as the loader found it */
	struct ort_env *env;
	struct ort_memory *memory;
	struct ort_allocator *allocator;
};
extern struct onnx_runtime runtime;
extern struct ort_functions ort; /* filled when runtime is ready */

int onnx_open(const struct engine_options *o, struct error *err);
bool onnx_put_version(const struct engine_options *o, struct buf *b);
/* 0, or the status in words, after the model's name and what it is about. */
int ort_check(struct ort_status *status, const char *name, const char *what, struct error *err);

/* The options of all sessions, and those in the model's parameters. */
int onnx_options(const struct engine_options *o, const struct engine_config *c, const char *path,
	struct ort_options **ret, struct error *err);
/* Inputs that may be left out are listed if `optional`. */
int onnx_session(struct engine_model *m, const struct buf *file, const char *path,
	const struct ort_options *options, bool optional, struct ort_session **ret,
	struct error *err);

/* The shape of a tensor, or of a type of tensors. */
int onnx_read_shape(const struct ort_tensor *tensor, struct shape *ret, const char *name,
	const char *what, struct error *err);

/* Whether the CUDA provider lies beside ONNX Runtime, and there is a GPU. */
bool onnx_cuda_is_there(const struct engine_options *o);
int onnx_cuda_load(const struct engine_options *o, const struct engine_config *c,
	const struct buf *file, const char *path, struct engine_model **ret, struct error *err);

/*
 * Copies that ONNX Runtime's CUDA provider makes from the host (onnx_copies.c). A graph copies from
 * there whenever it is replayed, and by then other numbers of the same run lie there. So a captured
 * run copies from blocks of its plan, which hold what was there when it was captured.
 */
struct onnx_kept {
	struct onnx_block *first;
};

/* When the provider is loaded. If its copies can't be watched, nothing is kept. */
void onnx_copies_watch(const char *provider);

/* Keeps what the calling thread copies from now on. NULL: nothing more. */
void onnx_copies_keep(struct onnx_kept *k);
bool onnx_copies_are_kept(const struct onnx_kept *k, const void *at, size_t bytes);
void onnx_copies_free(struct onnx_kept *k);
