/* See known.h. */
#include "hook/meta/known.h"

#define WINDOW 16u

uint64_t known_hash(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15u >> (64 - KNOWN_BITS));
}

/* True when it was not known that the handle means this. */
bool known_remember(struct known *k, uint64_t handle, uint64_t hash)
{
	uint32_t at = slot_of(handle);
	for (uint32_t i = 0; i < WINDOW; i++) {
		const uint32_t slot = (at + i) % KNOWN_SIZE;
		uint64_t seen = 0;
		if (__atomic_compare_exchange_n(&k->handle[slot], &seen, handle, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			seen == handle)
			return __atomic_exchange_n(&k->hash[slot], hash, __ATOMIC_RELAXED) != hash;
	}
	__atomic_store_n(&k->handle[at], handle, __ATOMIC_RELAXED);
	__atomic_store_n(&k->hash[at], hash, __ATOMIC_RELAXED);
	return true;
}

bool known_has(const struct known *k, uint64_t handle)
{
	for (uint32_t i = 0, at = slot_of(handle); i < WINDOW; i++)
		if (__atomic_load_n(&k->handle[(at + i) % KNOWN_SIZE], __ATOMIC_RELAXED) == handle)
			return true;
	return false;
}
