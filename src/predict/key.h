/*
 * The identity of a kernel by its name, and the key of a launch whose arguments are all known. The
 * launch, the learner from the device and the learner from a trace share this definition.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/* predict_kernel.id of a name. */
static inline uint64_t predict_kernel_id(const char *name, size_t bytes, uint64_t binary)
{
	const uint64_t id = hash_mix(hash_bytes(name, bytes) ^ hash_mix(binary));
	return id + !id;
}

/* key: predict_key(); args_key: of event/args.h.  Never 0. */
static inline uint64_t predict_key_of_args(uint64_t key, uint64_t args_key)
{
	const uint64_t h = hash_mix(key ^ hash_mix(args_key));
	return h + !h;
}
