/*
 * Which kernel runs a convolution, and as which product: pure code, which needs no GPU.
 */
#pragma once

#include "kernels/conv.cuh"
#include "kernels/gemm.h"

/* As rows_check(). */
int conv_check(const struct weir_conv *what, struct weir_conv *ret, struct error *err);

/* As gemm_choose(). */
size_t conv_choose(const struct kernel_device *d, const struct weir_conv *what,
	struct gemm_choice ret[static GEMM_FORMS_MOST]);

/* A convolution of fewer than 8 channels, once conv_pack() of conv.cu has packed it. */
struct conv_packed {
	struct weir_conv conv; /* of one column of taps, whose 64 channels are those of 8 pixels */
	struct conv_pack_args pack; /* all but pointers */
};

/* false: it is not packed. */
bool conv_pack(const struct weir_conv *what, struct conv_packed *ret);
size_t conv_packed_images(const struct conv_packed *p); /* bytes */
size_t conv_packed_filters(const struct conv_packed *p);

/* The kernel that packs, and its name. */
void conv_pack_program(struct buf *ret_name, struct buf *ret);

/* Whether it has one tap and leaves out no pixel. A product's kernels run it then. */
bool conv_is_product(const struct weir_conv *what);

/* The product that the tensor cores compute: k has whole blocks for each tap. */
struct weir_gemm conv_product(const struct weir_conv *what);

/* Sizes and steps: all but pointers. */
struct conv_args conv_geometry(const struct weir_conv *what);

/* The same for the tensor cores, without tensor maps. */
struct conv_tiled_args conv_tile(const struct weir_conv *what);

/* Whether it is one of phases. */
bool conv_is_phased(const struct weir_conv *what);

/* Pixels of the output along an axis of the input. */
int64_t conv_outputs(int64_t inputs, int64_t taps, int64_t stride, int64_t pad, int64_t dilation);

void conv_program(const struct weir_conv *what, const struct gemm_choice *choice, struct buf *ret);

/* The kernel that adds up the parts of a gradient of filters, and its name. */
void conv_sum_program(const struct weir_conv *what, struct buf *ret_name, struct buf *ret);

uint32_t conv_d_type(const struct weir_conv *what); /* with its default */

/* The bytes of one part's sums. */
size_t conv_sums_bytes(const struct weir_conv *what);

double conv_flops(const struct weir_conv *what);
