/* The tree is a ring: position = bin modulo their number, and `first` says where it begins. */
#include "batch/batch_core.h"

/* Sum over the positions below that one. */
static uint64_t below(const uint64_t *tree, uint32_t position)
{
	uint64_t sum = 0;
	for (uint32_t i = position; i; i &= i - 1)
		sum += tree[i];
	return sum;
}

/* Unsigned sums wrap around, so adding the negative takes away. */
static void change(struct batch_demand *d, uint32_t class, uint32_t position, uint64_t ns)
{
	uint64_t *tree = d->tree[class];
	for (uint32_t i = position + 1; i <= DEMAND_BINS; i += i & -i)
		tree[i] += ns;
	d->bin[class][position] += ns;
	d->all[class] += ns;
}

/* The bin's time is over. */
static void pass(struct batch_demand *d, uint32_t class, uint32_t position)
{
	const uint64_t ns = d->bin[class][position];
	if (!ns)
		return;
	change(d, class, position, -ns);
	d->overdue[class] += ns;
}

void demand_advance(struct batch_demand *d, uint64_t now)
{
	const uint64_t bin = now >> DEMAND_BIN_BITS;
	if (bin <= d->first)
		return;
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		for (uint32_t i = 0; i < DEMAND_BINS && d->first + i < bin && d->all[c]; i++)
			pass(d, c, (uint32_t)(d->first + i) % DEMAND_BINS);
	d->first = bin;
}

static uint64_t bin_of(const struct batch_demand *d, uint64_t deadline)
{
	const uint64_t bin = deadline >> DEMAND_BIN_BITS, last = d->first + DEMAND_BINS - 1;
	return bin < d->first ? d->first : bin > last ? last : bin;
}

uint32_t demand_add(struct batch_demand *d, uint32_t class, uint64_t deadline, uint32_t ns)
{
	const uint32_t bin = (uint32_t)bin_of(d, deadline);
	change(d, class, bin % DEMAND_BINS, ns);
	return bin;
}

void demand_drop(struct batch_demand *d, uint32_t class, uint32_t bin, uint32_t ns)
{
	if ((int32_t)(bin - (uint32_t)d->first) < 0)
		d->overdue[class] -= ns;
	else
		change(d, class, bin % DEMAND_BINS, -(uint64_t)ns);
}

uint64_t demand_ns(const struct batch_demand *d, uint32_t class, uint64_t deadline)
{
	const uint32_t first = (uint32_t)d->first % DEMAND_BINS;
	const uint32_t end = (uint32_t)bin_of(d, deadline) % DEMAND_BINS;
	uint64_t sum = 0;
	for (uint32_t c = 0; c <= class; c++) {
		sum += d->overdue[c] + below(d->tree[c], end + 1) - below(d->tree[c], first);
		if (end < first)
			sum += d->all[c];
	}
	return sum;
}
