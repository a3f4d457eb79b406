/*
 * The published limits of devices: clocks, bandwidth, peaks. The rows come from api/gpu.tbl, with
 * their sources. Kernels stay below these ceilings.
 *
 * Pure and read-only, for any thread, the hook included.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The units whose peaks are known: the plain ones of FP64 and FP32, tensor cores for the rest.
 * BF16 is as fast as FP16. */
enum gpu_unit { GPU_FP64, GPU_FP32, GPU_TF32, GPU_FP16, GPU_FP8, GPU_UNITS };

struct gpu {
	const char *name; /* a pattern: * stands for any text; upper and lower case are one */
	unsigned cc;      /* 10 * major + minor: 90, 121 */
	unsigned sms;
	unsigned boost_mhz;
	double dram_gb_per_s; /* 10^9 bytes */
	uint64_t l2_bytes;
	double l2_gb_per_s; /* 0: its maker does not say */
	unsigned has;       /* bit 1 << unit: its peak is known */
	double tflops[GPU_UNITS];
	double fp64_products_tflops; /* of matrices; 0: as everything else of FP64 */
	const char *source;
	/* The rates that programs reached on one; 0: nobody has measured it. */
	double reached_gb_per_s;
	double reached_tflops[GPU_UNITS];
	double reached_l2_gb_per_s;
};

extern const struct gpu gpus[];
extern const size_t gpu_count;

/* The device by the driver's name for it and its compute capability, 10 * major + minor; cc 0
 * when that is not known.  NULL when no row fits. */
const struct gpu *gpu_find(const char *name, unsigned cc);

/* The unit's peak in FLOP/s; false when it is not known, or the device has no such unit. */
bool gpu_peak(const struct gpu *g, enum gpu_unit unit, double *ret_flops_per_s);

/* The ceiling of a roofline: what was reached where that is known, else the peak. */
double gpu_bandwidth_ceiling(const struct gpu *g); /* GB/s */
bool gpu_ceiling(const struct gpu *g, enum gpu_unit unit, double *ret_flops_per_s);

/*
 * Shares of these ceilings.  Above 1 is more than was reached where it was measured; with
 * *ret_beyond also more than its maker says, so that less was done than is believed.  0: not known.
 *
 * Bytes that come faster than the memory gives them came from the L2, as far as they fit into it.
 */
double gpu_flops_share(const struct gpu *g, enum gpu_unit unit, bool product, double flops_per_s,
	bool *ret_beyond);
double gpu_bytes_share(const struct gpu *g, double bytes, double ns, bool *ret_beyond);

/* "fp64", "fp32", "tf32", "fp16", "fp8" */
const char *gpu_unit_word(enum gpu_unit unit);
