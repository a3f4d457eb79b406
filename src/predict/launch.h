/*
 * The types of questions and answers of predictions: a device, a kernel, a launch, an answer, and a
 * launch that ran. predict.h asks and learns.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "predict/gpu.h"
#include "predict/occupancy.h"

#define PREDICT_ARGS 8

/* The device, or the part of one that launches may use. */
struct predict_device {
	struct occupancy_device sm;
	unsigned cc;                /* 10 * major + minor */
	uint32_t sms;               /* of a MIG slice or green context only its own */
	double dram_bytes_ns;       /* bytes a nanosecond, which is GB/s */
	double flops_ns[GPU_UNITS]; /* FLOP a nanosecond */
	unsigned has;               /* bit 1 << unit: flops_ns is known */
	double floor_ns;            /* no kernel is shorter */
	uint8_t uuid[16];           /* zeros: not known.  For several: predict_uuid_add() */
};

/* From the driver's name and compute capability (10 * major + minor); sms 0: all of the device's.
 * -ENODEV when api/gpu.tbl or occupancy.c has no such device: nothing is then guessed. */
int predict_device_find(
	const char *name, unsigned cc, uint32_t sms, struct predict_device *ret_device);

/* The same; of a device that is not in api/gpu.tbl only what its compute capability says, without
 * ceilings: *ret_known is then false, and bounds mean nothing. */
int predict_device_any(const char *name, unsigned cc, uint32_t sms,
	struct predict_device *ret_device, bool *ret_known);

/* A program with several devices of a kind learns from all of them: what stands for them together.
 * Zeros as long as none was added, and when one of them was zeros. */
struct predict_uuids {
	uint8_t all[16];
	unsigned count;
	bool unknown;
};
void predict_uuid_add(struct predict_uuids *u, const uint8_t uuid[16]);

/* A kernel's purpose, by the words in its name: api/family.tbl. */
enum predict_family {
	FAMILY_UNKNOWN,
	FAMILY_GEMM,
	FAMILY_CONV,
	FAMILY_ATTENTION,
	FAMILY_SOFTMAX,
	FAMILY_NORM,
	FAMILY_REDUCE,
	FAMILY_SCAN,
	FAMILY_SORT,
	FAMILY_GATHER,
	FAMILY_STENCIL,
	FAMILY_POOL,
	FAMILY_TRANSPOSE,
	FAMILY_COPY,
	FAMILY_RANDOM,
	FAMILY_ELEMENTWISE,
	FAMILIES
};

/* A kernel as it was compiled. */
struct predict_kernel {
	uint64_t id;    /* hash of name and binary; never 0 */
	uint64_t group; /* hash of the name without template arguments: what siblings share */
	enum predict_family family;
	uint32_t regs; /* a thread */
	uint32_t smem_static_bytes;
	uint32_t local_bytes;  /* a thread */
	uint32_t barriers;     /* 0 or 1 when not known */
	uint16_t tile[2];      /* its sides as the name has them: 128x64; 0 where it has none */
	uint8_t element_bytes; /* of what it works on by the words in the name; 0: not known */
	bool has_regs;         /* else occupancy is what all else allows */
	bool has_local;
};

/* id, group, family, tile and element of a name, mangled names taken as they are: give demangled
 * ones.  binary is any hash of the code, or 0.  Attributes are left as they are. */
void predict_kernel_name(struct predict_kernel *k, const char *name, uint64_t binary);

/* Facts in the name of a kernel that a product of matrices launched: api/family.tbl. */
struct predict_product {
	bool helps;         /* it does not multiply: layouts, sums of parts */
	bool copies;        /* or casts, and computes nothing */
	bool weight;        /* of a step back, it is the gradient of the weights */
	bool input;         /* that of the input */
	bool fewer;         /* by a rule that multiplies less often than the definition does */
	bool has_unit;      /* the name says what it multiplies by: */
	enum gpu_unit unit; /* GPU_UNITS: by another than these */
};
struct predict_product predict_product_of(const char *name);

/* "gemm", "unknown"; the family of a word, FAMILY_UNKNOWN for any other. */
const char *predict_family_word(enum predict_family family);
enum predict_family predict_family_find(const char *word);

/* One launch.  Scalar arguments are in order, zero-extended; pointers are left out. */
struct predict_launch {
	const struct predict_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t smem_dynamic_bytes;
	uint32_t args; /* how many of: */
	uint64_t arg[PREDICT_ARGS];
	double flops, bytes; /* that it does and moves, where known: */
	bool has_flops, has_bytes;
	enum gpu_unit unit; /* that does the FLOPs */
	bool contended;     /* something else is on the device */
	bool whole;   /* several kernels: only what this very launch took before says anything */
	uint64_t key; /* predict_key(), or 0: computed when needed */
};

/* A hash of all that decides a launch's time save the device: never 0. */
uint64_t predict_key(const struct predict_launch *l);

/* The source of an answer.  The order is that of trust. */
enum predict_tier {
	PREDICT_UNKNOWN, /* no time at all */
	PREDICT_BOUND,   /* ceilings of the device; the magnitude at best */
	PREDICT_COLD,    /* siblings, or the learned model: the kernel is new */
	PREDICT_NEAR,    /* the nearest of a few shapes of this kernel */
	PREDICT_SHAPE,   /* the kernel's own model */
	PREDICT_ONCE,    /* this launch ran once before */
	PREDICT_EXACT,   /* this launch ran at least twice before */
	PREDICT_TIERS
};

const char *predict_tier_word(enum predict_tier tier);

struct predict_answer {
	enum predict_tier tier; /* PREDICT_UNKNOWN: t50_ns, t90_ns and confidence mean nothing */
	bool class_only;        /* only the order of magnitude is known: "10 to 100 us" */
	bool launches;          /* false: the device refuses it, and nothing below means anything */
	float t50_ns;           /* half of such launches take no longer */
	float t90_ns;           /* 90 % take no longer */
	float confidence;       /* expected share of such answers within 20 % of the truth */
	uint32_t blocks_per_sm;
	float occupancy;       /* resident warps as a share of what the SM holds */
	float waves;           /* blocks as a multiple of what the device holds at a time */
	float sm_fill;         /* share of SMs that get a block at all */
	float lane_efficiency; /* threads as a share of the lanes of their warps */
};

/* A launch that ran. */
struct predict_sample {
	struct predict_launch launch;
	double measured_ns; /* on the device, from start to end */
	uint64_t order;     /* when: nanoseconds, or any number that ascends */
	uint32_t app;       /* of which application; any numbers */
	uint32_t name;      /* of which kernel name; any numbers */
};

/* Room of the tables, both powers of two. */
struct predict_sizes {
	uint32_t launches; /* remembered one by one, 64 bytes each */
	uint32_t kernels;  /* with a model of their own, 9 KiB each, that of siblings counted in */
};

struct predict_tables;
struct predict_model;

/* One view of the tables: process-local, the caller's memory. */
struct predict {
	struct predict_tables *tables;
	uint32_t
		mask; /* launches - 1: here, so that an entry's place needs no look at the tables */
	_Atomic(const struct predict_model *) model; /* NULL: none */
};
