/*
 * Chunks of a process that all its threads write to: metadata, ranges that any thread may end,
 * GPU activities and its links, and accounts.  Their functions are in writer.h and lane.h.
 */
#include "base/atomic.h"
#include "record/writer.h"

#include <string.h>
#include <sys/mman.h>

#include "base/expect.h"
#include "base/sys.h"
#include "record/chunk.h"
#include "record/lane.h"

#define SHARED_FIRST (1u * TRACE_GRAIN)
#define SHARED_NEXT  (4u * TRACE_GRAIN)
#define SHARED_MOST  64u
#define SCARCE_BYTES (256u << 20) /* of what 64 chunks hold: the rest is for names of kernels */

/*
 * Chunks of a process that all its threads write to: room is taken by a locked add on `taken`.
 * A chunk that is full is left open and mapped (somebody may still be filling his record);
 * its successor replaces it in `now`.
 */
struct shared {
	const enum chunk_kind kind;
	_Atomic uint32_t now; /* index + 1 of the current one; 0: none yet.  grow() stores its place
			       * before it, share() looks at it first */
	_Atomic uint64_t bytes; /* of all of them */
	struct {
		_Atomic uintptr_t place; /* address of the chunk | its bytes / TRACE_GRAIN */
		_Atomic uint64_t taken;
	} chunks[SHARED_MOST];
};
static struct shared metas = { .kind = CHUNK_META };
static struct shared spans = { .kind = CHUNK_RANGES };
static struct shared works = { .kind = CHUNK_DEVICE };
static struct shared links = { .kind = CHUNK_LINKS };
static struct shared accounts = { .kind = CHUNK_ACCOUNTS };

#define PAGE_MASK 4095u

static char *chunk_of(const struct shared *s, uint64_t i)
{
	return (char *)(atomic_load_explicit(&s->chunks[i].place, memory_order_seq_cst) &
			~(uintptr_t)PAGE_MASK);
}

static uint64_t room_of(const struct shared *s, uint64_t i)
{
	return (atomic_load_explicit(&s->chunks[i].place, memory_order_seq_cst) & PAGE_MASK) *
		       TRACE_GRAIN -
	       CHUNK_PAYLOAD;
}

static void forget(struct shared *s)
{
	atomic_store_explicit(&s->now, 0, memory_order_seq_cst);
	atomic_store_explicit(&s->bytes, 0, memory_order_seq_cst);
	memset(s->chunks, 0, sizeof s->chunks);
}

static atomic_bool clock_is_read; /* by one thread at a time */

void shared_forget(void)
{
	atomic_store_explicit(&clock_is_read, false, memory_order_seq_cst);
	forget(&metas);
	forget(&spans);
	forget(&works);
	forget(&links);
	forget(&accounts);
}

/* Appends a chunk after chunks[now - 1].  False: there is no room. */
static bool grow(struct recorder *r, struct shared *s, uint32_t now, uint32_t bytes)
{
	if (now >= SHARED_MOST)
		return false;
	/* Twice as large every eight, so that 64 will do for whoever has a great many names. */
	const uint32_t doublings = now / 8 < 6 ? now / 8 : 6;
	uint32_t want = now ? SHARED_NEXT << doublings : SHARED_FIRST;
	want = bytes + CHUNK_PAYLOAD > want ? bytes + CHUNK_PAYLOAD : want;
	if (want > PAGE_MASK * TRACE_GRAIN)
		return false;
	const struct mapped m = chunk_new(r, s->kind, want, 0, NULL);
	if (!m.chunk)
		return false;
	if (!expect_inside(
		    ((uintptr_t)m.chunk & PAGE_MASK) == 0 && m.bytes / TRACE_GRAIN <= PAGE_MASK,
		    "a place has room for a chunk's address and size"))
		return false;
	uintptr_t none = 0;
	/* One that another was faster with is in the file, too. */
	atomic_fetch_add_explicit(&s->bytes, m.bytes, memory_order_seq_cst);
	if (!replace_if(&s->chunks[now].place, &none, (uintptr_t)m.chunk | m.bytes / TRACE_GRAIN,
		    seq_cst, seq_cst)) {
		chunk_close(r, &m, 0); /* another thread was first */
		sys(munmap, m.chunk, m.bytes);
	}
	uint32_t expected = now;
	replace_if(&s->now, &expected, now + 1, seq_cst, seq_cst);
	return true;
}

/* Room in the chunk of index *ret_chunk, at *ret_offset of its payload; or NULL. */
static void *share(struct recorder *r, struct shared *s, uint32_t bytes, uint32_t *ret_chunk,
	uint32_t *ret_offset)
{
	for (;;) {
		const uint32_t now = atomic_load_explicit(&s->now, memory_order_seq_cst);
		if (!expect_inside(now <= SHARED_MOST && bytes % 8 == 0, "whole words, in a chunk"))
			return NULL;
		if (now) {
			const uint64_t at = atomic_fetch_add_explicit(
				&s->chunks[now - 1].taken, bytes, memory_order_seq_cst);
			*ret_chunk = now - 1;
			*ret_offset = (uint32_t)at;
			if (at + bytes <= room_of(s, now - 1))
				return chunk_of(s, now - 1) + CHUNK_PAYLOAD + at;
		}
		if (!grow(r, s, now, bytes))
			return NULL;
	}
}

void recorder_read_clock(struct recorder *r)
{
	const uint32_t now = atomic_load_explicit(&metas.now, memory_order_seq_cst);
	if (!r->header || !now ||
		atomic_exchange_explicit(&clock_is_read, true, memory_order_seq_cst))
		return;
	struct chunk_header *c = (struct chunk_header *)chunk_of(&metas, now - 1);
	c->last = clock_pair_now(r->header->clock);
	atomic_store_explicit(&clock_is_read, false, memory_order_seq_cst);
}

struct record *meta_reserve(struct recorder *r, uint32_t words)
{
	uint32_t chunk, offset;
	struct record *to = r->header ? share(r, &metas, words * 8, &chunk, &offset) : NULL;
	if (!to && r->header)
		add_relaxed(&r->header->unnamed, 1);
	recorder_read_clock(r);
	return to;
}

bool meta_is_scarce(const struct recorder *r)
{
	const uint64_t limit = r->header ? r->header->limit / 4 : 0;
	const uint64_t most = !limit ? SCARCE_BYTES : limit > SHARED_NEXT ? limit : SHARED_NEXT;
	return load_relaxed(&metas.bytes) > most;
}

struct range *span_reserve(struct recorder *r, uint64_t *ret_id)
{
	uint32_t chunk, offset;
	struct range *to =
		r->header ? share(r, &spans, sizeof(struct range), &chunk, &offset) : NULL;
	if (!to && r->header)
		add_relaxed(&r->header->lost_ranges, 1);
	if (to)
		*ret_id = ((uint64_t)chunk << 32 | offset / sizeof(struct range)) + 1;
	return to;
}

struct gpu_activity *activity_reserve(struct recorder *r)
{
	uint32_t chunk, offset;
	return r->header ? share(r, &works, sizeof(struct gpu_activity), &chunk, &offset) : NULL;
}

struct link *link_reserve(struct recorder *r)
{
	uint32_t chunk, offset;
	return r->header ? share(r, &links, sizeof(struct link), &chunk, &offset) : NULL;
}

struct thread_account *account_reserve(struct recorder *r)
{
	uint32_t chunk, offset;
	return r->header ? share(r, &accounts, sizeof(struct thread_account), &chunk, &offset)
			 : NULL;
}

void activity_lose(struct recorder *r, uint64_t count)
{
	if (!r->header || !count ||
		(!atomic_load_explicit(&works.now, memory_order_seq_cst) && !grow(r, &works, 0, 0)))
		return;
	struct chunk_header *c = (struct chunk_header *)chunk_of(
		&works, atomic_load_explicit(&works.now, memory_order_seq_cst) - 1);
	add_relaxed(shared(&c->lost), count);
}

struct range *span_find(uint64_t id)
{
	const uint64_t chunk = (id - 1) >> 32,
		       offset = ((id - 1) & UINT32_MAX) * sizeof(struct range);
	if (!id || chunk >= atomic_load_explicit(&spans.now, memory_order_seq_cst) ||
		!expect_inside(chunk < SHARED_MOST, "there are no more chunks than places"))
		return NULL;
	if (offset + sizeof(struct range) > room_of(&spans, chunk))
		return NULL;
	return (struct range *)(chunk_of(&spans, chunk) + CHUNK_PAYLOAD + offset);
}
