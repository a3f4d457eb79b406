/* The tree is a ring: position = bin modulo their number, and `first` says where it begins. */
#include "batch/batch_demand.h"

#include "base/banned.h"

static void sum_add(struct demand_sum *s, uint32_t class, uint64_t ns)
{
	for (uint32_t c = class; c < BATCH_CLASSES; c++)
		s->ns[c] += ns;
}

static void tree_add(struct batch_demand *d, uint32_t position, const struct demand_sum *s)
{
	for (uint32_t i = position + 1; i <= DEMAND_BINS; i += i & -i)
		for (uint32_t c = 0; c < BATCH_CLASSES; c++)
			d->tree[i].ns[c] += s->ns[c];
}

/* Of the positions below that one. */
static uint64_t below(const struct batch_demand *d, uint32_t position, uint32_t class)
{
	uint64_t sum = 0;
	for (uint32_t i = position; i; i &= i - 1)
		sum += d->tree[i].ns[class];
	return sum;
}

/* Unsigned sums wrap around, so adding the negative takes away. */
static void change(struct batch_demand *d, uint32_t class, uint32_t bin, uint64_t ns)
{
	struct demand_sum s = { 0 };
	sum_add(&s, class, ns);
	tree_add(d, bin % DEMAND_BINS, &s);
	sum_add(&d->bin[bin % DEMAND_BINS], class, ns);
	sum_add(&d->all, class, ns);
}

static void pass(struct batch_demand *d, uint32_t position)
{
	struct demand_sum *bin = &d->bin[position], less;
	if (!bin->ns[BATCH_CLASSES - 1])
		return;
	for (uint32_t c = 0; c < BATCH_CLASSES; c++) {
		d->overdue.ns[c] += bin->ns[c];
		d->all.ns[c] -= bin->ns[c];
		less.ns[c] = -bin->ns[c];
	}
	tree_add(d, position, &less);
	*bin = (struct demand_sum){ 0 };
}

void demand_advance(struct batch_demand *d, uint64_t now)
{
	const uint64_t bin = now >> DEMAND_BIN_BITS;
	if (bin <= d->first)
		return;
	for (uint32_t i = 0; i < DEMAND_BINS && d->first + i < bin && d->all.ns[BATCH_CLASSES - 1];
		i++)
		pass(d, (uint32_t)(d->first + i) % DEMAND_BINS);
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
	change(d, class, bin, ns);
	return bin;
}

void demand_drop(struct batch_demand *d, uint32_t class, uint32_t bin, uint32_t ns)
{
	if ((int32_t)(bin - (uint32_t)d->first) < 0)
		sum_add(&d->overdue, class, -(uint64_t)ns);
	else
		change(d, class, bin, -(uint64_t)ns);
}

uint64_t demand_ns(const struct batch_demand *d, uint32_t class, uint64_t deadline)
{
	const uint32_t first = (uint32_t)d->first % DEMAND_BINS;
	const uint32_t end = (uint32_t)bin_of(d, deadline) % DEMAND_BINS;
	uint64_t sum = d->overdue.ns[class] + below(d, end + 1, class) - below(d, first, class);
	if (end < first)
		sum += d->all.ns[class];
	return sum;
}
