/* Learns the time that events add to the work. */
#include "reconstruct/durations.h"

#include "base/sort.h"

#define EXCESS_NONE INT64_MIN
#define FEW         4u /* fewer of a kernel say less than those of all others */

void excess_note(struct excess *x, struct map_key kernel, bool idle, int64_t ns)
{
	const uint32_t number = map_number(&x->kernels, kernel);
	*array_push(&x->values) = (struct excess_value){ number * 2 + idle, ns };
}

ORDERING(ns_order, struct excess_value, ORDER(a->ns, b->ns))

ORDERING(who_order, struct excess_value, ORDER(a->who, b->who), ns_order(one, two))

/* The median of the sorted values of idle or of busy streams. */
static int64_t median_where(const struct excess *x, bool idle, int64_t otherwise)
{
	size_t n = 0;
	for (size_t i = 0; i < x->values.n; i++)
		n += x->values.v[i].who % 2 == idle;
	size_t at = n / 2;
	for (size_t i = 0; i < x->values.n; i++)
		if (x->values.v[i].who % 2 == idle && !at--)
			return x->values.v[i].ns;
	return otherwise;
}

static void settle_kernels(struct excess *x)
{
	for (size_t from = 0, to; from < x->values.n; from = to) {
		const uint32_t who = x->values.v[from].who;
		for (to = from + 1; to < x->values.n && x->values.v[to].who == who;)
			to++;
		if (to - from >= FEW)
			x->of_kernel.v[who] = x->values.v[from + (to - from) / 2].ns;
	}
}

void excess_settle(struct excess *x)
{
	const size_t n = (size_t)x->kernels.taken * 2;
	array_reserve(&x->of_kernel, n + 1);
	while (x->of_kernel.n < n)
		x->of_kernel.v[x->of_kernel.n++] = EXCESS_NONE;
	SORT(x->values, ns_order);
	x->usual[0] = median_where(x, false, 0);
	x->usual[1] = median_where(x, true, x->usual[0]);
	SORT(x->values, who_order);
	settle_kernels(x);
}

int64_t excess_of(const struct excess *x, struct map_key kernel, bool idle)
{
	const uint32_t number = map_find(&x->kernels, kernel);
	const size_t who = (size_t)number * 2 + idle;
	if (number == MAP_NONE || who >= x->of_kernel.n || x->of_kernel.v[who] == EXCESS_NONE)
		return x->usual[idle];
	return x->of_kernel.v[who];
}

void excess_fini(struct excess *x)
{
	map_fini(&x->kernels);
	array_free(&x->values, &x->of_kernel);
	*x = (struct excess){ 0 };
}
