/*
 * A GPU for whoever runs models: the driver's functions, a context, pinned memory, and device
 * memory that keeps its address while it is away.
 *
 * Failures are -ENOMEM where memory does not suffice and -EIO for all else that the driver
 * refuses, with the function and the error's name.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "gpu/driver.h"

#define GPU_LIBRARY "libcuda.so.1"

struct gpu_pinned;
struct gpu_space;
/* The budget of all spaces' device memory: src/gpu/budget.c. */
struct gpu_budget {
	pthread_mutex_t lock; /* taken after that of a space; of others, a space's is only tried */
	pthread_cond_t freed;
	struct gpu_space *first;
	size_t most, there; /* bytes; most is 0: no limit but the device's */
	unsigned waiting;
	bool crowded;       /* a space had to leave */
	double ns_per_byte; /* of a return */
};

struct gpu {
	struct gpu_driver cu;
	void *context;
	int device, least_priority, greatest_priority;
	char name[80];
	size_t bytes;    /* of device memory */
	atomic_int lost; /* the error after which the context answers nothing any more; or 0 */
	struct gpu_budget budget;
	pthread_mutex_t lock;
	struct gpu_pinned *spare[512]; /* by size; the one that was given last is first */
	unsigned keeps[512];           /* of each size, whatever their age */
	unsigned trims;
};

/* The first device of the process, opened once and never closed.  library is NULL for the driver
 * that the loader finds.  The calling thread may use the device then, others by gpu_enter(). */
int gpu_open(const char *library, struct gpu **ret, struct error *err);
int gpu_enter(struct gpu *g, struct error *err);
struct gpu *gpu_opened(void); /* that device, or NULL */
/* 0, or the driver's answer in words. */
int gpu_check(struct gpu *g, int code, const char *function, struct error *err);
#define GPU_CALL(g, err, name, ...) gpu_check(g, (g)->cu.name(__VA_ARGS__), #name, err)

struct gpu_pinned {
	void *data;
	size_t bytes;
	struct gpu_pinned *next;
	unsigned given; /* trims at that time */
};
/* From those that were given back, else from the driver.  Any thread. */
int gpu_pinned_take(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err);
/* A spare block of up to eight times the size, without a call of the driver.  NULL: there is none.
 */
struct gpu_pinned *gpu_pinned_spare(struct gpu *g, size_t bytes);
/* Makes spare blocks of this size up to n, and no trim takes these n. */
int gpu_pinned_fill(struct gpu *g, size_t bytes, unsigned n, struct error *err);
void gpu_pinned_give(struct gpu *g, struct gpu_pinned *p); /* or NULL */
/* Frees those that nobody took between the last two calls.  A thread that calls it every few
 * seconds bounds what is spare. */
void gpu_pinned_trim(struct gpu *g);

/* Blocks that are free. */
struct gpu_holes {
	ARRAY(struct gpu_hole {
		uint64_t at;
		size_t bytes;
	})
	list;
};

/*
 * A range of addresses, of which the beginning has memory behind it while the space is held.  While
 * nobody holds it, it may have to leave for another space: what is in there is kept in pinned
 * memory then, and the device has its memory back.  It returns to the same addresses, so that
 * graphs and pointers stay valid.  Only who holds a space calls its functions.
 */
struct gpu_space {
	struct gpu *gpu;
	void *stream;
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

	pthread_mutex_t lock; /* of who holds it */
	bool loading;         /* nobody has released it yet */
	struct gpu_space *next;
	double uses, used_s; /* how often it was used lately, and when last */
	/* For any thread: bytes on the device, and what a return is predicted to take. */
	_Atomic uint64_t there, away_ns;
};

/* The caller holds it then.  The stream is that of all work that uses it.  All spaces of the device
 * together have `most` bytes at most; 0: what it has. */
int gpu_space_init(
	struct gpu_space *s, struct gpu *g, void *stream, uint64_t most, struct error *err);
/* The caller holds it. */
void gpu_space_fini(struct gpu_space *s);
/* Waits for another holder.  The memory is there then; ret_ns: how long it took to return. -ENOMEM:
 * there is no room, and nobody holds it. */
int gpu_space_hold(struct gpu_space *s, uint64_t *ret_ns, struct error *err);
void gpu_space_release(struct gpu_space *s);
/* As gpu_space_hold(), but what is away stays away: to end it. */
void gpu_space_own(struct gpu_space *s);
/* Nothing is allocated for a while: what is there is kept if spaces have to leave. */
int gpu_space_settle(struct gpu_space *s, struct error *err);
/* How often any space left or returned. */
unsigned gpu_moves(void);

/* 512 bytes aligned, of any content.  A block may be used again at once: by work of a later call
 * on the same stream.  `own`: holes that nobody else uses, which are tried first; or NULL. */
int gpu_space_alloc(
	struct gpu_space *s, struct gpu_holes *own, size_t bytes, uint64_t *ret, struct error *err);
void gpu_space_free(struct gpu_space *s, struct gpu_holes *own, uint64_t at, size_t bytes);
/* The holes are anybody's now. */
void gpu_space_share(struct gpu_space *s, struct gpu_holes *own);

/* space.c and budget.c alone call the following. */

/* A copy of what is there.  It counts as unchanged while no block is taken. */
int gpu_space_keep(struct gpu_space *s, struct error *err);
int gpu_space_leave(struct gpu_space *s, struct error *err);
/* On failure it is still away. */
int gpu_space_return(struct gpu_space *s, struct error *err);

void gpu_budget_init(struct gpu_budget *a);
void gpu_budget_add(struct gpu_space *s, uint64_t most); /* and holds it */
void gpu_budget_remove(struct gpu_space *s);
/* So many bytes more for a space.  Others leave for them. */
int gpu_budget_take(struct gpu *g, const struct gpu_space *s, size_t bytes, struct error *err);
void gpu_budget_give(struct gpu *g, size_t bytes);
/* The driver had no memory: another space leaves.  -ENOMEM: there is none. */
int gpu_budget_make_room(struct gpu *g, const struct gpu_space *s, struct error *err);
