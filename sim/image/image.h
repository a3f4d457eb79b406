/*
 * A loadable image's description of its kernels.  An image is PTX text, a cubin (ELF), or a fat
 * binary that holds several of them; the parser picks what a device of the given capability would
 * run and lists its kernels and variables.
 *
 * The bytes come from outside: nothing is read beyond the size given, all sums are checked,
 * and a wrong image is an answer.  Functions return 0 or a CUresult.  No globals, no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_param {
	uint32_t offset, size;
};

struct image_kernel {
	char *name;
	struct image_param *params;
	size_t param_count;
	uint32_t param_bytes;
	int registers;
	int shared_bytes; /* static */
	int local_bytes;
	int const_bytes;
	int max_threads;
	int ptx_version, binary_version; /* 90 is 9.0 */
};

struct image_global {
	char *name;
	size_t size;
	uint8_t *initial; /* NULL: zero */
	bool managed;
};

struct image {
	struct image_kernel *kernels;
	size_t kernel_count;
	struct image_global *globals;
	size_t global_count;
};

/* The begin of a wrapper around a fat binary; the driver follows its pointer. */
enum {
	IMAGE_WRAPPER_MAGIC = 0x466243b1,
	IMAGE_FATBIN_MAGIC = (int)0xba55ed50,
	IMAGE_MAX_PARAM_BYTES = 32764,
};

/*
 * Parses size bytes for a device of a capability (90).  *ret_image is to be given to
 * image_fini(), on success only.  CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU,
 * CUDA_ERROR_INVALID_PTX or CUDA_ERROR_OUT_OF_MEMORY otherwise.
 */
int image_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image);
void image_fini(struct image *image);

/*
 * How long the image at a bare pointer says it is; 0 where it is none.  Only headers are
 * read, in the trust that they are there: that is how the driver is called.
 */
size_t image_measure(const void *data);

/* The parsers of one form each, and what they build with. */
int cubin_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image);
int ptx_parse(const char *text, size_t size, int capability, struct image *ret_image);
int fatbin_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image);
size_t cubin_measure(const uint8_t *data);
/* The capability a cubin was built for, or -1. */
int cubin_capability(const uint8_t *data, size_t size);

struct image_kernel *image_add_kernel(struct image *image, const char *name, size_t length);
struct image_kernel *image_find_kernel(struct image *image, const char *name, size_t length);
struct image_global *image_add_global(struct image *image, const char *name, size_t length);
/* Sets parameter `index` of a kernel, making room for it.  False: no memory, or absurd. */
bool image_set_param(struct image_kernel *k, size_t index, uint32_t offset, uint32_t size);
