/*
 * Plans of products share this with plans of convolutions: those keep the product that they are in
 * what.gemm.
 */
#pragma once

#include "kernels/gemm.cuh"
#include "kernels/plan.h"

/* How an operation tells of itself. */
struct product_kind {
	void (*program)(
		const struct weir_plan *p, const struct gemm_choice *choice, struct buf *ret);
	void (*describe)(const struct weir_plan *p, struct buf *ret);
};

/* Loads what a plan runs: the wanted one of the choices, of which the last is the plain one, and
 * that.  The plan is the library's then. */
int product_load(struct weir_plan *p, struct weir_kernels *k, const struct product_kind *kind,
	struct gemm_choice *choice, size_t choices, uint32_t wanted, struct error *err);

/* rows: those of A have scales, if columns have. */
int product_check_args(const struct weir_gemm *w, const struct weir_gemm_args *a, bool rows);
bool product_is_aligned(const struct weir_gemm_args *a); /* for the copy engine */

/* All but the operands' tensor maps. */
int product_tile(const struct weir_plan *p, const struct weir_gemm_args *a, struct tiled_args *ret);

/* By the kernel of gemm_sm90.cu that the plan has. */
int product_run(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream);

/* CUtensorMapDataType of the plan's elements. */
int product_map_type(const struct weir_plan *p);

/* Members of tensor maps: their swizzle, and the bytes that L2 fetches of memory at a time. */
enum { MAP_SWIZZLE_64B = 2, MAP_SWIZZLE_128B = 3, MAP_PROMOTE_128B = 2, MAP_PROMOTE_256B = 3 };
