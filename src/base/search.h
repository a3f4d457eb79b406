/*
 * Binary search in whatever is in order.
 *
 *	size_t at = SEARCH(i, 0, spans.n, spans.v[i].end_ns <= ns);
 *
 * is the first index of [0, spans.n) for which the condition is false: those before it must hold
 * it and those from there on must not; spans.n when all hold it.  `i` is the name that the
 * condition calls the index by; it is evaluated some log2(n) times, and must change nothing.
 */
#ifndef WEIR_BASE_SEARCH_H
#define WEIR_BASE_SEARCH_H

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

#endif
