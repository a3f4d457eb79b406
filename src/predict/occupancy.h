/*
 * Computes how many blocks of a kernel one streaming multiprocessor (SM) holds at a time, and the
 * limit. A block needs warps, a slot, registers, shared memory and barriers. The SM has each in
 * grains of its own, and the scarcest decides.
 *
 * The answer equals that of cudaOccMaxActiveBlocksPerMultiprocessor() in NVIDIA's cuda_occupancy.h
 * for compute capability 7.0 to 12.1 (tests/unit/test_occupancy.c). Two inputs are missing:
 * partitioned global caching, which no device since 7.0 has, and "virtual resources", which no
 * public function reports. Clusters, cooperative launches and register reallocation change nothing.
 *
 * Pure: no state, no allocation, for any thread, the hook included.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCCUPANCY_WARP              32
#define OCCUPANCY_THREADS_PER_BLOCK 1024
/* Compilers give 255 at most; NVIDIA's calculator accepts 256, and so does this one. */
#define OCCUPANCY_REGS_PER_THREAD     256
#define OCCUPANCY_SMEM_PORTABLE_BYTES (48u << 10) /* what a block may have unasked */
#define OCCUPANCY_UNLIMITED           UINT32_MAX

/* The resources of an SM.  A caller who knows the device better (driver attributes 39, 81, 82, 97,
 * 106, 111) may change a copy. */
struct occupancy_device {
	uint8_t major, minor;
	uint16_t warps_per_sm;
	uint16_t blocks_per_sm;
	uint16_t barriers_per_sm;     /* 0 where they are never scarce, before 9.0 */
	uint32_t regs_per_sm;         /* and per block */
	uint32_t smem_per_sm_bytes;   /* the largest carveout */
	uint32_t smem_optin_bytes;    /* the most a block may ask for */
	uint32_t smem_reserved_bytes; /* the driver's own, in every block */
	uint32_t smem_granule_bytes;
	uint8_t carveouts;         /* how many of: */
	uint16_t carveout_kib[10]; /* what may be split off from the L1 cache, ascending */
};

/* One launch.  Zeroed fields are the usual case: all of the SM's shared memory to be had, and
 * leave to use as much of it as the launch asks for. */
struct occupancy_launch {
	uint32_t threads; /* per block */
	uint32_t regs;    /* per thread */
	uint32_t smem_static_bytes, smem_dynamic_bytes;
	uint32_t barriers;    /* named barriers a block; 0 or 1 never matters */
	bool has_carveout;    /* the kernel prefers a carveout: */
	uint8_t carveout_pct; /* of the largest, 0 to 100 */
	bool has_dynamic_max; /* cuFuncSetAttribute() allowed it: */
	uint32_t dynamic_max_bytes;
	bool portable; /* no more than 48 KiB a block: nothing was allowed */
};

/* The resources that may limit, in the order in which a tie is resolved. */
enum occupancy_limit {
	OCCUPANCY_WARPS,
	OCCUPANCY_BLOCKS,
	OCCUPANCY_REGISTERS,
	OCCUPANCY_SHARED,
	OCCUPANCY_BARRIERS,
	OCCUPANCY_LIMITS
};

/* Why a launch is refused. */
enum occupancy_refusal {
	OCCUPANCY_RUNS,
	OCCUPANCY_NO_THREADS,
	OCCUPANCY_MANY_THREADS,
	OCCUPANCY_MANY_REGS_PER_THREAD,
	OCCUPANCY_MANY_REGS_PER_BLOCK,
	OCCUPANCY_MUCH_DYNAMIC, /* more than cuFuncSetAttribute() allowed */
	OCCUPANCY_MUCH_SHARED,
	OCCUPANCY_MANY_BARRIERS,
};

struct occupancy {
	uint32_t blocks;                  /* per SM; 0: the launch is refused */
	uint32_t warps;                   /* per SM, of the device's warps_per_sm */
	uint32_t limiters;                /* bits 1 << enum occupancy_limit; 0 when refused */
	enum occupancy_limit limiter;     /* the first of them */
	enum occupancy_refusal refusal;   /* OCCUPANCY_RUNS when blocks is not 0 */
	uint32_t limit[OCCUPANCY_LIMITS]; /* blocks that each alone would allow */
	uint32_t smem_block_bytes;        /* what a block takes, reserve and grain included */
};

/* The quantities that a programmer can turn. */
enum occupancy_knob { OCCUPANCY_BY_THREADS, OCCUPANCY_BY_REGS, OCCUPANCY_BY_SMEM };

/* A value of the knob, all else as it is, and what it gives. */
struct occupancy_cliff {
	bool found;
	uint32_t value; /* threads, registers a thread, or bytes: static and dynamic together */
	uint32_t blocks, warps;
};

/* The devices, in ascending order. */
extern const struct occupancy_device occupancy_devices[];
extern const size_t occupancy_device_count;

/* NULL when it is not known. */
const struct occupancy_device *occupancy_device_find(unsigned major, unsigned minor);

/* By what people write: "9.0", "9", "90", "sm_90", "sm_90a".  NULL when it is none of these. */
const struct occupancy_device *occupancy_device_named(const char *text, size_t bytes);

struct occupancy occupancy_of(const struct occupancy_device *d, const struct occupancy_launch *l);

/* The largest smaller value that gives more blocks, the smallest larger one that gives fewer
 * (none where the launch is refused). */
struct occupancy_cliff occupancy_more(const struct occupancy_device *d,
	const struct occupancy_launch *l, enum occupancy_knob knob);
struct occupancy_cliff occupancy_fewer(const struct occupancy_device *d,
	const struct occupancy_launch *l, enum occupancy_knob knob);

/* "warps", "blocks", "registers", "shared", "barriers"; "invalid" for a refused launch. */
const char *occupancy_word(const struct occupancy *o);
const char *occupancy_limit_word(enum occupancy_limit limit);
