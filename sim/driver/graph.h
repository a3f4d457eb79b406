/*
 * Operations, and graphs of them.  An operation is what a launch, copy, fill, host function
 * or event call asks for, before it is either given to a stream, or recorded as a node by
 * a capture.  Graphs own their nodes, nodes own their operations; an executable graph is a
 * graph of its own whose nodes remember from which node they were made.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "driver/sim.h"

struct graph;

struct op {
	int kind; /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch;
	uint64_t kernel_handle; /* the CUfunction or CUkernel as given */
	void **params; /* KERNEL: owned copies of the parameters, or NULL */
	struct cu_memcpy3d copy;
	struct box box;
	struct fill fill;
	void (*host)(void *);
	void *user; /* HOST: its argument */
	struct event *event;
	struct graph *child; /* owned */
	uint64_t address; /* MEM_ALLOC, MEM_FREE */
	size_t bytes;
};

/* Copies a launch's parameters into op->params.  CUDA_ERROR_OUT_OF_MEMORY or 0. */
int op_keep_params(struct op *op, void **params, void **extra);
/* A deep copy.  The original stays the caller's. */
int op_clone(const struct op *op, struct op *ret_op);
void op_fini(struct op *op);

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
	bool mark; /* during a walk */
};

struct graph {
	struct obj obj;
	struct node *first, **tail;
	size_t count;
	uint64_t origin; /* number of the graph it was cloned from, or its own */
	uint64_t number;
	bool inner; /* owned by a node, an executable graph or a running capture */
};

struct graph *graph_new(void);
void graph_free(struct graph *graph);
struct graph *graph_clone(const struct graph *graph);
struct node *graph_add(struct graph *graph, const struct op *op, struct node *const *deps,
	size_t dep_count);
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

#endif
