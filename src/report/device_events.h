/*
 * The code that sections made on request share: durations of one kind, and the GPU activities of a
 * trace with their owners. Internal to src/report. One thread.
 */
#ifndef WEIR_REPORT_DEVICE_EVENTS_H
#define WEIR_REPORT_DEVICE_EVENTS_H

#include <stdint.h>

#include "base/hist.h"
#include "base/spread.h"
#include "model/nested.h"
#include "model/report.h"

/* Durations of one kind: VALUES() of shared_columns.h has their columns. */
struct values {
	struct hist hist;
	struct spread spread;
	uint64_t total;
};
void values_add(struct values *v, uint64_t ns);

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

#endif
