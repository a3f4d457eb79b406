/*
 * Follows a raw trace.
 *
 * Unfinished chunks are a list, and each remembers how far it was read. A poll first looks for new
 * chunks. Then it reads the new part of each once to see what is committed, and again to have it
 * whole (load.c).
 */
#include "trace/tail.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/sort.h"
#include "record/writer.h"
#include "trace/trace.h"

#define PIECE      65536u      /* read at a time, unless a record is longer */
#define POLL_BYTES (64u << 20) /* of records in one poll; the rest waits for the next */

struct tailed {
	uint64_t offset; /* of the chunk */
	uint32_t at;     /* of the payload: read so far */
	bool done;
	bool freed; /* given back: it may become another */
	struct chunk_header head;
};

struct found {
	uint64_t end; /* ticks */
	uint32_t chunk;
	uint32_t at; /* in bytes */
	bool call;
	uint64_t order;
};

struct tail {
	int fd;
	int consuming;               /* the same file, to be written; or -1 */
	struct trace_header *shared; /* its header, mapped */
	uint64_t at;                 /* first byte whose chunk is not known */
	struct trace_header header;
	ARRAY(struct tailed) chunks;
	ARRAY(struct found) found;
	ARRAY(uint8_t) bytes;
};

int tail_open(const char *path, struct tail **ret_tail, struct error *err)
{
	struct tail *tail = xcalloc(1, sizeof *tail);
	int e = 0;
	tail->consuming = -1;
	tail->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (tail->fd < 0)
		e = error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	if (!e && read_at(tail->fd, &tail->header, sizeof tail->header, 0))
		e = error_set(err, -EAGAIN, "%s has no header yet", path);
	if (!e && memcmp(tail->header.magic, TRACE_MAGIC, 8) != 0)
		e = error_set(err, -EINVAL, "%s is not a trace", path);
	if (!e && (tail->header.version > TRACE_VERSION || tail->header.form != TRACE_RAW))
		e = error_set(err, -ENOTSUP, "%s is not a trace that is being written", path);
	if (e) {
		tail_close(tail);
		return e;
	}
	tail->at = tail->header.header_bytes;
	*ret_tail = tail;
	return 0;
}

void tail_close(struct tail *tail)
{
	if (!tail)
		return;
	if (tail->fd >= 0)
		close(tail->fd);
	if (tail->shared)
		munmap(tail->shared, TRACE_GRAIN);
	if (tail->consuming >= 0)
		close(tail->consuming);
	array_free(&tail->chunks, &tail->found, &tail->bytes);
	free(tail);
}

int tail_consume(struct tail *tail, const char *path)
{
	tail->consuming = open(path, O_RDWR | O_CLOEXEC);
	if (tail->consuming < 0)
		return -errno;
	void *map = mmap(NULL, TRACE_GRAIN, PROT_READ | PROT_WRITE, MAP_SHARED, tail->consuming, 0);
	tail->shared = map == MAP_FAILED ? NULL : map;
	return tail->shared ? 0 : -errno;
}

const struct trace_header *tail_header(const struct tail *tail)
{
	return &tail->header;
}

static uint64_t file_size(int fd)
{
	struct stat st;
	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* A chunk whose header is not there yet may still appear: its granule is looked at again,
 * unless later ones have been taken. */
static bool chunk_at(struct tail *tail, uint64_t limit, struct tailed *c)
{
	struct chunk_header *h = &c->head;
	if (read_at(tail->fd, h, sizeof *h, tail->at) || h->magic != CHUNK_MAGIC)
		return false;
	return h->bytes >= TRACE_GRAIN && h->bytes % TRACE_GRAIN == 0 &&
	       h->bytes <= limit - tail->at && h->bytes <= CHUNK_LIMIT;
}

static void find_chunks(struct tail *tail)
{
	const uint64_t size = file_size(tail->fd);
	const uint64_t limit = MIN(load_relaxed(&tail->header.next), size);
	while (tail->at < limit && limit - tail->at >= TRACE_GRAIN) {
		struct tailed c = { .offset = tail->at };
		if (!chunk_at(tail, limit, &c)) {
			c.head.magic = 0; /* watched until it becomes one */
			c.head.bytes = TRACE_GRAIN;
		}
		*array_push(&tail->chunks) = c;
		tail->at += c.head.bytes;
		expect(tail->at <= limit, "a walk over chunks stays inside the file");
	}
}

/* The bytes of the chunk from c->at on, at the end of tail->bytes: returns how many of them
 * are committed records. */
static int64_t read_new(struct tail *tail, struct tailed *c, size_t piece)
{
	const uint64_t from = c->offset + CHUNK_PAYLOAD + c->at;
	if (!expect(c->at <= c->head.bytes - CHUNK_PAYLOAD, "a chunk is read to its end at most"))
		return 0;
	const size_t left = c->head.bytes - CHUNK_PAYLOAD - c->at;
	const size_t bytes = MIN(left, piece);
	array_reserve(&tail->bytes, bytes + 8);
	uint8_t *to = tail->bytes.v + tail->bytes.n;
	if (read_at(tail->fd, to, bytes, from))
		return 0;
	struct records it = { .at = to, .end = to + bytes, .until_zero = true };
	const uint8_t *committed = to;
	while (records_next(&it) && !it.torn)
		committed = it.at;
	const size_t n = (size_t)(committed - to);
	return n && read_at(tail->fd, to, n, from) ? 0 : (int64_t)n;
}

static void add_records(struct tail *tail, uint32_t chunk, size_t start, size_t bytes)
{
	struct records it = { .at = tail->bytes.v + start, .end = tail->bytes.v + start + bytes };
	const struct record *r;
	while ((r = records_next(&it))) {
		struct found *f = array_push(&tail->found);
		*f = (struct found){ .end = record_end(r),
			.chunk = chunk,
			.at = (uint32_t)((const uint8_t *)r - tail->bytes.v),
			.call = tail->chunks.v[chunk].head.kind == CHUNK_EVENTS,
			.order = tail->found.n };
	}
}

/* How much to read at c->at: nothing when no record is finished there. */
static size_t piece_at(const struct tail *tail, const struct tailed *c)
{
	struct record r;
	if (c->head.bytes - CHUNK_PAYLOAD - c->at < sizeof r ||
		read_at(tail->fd, &r, sizeof r, c->offset + CHUNK_PAYLOAD + c->at) || !r.fn)
		return 0;
	return MAX(PIECE, r.words * 8u);
}

static int read_records(struct tail *tail, uint32_t chunk)
{
	struct tailed *c = &tail->chunks.v[chunk];
	size_t piece;
	while (tail->bytes.n < POLL_BYTES && (piece = piece_at(tail, c)) != 0) {
		const size_t start = tail->bytes.n;
		const int64_t n = read_new(tail, c, piece);
		if (n <= 0)
			return (int)n;
		tail->bytes.n += (size_t)n;
		c->at += (uint32_t)n;
		add_records(tail, chunk, start, (size_t)n);
	}
	return 0;
}

/* A record that was begun and never finished is passed over once nobody will finish it. */
static void pass_torn(struct tail *tail, struct tailed *c, uint32_t limit)
{
	struct record r;
	while (limit - c->at >= sizeof r) {
		if (read_at(tail->fd, &r, sizeof r, c->offset + CHUNK_PAYLOAD + c->at))
			return;
		if (r.fn || r.words < RECORD_WORDS || r.words * 8u > limit - c->at)
			return;
		c->at += r.words * 8u;
	}
}

/* Granules that were taken for chunks to come turn out to be inside this one. */
static void forget_inside(struct tail *tail, uint32_t chunk)
{
	const struct tailed *c = &tail->chunks.v[chunk];
	const uint64_t end = c->offset + c->head.bytes;
	for (size_t i = chunk + 1; i < tail->chunks.n && tail->chunks.v[i].offset < end; i++)
		tail->chunks.v[i].done = true;
	tail->at = MAX(end, tail->at);
}

/* Frees a chunk that has been handed over.  A failure costs room and nothing else. */
static void give_back(struct tail *tail, struct tailed *c)
{
	if (!tail->shared || c->head.kind != CHUNK_EVENTS || c->head.state == CHUNK_OPEN)
		return;
	void *map = mmap(NULL, CHUNK_PAYLOAD, PROT_READ | PROT_WRITE, MAP_SHARED, tail->consuming,
		(off_t)c->offset);
	if (map == MAP_FAILED)
		return;
	recorder_free(tail->shared, map, c->offset);
	munmap(map, CHUNK_PAYLOAD);
	c->freed = true;
}

static int poll_records(struct tail *tail, uint32_t chunk)
{
	const struct chunk_header *h = &tail->chunks.v[chunk].head;
	const bool closed = h->state != CHUNK_OPEN;
	const uint32_t room = h->bytes - CHUNK_PAYLOAD;
	const uint32_t limit = closed && h->used < room ? h->used : room;
	int e = read_records(tail, chunk);
	if (e || !(closed || tail->header.state == TRACE_FINISHED))
		return e;
	struct tailed *c = &tail->chunks.v[chunk];
	const bool left = c->head.state == CHUNK_LEFT || tail->header.state == TRACE_FINISHED;
	if (c->at < limit && tail->bytes.n < POLL_BYTES && left) {
		pass_torn(tail, c, limit);
		e = read_records(tail, chunk);
	}
	c->done = c->at >= limit;
	if (c->done && closed)
		give_back(tail, c);
	return e;
}

/* One that somebody else has drained and its thread has begun anew; what was not read is gone. */
static bool is_another(const struct tailed *c, const struct chunk_header *now)
{
	return c->head.magic && now->magic == CHUNK_MAGIC && now->open.ticks != c->head.open.ticks;
}

/* Whether the chunk has to be looked at: one that was given back, once it has been begun anew. */
static bool is_awaited(struct tailed *c, const struct chunk_header *now)
{
	const bool anew = is_another(c, now);
	if (!c->done && !anew)
		return true;
	if (now->magic != CHUNK_MAGIC || now->state == CHUNK_FREE ||
		now->open.ticks == c->head.open.ticks)
		return false;
	c->done = c->freed = false;
	c->at = 0;
	return true;
}

static int poll_chunk(struct tail *tail, uint32_t chunk)
{
	struct tailed *c = &tail->chunks.v[chunk];
	struct chunk_header now;
	if ((c->done && !c->freed && tail->shared) ||
		read_at(tail->fd, &now, sizeof now, c->offset) || !is_awaited(c, &now))
		return 0;
	if (now.magic != CHUNK_MAGIC || now.bytes < TRACE_GRAIN || now.bytes > CHUNK_LIMIT)
		return 0;
	const bool known = c->head.magic != 0;
	if (known && now.bytes != c->head.bytes)
		return 0;
	c->head = now;
	if (!known)
		forget_inside(tail, chunk);
	if (now.kind == CHUNK_EVENTS || now.kind == CHUNK_META)
		return poll_records(tail, chunk);
	c->done = now.state != CHUNK_OPEN;
	return 0;
}

ORDERING(found_order, struct found, ORDER(a->call, b->call), ORDER(a->end, b->end),
	ORDER(a->order, b->order))

int64_t tail_poll(struct tail *tail,
	void (*call)(void *context, const struct chunk_header *chunk, const struct record *r),
	void *context)
{
	tail->bytes.n = tail->found.n = 0;
	int e = read_at(tail->fd, &tail->header, sizeof tail->header, 0);
	if (!e)
		find_chunks(tail);
	for (uint32_t i = 0; !e && i < tail->chunks.n; i++)
		e = poll_chunk(tail, i);
	if (e)
		return e;
	SORT(tail->found, found_order);
	for (size_t i = 0; i < tail->found.n; i++) {
		const struct found *f = &tail->found.v[i];
		expect(f->chunk < tail->chunks.n && f->at < tail->bytes.n,
			"what was found is in what was read");
		expect(!i || found_order(f - 1, f) < 0, "records are handed over in their order");
		call(context, &tail->chunks.v[f->chunk].head,
			(const struct record *)(tail->bytes.v + f->at));
	}
	return (int64_t)tail->found.n;
}
