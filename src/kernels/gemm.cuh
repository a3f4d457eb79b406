/* The arguments of a kernel of products.  The host fills it and passes it by value; the device
 * sources include this file too, so it names no header.
 *
 * D[m, n] = epilogue(sum over k of A[m, k] * B[n, k]).  With SwiGLU the columns of the sum are pairs of gate and up, and
 * D has half as many: silu(gate) * up.
 *
 * A batch is as many products, of which each has its own A, B, D and residual, or shares them where they are 0 elements
 * apart.  The bias is that of all.
 *
 * Operands of 8 bits have scales: the sum is multiplied by a_scale[m], if that is not NULL, and b_scale[n] first, and the
 * bias is FP32. */
#pragma once

enum gemm_epilogue {
	GEMM_NONE,
	GEMM_BIAS,
	GEMM_BIAS_RELU,
	GEMM_BIAS_GELU,
	GEMM_BIAS_SILU,
	GEMM_RESIDUAL,
	GEMM_SWIGLU,
	GEMM_EPILOGUES
};

struct gemm_args {
	long long m, n, k;
	const void *a, *b, *bias, *residual;
	void *d;
	/* In elements: from a row to the next one, from a k to the next one. */
	long long a_row, a_k, b_row, b_k, d_row, residual_row;
	int epilogue;
	const float *a_scale, *b_scale;
	long long batch, a_batch, b_batch, d_batch, residual_batch; /* how many, and elements from one to the next */
};

#ifdef __CUDACC_RTC__
#define TILE_WALK static __device__ __forceinline__
#else
#define TILE_WALK static inline
#endif

struct tile {
	int m, n;
};

/* How many of `each` cover n. */
TILE_WALK int tile_count(int n, int each)
{
	return (n + each - 1) / each;
}

/* The t-th of cm x cn clusters of tiles: groups of columns of clusters, walked down M, so that tiles that run at a time
 * form a near square. */
TILE_WALK struct tile tile_at(int t, int cm, int cn, int group)
{
	const int per = group * cm, g = t / per, in = t - g * per;
	const int width = cn - g * group < group ? cn - g * group : group;
	const struct tile at = {in / width, g * group + in % width};
	return at;
}

/* The first row and column of the tile that a block of place (sub_m, sub_n) in a cluster of clm x cln has. */
TILE_WALK struct tile tile_corner(struct tile at, int clm, int cln, int sub_m, int sub_n, int bm, int bn)
{
	const struct tile corner = {(at.m * clm + sub_m) * bm, (at.n * cln + sub_n) * bn};
	return corner;
}

/* A CUtensorMap. */
struct __attribute__((aligned(64))) tensor_map {
	unsigned long long word[16];
};

struct tiled_args {
	struct tensor_map a, b;
	struct tensor_map d, d_tail; /* 64 columns, and what is left of a tile's columns */
	struct tensor_map residual, residual_tail;
	const void *bias;
	const float *a_scale, *b_scale;
	int m, n, k;
	int group; /* clusters of tiles side by side along N that are walked together */
	int batch, a_step, b_step, residual_step; /* a step is 0 where all share one; a single product reads none of these */
	struct tensor_map a_low, b_low;           /* of TF32 in two parts */
};

/* For gemm_split.cu: of each matrix of a batch, `rows` of k elements, to rows that are `pitch` apart. */
struct split_args {
	const void *from;
	float *high, *low; /* low: NULL, then high is what was there */
	long long rows, k, step_row, step_k, apart, pitch, batch;
};

/* The same for gemm_few.cu. */
struct few_args {
	struct tensor_map a, b;
	const void *bias, *residual;
	void *d;
	long long d_row, residual_row; /* elements */
	int m, n, k;
};
