/*
 * Replays the allocations of a recording through other allocators. For each it measures the memory
 * that it would take from the driver, and the cost of its driver calls. A recording gives requests
 * in their order, each design is a model, and one of them is the pool itself (src/pool).
 *
 *	alloc_trace_read(report, &trace, &err);
 *	allocator_replay(&trace, &setup, &result);
 *
 * Times of driver calls are those of one machine (prices.c), so they compare designs and predict
 * nothing. One owner thread. The caller frees the results.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/error.h"

struct alloc_event {
	uint64_t ns; /* since the first */
	uint64_t bytes;
	uint32_t block; /* allocations are numbered as they come; a free has its allocation's */
	uint32_t stream;
	bool free;
};

struct alloc_trace {
	ARRAY(struct alloc_event) events;
	uint32_t blocks, streams;
	uint32_t pid, processes; /* of the one that allocated most often, and how many others did */
	bool framework;          /* by an allocator above CUDA; else they are calls to the driver */
	uint64_t live_most;      /* blocks */
	uint64_t live_peak;      /* bytes */
};

struct report;
int alloc_trace_read(const struct report *r, struct alloc_trace *ret_trace, struct error *err);
void alloc_trace_free(struct alloc_trace *t);

enum alloc_call { CALL_MEM_ALLOC, CALL_CREATE, CALL_MAP, CALL_ACCESS, CALL_UNMAP, ALLOC_CALLS };

#define ALLOC_POINTS 600u

/* The counts of a design; the last part is filled in by the replay. */
struct alloc_meter {
	uint64_t reserved, reserved_peak; /* bytes, from the driver */
	uint64_t calls[ALLOC_CALLS];
	double ns, event_ns; /* of calls in all, and in this event */
	uint64_t over;       /* handles that were made in spite of the limit */

	double worst_ns;                   /* of one allocation */
	double reserved_area, unused_area; /* bytes times ns: reserved, and of it not live */
	uint64_t worst_unused;             /* bytes at one time */
	uint64_t live[ALLOC_POINTS], held[ALLOC_POINTS]; /* the most, and reserved, over time */
};

/* prices.c: so many calls, about so many bytes each; CALL_MEM_ALLOC has its free with it. */
void meter_calls(struct alloc_meter *m, enum alloc_call call, uint64_t bytes, uint64_t count);
void meter_reserve(struct alloc_meter *m, uint64_t bytes);
void meter_give_back(struct alloc_meter *m, uint64_t bytes);

/* A pool, and where it placed each block. */
struct alloc_pool {
	struct pool *pool;
	uint64_t *addresses; /* 0: the block was not placed */
	uint64_t settled_ns;
	uint32_t limit; /* handles */
};
struct pool_shape;
struct alloc_pool *alloc_pool_new(const struct alloc_trace *t, const struct pool_shape *shape);
void alloc_pool_free(void *p);

struct alloc_setup {
	uint64_t handle_bytes; /* of the pool: a power of two, from 2 MiB to 64 MiB */
	uint64_t limit_bytes;  /* 0: none */
};

struct alloc_design {
	const char *name, *colour; /* of its line in the picture */
	void *(*open)(const struct alloc_trace *t, const struct alloc_setup *s);
	/* 0 or -errno. */
	int (*place)(void *state, const struct alloc_event *e, struct alloc_meter *m);
	int (*release)(void *state, const struct alloc_event *e, struct alloc_meter *m);
	uint64_t (*minimum_limit)(
		const void *state); /* with which it would have done; may be NULL */
	void (*close)(void *state);
};

extern const struct alloc_design design_pool, design_pytorch, design_expandable, design_driver;

/* A mask of one bit for each design, by names with commas between; 0: one is none. */
unsigned alloc_designs_parse(const char *names);
#define ALLOC_DESIGNS 4u

struct alloc_row {
	const struct alloc_design *design;
	struct alloc_setup setup;
	struct alloc_meter meter;
};

struct alloc_replay {
	const struct alloc_trace *trace;
	uint64_t handle_bytes;
	uint64_t minimum_limit;                   /* the pool's, in bytes; 0: it was not replayed */
	struct alloc_row rows[ALLOC_DESIGNS + 1]; /* the pool twice: with that limit too */
	size_t count;
};

/* ret_replay is large; trace must stay.  0 or -errno. */
int allocator_replay(const struct alloc_trace *t, unsigned designs, uint64_t handle_bytes,
	struct alloc_replay *ret_replay);

struct alloc_row_name {
	char text[48];
};
const char *alloc_row_name(const struct alloc_row *r, struct alloc_row_name *to);

/* The most that was live, as a share of the most that was reserved. */
double alloc_row_share(const struct alloc_replay *r, const struct alloc_row *row);

/* The share of the reserved memory that was not live, over the time; NAN: nothing was reserved. */
double alloc_row_unused(const struct alloc_row *row);

void alloc_put_text(const struct alloc_replay *r, FILE *out, bool colour);
void alloc_put_json(const struct alloc_replay *r, FILE *out);
void alloc_put_svg(const struct alloc_replay *r, FILE *out);
