/* It looks at all of the state. */
#include "pool_model.h"

#include "pool/pool_core.h"

static uint32_t first_record(const struct pool *p)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t i = pool_block_at(p, 0);
	for (uint32_t tag = 0; !i && tag < POOL_TAGS; tag++) {
		const uint32_t lowest = pool_tree_lowest(p, tag);
		i = lowest && !v[lowest].start ? lowest : 0;
	}
	return i;
}

static const char *check_block(const struct pool *p, uint32_t i)
{
	const struct pool_range *b = &ranges_of(p)[i];
	if (pool_block_at(p, b->start) != i)
		return "a live block is found by its start";
	if (pool_block_around(p, b->start + b->size - 1) != i)
		return "a live block is found by its end";
	return b->slack < POOL_GRAIN ? NULL : "less than a grain was not asked for";
}

static const char *check_free(const struct pool *p, uint32_t i)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t root = i, depth = 0;
	const uint32_t next = v[i].next;
	if (next && !v[next].live && v[next].tag == v[i].tag)
		return "neighbours that are free under one tag are one";
	while (v[root].up && depth++ < p->shape.ranges)
		root = v[root].up;
	if (p->roots[v[i].tag] != root)
		return "what is free is in its tree";
	return pool_block_at(p, v[i].start) ? "no block begins where it is free" : NULL;
}

static const char *check_ranges(const struct pool *p)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t at = 0, before = 0, free = 0, tagged = 0;
	uint64_t live_bytes = 0, live = 0;
	for (uint32_t i = first_record(p); i; before = i, i = v[i].next) {
		const char *wrong = v[i].live ? check_block(p, i) : check_free(p, i);
		if (wrong)
			return wrong;
		if (v[i].start != at || !v[i].size || v[i].prev != before)
			return "ranges lie one behind another";
		at += v[i].size;
		free += !v[i].live;
		tagged += !v[i].live && v[i].tag;
		live += v[i].live;
		live_bytes += v[i].live ? (uint64_t)v[i].size * POOL_GRAIN - v[i].slack : 0;
	}
	if (at != grains_of(p))
		return "ranges are all of the addresses";
	if (free != p->counters.free_ranges || tagged != p->tagged)
		return "free ranges are counted";
	if (live != p->counters.placed - p->counters.freed || live_bytes != p->counters.live_bytes)
		return "live blocks are counted";
	return p->tagged && p->owner ? "there is an owner, or there are tagged ranges" : NULL;
}

static const char *check_node(const struct pool_range *v, uint32_t i)
{
	const uint32_t left = v[i].left, right = v[i].right;
	uint32_t most = v[i].size;
	if ((left && (v[left].up != i || v[left].start >= v[i].start)) ||
		(right && (v[right].up != i || v[right].start <= v[i].start)))
		return "a tree is in order";
	most = v[left].most > most ? v[left].most : most;
	most = v[right].most > most ? v[right].most : most;
	return most == v[i].most ? NULL : "a node knows the largest below it";
}

static uint32_t successor(const struct pool_range *v, uint32_t i)
{
	if (v[i].right) {
		for (i = v[i].right; v[i].left;)
			i = v[i].left;
		return i;
	}
	while (v[i].up && v[v[i].up].right == i)
		i = v[i].up;
	return v[i].up;
}

static const char *check_trees(const struct pool *p)
{
	const struct pool_range *v = ranges_of(p);
	uint32_t n = 0;
	for (uint32_t tag = 0; tag < POOL_TAGS; tag++)
		for (uint32_t i = pool_tree_lowest(p, tag), last = 0; i;
			last = i, i = successor(v, i)) {
			const char *wrong = check_node(v, i);
			if (wrong)
				return wrong;
			if (v[i].live || v[i].tag != tag || (last && v[last].start >= v[i].start) ||
				++n > p->counters.free_ranges)
				return "a tree has its own free ranges, in order";
		}
	return n == p->counters.free_ranges ? NULL : "trees have all free ranges";
}

static const char *check_slot(const struct pool *p, const struct pool_slot *s, uint32_t live)
{
	const unsigned list = s->backed && !s->live ? s->list : LIST_NONE;
	if (s->live != live)
		return "a slot knows how many live blocks touch it";
	if (s->list != list || (s->backed && !s->live && !list))
		return "a slot with a handle and without blocks is in a list";
	for (uint32_t tag = 0; list == LIST_IDLE && tag < POOL_TAGS; tag++)
		if (s->unsettled >> tag & 1 && p->settled_at[tag] < s->freed_at)
			return "what is idle is settled";
	return NULL;
}

static const char *check_slots(const struct pool *p)
{
	const struct pool_range *v = ranges_of(p);
	const struct pool_slot *s = slots_of(p);
	const struct pool_counters *c = &p->counters;
	uint32_t i = first_record(p), busy = 0, backed = 0, listed = 0;
	for (uint32_t n = 0; n < slots_count(p); n++) {
		const uint32_t end = (n + 1) << p->slot_shift;
		uint32_t live = v[i].live;
		for (; v[i].start + v[i].size < end; live += v[i].live)
			i = v[i].next;
		if (v[i].start + v[i].size == end)
			i = v[i].next;
		const char *wrong = check_slot(p, &s[n], live);
		if (wrong)
			return wrong;
		busy += live != 0;
		backed += s[n].backed;
		listed += s[n].list != LIST_NONE;
	}
	if (busy != c->busy_slots || backed != c->backed_slots ||
		listed != c->idle_slots + c->waiting_slots)
		return "slots are counted";
	return NULL;
}

static const char *check_list(
	const struct pool *p, const struct pool_list *l, unsigned list, uint32_t n)
{
	const struct pool_slot *s = slots_of(p);
	uint32_t before = 0;
	for (uint32_t i = l->first; i; before = i, i = s[i - 1].next)
		if (!n-- || s[i - 1].list != list || s[i - 1].prev != before)
			return "a list has its own slots";
	return n || l->last != before ? "a list has all of its slots" : NULL;
}

const char *pool_check(const struct pool *p)
{
	const char *wrong = check_ranges(p);
	if (!wrong)
		wrong = check_trees(p);
	if (!wrong)
		wrong = check_slots(p);
	if (!wrong)
		wrong = check_list(p, &p->idle, LIST_IDLE, p->counters.idle_slots);
	if (!wrong)
		wrong = check_list(p, &p->waiting, LIST_WAITING, p->counters.waiting_slots);
	return wrong;
}
