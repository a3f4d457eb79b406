/* The descriptors of mock_cublaslt.c. */
#pragma once

#include <stdint.h>

struct mock_layout {
	uint32_t type;
	int32_t batch;
	uint64_t rows, cols;
};

struct mock_matmul {
	int32_t compute, transpose_a, epilogue;
};
