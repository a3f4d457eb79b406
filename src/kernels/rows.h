/*
 * Which kernel runs an operation on rows, with which geometry, and how long it will take: pure
 * code, which needs no GPU.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "weir/kernels.h"

struct kernel_device {
	char name[96];
	unsigned cc, sms; /* 90 is 9.0 */
	unsigned boost_mhz;
	/* 0: not known. */
	double copy_gb_per_s;  /* read and written by a large copy */
	double product_tflops; /* of large FP16 products at the power limit */
	double fp32_tflops;
};

/* Fills in what api/gpu.tbl knows of a device by the driver's name.  sms and cc of 0 are taken from
 * there too; false where they are not known. */
bool kernel_device_init(struct kernel_device *d, const char *name, unsigned cc, unsigned sms);

/* A specialisation of rows_held.cu, or with stages of rows_ring.cu, whose heads explain the
 * members. All 0: rows.cu. */
struct rows_form {
	unsigned vectors, threads_per_row, rows, block, cluster, stages;
	bool keeps; /* weights and biases in shared memory */
};

struct rows_choice {
	struct rows_form form;
	char name[64]; /* of the kernel, as recordings show it */
	unsigned grid, block, cluster, shared_bytes;
	double predicted_ns; /* 0: not known */
};

enum { ROWS_FORMS_MOST = 48 };

/* Checks a description, and fills in the strides that it leaves out: 0, or a negative number of
 * enum weir_kernels_status. */
int rows_check(const struct weir_rows *what, struct weir_rows *ret, struct error *err);

/* Everything that can run it, the best first, and last the plain kernel, which takes any alignment.
 * The number of them. */
size_t rows_choose(const struct kernel_device *d, const struct weir_rows *what,
	struct rows_choice ret[static ROWS_FORMS_MOST]);

/* The program of a choice, which NVRTC compiles. */
void rows_program(const struct weir_rows *what, const struct rows_choice *choice, struct buf *ret);

/* Bytes that the operation reads and writes at minimum. */
double rows_bytes(const struct weir_rows *what);

unsigned kernel_type_bytes(uint32_t type);
const char *kernel_type_word(uint32_t type);         /* "bf16" */
const char *rows_operation_word(uint32_t operation); /* "layer-norm" */

/* By these words. */
bool kernel_find_type(const char *word, uint32_t *ret);
bool rows_find_operation(const char *word, uint32_t *ret);
