/*
 * Lists that a report makes only when somebody asks for them (select.h), since they read the events
 * again or have a row for each:
 *
 *	gpu_trace           each activity of a device, in the order of their start
 *	api_trace           each call of the host, in the order of their begin
 *	operators_by_shape  operators, a row for each of the shapes that they were given
 *	waits               calls that return when the GPU has done something
 *	kernel_shapes       kernels by the shape of their launches: how full that makes an SM
 *	launch_gaps         kernels by name: how long their launching calls took, and how long they
 *	                    then waited for the device
 *	kernel_families     kernels by what their names say that they do: gemm, attention …
 *	idle_gaps           times in which no GPU ran anything, in order; pauses are the longest
 *	busy_over_time      how busy each device was, in intervals of equal length
 *	kernels_at_once     for how long so many kernels ran at once
 *	nccl                collective operations by kernel
 *	range_kernels       what ran in the ranges that the program names
 *	nvtx_pace           ranges that the program names: how long they take, and from one start
 *	                    to the next
 *	steps               steps, one by one: how long, with how many launches, how busy the GPUs
 *	allocation_calls    functions that give out memory or take it back: how long calls took
 *	memory_over_time    what was live and what reserved, in steps of equal length
 */
#ifndef WEIR_REPORT_EVENT_LISTS_H
#define WEIR_REPORT_EVENT_LISTS_H

#include <stddef.h>

#include "model/report.h"
#include "report/fields.h"

/* The name of the i-th; NULL behind the last. */
const char *event_list_name(size_t i);

/* The columns that a terminal shows, with commas between; NULL: of no list of this name. */
const char *event_list_columns(const char *name);

/* Hands over its rows.  0, -errno, or what `to` returned. */
int event_list_read(const struct report *r, size_t i, const struct section_reader *to);

#endif
