/* The parts of the engine of kernels share this: a model's buffers and the sizes in its file. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "weir/kernels.h"

struct kernels;

/* rows * each + plus, divided by over and rounded up. */
struct amount {
	uint64_t each, plus, over;
};

static inline uint64_t amount(const struct amount *a, uint32_t rows)
{
	return (a->each * rows + a->plus + a->over - 1) / a->over;
}

/* 0 or -EINVAL. */
int amount_read(const json_t *j, struct amount *ret);

/* The place of a tensor or buffer by its name: 0 or -ENOENT. */
int kernel_list_find(const struct kernels *k, const char *name, unsigned *ret);

/*
 * Steps of a model of kernels that name a kernel of libweirkernels (library_step.c): a product, a
 * softmax or a norm.  A step has a plan for each number of rows.  Errors are -EINVAL, and -EIO
 * where the driver refuses.
 */
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
