/*
 * The counted content of a trace that the text and JSON reports print.
 *
 * report_make() reads all chunks once, in parallel, with a tally for each thread. The tallies are
 * merged and sorted. Durations stay in ticks (`_ticks`) until they are printed. Memory grows with
 * the number of different things and of allocations, not with calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hist.h"
#include "base/spread.h"
#include "event/decode.h"
#include "predict/gpu.h"
#include "join/links.h"
#include "join/nested.h"
#include "path/path.h"
#include "trace/meta.h"
#include "trace/accounts.h"
#include "trace/trace.h"

struct call_row {
	const struct schema_fn *fn; /* NULL: not in the schema */
	uint32_t id;
	uint64_t count;
	uint64_t timed;  /* of count: those whose duration is known one by one */
	uint64_t summed; /* of count: those whose duration is in total_ticks */
	uint64_t total_ticks;
	uint64_t errors;
	uint64_t ok_plain;   /* succeeded and not captured: the activity was really launched */
	uint64_t ok_counted; /* of ok_plain: only counted, so without arguments */
	uint64_t bytes;      /* allocated, copied or set by those … */
	uint64_t sized;      /* … of them whose arguments say how many */
	uint8_t vmm;         /* enum vmm_what */
	uint8_t memory_call; /* enum memory_call */
	uint8_t wait;        /* enum wait_kind */
	bool waits;          /* a synchronisation */
	bool uses_stream;    /* puts work on the stream that it is given */
	struct hist hist;    /* of timed, in ticks */
};

/* Why a call returned late. */
enum wait_kind { WAIT_NONE, WAIT_SYNC, WAIT_COPY, WAIT_FREE, WAIT_LONG_COPY };

struct wait_call {
	struct nested at; /* among those that wait: one inside another has that as its parent */
	uint16_t fn;
	uint8_t kind; /* enum wait_kind */
};

/* Whether the total is that of all the calls: of those that succeed some are only counted. */
static inline bool call_total_known(const struct call_row *c)
{
	return c->summed == c->count;
}

struct failure_row {
	uint32_t fn_id;
	uint32_t code;
	uint32_t process;
	uint32_t tid;
	uint64_t count;
	uint64_t first_ticks;
};

struct shape_row {       /* launches of one kernel with one grid and block */
	uint64_t kernel; /* name's index; or KERNEL_UNNAMED | handle */
	uint64_t count;
	uint64_t graph_count; /* of count: as nodes of graphs */
	uint64_t host_ticks;
	struct launch_shape shape;
};
#define KERNEL_UNNAMED (1ull << 63)

struct kernel_row {
	char *name;          /* demangled, or as it was */
	const char *mangled; /* the trace's, or NULL */
	uint64_t count;
	uint64_t graph_count;
	uint64_t host_ticks;
	uint64_t common; /* launches of the most common shape */
	uint32_t shapes;
	struct launch_shape shape; /* the most common one */
	uint32_t activity; /* index into report.activities, or ACTIVITY_NONE: never seen running */
	struct hist hist;  /* of its launches on the host, in ticks; graphs have none */
};
#define ACTIVITY_NONE UINT32_MAX

enum memory_kind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_VMM, MEMORY_HOST, MEMORY_KINDS };
extern const char *const memory_kind_name[MEMORY_KINDS];

struct memory_use {
	uint64_t allocs, frees;
	uint64_t counted; /* of both: without arguments, so how much is live is not known */
	uint64_t allocated_bytes;
	uint64_t live, live_bytes;
	uint64_t peak_bytes;
};

struct live_block {
	uint64_t pointer;
	uint64_t bytes;
	uint64_t ticks;
	uint32_t process;
	uint32_t stack; /* of the allocation, into stacks.rows; STACK_NONE */
	uint16_t fn_id;
	uint8_t kind;
};

struct live_blocks { /* as ARRAY() */
	struct live_block *v;
	size_t n, room;
};

struct moved_row {
	const char *direction;
	uint64_t count;
	uint64_t sized; /* of count: those whose size is known, which have bytes and sized_ns */
	uint64_t bytes;
	uint64_t sized_ns;
	uint64_t device_ns; /* valid with report.activities.n: then all of the row is what devices
			       did */
};

int moved_order(const void *one, const void *two); /* most bytes first */

/* The bound of an activity. */
enum bound_class { BOUND_UNKNOWN, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LATENCY, BOUND_LAUNCH };

/* How it is known: from FLOPs and bytes, from times and shapes alone, or from a name. */
enum bound_basis { BASIS_NONE, BASIS_COST, BASIS_TIME, BASIS_NAME };

extern const char *const bound_class_name[], *const bound_basis_name[];

/* The time of activities whose ceiling is known, and their time at the ceiling. */
struct roofline_share {
	double ns, ideal_ns;
};

/* FLOPs and bytes that activities had to do at least, and how far that is from what the device can.
 */
struct roofline {
	uint64_t count; /* GPU activities, or operators, whose cost is known */
	uint64_t ns;    /* that those took on a device */
	double flops, bytes;
	bool has_flops, has_bytes, has_unit;
	uint8_t unit; /* enum gpu_unit that did most of them, valid with has_unit */
	double unit_flops[GPU_UNITS];
	struct roofline_share compute, memory;
	double cached_ns;     /* faster than the memory is, and nobody says what the L2 gives */
	double flops_share;   /* achieved, of the units' peaks; valid when above 0 */
	double bytes_share;   /* achieved, of the memory's bandwidth; valid when above 0 */
	uint8_t class, basis; /* enum bound_class, enum bound_basis */
};

/* Device activities of one name. */
struct activity_row {
	char *name; /* demangled */
	const char *mangled;
	uint16_t kind; /* enum gpu_activity_kind */
	uint64_t count;
	uint64_t graph_count; /* of count: as nodes of graphs */
	uint64_t total_ns;    /* report.sampled: estimated, mean times count */
	uint64_t launched;    /* then of count: not as nodes of graphs */
	double error_ns;      /* then half the 95 % interval of it; NAN: timed once, not known */
	uint64_t waited_ns;   /* of those timed by events: how long the stream waited for the host,
			       * which is taken off */
	uint64_t idle_count;  /* of those: the stream had come to the event in front */
	uint64_t late_ns;     /* how long after the launches the events behind were recorded */
	bool waited_unknown;  /* of some of them both are not known */
	uint64_t bytes;       /* of memcpys and memsets: of those whose size is known … */
	uint64_t sized;       /* … so many */
	uint64_t host_ticks;  /* of the launches, as far as they are known */
	uint64_t common;      /* count of the most common shape */
	uint32_t shapes;
	struct launch_shape shape;
	struct hist hist;     /* nanoseconds */
	struct spread spread; /* of the same */
	/* For activities whose call is known: from its return to their start. */
	uint64_t queued_ns, queued_count;
	uint64_t starved_ns; /* nothing ran before it began, since the host was still launching */
	uint64_t starved_count; /* of count: before which that was longer than they then ran */
	uint64_t path_ns;       /* on the critical path */
	bool communicates;      /* a collective operation */
	struct roofline roofline;
};

struct copy_row {
	uint8_t what, from, to; /* 0: not known */
	bool is_memset;         /* not a memcpy; `from` is where */
	uint64_t count;
	uint64_t sized; /* of count: those whose size is known, of which the next four are */
	uint64_t bytes, min_bytes, max_bytes;
	uint64_t sized_ns;
	uint64_t total_ns;
	struct hist hist; /* nanoseconds */
};

struct operator_row {
	const char *name;
	const char *shape; /* report.by_shape: what it was given, shape_bytes of it; or NULL */
	size_t shape_bytes;
	uint16_t kind; /* enum range_kind: those that nest */
	bool library;  /* a call of cuBLAS or cuDNN: inside an operator, its activities are that
			  one's */
	uint64_t count;
	uint64_t host_ticks;
	uint64_t host_self_ticks; /* without the ranges inside */
	uint64_t activity_count;  /* GPU activities that it asked for itself */
	uint64_t device_self_ns;
	uint64_t device_total_ns; /* with the ranges inside */
	struct hist host_hist;    /* of single ones, in ticks */
	struct hist device_hist;  /* of single ones with activities, in nanoseconds */
	/* For single ranges that a program names, in nanoseconds: from the start of the first
	 * activity that was asked for inside to the end of the last. */
	struct hist span_hist;
	uint64_t span_ns; /* of all those together */
	struct roofline roofline;
};

/* Ranges that may cross others: NVTX from start to end with its marks, what profilers say of
 * themselves.  Activities belong to none of them. */
struct span_row {
	const char *name;
	uint16_t kind; /* enum range_kind */
	uint64_t count;
	uint64_t host_ticks;
	struct hist host_hist; /* in ticks; marks, which have no length, are not in it */
};

struct stream_row {
	uint32_t process;
	uint32_t device, context, stream;
	uint64_t count;
	uint64_t total_ns;
	uint64_t busy_ns; /* at least one of its activities ran */
	uint64_t first_ns, last_ns;
};

struct device_row {
	uint32_t device;
	const char *name; /* or NULL */
	uint64_t count;
	uint64_t busy_ns; /* something ran */
	uint64_t kernel_ns, copy_ns, set_ns;
};

/* One thread's sums; of calls to the driver but for `calls`. */
struct thread_sums {
	uint32_t number; /* of trace_number_threads(): a tid may come again */
	uint32_t process, tid;
	uint64_t calls;    /* of all kinds */
	uint64_t launches; /* kernels and graphs that were really launched */
	uint64_t timed;    /* calls whose time is known, which is in timed_ticks */
	uint64_t timed_ticks;
	uint64_t waits, wait_ticks; /* synchronisations, and the time of those that are timed */
	uint64_t allocated_bytes;
};

static inline void thread_sums_add(struct thread_sums *to, const struct thread_sums *s)
{
	to->calls = sat_add(to->calls, s->calls);
	to->launches = sat_add(to->launches, s->launches);
	to->timed = sat_add(to->timed, s->timed);
	to->timed_ticks = sat_add(to->timed_ticks, s->timed_ticks);
	to->waits = sat_add(to->waits, s->waits);
	to->wait_ticks = sat_add(to->wait_ticks, s->wait_ticks);
	to->allocated_bytes = sat_add(to->allocated_bytes, s->allocated_bytes);
}

struct thread_row {
	uint32_t process;
	uint32_t tid;
	struct thread_sums sums;
	uint32_t last_seq;
	uint32_t inflight_fn;
	uint64_t inflight_ticks;
	char name[16];
};

/* Wall time, by what was going on; the parts add up to it. */
enum wall_part {
	WALL_COMPUTING,
	WALL_COMMUNICATING, /* and nothing computed */
	WALL_COPYING,       /* or setting, and nothing else */
	WALL_LAUNCHING,     /* idle: the host was about to launch */
	WALL_WAITING,       /* idle: the host was in a call that waits */
	WALL_DRIVER,        /* idle: the host was long in another call */
	WALL_HOST,          /* idle: the host was in no call */
	WALL_QUEUED,        /* idle: activities were queued and had not begun */
	WALL_UNKNOWN,       /* idle: the call that ended it is not known */
	WALL_OFF,           /* recording was switched off, and nothing ran that was recorded */
	WALL_BEFORE,        /* before the first activity */
	WALL_AFTER,         /* after the last */
	WALL_PARTS
};

/* The names of the parts in JSON, and in words: one thing, one name.  path.h has those of the
 * critical path. */
extern const char *const wall_part_name[WALL_PARTS], *const wall_part_text[WALL_PARTS];

/* The meaning of a range's span, in a line to stand below a table that has it. */
extern const char range_span_meaning[];

/*
 * A part of a time in which no device did anything: what the host was doing, enum host_state of
 * host_time.h, until the call for the activity that ended it had returned; then that was
 * queued.
 */
struct idle {
	uint64_t until_ns; /* when that activity began; all parts of one idle gap have the same */
	uint64_t ns;
	uint8_t what;    /* enum host_state, IDLE_OFF, IDLE_QUEUED or IDLE_UNKNOWN */
	uint8_t blocked; /* enum host_state: what it was in when the device ran dry */
	uint8_t issued;  /* enum idle_issued */
};
#define IDLE_OFF     0xfd
#define IDLE_QUEUED  0xfe
#define IDLE_UNKNOWN 0xff

/* When the activity that ended an idle gap was asked for, seen from the moment in which the device
 * ran dry.
 */
enum idle_issued {
	ISSUED_AFTER,        /* the call had not begun */
	ISSUED_DURING,       /* it had begun, and not returned */
	ISSUED_BEFORE,       /* it had returned */
	ISSUED_BY_SAME_CALL, /* by the same call as the activity before */
};

/* The thread that kept the host from asking for the next activity: src/blame.  Names are numbers in
 * meta.names, or META_NONE. */
struct idle_culprit {
	uint64_t call_ns; /* of the gap the thread spent in that call; 0: no call is to blame */
	uint16_t call_fn;
	uint32_t operator, module, line;
	uint32_t stack;    /* of that call, into stacks.rows, or STACK_NONE */
	uint32_t began_in; /* the operator that asked for the next activity */
};

/* A time in which no device did anything. */
struct idle_gap {
	uint64_t start_ns; /* since the wall time began */
	uint64_t ns;
	enum wall_part cause;      /* of most of it */
	const char *ended, *began; /* names of the last activity before it, and of the next */
	uint64_t began_bytes;      /* that the next copies or sets; 0: not known */
	bool began_named;          /* its name says what it is, as a kernel's does */
	uint32_t link;             /* into links: the call for the next; UINT32_MAX: not known */
	struct idle_culprit culprit;
};

struct queue {
	uint64_t calls; /* that launched activities which were seen to run */
	uint64_t api_ns, queued_ns;
	struct hist queued; /* nanoseconds from a call's return to its activity */
	uint64_t span_ns;   /* from the first of the calls to the start of the last activity */
	uint64_t empty_ns;  /* of span_ns: nothing was asked for and not begun */
	uint64_t depth_most;
	double depth_mean;
};

#define IDLE_GAPS_KEPT 20u

struct analysis {
	bool known;        /* something ran on a device; else nothing here means anything */
	uint64_t start_ns; /* when the wall time began; CLOCK_MONOTONIC */
	uint64_t wall_ns[WALL_PARTS];
	uint64_t path_ns[PATH_PARTS];
	uint64_t path_host_most_ns;       /* what a host that takes no time would save of it */
	uint64_t copy_ns, copy_hidden_ns; /* hidden: while something computed */
	uint64_t communication_ns, communication_hidden_ns;
	struct queue queue;
	ARRAY(struct idle_gap) idle_gaps; /* the longest, by length */
	ARRAY(struct idle) idle;          /* all, by time */
};

struct hints;
struct prediction;
struct gpu_states;
struct requests;
struct stacks;

/* The calls of a function that came with one call stack, of those whose stack was kept. */
struct caller_row {
	uint32_t stack; /* into stacks.rows */
	uint16_t fn_id;
	uint64_t count, errors;
	uint64_t ticks, most_ticks;
};
struct report {
	const struct trace *trace;
	uint32_t facets; /* FACET(): those that are here; the members of others mean nothing */
	bool by_shape;   /* a row of operators for each shape that one was given */
	bool all_gaps;   /* analysis.idle_gaps are all, by time */
	bool all_live;   /* JSON has all blocks that are live, not LIVE_SHOWN */
	struct meta meta;

	uint64_t calls, errors, launches, graph_launches, lost;
	uint64_t runtime_graph_launches; /* of these, where no driver was seen below */
	uint64_t allocator_events;       /* of a program's own allocator: no calls */
	uint64_t torn, damaged_chunks;
	struct accounts accounts;  /* what the processes entered, and whether it is here */
	uint64_t unnamed_graphs;   /* graph launches whose kernels are not known */
	uint64_t counted_launches; /* launches known only by number */
	uint64_t counted_errors;
	uint64_t first_ticks, last_ticks; /* of any call */
	uint64_t wall_ns;
	uint64_t off_ns; /* of that: recording was switched off, which is no time of a rate */
	uint64_t clock_residual_ns; /* how far the line of the clock passes from its pairs, at most
				     */
	uint64_t streams, contexts;

	ARRAY(struct call_row) call_rows;       /* by total time */
	ARRAY(struct failure_row) failure_rows; /* by count */
	ARRAY(struct kernel_row) kernel_rows;   /* by count */
	ARRAY(struct wait_call) waits;          /* as nested() puts them */
	ARRAY(struct moved_row) copies;         /* by bytes */
	struct moved_row sets;
	struct memory_use memory[MEMORY_KINDS];
	struct memory_use gpu_memory;        /* device, managed and vmm together */
	struct live_blocks live;             /* at the end, by bytes */
	struct memory_detail *memory_detail; /* memory.h */
	ARRAY(struct thread_row) threads;

	/* For traces that say what ran on devices: see docs/reference/trace-format.md. */
	ARRAY(struct activity_row) activities; /* by total time */
	ARRAY(struct copy_row) device_copies;  /* memcpys and memsets, by total time */
	ARRAY(struct operator_row) operators;  /* by device time, then time on the host */
	ARRAY(struct span_row) span_rows;      /* by total time, then count */
	ARRAY(struct stream_row) stream_rows;  /* by total time */
	ARRAY(struct device_row) devices;
	struct links links; /* which call launched which activity, and how well that is known */
	struct analysis analysis;
	const struct gpu *gpu; /* whose ceilings count: the busiest device's; NULL: not known */
	uint32_t gpu_sms;      /* of that device, 0 when not known */
	/* One launch in so many was timed; 0: all activities were.  Then rows of activities have
	 * estimates, count and total_ns, and in hist what was timed; nothing else here says what
	 * devices did.
	 */
	uint32_t sampled;
	double sampled_ns, sampled_error_ns; /* of all launches and graphs together, estimated so;
					      * of kernels that were timed once the error is all */
	double sampled_least_ns;             /* what they took at least; NAN: not known */
	double sampled_waited_ns;            /* how long streams waited for the host, estimated */
	uint64_t sampled_left_out;           /* timed, but the host was too slow to tell */
	struct event_pairs {                 /* what two events measure with nothing between */
		uint64_t count, total_ns, least_ns;
	} event_pairs;
	uint64_t reconstructed;        /* GPU activities that nobody measured */
	double reconstructed_error_ns; /* mean of how far those are off */
	uint64_t device_kernels;       /* how many ran; sampled: how many were timed */
	uint64_t unjoined_activities;  /* no call is known that asked for it */
	ARRAY(char *) warnings;
	uint64_t predicted,
		unpredicted;           /* launches that were asked about: with an answer, without */
	struct prediction *prediction; /* prediction.h; NULL when nobody asked */
	struct stacks *stacks;         /* stack/stacks.h; without samples when none was recorded */
	ARRAY(struct caller_row) callers; /* of these, by total time */
	struct gpu_states *gpu_states;    /* gpu_state.h; without GPUs when none was sampled */
	struct hints *hints;              /* hint.h; NULL unless somebody asked for them */
	struct requests *requests;        /* request_times.h */
	uint32_t request; /* of them: the one that somebody asks for, or REQUEST_NONE */
};

/* Whether what ran on devices is known with its times, and all of it: what nothing ran for then
 * took none, and else it is not known how long it took. */
/* Whether recording was off all the time, so that nobody counted anything. */
bool report_is_off(const struct report *r);

/* Whether the recording tells of allocations of this kind, and of how many bytes. */
static inline bool report_knows_use(const struct report *r, const struct memory_use *u)
{
	return u->allocs || u->frees || (r->trace->header.launched && !report_is_off(r));
}
static inline bool report_knows_bytes(const struct report *r, const struct memory_use *u)
{
	return report_knows_use(r, u) && !u->counted;
}

static inline bool report_has_device_times(const struct report *r)
{
	return r->activities.n && !r->sampled;
}

/* Upper end of the 95 % interval of what samples estimate. */
static inline double report_sampled_most_ns(const struct report *r)
{
	return r->sampled_ns + r->sampled_error_ns + r->sampled_waited_ns;
}
#define LIVE_SHOWN 100u /* in JSON, unless all are asked for */

/* Facets from the sum of the tallies, some of whose rows move into r.  0 or -errno. */
struct tally;
int calls_make(struct report *r, struct tally *t);
void calls_free(struct report *r);
int kernels_make(struct report *r, struct tally *t);
void kernels_free(struct report *r);
int threads_make(struct report *r, struct tally *t);
void threads_free(struct report *r);
int streams_make(struct report *r, struct tally *t);
int waits_make(struct report *r, struct tally *t);
void waits_free(struct report *r);

/* The name of a function, also of one that the schema lacks. */
struct fn_name {
	char text[32];
};
const char *report_fn_name(const struct report *r, uint32_t id, struct fn_name *room);
