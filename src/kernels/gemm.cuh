/* What a kernel of products is given.  The host fills it and passes it by value; the device sources include this file
 * too, so it names no header.
 *
 * D[m, n] = epilogue(sum over k of A[m, k] * B[n, k]).  With SwiGLU the columns of the sum are pairs of gate and up, and
 * D has half as many: silu(gate) * up. */
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
};

/* A CUtensorMap. */
struct __attribute__((aligned(64))) tensor_map {
	unsigned long long word[16];
};

struct tiled_args {
	struct tensor_map a, b;
	struct tensor_map d, d_tail; /* 64 columns, and what is left of a tile's columns */
	struct tensor_map residual, residual_tail;
	const void *bias;
	int m, n, k;
	int group; /* clusters of tiles side by side along N that are walked together */
};
