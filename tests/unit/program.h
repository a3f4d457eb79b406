/*
 * Programs of several threads that use a simulated device, and their true critical path.
 *
 * A program is a script a thread.  Playing it keeps for each moment (a call returned, a kernel
 * began) all that it had to wait for: the path is the way back along whatever came last, and with
 * all host times zero the same moments say what a host that takes no time would save.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "path/path.h"

#define PROGRAM_THREADS 4
#define PROGRAM_STREAMS 6
#define PROGRAM_SIGNALS 16

enum op_kind {
	OP_COMPUTE,    /* the host, outside CUDA */
	OP_KERNEL,     /* launches one */
	OP_GRAPH,      /* launches a graph of `count` kernels */
	OP_COPY,       /* asynchronous */
	OP_COPY_WAITS, /* returns when it is done */
	OP_SYNC,       /* with a stream */
	OP_SYNC_ALL,   /* with the context */
	OP_SYNC_EVENT,
	OP_RECORD,        /* an event */
	OP_WAIT_EVENT,    /* by a stream */
	OP_HOST_FUNCTION, /* in a stream; gives a signal */
	OP_GIVE,          /* a signal to another thread, as by a condition variable */
	OP_TAKE           /* waits for one; ns: how long it takes to wake up, 0: some time */
};

struct op {
	enum op_kind kind;
	uint32_t ns;     /* the host's, the kernel's, the function's, or of OP_TAKE */
	uint32_t stream; /* below PROGRAM_STREAMS: the first half is device 0 */
	uint32_t what;   /* event or signal */
	uint32_t count;
};

struct script {
	ARRAY(struct op) ops;
};

struct program {
	struct script threads[PROGRAM_THREADS];
	uint32_t thread_of[PROGRAM_THREADS]; /* in the trace; two may be one */
	uint32_t first_tid;
	uint64_t seed; /* of jitter */
	bool bare;     /* calls have no arguments, as in imported traces */
};

void program_op(struct program *p, uint32_t thread, struct op op);
void program_fini(struct program *p);

/* Plays the program into a trace at `path`; ret_ns: the true parts, which add up to the wall time.
 */
void program_play(const struct program *p, const char *path, uint64_t ret_ns[PATH_PARTS]);
