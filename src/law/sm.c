/*
 * The SMs: which blocks are where, and how fast they run.
 *
 * On an SM the oldest block takes what it can use, and the next ones take from the rest. A block
 * can use a little less as soon as it has company. Work is counted in units, and a block alone does
 * ONE of them a nanosecond.
 */
#include "law/state.h"

#include <string.h>

/*
 * The rate of an SM, in 4096ths of one warp alone, by the warps that are there: measured on an H200
 * for chains of dependent multiply-adds, with blocks of 8 warps.  Between the steps of 8 warps it
 * is a straight line.  Blocks of several clients get less out of three or four than those of one.
 */
enum { STEP = 8, STEPS = LAW_SM_WARPS / STEP + 1, LEAST_RATE = ONE / 400 };
#define WARPS(x) ((uint32_t)((x)*ONE))

static const uint32_t capacities[2][STEPS] = {
	{ 0, WARPS(8), WARPS(13.9), WARPS(16.3), WARPS(16.3), WARPS(16), WARPS(16), WARPS(16),
		WARPS(16) },
	{ 0, WARPS(8), WARPS(13.9), WARPS(15.2), WARPS(15.2), WARPS(16), WARPS(16), WARPS(16),
		WARPS(16) },
};
/* The part that each warp can use. */
static const uint32_t demands[STEPS] = { ONE, ONE, WARPS(.869), WARPS(.869), WARPS(.869),
	WARPS(.869), WARPS(.869), WARPS(.869), WARPS(.869) };

static uint32_t between(const uint32_t *table, unsigned warps)
{
	const unsigned i = warps / STEP, part = warps % STEP;
	if (!part)
		return table[i];
	return (table[i] * (STEP - part) + table[i + 1] * part) / STEP;
}

static bool mixed(const struct set *s)
{
	for (unsigned i = 1; i < s->blocks; i++)
		if (s->block[i].client != s->block[0].client)
			return true;
	return false;
}

static void set_rates(struct set *s)
{
	uint32_t left = between(capacities[mixed(s)], s->warps);
	const uint32_t demand = between(demands, s->warps);
	uint64_t least = LAW_NEVER / ONE; /* until the first ends */
	for (unsigned i = 0; i < s->blocks; i++) {
		struct block *b = &s->block[i];
		uint32_t take = b->warps * demand;
		take = MIN(left, take);
		left -= take;
		b->rate = take / b->warps;
		b->rate = MAX(LEAST_RATE, b->rate);
		if (b->units < least * b->rate) /* dividing is slow */
			least = (b->units + b->rate - 1) / b->rate;
	}
	s->next_ns = s->blocks ? s->at_ns + least : LAW_NEVER;
	s->stale = false;
}

static void set_advance(struct law *law, struct set *s, uint64_t now)
{
	const uint64_t ns = now - s->at_ns;
	s->at_ns = now;
	if (!ns)
		return;
	for (unsigned i = 0; i < s->blocks; i++) {
		struct block *b = &s->block[i];
		const uint64_t did = ns * b->rate < b->units ? ns * b->rate : b->units;
		b->units -= did;
		law->totals.done += did * s->count;
	}
}

static void set_remove(struct set *s, unsigned i, uint32_t share)
{
	s->used -= share;
	s->warps -= s->block[i].warps;
	s->blocks--;
	memmove(&s->block[i], &s->block[i + 1], (s->blocks - i) * sizeof s->block[0]);
}

static void set_add(struct set *s, const struct work *w, uint32_t index)
{
	s->block[s->blocks++] = (struct block){
		.units = w->units,
		.work = (uint16_t)index,
		.warps = (uint8_t)w->warps,
		.client = w->client,
	};
	s->used += w->share;
	s->warps += w->warps;
}

static bool set_has_room(const struct set *s, const struct work *w)
{
	return s->used + w->share <= ROOM && s->blocks < LAW_SM_BLOCKS &&
	       s->warps + w->warps <= LAW_SM_WARPS;
}

static bool same_state(const struct set *a, const struct set *b)
{
	if (a->blocks != b->blocks || (a->blocks && a->at_ns != b->at_ns))
		return false;
	for (unsigned i = 0; i < a->blocks; i++)
		if (a->block[i].work != b->block[i].work || a->block[i].units != b->block[i].units)
			return false;
	return true;
}

static void set_free(struct law *law, struct field *f, uint32_t index)
{
	uint32_t *link = &f->sets;
	while (*link != index)
		link = &law->sets[*link].next;
	*link = law->sets[index].next;
	law->sets[index].next = law->free_sets;
	law->free_sets = index;
}

/* Makes one of this set and another in the same state, where there is one. */
static void set_merge(struct law *law, struct field *f, uint32_t index)
{
	struct set *s = &law->sets[index];
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next) {
		struct set *t = &law->sets[i];
		if (i == index || !same_state(s, t))
			continue;
		for (unsigned k = 0; k < LAW_SM_WORDS; k++)
			t->sms[k] |= s->sms[k];
		t->count += s->count;
		set_free(law, f, index);
		return;
	}
}

/* The bits of word k that are in [first, end). */
static uint64_t range_mask(unsigned k, unsigned first, unsigned end)
{
	const unsigned low = k * 64;
	uint64_t mask = UINT64_MAX;
	if (end <= low || first >= low + 64)
		return 0;
	if (first > low)
		mask &= UINT64_MAX << (first - low);
	if (end < low + 64)
		mask &= UINT64_MAX >> (low + 64 - end);
	return mask;
}

static bool all_sms(const struct law *law, const struct work *w)
{
	return (unsigned)(w->end_sm - w->first_sm) == law->device.sms;
}

static unsigned reached(const struct law *law, const struct set *s, const struct work *w)
{
	unsigned count = 0;
	if (all_sms(law, w))
		return s->count;
	for (unsigned k = 0; k < LAW_SM_WORDS; k++)
		count += (unsigned)__builtin_popcountll(
			s->sms[k] & range_mask(k, w->first_sm, w->end_sm));
	return count;
}

/* Moves the first `take` SMs of a set that a kernel may use into a set of their own; NONE without
 * room. */
static uint32_t set_split(
	struct law *law, struct field *f, uint32_t index, const struct work *w, unsigned take)
{
	const uint32_t new = law->free_sets;
	if (new == NONE)
		return NONE;
	struct set *s = &law->sets[index], *t = &law->sets[new];
	law->free_sets = t->next;
	*t = *s;
	t->next = f->sets;
	f->sets = new;
	t->count = (uint16_t)take;
	s->count -= (uint16_t)take;
	for (unsigned k = 0; k < LAW_SM_WORDS; k++) {
		uint64_t from = s->sms[k] & range_mask(k, w->first_sm, w->end_sm), to = 0;
		for (; take && from; take--, from &= from - 1)
			to |= from & -from;
		t->sms[k] = to;
		s->sms[k] &= ~to;
	}
	return new;
}

static unsigned foreign_blocks(const struct set *s, unsigned client)
{
	unsigned count = 0;
	for (unsigned i = 0; i < s->blocks; i++)
		count += s->block[i].client != client;
	return count;
}

/* Blocks go where the least is taken, and of such SMs to those with the fewest blocks of other
 * clients. */
static uint32_t emptiest(const struct law *law, const struct field *f, const struct work *w)
{
	uint32_t best = NONE, least = UINT32_MAX;
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next) {
		const struct set *s = &law->sets[i];
		const uint32_t taken = s->used * LAW_SM_BLOCKS;
		if (taken >= least || !set_has_room(s, w) || !reached(law, s, w))
			continue;
		const uint32_t crowding = taken + foreign_blocks(s, w->client);
		if (crowding >= least)
			continue;
		best = i;
		least = crowding;
	}
	return best;
}

/* One block of a kernel onto each SM of a set, as far as they go; false without room. */
static bool place_once(struct law *law, struct field *f, uint32_t index)
{
	struct work *w = &law->works[index];
	uint32_t at = emptiest(law, f, w);
	if (at == NONE)
		return false;
	unsigned take = reached(law, &law->sets[at], w);
	take = MIN(w->left, take);
	if (take < law->sets[at].count)
		at = set_split(law, f, at, w, take);
	if (at == NONE)
		return false;
	struct set *s = &law->sets[at];
	set_advance(law, s, law->now);
	set_add(s, w, index);
	s->stale = true;
	if (!w->resident && w->start_ns == LAW_NEVER)
		w->start_ns = law->now;
	w->left -= take;
	w->resident += take;
	law->totals.waiting -= w->units * take;
	set_merge(law, f, at);
	return true;
}

void field_place(struct law *law, struct field *f)
{
	uint32_t full = ROOM + 1; /* a block of such a share found no room on any SM */
	f->dirty = false;
	for (uint32_t *link = &f->ready; *link != NONE;) {
		struct work *w = &law->works[*link];
		while (w->left && w->share < full && place_once(law, f, *link))
			;
		if (!w->left) {
			w->state = RUNNING;
			*link = w->next;
			continue;
		}
		if (all_sms(law, w) && w->share < full)
			full = w->share;
		link = &w->next;
	}
}

void field_ready(struct law *law, struct field *f, uint32_t index)
{
	struct work *w = &law->works[index];
	uint32_t *link = &f->ready;
	while (*link != NONE) {
		const struct work *o = &law->works[*link];
		if (o->priority < w->priority || (o->priority == w->priority && o->seq > w->seq))
			break;
		link = &law->works[*link].next;
	}
	w->state = READY;
	w->next = *link;
	*link = index;
	f->dirty = true;
}

static void finish_set(struct law *law, struct field *f, uint32_t index)
{
	struct set *s = &law->sets[index];
	set_advance(law, s, law->now);
	for (unsigned i = 0; i < s->blocks;) {
		const uint32_t work = s->block[i].work;
		struct work *w = &law->works[work];
		if (s->block[i].units) {
			i++;
			continue;
		}
		set_remove(s, i, w->share);
		w->resident -= s->count;
		if (!w->resident && !w->left)
			work_ended(law, work);
	}
	s->stale = true;
	set_merge(law, f, index);
}

void field_finish(struct law *law, struct field *f)
{
	uint32_t next;
	for (uint32_t i = f->sets; i != NONE; i = next) {
		next = law->sets[i].next;
		if (law->sets[i].next_ns > law->now)
			continue;
		finish_set(law, f, i);
		f->dirty = true;
	}
}

uint64_t field_next(struct law *law, const struct field *f)
{
	uint64_t next = LAW_NEVER;
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next) {
		struct set *s = &law->sets[i];
		if (s->stale)
			set_rates(s);
		next = MIN(s->next_ns, next);
	}
	return next;
}

void field_freeze(struct law *law, struct field *f)
{
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next)
		set_advance(law, &law->sets[i], law->now);
}

void field_thaw(struct law *law, struct field *f)
{
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next) {
		law->sets[i].at_ns = law->now;
		law->sets[i].stale = true;
	}
	f->dirty = true;
}

struct field *field_of(struct law *law, unsigned client)
{
	return &law->fields[law->device.sharing == LAW_MPS ? 0 : client];
}

/* All SMs in one set.  A field keeps it for good, so the first of a field can't be refused. */
void field_init(struct law *law, struct field *f)
{
	const uint32_t index = law->free_sets;
	struct set *s = &law->sets[index];
	law->free_sets = s->next;
	*s = (struct set){ .next = NONE, .next_ns = LAW_NEVER, .count = (uint16_t)law->device.sms };
	for (unsigned k = 0; k < LAW_SM_WORDS; k++)
		s->sms[k] = range_mask(k, 0, law->device.sms);
	*f = (struct field){ .sets = index, .ready = NONE };
}

static void drop_blocks(struct law *law, struct set *s, unsigned client)
{
	for (unsigned i = 0; i < s->blocks;) {
		const struct block *b = &s->block[i];
		if (b->client != client) {
			i++;
			continue;
		}
		law->totals.lost += b->units * s->count;
		set_remove(s, i, law->works[b->work].share);
	}
}

void field_drop(struct law *law, struct field *f, unsigned client)
{
	uint32_t next;
	for (uint32_t *link = &f->ready; *link != NONE;) {
		if (law->works[*link].client == client)
			*link = law->works[*link].next;
		else
			link = &law->works[*link].next;
	}
	for (uint32_t i = f->sets; i != NONE; i = next) {
		struct set *s = &law->sets[i];
		const bool still = turn_field(law) != f;
		next = s->next;
		if (!still)
			set_advance(law, s, law->now);
		drop_blocks(law, s, client);
		s->stale = true;
		set_merge(law, f, i);
	}
	f->dirty = true;
}

static uint64_t run_probe(struct law *law, unsigned blocks, const struct work *w)
{
	const uint64_t done = law->totals.done;
	struct set *s = &law->probe;
	*s = (struct set){ .count = 1 };
	while (blocks || s->blocks) {
		for (; blocks && set_has_room(s, w); blocks--)
			set_add(s, w, 0);
		set_rates(s);
		set_advance(law, s, s->next_ns);
		for (unsigned i = 0; i < s->blocks;)
			if (s->block[i].units)
				i++;
			else
				set_remove(s, i, w->share);
	}
	law->totals.done = done;
	return s->at_ns;
}

uint64_t sm_probe(struct law *law, unsigned blocks, unsigned warps, unsigned per_sm)
{
	const uint32_t key = blocks << 16 | warps << 8 | per_sm;
	struct shape *known = &law->shapes[(key ^ key >> 11) % LAW_SHAPES];
	if (known->key != key) {
		const struct work w = {
			.warps = (uint16_t)warps,
			.share = ROOM / per_sm,
			.units = (uint64_t)PROBE_NS * ONE,
		};
		known->time_ns = run_probe(law, blocks, &w);
		known->key = key;
	}
	return known->time_ns;
}
