/*
 * Names in a trace: the kernel behind a handle, the kernels of a graph, and the processes. One pass
 * over the meta chunks builds it, and then any thread may look things up.
 *
 * Handles are reused, so a look-up takes the process (index into trace.processes), the handle and a
 * time in ticks. A look-up before the first record of a handle finds that first one, because names
 * are written a moment after the handle exists.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "trace/trace.h"

#define META_NONE UINT32_MAX

struct meta_name {
	char *text; /* terminated; may hold NULs only if the trace does */
	uint32_t bytes;
};

struct meta_process {
	uint32_t parent;
	char *executable; /* never NULL */
	char *arguments;  /* blanks between; never NULL */
};

/* A handle's kernel from `ticks` on. */
struct meta_kernel {
	uint32_t process;
	uint32_t name; /* index into names, META_NONE when an alias led nowhere */
	uint64_t handle;
	uint64_t ticks;
	uint64_t alias; /* the handle that this one stands for, while the index is built */
};

enum graph_step_kind { STEP_NEW, STEP_MORE, STEP_UPDATE };

/* A change of an executable graph: it is instantiated, or one node changes. */
struct graph_step {
	uint32_t exec; /* index into execs */
	uint32_t kind; /* enum graph_step_kind */
	uint64_t ticks;
	uint32_t first_node; /* into nodes; kernel nodes only */
	uint32_t node_count;
	uint32_t order; /* in the file, for changes at the same tick */
};

struct graph_exec {
	uint32_t process;
	uint32_t first_step;
	uint32_t step_count;
	uint64_t handle;
};

struct meta_unknown {
	uint32_t process;
	uint32_t name;
	uint64_t index;
	uint64_t count;
};

struct meta_message {
	uint32_t process;
	uint32_t name;
	uint64_t ticks;
};

/* A GPU, as whoever wrote the trace saw it. */
struct meta_device {
	uint32_t process;
	uint32_t device;
	uint32_t name;
	uint32_t multiprocessors;
	uint32_t capability; /* major << 16 | minor */
	uint64_t memory_bytes;
	uint8_t uuid[16];                     /* zeros: not known */
	uint64_t clock_khz, memory_clock_khz; /* the highest; 0: not known */
};

/* The versions that a recording was made with: "cuda 13.0". */
struct meta_fact {
	uint32_t process;
	uint32_t text; /* index into names */
};

/* Attributes of a handle's kernel from `ticks` on. */
struct meta_attributes {
	uint32_t process;
	uint32_t known; /* bit i: value[i] is */
	uint64_t handle;
	uint64_t ticks;
	uint32_t value[ATTRIBUTES]; /* by enum kernel_attribute */
};

struct meta {
	ARRAY(struct meta_process) processes; /* same index as trace.processes */
	ARRAY(struct meta_name) names;
	ARRAY(struct meta_kernel) kernels; /* sorted by process, handle, ticks */
	ARRAY(struct graph_exec) execs;
	ARRAY(struct graph_step) steps; /* sorted by exec, ticks, order */
	ARRAY(struct graph_node) nodes;
	ARRAY(struct meta_unknown) unknown;
	ARRAY(struct meta_message) messages;
	ARRAY(struct meta_device) devices;
	ARRAY(struct meta_fact) facts;            /* each once */
	ARRAY(struct meta_attributes) attributes; /* sorted by process, handle, ticks */
	uint64_t torn;
	uint64_t damaged; /* meta chunks that could not be read */

	struct map name_map;   /* hash of the text */
	struct map kernel_map; /* process, handle: first of kernels */
	struct map exec_map;   /* process, handle: execs */
	struct map string_map; /* process, id of a string: names */
};

/* 0 or -errno.  Damaged chunks are counted and passed over. */
int meta_load(const struct trace *t, struct meta *m, struct error *err);
void meta_fini(struct meta *m);

/* Index into names, or META_NONE. */
uint32_t meta_find_kernel(const struct meta *m, uint32_t process, uint64_t handle, uint64_t ticks);

/* The attributes of the handle's kernel then, or first; NULL: nothing. */
const struct meta_attributes *meta_find_attributes(
	const struct meta *m, uint32_t process, uint64_t handle, uint64_t ticks);

/* Index into names of a string of GPU activities or a range, or META_NONE. */
uint32_t meta_find_string(const struct meta *m, uint32_t process, uint32_t id);

/* Index into steps: what the executable graph was at that time; META_NONE when unknown. */
uint32_t meta_find_graph(const struct meta *m, uint32_t process, uint64_t exec, uint64_t ticks);

/*
 * Calls `node` for each kernel node of each state of the graphs, with the number of launches
 * that ran it.  launches[i]: launches that found step i.  A node that does not change is
 * reported once for all steps that it lived through.
 */
void meta_expand_graphs(const struct meta *m, const uint64_t *launches,
	void (*node)(void *context, uint32_t process, uint32_t name, const struct graph_node *n,
		uint64_t launches),
	void *context);
