/* The levels of recording: see level.h. */
#include "event/level.h"

#include <string.h>

#include "event/format.h"
#include "fn_ids.h"

#define ALL ((1u << CLASS_COUNT) - 1)
#define WORK                                                                                       \
	(1u << CLASS_device | 1u << CLASS_context | 1u << CLASS_module | 1u << CLASS_memory |      \
		1u << CLASS_copy | 1u << CLASS_set | 1u << CLASS_launch | 1u << CLASS_sync |       \
		1u << CLASS_graph)

const struct level levels[] = {
	{ "off", 0, "nothing" },
	{ "stat", CONTROL_COUNT, "counters only: how often, how long, how many bytes" },
	{ "work", WORK,
		"driver calls that make, move or await GPU activities: launches, copies, memory, graphs, "
		"synchronisation, modules and contexts" },
	{ "full", ALL | CONTROL_RUNTIME | CONTROL_QUERY_COUNT,
		"every driver and runtime call. Queries that succeed are only counted" },
	{ "all", ALL | CONTROL_RUNTIME, "every driver and runtime call, queries timed as well" },
	{ 0 },
};

bool control_of_level(const char *name, uint32_t *ret_control)
{
	for (const struct level *l = levels; l->name; l++)
		if (!strcmp(l->name, name)) {
			*ret_control = l->control;
			return true;
		}
	return false;
}

const char *level_of_control(uint32_t control)
{
	for (const struct level *l = levels; l->name; l++)
		if (l->control == (control & ~CONTROL_MORE))
			return l->name;
	return "custom";
}
