/*
 * The declarations that device.c and device_cost.c share while activities are joined to calls and
 * ranges.
 */
#pragma once

#include "join/nested.h"
#include "model/cost.h"
#include "model/device_time.h"
#include "predict/predict.h"

#define NONE UINT32_MAX

/* The kernels that did an operator's work: device_cost.c. */
struct doing {
	uint64_t ns; /* of the kernels that did it; 0: no such was seen, or one inside did it */
	uint32_t count;
	uint64_t weight_ns;   /* of these, those of the gradient of weights, by name … */
	uint64_t ordered_ns;  /* … or, where no name says so, by when they were launched */
	uint64_t weight_from; /* the first launch that a name gives to that gradient, 0: none */
	uint64_t input_to;    /* the last of the input's, 0: none */
	uint64_t longest_ns;  /* of products: the longest kernel, here or inside … */
	struct predict_product by; /* … and what its name says */
	enum gpu_unit unit;        /* … or the operator's type; valid with has_unit */
	bool has_unit;
	bool left;      /* to an operator inside */
	bool unordered; /* a kernel's launch is not known */
};

/* A kernel's part in what the operator around it asked for. */
struct claim {
	uint64_t ns;
	uint64_t ticks; /* its launch, + 1 */
	uint32_t span, row;
	bool weight; /* of two products it did the gradient of weights */
};

/* A range that nests. */
struct span {
	struct nested at;
	uint64_t inner_ticks; /* of the ranges directly inside */
	uint64_t device_ns;
	uint64_t first_ns, last_ns; /* of all activities inside; last_ns 0: none */
	uint32_t row;
	uint32_t activity_count;
	uint32_t inner_count; /* ranges directly inside */
	uint32_t cost;        /* into costs, or NONE */
	uint32_t ran;         /* the same, of the one inside that it calls by its own name */
	struct doing doing;   /* what did that */
	bool repeated;        /* a range around has the same name */
	bool told;            /* with its arguments */
};

struct launch { /* beside each link of the report: the span that it was made in */
	uint32_t thread;
	uint32_t span;
	bool counted; /* its time is in the sum of a kernel's */
	bool kernel;  /* a launch of one kernel: its time on the host is that kernel's */
};

struct joiner {
	struct report *r;
	struct chunk_buf buf;
	struct map thread_map, row_map, activity_map, copy_map, stream_map, device_map, shape_map,
		text_map, waited_map;
	ARRAY(uint32_t) thread_process; /* by thread */
	ARRAY(struct span) spans;
	struct cost_table costs;
	ARRAY(struct claim) claims;
	ARRAY(struct predict_product) products; /* by activity's row: what its name says */
	ARRAY(struct launch) launches;
	struct externals externals;
	struct alones alones;
	ARRAY(uint64_t) shape_counts;
	struct timeline timeline;
	size_t hint; /* into links: activities come nearly in their order */
};

#define LOOK_UP_MOST 256 /* ranges around; recursion that is deeper counts several times */

/* A kernel of this row ran for the span: what the innermost operator of known cost around asked for
 * is its, unless it only helps.  call: its launch, or NO_CALL. */
void cost_claim(struct joiner *j, uint32_t span, uint32_t row, uint32_t call, uint64_t ns);

/* Gives rows of kernels and operators their FLOPs and bytes, once all activities are claimed and
 * times of ranges inside are added.  owner_span: the range whose activities those of a library's
 * call are.
 */
typedef const struct span *owner_fn(const struct joiner *j, const struct span *s);
void cost_sum(struct joiner *j, owner_fn *owner_span);

/* Gives operators whose shapes were not told the cost of calls that look the same:
 * operator_shapes.c.  Before activities are claimed.  0 or -errno. */
int cost_alike(struct joiner *j);

/* Whether both have one name and kind, whatever their shapes. */
static inline bool is_namesake(const struct joiner *j, const struct span *a, const struct span *b)
{
	const struct operator_row *rows = j->r->operators.v;
	return a->row == b->row ||
	       (rows[a->row].kind == rows[b->row].kind && rows[a->row].name == rows[b->row].name);
}
