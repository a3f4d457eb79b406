/*
 * A GPU for whoever runs models: the driver's functions, a context, pinned memory, and device
 * memory that keeps its address while it is away.
 *
 * Failures are -ENOMEM where memory does not suffice and -EIO for all else that the driver
 * refuses, with the function and the error's name.
 */
#ifndef WEIR_GPU_CUDA_DEVICE_H
#define WEIR_GPU_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "gpu/driver.h"

/* ---- the device ---- */

#define GPU_LIBRARY "libcuda.so.1"

struct gpu_pinned;
struct gpu {
	struct gpu_driver cu;
	void *context;
	int device, least_priority, greatest_priority;
	char name[80];
	size_t bytes;    /* of device memory */
	atomic_int lost; /* the error after which the context answers nothing any more; or 0 */
	pthread_mutex_t lock;
	struct gpu_pinned *spare[512]; /* by size */
};

/* The first device of the process, opened once and never closed.  library is NULL for the driver
 * that the loader finds.  The calling thread may use the device then, others by gpu_enter(). */
int gpu_open(const char *library, struct gpu **ret, struct error *err);
int gpu_enter(struct gpu *g, struct error *err);
/* 0, or the driver's answer in words. */
int gpu_check(struct gpu *g, int code, const char *function, struct error *err);
#define GPU_CALL(g, err, name, ...) gpu_check(g, (g)->cu.name(__VA_ARGS__), #name, err)

/* ---- pinned memory ---- */

struct gpu_pinned {
	void *data;
	size_t bytes;
	struct gpu_pinned *next;
};
/* From those that were given back, else from the driver.  Any thread. */
int gpu_pinned_take(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err);
void gpu_pinned_give(struct gpu *g, struct gpu_pinned *p); /* or NULL */

/* ---- device memory that leaves and returns ---- */

/* Blocks that are free. */
struct gpu_holes {
	ARRAY(struct gpu_hole {
		uint64_t at;
		size_t bytes;
	})
	list;
};

/*
 * A range of addresses, of which the beginning has memory behind it.  gpu_space_leave() keeps what
 * is in there in pinned memory and gives the device its memory back.  gpu_space_return() puts all
 * back to the same addresses, so that graphs and pointers stay valid.  One thread at a time.
 */
struct gpu_space {
	struct gpu *gpu;
	uint64_t at;
	size_t granularity, reserved, used, mapped;
	bool away;
	struct gpu_pinned *kept; /* what was there, if that has not changed; or NULL */
	ARRAY(struct gpu_chunk {
		uint64_t handle;
		size_t bytes;
	})
	chunk;
	struct gpu_holes hole;
};

int gpu_space_init(struct gpu_space *s, struct gpu *g, struct error *err);
void gpu_space_fini(struct gpu_space *s);
/* 512 bytes aligned, of any content.  A block may be used again at once: by work of a later call
 * on the same stream.  `own`: holes that nobody else uses, which are tried first; or NULL. */
int gpu_space_alloc(
	struct gpu_space *s, struct gpu_holes *own, size_t bytes, uint64_t *ret, struct error *err);
void gpu_space_free(struct gpu_space *s, struct gpu_holes *own, uint64_t at, size_t bytes);
/* The holes are anybody's now. */
void gpu_space_share(struct gpu_space *s, struct gpu_holes *own);
/* Waits for the stream.  What is in a block counts as unchanged while no block is taken. */
int gpu_space_leave(struct gpu_space *s, void *stream, struct error *err);
/* The copies are on the stream.  On failure it is still away. */
int gpu_space_return(struct gpu_space *s, void *stream, struct error *err);

#endif
