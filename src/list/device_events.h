/*
 * The GPU activities of a trace with their owners, which several lists share. Internal to src/list.
 * One thread.
 */
#pragma once

#include <stdint.h>

#include "join/nested.h"
#include "model/report.h"

/* The GPU activities of a trace, in the order of their start. */
struct event {
	struct gpu_activity w;
	uint32_t process;
	uint32_t link;    /* into r->links, or UINT32_MAX */
	uint32_t owner;   /* into owners: the innermost range, or OWNER_NONE */
	uint32_t named;   /* the innermost that the program names … */
	uint32_t waiting; /* … and that of the thread that this one worked for */
};
struct events {
	ARRAY(struct event) v;
	struct owners owners;
};

/* 0 or -errno; events_fini() either way. */
int events_read(const struct report *r, struct events *ret_events);
void events_fini(struct events *events);
