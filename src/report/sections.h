/*
 * All sections of the report (section.h) by their names. If one is empty, this module says what the
 * program did not do, or which option records it. weir report, weir report --only and weir flame
 * use it.
 */
#pragma once

#include "list/lists.h"
#include "section/section.h"

extern const struct section section_trace, section_provenance, section_summary, section_failures,
	section_warnings, section_totals, section_clock, section_join, section_calls,
	section_call_stacks, section_callers, section_kernels, section_memory, section_memory_live,
	section_memcpys, section_memsets, section_devices, section_gpu_state,
	section_gpu_state_gpus, section_gpu_slow, section_gpu, section_wall, section_breakdown,
	section_overlap, section_queue, section_critical_path, section_path_host,
	section_longest_gaps, section_prediction, section_predictors, section_prediction_kernels,
	section_device_activities, section_memops, section_operators, section_spans,
	section_streams, section_processes, section_threads, section_hints, section_hints_sum,
	section_hints_window, section_hints_idle_gaps, section_provenance_devices,
	section_operators_by_shape, section_idle_gaps, section_allocation_calls,
	section_memory_over_time;

/* The i-th, in the order of the report's JSON; NULL behind the last. */
const struct section *section_at(size_t i);

/* The section of that name, of so many bytes, that can be asked for; or NULL. */
const struct section *section_find(const char *name, size_t bytes);

/* Sentences for below a table, in lines of that width; NULL: there are none. */
void section_put_note(FILE *out, const char *note, size_t width);

/* A clause without a full stop, or NULL when there is no memory for one.  Facets that it takes and
 * r lacks are made for it. */
const char *section_why_empty(const struct report *r, const struct section *section);
