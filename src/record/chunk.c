/* Getting chunks of the trace file and giving them back: see chunk.h for what becomes of them. */
#include "record/chunk.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/sys.h"
#include "record/control.h"
#include "record/flight.h"
#include "record/sandbox.h"

#define OVERWRITE_TRIES 64 /* closed chunks that somebody may be in the middle of */
/* The state goes last: until then readers pass the chunk over, or find it empty. */
static void begin(const struct recorder *r, struct chunk_header *c, enum chunk_kind kind,
	uint32_t bytes, uint32_t tid, const struct chunk_birth *birth)
{
	c->next_free = 0;
	c->seq = birth ? birth->seq : 0;
	c->lost = birth ? birth->lost : 0;
	c->kind = (uint16_t)kind;
	c->bytes = bytes;
	c->used = 0;
	c->pid = r->pid;
	c->tid = tid;
	c->identity = r->identity;
	c->process_start = r->process_start;
	c->last = (struct clock_pair){ 0 };
	c->open = clock_pair_now(r->header->clock);
	sys(prctl, PR_GET_NAME, c->thread);
	store_release(shared(&c->state), CHUNK_OPEN);
	store_release(shared(&c->magic), CHUNK_MAGIC);
}

/* How much of its payload a chunk of `bytes` says to be used: read once, and not believed. */
static uint32_t chunk_used(const struct chunk_header *c, uint32_t bytes)
{
	if (!expect_inside(bytes >= TRACE_GRAIN, "a chunk is a granule at least"))
		return 0;
	const uint32_t room = bytes - CHUNK_PAYLOAD;
	const uint32_t used = load_relaxed(shared(&c->used));
	return used < room ? used : room;
}

/* The payload as it was when it was new. Readers that knew it see by its date that it is no more
 * what it was (trace/load.c). */
static void chunk_wipe(struct chunk_header *c, uint32_t bytes)
{
	store_relaxed(shared(&c->open.ticks), 0);
	/* Before the zeros: a reader compares the date behind its copy (trace/load.c), with the
	 * barriers of two system calls around that. */
	atomic_thread_fence(memory_order_release);
	memset((char *)c + CHUNK_PAYLOAD, 0, chunk_used(c, bytes));
}

static bool has_unfinished_range(const char *at, const char *end)
{
	for (; end - at >= (long)sizeof(struct range); at += sizeof(struct range)) {
		const struct range *g = (const struct range *)at;
		const uint32_t word = load_acquire((const _Atomic uint32_t *)&g->kind);
		if (!(word & UINT16_MAX) || word >> 16 & RANGE_OPEN)
			return true;
	}
	return false;
}

static bool has_unfinished_request(const char *at, const char *end)
{
	for (; end - at >= (long)sizeof(struct served_request); at += sizeof(struct served_request))
		if (!load_acquire(shared(&((const struct served_request *)at)->outcome)))
			return true;
	return false;
}

uint32_t chunk_unfinished(const struct chunk_header *c, uint32_t bytes)
{
	const char *at = (const char *)c + CHUNK_PAYLOAD;
	const char *const end = at + chunk_used(c, bytes);
	uint32_t unfinished = 0;
	if (c->kind == CHUNK_RANGES)
		return has_unfinished_range(at, end);
	if (c->kind == CHUNK_REQUESTS)
		return has_unfinished_request(at, end);
	while (end - at >= (long)sizeof(struct record)) {
		const struct record *r = (const struct record *)at;
		const uint16_t words = load_relaxed(shared(&r->words));
		unfinished += !load_acquire(shared(&r->fn));
		if (words < RECORD_WORDS)
			return unfinished + 1;
		at += words * 8u;
	}
	return unfinished;
}

/* A flight recording overwrites its oldest chunk. */

static uint64_t count_records(const struct chunk_header *c, uint32_t bytes)
{
	const char *at = (const char *)c + CHUNK_PAYLOAD;
	const char *const end = at + chunk_used(c, bytes);
	uint64_t count = 0;
	while (c->kind == CHUNK_EVENTS && end - at >= (long)sizeof(struct record)) {
		const uint16_t words = load_relaxed(shared(&((const struct record *)at)->words));
		if (words < RECORD_WORDS)
			break;
		count++;
		at += words * 8u;
	}
	return count;
}

static bool is_whole(const struct chunk_header *c, uint32_t bytes)
{
	return c->magic == CHUNK_MAGIC && chunk_is_drained(c->kind) && c->bytes == bytes &&
	       load_acquire(shared(&c->state)) == CHUNK_CLOSED;
}

/* Overwrites the chunk, which nobody else can take.  If somebody is in the middle of a record in
 * it, it goes behind the newest, and -EAGAIN is the answer, as if it is none. */
static long overwrite(const struct recorder *r, long fd, uint32_t granule, uint32_t bytes)
{
	const uint64_t at = (uint64_t)granule * TRACE_GRAIN;
	if (at + bytes > file_bytes(fd))
		return -EAGAIN;
	const long map = file_map(fd, at, bytes);
	if (sys_failed(map))
		return map;
	struct chunk_header *c = (struct chunk_header *)map;
	const bool whole = is_whole(c, bytes);
	if (whole && !chunk_unfinished(c, bytes)) {
		store_release(shared(&c->state), CHUNK_OPEN);
		/* Said before it is done: whoever is killed in between has said too much. */
		add_relaxed(&r->header->overwritten, count_records(c, bytes));
		add_relaxed(&r->header->reused, 1);
		chunk_wipe(c, bytes);
		return map;
	}
	if (whole)
		flight_push(r->header, fd, c, granule);
	sys(munmap, map, bytes);
	return -EAGAIN;
}

static long overwrite_oldest(
	const struct recorder *r, long fd, uint32_t bytes, uint32_t *ret_granule)
{
	for (int tries = 0; tries < OVERWRITE_TRIES; tries++) {
		*ret_granule = flight_pop(r->header, fd);
		if (!*ret_granule)
			break;
		const long map = overwrite(r, fd, *ret_granule, bytes);
		if (map != -EAGAIN)
			return map;
	}
	return -EAGAIN;
}

static void queue(const struct recorder *r, const struct mapped *m)
{
	if (!m->granule || sandbox_is_closed(r->header))
		return;
	const long fd = recorder_reopen(r);
	if (sys_failed(fd))
		return;
	flight_push(r->header, fd, m->chunk, m->granule);
	sys(close, fd);
}

/* The farthest place at which the header may say that the file goes on.  Room that was refused lies
 * between, but not that much: readers would walk through it all. */
#define GAP_MOST (1ull << 38)

static bool is_plausible(uint64_t at, long fd)
{
	return at % TRACE_GRAIN == 0 && at >= TRACE_GRAIN && at < file_bytes(fd) + GAP_MOST;
}

/* weir record ends a recording that grows too large, but may not run for as long as its threads
 * take to fill the rest.  The chunk that brought it so far is still filled. */
static void end_before_limit(struct trace_header *h, uint64_t next)
{
	if (load_relaxed(&h->optional) & FEATURE_ENDS && next + CONTROL_AHEAD > h->limit &&
		!load_relaxed(&h->stopped))
		control_stop(h, STOP_SIZE);
}

/* The drain finds the file shorter than this only if somebody cut it off. */
static void note_grown(struct trace_header *h, uint64_t end)
{
	uint64_t seen = load_relaxed(&h->grown);
	while (seen < end && !replace_if(&h->grown, &seen, end, release, relaxed))
		;
}

static long extend(const struct recorder *r, long fd, uint32_t bytes, uint32_t *ret_granule)
{
	const uint64_t at =
		atomic_fetch_add_explicit(&r->header->next, bytes, memory_order_acq_rel);
	end_before_limit(r->header, at + bytes);
	*ret_granule = (uint32_t)(at / TRACE_GRAIN);
	long done = is_plausible(at, fd) ? file_allocate(fd, at, bytes) : -EINVAL;
	if (!done) {
		note_grown(r->header, at + bytes);
		done = file_map(fd, at, bytes);
	}
	if (!sys_failed(done))
		return done;
	/* Given back when nobody has taken more meanwhile: next is where the file ends. */
	uint64_t taken = at + bytes;
	replace_if(&r->header->next, &taken, at, acq_rel, relaxed);
	return done;
}

/* Takes the first chunk of the list: its offset, or 0.  The upper half of the word that it begins
 * with is another after each change, so what was read of a chunk that went meanwhile is not
 * believed. */
static uint64_t pop_free(const struct recorder *r, long fd, uint32_t *ret_bytes)
{
	uint64_t head = load_acquire(&r->header->free);
	for (int tries = 0; (uint32_t)head && tries < 16; tries++) {
		const uint64_t at = (head & UINT32_MAX) * TRACE_GRAIN;
		struct chunk_header c;
		if (sys(pread64, fd, &c, sizeof c, at) != sizeof c)
			return 0;
		const uint64_t rest = ((head >> 32) + 1) << 32 | c.next_free;
		if (!replace_if(&r->header->free, &head, rest, acq_rel, acquire))
			continue;
		const bool sane = c.magic == CHUNK_MAGIC && c.state == CHUNK_FREE && c.bytes &&
				  c.bytes % TRACE_GRAIN == 0 && c.bytes <= CHUNK_LATER &&
				  at + c.bytes <= file_bytes(fd);
		*ret_bytes = c.bytes;
		return sane ? at : 0;
	}
	return 0;
}

/* A chunk that was drained and that nobody has; or -EAGAIN. */
static long take_free(const struct recorder *r, long fd, uint32_t *ret_bytes, uint32_t *ret_granule)
{
	uint32_t bytes;
	const uint64_t at = r->header->mode == TRACE_FILE ? pop_free(r, fd, &bytes) : 0;
	const long map = at ? file_map(fd, at, bytes) : -EAGAIN;
	if (sys_failed(map))
		return -EAGAIN;
	chunk_wipe((struct chunk_header *)map, bytes);
	*ret_bytes = bytes;
	*ret_granule = (uint32_t)(at / TRACE_GRAIN);
	return map;
}

void recorder_free(struct trace_header *h, struct chunk_header *c, uint64_t offset)
{
	/* Only now may its thread write over it.  (chunk_recycle, chunk_leave) */
	const uint16_t was =
		atomic_exchange_explicit(shared(&c->state), CHUNK_FREE, memory_order_acq_rel);
	const uint64_t granule = offset / TRACE_GRAIN;
	if (!expect_inside(offset % TRACE_GRAIN == 0, "chunks begin at granules"))
		return;
	if (was != CHUNK_LEFT || granule > UINT32_MAX)
		return;
	uint64_t head = load_relaxed(&h->free), with;
	do {
		c->next_free = (uint32_t)head;
		with = ((head >> 32) + 1) << 32 | granule;
	} while (!replace_if(&h->free, &head, with, acq_rel, relaxed));
}

/* New room, as the header's limit has it. */
static long more_room(const struct recorder *r, long fd, enum chunk_kind kind, uint32_t bytes,
	uint32_t *ret_granule)
{
	const uint64_t limit = r->header->limit;
	const uint64_t end = load_acquire(&r->header->next);
	if (!chunk_is_drained((uint16_t)kind) || !limit || end + bytes <= limit)
		return extend(r, fd, bytes, ret_granule);
	if (r->header->mode == TRACE_FILE)
		return -ENOSPC;
	const long map = overwrite_oldest(r, fd, bytes, ret_granule);
	return sys_failed(map) ? extend(r, fd, bytes, ret_granule) : map; /* all are in use */
}

/* CUPTI tells later of what had run when somebody asked to stop, and there is room for it. */
static bool is_stopped(const struct trace_header *h, enum chunk_kind kind)
{
	const uint32_t why = load_relaxed(&h->stopped);
	return why != STOP_NOT && !(why == STOP_ASKED && kind == CHUNK_DEVICE);
}

struct mapped chunk_new(struct recorder *r, enum chunk_kind kind, uint32_t bytes, uint32_t tid,
	const struct chunk_birth *birth)
{
	const struct mapped none = { 0 };
	if (!r->header || is_stopped(r->header, kind) || sandbox_is_closed(r->header))
		return none;
	bytes = (bytes + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN;
	if (!expect_inside(bytes, "what is asked of a chunk is less than 4 GiB"))
		return none;
	const long fd = recorder_reopen(r);
	if (sys_failed(fd))
		return none;
	uint32_t granule = 0;
	long map = chunk_is_drained((uint16_t)kind) && birth ? take_free(r, fd, &bytes, &granule)
							     : -EAGAIN;
	if (sys_failed(map))
		map = more_room(r, fd, kind, bytes, &granule);
	sys(close, fd);
	if (sys_failed(map))
		return none;
	if (!expect_inside(map % 4096 == 0 && bytes % TRACE_GRAIN == 0, "chunks are whole")) {
		sys(munmap, map, bytes);
		return none;
	}
	begin(r, (struct chunk_header *)map, kind, bytes, tid, birth);
	return (struct mapped){ (struct chunk_header *)map, bytes, granule };
}

struct chunk_header *recorder_chunk(
	struct recorder *r, enum chunk_kind kind, uint32_t bytes, uint32_t tid)
{
	return chunk_new(r, kind, bytes, tid, NULL).chunk;
}

bool chunk_recycle(const struct recorder *r, const struct mapped *m, enum chunk_kind kind,
	const struct chunk_birth *birth)
{
	if (!expect_inside(m->chunk && birth, "a chunk that is begun anew is mapped") ||
		load_acquire(shared(&m->chunk->state)) != CHUNK_FREE)
		return false;
	chunk_wipe(m->chunk, m->bytes);
	begin(r, m->chunk, kind, m->bytes, birth->tid, birth);
	return true;
}

void chunk_close(const struct recorder *r, const struct mapped *m, uint32_t used)
{
	struct chunk_header *c = m->chunk;
	c->used = used;
	store_release(shared(&c->state), CHUNK_CLOSED);
	atomic_fetch_add_explicit(&r->header->closed, 1, memory_order_release);
	if (r->header->mode == TRACE_FLIGHT && chunk_is_drained(c->kind))
		queue(r, m);
}

/* The drain need not keep it for us: a chunk that was drained a moment ago comes back empty.  In
 * flight it stays closed: it may be another's by now. */
void chunk_leave(const struct recorder *r, const struct mapped *m)
{
	struct chunk_header *c = m->chunk;
	if (!expect_inside(c && m->bytes, "a chunk that is left is mapped"))
		return;
	uint16_t was = CHUNK_CLOSED;
	if (r->header->mode == TRACE_FILE &&
		!replace_if(shared(&c->state), &was, CHUNK_LEFT, release, acquire) &&
		was == CHUNK_FREE) {
		chunk_wipe(c, m->bytes);
		c->used = 0;
		c->lost = 0; /* the block says it */
		c->open = clock_pair_now(r->header->clock);
		store_release(shared(&c->state), CHUNK_LEFT);
		atomic_fetch_add_explicit(&r->header->closed, 1, memory_order_release);
	}
	sys(munmap, c, m->bytes);
}
