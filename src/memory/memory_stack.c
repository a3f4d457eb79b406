/*
 * Finds live memory over time by owner. The time has MEMORY_POINTS parts. The moment with the most
 * live memory stands for each, so that the layers add up to the outline.
 *
 * The moments are known after the replay, as rising numbers of operations. A block is live in a
 * range of them, so a layer keeps differences and adds them up at the end.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

#define LAYERS_COUNTED 1024u /* of one kind: what comes after that is in the rest */

const char *const stack_by_name[STACK_BYS] = { "operator", "call", "size", "kind" };

/* How many of the moments were at most after `done` operations. */
static uint32_t moments_until(const struct memory_detail *d, uint64_t done)
{
	uint32_t low = 0, high = MEMORY_POINTS;
	while (low < high) {
		const uint32_t middle = (low + high) / 2;
		if (d->most_done[middle] <= done)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct memory_layer *layer_of(struct memory_stack *s, uint64_t key)
{
	const uint64_t known =
		s->layers.n < LAYERS_COUNTED || map_find(&s->map, MAP_KEY(key)) != MAP_NONE
			? key
			: STACK_REST;
	return MAP_ROW(&s->map, MAP_KEY(known), &s->layers, (struct memory_layer){ .key = known });
}

static void add_to(
	struct memory_stack *s, uint64_t key, uint32_t from, uint32_t until, uint64_t bytes)
{
	struct memory_layer *l = layer_of(s, key);
	l->live[from] += bytes;
	if (until < MEMORY_POINTS)
		l->live[until] -= bytes;
}

void stack_add(struct memory_detail *d, struct memory_ranges *ranges, const struct memory_op *op,
	uint32_t seq)
{
	const uint32_t from = moments_until(d, seq);
	const uint32_t until = op->end == MEMORY_NEVER ? MEMORY_POINTS : moments_until(d, op->end);
	const uint64_t keys[STACK_BYS] = {
		[STACK_OPERATOR] =
			ranges_at(ranges, op->process, d->sources.v[op->source].tid, op->ticks),
		[STACK_CALL] = op->fn_id,
		[STACK_SIZE] = op->bytes ? 63 - (unsigned)__builtin_clzll(op->bytes) : 0,
		[STACK_KIND] = op->kind,
	};
	for (int by = 0; by < STACK_BYS && from < until; by++)
		if (by != STACK_OPERATOR || ranges_any(ranges))
			add_to(&d->stack[by], keys[by], from, until, op->bytes);
}

static void add_up(struct memory_layer *l)
{
	for (uint32_t k = 1; k < MEMORY_POINTS; k++)
		l->live[k] += l->live[k - 1];
	for (uint32_t k = 0; k < MEMORY_POINTS; k++)
		l->most = l->live[k] > l->most ? l->live[k] : l->most;
}

ORDERING(layer_order, struct memory_layer, (a->key == STACK_REST) - (b->key == STACK_REST),
	ORDER(b->most, a->most), ORDER(a->key, b->key))

/* All from the last that is kept become one. */
static void put_together(struct memory_stack *s)
{
	struct memory_layer *last = &s->layers.v[STACK_LAYERS - 1];
	for (size_t i = STACK_LAYERS; i < s->layers.n; i++)
		for (uint32_t k = 0; k < MEMORY_POINTS; k++)
			last->live[k] += s->layers.v[i].live[k];
	last->key = STACK_REST;
	s->rest = s->layers.n - (STACK_LAYERS - 1);
	s->layers.n = STACK_LAYERS;
}

static void check(const struct memory_detail *d, const struct memory_stack *s)
{
	for (uint32_t k = 0; k < MEMORY_POINTS && s->layers.n; k++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < s->layers.n; i++)
			sum += s->layers.v[i].live[k];
		expect(sum == d->points[k].most, "the layers add up to what was live");
	}
}

void stack_finish(struct memory_detail *d, bool overflown)
{
	for (int by = 0; by < STACK_BYS; by++) {
		struct memory_stack *s = &d->stack[by];
		for (size_t i = 0; i < s->layers.n; i++)
			add_up(&s->layers.v[i]);
		SORT(s->layers, layer_order);
		if (s->layers.n > STACK_LAYERS)
			put_together(s);
		map_fini(&s->map);
		if (overflown)
			array_free(&s->layers);
		check(d, s);
	}
}

void stack_free(struct memory_detail *d)
{
	for (int by = 0; by < STACK_BYS; by++) {
		map_fini(&d->stack[by].map);
		array_free(&d->stack[by].layers);
	}
}
