/*
 * Operations, and graphs of them.  An operation is what a launch, copy, fill, host function
 * or event call asks for, before it is either given to a stream, or recorded as a node by
 * a capture.  Graphs own their nodes, nodes own their operations; an executable graph is a
 * graph of its own whose nodes remember from which node they were made.
 */
#pragma once

#include "driver/sim.h"

struct graph;

struct op {
	int kind; /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch;
	uint64_t kernel_handle; /* the CUfunction or CUkernel as given */
	void **params;          /* KERNEL: owned copies of the parameters, or NULL */
	struct cu_memcpy3d copy;
	struct copy_region region;
	struct fill fill;
	void (*host)(void *);
	void *user; /* HOST: its argument */
	struct event *event;
	struct graph *child; /* owned */
	uint64_t address;    /* MEM_ALLOC, MEM_FREE */
	size_t bytes;
};

/* Copies a launch's parameters into op->params.  CUDA_ERROR_OUT_OF_MEMORY or 0. */
int op_keep_params(struct op *op, void **params, void **extra);
/* A deep copy.  The original stays the caller's. */
int op_clone(const struct op *op, struct op *ret_op);
void op_fini(struct op *op);

/*
 * The meaning of node parameters.  Kernel operations own their parameters afterwards; a child graph
 * is only borrowed.
 */
int op_kernel(const struct cu_kernel_node_params *p, bool v2, struct op *ret_op);
int op_memcpy(const struct cu_memcpy3d *p, struct op *ret_op);
int op_memset(const struct cu_memset_node_params *p, struct op *ret_op);
int op_host(const struct cu_host_node_params *p, struct op *ret_op);
int op_event(int kind, void *handle, struct op *ret_op);
int op_child(void *handle, struct op *ret_op);
int op_any(struct cu_graph_node_params *p, struct op *ret_op);

/*
 * Whether what an operation names still is there: its function, event or memory.  Nodes
 * outlive those, so it is asked again before every launch.
 */
int op_check(struct op *op);

/* Starts an operation behind deps.  Borrows op.  A new reference. */
struct fence *op_submit(const struct op *op, struct fence *const *deps, size_t dep_count);
/* Gives an operation to a stream, or to the capture that the stream is in. */
int op_perform(struct stream *stream, const struct op *op);

struct node {
	struct obj obj;
	struct graph *graph;
	struct node *next; /* in its graph, in order of creation */
	struct op op;
	struct node **deps;
	size_t dep_count;
	bool enabled;
	uint64_t origin; /* number of the node it was cloned from, or its own */
	uint64_t number;
	struct fence *fence; /* during a launch */
	bool mark;           /* during a walk */
};

/* A user object kept alive by a graph. */
struct keep {
	struct keep *next;
	struct user *user;
	unsigned count;
};

struct graph {
	struct obj obj;
	struct node *first, **tail;
	size_t count;
	uint64_t origin; /* number of the graph it was cloned from, or its own */
	uint64_t number;
	struct keep *keeps;
	bool inner;     /* owned by a node or an executable graph */
	bool capturing; /* a capture holds its nodes: none may go */
};

/* An instantiated graph: a clone, in an order in which it can be launched. */
struct exec {
	struct obj obj;
	struct graph *graph;
	struct node **order;
	uint64_t flags;
	struct fence *last; /* a graph does not run beside itself */
	uint32_t id;        /* for observers: counts from 1 */
};

struct graph *graph_new(void);
void graph_free(struct graph *graph);
struct graph *graph_clone(const struct graph *graph);
struct node *graph_add(
	struct graph *graph, const struct op *op, struct node *const *deps, size_t dep_count);
int node_replace(struct node *n, struct op *op, bool owned);
void graph_remove(struct node *node);
/* The node of a clone that was made from `original`, or NULL. */
struct node *graph_copy_of(const struct graph *clone, const struct node *original);
bool graph_keep(struct graph *graph, struct user *user, unsigned count);
void user_release(struct user *user, unsigned count);
/* op_check() of all nodes, also in child graphs. */
int graph_check(struct graph *graph);
/* Starts all nodes in order behind deps.  A new reference. */
struct fence *graph_submit(struct graph *graph, struct fence *const *deps, size_t dep_count);
/* All nodes, each behind its dependencies; NULL where they turn in a circle. */
struct node **graph_order(const struct graph *graph);
bool node_reaches(const struct graph *graph, const struct node *from, const struct node *to);

/* Captures. */
struct capture {
	struct capture *next;
	uint64_t id;
	struct graph *graph;
	bool to_graph; /* cuStreamBeginCaptureToGraph: the graph is the caller's */
	int mode;
	bool invalid;
	const void *thread;
	struct stream *origin;
};

/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED in a thread whose captures such a call would break. */
int capture_forbids(void);
/* The same for waiting on a whole context, or on one stream. */
int capture_forbids_sync(struct context *ctx);
int capture_forbids_stream_sync(struct stream *stream);
/* Refuses the legacy stream while a blocking stream of its context is captured. */
int capture_forbids_legacy(struct stream *stream);
int capture_add(struct stream *stream, const struct op *op);
int capture_record_event(struct stream *stream, struct event *event);
/* Handles a wait for an event where either side is captured; sets *ret_done when it did. */
int capture_wait_event(struct stream *stream, struct event *event, bool *ret_done);
void capture_leave(struct stream *stream);
void captures_free(struct context *ctx);
