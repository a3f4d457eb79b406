/*
 * For tests of plans: the library on the simulated driver, and what a run launches.
 */
#pragma once

#include "../sim/sim_test.h"

#include "cuda_types.h"
#include "driver/tensor_map.h"
#include "kernels/gemm.cuh"
#include "weir/kernels.h"

static inline struct weir_kernels *open_with(const char *cache, const char *nvrtc)
{
	struct weir_kernels *k;
	const struct weir_kernels_options options = { sizeof options, cache, nvrtc };
	test_context();
	OK(weir_kernels_open(&options, &k));
	return k;
}

/* The plan that a function has made, which said e. */
static inline struct weir_plan *made(int e, struct weir_plan *p)
{
	if (e)
		fail_msg("%d: %s", e, weir_kernels_error());
	return p;
}

static inline void *capture_begin(void)
{
	void *stream;
	OK(cuStreamCreate(&stream, 1));
	OK(cuStreamBeginCapture_v2(stream, 0));
	return stream;
}

/* The one launch since then, and the struct that is its first argument. */
static inline void capture_end(
	void *stream, struct cu_kernel_node_params *ret, void *ret_args, size_t bytes)
{
	void *graph, *node;
	size_t n = 1;
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 1);
	OK(cuGraphGetNodes(graph, &node, &n));
	OK(cuGraphKernelNodeGetParams_v2(node, ret));
	memcpy(ret_args, ret->params[0], bytes);
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
}

static inline struct sim_tensor_map read_map(const struct tensor_map *map)
{
	struct sim_tensor_map m;
	memcpy(&m, map, sizeof m);
	return m;
}
