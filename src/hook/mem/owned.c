/* Stores the blocks of device memory that this process owns. */
#include "hook/mem/account.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/sys.h"
#include "hook/core/lock.h"
#include "hook/core/own_calls.h"

#define FIRST_PLACES 4096u

static struct {
	struct lock lock;
	struct owned *places;
	uint64_t size, used;         /* used: also those that are gone; size: a power of two */
	struct held_signals signals; /* the holder's */
} table;

/* No handler of its thread comes while it is held: it might never return. */
bool owned_lock(void)
{
	struct held_signals signals;
	signals_hold(&signals);
	const bool has = lock_take(&table.lock, LOCK_NAPS);
	if (has)
		table.signals = signals;
	else
		signals_release(&signals);
	return has;
}

void owned_unlock(void)
{
	const struct held_signals signals = table.signals;
	lock_give(&table.lock);
	signals_release(&signals);
}

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
	lock_forked(&table.lock);
	table.size = table.used = 0;
}
