/*
 * Describes a library call's sizes as the argument of a range, in JSON.
 * docs/reference/trace-format.md ("Calls of libraries") names the keys. Equal shapes share one
 * string of the trace, and reading descriptors changes nothing.
 */
#pragma once

#include <stdint.h>

/* cudaDataType, as far as the letters of api/library.tbl stand for one. */
enum { UNSAID = -1, TYPE_S = 0, TYPE_D = 1, TYPE_H = 2, TYPE_C = 4, TYPE_Z = 5 };

struct product { /* no padding: it is hashed */
	int64_t m, n, k, batch;
	int32_t type, type_b, type_c; /* cudaDataType, or UNSAID; b, c: as the first */
	int32_t compute;              /* cublasComputeType_t, of old versions cudaDataType */
	int32_t epilogue;             /* cublasLtEpilogue_t; 0 none */
	int32_t unused;
};

/* Each answers the number of a string, or 0 when nothing can be told. */
uint32_t product_args(const struct product *p);
uint32_t matmul_args(void *desc, void *a, void *b, void *d);
uint32_t conv_args(void *input, void *filter, void *output);
