/* Drains full chunks while a program records. */
#include "trace/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/atomic.h"
#include "base/expect.h"
#include "record/writer.h"
#include "trace/block.h"

#define LEVEL           3
#define CONTAINER_BYTES (16u * TRACE_GRAIN)

struct place {
	uint64_t offset;
	uint32_t bytes; /* 0: taken by somebody, but no chunk has been begun here yet */
	bool done;      /* will never be one that is drained */
};

/* The file's own words are not believed: it may be cut off while it is mapped. */
struct container {
	struct chunk_header *c; /* mapped; or NULL */
	uint32_t bytes, used;
};

struct drain {
	struct recorder file;
	int fd;
	uint32_t closed_seen;
	bool behind;     /* something could not be drained: for want of room */
	bool cut;        /* somebody has cut the file off */
	uint64_t size;   /* that the file had when it was looked at last */
	uint64_t last;   /* the last chunk that was seen; 0: none */
	uint64_t walked; /* every chunk before this offset is in places */
	ARRAY(struct place) places;
	struct container now; /* where blocks go */
	/* The next one, taken while there is room.  Drained chunks make room for new ones: on a
	 * full disk the program's threads would otherwise find none, ever again. */
	struct container reserve;
	struct block_maker maker;
	uint8_t *copy; /* of a chunk's payload: what is looked at stays as it is */
	size_t copy_room;
};

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

/* One that was cut off has no memory any more that could be written to. */
static void close_container(const struct drain *d, struct container *to)
{
	if (!to->c)
		return;
	expect(to->used <= to->bytes - CHUNK_PAYLOAD, "a container holds what was put into it");
	if (!d->cut) {
		to->c->used = to->used;
		store_release(shared(&to->c->state), CHUNK_CLOSED);
	}
	munmap(to->c, to->bytes);
	to->c = NULL;
}

static struct container new_container(struct drain *d, uint32_t least)
{
	const uint32_t most = MAX(least, CONTAINER_BYTES);
	const uint32_t bytes = (most + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN;
	struct chunk_header *c = recorder_chunk(&d->file, CHUNK_PACKED, bytes, 0);
	return (struct container){ .c = c, .bytes = bytes };
}

/* Room for a block of `bytes`, header included; NULL when the file can't grow. */
static char *container_room(struct drain *d, uint32_t bytes)
{
	const uint32_t least = bytes + CHUNK_PAYLOAD;
	if (!d->now.c || d->now.bytes - d->now.used < least) {
		const bool reserved = d->reserve.c && d->reserve.bytes >= least;
		const struct container next = reserved ? d->reserve : new_container(d, least);
		if (!next.c)
			return NULL;
		if (reserved)
			d->reserve.c = NULL;
		close_container(d, &d->now);
		d->now = next;
	}
	return (char *)d->now.c + CHUNK_PAYLOAD + d->now.used;
}

/* Commits the block that the maker has made: its magic goes last. */
static bool put_block(struct drain *d)
{
	const struct block_header *b = &d->maker.header;
	const uint32_t bytes = (uint32_t)sizeof *b + padded(b->bytes);
	char *to = container_room(d, bytes);
	d->behind |= !to;
	if (!to)
		return false;
	if (!expect(d->now.used + bytes <= d->now.bytes - CHUNK_PAYLOAD, "a block has its room"))
		return false;
	struct block_header head = *b;
	head.magic = 0;
	memcpy(to + sizeof head, d->maker.packed, b->bytes);
	memcpy(to, &head, sizeof head);
	store_release((_Atomic uint32_t *)(void *)to, BLOCK_MAGIC);
	d->now.used += bytes;
	return true;
}

static bool pack_mapped(struct drain *d, const struct chunk_header *c, uint32_t bytes)
{
	struct chunk_ref ref = { .room = bytes - CHUNK_PAYLOAD };
	memcpy(&ref.head, c, sizeof ref.head);
	if (ref.head.used > ref.room || !chunk_is_drained(ref.head.kind))
		return false;
	buffer_want(&d->copy, &d->copy_room, ref.room);
	expect(ref.head.used <= d->copy_room, "a chunk is copied to where it has room");
	memcpy(d->copy, (const char *)c + CHUNK_PAYLOAD, ref.head.used);
	struct chunk_buf buf = { .ref = &ref, .payload = d->copy, .bytes = ref.head.used };
	if (block_make(&d->maker, &ref.head, &buf) || !put_block(d))
		return false;
	/* Records that were begun and are now left out. */
	add_relaxed(&d->file.header->lost, d->maker.torn);
	d->maker.torn = 0;
	return true;
}

static bool drain_chunk(struct drain *d, const struct place *p)
{
	expect(p->bytes >= TRACE_GRAIN, "what is drained has begun");
	struct chunk_header *c =
		mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, (off_t)p->offset);
	if (c == MAP_FAILED)
		return false;
	/* One without anything was drained before, and then left.  (writer.c, leave_chunk)  One
	 * that somebody is in the middle of waits. */
	const bool empty = !c->used && !c->lost,
		   waits = c->state == CHUNK_CLOSED && chunk_unfinished(c, p->bytes);
	const bool done = empty || (!waits && pack_mapped(d, c, p->bytes));
	if (done)
		recorder_free(d->file.header, c, p->offset);
	munmap(c, p->bytes);
	return done;
}

/* The thread that took the room has begun its chunk. The granules behind were its own as well. */
static bool learn_place(struct drain *d, size_t i, uint32_t bytes)
{
	struct place *p = &d->places.v[i];
	struct stat st;
	if (bytes < TRACE_GRAIN || bytes % TRACE_GRAIN || fstat(d->fd, &st) ||
		p->offset + bytes > (uint64_t)st.st_size)
		return false;
	p->bytes = bytes;
	d->last = p->offset > d->last ? p->offset : d->last;
	const uint64_t end = p->offset + bytes;
	for (size_t j = i + 1; j < d->places.n && d->places.v[j].offset < end; j++)
		d->places.v[j].done = true;
	d->walked = MAX(end, d->walked);
	return true;
}

static bool look_at(struct drain *d, size_t i)
{
	struct place *p = &d->places.v[i];
	struct chunk_header c;
	if (p->done || read_at(d->fd, &c, sizeof c, p->offset) || c.magic != CHUNK_MAGIC)
		return false;
	if (!p->bytes && !learn_place(d, i, c.bytes))
		return false;
	if (!chunk_is_drained(c.kind)) {
		p->done = true;
		return false;
	}
	if (c.state != CHUNK_CLOSED && c.state != CHUNK_LEFT)
		return false;
	return drain_chunk(d, p);
}

/* Adds what was taken since the last time.  A thread that takes room and finds the disk full, or
 * dies, leaves a place at which no chunk ever begins. Behind the end of the file there are only
 * such. */
static void walk(struct drain *d)
{
	struct stat st;
	const uint64_t next = load_acquire(&d->file.header->next);
	const uint64_t size = fstat(d->fd, &st) ? 0 : (uint64_t)st.st_size;
	for (const uint64_t end = MIN(next, size); d->walked < end;) {
		struct place *p = array_push(&d->places);
		expect(d->places.n == 1 || p[-1].offset < d->walked, "places come in their order");
		*p = (struct place){ .offset = d->walked };
		d->walked += TRACE_GRAIN;
		struct chunk_header c;
		if (!read_at(d->fd, &c, sizeof c, p->offset) && c.magic == CHUNK_MAGIC)
			learn_place(d, d->places.n - 1, c.bytes);
	}
}

/* The bytes that the disk failed to read may be there. */
static bool lacks_magic(const struct drain *d, uint64_t offset)
{
	uint32_t magic;
	const int e = read_at(d->fd, &magic, sizeof magic, offset);
	return e == -ENODATA || (!e && magic != CHUNK_MAGIC);
}

/* Nobody who records makes the file smaller, or takes a chunk's magic away.  A thread of the
 * program may have made it grow again since it was cut off: then there are zeros at its last chunk.
 */
bool drain_is_cut(struct drain *d)
{
	struct stat st;
	/* Before the size: pairs with note_grown(). */
	const uint64_t grown = load_acquire(&d->file.header->grown);
	if (d->cut || fstat(d->fd, &st))
		return d->cut;
	const uint64_t least = grown > d->size ? grown : d->size;
	d->cut = (uint64_t)st.st_size < least || (d->last && lacks_magic(d, d->last));
	d->size = (uint64_t)st.st_size;
	return d->cut;
}

bool drain_step(struct drain *d)
{
	if (drain_is_cut(d))
		return false;
	const uint32_t closed = load_acquire(&d->file.header->closed);
	bool any = false;
	if (!d->reserve.c)
		d->reserve = new_container(d, 0);
	if (closed == d->closed_seen && !d->behind)
		return false;
	d->closed_seen = closed;
	d->behind = false;
	walk(d);
	for (size_t i = 0; i < d->places.n; i++)
		any |= look_at(d, i);
	return any;
}

static int attach(struct drain *d, const char *path)
{
	struct stat st;
	if (strlen(path) >= sizeof d->file.path)
		return -ENAMETOOLONG;
	memcpy(d->file.path, path, strlen(path) + 1);
	d->fd = open(path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st))
		return -errno;
	d->file.device = st.st_dev;
	d->file.inode = st.st_ino;
	void *map = mmap(NULL, TRACE_GRAIN, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	d->file.header = map;
	d->walked = d->file.header->header_bytes;
	block_maker_init(&d->maker, LEVEL);
	return 0;
}

int drain_open(const char *path, struct drain **ret_d)
{
	struct drain *d = xcalloc(1, sizeof *d);
	d->fd = -1;
	const int e = attach(d, path);
	if (e) {
		drain_close(d);
		return e;
	}
	*ret_d = d;
	return 0;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	if (d->file.header)
		drain_is_cut(d);
	close_container(d, &d->now);
	close_container(d, &d->reserve);
	if (d->maker.zstd)
		block_maker_fini(&d->maker);
	if (d->file.header)
		munmap(d->file.header, TRACE_GRAIN);
	if (d->fd >= 0)
		close(d->fd);
	array_free(&d->places);
	free_all(d->copy, d);
}
