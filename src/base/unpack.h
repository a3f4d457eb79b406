/*
 * Limits the size of unpacked files, because a few compressed bytes can unpack to any size.
 * Recordings and profiles shrink to a twentieth, those of a repetitive program to a hundredth, and
 * calls further. Readers keep what fits and say that there was more.
 */
#pragma once

#include <stdint.h>

#define UNPACK_LEAST (64ull << 20) /* of any file, however small */
#define UNPACK_RATIO 200u
#define UNPACK_CALLS 8u /* calls may come to so many times more */

static inline uint64_t unpack_most(uint64_t file_bytes)
{
	const uint64_t scaled =
		file_bytes > UINT64_MAX / UNPACK_RATIO ? UINT64_MAX : file_bytes * UNPACK_RATIO;
	return scaled > UNPACK_LEAST ? scaled : UNPACK_LEAST;
}
