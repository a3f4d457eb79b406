/*
 * Binary search in anything that is in order.
 *
 *	size_t at = SEARCH(i, 0, spans.n, spans.v[i].end_ns <= ns);
 *
 * The result is the first index of [0, spans.n) for which the condition is false, or spans.n. The
 * condition must hold up to some index and not from there on. `i` is the index in the condition,
 * which is evaluated about log2(n) times and must change nothing.
 */
#pragma once

#include <stddef.h>

#define SEARCH(i, from, to, before)                                                                \
	({                                                                                         \
		size_t low_ = (from), high_ = (to);                                                \
		while (low_ < high_) {                                                             \
			const size_t i = low_ + (high_ - low_) / 2;                                \
			if (before)                                                                \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})
