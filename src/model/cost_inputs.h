/*
 * Parses an operator's arguments: shapes, strides, types and numbers. Internal to src/model, for
 * cost.c. Pure, and the text may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "predict/predict.h"

#define INPUTS 16
#define DIMS   8

struct shape {
	unsigned dims;
	double dim[DIMS];
	bool list; /* of tensors, joined: dim[0] is the number of all their elements */
};

struct element {
	unsigned bytes; /* 0: not known */
	bool has_unit;
	enum gpu_unit unit;
};

struct inputs {
	unsigned count;
	struct shape shape[INPUTS];
	struct shape stride[INPUTS]; /* of the same dimensions where it is known */
	struct element element[INPUTS];
	struct shape concrete[INPUTS]; /* numbers, and lists of them: strides, paddings */
	bool shapes_only;              /* of a recording by NVTX: neither types nor lists */
	bool cast;                     /* by autocast: element[] is what products get */
};

/* Behind `"key":`, or NULL. */
const char *cost_find_key(const char *args, const char *key);

/* A number, or a truth: 1 or 0.  Behind it, or NULL. */
const char *cost_read_value(const char *p, double *ret_value);

/* [8, 256] after its bracket; behind the closing one, or NULL. */
const char *cost_read_numbers(const char *p, struct shape *to);

double cost_elements(const struct shape *s);

/* The element of a type by its name, as PyTorch or calls of libraries write it. */
struct element cost_element_of(const char *word, size_t n);

/* All of a range's arguments; false when they tell of no inputs. */
bool cost_read_inputs(const char *args, struct inputs *in);
