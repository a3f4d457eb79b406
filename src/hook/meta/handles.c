/* Remembers the handles whose names are in the trace already. */
#include "hook/meta/handles.h"

#include "base/atomic.h"
#include "hook/core/slots.h"

#define WINDOW 16u

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15u >> (64 - HANDLES_BITS));
}

static struct slots slots_of(_Atomic uint64_t *handles)
{
	return (struct slots){ handles, HANDLES_SIZE, WINDOW, memory_order_relaxed,
		memory_order_relaxed };
}

/* True when it was not known that the handle means this. */
bool handles_remember(struct handles *k, uint64_t handle, uint64_t hash)
{
	const uint32_t first = slot_of(handle);
	bool new;
	const uint32_t at = slots_claim(slots_of(k->handle), first, handle, &new);
	if (at != SLOTS_NONE)
		return atomic_exchange_explicit(&k->hash[at], hash, memory_order_relaxed) != hash;
	store_relaxed(&k->handle[first], handle);
	store_relaxed(&k->hash[first], hash);
	return true;
}

bool handles_has(struct handles *k, uint64_t handle)
{
	return slots_find(slots_of(k->handle), slot_of(handle), handle) != SLOTS_NONE;
}
