/*
 * The memory behind a struct predict:
 *
 *	struct predict_tables | struct entry [launches] | struct kernel_slot [kernels]
 *	| struct sibling_slot [kernels / 4] | struct sibling_scratch
 *
 * It holds offsets, not addresses, so several processes can map it anywhere and a file can keep it.
 * One thread writes. Entries and slots have a sequence number that is odd during a change. A reader
 * takes its copy if the number was even and is unchanged (copy_stable()). The writer prepares a
 * change aside and stores it whole (store_stable()).
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "predict/fit_nnls.h"
#include "predict/launch.h"

#define TABLES_MAGIC    0x334c425444495057ull /* "WPIDTBL3" */
#define WINDOW          4                     /* entries in which a key may stand */
#define SHAPES          64                    /* that a kernel slot remembers */
#define SCORES          256
#define DURATIONS       5 /* below 2, 10, 100, 1000 us, and longer: score_duration() */
#define QUANTILE_ONE    1024
#define LOG_RATIOS      32
#define KNOWN_COSTS     3 /* neither bytes nor FLOPs known, one of them, both */
#define SLOWDOWN_SPAN   16
#define LINEAR_TERMS    10
#define SIBLING_SHAPES  320 /* that a group of siblings remembers */
#define SIBLING_WAITING 64  /* more that wait for the next fit */
#define SIBLING_TERMS   24

/* The facts of one launch.  Times are as on an undisturbed device: divided by the slowdown.
 * Logarithms are of base 2. */
struct entry {
	uint64_t key; /* 0: free */
	uint32_t sequence;
	uint32_t n; /* observations, halved when they grow old; 0: it ran on another device */
	float p50_ns;
	float ewma_ns;
	float deviation; /* mean |log(t / p50)| */
	float log_p90;   /* log(p90 / p50) */
	float min_ns;
	float other_ns; /* the median of the regime before, 0: there was none */
	uint32_t last;  /* order >> 20 of the newest: milliseconds when order is nanoseconds */
	float waves, occupancy, sm_fill, lane_efficiency;
	uint16_t blocks_per_sm;
	uint8_t outliers; /* observations in a row that are out of all proportion */
	uint8_t reserved;
};
static_assert(sizeof(struct entry) == 64, "an entry is a cache line");

/* One shape in which a kernel ran. */
struct kernel_shape {
	uint32_t key; /* the upper half */
	float t_ns, waves;
	float bytes_ns, flops_ns; /* as in struct predict_question */
	float arg[PREDICT_ARGS];
	uint8_t n;
	uint8_t resident; /* blocks that an SM holds */
	uint8_t width;    /* log2 of the threads of a block, in 1/WIDTH_ONE */
	uint8_t tile;     /* its sides, four bits each: 2 log2 - 5, 0: none */
};
static_assert(sizeof(struct kernel_shape) == 56, "64 shapes and their head fit into 4 KiB");

/* The kind of predictor for a kernel's new shapes, chosen by cross-validation. */
enum fit_kind {
	FIT_NONE,
	FIT_LINEAR,  /* weight * terms(waves, scalar) */
	FIT_BOUND,   /* weight * terms(waves, bytes, FLOPs) */
	FIT_NEAREST, /* the nearest shape, scaled by the bounds */
	FIT_RATIO,   /* bound * the kernel's median ratio */
	FIT_POWER,   /* a power law of waves, width, bytes, FLOPs and arguments */
};

#define NO_ARG       0xff
#define RESIDUAL_ONE 2048
#define WIDTH_ONE    16

/* The use of the shapes around. */
enum fit_correction {
	CORRECTION_NONE,
	CORRECTION_NEAREST, /* as far off as the nearest is */
	CORRECTION_AROUND,  /* as far off as all are, the near ones most */
	CORRECTION_HALF,    /* half as far as that */
	CORRECTIONS
};

struct shape_fit {
	uint8_t kind;
	uint8_t first, second;     /* scalar = arg[first] * arg[second]; NO_ARG: 1 */
	uint8_t corrected;         /* by how far off the shapes around are: enum fit_correction */
	float weight[POWER_TERMS]; /* of those of the kind */
	float scale;               /* median |log error| of held-out shapes */
	float ratio;               /* median t / bound */
};

struct slot_head {
	uint64_t kernel; /* 0: free */
	uint32_t sequence;
	uint32_t shapes; /* filled, at most SHAPES */
	uint32_t next;   /* to be replaced: counts on */
	uint32_t stale;  /* observations since the last fit */
	uint32_t last;   /* order >> 20 of the newest */
	struct shape_fit fit;
	uint32_t known_cost; /* of its launches: launch_known_cost() */
};

struct kernel_slot {
	struct slot_head head;
	int16_t residual[SHAPES]; /* log2(t / what the fit alone says), in 1/RESIDUAL_ONE */
	uint64_t reserved[34];
	struct kernel_shape shape[SHAPES];
};
static_assert(sizeof(struct kernel_slot) == 4096, "a slot is a page");

/* A shape in which one of several siblings ran: predictor_sibling.c. */
struct sibling_shape {
	int16_t x[SIBLING_TERMS]; /* where it is */
	uint32_t key;             /* the upper half */
	float ratio;              /* log2(time / bound) */
	float weight;             /* on what is near, 0: it waits for the next fit */
	uint16_t kernel;          /* whose it is, part of the id */
	uint8_t n;                /* times that it ran */
	uint8_t reserved;
} __attribute__((aligned(64)));
static_assert(sizeof(struct sibling_shape) == 64, "a shape is a cache line");

struct sibling_trend {
	float level, slope[SIBLING_TERMS], mean[SIBLING_TERMS];
};

struct sibling_head {
	uint64_t id; /* of the group and of how much is known, 0: free */
	uint32_t sequence;
	uint32_t shapes; /* filled, oldest first */
	uint32_t fitted; /* so many of them, when trend and weights were made */
	uint32_t stale;  /* samples since then */
	uint32_t last;   /* order >> 20 of the newest */
	uint32_t reserved[8];
	struct sibling_trend trend;
};

struct sibling_slot {
	struct sibling_head head;
	struct sibling_shape shape[SIBLING_SHAPES + SIBLING_WAITING];
};
static_assert(sizeof(struct sibling_head) % 64 == 0, "shapes are cache lines");

/* The learner's memory for a fit: the hook neither allocates nor has stack for it. */
struct sibling_scratch {
	struct sibling_slot slot;
	float m[SIBLING_SHAPES][SIBLING_SHAPES];
};

/* How far answers of one tier and duration were off: log2(measured / t50) in multiples of what the
 * tier said its own error is.  From the newest come the factors that make t90 hold in 90 %
 * of cases. */
struct score_ring {
	uint32_t n;           /* ever */
	float quantile_shift; /* which quantile of the scores it takes to hold so often, less 0.9 */
	float score[SCORES];
};

/* Medians of log2(t / bound). */
struct log_ratio_ring {
	uint32_t n;
	float median;
	float deviation; /* median absolute deviation */
	float value[LOG_RATIOS];
};

struct slowdown {
	uint32_t n;
	float value[SLOWDOWN_SPAN]; /* log2(measured / expected) of the newest */
};

/* Quantiles of the scores, in 1/QUANTILE_ONE. */
struct quantiles {
	uint16_t q90;        /* 90th percentile of the scores */
	uint16_t median_abs; /* median of their absolutes */
};

/* Results of scores and slowdowns: all that a launch reads of them.  Quantiles are by tier, the
 * most trusted first, so that those of launches that ran before are in the first cache line. */
struct hot {
	float slower[2]; /* alone, contended */
	struct quantiles quantiles[PREDICT_TIERS][DURATIONS];
} __attribute__((aligned(64)));
static_assert(
	offsetof(struct hot, quantiles[2]) <= 64, "history finds its quantiles in the first line");

struct predict_tables {
	uint64_t magic;
	uint64_t bytes;
	uint32_t launches, kernels;
	uint64_t learned, ignored; /* samples */
	uint32_t sealed;           /* a checksum of all behind it stands in: */
	uint32_t check;
	struct hot hot;
	struct predict_device device;
	struct slowdown slowdown[2]; /* alone, contended */
	struct score_ring scores[PREDICT_TIERS][DURATIONS];
	struct log_ratio_ring log_ratios[FAMILIES][KNOWN_COSTS]; /* of FAMILY_UNKNOWN: of all */
} __attribute__((aligned(64)));

static inline struct entry *tables_entries(struct predict_tables *t)
{
	return (struct entry *)(t + 1);
}

static inline struct kernel_slot *tables_slots(struct predict_tables *t)
{
	return (struct kernel_slot *)(tables_entries(t) + t->launches);
}

static inline uint32_t sibling_slots(uint32_t kernels)
{
	return kernels / 4 > WINDOW ? kernels / 4 : WINDOW;
}

static inline uint32_t tables_sibling_slots(const struct predict_tables *t)
{
	return sibling_slots(t->kernels);
}

static inline struct sibling_slot *tables_siblings(struct predict_tables *t)
{
	return (struct sibling_slot *)(tables_slots(t) + t->kernels);
}

static inline struct sibling_scratch *tables_scratch(struct predict_tables *t)
{
	return (struct sibling_scratch *)(tables_siblings(t) + tables_sibling_slots(t));
}

/* Any object, looked at word by word. */
typedef uint32_t __attribute__((may_alias)) any_word;

/* Copies `bytes` (a multiple of 4) word by word while the writer may be at work.  Each word is an
 * acquire that pairs with the releases of store_words(): who sees a new word sees the odd number,
 * too. */
static inline void copy_words(void *into, const void *from, size_t bytes)
{
	const any_word *words = from;
	any_word *copy = into;
	for (size_t i = 0; i < bytes / 4; i++)
		copy[i] = load_acquire(shared(&words[i]));
}

/* The reader's half; false when the writer was at work. */
static inline bool copy_stable(void *into, const void *from, size_t bytes, const uint32_t *sequence)
{
	const uint32_t before = load_acquire(shared(sequence));
	copy_words(into, from, bytes);
	return !(before & 1) && before == load_relaxed(shared(sequence));
}

/* Whether a key may stand at this place of a table of `capacity`, a power of two. */
static inline bool in_window(uint64_t key, size_t at, uint32_t capacity)
{
	return at < capacity && ((at - key) & (capacity - 1)) < WINDOW;
}

/* The writer's half, in three steps; `from` has the sequence number as it is in between, where it
 * is part of the object.  A writer that died in the middle has left it odd. */
static inline void change_begin(uint32_t *sequence)
{
	store_relaxed(shared(sequence), *sequence | 1);
}

static inline void store_words(void *into, const void *from, size_t bytes)
{
	any_word *words = into;
	const any_word *news = from;
	for (size_t i = 0; i < bytes / 4; i++)
		store_release(shared(&words[i]), news[i]);
}

static inline void change_end(uint32_t *sequence)
{
	if (!expect_inside(*sequence & 1, "a change that ends has begun: its number is odd"))
		return;
	store_release(shared(sequence), *sequence + 1);
}

/* All three for a whole object, but for its sequence number. */
static inline void store_stable(void *into, const void *from, size_t bytes, uint32_t *sequence)
{
	const size_t before = (size_t)((char *)sequence - (char *)into), after = before + 4;
	if (!expect_inside(after <= bytes && bytes % 4 == 0, "the number is part of the object"))
		return;
	change_begin(sequence);
	store_words(into, from, before);
	store_words((char *)into + after, (const char *)from + after, bytes - after);
	change_end(sequence);
}

/* A float that one thread stores and others read. */
static inline float load_float(const float *at)
{
	return load_relaxed(shared(at));
}

static inline void store_float(float *at, float value)
{
	store_relaxed(shared(at), value);
}
