/*
 * Reconstructs the whole device timeline of a recording in which only some launches were timed
 * (`weir record --gpu=predict`, docs/explanation/reconstruction.md).
 *
 * Durations are learnt from timed launches (durations.h), and the calls of each process are played
 * (program.h, play.h). The result is GPU activities as a collector writes them, each marked as
 * reconstructed and with its uncertainty. Pure: it reads a trace and writes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "model/gpu_calls.h"
#include "trace/meta.h"
#include "trace/trace.h"

/* The known device times of one call. */
struct measured_call {
	uint64_t ticks;            /* of the call */
	uint64_t start_ns, end_ns; /* with is_exact: when it ran */
	uint64_t event_ns;   /* with has_event: from the event in front of it to that behind */
	uint32_t waited_ns;  /* the stream, for the host, from the event in front on … */
	uint32_t late_ns;    /* … and how long after the launch the event behind was recorded */
	uint32_t stream_was; /* GPU_STREAM_BUSY or _IDLE; 0: both are not known */
	uint32_t process, tid;
	uint32_t device, context, stream;
	uint32_t valid; /* GPU_HAS_DEVICE, _CONTEXT, _STREAM */
	bool is_exact, has_event;
	uint32_t first, count; /* with is_exact: of the activities, in the order of their begin */
};

/* As CUPTI has it, and the call that it belongs to. */
struct measured_activity {
	uint64_t ticks;
	uint32_t process, tid;
	struct gpu_activity activity;
};

struct measured_calls {
	ARRAY(struct measured_call) v; /* by process, thread and call */
	ARRAY(struct measured_activity) activities;
};

/* Puts them in order; what is said of one call in several places becomes one. */
void measured_calls_join(struct measured_calls *v);

void measured_calls_fini(struct measured_calls *v);

/* Loads the calls that a trace has measured.  0 or -errno. */
int measured_calls_load(const struct trace *t, const struct meta *m, struct measured_calls *ret_v);

struct rebuilt {
	struct gpu_activity activity; /* correlation: that of the link */
	uint32_t process;
	bool is_named; /* activity.name is a string of the trace; else into names, from 1 on */
};

struct rebuilt_link {
	struct link link;
	uint32_t process;
};

struct rebuilt_name {
	uint32_t name; /* of meta.names; META_NONE: text */
	const char *text;
};

struct reconstruction {
	ARRAY(struct rebuilt) activities; /* process by process */
	ARRAY(struct rebuilt_link) links;
	ARRAY(struct rebuilt_name) names; /* of all processes */
	uint64_t measured; /* of the calls that did something on a device: so many were timed */
	uint64_t like;     /* … and so many took what others like them did */
	uint64_t guessed;  /* … and of so many nothing alike was timed */
	uint64_t bounded;  /* activities that were moved, to have ended when the host knew so */
};

/* Processes of which nothing was measured are left out. */
void reconstruct(const struct trace *t, const struct meta *m, const struct gpu_calls *calls,
	const struct measured_calls *measured, struct reconstruction *ret_r);

/* From the trace alone.  0 or -errno. */
int reconstruct_trace(const struct trace *t, const struct meta *m, struct reconstruction *ret_r);
void reconstruction_fini(struct reconstruction *r);
