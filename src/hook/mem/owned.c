/* Stores the blocks of device memory that this process owns. */
#include "hook/mem/owned.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "base/sys.h"
#include "hook/core/process.h"
#include "hook/core/own_calls.h"

#define FIRST_PLACES 4096u
#define SPINS        (1u << 16)

static struct {
	_Atomic uint64_t holder; /* of the lock: a variable of its thread, by address */
	struct owned *places;
	uint64_t size, used;         /* used: also those that are gone; size: a power of two */
	struct held_signals signals; /* the holder's */
} table;

/* ---- the lock ---- */

static uint64_t own_name(void)
{
	return (uint64_t)(uintptr_t)&hook_self;
}

/* No handler of its thread comes while it is held: it might never return. */
static bool try_lock(void)
{
	uint64_t holder = 0;
	struct held_signals signals;
	signals_hold(&signals);
	const bool has = atomic_compare_exchange_strong_explicit(
		&table.holder, &holder, own_name(), memory_order_acquire, memory_order_relaxed);
	if (has)
		table.signals = signals;
	else
		signals_release(&signals);
	return has;
}

bool owned_lock(void)
{
	for (uint32_t spin = 0; spin < SPINS; spin++) {
		const uint64_t holder = load_relaxed(&table.holder);
		if (!holder && try_lock())
			return true;
		if (holder == own_name())
			return false;
		if (spin % 16 == 15)
			sys(sched_yield);
		else
			__builtin_ia32_pause();
	}
	return false;
}

void owned_unlock(void)
{
	const struct held_signals signals = table.signals;
	store_release(&table.holder, 0);
	signals_release(&signals);
}

/* ---- places ---- */

static struct owned *place_of(
	struct owned *places, uint64_t size, enum owned_kind kind, uint64_t key, bool empty)
{
	uint64_t i = hash_mix(key * 16 + kind);
	for (;; i++) {
		struct owned *o = &places[i & (size - 1)];
		if (o->kind == kind && o->key == key && !empty)
			return o;
		if (o->kind == OWNED_NONE && (empty || !o->gone))
			return empty ? o : NULL;
	}
}

static uint64_t bytes_of(uint64_t size)
{
	return size * sizeof(struct owned);
}

/* Also gets rid of those that are gone. */
static bool grow(void)
{
	uint64_t live = 0;
	for (uint64_t i = 0; i < table.size; i++)
		live += table.places[i].kind != OWNED_NONE;
	const uint64_t size = !table.size             ? FIRST_PLACES
			      : live > table.size / 4 ? 2 * table.size
						      : table.size;
	const long map = sys(mmap, NULL, bytes_of(size), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(map))
		return false;
	struct owned *places = (struct owned *)map;
	for (uint64_t i = 0; i < table.size; i++) {
		const struct owned *o = &table.places[i];
		if (o->kind != OWNED_NONE)
			*place_of(places, size, o->kind, o->key, true) = *o;
	}
	if (table.places)
		sys(munmap, table.places, bytes_of(table.size));
	table.places = places;
	table.size = size;
	table.used = live;
	return true;
}

struct owned *owned_find(enum owned_kind kind, uint64_t key)
{
	return table.size ? place_of(table.places, table.size, kind, key, false) : NULL;
}

bool owned_put(const struct owned *o)
{
	struct owned *at = owned_find(o->kind, o->key);
	if (!at && table.used + table.used / 2 >= table.size && !grow())
		return false;
	if (!at) {
		at = place_of(table.places, table.size, o->kind, o->key, true);
		table.used += !at->gone;
	}
	*at = *o;
	at->gone = 0;
	return true;
}

void owned_drop(struct owned *o)
{
	o->kind = OWNED_NONE;
	o->gone = 1;
}

struct owned *owned_next(struct owned *o)
{
	for (o = o ? o + 1 : table.places; o && o < table.places + table.size; o++)
		if (o->kind != OWNED_NONE)
			return o;
	return NULL;
}

void owned_forget(void)
{
	if (table.places)
		sys(munmap, table.places, bytes_of(table.size));
	table.places = NULL;
	store_relaxed(&table.holder, 0);
	table.size = table.used = 0;
}
