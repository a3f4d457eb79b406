/* Computes the times of the requests that ended between two looks. */
#include "monitor/request_level.h"

#define TAIL_BUCKETS 4u /* above the median's: from twice as long on */

static uint32_t ended(const uint32_t *before, const uint32_t *now, uint32_t i)
{
	return now[i] - before[i]; /* they wrap around */
}

static uint32_t median_bucket(const uint32_t *before, const uint32_t *now, uint64_t all)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++) {
		n += ended(before, now, i);
		if (2 * n >= all)
			return i;
	}
	return SHARE_BUCKETS - 1;
}

uint64_t request_level(const uint32_t before[SHARE_BUCKETS], const uint32_t now[SHARE_BUCKETS],
	uint64_t sum_ns, uint32_t *ret_count)
{
	uint64_t all = 0, tail = 0;
	double tail_ns = 0;
	*ret_count = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		all += ended(before, now, i);
	if (!all || all > UINT32_MAX / 2)
		return 0;
	const uint32_t first = median_bucket(before, now, all) + TAIL_BUCKETS;
	for (uint32_t i = first; i + 1 < SHARE_BUCKETS; i++) {
		const double middle =
			((double)share_bucket_ns(i) + (double)share_bucket_ns(i + 1)) / 2;
		tail += ended(before, now, i);
		tail_ns += middle * ended(before, now, i);
	}
	const double mean = ((double)sum_ns - tail_ns) / (double)(all - tail);
	if (!(mean > 0))
		return 0;
	*ret_count = (uint32_t)(all - tail);
	return (uint64_t)mean;
}
