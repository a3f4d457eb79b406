/* Queues the closed chunks of a flight recording, and overwrites the oldest. */
#include "record/flight.h"

#include <stdbool.h>

#include "base/atomic.h"
#include "base/sys.h"

#define TRIES 64 /* each that fails is another thread's success */
#define PAGE  4096u

static_assert(sizeof(struct chunk_header) + sizeof(uint64_t) == CHUNK_PAYLOAD, "room for a link");

static uint32_t granule_of(uint64_t word)
{
	return (uint32_t)word;
}

/* The word's next value, of another count. */
static uint64_t changed(uint64_t word, uint32_t granule)
{
	return ((word >> 32) + 1) << 32 | granule;
}

static bool exchange(_Atomic uint64_t *word, uint64_t from, uint64_t to)
{
	return replace_if(word, &from, to, acq_rel, relaxed);
}

static _Atomic uint64_t *link_of(const struct chunk_header *c)
{
	return (_Atomic uint64_t *)(uintptr_t)(c + 1);
}

/* A chunk, or the header, which is first. */
struct node {
	_Atomic uint64_t *link;
	long map; /* 0: none of its own */
};

static bool node_map(struct trace_header *h, long fd, uint32_t granule, struct node *ret_node)
{
	const uint64_t at = (uint64_t)granule * TRACE_GRAIN;
	*ret_node = (struct node){ .link = &h->first_closed };
	if (!granule)
		return true;
	if (at + PAGE > file_bytes(fd))
		return false;
	const long map = file_map(fd, at, PAGE);
	if (sys_failed(map))
		return false;
	const struct chunk_header *c = (const struct chunk_header *)map;
	*ret_node = (struct node){ link_of(c), map };
	if (c->magic == CHUNK_MAGIC && chunk_is_drained(c->kind))
		return true;
	sys(munmap, map, PAGE);
	return false;
}

static void node_unmap(const struct node *n)
{
	if (n->map)
		sys(munmap, n->map, PAGE);
}

/* Links the chunk behind the newest.  False: another was faster, or the newest had not been made
 * the end yet, which is done then. */
static bool link_behind(
	struct trace_header *h, uint64_t newest, const struct node *n, uint32_t granule)
{
	const uint64_t link = load_acquire(n->link);
	if (newest != load_acquire(&h->newest_closed))
		return false;
	if (granule_of(link)) {
		exchange(&h->newest_closed, newest, changed(newest, granule_of(link)));
		return false;
	}
	if (!exchange(n->link, link, changed(link, granule)))
		return false;
	exchange(&h->newest_closed, newest, changed(newest, granule));
	return true;
}

void flight_push(struct trace_header *h, long fd, struct chunk_header *c, uint32_t granule)
{
	_Atomic uint64_t *const link = link_of(c);
	store_release(link, changed(load_relaxed(link), 0));
	for (int tries = 0; tries < TRIES; tries++) {
		const uint64_t newest = load_acquire(&h->newest_closed);
		struct node n;
		if (!node_map(h, fd, granule_of(newest), &n))
			return;
		const bool done = link_behind(h, newest, &n, granule);
		node_unmap(&n);
		if (done)
			return;
	}
}

/* One step: the granule of a chunk that is the caller's now, 0 if there is none yet.  False: the
 * queue is empty, or damaged. */
static bool step(struct trace_header *h, long fd, uint32_t *ret_granule)
{
	const uint64_t oldest = load_acquire(&h->free), newest = load_acquire(&h->newest_closed);
	struct node n;
	*ret_granule = 0;
	if (!node_map(h, fd, granule_of(oldest), &n))
		return false;
	const uint32_t next = granule_of(load_acquire(n.link));
	node_unmap(&n);
	if (oldest != load_acquire(&h->free))
		return true;
	if (!next)
		return false;
	if (granule_of(oldest) == granule_of(newest))
		exchange(&h->newest_closed, newest, changed(newest, next));
	else if (exchange(&h->free, oldest, changed(oldest, next)))
		*ret_granule = granule_of(oldest);
	return true;
}

uint32_t flight_pop(struct trace_header *h, long fd)
{
	uint32_t granule = 0;
	for (int tries = 0; tries < TRIES && !granule && step(h, fd, &granule);)
		tries++;
	return granule;
}
