/*
 * Which kernel runs a product, with which tile, and how long it will take: pure code, which needs
 * no GPU.
 */
#pragma once

#include "kernels/rows.h"

/* A specialisation of gemm_sm90.cu, whose head explains the members.  Few: of gemm_few.cu, where bm
 * rows of B and bn of A make a tile. Without buffers: of gemm_sm80.cu. All 0: gemm.cu. */
struct gemm_form {
	unsigned bm, bn, stages, buffers, clm, cln;
	bool ping_pong, few;
	/* Convolutions alone: blocks of K of 64 bytes in place of 128, phases of a gradient of the
	 * input, and how many blocks of B stay. */
	bool narrow, phased;
	unsigned held;
};

struct gemm_choice {
	struct gemm_form form;
	char name[80]; /* of the kernel, as recordings show it */
	unsigned block, cluster, shared_bytes;
	uint64_t clusters; /* that have work; a launch has no more of them than run at a time */
	unsigned group;
	unsigned parts;      /* of K, for few rows and the gradient of filters */
	double predicted_ns; /* 0: not known */
};

enum { GEMM_FORMS_MOST = 32 };

/* As rows_check(). */
int gemm_check(const struct weir_gemm *what, struct weir_gemm *ret, struct error *err);

/* Everything that can run it, the best first, and last the plain kernel.  The number of them. The
 * one before the last may be that of gemm_sm80.cu, which on capability 9.0 is for rows of D that
 * the copy engine cannot write. */
size_t gemm_choose(const struct kernel_device *d, const struct weir_gemm *what,
	struct gemm_choice ret[static GEMM_FORMS_MOST]);

/* The same without gemm_few.cu, of an operation that moves so many bytes, and whose tiles get that
 * share of what products get from the L2. */
size_t tiles_choose(const struct kernel_device *d, const struct weir_gemm *what, double bytes,
	double l2_share, struct gemm_choice ret[static GEMM_FORMS_MOST]);

/* Fills the members that follow from the form: stages, buffers, shared memory and the name. */
void gemm_fill_choice(const struct weir_gemm *what, struct gemm_choice *choice);

/* How long n parts take of which the longest hides most of the others. */
double gemm_longest(const double *parts, size_t n);

/* The best of gemm_few.cu, and how many they are: none but for few rows. */
enum { FEW_FORMS = 6 };
size_t few_choose(const struct kernel_device *d, const struct weir_gemm *what,
	struct gemm_choice ret[static FEW_FORMS]);

void gemm_program(const struct weir_gemm *what, const struct gemm_choice *choice, struct buf *ret);
void few_program(const struct weir_gemm *what, const struct gemm_choice *choice, struct buf *ret);

/* struct wgmma of a program: one instruction of 64 x bn x 16. */
void gemm_put_wgmma(const struct weir_gemm *what, unsigned bn, struct buf *ret);

/* What the tensor cores read in place of an operand of TF32: rows of adjacent K in the workspace.
 */
struct split_operand {
	bool copied;
	size_t high,
		low; /* bytes from the begin of the workspace; the same where one part has all */
	int64_t rows, pitch, apart, batch;
};

/* Bytes of the workspace, of A and of B.  SIZE_MAX: they are too many. */
size_t gemm_split(const struct weir_gemm *what, struct split_operand ret[static 2]);
struct weir_gemm gemm_as_read(
	const struct weir_gemm *what); /* with the copies in place of operands */

/* The kernel that copies, and its name. */
void gemm_split_program(struct buf *ret_name, struct buf *ret);

bool gemm_is_tf32(const struct weir_gemm *what); /* in one part or in two */

/* The time of a plain kernel for so many operations.  0: not known. */
double gemm_plain_ns(const struct kernel_device *d, double flops);

/* By its word: "bias-relu". */
bool gemm_find_epilogue(const char *word, uint32_t *ret);

uint32_t gemm_d_type(const struct weir_gemm *what); /* with its default */

/* The batch, which gemm_check() makes of 0. */
int64_t gemm_batch(const struct weir_gemm *what);

double gemm_flops(const struct weir_gemm *what);
double gemm_bytes(const struct weir_gemm *what); /* of A, B and D */

/* "_bias_relu", and "" without one. */
const char *gemm_epilogue_word(uint32_t epilogue);
