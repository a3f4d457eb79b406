/*
 * Engines on a GPU share this.  A model runs in plans: one for each shape of its inputs, whose
 * tensors keep their addresses.  The first two runs of a plan hand its work to the model's stream.
 * The work is captured as a graph then, which later runs replay.  Rows are padded, so that there
 * are few plans.
 */
#pragma once

#include "engine/model_base.h"
#include "gpu/cuda_device.h"

#define GPU_PLANS 64 /* of a model; the one that ran longest ago makes room */

struct gpu_tensor {
	struct shape shape;
	enum dtype type;
	uint64_t at;
	size_t bytes; /* of the span, if it is strided */
	bool strided; /* an output that is not row-major without gaps, but as `stride` says */
	int64_t stride[SHAPE_DIMS]; /* in elements */
};

struct gpu_plan {
	struct gpu_plan *next;
	uint32_t rows; /* padded; 1 for models without rows */
	struct gpu_tensor in[ENGINE_TENSORS], out[ENGINE_TENSORS];
	unsigned runs;
	bool captures; /* what is enqueued becomes the graph */
	void *graph;   /* NULL: there is none */
	void *own;     /* the engine's */
};

struct gpu_model;
struct gpu_engine {
	/* The inputs have shapes and memory.  Gives the outputs both. */
	int (*plan)(struct gpu_model *m, struct gpu_plan *p, struct error *err);
	/* Puts the work on the model's stream: all of it, always the same, and without a change of
	 * the inputs.  The first time it may give the outputs shapes and memory. */
	int (*enqueue)(struct gpu_model *m, struct gpu_plan *p, struct error *err);
	void (*unplan)(struct gpu_model *m, struct gpu_plan *p); /* or NULL */
	void (*close)(struct gpu_model *m); /* the plans are gone, its memory is there; or NULL */
	/* Whether memory of the host that a captured copy names stays for the graph's replays.
	 * NULL: all of it does. */
	bool (*keeps)(const struct gpu_plan *p, const void *at, size_t bytes);
};

struct gpu_model {
	struct engine_model base;
	const struct gpu_engine *ops;
	struct gpu *gpu;
	struct gpu_space space; /* all that it has on the device */
	void *stream, *done;    /* an event */
	struct gpu_plan *plan;  /* the one that ran last is the first */
	uint32_t bucket[ENGINE_BUCKETS], buckets, max_rows;
	bool graphs; /* are wanted */
};

/* The engine has filled in nothing yet but the struct around it with zeros. */
int gpu_model_init(struct gpu_model *m, const struct engine *e, const struct gpu_engine *ops,
	const struct engine_options *o, const struct engine_config *c, struct error *err);
/* The end of a load: after a failure the model is unloaded, and else its memory may leave from now
 * on.  Returns e. */
int gpu_model_loaded(struct gpu_model *m, int e, struct engine_model **ret);
void gpu_model_fini(struct gpu_model *m);

/* For struct gpu_engine: outputs have the model's shapes, and rows for a first dimension that is
 * open. */
int gpu_plan_outputs(struct gpu_model *m, struct gpu_plan *p, struct error *err);

/* For struct engine. */
int gpu_model_run(struct engine_model *m, struct engine_run *run, struct error *err);
void gpu_model_end(struct engine_model *m, struct engine_run *run);
int gpu_model_settle(struct engine_model *m, struct error *err);
/* Pinned memory for clients, taken before there are any: while the driver pins, it launches
 * nothing. */
void gpu_model_pin(struct gpu_model *m);
void gpu_model_memory(const struct engine_model *m, struct engine_memory *ret);
bool gpu_model_stage(
	struct engine_model *m, const void *data, size_t bytes, struct engine_staged *ret);
void gpu_model_unstage(struct engine_model *m, struct engine_staged *s);
#define GPU_MODEL_CALLS                                                                            \
	.run = gpu_model_run, .end = gpu_model_end, .settle = gpu_model_settle,                    \
	.memory = gpu_model_memory, .stage = gpu_model_stage, .unstage = gpu_model_unstage

/* Captures a plan that has run.  The model goes on without graphs if it can't be captured, or if
 * the replay gives something else. */
void gpu_graph_make(struct gpu_model *m, struct gpu_plan *p);
