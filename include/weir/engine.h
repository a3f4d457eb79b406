/*
 * An engine runs models for `weir serve`.  This header is all that an engine of your own needs.
 *
 * An engine is a shared object that exports weir_engine().  `weir serve` loads NAME.so from the
 * folder of engines when it loads the first model whose engine.json says "engine": "NAME".  It
 * never unloads the shared object.  docs/reference/engines.md says where the folder is.
 *
 * An engine has run() for models in host memory, or enqueue() for models on the GPU.  One thread at
 * a time calls the functions of one model, not always the same thread.  Different models may be
 * called at the same time.
 *
 * load(), run() and enqueue() return 0, or another number after they put a sentence into `error`.
 * Weir then refuses the model, or answers the requests of the batch with 500 and the sentence.  A
 * crash of an engine is a crash of the server.
 *
 * Texts are UTF-8 and end with NUL.
 */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Weir refuses an engine that was built with another number. */
#define WEIR_ENGINE_VERSION 1

#define WEIR_ENGINE_TENSORS 64
#define WEIR_ENGINE_DIMS    8
#define WEIR_ENGINE_ERROR   256

/* Types of elements.  The numbers are those of DataType in config.pbtxt. */
enum weir_type {
	WEIR_BOOL = 1,
	WEIR_UINT8 = 2,
	WEIR_UINT16 = 3,
	WEIR_UINT32 = 4,
	WEIR_UINT64 = 5,
	WEIR_INT8 = 6,
	WEIR_INT16 = 7,
	WEIR_INT32 = 8,
	WEIR_INT64 = 9,
	WEIR_FP16 = 10,
	WEIR_FP32 = 11,
	WEIR_FP64 = 12,
	WEIR_BF16 = 14
};

/* A model's description of an input or output.  -1 stands for a dimension of any size. */
struct weir_tensor_spec {
	const char *name; /* Weir copies it when load() has returned */
	uint32_t type;    /* enum weir_type */
	uint32_t dims;
	int64_t dim[WEIR_ENGINE_DIMS];
	uint32_t optional; /* 1: a request may leave the input out.  Not with enqueue() */
};

/* A tensor of one run: row-major, without gaps. */
struct weir_tensor {
	void *data; /* in device memory for enqueue().  NULL: the request left the input out */
	uint64_t bytes;
	uint32_t dims;
	int64_t dim[WEIR_ENGINE_DIMS];
};

struct weir_load {
	const char *model;       /* its name */
	const char *text;        /* engine.json, all of it */
	const char *folder;      /* where engine.json is */
	uint32_t max_batch_size; /* 0: the first dimension does not count rows */

	/* These are for an engine with enqueue(), and NULL for one with run(). */
	void *stream; /* the CUstream of the model.  Its context is current */
	/* Memory on the device for weights and intermediate results, until the model is unloaded.
	 * Only load() may call it.  0: none is left.  A run may leave nothing there for another
	 * run: between two runs Weir may take the memory away, and bring back what load() or an
	 * earlier run left at the same address. */
	uint64_t (*device_memory)(struct weir_load *load, uint64_t bytes);
	/* A function of the CUDA driver in use, for example "cuLaunchKernel"; or NULL. */
	void *(*driver_function)(struct weir_load *load, const char *name);

	/* The engine fills in the rest. */
	void *own; /* what run(), enqueue() and unload() get */
	struct weir_tensor_spec in[WEIR_ENGINE_TENSORS], out[WEIR_ENGINE_TENSORS];
	uint32_t ins, outs;
	uint64_t weight_bytes; /* for people; 0: not known */
	char error[WEIR_ENGINE_ERROR];
};

/* Tensors are in the order that load() gave. */
struct weir_run {
	uint32_t rows; /* of the batch; 1 if the first dimension does not count rows */
	const struct weir_tensor *in;

	/* For run(): memory for output k in this shape, 16 bytes aligned.  Call it once for each
	 * output.  If it returns NULL, it has put a sentence into `error`. */
	void *(*output)(struct weir_run *run, uint32_t k, uint32_t dims, const int64_t *dim);

	/* For enqueue().  All other dimensions of an output are numbers. */
	const struct weir_tensor *out; /* rows for the first dimension where load() said -1 */
	void *stream;

	char error[WEIR_ENGINE_ERROR];
};

struct weir_engine {
	uint32_t version; /* WEIR_ENGINE_VERSION */
	int (*load)(struct weir_load *load);
	/* NULL exactly if there is enqueue(). */
	int (*run)(void *own, struct weir_run *run);
	/* Puts the work on the stream, and does not wait for it.  For the same addresses it has to
	 * be the same work, because Weir captures it in a CUDA graph and replays the graph.  It
	 * must not change the inputs. */
	int (*enqueue)(void *own, struct weir_run *run);
	/* After a load() that returned 0.  The graphs and the memory on the device are gone. */
	void (*unload)(void *own);
};

/* The one function that an engine exports.  Its result stays valid. */
const struct weir_engine *weir_engine(void);

#ifdef __cplusplus
}
#endif

#endif
