/*
 * The parts of the library, as core knows them. Core stands below all parts and includes no header
 * of theirs. src/hook/parts.c lists them, and fills the functions through which core and the lower
 * parts call upwards.
 */
#ifndef WEIR_HOOK_CORE_HOOK_PARTS_H
#define WEIR_HOOK_CORE_HOOK_PARTS_H

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
 */
struct hook_part {
	const char *name;
	void (*start)(void);
	void (*forked)(void);
	void (*forget)(void);
	void (*at_exit)(void);
	void (*unloaded)(void);
};
extern const struct hook_part hook_parts[]; /* the last has no name */

struct elf;
struct record;
struct graph_node;
struct device_properties;

/* One function each of a part above the caller; none is NULL. */
struct hook_above {
	/* Calls that are kept: after one, whoever listens; before one of the runtime, stack_look()
	 * looks what is mapped and returns when the call begins. */
	void (*print)(const struct record *r);
	void (*capture_saw)(uint32_t fn, int result, uint32_t flags);
	void (*stack_take)(uint32_t fn, const struct record *r);
	uint64_t (*stack_look)(uint64_t ticks);

	/* Functions that the program looks up: of libraries above CUDA, and CUPTI's own. */
	void (*library_look)(unsigned fn);
	void (*library_bound_by_audit)(unsigned fn, const struct elf *e);
	void *(*cupti_answer)(const char *name, void *real);

	/* What has been written into the trace: the devices, by the first of them; a graph. */
	void (*devices_known)(const struct device_properties *first, bool one_kind);
	void (*graph_made)(uint64_t exec, const struct graph_node *nodes, size_t count);

	/* Requests of the scheduler that ranges begin and end: see sched/requests.h. */
	uint64_t (*request_begin)(uint64_t deadline_ns);
	bool (*request_end)(uint64_t name);
};
extern const struct hook_above hook_above __attribute__((visibility("hidden")));

#define OPEN_REQUESTS 64u /* a request's name modulo this is its own among those that are open */

#endif
