/* What kernels' names say: a table of parts of names.  See hint_facts.h. */
#include <string.h>

#include "report/hint_facts.h"

#include "base/banned.h"

/* As cuBLAS, cuDNN, CUTLASS, PyTorch, Triton and others name theirs.  All rows that fit count. */
static const struct {
	const char *part;
	uint32_t names;
} parts[] = {
	{ "at::native", NAME_LIBRARY | NAME_TORCH },
	{ "c10::", NAME_LIBRARY | NAME_TORCH },
	{ "gemm", NAME_LIBRARY | NAME_MATMUL },
	{ "nvjet", NAME_LIBRARY | NAME_MATMUL },
	{ "convolve", NAME_LIBRARY | NAME_MATMUL },
	{ "scudnn", NAME_LIBRARY | NAME_MATMUL | NAME_FP32 },
	{ "xmma", NAME_LIBRARY },
	{ "cutlass", NAME_LIBRARY },
	{ "cublas", NAME_LIBRARY },
	{ "cudnn", NAME_LIBRARY },
	{ "nccl", NAME_LIBRARY },
	{ "cub::", NAME_LIBRARY },
	{ "thrust::", NAME_LIBRARY },
	{ "sgemm", NAME_FP32 },
	{ "f32f32_f32f32", NAME_FP32 },
	{ "gemmSN", NAME_FP32 },
	{ "gemmk1", NAME_FP32 },
	{ "s16816", NAME_HALF },
	{ "h1688", NAME_HALF },
	{ "h16816", NAME_HALF },
	{ "f16f16", NAME_HALF },
	{ "bf16bf16", NAME_HALF },
	{ "_hsh_", NAME_HALF },
	{ "_tst_", NAME_HALF },
	{ "_hss_", NAME_HALF },
	{ "_tss_", NAME_HALF },
	{ "hgemm", NAME_HALF },
	{ "e4m3", NAME_FP8 },
	{ "e5m2", NAME_FP8 },
	{ "_qq", NAME_FP8 },
	{ "i8i8", NAME_FP8 },
	{ "imma", NAME_FP8 },
	{ "igemm", NAME_FP8 },
	{ "elementwise_kernel", NAME_POINTWISE },
	{ "softmax", NAME_SOFTMAX },
	{ "SoftMax", NAME_SOFTMAX },
	{ "MeanOps", NAME_MEAN },
	{ "WelfordOps", NAME_MEAN },
	{ "sqrt_kernel", NAME_ROOT },
	{ "flash", NAME_LIBRARY | NAME_ATTENTION },
	{ "fmha", NAME_LIBRARY | NAME_ATTENTION },
	{ "attention", NAME_LIBRARY | NAME_ATTENTION },
	{ "sdpa", NAME_LIBRARY | NAME_ATTENTION },
	{ "triton_", NAME_LIBRARY | NAME_COMPILED },
	{ "ackward", NAME_TRAINING },
	{ "_bwd", NAME_TRAINING },
	{ "multi_tensor", NAME_TRAINING },
	{ "optimizer", NAME_TRAINING },
};

uint32_t hint_names_of(const char *kernel)
{
	uint32_t names = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(kernel, parts[i].part))
			names |= parts[i].names;
	/* s1688gemm and sm80_…_tf32f32 multiply on tensor cores, in TF32 too. */
	if (strstr(kernel, "tf32") || strstr(kernel, "tensorop") || names & (NAME_HALF | NAME_FP8))
		names &= ~(uint32_t)NAME_FP32;
	if (strstr(kernel, "tf32"))
		names &= ~(uint32_t)NAME_HALF;
	if (names & NAME_FP8)
		names &= ~(uint32_t)NAME_HALF;
	if (names & (NAME_FP32 | NAME_HALF | NAME_FP8) && !(names & NAME_MATMUL))
		names &= ~(uint32_t)(NAME_FP32 | NAME_HALF | NAME_FP8);
	return names;
}
