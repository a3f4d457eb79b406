/*
 * An engine runs models.  An engine loads a model's file, says what the model takes and gives, and
 * runs it for a batch.  The server knows engines by this page alone.
 *
 * A model is run by one thread at a time.  Different models, engine_run_end() and loading may run
 * at the same time.  Failures are -EINVAL where the request or the model's file is at fault, -EIO
 * where the engine is, and a sentence that names the model.
 */
#pragma once

#include "tensor/tensor.h"

#define ENGINE_TENSORS 64 /* that a model takes, or gives */
#define ENGINE_BUCKETS 16 /* sizes of a batch that a configuration names */

struct engine_options {
	const char *onnxruntime; /* a file; NULL: beside the program, then where the loader looks */
	const char *cuda;        /* the driver's file; NULL: what the loader finds */
	uint64_t memory;         /* of the GPU, for all models together; 0: what it has */
	const char *engines;     /* the folder of NAME.so; NULL: beside the program */
	const char *libtorch;    /* a folder; NULL: where the loader looks */
	bool torch;              /* models of PyTorch may run, which are code */
	unsigned threads;        /* of a run; 0: as many as the process may use processors */
};

/* Runs parts of the model: a provider of ONNX Runtime.  All is borrowed while the model loads. */
struct engine_accelerator {
	const char *name;
	const struct parameter *parameter;
	unsigned parameters;
};
enum engine_place { ENGINE_ANYWHERE, ENGINE_ON_GPU, ENGINE_ON_CPU };
struct engine_config {
	const char *name;
	enum engine_place place;
	const struct engine_accelerator *accelerator; /* on the GPU */
	unsigned accelerators;
	uint32_t max_batch_size; /* 0: the first dimension does not count rows */
	const uint32_t *bucket;  /* sizes that it is to run, ascending */
	unsigned buckets;
	const struct parameter *parameter;
	unsigned parameters;
	int graph_level; /* as Triton says it: -1, 1 and 2 are less than all */
	/* The configuration's tensors, rows included, for an engine whose models don't describe
	 * them. */
	const struct tensor_spec *in, *out;
	unsigned ins, outs;
};

/* The description in the model's file, the batch dimension included.  Inputs that may be left out
 * stand last. */
struct engine_model {
	const struct engine *engine;
	char *name;
	bool has_rows; /* the first dimension of each tensor counts them */
	struct tensor_spec *in, *out;
	unsigned ins, outs;
	uint64_t bytes;            /* of its weights, as far as known */
	_Atomic(char *) no_graphs; /* why its runs are no graphs of the device, if it is asked for
				      them; or NULL */
};

/* Rows of one request.  Memory of the caller that stays until engine_run() returns. */
struct engine_piece {
	const void *data;
	size_t bytes;
	uint32_t rows;
	bool staged; /* data is of engine_stage() */
};
struct engine_staged {
	const void *data;
	void *own; /* the engine's */
};
struct engine_input {
	bool given; /* false: an optional input is left out */
	enum dtype type;
	struct shape shape; /* of all rows together */
	const struct engine_piece *piece;
	unsigned pieces;
};
struct engine_output {
	bool wanted; /* the caller's; what follows is filled if it is */
	enum dtype type;
	struct shape shape;
	const void *data; /* the engine's, until engine_run_end() */
	size_t bytes;
};
/* The inputs and outputs are in the model's order. */
struct engine_run {
	struct engine_input in[ENGINE_TENSORS];
	struct engine_output out[ENGINE_TENSORS];
	bool replayed;        /* it was a graph of the device */
	uint64_t returned_ns; /* before it ran, the model's memory came back to the device */
	void *own;            /* the engine's */
};

struct engine_memory {
	uint64_t there;   /* bytes on the device */
	uint64_t away_ns; /* predicted: how long its next run waits for what is away */
};

struct engine {
	const char *name;      /* "onnx" */
	const char *platforms; /* names in config.pbtxt, with blanks between and around, the backend
				  first */
	const char *file;      /* of a version: "model.onnx" */
	bool code;             /* a model's file is code, which no client may bring */
	bool pads; /* it runs the configuration's sizes alone, or 1, 2, 4 ... and max_batch_size */
	bool (*put_version)(
		const struct engine_options *o, struct buf *b); /* false: it runs nothing here */
	int (*load)(const struct engine_options *o, const struct engine_config *c, int fd,
		const char *path, struct engine_model **ret, struct error *err);
	int (*run)(struct engine_model *m, struct engine_run *run, struct error *err);
	void (*end)(struct engine_model *m, struct engine_run *run);
	/* The warm-up is over.  Checks the memory that runs keep for later ones.  NULL: nothing is.
	 * */
	int (*settle)(struct engine_model *m, struct error *err);
	/* NULL: it has no memory on a device that could have to leave for other models. */
	void (*memory)(const struct engine_model *m, struct engine_memory *ret);
	/* NULL: its runs read pieces where they lie. */
	bool (*stage)(
		struct engine_model *m, const void *data, size_t bytes, struct engine_staged *ret);
	void (*unstage)(struct engine_model *m, struct engine_staged *s);
	void (*unload)(struct engine_model *m);
};

extern const struct engine *const engines[]; /* NULL behind the last */

/* By a platform or backend of config.pbtxt.  NULL, and err says which there are. */
const struct engine *engine_find(const char *platform, struct error *err);
/* Its backend in config.pbtxt: the first of its platforms.  Returns to. */
enum { ENGINE_BACKEND = 40 };
const char *engine_backend(const struct engine *e, char to[static ENGINE_BACKEND]);
/* The engines, their versions and files, and how to get what is missing, for people.  Returns
 * whether all of them run models here. */
bool engine_put_versions(const struct engine_options *o, struct buf *b);

/* fd is the open model file, and path its name for messages and for files beside it. */
int engine_load(const struct engine *e, const struct engine_options *o,
	const struct engine_config *c, int fd, const char *path, struct engine_model **ret,
	struct error *err);
/* Checks the inputs against the model, and runs it.  If it succeeds, engine_run_end() frees what
 * the outputs point to. */
int engine_run(struct engine_model *m, struct engine_run *run, struct error *err);
void engine_run_end(struct engine_model *m, struct engine_run *run);
/* Copies a large piece of an input to where the device reads it, so that the run need not do that;
 * false if it saves nothing.  Any thread, also while models run. */
bool engine_stage(
	struct engine_model *m, const void *data, size_t bytes, struct engine_staged *ret);
void engine_unstage(struct engine_model *m, struct engine_staged *s); /* or what has no data */
/* When the sizes have run that are likely to come. */
int engine_settle(struct engine_model *m, struct error *err);
/* Zeros for an engine without a device.  Any thread. */
struct engine_memory engine_memory(const struct engine_model *m);
/* Changes whenever the memory of a model has left or come back. */
unsigned engine_memory_moves(void);
/* Frees memory that no model used since the call before, if any did.  Every few seconds, by a
 * thread that may wait for the driver. */
void engine_trim(void);
void engine_unload(struct engine_model *m); /* or NULL */
