/* The arguments of a kernel over rows: softmax, log-softmax, layer norm and RMS norm.  The host
 * fills it and passes it by value; the device sources include this file too, so it names no header.
 *
 * Strides are in elements and may be negative or 0 for what is only read.  `y` may be `x`, and `sum` may be
 * `residual` or `x`, with the same strides; any other overlap of what is written is the caller's error. */
#pragma once

struct rows_tensor {
	void *at;
	long long row, column; /* strides */
};

struct rows_args {
	struct rows_tensor x, y;
	struct rows_tensor residual; /* added to x and rounded to the type; .at may be NULL */
	struct rows_tensor sum;      /* gets x + residual; .at may be NULL */
	const void *weight, *bias;   /* `width` elements of the same type, or NULL */
	long long rows, width;
	float epsilon;
};

#ifdef __cplusplus
static_assert(sizeof(struct rows_args) == 136, "the host and the device agree");
#else
_Static_assert(sizeof(struct rows_args) == 136, "the host and the device agree");
#endif
