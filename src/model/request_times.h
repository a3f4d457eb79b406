/*
 * Requests to servers of models (weir serve -o), with the batches that ran them, and what ran on
 * GPUs for each batch and beside it.  One pass each over requests, ranges and GPU activities makes
 * it, and then any thread may read it.
 *
 * The time of a request is cut into parts that add up to it.  The longest part is its cause.
 */
#pragma once

#include "base/array.h"
#include "join/links.h"
#include "join/nested.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/trace.h"

enum request_part {
	PART_SOCKET,     /* from its first byte to its last one */
	PART_PARSE,      /* until its model admitted it */
	PART_QUEUE,      /* until a batch took it */
	PART_GATHER,     /* until the engine began: inputs were put together */
	PART_KERNELS,    /* a kernel of the batch ran */
	PART_COPIES,     /* a memcpy or memset of the batch ran, and no kernel of it */
	PART_NEIGHBOURS, /* the batch took that much longer than usual beside work of others */
	PART_ENGINE,     /* the rest of the engine's time: on the host */
	PART_ANSWER,     /* until its answer was given to the connection */
	REQUEST_PARTS
};
const char *request_part_name(enum request_part part);

#define BATCH_NONE   UINT32_MAX
#define REQUEST_NONE UINT32_MAX

struct batch_row {
	struct nested at;  /* its range */
	uint64_t number;   /* 0: unknown */
	uint64_t from, to; /* ns: from its first request's inputs to the engine's end */
	uint64_t on;       /* ns: the engine began; 0: unknown, none of its requests is here */
	uint32_t model;    /* into meta.names */
	uint32_t rows;
	uint32_t requests;     /* that are here */
	uint32_t first, count; /* its activities */
	/* Within [on, to]: lengths of unions. */
	uint64_t kernels_ns, copies_ns, beside_ns;
	/* Than batches of its model and rows usually take: in all, and their kernels. */
	uint64_t slower_ns, kernels_slower_ns;
};

struct request_row {
	struct served_request q;
	uint32_t process;
	uint32_t model; /* into meta.names, or META_NONE */
	uint32_t batch; /* into batches, or BATCH_NONE */
	uint64_t part[REQUEST_PARTS];
};

struct batch_activity {
	struct gpu_activity w;
	uint32_t process;
	uint32_t batch; /* into batches, or BATCH_NONE */
};

struct requests {
	ARRAY(struct request_row) v;             /* by first byte */
	ARRAY(struct batch_row) batches;         /* by process, thread and begin */
	ARRAY(uint32_t) by_time;                 /* batches by begin */
	ARRAY(struct batch_activity) activities; /* by batch, those of none last; and by begin */
	ARRAY(uint32_t) beside;                  /* activities by begin */
	uint64_t longest_ns;                     /* activity */
};

/* 0 or -errno; requests_fini() either way.  Damaged chunks are passed over. */
int requests_load(const struct trace *t, const struct meta *m, const struct links *links,
	struct requests *ret_requests);
void requests_fini(struct requests *r);

/* Whether the recording tells this part: without GPU activities nobody measured what ran there. */
bool requests_tell(const struct requests *r, enum request_part part);

/* From its first byte to its answer. */
uint64_t request_total(const struct request_row *q);
/* The longest part; its first one when it took no time. */
enum request_part request_cause(const struct request_row *q);
/* Batches that ran while it was queued, by model: the one that ran longest first. */
struct behind {
	uint32_t model, batches;
	uint64_t ns;
};
struct behinds {
	ARRAY(struct behind) v;
};
void request_behind(const struct requests *r, const struct request_row *q, struct behinds *ret);

/* The activities on GPUs between two times that are of no batch `not`: calls `take` with the part
 * of it that lies between. */
void requests_beside(const struct requests *r, uint64_t from, uint64_t to, uint32_t not,
	void (*take)(void *context, const struct batch_activity *a, uint64_t from, uint64_t to),
	void *context);
