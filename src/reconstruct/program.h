/*
 * The calls of one recorded process as a program that can be played (play.h). It has the work of
 * each stream, the dependencies, and the moments at which the host knew of an end.
 *
 * The threads of a process form one line of calls, in the order of their begin. The legacy stream
 * and the streams that synchronise with it wait for each other. Stream priorities are ignored.
 */
#pragma once

#include "model/gpu_calls.h"
#include "reconstruct/play.h"
#include "trace/meta.h"
#include "trace/trace.h"

struct program_stream {
	uint64_t handle;
	uint32_t newest; /* step, or PLAY_NONE */
	bool is_free;    /* of the legacy stream */
};

struct program_work {
	uint32_t call; /* of the trace's */
	uint32_t step; /* of the program's */
};

struct process_program {
	struct play_program play;
	ARRAY(struct program_work) work; /* the steps that are no marks */
	ARRAY(struct program_stream) streams;
};

/* Makes the program of one process of the trace, without durations. */
void program_of(const struct trace *t, const struct gpu_calls *calls, uint32_t process,
	struct process_program *ret_p);
void process_program_fini(struct process_program *p);

/* The kernels of an executable graph as it was at some time. */
struct graph_nodes {
	ARRAY(struct graph_node) v; /* those that are enabled, in the order of the trace */
};

/* `step` is of meta_find_graph(). */
void graph_nodes_of(const struct meta *m, uint32_t step, struct graph_nodes *ret_nodes);
