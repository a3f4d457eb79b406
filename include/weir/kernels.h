/*
 * libweirkernels has CUDA kernels of Weir's own: softmax, log-softmax, layer norm, RMS norm, and
 * matrix products and convolutions with what follows them in a model.
 *
 * A plan is a kernel that was chosen and loaded for a shape.  Make it once, and run it as often as
 * you like.  Link with -lweirkernels (pkg-config weirkernels).  The library finds the CUDA driver
 * and NVRTC at run time.  With NVRTC it compiles the kernel that fits the shape best, and keeps it
 * in a cache on the disk.  Without NVRTC it runs the plain kernels that are built in.
 *
 * The caller owns the CUDA context, the memory and the streams.  weir_kernels_open() takes the
 * context that is current in the calling thread, and every later call needs the same context.
 *
 * Running a plan allocates nothing and waits for nothing, so that a CUDA graph can capture it.  The
 * same input gives the same bits in every run.  Plans never change: any number of threads may run
 * one plan, on any streams.  Any thread may call any function.
 *
 * Structures begin with their size: set it to sizeof before each call.  Functions return 0 or a
 * negative number of enum weir_kernels_status.  weir_kernels_error() then says what was wrong.
 */
#ifndef WEIR_KERNELS_H
#define WEIR_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define WEIR_KERNELS_VERSION 1

/* Return values. */
enum weir_kernels_status {
	WEIR_KERNELS_OK = 0,
	WEIR_KERNELS_ERROR_ARGUMENT = -1, /* an argument is NULL, out of range, or misaligned */
	WEIR_KERNELS_ERROR_SIZE = -2,     /* the library does not know this size of the structure */
	WEIR_KERNELS_ERROR_NO_DRIVER = -3,   /* libcuda.so.1 is missing, or lacks a function */
	WEIR_KERNELS_ERROR_NO_CONTEXT = -4,  /* the thread has no current CUDA context */
	WEIR_KERNELS_ERROR_UNSUPPORTED = -5, /* no kernel does that on this device */
	WEIR_KERNELS_ERROR_COMPILER = -6,    /* NVRTC refused, and no kernel is built in */
	WEIR_KERNELS_ERROR_DRIVER = -7       /* the CUDA driver refused */
};

/* Types of elements. Sums are FP32, those of INT8 are 32-bit integers. Types from INT8 on are
 * for products alone, but INT8 also for convolutions. */
enum weir_kernels_type {
	WEIR_F32 = 1,
	WEIR_F16 = 2,
	WEIR_BF16 = 3,
	WEIR_S8 = 4,    /* INT8 */
	WEIR_E4M3 = 5,  /* FP8 with 3 bits of mantissa and no infinity */
	WEIR_TF32 = 6,  /* FP32 in memory. Tensor cores multiply 10 bits of its mantissa */
	WEIR_TF32X3 = 7 /* the same by three products of TF32, which take 21 bits of it */
};

/* Operations on rows. */
enum weir_rows_operation {
	WEIR_SOFTMAX = 1,
	WEIR_LOG_SOFTMAX = 2,
	WEIR_LAYER_NORM = 3,
	WEIR_RMS_NORM = 4
};

/* The library, for one CUDA context. */
struct weir_kernels;

/* A kernel that was chosen and loaded for one shape. */
struct weir_plan;

/* Places of files. Zeroed members take the default. */
struct weir_kernels_options {
	size_t size;
	/* The folder of compiled kernels. If NULL, it is $XDG_CACHE_HOME/weir/kernels, or
	 * ~/.cache/weir/kernels. If empty, nothing is kept. */
	const char *cache;
	/* The file of NVRTC. If NULL, the library looks for it. If empty, it does without. */
	const char *nvrtc;
};

/* A sentence about the last call of this thread that failed, "" if none has. Never NULL. */
const char *weir_kernels_error(void);

/* WEIR_KERNELS_VERSION of the loaded library. */
uint32_t weir_kernels_version(void);

/*
 * Opens the library for the calling thread's CUDA context.
 *   options   NULL: defaults
 *   ret_kernels  close it with weir_kernels_close()
 * Errors: WEIR_KERNELS_ERROR_NO_DRIVER, WEIR_KERNELS_ERROR_NO_CONTEXT, WEIR_KERNELS_ERROR_DRIVER.
 */
int weir_kernels_open(
	const struct weir_kernels_options *options, struct weir_kernels **ret_kernels);

/* Closes it, or NULL. Its plans stay valid until they are closed too. */
void weir_kernels_close(struct weir_kernels *kernels);

/*
 * A plan over rows. Strides are in elements, and may be negative. Softmax and log-softmax
 * use none of the members that follow epsilon.
 */
struct weir_rows {
	size_t size;
	uint32_t operation; /* enum weir_rows_operation */
	uint32_t type;      /* enum weir_kernels_type, of every tensor */
	int64_t rows, width;
	int64_t x_row, x_column; /* strides of x.  Both 0: x is contiguous */
	int64_t y_row, y_column;
	float epsilon;         /* added to the variance, or to the mean square */
	uint32_t has_residual; /* 1: the norm is of x + residual, rounded to the type */
	int64_t residual_row, residual_column; /* strides of residual and sum */
	uint32_t has_sum;                      /* 1: x + residual is also stored */
	uint32_t has_weight,
		has_bias; /* 1: the result is multiplied by `width` weights, and added to */
	uint32_t choice;  /* 0: the kernel that is predicted to be fastest, 1 the next, and so on to
			     the  plain one: for measuring them */
	/* 1: the pointers of all runs are multiples of 16 bytes. Then the plan needs no second
	 * kernel for others, and the first plan of a kind takes half as long. */
	uint32_t aligned;
};

/*
 * Chooses and loads the kernel for a shape. With NVRTC the first plan of a process takes up to 0.7
 * s. No stream of the thread may be capturing meanwhile. ret_plan   close it with weir_plan_close()
 * Errors: WEIR_KERNELS_ERROR_ARGUMENT, WEIR_KERNELS_ERROR_COMPILER, WEIR_KERNELS_ERROR_DRIVER.
 */
int weir_rows_plan(
	struct weir_kernels *kernels, const struct weir_rows *what, struct weir_plan **ret_plan);

/*
 * The tensors of one run, in device memory. y may be x, and sum may be residual or x, with the same
 * strides. No other overlap of a result is allowed.
 */
struct weir_rows_args {
	size_t size;
	const void *x;
	void *y;
	const void *residual;
	void *sum;
	const void *weight, *bias;
};

/*
 * Puts a plan's work into a stream (a CUstream, NULL is the default one). Pointers need the
 * alignment of an element, or that which the plan was promised. If they are multiples of 16 bytes,
 * a faster kernel may run.
 * Errors: WEIR_KERNELS_ERROR_ARGUMENT, WEIR_KERNELS_ERROR_DRIVER.
 */
int weir_rows_run(const struct weir_plan *plan, const struct weir_rows_args *args, void *stream);

/* The end of a product. The bias has n elements of the same type. With operands of 8 bits it is
 * FP32, and there is no residual and no SwiGLU. */
enum weir_epilogue {
	WEIR_EPILOGUE_NONE = 0,
	WEIR_EPILOGUE_BIAS = 1,
	WEIR_EPILOGUE_BIAS_RELU = 2,
	WEIR_EPILOGUE_BIAS_GELU = 3, /* by its tanh */
	WEIR_EPILOGUE_BIAS_SILU = 4,
	WEIR_EPILOGUE_RESIDUAL = 5, /* D = A * B + residual */
	WEIR_EPILOGUE_SWIGLU = 6 /* columns 2i and 2i + 1 of A * B, gate and up, give column i of D:
				    silu(gate) * up.  D has n / 2 columns */
};

/*
 * A plan of a product: D[m, n] = epilogue(sum over k of A[m, k] * B[n, k]). B is as
 * torch.nn.Linear stores its weight. Pitches are elements from a row to the next one in memory. A
 * batch is one launch, and its products have one bias.
 *
 * Operands of 8 bits have scales: the sum of D[m, n] is multiplied by a_scale[m] and b_scale[n]
 * before the epilogue. A result of INT8 is rounded to the nearest, and goes no further than -128
 * and 127.
 */
struct weir_gemm {
	size_t size;
	uint32_t type;     /* enum weir_kernels_type, of every matrix but D */
	uint32_t epilogue; /* enum weir_epilogue */
	int64_t m, n, k;
	uint32_t a_transposed;                             /* 1: A is stored as k rows of m */
	uint32_t b_transposed;                             /* 1: B is stored as k rows of n */
	int64_t a_pitch, b_pitch, d_pitch, residual_pitch; /* 0: rows are adjacent */
	uint32_t choice;                                   /* as in struct weir_rows */
	/* The type of D. 0 stands for `type`, but TF32 and TF32X3 give FP32, and 8 bits give BF16.
	 * Operands of 8 bits may also give FP16, and INT8 may give INT8. */
	uint32_t d_type;
	/* As many products of one shape. 0: 1. Operands of 8 bits have no batch. */
	int64_t batch;
	/* Elements from one product's matrix to the next one's. 0: all share it, which D cannot. */
	int64_t a_batch, b_batch, d_batch, residual_batch;
	uint32_t aligned; /* 1 if each run begins at a multiple of 16 bytes */
	/* 1: nothing in the stream before a run writes B, which may be read while that still works.
	 * A product of up to 128 rows begins earlier then. */
	uint32_t b_stays;
};

/*
 * Chooses and loads the kernel of a product. On capability 9.0, products with pitches that are
 * multiples of 16 bytes run on the tensor cores, but not those of FP32. Operands of 8 bits must not
 * be transposed for that. The run copies transposed TF32, and all TF32X3, into the workspace first,
 * from any pitch. On capability 8.0 and later, products whose A and B have such pitches, and are
 * not transposed, run on the tensor cores too. All else runs the plain kernel, which multiplies
 * TF32 and TF32X3 as FP32. ret_plan   close it with weir_plan_close() Errors: those of
 * weir_rows_plan().
 */
int weir_gemm_plan(
	struct weir_kernels *kernels, const struct weir_gemm *what, struct weir_plan **ret_plan);

/* The matrices of one run, in device memory. D may be the residual, and overlaps nothing else. */
struct weir_gemm_args {
	size_t size;
	const void *a, *b;
	void *d;
	const void *bias, *residual; /* NULL where the epilogue has none */
	void *workspace; /* of weir_plan_workspace() bytes, a multiple of 16 bytes.  NULL where that
			    is 0 */
	/* m and n scales, for operands of 8 bits. A convolution has k of them, and those of its
	 * pixels are NULL. */
	const float *a_scale, *b_scale;
};

/*
 * Puts a product into a stream. Pointers need the alignment of an element. If they are multiples of
 * 16 bytes, the tensor cores may run it.
 * Errors: WEIR_KERNELS_ERROR_ARGUMENT, WEIR_KERNELS_ERROR_DRIVER.
 */
int weir_gemm_run(const struct weir_plan *plan, const struct weir_gemm_args *args, void *stream);

/* The result of a convolution, and which tensors it reads. */
enum weir_conv_pass {
	WEIR_CONV_FORWARD = 0, /* D is the output: A is the input, and B the filters */
	WEIR_CONV_INPUT =
		1, /* D is the gradient of the input: A is that of the output, B the filters */
	WEIR_CONV_FILTERS =
		2 /* D is the gradient of the filters: A is that of the output, B the input */
};

/*
 * A plan of a convolution. Images are n * h * w * c, as PyTorch's channels_last stores them, and
 * filters are k * r * s * (c / groups). The output has n images of k channels. All tensors are
 * contiguous. A bias has an element for each channel of D, and a residual is as large as D.
 */
struct weir_conv {
	size_t size;
	uint32_t type; /* enum weir_kernels_type, of every tensor */
	uint32_t
		epilogue; /* enum weir_epilogue, but not SwiGLU. The gradient of filters has none */
	uint32_t pass;    /* enum weir_conv_pass */
	uint32_t choice;  /* as in struct weir_rows */
	int64_t n, h, w, c;             /* of the input, in all passes */
	int64_t k, r, s;                /* filters, and their height and width */
	int64_t stride_h, stride_w;     /* 0: 1 */
	int64_t pad_h, pad_w;           /* on both sides */
	int64_t dilation_h, dilation_w; /* 0: 1 */
	int64_t groups;                 /* 0: 1 */
	uint32_t aligned;               /* 1 if each run begins at a multiple of 16 bytes */
	/* The type of the output. 0: `type`, and BF16 for INT8, which may also give FP16 and INT8.
	 */
	uint32_t d_type;
};

/*
 * Chooses and loads the kernel of a convolution. On capability 9.0, BF16 and FP16 with c and k that
 * are multiples of 8, and with one group, run on the tensor cores. INT8 does with c and k that are
 * multiples of 16. It has the forward pass alone, k scales, and no residual. The gradient of the
 * input runs on the tensor cores if stride_h times stride_w is at most 4. All else runs plain
 * kernels. ret_plan   close it with weir_plan_close() Errors: those of weir_rows_plan().
 */
int weir_conv_plan(
	struct weir_kernels *kernels, const struct weir_conv *what, struct weir_plan **ret_plan);

/*
 * Puts a convolution into a stream. enum weir_conv_pass says what a, b and d are.
 * Errors: WEIR_KERNELS_ERROR_ARGUMENT, WEIR_KERNELS_ERROR_DRIVER.
 */
int weir_conv_run(const struct weir_plan *plan, const struct weir_gemm_args *args, void *stream);

/* Bytes of device memory that a run needs beside its tensors. It is 0 for all plans but those of
 * the gradient of filters, and of fewer than 8 channels, on the tensor cores. */
size_t weir_plan_workspace(const struct weir_plan *plan);

/* Which kernel was chosen and why, in a line. It belongs to the plan. */
const char *weir_plan_text(const struct weir_plan *plan);

/* How long a run is predicted to take on this device. 0: Weir does not know the device. */
double weir_plan_predicted_ns(const struct weir_plan *plan);

/* Closes a plan, or NULL. Work that is in a stream already must have ended. */
void weir_plan_close(struct weir_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
