/* Sections of what is known of the GPUs besides activities: ceilings, their state, predictions. */
#include "report/report_make.h"
#include "report/sections.h"

#include "base/bounded.h"
#include "model/gpu_state.h"
#include "model/prediction.h"

static void make_gpu(struct rows *rows)
{
	rows_take(rows, rows->r->gpu, rows->r->gpu != NULL, 0);
}

GETTER(get_measured, struct gpu, it, value_bool(it->reached_gb_per_s > 0))
GETTER(get_bandwidth, void, of, value_real(gpu_bandwidth_ceiling(of) * 1e9))
GETTER(get_peak_bandwidth, struct gpu, it, value_real(it->dram_gb_per_s * 1e9))

/* A column of FLOPs by unit: a key is left out where nobody knows it. */
#define UNIT_FLOPS_OF(unit)                                                                        \
	static struct value get_ceiling_##unit(const struct row *row, const void *of)              \
	{                                                                                          \
		double flops;                                                                      \
		return gpu_ceiling(of, GPU_##unit, &flops) ? value_real(flops) : value_absent();   \
	}                                                                                          \
	static struct value get_peak_##unit(const struct row *row, const void *of)                 \
	{                                                                                          \
		double flops;                                                                      \
		return gpu_peak(of, GPU_##unit, &flops) ? value_real(flops) : value_absent();      \
	}
UNIT_FLOPS_OF(FP64)
UNIT_FLOPS_OF(FP32)
UNIT_FLOPS_OF(TF32)
UNIT_FLOPS_OF(FP16)
UNIT_FLOPS_OF(FP8)

#define CEILING(word, unit)                                                                        \
	{                                                                                          \
		"flops_per_second." word, UNIT_FLOPS_PER_S, word, "of that arithmetic unit",       \
			.get = get_ceiling_##unit                                                  \
	}
#define PEAK(word, unit)                                                                           \
	{                                                                                          \
		"peak_flops_per_second." word, UNIT_FLOPS_PER_S, "peak " word,                     \
			"of that arithmetic unit, by its maker's word", .get = get_peak_##unit     \
	}

static const struct column gpu_columns[] = {
	{ "name", UNIT_TEXT, "device", "row of `api/gpu.tbl`", MEMBER(struct gpu, name) },
	{ "source", UNIT_TEXT, "source", "where its numbers come from",
		MEMBER(struct gpu, source) },
	{ "measured", UNIT_BOOL, "measured", "ceilings are measured, not published ones",
		.get = get_measured },
	{ "dram_bytes_per_second", UNIT_BYTES_PER_S, "memory", "of its memory",
		.get = get_bandwidth },
	CEILING("fp64", FP64),
	CEILING("fp32", FP32),
	CEILING("tf32", TF32),
	CEILING("fp16", FP16),
	CEILING("fp8", FP8),
	{ "peak_dram_bytes_per_second", UNIT_BYTES_PER_S, "peak memory", "by its maker's word",
		.get = get_peak_bandwidth },
	PEAK("fp64", FP64),
	PEAK("fp32", FP32),
	PEAK("tf32", TF32),
	PEAK("fp16", FP16),
	PEAK("fp8", FP8),
	{ 0 },
};

const struct section section_gpu = {
	.name = "gpu",
	.heading = "Ceilings of the GPU",
	.about = "Ceilings of the busiest device. Null: not known.",
	.form = SECTION_OBJECT,
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = gpu_columns,
	.make = make_gpu,
};

static struct value get_reasons(const struct row *row, const void *of)
{
	const uint16_t reasons = *(const uint16_t *)of;
	const char **names = (void *)row->text;
	size_t n = 0;
	for (unsigned i = 0; i < 16; i++)
		if (reasons >> i & 1)
			names[n++] = throttle_reason_name(i);
	return (struct value){ .kind = VALUE_LIST, .list = names, .n = n };
}

static const struct column reason_columns[] = {
	{ "text", UNIT_TEXT, "reason", "what NVML says for it", .get = get_text },
	{ 0 },
};

static const struct section reason_texts = {
	.name = "gpu_state.gpus[].slow[].reasons",
	.columns = reason_columns,
	.each = sizeof(char *),
	.texts = true,
};

/* The same for text, which has no lists in a table. */
static struct value get_reasons_text(const struct row *row, const void *of)
{
	const uint16_t reasons = *(const uint16_t *)of;
	struct bounded b = { .to = row->text, .size = ROW_TEXT };
	for (unsigned i = 0; i < 16; i++)
		if (reasons >> i & 1)
			bounded_printf(&b, "%s%s", b.used ? ", " : "", throttle_reason_name(i));
	return value_text(reasons ? bounded_end(&b) : "not said");
}

static void make_slow(struct rows *rows)
{
	const struct gpu_states *s = rows->r->gpu_states;
	ARRAY(struct gpu_slow) all = { 0 };
	for (size_t i = 0; s && i < s->gpus.n; i++)
		for (size_t k = 0; k < s->gpus.v[i].slow.n; k++)
			*array_push(&all) = s->gpus.v[i].slow.v[k];
	rows_own(rows, all.v, all.n, sizeof *all.v);
}

static const struct column slow_columns[] = {
	{ "device", UNIT_ID, "GPU", "NVML's index", MEMBER(struct gpu_slow, device),
		.text_only = true },
	{ "start_ns", UNIT_MOMENT, "at", "when it began", .get = get_since_start,
		AT(struct gpu_slow, start_ns) },
	{ "duration_ns", UNIT_NS, "for", "how long it was", MEMBER(struct gpu_slow, ns) },
	{ "sm_clock_mhz", UNIT_COUNT, "SM clock, MHz", "the lowest clock of it",
		MEMBER(struct gpu_slow, mhz) },
	{ "of_highest", UNIT_SHARE, "of highest", "the same of the highest clock",
		MEMBER(struct gpu_slow, of_highest), .text_only = true },
	{ "kernel_ns", UNIT_NS, "kernels",
		"how long kernels ran on this GPU meanwhile, all together; null: none is known",
		.get = get_nonzero, AT(struct gpu_slow, kernel_ns) },
	{ "why", UNIT_TEXT, "why, says NVML", "reasons, in a line", .get = get_reasons_text,
		AT(struct gpu_slow, reasons), .text_only = true },
	{ "reasons", UNIT_LIST, "reasons",
		"what NVML says for it: `power cap`, `thermal slowdown` and so on",
		.get = get_reasons, AT(struct gpu_slow, reasons), .inner = &reason_texts },
	{ 0 },
};

const struct section section_gpu_slow = {
	.name = "gpu_state.gpus[].slow",
	.heading = "GPU clock below its highest while busy",
	.facets = FACET(GPU_STATES),
	.columns = slow_columns,
	.make = make_slow,
	.shown = "device,start_ns,duration_ns,sm_clock_mhz,of_highest,kernel_ns,why",
	.each = sizeof(struct gpu_slow),
};

GETTER(get_slow, struct gpu_state, g,
	(struct value){ .kind = VALUE_LIST, .list = g->slow.v, .n = g->slow.n })

/* A metric is an object of three values in JSON, and null where the GPU does not tell it. */
GETTER(get_unknown, struct gpu_range, it, it->count ? value_absent() : value_null())
GETTER(get_low, struct gpu_range, r, r->count ? value_real(r->low) : value_absent())
GETTER(get_median, struct gpu_range, r, r->count ? value_real(r->median) : value_absent())
GETTER(get_high, struct gpu_range, r, r->count ? value_real(r->high) : value_absent())

/* The same of whole numbers. */
static struct value whole(const struct gpu_range *r, double value)
{
	return r->count ? value_u64(value > 0 ? sat_from(value + 0.5) : 0) : value_absent();
}

GETTER(get_low_whole, struct gpu_range, it, whole(it, it->low))
GETTER(get_median_whole, struct gpu_range, it, whole(it, it->median))
GETTER(get_high_whole, struct gpu_range, it, whole(it, it->high))

#define METRIC_AS(key, unit, heading, meaning, metric, low, median, high)                          \
	{ key, UNIT_LIST, heading, meaning, .get = get_unknown,                                    \
		AT(struct gpu_state, range[metric]) },                                             \
		{ key ".min", unit, heading ", min", meaning, .get = low,                          \
			AT(struct gpu_state, range[metric]) },                                     \
		{ key ".median", unit, heading ", median", meaning, .get = median,                 \
			AT(struct gpu_state, range[metric]) },                                     \
	{                                                                                          \
		key ".max", unit, heading ", max", meaning, .get = high,                           \
							    AT(struct gpu_state, range[metric])    \
	}
#define METRIC(key, heading, meaning, metric)                                                      \
	METRIC_AS(key, UNIT_REAL, heading, meaning, metric, get_low, get_median, get_high)
#define METRIC_BYTES(key, unit, heading, meaning, metric)                                          \
	METRIC_AS(key, unit, heading, meaning, metric, get_low_whole, get_median_whole,            \
		get_high_whole)

static const struct column state_columns[] = {
	{ "device", UNIT_ID, "GPU", "NVML's index", MEMBER(struct gpu_state, device) },
	{ "samples", UNIT_COUNT, "samples", "how many samples", MEMBER(struct gpu_state, count) },
	METRIC("utilization_pct", "utilisation, %", "time in which a kernel ran", METRIC_BUSY),
	METRIC("memory_utilization_pct", "memory utilisation, %",
		"time in which memory was read or written", METRIC_MEMORY_BUSY),
	METRIC_BYTES(
		"memory_used_bytes", UNIT_BYTES, "memory used", "of all programs", METRIC_MEMORY),
	METRIC("power_w", "power, W", "power", METRIC_POWER),
	METRIC("temperature_celsius", "temperature, °C", "temperature", METRIC_CELSIUS),
	METRIC("sm_clock_mhz", "SM clock, MHz", "clock of the SMs", METRIC_SM_CLOCK),
	METRIC("memory_clock_mhz", "memory clock, MHz", "clock of the memory", METRIC_MEMORY_CLOCK),
	METRIC_BYTES("pcie_tx_bytes_per_s", UNIT_BYTES_PER_S, "PCIe sent", "sent over PCIe",
		METRIC_PCIE_TX),
	METRIC_BYTES("pcie_rx_bytes_per_s", UNIT_BYTES_PER_S, "PCIe received", "received over PCIe",
		METRIC_PCIE_RX),
	METRIC_BYTES("nvlink_tx_bytes_per_s", UNIT_BYTES_PER_S, "NVLink sent",
		"sent over all links together, from one sample to the next", METRIC_NVLINK_TX),
	METRIC_BYTES("nvlink_rx_bytes_per_s", UNIT_BYTES_PER_S, "NVLink received",
		"received over all links together, from one sample to the next", METRIC_NVLINK_RX),
	METRIC("ecc_corrected", "ECC errors, corrected", "errors since the driver was loaded",
		METRIC_ECC_CORRECTED),
	METRIC("ecc_uncorrected", "ECC errors, uncorrected", "errors since the driver was loaded",
		METRIC_ECC_UNCORRECTED),
	{ "slow_ns", UNIT_NS, "slow",
		"the SM clock was below 95 % of its highest though the GPU was busy",
		MEMBER(struct gpu_state, slow_ns) },
	{ "slow", UNIT_LIST, "slow", "when", .get = get_slow, .inner = &section_gpu_slow },
	{ 0 },
};

static void make_states(struct rows *rows)
{
	const struct gpu_states *s = rows->r->gpu_states;
	rows_take(rows, s ? s->gpus.v : NULL, s ? s->gpus.n : 0, sizeof *s->gpus.v);
	rows->absent = !rows->n;
}

const struct section section_gpu_state_gpus = {
	.name = "gpu_state.gpus",
	.heading = "GPU state",
	.about =
		"The GPUs that the program used, or all if that is not known. Null: the GPU does not tell it.",
	.of = OF_NVML,
	.facets = FACET(GPU_STATES),
	.columns = state_columns,
	.make = make_states,
	.each = sizeof(struct gpu_state),
	.nested = true,
	.shown = "device,samples,utilization_pct.median,memory_used_bytes.max,power_w.median,"
		 "power_w.max,temperature_celsius.max,sm_clock_mhz.median,sm_clock_mhz.min,slow_ns",
};

static void make_state(struct rows *rows)
{
	const struct gpu_states *s = rows->r->gpu_states;
	rows_take(rows, s, s && s->gpus.n, 0);
}

static const struct column states_columns[] = {
	{ "interval_ns", UNIT_NS, "interval",
		"median distance of two samples of a GPU; null: there is one", .get = get_nonzero,
		AT(struct gpu_states, interval_ns) },
	{ "gpus", UNIT_LIST, "GPUs", "GPUs", .inner = &section_gpu_state_gpus },
	{ 0 },
};

const struct section section_gpu_state = {
	.name = "gpu_state",
	.heading = "GPU state",
	.about =
		"State of the GPUs during the recording, as NVML told it. Null: recorded without `--nvml`.",
	.form = SECTION_OBJECT,
	.of = OF_NVML,
	.facets = FACET(GPU_STATES),
	.columns = states_columns,
	.make = make_state,
};

#define PREDICTION(key, words, found)                                                              \
	{ key "launches", UNIT_COUNT, words "launches", "launches", .find = found,                 \
		MEMBER(struct prediction_row, count), .absent = true },                            \
		{ key "error_median", UNIT_SHARE, words "median error", "relative error, median",  \
			.find = found, MEMBER(struct prediction_row, error), .absent = true },     \
		{ key "error_p90", UNIT_SHARE, words "p90 error", "relative error, p90",           \
			.find = found, MEMBER(struct prediction_row, error90), .absent = true },   \
		{ key "covered", UNIT_SHARE, words "within p90",                                   \
			"share that took no longer than the predicted p90", .find = found,         \
			MEMBER(struct prediction_row, covered), .absent = true },                  \
		{ key "measured_ns", UNIT_NS, words "measured", "median of what they took",        \
			.find = found, MEMBER(struct prediction_row, measured_ns),                 \
			.absent = true },                                                          \
	{                                                                                          \
		key "predicted_ns", UNIT_NS, words "predicted", "median of what was predicted",    \
			.find = found, MEMBER(struct prediction_row, predicted_ns), .absent = true \
	}

static void make_tiers(struct rows *rows)
{
	const struct prediction *p = rows->r->prediction;
	rows_take(rows, p ? p->tiers.rows.v : NULL, p ? p->tiers.rows.n : 0, sizeof p->all);
	rows->absent = !p;
}

static void make_predicted_kernels(struct rows *rows)
{
	const struct prediction *p = rows->r->prediction;
	rows_take(rows, p ? p->kernels.rows.v : NULL, p ? p->kernels.rows.n : 0, sizeof p->all);
	rows->absent = !p;
}

static const struct column tier_columns[] = {
	{ "predictor", UNIT_TEXT, "predicted by",
		"`exact`, `once`, `shape`, `near`, `cold`, `bound`",
		MEMBER(struct prediction_row, name) },
	PREDICTION("", "", NULL),
	{ 0 },
};

const struct section section_predictors = {
	.name = "prediction.predictors",
	.heading = "Predictions by predictor",
	.of = OF_PREDICTION,
	.facets = FACET(PREDICTION),
	.columns = tier_columns,
	.make = make_tiers,
	.each = sizeof(struct prediction_row),
	.nested = true,
	.shown = "launches,error_median,error_p90,covered,measured_ns,predicted_ns,predictor",
};

static const struct column predicted_columns[] = {
	{ "kernel", UNIT_KERNEL, "kernel", "its name", MEMBER(struct prediction_row, name) },
	PREDICTION("", "", NULL),
	{ 0 },
};

const struct section section_prediction_kernels = {
	.name = "prediction.kernels",
	.heading = "Predictions by kernel",
	.of = OF_PREDICTION,
	.facets = FACET(PREDICTION),
	.columns = predicted_columns,
	.make = make_predicted_kernels,
	.each = sizeof(struct prediction_row),
	.nested = true,
	.shown = "launches,error_median,error_p90,covered,measured_ns,predicted_ns,kernel",
};

FINDER(all, struct prediction, p, p->all.count ? &p->all : NULL)
FINDER(graphs, struct prediction, p, p->graphs.count ? &p->graphs : NULL)

static const struct column prediction_columns[] = {
	{ "launches", UNIT_COUNT, "predicted", "launches with a prediction",
		MEMBER(struct prediction, launches) },
	{ "unpredicted", UNIT_COUNT, "not predicted", "launches without one",
		MEMBER(struct prediction, unpredicted) },
	{ "measured", UNIT_COUNT, "measured", "predicted launches whose device time is known",
		MEMBER(struct prediction, measured) },
	{ "contended", UNIT_COUNT, "contended", "of them beside another kernel",
		MEMBER(struct prediction, contended) },
	PREDICTION("all.", "all: ", all),
	{ "predictors", UNIT_LIST, "predictors", "by predictor", .inner = &section_predictors },
	PREDICTION("graphs.", "whole graphs: ", graphs),
	{ "kernels", UNIT_LIST, "kernels", "by kernel", .inner = &section_prediction_kernels },
	{ 0 },
};

static void make_prediction(struct rows *rows)
{
	rows->v = rows->r->prediction;
	rows->absent = !rows->v;
}

const struct section section_prediction = {
	.name = "prediction",
	.heading = "Predicted times",
	.about = "Absent: recorded without `--predict`.",
	.form = SECTION_OBJECT,
	.of = OF_PREDICTION,
	.facets = FACET(PREDICTION),
	.columns = prediction_columns,
	.make = make_prediction,
};
