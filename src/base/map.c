/* Open addressing with linear probing, at most two thirds full. */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"

static size_t slot_of(const struct map *m, const struct map_key *key)
{
	uint64_t h = 0;
	for (int i = 0; i < 4; i++)
		h = hash_mix(h + key->w[i] + 0x9e3779b97f4a7c15u);
	size_t i = h & (m->size - 1);
	while (m->slots[i].taken && memcmp(&m->slots[i].key, key, sizeof *key) != 0)
		i = (i + 1) & (m->size - 1);
	return i;
}

static void grow(struct map *m)
{
	struct map bigger = { .size = m->size ? m->size * 2 : 64, .taken = m->taken };
	bigger.slots = xcalloc(bigger.size, sizeof *bigger.slots);
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].taken)
			bigger.slots[slot_of(&bigger, &m->slots[i].key)] = m->slots[i];
	free(m->slots);
	*m = bigger;
}

uint32_t *map_get(struct map *m, struct map_key key)
{
	if (m->size) {
		struct map_slot *s = &m->slots[slot_of(m, &key)];
		if (s->taken)
			return &s->value;
	}
	if (m->taken * 3 >= m->size * 2)
		grow(m);
	struct map_slot *s = &m->slots[slot_of(m, &key)];
	*s = (struct map_slot){ .key = key, .value = MAP_NONE, .taken = 1 };
	m->taken++;
	return &s->value;
}

uint32_t map_find(const struct map *m, struct map_key key)
{
	if (!m->size)
		return MAP_NONE;
	const struct map_slot *s = &m->slots[slot_of(m, &key)];
	return s->taken ? s->value : MAP_NONE;
}

struct map_key map_text_key(const char *text, size_t bytes, uint64_t number)
{
	return MAP_KEY(hash_bytes(text, bytes), hash_fnv32(text, bytes), bytes, number);
}

uint32_t map_number(struct map *m, struct map_key key)
{
	uint32_t *number = map_get(m, key);
	if (*number == MAP_NONE)
		*number = (uint32_t)(m->taken - 1);
	return *number;
}

void map_release(struct map *m)
{
	if (!m)
		return;
	free(m->slots);
	*m = (struct map){ 0 };
}
