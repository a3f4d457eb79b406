/* Finds kernels that had their device to themselves. */
#include "hook/online/overlap.h"

#include <stddef.h>
#include <string.h>

#include "hook/core/pages.h"

/* The newest of a device, in the order of `from`. */
static struct past {
	uint32_t count;
	struct span kept[OVERLAP_KEPT];
} OWN_PAGES pasts[OVERLAP_DEVICES];

/* An activity that begins before another's end shares with it.  Only the one that ends last of
 * those before can still be alone. */
static void meet(struct span **last, struct span *next)
{
	struct span *before = *last;
	if (before && next->from < before->to)
		before->shared = next->shared = true;
	if (!before || next->to > before->to)
		*last = next;
}

static void sweep(struct past *p, struct span *v, uint32_t n)
{
	struct span *last = NULL;
	uint32_t k = 0;
	for (uint32_t i = 0; i < n;)
		if (k < p->count && p->kept[k].from <= v[i].from)
			meet(&last, &p->kept[k++]);
		else
			meet(&last, &v[i++]);
	if (k < p->count)
		meet(&last, &p->kept[k]);
}

/* From the end, until there is no more room. */
static void keep(struct past *p, const struct span *v, uint32_t n)
{
	static struct span merged[OVERLAP_KEPT];
	uint32_t k = p->count, at = OVERLAP_KEPT;
	while (at && (n || k)) {
		const bool new = n && (!k || v[n - 1].from >= p->kept[k - 1].from);
		merged[--at] = new ? v[--n] : p->kept[--k];
	}
	p->count = OVERLAP_KEPT - at;
	memcpy(p->kept, merged + at, p->count * sizeof *merged);
}

void overlap_mark(uint32_t device, struct span *v, uint32_t n)
{
	static struct past none; /* stays empty */
	struct past *p = device < OVERLAP_DEVICES ? &pasts[device] : &none;
	sweep(p, v, n);
	if (p != &none)
		keep(p, v, n);
}

void overlap_forget(void)
{
	DROP(pasts);
}
