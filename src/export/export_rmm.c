/*
 * The log of RAPIDS Memory Manager, as its logging_resource_adaptor writes it and its replay
 * benchmark reads it: Thread,Time,Action,Pointer,Size,Stream.  The time of day is UTC.
 */
#include "export/export_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/banned.h"

/* Imported logs may have a time of day and no date: then that is their other clock. */
static uint64_t real_ns(const struct export *x, uint64_t ticks)
{
	const struct clock_pair *start = &x->trace->header.start;
	return (start->real_ns ? start->real_ns : start->mono_ns) + trace_since_ns(x->trace, ticks);
}

static int put_event(void *context, const struct block_event *e, struct block_event *alloc)
{
	struct export *x = context;
	const uint64_t us = real_ns(x, e->ticks) / 1000, s = us / 1000000;
	const char *action = e->what == BLOCK_FREE     ? "free"
			     : e->what == BLOCK_FAILED ? "allocate failure"
						       : "allocate";
	if (e->what == SEGMENT_ALLOC || e->what == SEGMENT_FREE)
		return 0;
	fprintf(x->out,
		"%" PRIu32 ",%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n",
		e->tid, (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
		(unsigned)(us % 1000000), action, e->pointer, e->bytes, e->stream);
	return ferror(x->out) ? errno ? -errno : -EIO : 0;
}

static int begin_rmm(struct export *x)
{
	x->state = xcalloc(1, sizeof(struct block_log));
	return 0;
}

static int call_rmm(struct export *x, const struct export_call *c)
{
	block_log_add(x->state, c);
	return 0;
}

static int end_rmm(struct export *x)
{
	const struct block_sink sink = { .event = put_event, .context = x };
	fputs("Thread,Time,Action,Pointer,Size,Stream\n", x->out);
	return block_log_play(x->state, x, &sink);
}

static void cleanup_rmm(struct export *x)
{
	struct block_log *log = x->state;
	if (log)
		array_free(&log->events);
	free(log);
}

const struct exporter export_rmm = {
	.name = "rmm",
	.begin = begin_rmm,
	.call = call_rmm,
	.end = end_rmm,
	.cleanup = cleanup_rmm,
};
