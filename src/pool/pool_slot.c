/*
 * The slots: those with live blocks, those with handles, and those whose handle may be taken. A
 * slot with a handle and no live block is in the list `waiting` until its frees are settled. Then
 * it goes to the end of `idle`.
 *
 * A slot keeps the tags of its frees and the time of the last one. A tag settled since is dropped
 * at the next free or look. A settlement after the slot's last free covers all its frees of that
 * tag.
 */
#include "pool/pool_core.h"

static struct pool_list *list_of(struct pool *p, unsigned list)
{
	return list == LIST_IDLE ? &p->idle : &p->waiting;
}

static uint32_t *count_of(struct pool *p, unsigned list)
{
	return list == LIST_IDLE ? &p->counters.idle_slots : &p->counters.waiting_slots;
}

static void list_append(struct pool *p, uint32_t slot, unsigned list)
{
	struct pool_slot *v = slots_of(p);
	struct pool_list *l = list_of(p, list);
	v[slot].list = (uint8_t)list;
	v[slot].prev = l->last;
	v[slot].next = 0;
	*(l->last ? &v[l->last - 1].next : &l->first) = slot + 1;
	l->last = slot + 1;
	++*count_of(p, list);
}

static void list_remove(struct pool *p, uint32_t slot)
{
	struct pool_slot *v = slots_of(p), *s = &v[slot];
	struct pool_list *l = list_of(p, s->list);
	if (s->list == LIST_NONE)
		return;
	*(s->prev ? &v[s->prev - 1].next : &l->first) = s->next;
	*(s->next ? &v[s->next - 1].prev : &l->last) = s->prev;
	--*count_of(p, s->list);
	s->list = LIST_NONE;
}

static void drop_settled(const struct pool *p, struct pool_slot *s)
{
	for (uint64_t tags = s->unsettled; tags; tags &= tags - 1) {
		const unsigned tag = (unsigned)__builtin_ctzll(tags);
		if (p->settled_at[tag] >= s->freed_at)
			s->unsettled &= ~(UINT64_C(1) << tag);
	}
}

/* It has a handle, and no live block. */
static void list_by_frees(struct pool *p, uint32_t slot)
{
	struct pool_slot *s = &slots_of(p)[slot];
	drop_settled(p, s);
	list_append(p, slot, s->unsettled ? LIST_WAITING : LIST_IDLE);
}

void pool_slots_enter(struct pool *p, struct pool_place *at)
{
	struct pool_slot *s = slots_of(p) + at->first_slot;
	struct pool_counters *c = &p->counters;
	for (uint32_t i = 0; i < at->n_slots; i++) {
		at->missing += !s[i].backed;
		if (s[i].live++)
			continue;
		c->busy_slots++;
		list_remove(p, at->first_slot + i);
	}
	if (c->busy_slots > c->busy_slots_peak)
		c->busy_slots_peak = c->busy_slots;
}

void pool_slots_leave(struct pool *p, uint32_t start, uint32_t size, uint32_t tag)
{
	const uint32_t first = start >> p->slot_shift, last = (start + size - 1) >> p->slot_shift;
	struct pool_slot *v = slots_of(p);
	p->clock++;
	p->freed_at[tag] = p->clock;
	for (uint32_t i = first; i <= last; i++) {
		struct pool_slot *s = &v[i];
		drop_settled(p, s);
		s->freed_at = p->clock;
		if (tag)
			s->unsettled |= UINT64_C(1) << tag;
		if (--s->live)
			continue;
		p->counters.busy_slots--;
		if (s->backed)
			list_by_frees(p, i);
	}
}

void pool_slots_settle(struct pool *p)
{
	struct pool_slot *v = slots_of(p);
	for (uint32_t i = p->waiting.first, next; i; i = next) {
		struct pool_slot *s = &v[i - 1];
		next = s->next;
		drop_settled(p, s);
		if (s->unsettled)
			continue;
		list_remove(p, i - 1);
		list_append(p, i - 1, LIST_IDLE);
	}
}

bool pool_next_missing(const struct pool *p, const struct pool_place *at, uint32_t *slot)
{
	const struct pool_slot *v = slots_of(p);
	for (uint32_t i = *slot; i - at->first_slot < at->n_slots; i++)
		if (!v[i].backed) {
			*slot = i;
			return true;
		}
	return false;
}

int pool_back(struct pool *p, uint32_t slot, uint64_t handle)
{
	struct pool_counters *c = &p->counters;
	if (slot >= slots_count(p) || slots_of(p)[slot].backed)
		return -1;
	struct pool_slot *s = &slots_of(p)[slot];
	s->backed = true;
	s->handle = handle;
	if (++c->backed_slots > c->backed_slots_peak)
		c->backed_slots_peak = c->backed_slots;
	if (!s->live)
		list_by_frees(p, slot);
	return 0;
}

bool pool_take_backed(struct pool *p, uint32_t *slot, uint64_t *ret_handle)
{
	struct pool_slot *v = slots_of(p);
	for (; *slot < slots_count(p); ++*slot) {
		struct pool_slot *s = &v[*slot];
		if (!s->backed)
			continue;
		list_remove(p, *slot);
		s->backed = false;
		p->counters.backed_slots--;
		*ret_handle = s->handle;
		return true;
	}
	return false;
}

bool pool_take_idle(struct pool *p, uint32_t *ret_slot, uint64_t *ret_handle)
{
	const uint32_t first = p->idle.first;
	if (!first)
		return false;
	struct pool_slot *s = &slots_of(p)[first - 1];
	list_remove(p, first - 1);
	s->backed = false;
	p->counters.backed_slots--;
	p->counters.taken++;
	*ret_slot = first - 1;
	*ret_handle = s->handle;
	return true;
}
