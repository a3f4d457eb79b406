/* The parts of the engine of kernels share this: a model's buffers and the sizes in its file. */
#pragma once

#include <stdint.h>

#include <jansson.h>

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
