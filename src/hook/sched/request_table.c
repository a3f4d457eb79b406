/* Stores the open requests that a program declares. */
#include "hook/sched/request_table.h"

#include "base/atomic.h"

_Static_assert(OPEN_REQUESTS == 64, "an entry's number has six bits in a name");

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static bool holds(uint64_t begun, uint64_t now, uint64_t patience)
{
	return begun && (begun > now || now - begun < patience);
}

/* The first entry that holds nothing; OPEN_REQUESTS: there is none. */
static uint32_t take(struct request_table *t, uint64_t now, uint64_t patience)
{
	for (uint32_t i = 0; i < OPEN_REQUESTS; i++) {
		uint64_t begun = load(&t->open[i].begun_ns);
		if (!holds(begun, now, patience) &&
			replace_if(&t->open[i].begun_ns, &begun, now, seq_cst, relaxed))
			return i;
	}
	return OPEN_REQUESTS;
}

uint64_t request_table_open(
	struct request_table *t, uint64_t now, uint64_t deadline_ns, uint64_t patience)
{
	uint32_t i = take(t, now, UINT64_MAX);
	if (i == OPEN_REQUESTS)
		i = take(t, now, patience);
	if (i == OPEN_REQUESTS)
		return 0;
	store_release(&t->open[i].deadline_ns, deadline_ns ? now + deadline_ns : 0);
	uint32_t used = load_relaxed(&t->used);
	while (used <= i && !replace_if(&t->used, &used, i + 1, seq_cst, relaxed))
		;
	return now << 6 | i;
}

bool request_table_close(struct request_table *t, uint64_t name, uint64_t *ret_begun_ns)
{
	const uint32_t i = name % OPEN_REQUESTS;
	const uint64_t begun = name >> 6;
	uint64_t seen = begun;
	if (!begun || !replace_if(&t->open[i].begun_ns, &seen, 0, seq_cst, relaxed))
		return false;
	*ret_begun_ns = begun;
	return true;
}

bool request_table_holds(const struct request_table *t, uint64_t now, uint64_t patience)
{
	const uint32_t n = atomic_load_explicit(&t->used, memory_order_seq_cst);
	for (uint32_t i = 0; i < n && i < OPEN_REQUESTS; i++)
		if (holds(load(&t->open[i].begun_ns), now, patience))
			return true;
	return false;
}

uint64_t request_table_deadline(const struct request_table *t, uint64_t now, uint64_t patience)
{
	uint64_t first = 0;
	const uint32_t n = atomic_load_explicit(&t->used, memory_order_seq_cst);
	for (uint32_t i = 0; i < n && i < OPEN_REQUESTS; i++) {
		const uint64_t at = load(&t->open[i].deadline_ns);
		if (holds(load(&t->open[i].begun_ns), now, patience) && at &&
			(!first || at < first))
			first = at;
	}
	return first;
}
