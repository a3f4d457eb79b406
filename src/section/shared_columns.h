/*
 * Groups of columns that several sections have: as macros, so that a section's table stays one
 * array.  `find` takes the struct out of a row, NULL where the row is that struct.
 */
#pragma once

#include "base/hist.h"
#include "base/spread.h"
#include "section/section.h"

column_getter get_share_of_all;                  /* uint64_t ns, of rows->all */
column_getter get_hist_p50;                      /* struct hist */
column_getter get_activity_kind, get_range_kind; /* uint16_t */

/* These read a struct activity_row. */
column_getter get_device_total, get_device_estimate, get_device_estimate_error, get_device_timed,
	get_device_min, get_device_mean, get_device_p50, get_device_p90, get_device_p99,
	get_device_max, get_device_stddev;

#define DEVICE_TIMES(found, adds_up)                                                               \
	{ "device_total_ns", UNIT_NS, "time", "time on the device; null: not known, or estimated", \
		.get = get_device_total, .find = found, .sums = adds_up },                         \
		{ "device_total_estimate_ns", UNIT_NS, "estimate",                                 \
			"the same, estimated from the executions that were timed",                 \
			.get = get_device_estimate, .find = found, .sums = adds_up },              \
		{ "device_total_estimate_error_ns", UNIT_NS, "±",                                  \
			"half the 95 % confidence interval of the estimate; null: timed once",     \
			.get = get_device_estimate_error, .find = found, .absent = true },         \
		{ "device_timed", UNIT_COUNT, "timed", "executions whose device time is known",    \
			.get = get_device_timed, .find = found },                                  \
		{ "device_min_ns", UNIT_NS, "min", "of the executions that were timed",            \
			.get = get_device_min, .find = found },                                    \
		{ "device_mean_ns", UNIT_NS, "mean", "of the executions that were timed",          \
			.get = get_device_mean, .find = found },                                   \
		{ "device_p50_ns", UNIT_NS, "median", "of the executions that were timed",         \
			.get = get_device_p50, .find = found },                                    \
		{ "device_p90_ns", UNIT_NS, "p90", "of the executions that were timed",            \
			.get = get_device_p90, .find = found },                                    \
		{ "device_p99_ns", UNIT_NS, "p99", "of the executions that were timed",            \
			.get = get_device_p99, .find = found },                                    \
		{ "device_max_ns", UNIT_NS, "max", "of the executions that were timed",            \
			.get = get_device_max, .find = found },                                    \
	{                                                                                          \
		"device_stddev_ns", UNIT_NS, "std dev",                                            \
			"standard deviation of these; null: fewer than two",                       \
			.get = get_device_stddev, .find = found                                    \
	}

/* These read a struct roofline. */
column_getter get_bound_class, get_bound_basis, get_flops, get_flop_bytes, get_flops_per_second,
	get_unit, get_flops_share, get_flops_peak_share, get_bytes_share;

column_getter get_bound; /* "memory 82 %" */

#define ROOFLINE(found, adds_up)                                                                    \
	{ "bound", UNIT_TEXT, "bound by", "`class`, and its share of the ceiling",                  \
		.get = get_bound, .find = found, .text_only = true },                               \
		{ "class", UNIT_TEXT, "class", "`compute`, `memory`, `latency` or `launch`",        \
			.get = get_bound_class, .find = found },                                    \
		{ "class_basis", UNIT_TEXT, "basis",                                                \
			"what `class` is known from: `cost` (FLOPs and bytes), `time`, `name`",     \
			.get = get_bound_basis, .find = found },                                    \
		{ "flops", UNIT_FLOPS, "FLOPs",                                                     \
			"of the calls whose shapes are known; a call without shapes takes those "   \
			"of calls with the same name, operators and module around, kernels and "    \
			"grids",                                                                    \
			.get = get_flops, .find = found, .sums = adds_up },                         \
		{ "bytes", UNIT_BYTES, "bytes", "that these calls read and write at least",         \
			.get = get_flop_bytes, .find = found, .sums = adds_up },                    \
		{ "costed_count", UNIT_COUNT, "costed",                                             \
			"how many these are; the other calls of `count` are in no sum",             \
			.get = get_nonzero, .find = found, AT(struct roofline, count) },            \
		{ "costed_ns", UNIT_NS, "time of these", "that these took on the device",           \
			.get = get_nonzero, .find = found, AT(struct roofline, ns) },               \
		{ "flops_per_second", UNIT_FLOPS_PER_S, "FLOP/s",                                   \
			"`flops` by `costed_ns`; the ceilings are in `gpu`",                        \
			.get = get_flops_per_second, .find = found },                               \
		{ "unit", UNIT_TEXT, "unit",                                                        \
			"arithmetic unit: `fp64`, `fp32`, `tf32`, `fp16`, `fp8`", .get = get_unit,  \
			.find = found },                                                            \
		{ "flops_share", UNIT_SHARE, "of FLOP ceiling",                                     \
			"FLOPs a second by the ceiling that was measured on such a GPU, which may " \
			"be passed",                                                                \
			.get = get_flops_share, .find = found },                                    \
		{ "flops_peak_share", UNIT_SHARE, "of FLOP peak",                                   \
			"FLOPs a second by the peak that the maker names",                          \
			.get = get_flops_peak_share, .find = found },                               \
	{                                                                                           \
		"bytes_share", UNIT_SHARE, "of bandwidth",                                          \
			"bytes a second by the bandwidth that was measured on such a GPU",          \
			.get = get_bytes_share, .find = found                                       \
	}

/* These read a struct call_row. */
column_getter get_call_total, get_call_p50, get_call_p90, get_call_p99, get_call_max;

/* Durations of one kind. */
struct values {
	struct hist hist;
	struct spread spread;
	uint64_t total;
};
void values_add(struct values *v, uint64_t ns);

column_getter get_values_count, get_values_total, get_values_mean, get_values_p50, get_values_p90,
	get_values_p99, get_values_min, get_values_max, get_values_stddev;

/* of: what keys begin with; words: what headings begin with; what: what takes that time. */
#define VALUES(of, words, what, type, member, adds_up)                                             \
	{ of "_total_ns", UNIT_NS, words "total", what ", all together", .get = get_values_total,  \
		AT(type, member), .sums = adds_up },                                               \
		{ of "_mean_ns", UNIT_NS, words "mean", what, .get = get_values_mean,              \
			AT(type, member) },                                                        \
		{ of "_p50_ns", UNIT_NS, words "median", what ", median", .get = get_values_p50,   \
			AT(type, member) },                                                        \
		{ of "_p90_ns", UNIT_NS, words "p90", what, .get = get_values_p90,                 \
			AT(type, member) },                                                        \
		{ of "_p99_ns", UNIT_NS, words "p99", what, .get = get_values_p99,                 \
			AT(type, member) },                                                        \
		{ of "_min_ns", UNIT_NS, words "min", what, .get = get_values_min,                 \
			AT(type, member) },                                                        \
		{ of "_max_ns", UNIT_NS, words "max", what, .get = get_values_max,                 \
			AT(type, member) },                                                        \
	{                                                                                          \
		of "_stddev_ns", UNIT_NS, words "std dev",                                         \
			what ", standard deviation; null: fewer than two",                         \
			.get = get_values_stddev, AT(type, member)                                 \
	}
