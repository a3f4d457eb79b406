/*
 * The cost of driver calls: medians on one H200 (driver 580.159, CUDA 13.0, 16 idle cores) for two
 * sizes, measured with bench/memory.c. Between and above these sizes the cost is linear, and below
 * them it is that of the smaller one. The first row is an allocation with its free, and access
 * counts for each mapping.
 */
#include "allocator/allocator.h"

#define MIB (1 << 20)

static const struct price {
	double small_bytes, small_ns, large_bytes, large_ns;
} prices[ALLOC_CALLS] = {
	[CALL_MEM_ALLOC] = { 1 * MIB, 758, 64 * MIB, 65233 },
	[CALL_CREATE] = { 2 * MIB, 8700, 64 * MIB, 7600 },
	[CALL_MAP] = { 2 * MIB, 500, 64 * MIB, 500 },
	[CALL_ACCESS] = { 2 * MIB, 16200, 64 * MIB, 34300 },
	[CALL_UNMAP] = { 2 * MIB, 11800, 64 * MIB, 19200 },
};

static double price_of(const struct price *p, double bytes)
{
	if (bytes <= p->small_bytes)
		return p->small_ns;
	return p->small_ns + (p->large_ns - p->small_ns) * (bytes - p->small_bytes) /
				     (p->large_bytes - p->small_bytes);
}

void meter_calls(struct alloc_meter *m, enum alloc_call call, uint64_t bytes, uint64_t count)
{
	const double ns = price_of(&prices[call], (double)bytes) * (double)count;
	m->calls[call] += count;
	m->ns += ns;
	m->event_ns += ns;
}

void meter_reserve(struct alloc_meter *m, uint64_t bytes)
{
	m->reserved += bytes;
	m->reserved_peak = MAX(m->reserved, m->reserved_peak);
}

void meter_give_back(struct alloc_meter *m, uint64_t bytes)
{
	m->reserved -= bytes;
}
