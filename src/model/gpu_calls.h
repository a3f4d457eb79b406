/* The calls of a trace that give work to a device or wait for it: for who plays them again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "trace/trace.h"

enum call_use {
	USE_NONE,
	USE_LAUNCH,
	USE_GRAPH,
	USE_MOVE,
	USE_SYNC,
	USE_RECORD,
	USE_AWAIT,
	USE_STREAM, /* makes one */
};

struct gpu_call {
	uint64_t start, end; /* ticks */
	uint64_t outer;    /* ticks of the call that it was made by, of the runtime say; or start */
	uint64_t stream;   /* as the program calls it, never 0; 0: the call names none */
	uint64_t event;    /* 0: none */
	uint64_t what;     /* function, or executable graph */
	uint64_t bytes;    /* of a copy or set; valid with sized */
	uint64_t args_key; /* of a launch's arguments; 0: not recorded */
	uint32_t process, tid;
	uint32_t grid[3], block[3], shared;
	float predicted_ns; /* 0: no answer */
	uint8_t use;        /* enum call_use */
	uint8_t direction;  /* of a copy: enum copy_direction; 0 not known */
	uint16_t fn;
	bool is_set;  /* of memory; else a copy */
	bool sized;   /* its arguments say how many bytes */
	bool is_free; /* USE_STREAM: it does not wait for the legacy stream */
	bool waits;   /* a copy: returns when it is done */
	bool apart;   /* not what a scheduler counts: a copy or set that is not asynchronous */
	bool plain;   /* a kernel without cluster or attributes */
};

struct gpu_calls {
	ARRAY(struct gpu_call) v; /* thread by thread, in the order of their ends */
};

/* If calls were made inside others, only the inner ones.  0 or -errno; damaged chunks are passed
 * over. */
int gpu_calls_load(const struct trace *t, struct gpu_calls *ret_calls);
