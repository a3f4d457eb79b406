/* Writes each text of this process into the trace once and numbers it. */
#include "hook/core/strings.h"

#include <string.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "hook/core/metadata.h"
#include "hook/core/pages.h"
#include "hook/core/slots.h"

/* Numbers up to STRINGS are slots of the table; those above are given out one by one. */
#define STRINGS     (1u << 16)
#define BEYOND_MOST (1u << 31) /* threads may be at it together, and none may come round to 0 */
#define WINDOW      64u

/* Hashes; 0 free.  Collisions of 64 bits do not happen. */
static _Atomic uint64_t table[STRINGS] OWN_PAGES;
static const struct slots slots = { table, STRINGS, WINDOW, memory_order_relaxed,
	memory_order_relaxed };
static _Atomic uint32_t beyond = STRINGS;

uint64_t string_hash(const void *data, size_t bytes, uint64_t seed)
{
	static const uint64_t odd = 0x9e3779b97f4a7c15u, other = 0xd6e8feb86659fd93u;
	const char *p = data, *const end = p + bytes;
	uint64_t h = hash_fold(seed ^ odd, bytes + other), word;
	for (; end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		h = hash_fold(h ^ word, odd) + other;
	}
	word = 0;
	for (int shift = 0; p < end; shift += 8)
		word |= (uint64_t)(unsigned char)*p++ << shift;
	h = hash_fold(h ^ word, other);
	return h ^ h >> 32;
}

void string_write(uint32_t id, const char *text, uint64_t bytes)
{
	const uint64_t arg = id;
	meta_text(
		META_STRING, &arg, 1, text, (uint32_t)(bytes < STRING_MOST ? bytes : STRING_MOST));
}

/* 0: such texts have had their share of the trace, or there are no more numbers. */
static uint32_t next_beyond(void)
{
	if (load_relaxed(&beyond) >= BEYOND_MOST || !meta_has_room())
		return 0;
	return add_relaxed(&beyond, 1) + 1;
}

bool string_claim(uint64_t key, uint32_t *ret_id)
{
	key |= 1;
	bool new;
	const uint32_t at = slots_claim(slots, (uint32_t)(key >> 32), key, &new);
	if (at != SLOTS_NONE) {
		*ret_id = at + 1;
		return new;
	}
	*ret_id = next_beyond();
	return *ret_id;
}

uint32_t string_id(const char *text, uint64_t bytes)
{
	uint32_t id;
	if (string_claim(string_hash(text, bytes, 0), &id))
		string_write(id, text, bytes);
	return id;
}

uint32_t string_once(const char *text, uint64_t bytes)
{
	const uint32_t id = next_beyond();
	if (id)
		string_write(id, text, bytes);
	return id;
}

void strings_forget(void)
{
	DROP(table);
	store_relaxed(&beyond, STRINGS);
}
