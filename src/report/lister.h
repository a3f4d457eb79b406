/*
 * What the lists that are made when they are asked for (event_lists.h) have in common: a row is an
 * object of JSON, written into memory that the next row uses again, and handed over.  Internal to
 * src/report.  One thread.
 */
#ifndef WEIR_REPORT_LISTER_H
#define WEIR_REPORT_LISTER_H

#include <stdint.h>
#include <stdio.h>

#include "base/hist.h"
#include "base/json.h"
#include "base/spread.h"
#include "model/demangle.h"
#include "model/nested.h"
#include "model/report.h"
#include "report/fields.h"

struct lister {
	const struct report *r;
	const struct section_reader *to;
	struct demangled names;
	struct json j; /* the row at hand */
	FILE *out;
	char *text;
	size_t bytes;
};

/* The object that the row's keys go into; and its end: 0, -ENOMEM, or what the reader returned. */
struct json *lister_begin_row(struct lister *l);
int lister_end_row(struct lister *l);

/* Nanoseconds since the recording began, of a time of CLOCK_MONOTONIC. */
uint64_t lister_since(const struct lister *l, uint64_t ns);

/* A name of the trace, and a string of a process of it, demangled. */
const char *lister_name(struct lister *l, uint32_t name);
const char *lister_string(struct lister *l, uint32_t process, uint32_t id);

/* Three numbers, or null. */
void lister_put_triple(struct json *j, const char *key, bool known, const uint32_t *v);

/* Durations of one kind: of each its keys with this prefix. */
struct values {
	struct hist hist;
	struct spread spread;
	uint64_t total;
};
void values_add(struct values *v, uint64_t ns);
void values_put(struct json *j, const char *prefix, const struct values *v);

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

/* The lists that are in files of their own: 0, -errno, or what the reader returned. */
int list_activities(struct lister *l); /* activity_lists.c */
int list_launch_gaps(struct lister *l);
int list_families(struct lister *l);
int list_calls(struct lister *l); /* call_list.c */
int list_waits(struct lister *l);
int list_range_paces(struct lister *l); /* range_lists.c */
int list_range_kernels(struct lister *l);
int list_kernel_shapes(struct lister *l); /* shape_list.c */
int list_steps(struct lister *l);         /* step_list.c */
int list_busy(struct lister *l);          /* time_lists.c */
int list_at_once(struct lister *l);

#endif
