/*
 * The state of the GPUs during a recording (weir record --nvml). For each GPU it has the lowest,
 * median and highest values, and the phases with a low SM clock under load. If the recording names
 * its GPUs, others are left out.
 */
#pragma once

#include "base/array.h"
#include "event/format.h"
#include "trace/meta.h"
#include "trace/trace.h"

enum gpu_metric {
	METRIC_BUSY,
	METRIC_MEMORY_BUSY,
	METRIC_MEMORY,
	METRIC_POWER,
	METRIC_CELSIUS,
	METRIC_SM_CLOCK,
	METRIC_MEMORY_CLOCK,
	METRIC_PCIE_TX,
	METRIC_PCIE_RX,
	METRIC_NVLINK_TX, /* from one sample to the next */
	METRIC_NVLINK_RX,
	METRIC_ECC_CORRECTED, /* since the driver was loaded */
	METRIC_ECC_UNCORRECTED,
	GPU_METRICS
};

struct gpu_metric_row {
	const char *key;  /* in JSON, with its unit */
	const char *name; /* for people */
	const char *unit; /* "%", "W", "°C", "MHz", "B", "B/s" or "" */
	/* In a sample: */
	size_t at, bytes;
	uint32_t valid; /* enum gpu_sample_valid */
	bool is_total;  /* of which the metric is the rate */
};
extern const struct gpu_metric_row gpu_metrics[GPU_METRICS];

/* Its value in the unit of its row; before: the same GPU's sample before, or NULL.  False: the
 * sample does not have it. */
bool gpu_metric_of(const struct gpu_sample *s, const struct gpu_sample *before,
	enum gpu_metric metric, double *ret);

/* The name of bit i of enum throttle_reason: "power cap". */
const char *throttle_reason_name(unsigned i);

struct gpu_range {
	uint64_t count; /* samples that have it; 0: the others mean nothing */
	double low, median, high;
};

struct gpu_slow {
	uint16_t device;
	uint64_t start_ns, ns; /* CLOCK_MONOTONIC */
	uint64_t kernel_ns;    /* of it, how long kernels ran on this GPU, all together */
	uint16_t mhz;          /* lowest */
	double of_highest;     /* that part of the highest clock */
	uint16_t reasons;      /* of all of it */
};

struct gpu_state {
	uint16_t device; /* NVML's index */
	uint8_t uuid[16];
	size_t first, count; /* of gpu_states.samples */
	struct gpu_range range[GPU_METRICS];
	ARRAY(struct gpu_slow) slow; /* by time */
	uint64_t slow_ns;
};

struct gpu_states {
	ARRAY(struct gpu_sample) samples; /* by device, then time */
	ARRAY(struct gpu_state) gpus;
	uint64_t interval_ns; /* median distance of samples of one GPU; 0: not known */
};

/* 0 or -errno.  m: what names the GPUs that were used, or NULL. */
int gpu_states_load(const struct trace *t, const struct meta *m, struct gpu_states *ret);
void gpu_states_fini(struct gpu_states *s);
