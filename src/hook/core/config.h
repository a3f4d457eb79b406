/*
 * The injected library's configuration comes from the environment variable WEIR, read once when the
 * library is loaded.
 *
 *	WEIR=[OPTION,...]record:FILE	keep calls in FILE
 *	WEIR=sched[,OPTION...]		keep nothing, share the GPU
 *
 * The options are the rows of WEIR in api/option.tbl. Without WEIR the library only passes calls
 * on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/level.h"
#include "record/writer.h"
#include "share/segment.h"

/* Which part of the run is recorded; without any of it, all (capture.h). */
struct config_capture {
	char what[80], delay[24];       /* both as WEIR has them; "": not so */
	bool profiler;                  /* from cuProfilerStart to cuProfilerStop */
	char range[64];                 /* in ranges of that name; "": not so */
	uint32_t first_step, last_step; /* steps counted from 1; 0: not so */
	uint64_t delay_ns,
		duration_ns; /* from the begin of the recording, of the first part; 0: none */
	uint64_t launches;   /* so many of a process; 0: all */
};

struct config {
	bool records;                /* keeps calls in a file */
	uint32_t control;            /* of the level, and of args and predict */
	uint64_t flight_bytes;       /* 0: no flight recording */
	bool join;                   /* the file is there: make no other when it is gone */
	bool gpu;                    /* device times as well */
	uint32_t sample_rate;        /* of one launch in so many; 0: of all */
	uint64_t window;             /* launches that CUPTI times as well at a time; 0: as usual */
	bool reconstruct;            /* all the others are reconstructed of these */
	bool args;                   /* what kernels are given as well */
	bool predict;                /* and how long they will run */
	struct stack_options stacks; /* whose stacks are kept; control 0: nobody's */
	char history[RECORDER_PATH], warm[RECORDER_PATH], model[RECORDER_PATH]; /* "": none */
	char models[RECORDER_PATH];
	char path[RECORDER_PATH]; /* absolute */

	struct config_capture capture;

	bool sched; /* the program shares the GPU */
	struct share_self self;
	bool pool;
	bool is_rank; /* of several: WORLD_SIZE, of torchrun and others */
	uint64_t wait_memory_ns;
	char share[SHARE_PATH]; /* the directory */
	char request_range[64]; /* NVTX ranges of that name are requests; "": as streams say */
};

/* Whether the library is asked for anything. */
static inline bool config_is_asked(const struct config *c)
{
	return c->records || c->sched;
}

/* Reads WEIR, the first time; a wrong one is told on standard error, and nothing is kept. */
const struct config *config_get(void);
