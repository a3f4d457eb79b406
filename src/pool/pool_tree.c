/*
 * The free ranges of one tag by address, as a treap (Seidel and Aragon 1996). Nodes know the
 * largest size below them, so one way down finds the lowest range that fits. Priorities are hashes
 * of record numbers.
 *
 * A change at a range's front or end keeps its place among the others. Only sizes above it change,
 * as far up as it was the largest.
 */
#include "pool/pool_core.h"

static uint32_t priority(uint32_t range)
{
	uint32_t x = range * 0x9e3779b1u;
	x = (x ^ x >> 15) * 0x85ebca77u;
	return x ^ x >> 13;
}

static uint32_t most_of(const struct pool_range *v, uint32_t i)
{
	const uint32_t left = v[v[i].left].most, right = v[v[i].right].most;
	const uint32_t below = left > right ? left : right;
	return v[i].size > below ? v[i].size : below;
}

void pool_tree_resized(struct pool *p, uint32_t i)
{
	struct pool_range *v = ranges_of(p);
	for (; i; i = v[i].up) {
		const uint32_t most = most_of(v, i);
		if (most == v[i].most)
			return;
		v[i].most = most;
	}
}

/* `to` takes the place of `from` under what is above it. */
static void replace(struct pool *p, uint32_t from, uint32_t to)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t up = v[from].up;
	if (!up)
		p->roots[v[from].tag] = to;
	else if (v[up].left == from)
		v[up].left = to;
	else
		v[up].right = to;
	if (to)
		v[to].up = up;
}

/* The child goes above its parent. */
static void rotate(struct pool *p, uint32_t child)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t parent = v[child].up;
	const bool is_left = v[parent].left == child;
	const uint32_t between = is_left ? v[child].right : v[child].left;
	replace(p, parent, child);
	*(is_left ? &v[parent].left : &v[parent].right) = between;
	*(is_left ? &v[child].right : &v[child].left) = parent;
	if (between)
		v[between].up = parent;
	v[parent].up = child;
	v[child].most = v[parent].most;
	v[parent].most = most_of(v, parent);
}

void pool_tree_insert(struct pool *p, uint32_t tag, uint32_t i)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t start = v[i].start, mine = priority(i);
	uint32_t up = 0, *link = &p->roots[tag];
	while (*link) {
		up = *link;
		link = v[up].start > start ? &v[up].left : &v[up].right;
	}
	*link = i;
	v[i].left = v[i].right = 0;
	v[i].up = up;
	v[i].most = v[i].size;
	v[i].tag = (uint8_t)tag;
	pool_tree_resized(p, up);
	while (v[i].up && priority(v[i].up) < mine)
		rotate(p, i);
	p->counters.free_ranges++;
	p->tagged += tag != 0;
}

void pool_tree_remove(struct pool *p, uint32_t i)
{
	struct pool_range *v = ranges_of(p);
	while (v[i].left && v[i].right)
		rotate(p, priority(v[i].left) > priority(v[i].right) ? v[i].left : v[i].right);
	replace(p, i, v[i].left ? v[i].left : v[i].right);
	pool_tree_resized(p, v[i].up);
	p->counters.free_ranges--;
	p->tagged -= v[i].tag != 0;
}

uint32_t pool_tree_lowest(const struct pool *p, uint32_t tag)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t i = p->roots[tag];
	while (v[i].left)
		i = v[i].left;
	return i;
}

uint32_t pool_tree_fit(const struct pool *p, uint32_t tag, uint32_t size)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t i = p->roots[tag];
	if (v[i].most < size)
		return 0;
	for (;;) {
		if (v[v[i].left].most >= size)
			i = v[i].left;
		else if (v[i].size >= size)
			return i;
		else
			i = v[i].right;
	}
}
