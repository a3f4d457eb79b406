/*
 * The facts that the rules look at. These are GPU activities in the order of time, the calls of
 * launching threads, kernels by name and shape, and causes of idle gaps. Read-only once made.
 */
#pragma once

#include "predict/gpu.h"
#include "predict/occupancy.h"
#include "hint/hint.h"

#define HINT_NONE UINT32_MAX

/* Facts that a kernel's name tells. */
enum hint_name {
	NAME_LIBRARY = 1 << 0,   /* whoever runs the program can't turn its block size */
	NAME_MATMUL = 1 << 1,    /* a matrix product or convolution */
	NAME_FP32 = 1 << 2,      /* … on the FP32 units */
	NAME_HALF = 1 << 3,      /* … of FP16 or BF16 */
	NAME_FP8 = 1 << 4,       /* … of eight bits */
	NAME_POINTWISE = 1 << 5, /* one element in, one out */
	NAME_SOFTMAX = 1 << 6,
	NAME_MEAN = 1 << 7,
	NAME_ROOT = 1 << 8,
	NAME_ATTENTION = 1 << 9, /* fused */
	NAME_COMPILED = 1 << 10, /* made by torch.compile */
	NAME_TORCH = 1 << 11,    /* PyTorch's own, one an operator */
	NAME_TRAINING = 1 << 12, /* of a backward pass or an optimizer */
	NAME_TF32 = 1 << 13,     /* a product of FP32 on tensor cores */
	NAME_CONV = 1 << 15,     /* a convolution */
	NAME_LAYOUT = 1 << 14,   /* between channels first and channels last */
	NAME_EPILOGUE = 1 << 16, /* what a product's kernel can end with */
};

struct hint_kernel { /* launches of one name with one shape and the same resources */
	char *name;
	uint32_t names; /* bits of enum hint_name */
	uint32_t name_id;
	uint32_t device;
	struct launch_shape shape;
	uint32_t registers, shared_static, shared_dynamic;
	bool has_resources;
	uint64_t count, graph_count;
	uint64_t total_ns;
	uint64_t alone_ns; /* while nothing else ran on its device; shared by devices that are busy
			    */
};

struct hint_activity { /* by start */
	uint64_t start_ns, end_ns;
	uint64_t bytes; /* 0: not known, or none */
	uint64_t alone_ns;
	uint32_t kernel; /* into kernels, or HINT_NONE */
	uint32_t stream; /* a number of its own for each stream of each process */
	uint32_t call;   /* into calls, or HINT_NONE */
	uint32_t device;
	uint8_t kind; /* enum gpu_activity_kind */
	uint8_t what, from, to;
	bool in_graph;
};

enum hint_call_kind {
	HINT_LAUNCH,
	HINT_SYNC,
	HINT_COPY,
	HINT_MEMORY, /* allocates or frees */
	HINT_LOAD,   /* modules, libraries, contexts */
	HINT_CALLS,
};

struct hint_call { /* by thread and begin; calls inside calls are left out */
	uint64_t begin_ns, end_ns;
	uint64_t ticks;  /* when it began */
	uint64_t stream; /* launches: handle */
	uint64_t from;   /* copies to a device: address on the host; 0 not known */
	uint32_t thread;
	uint16_t fn;
	uint8_t kind;
	bool legacy; /* launches: on the legacy default stream */
};

struct hint_device {
	uint32_t device;
	const char *name;
	uint32_t multiprocessors; /* 0: not known */
	const struct occupancy_device *limits;
	const struct gpu *gpu; /* or NULL */
};

struct hint_answer { /* what the driver told the program of a kernel's occupancy */
	uint32_t name_id;
	uint32_t threads;
	uint64_t dynamic_bytes;
	uint32_t blocks;
};

struct hint_thread {
	uint32_t process, tid;
};

struct hint_stream {
	uint32_t process;
	uint32_t legacy; /* activities that were launched on the legacy default stream */
	uint32_t other;  /* launched elsewhere, where that is known */
	bool blocking;   /* was made by a call that says so */
};

struct hint_facts {
	const struct report *report;
	ARRAY(struct hint_activity) activities;
	ARRAY(struct hint_call) calls;
	ARRAY(struct hint_kernel) kernels;
	ARRAY(struct hint_stream) streams;
	ARRAY(struct hint_device) devices;
	ARRAY(struct hint_answer) answers;
	ARRAY(struct hint_thread) threads;
	struct hint_gaps idle_gaps[GAP_CAUSES];
	uint64_t counted_ns, once_ns; /* as in struct hints, as are the next three */
	struct hint_window window;
	struct hint_outside before, after;
	/* Idle gaps in which the host was in no call came to most before this kind of activity. */
	const struct hint_activity *host_before; /* NULL: there is none */
	uint64_t host_most_ns;
	bool cut;
};

int facts_make(const struct report *r, struct hint_facts *ret_facts);
void facts_fini(struct hint_facts *f);

/* NULL when it is not known. */
const struct hint_device *facts_device(const struct hint_facts *f, uint32_t device);

/* hint_window.c: keeps the activities that count.  0 or -errno. */
int facts_window(struct hint_facts *f);

/* hint_idle.c: alone_ns, idle gaps and counted_ns, from activities and calls. */
void facts_idle_gaps(struct hint_facts *f);

/* hint_place.c: calls of a kind, as text: the function that is called most, and the range, as far
 * as there are any, in which that is done most.  `otherwise` when there are
 * none. */
char *facts_place(const struct hint_facts *f, uint8_t kind, const char *otherwise);

/* ", called from f (a.c:1) < g (a.c:2)", or "" where the stack is not known; returns `to`. */
const char *facts_stack(const struct report *r, uint32_t stack, char *to, size_t size);

/* How many kernels have such names, any for 0; and whether torch.compile has made the program: some
 * kernels, or the regions that it marks. */
uint64_t facts_kernels(const struct hint_facts *f, uint32_t names);
bool facts_compiled(const struct hint_facts *f);

/* hint_names.c */
uint32_t hint_names_of(const char *kernel);

#define GAIN_SHOWN 0.05 /* estimates are not better than that */

/* Adds a hint; `where` and `evidence` move to it.  Gains of less than 5 % of the
 * analysed time are dropped. */
void hint_add(struct hints *to, const struct hint_rule *rule, double gain, double confidence,
	char *where, char *evidence);

/* The words to add to evidence that hangs on the host's speed: "" or a half-sentence. */
const char *facts_slowed(const struct hint_facts *f);

/* The share of the analysed time. */
double facts_share(const struct hint_facts *f, double ns);

/* The most that faster kernels can save, as such a share: what they are of the critical path. If
 * the device waits for the host, it would only wait longer.  kernel: a name; NULL for all. */
double facts_most(const struct hint_facts *f, const char *kernel);

/* A double that may be anything, for printing. */
static inline uint64_t hint_u64(double value)
{
	return value >= 1e18 ? (uint64_t)1e18 : value > 0 ? (uint64_t)value : 0;
}

/* The functions of the rules: a file that defines some includes hint_rules.h, which declares one
 * for each row of api/hint.tbl are declared so. */
#define HINT_RULE(name)                                                                            \
	void evaluate_##name(                                                                      \
		const struct hint_facts *f, const struct hint_rule *rule, struct hints *to)
