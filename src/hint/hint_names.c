/*
 * Finds the kind of a kernel from parts of its name, and the type that it multiplies from
 * api/family.tbl.
 */
#include "predict/predict.h"
#include "hint/hint_facts.h"

/* As cuBLAS, cuDNN, CUTLASS, PyTorch, Triton and others name theirs.  All rows that fit count. */
static const struct {
	const char *part;
	uint32_t names;
} parts[] = {
	{ "at::native", NAME_LIBRARY | NAME_TORCH },
	{ "c10::", NAME_LIBRARY | NAME_TORCH },
	{ "gemm", NAME_LIBRARY | NAME_MATMUL },
	{ "nvjet", NAME_LIBRARY | NAME_MATMUL },
	{ "convolve", NAME_LIBRARY | NAME_MATMUL | NAME_CONV },
	{ "scudnn", NAME_LIBRARY | NAME_MATMUL | NAME_CONV },
	{ "fprop", NAME_LIBRARY | NAME_MATMUL | NAME_CONV },
	{ "dgrad", NAME_LIBRARY | NAME_MATMUL | NAME_CONV | NAME_TRAINING },
	{ "wgrad", NAME_LIBRARY | NAME_MATMUL | NAME_CONV | NAME_TRAINING },
	{ "nchwToNhwc", NAME_LIBRARY | NAME_LAYOUT },
	{ "nhwcToNchw", NAME_LIBRARY | NAME_LAYOUT },
	{ "xmma", NAME_LIBRARY },
	{ "cutlass", NAME_LIBRARY },
	{ "cublas", NAME_LIBRARY },
	{ "cudnn", NAME_LIBRARY },
	{ "nccl", NAME_LIBRARY },
	{ "cub::", NAME_LIBRARY },
	{ "thrust::", NAME_LIBRARY },
	{ "elementwise_kernel", NAME_POINTWISE },
	{ "CUDAFunctor_add", NAME_EPILOGUE },
	{ "GeluCUDAKernel", NAME_EPILOGUE },
	{ "silu_kernel", NAME_EPILOGUE },
	{ "launch_clamp_scalar", NAME_EPILOGUE },
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

static uint32_t multiplied_by(const char *kernel)
{
	const struct predict_product p = predict_product_of(kernel);
	if (!p.has_unit || p.helps)
		return 0;
	switch (p.unit) {
	case GPU_FP32:
		return NAME_FP32;
	case GPU_TF32:
		return NAME_TF32;
	case GPU_FP16:
		return NAME_HALF;
	case GPU_FP64:
		return 0;
	default:
		return NAME_FP8;
	}
}

uint32_t hint_names_of(const char *kernel)
{
	uint32_t names = 0;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(kernel, parts[i].part))
			names |= parts[i].names;
	if (names & NAME_ATTENTION)
		names &= ~(uint32_t)NAME_MATMUL; /* two of them, and a softmax between */
	if (names & NAME_MATMUL)
		names |= multiplied_by(kernel);
	return names;
}
