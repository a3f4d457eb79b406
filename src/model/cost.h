/*
 * The least work of an operator for the shapes of its inputs: FLOPs, and bytes to read and write
 * once. The rules are in api/operator.tbl.
 *
 * PyTorch's profiler gives shapes as "Input Dims", "Input type", "Input Strides" and "Concrete
 * Inputs". Live recordings have the first with "module dtype", "module autocast" and "module conv".
 * Library calls have their own form (docs/reference/trace-format.md). Pure, and the text may be
 * anything. Nothing is guessed, so unknown stays unknown.
 */
#pragma once

#include <stdbool.h>

#include "base/array.h"
#include "base/map.h"
#include "predict/predict.h"

struct cost {
	double flops, bytes;
	bool has_flops, has_bytes;
	bool several; /* products, of which a kernel does one: it is the operator's cost alone */
	bool matrix;  /* a product of matrices: what tensor cores are for */
	/* FLOPs without a mask, and whether there was one is not known; bytes of rows some of which
	 * may be the same, and are read from a cache then. */
	bool at_most;
	enum gpu_unit unit; /* that would do it, by the type; valid with has_unit */
	bool has_unit;
	bool unit_by_name; /* by the name of the kernel */
};

/* args: the JSON object, terminated.  false: nothing is known. */
bool cost_of(const char *operator, const char * args, struct cost *ret_cost);

/*
 * The unit that does a product.  When that is narrower than the type, as FP16 where the type is
 * FP32, it was given tensors of another type, as by autocast, and bytes are not known.  GPU_UNITS:
 * by none whose peak is known.
 */
void cost_put_unit(struct cost *c, enum gpu_unit unit);

/* By the kernel that multiplies: its own word, where its name has one, goes before the type.  FP32
 * is multiplied in TF32 then. */
void cost_set_unit(struct cost *c, const struct predict_product *by);

/*
 * Costs of operators, which come again and again with the same arguments: each combination of name
 * and arguments is worked out once.  Zeroed memory is an empty table; one owner.
 */
#define COST_NONE UINT32_MAX

struct cost_table {
	struct map map;
	ARRAY(struct cost) v;
};

/* The place of the cost, or COST_NONE when it is not known.  The texts are those of the trace's
 * names, or NULL, and told apart by where they are. */
uint32_t cost_table_find(struct cost_table *t, const char *name, const char *args);
void cost_table_fini(struct cost_table *t);
