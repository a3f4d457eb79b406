/*
 * The parts of the library, as core knows them. Core stands below all parts and includes no header
 * of theirs. src/hook/parts.c lists them, and fills the functions through which core and the lower
 * parts call upwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One part. Parts start in the order of the table. Any function may be NULL.
 *
 *	start    in a process whose trace, if there is to be one, is open; with its first call
 *	forked   in each child, at once: nothing may take long, most children never come to CUDA
 *	forget   in a child that comes to CUDA, before it starts: what was of the parent
 *	at_exit  when the program ends in order, the last part first: see process_at_exit()
 *	unloaded last of all, when it ends in order and is recorded
 *
 * Calls marked in api/cuda.tbl say this before the driver's call:
 *
 *	driver_begins  the driver may be another than it was
 *	functions_end  handles of kernels may be given out anew
 *	context_ends   a context may end, and with it what was begun there
 */
struct hook_part {
	const char *name;
	void (*start)(void);
	void (*forked)(void);
	void (*forget)(void);
	void (*at_exit)(void);
	void (*unloaded)(void);
	void (*driver_begins)(void);
	void (*functions_end)(void);
	void (*context_ends)(void);
};
extern const struct hook_part hook_parts[]; /* the last has no name */

void process_driver_begins(void);
void process_functions_end(void);
void process_context_ends(void);

struct elf;
struct gated;
struct launch_given;
struct launch_shape;
struct sample;
struct settling;
struct timed_call;
struct record;
struct graph_node;
struct device_properties;

/* Records a call that CUPTI reports: its arguments in a structure, its begin, its result. */
typedef void injected_fn(const void *params, uint64_t begun, int result, uint32_t want);

/* One function each of a part above the caller; none is NULL. */
struct hook_above {
	injected_fn *const *injected; /* by the number of the driver's function */

	/* Calls that are kept: after one, whoever listens; before one of the runtime, stack_look()
	 * looks what is mapped and returns when the call begins. */
	void (*capture_saw)(uint32_t fn, int result, uint32_t flags);
	void (*stack_take)(uint32_t fn, const struct record *r);
	uint64_t (*stack_look)(uint64_t ticks);

	/* Launches. The gate: see gate.h. The timer: timing_begin() in timing.h, and its end. A
	 * kernel's arguments and prediction: the words that it takes in a record, and the words
	 * themselves from arg[at] on; of a graph, one word. */
	void (*gate_launch)(struct gated *g, const struct launch_shape *s);
	void (*gate_joined)(const struct gated *g);
	void (*gate_passed)(const struct gated *g, int result);
	void (*gate_settling)(
		struct settling *s, int what, void *event, void *stream, bool per_thread);
	void (*gate_settled)(const struct settling *s, int result);
	struct sample *(*timing_take)(uint32_t fn, const struct launch_shape *s);
	void (*timing_end)(
		struct sample *s, const struct launch_shape *shape, const struct timed_call *call);
	uint32_t (*given_read)(uint32_t control, const struct launch_shape *s, void *const *params,
		void *const *extra, struct launch_given *ret_given);
	void (*given_put)(struct record *r, const struct launch_given *g, uint32_t at);
	uint64_t (*graph_time)(const struct record *r);

	/* Functions that the program looks up: of libraries above CUDA, and CUPTI's own. */
	void (*library_look)(unsigned fn);
	void (*library_bound_by_audit)(unsigned fn, const struct elf *e);
	void *(*cupti_answer)(const char *name, void *real);

	/* News for predictions, once they are in the trace: the devices, by the first of them; a
	 * graph. */
	void (*devices_known)(const struct device_properties *first, bool one_kind);
	void (*graph_made)(uint64_t exec, const struct graph_node *nodes, size_t count);

	/* Requests of the scheduler that ranges begin and end: see sched/requests.h. */
	uint64_t (*request_begin)(uint64_t deadline_ns);
	bool (*request_end)(uint64_t name);
};
extern const struct hook_above hook_above __attribute__((visibility("hidden")));

#define OPEN_REQUESTS 64u /* a request's name modulo this is its own among those that are open */
