/*
 * The learnt device time of this program's launches, keyed by kernel or graph, grid, block and
 * shared memory. Any thread reads, because each value is a single word.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hook/core/gate.h"

struct cost {
	_Atomic uint64_t key;       /* 0: nobody's */
	_Atomic(const void *) what; /* kernel or graph */
	_Atomic uint64_t blocks;
	_Atomic float mean_ns;  /* 0: never measured */
	_Atomic float off_ns;   /* mean distance from it */
	_Atomic float guess_ns; /* where it was never measured: a bound, or the same kernel in
				   another shape; 0: none */
	_Atomic float least_ns; /* of the bounds */
	_Atomic uint32_t bounds;
	_Atomic uint32_t generation; /* of handles */
	_Atomic uint32_t count;      /* measurements: written behind what they were */
	_Atomic uint32_t resident;   /* blocks of it that one SM holds; 0: unknown */
	_Atomic bool plain;          /* a kernel that may be given to another stream */
};

static inline bool cost_is_measured(const struct cost *c)
{
	return load_acquire(&c->count); /* partner: cost_learn() */
}

/* All for which there is no room share one. */
struct cost *costs_of(const struct launch_shape *l);

/* The 90th percentile and the mean; of what was never measured: from the same kernel in another
 * shape, else `unknown`. */
uint64_t cost_t90(const struct cost *c, uint64_t unknown);
uint64_t cost_mean(const struct cost *c, uint64_t unknown);

/* One launch took so long; from several threads at once one may get lost. */
void cost_learn(struct cost *c, float ns);

/* It and its like took `scale` times what was predicted together. */
void cost_correct(struct cost *c, float scale);

/* Handles may be of other kernels from now on. */
void costs_expire(void);

void costs_forget(void);
