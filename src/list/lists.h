/*
 * Lists that somebody asks for: their sections read the events of the trace again, since a report
 * keeps sums alone.
 */
#pragma once

#include "section/section.h"

extern const struct section section_gpu_trace, section_launch_gaps, section_kernel_families,
	section_api_trace, section_waits, section_nccl, section_range_pace, section_range_kernels,
	section_request_behind, section_request_gpu_trace, section_request_beside, section_requests,
	section_request, section_kernel_shapes, section_steps, section_busy_over_time,
	section_kernels_at_once;

/* A kernel's purpose by its demangled name: a family of api/family.tbl, or "collective". */
const char *list_kernel_family(const char *name);
