/*
 * The objects of the simulated driver and the one lock that guards them all.  A handle
 * that a program holds is the address of a struct obj; it is looked up in a table of live
 * objects before it is followed, so a stale, foreign or invented handle is an answer
 * (CUDA_ERROR_INVALID_HANDLE, …) and never a crash.
 *
 * Everything in this directory runs under the driver lock, which entry.c takes; only the
 * waits of timeline.c give it back.  Functions answer a CUresult unless they say otherwise.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cuda_types.h"
#include "sim_api.h"
#include "sim_enums.h"
#include "entry/entry.h"
#include "entry/script.h"
#include "image/image.h"
#include "law/law.h"

#define SIM_ALIAS(body) __attribute__((alias(#body)))

enum obj_type {
	OBJ_CONTEXT = 1,
	OBJ_MODULE,
	OBJ_LIBRARY,
	OBJ_FUNCTION,
	OBJ_KERNEL,
	OBJ_STREAM,
	OBJ_EVENT,
	OBJ_GRAPH,
	OBJ_NODE,
	OBJ_EXEC,
	OBJ_ARRAY,
	OBJ_MIPMAP,
	OBJ_POOL,
	OBJ_ALLOCATION,
	OBJ_USER,
	OBJ_GREEN,
	OBJ_RESOURCES,
};

struct context;
struct capture;
struct node;

struct obj {
	struct obj *next; /* in its hash bucket */
	enum obj_type type;
	struct context *ctx; /* dies with this context; NULL: with nobody */
};

void sim_lock(void);
void sim_unlock(void);
/* The lock itself, for the condition variables of timeline.c. */
pthread_mutex_t *sim_mutex(void);

/* Zeroed memory of an object that is live from now on; NULL when there is no memory. */
void *obj_new(enum obj_type type, size_t size, struct context *ctx);
/* The live object of that type behind a handle, or NULL. */
void *obj_find(const void *handle, enum obj_type type);
/* Some object of that type in a context, or NULL. */
void *obj_any(enum obj_type type, const struct context *ctx);
/* Ends an object.  Its memory is kept for a while, so that a stale handle stays stale. */
void obj_free(void *object);

/*
 * Work and time.  A fence is a point on the device's timeline: it is `done` when all the
 * work before it has taken effect, and end_ns says when.  Fences are counted references;
 * NULL is a point in the past.
 */
struct fence {
	int refs;
	bool done;
	bool dated; /* end_ns is known, perhaps ahead of `done` */
	uint64_t end_ns;
	uint64_t id;      /* on a shared device; 0: not yet there */
	int device;       /* which that is */
	uint64_t seen_ns; /* when observers are told that it ended (observe.h) */
};

struct work {
	uint64_t cost_ns;
	/* The device's part: called once, under the lock.  May be NULL. */
	void (*effect)(void *arg);
	/* A host thread's part: called once, without the lock.  May be NULL. */
	void (*host)(void *arg);
	/* Releases arg.  May be NULL. */
	void (*drop)(void *arg);
	void *arg;
	struct observed *seen; /* what to tell observers when it is done, or NULL; owned */
	/* For a device that processes share: what it is to it, and which one. */
	struct law_work law;
	int device;
};

struct fence *fence_ref(struct fence *fence);
void fence_unref(struct fence *fence);
bool fence_done(const struct fence *fence);
void fence_wait(struct fence *fence);
uint64_t fence_end_ns(const struct fence *fence);

/*
 * Hands work to the device; it starts when all of deps are done.  deps is not consumed.
 * Returns a new reference to the fence behind the work.  Work without memory for it is
 * done at once.
 */
struct fence *timeline_submit(const struct work *work, struct fence *const *deps, size_t dep_count);
/*
 * Waits while the queue is full, as a real one makes the host wait.  Gives the lock away:
 * the last thing a call does.
 */
void timeline_throttle(void);
/* Ends the work that a shared device has done by now. */
void timeline_look(void);
uint64_t timeline_now_ns(void);
/* Moves virtual time forward to a moment at which the host has waited for the device. */
void timeline_reach(uint64_t ns);
uint64_t timeline_waits(void); /* so often has the host waited for the device */
/* False when work submitted now would have to wait for a host function or real time. */
bool timeline_idle(const struct fence *fence);

/* Devices. */
enum {
	DEVICE_SMS = 132,
	DEVICE_SM_THREADS = 2048,
	DEVICE_SM_BLOCKS = 32,
	DEVICE_SM_REGISTERS = 65536,
	DEVICE_SM_SHARED = 233472,
	DEVICE_BLOCK_SHARED = 49152,
	DEVICE_BLOCK_SHARED_OPTIN = 232448,
	DEVICE_BLOCK_RESERVED = 1024,
	DEVICE_BLOCK_THREADS = 1024,
};

struct device {
	struct context *primary; /* stays allocated once it has been retained */
	unsigned primary_refs;
	unsigned primary_flags;
	size_t used_bytes;
	struct pool *default_pool, *pool;
};

extern struct device devices[16];

bool device_exists(int ordinal);
int device_attribute(int attribute);
/* Takes bytes of a device's memory; CUDA_ERROR_OUT_OF_MEMORY where there are too few. */
int device_reserve(int ordinal, size_t bytes);
void device_give_back(int ordinal, size_t bytes);

/* Contexts. */
struct context {
	struct obj obj;
	int device;
	bool primary, alive;
	unsigned flags, api_version, attach_count;
	uint64_t id;
	size_t limits[10];
	size_t own_bytes; /* of the device, that it takes itself */
	int cache_config, shared_config;
	/* For a green context: the primary one that it stands for, whose everything else is. */
	struct context *base;
	struct green *green;
	unsigned peers;         /* bit per device that this context may reach */
	struct stream *streams; /* all of them, the legacy stream first */
};

struct context *context_current(void);
/* The green context that is current, or NULL. */
struct green *context_green(void);
/* The context that stands for a green one; NULL without memory. */
struct context *context_of_green(struct context *base, struct green *green);
/* The current context, or the primary one of a green one, in *ret_ctx, or
 * CUDA_ERROR_INVALID_CONTEXT, …_IS_DESTROYED. */
int context_get(struct context **ret_ctx);

/* Green contexts: a part of the SMs, and the streams that run there.  They stay allocated. */
struct green {
	struct obj obj;
	struct context *base, *context; /* its primary one, and what cuCtxFromGreenCtx() made */
	unsigned first_sm, end_sm;
	uint64_t id;
	bool alive;
};

/* Streams. */
struct stream {
	struct obj obj;
	unsigned flags;
	int priority;
	uint64_t id;
	bool legacy;
	const void *owner;   /* per-thread streams: the thread */
	struct stream *next; /* in its context */
	struct fence *last;
	struct green *green; /* in which it was made, or NULL */
	struct capture *capture;
	struct node **heads; /* capture: what the next node depends on */
	size_t head_count;
};

enum { STREAM_NON_BLOCKING = 1 };

/* The stream a handle means in the current context; NULL, 1 and 2 are special. */
int stream_get(void *handle, struct stream **ret_stream);
struct stream *stream_new(struct context *ctx, unsigned flags, int priority);
void stream_free(struct stream *stream);
/*
 * Puts work on a stream, behind what is there, what the legacy stream implies, and one more
 * fence (or NULL).  Later work waits for it.  Borrows extra; the answer is borrowed.
 */
struct fence *stream_submit(struct stream *stream, const struct work *work, struct fence *extra);
/* Makes what comes later on a stream wait for a fence. */
void stream_wait(struct stream *stream, struct fence *fence);
/* Collects what new work on a stream must wait for: at most max fences, borrowed. */
size_t stream_deps(struct stream *stream, struct fence **deps, size_t max);
void stream_set_last(struct stream *stream, struct fence *fence);
void context_wait(struct context *ctx);
void streams_free(struct context *ctx);

/* Events. */
struct event {
	struct obj obj;
	unsigned flags;
	struct fence *fence;
	bool recorded, queried;
	uint64_t waits;      /* timeline_waits() when it was recorded */
	uint64_t capture_id; /* 0, or the capture in which it was recorded, behind heads */
	struct node **heads;
	size_t head_count;
};

void events_free(struct context *ctx);
void event_set_fence(struct event *event, struct fence *fence);

/* Behind all that the streams of a context have now; with `green`: its streams alone. */
int event_record_all(struct event *event, struct context *ctx, const struct green *green);

/* Modules, libraries, functions. */
struct module {
	struct obj obj;
	struct image image;
	struct function **functions;
	struct function **ordered;
	uint64_t *global_address;
	struct library *library; /* NULL: loaded by cuModuleLoad… */
	struct module *sibling;  /* of the same library, in another context */
};

struct library {
	struct obj obj;
	struct image image;
	struct kernel **kernels;
	struct module *modules; /* one per context that has asked */
};

struct function {
	struct obj obj;
	struct module *module;
	const struct image_kernel *k;
	bool loaded; /* was launched */
	int max_dynamic_shared;
	int carveout;
	int non_portable_cluster, cluster_policy;
	int block[3]; /* cuFuncSetBlockShape and friends */
	unsigned dynamic_shared;
	unsigned param_bytes;
	uint8_t params[4096];
};

struct kernel {
	struct obj obj;
	struct library *library;
	const struct image_kernel *k;
	size_t index;
	int max_dynamic_shared;
};

void modules_free(struct context *ctx);
/* A function from a CUfunction, or from a CUkernel in the current context. */
int function_get(void *handle, struct function **ret_function);

/* Memory. */
enum range_kind {
	RANGE_DEVICE,
	RANGE_HOST,       /* cuMemHostAlloc */
	RANGE_REGISTERED, /* cuMemHostRegister */
	RANGE_MANAGED,
	RANGE_ASYNC,  /* cuMemAllocAsync and pools */
	RANGE_MAPPED, /* cuMemMap */
	RANGE_GLOBAL, /* a module's variable */
	RANGE_ARRAY,
};

struct range {
	uint64_t base;
	size_t size;    /* as asked */
	size_t charged; /* taken from the device */
	enum range_kind kind;
	unsigned flags;
	uint32_t readers; /* of mapped memory: a bit for each device with access */
	int device;
	struct context *ctx;
	struct pool *pool;
	struct allocation *allocation;
	uint64_t id;
	int sync_memops;
	bool of_graph; /* of an allocation node */
};

struct range *range_find(uint64_t address);
/* The range that holds all of [address, address + size), or NULL. */
/* How many bytes follow from there on: mappings beside each other are one. */
size_t range_room(const struct range *range, uint64_t address);
struct range *range_of(uint64_t address, size_t size);
/* From a pool, or with NULL from the device. */
int range_alloc(struct context *ctx, size_t size, enum range_kind kind, struct pool *pool,
	struct range **ret_range);
int range_add(const struct range *like, struct range **ret_range);
void range_remove(struct range *range);
void range_free(struct range *range);
void ranges_free(struct context *ctx);
/* The bytes of allocation nodes on a device. */
size_t ranges_of_graphs(int device);

/* Pools: what is freed stays with its pool until somebody waits for the device, and up to the
 * pool's threshold beyond that. */
int pool_take(struct pool *pool, int device, size_t bytes); /* NULL: from the device */
void pool_give(struct pool *pool, int device, size_t bytes);
void pool_count_out(const struct range *range); /* it is freed */
void pools_settle(void);
bool pools_release(int device); /* whether they kept some that nobody uses */

/* Copies and fills: a region of bytes from one place to another. */
struct place {
	uint8_t *base;       /* of the whole pitched area */
	size_t pitch, slice; /* bytes from row to row, from slice to slice */
	size_t room;         /* bytes that may be touched from base on; 0: host memory, unknown */
	size_t row_room, rows_room; /* what is left of a row and a slice of an array; 0: no array */
	bool device;
	bool pageable;
};

struct copy_region {
	struct place src, dst;
	size_t width, height, depth; /* width in bytes */
};

int region_check(const struct copy_region *region);
void region_copy(const struct copy_region *region);
uint64_t region_cost_ns(const struct copy_region *region);
int region_from_copy3d(const struct cu_memcpy3d *p, struct copy_region *ret_region);

struct fill {
	uint64_t address;
	size_t pitch, width, height; /* width in elements */
	unsigned value, element;
};

int fill_check(const struct fill *fill);
void fill_run(const struct fill *fill);
uint64_t fill_cost_ns(const struct fill *fill);

/* For observers: see observe.h. */
struct op;

bool observe_wanted(void);
/* A call of this thread begins: the next number. */
void observe_call(void);
/* CLOCK_MONOTONIC; 0 while nobody observes. */
uint64_t observe_now(void);
/* Waits for a date, without the lock. */
void observe_reach(uint64_t ns);
/* Work is handed over on behalf of a stream, and of an executable graph or 0. */
void observe_scope(const struct stream *stream, uint32_t graph);
/* To be told when the operation is done; NULL when nobody observes. */
/* The stream of that. */
const struct stream *observe_stream(void);
struct observed *observe_op(const struct op *op);
void observe_done(struct observed *what, uint64_t start_ns, uint64_t end_ns);
/* The host has waited since then; nothing when since_ns is 0. */
void observe_sync(uint32_t what, uint32_t context, uint64_t stream, uint64_t since_ns);

/* Launches. */

/* The keys of cuLaunchKernel's extra array. */
enum { PARAM_END = 0, PARAM_BUFFER_POINTER = 1, PARAM_BUFFER_BYTES = 2 };

struct launch {
	struct function *function;
	unsigned grid[3], block[3], shared;
	bool cooperative;
	unsigned cluster[3];
	uint64_t wave_ns; /* as its parameters say; 0: as those of all kernels */
};

int launch_check(const struct launch *launch);
uint64_t launch_cost_ns(const struct launch *launch);
/* The same for a device that processes share: what there is to run, and how long it takes alone. */
struct law_work launch_law(const struct launch *launch);
/* CUDA_ERROR_INVALID_VALUE when the parameters do not fit the function. */
int launch_params_check(const struct function *function, void **params, void **extra);
int occupancy_blocks(const struct function *function, int threads, size_t shared);
