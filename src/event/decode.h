/*
 * Formats one record as one line, like strace:
 *
 *	cuMemAlloc_v2(*dptr=0x7f0000000000, bytesize=4096) = 0
 *	cuMemAlloc_v2(*dptr=?, bytesize=1099511627776) = 2 CUDA_ERROR_OUT_OF_MEMORY
 *	cuLaunchKernel(f=0x55d0 <axpy>, grid=(8,1,1), block=(256,1,1), shared=0, stream=0x0) = 0
 *
 * Without allocation, stdio or locale. The record may hold anything, but its first `words` words
 *must be readable.
 */
#pragma once

#include <stddef.h>

#include "event/format.h"
#include "event/schema.h"

struct decoder {
	const struct schema *schema;

	/* The kernel behind a handle at the end of the call: its name, not terminated,
	 * and its length; NULL when unknown.  May be NULL itself. */
	const char *(*kernel_name)(
		void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes);
	void *context;
};

/* Writes a terminated line into buf, cut if it must be; returns its length. */
size_t decode_record(const struct decoder *d, const struct record *r, char *buf, size_t size);

/* One argument's value alone: `0x7f00`, `4096`, `"name"`, `CU_LIMIT_STACK_SIZE`. */
size_t decode_arg(
	const struct schema_fn *fn, unsigned arg, const struct record *r, char *buf, size_t size);

/* The name of a function's result, or NULL: CUresult or cudaError. */
const char *decode_result(const struct schema_fn *fn, unsigned result);

/* Grid and block of a launch layout; false when the record is too short for them. */
struct launch_shape {
	uint32_t grid[3];
	uint32_t block[3];
};
bool decode_shape(const struct record *r, struct launch_shape *ret_shape);
