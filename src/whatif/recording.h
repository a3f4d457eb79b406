/*
 * A recorded program that can run again on another device: its submissions to the GPU in order,
 * with the host's time between steps.
 *
 * The threads of a process form one line of steps. A submission stands where its call began and a
 * wait where it returned, and waiting is no host time. GPU activities give durations. An untimed
 * launch takes the mean of similar ones, or its prediction. A program without device times cannot
 * run again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/sort.h"
#include "law/law.h"
#include "trace/trace.h"

struct durations {
	ARRAY(uint64_t) v; /* ns */
};

/* A quantile of the durations that SORT(d->v, order_u64) has put in order; `otherwise` if
 * there are none. */
static inline uint64_t durations_quantile(const struct durations *d, double q, uint64_t otherwise)
{
	const double exact = q * (double)d->v.n;
	size_t rank = (size_t)exact;
	rank += (double)rank < exact;
	return d->v.n ? d->v.v[rank ? rank - 1 : 0] : otherwise;
}

#define ALL_STREAMS UINT32_MAX
#define NO_EVENT    UINT32_MAX

/* One operation of the device: one kernel, copy or set of memory. */
struct device_op {
	uint64_t alone_ns;
	uint64_t blocks;  /* of kernels */
	uint32_t lead_ns; /* behind another of the same call, as recorded */
	uint8_t kind;     /* enum law_kind */
	uint8_t engine;   /* enum law_engine, of copies */
	uint8_t warps, per_sm;
};

enum step_kind {
	STEP_SUBMIT, /* ops [first_op, first_op + op_count) of the program, one behind the other */
	STEP_SYNC,   /* waits for a stream, an event, or all */
	STEP_RECORD_EVENT, /* the event stands for what its stream was given so far */
	STEP_AWAIT_EVENT,  /* the stream goes on behind the event */
};

struct step {
	uint64_t gap_ns; /* of the host, since the step before was sent or had returned */
	size_t first_op;
	uint32_t op_count;
	uint32_t cost;   /* of a submission: into program.costs */
	uint32_t stream; /* from 0 on; of a wait also ALL_STREAMS */
	uint32_t event;  /* from 0 on, or NO_EVENT */
	uint8_t kind;    /* enum step_kind */
	bool counts;     /* for requests */
	bool gated;      /* a scheduler may have it wait */
	bool begins;     /* a request: all work before was waited for */
	bool ends;       /* the request: with this wait, all work is */
};

/* Launches that are alike: of one kernel or graph in one shape. */
struct launch_cost {
	uint64_t mean_ns, t90_ns;
	uint64_t blocks;
	uint32_t resident; /* blocks of it that one SM holds; 0: not a single kernel */
	bool plain;        /* may go to another stream */
};

struct program {
	char name[96];
	ARRAY(struct step) steps;
	ARRAY(struct device_op) ops;
	ARRAY(struct launch_cost) costs;
	uint32_t streams, events;
	uint32_t requests;        /* from beginning to end */
	uint32_t widest;          /* SMs that its widest launch fills at one block each */
	uint64_t work_ns;         /* of all ops */
	uint64_t untimed;         /* launches whose time is that of their like, or predicted */
	uint64_t left_out;        /* submissions of which no time is known at all */
	uint64_t recorded_p50_ns; /* of its requests, as recorded */
	/* Medians of the recording, or what is usual. */
	uint64_t first_ns;  /* from the launch to the begin, on an idle stream */
	uint64_t behind_ns; /* from the end of an op to the begin of the next in its stream */
	uint64_t return_ns; /* from the end of the work to the return of who waits for it */
};

struct recording {
	ARRAY(struct program) programs; /* a process that used the device each */
	uint32_t sms;                   /* of the device; 0: not known */
};

/* The recording that t has, which came from path and is needed no longer behind.  0, or -errno with
 * a sentence; -ENODATA: no program in it has device times. */
int recording_load(
	const char *path, const struct trace *t, struct recording *ret_r, struct error *err);
void recording_fini(struct recording *r);
