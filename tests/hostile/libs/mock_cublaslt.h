/* The descriptors of mock_cublaslt.c. */
#ifndef MOCK_CUBLASLT_H
#define MOCK_CUBLASLT_H

#include <stdint.h>

struct mock_layout {
	uint32_t type;
	int32_t batch;
	uint64_t rows, cols;
};

struct mock_matmul {
	int32_t compute, transpose_a, epilogue;
};

#endif
