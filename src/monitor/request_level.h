/* How long the requests took that ended between two looks at a program's slot.  Pure. */
#pragma once

#include <stdint.h>

#include "share/segment.h"

/*
 * Their mean without the long tail, ns: buckets tell by a fifth, the sum exactly, so what stands in
 * buckets far above the median is taken off the sum.  0: none has ended, or the counts do not
 * belong together.  *ret_count: how many it is the mean of.
 */
uint64_t request_level(const uint32_t before[SHARE_BUCKETS], const uint32_t now[SHARE_BUCKETS],
	uint64_t sum_ns, uint32_t *ret_count);
