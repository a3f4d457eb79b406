/*
 * Steps of a model of kernels that name a kernel of libweirkernels: a product, a softmax or a norm.
 * docs/reference/engines.md has their keys.
 *
 * A step has a plan for each number of rows.  Errors are -EINVAL, and -EIO where the driver
 * refuses.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "engine/kernel_list.h"
#include "weir/kernels.h"

enum { LIBRARY_TENSORS = 7, LIBRARY_NONE = ~0u };

struct library_step {
	bool is_product;
	struct amount rows;              /* m of the product, or rows of the others */
	struct weir_gemm gemm;           /* but for m */
	struct weir_rows row;            /* but for rows */
	unsigned place[LIBRARY_TENSORS]; /* LIBRARY_NONE: it has none */
};

/* Whether this is such a step. */
bool library_step_is(const json_t *step);
int library_step_read(
	const struct kernels *k, const json_t *step, struct library_step *ret, struct error *err);

/* The library on the current context of that driver, NULL for the one that the loader finds. */
int library_open(const char *driver, struct weir_kernels **ret, struct error *err);

/* bytes: of what each place holds. */
int library_step_plan(const struct library_step *s, struct weir_kernels *library, uint32_t rows,
	const uint64_t bytes[LIBRARY_TENSORS], struct weir_plan **ret, struct error *err);
int library_step_run(const struct library_step *s, const struct weir_plan *p,
	const uint64_t at[LIBRARY_TENSORS], void *stream, struct error *err);
