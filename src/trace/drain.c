/* See drain.h. */
#include "trace/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "event/writer.h"
#include "trace/block.h"

#include "base/banned.h"

#define LEVEL           3
#define CONTAINER_BYTES (16u * TRACE_GRAIN)

struct place {
	uint64_t offset;
	uint32_t bytes;
	bool done; /* will never be one of calls or ranges */
};

struct drain {
	struct recorder file;
	int fd;
	uint32_t closed_seen;
	uint64_t walked; /* every chunk before this offset is in places */
	ARRAY(struct place) places;
	struct chunk_header *container; /* where blocks go; mapped */
	uint32_t container_used;
	struct block_maker maker;
};

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

static void close_container(struct drain *d)
{
	if (!d->container)
		return;
	d->container->used = d->container_used;
	__atomic_store_n(&d->container->state, CHUNK_CLOSED, __ATOMIC_RELEASE);
	munmap(d->container, d->container->bytes);
	d->container = NULL;
}

/* Room for a block of `bytes`, header included; NULL when the file can't grow. */
static char *container_room(struct drain *d, uint32_t bytes)
{
	if (d->container && d->container->bytes - CHUNK_PAYLOAD - d->container_used < bytes)
		close_container(d);
	if (!d->container) {
		const uint32_t least = bytes + CHUNK_PAYLOAD;
		d->container = recorder_chunk(&d->file, CHUNK_PACKED,
			least > CONTAINER_BYTES ? least : CONTAINER_BYTES, 0);
		d->container_used = 0;
	}
	return d->container ? (char *)d->container + CHUNK_PAYLOAD + d->container_used : NULL;
}

/* Commits the block that the maker has made: its magic goes last. */
static bool put_block(struct drain *d)
{
	const struct block_header *b = &d->maker.header;
	const uint32_t bytes = (uint32_t)sizeof(*b) + padded(b->bytes);
	char *to = container_room(d, bytes);
	if (!to)
		return false;
	struct block_header head = *b;
	head.magic = 0;
	memcpy(to + sizeof(head), d->maker.packed, b->bytes);
	memcpy(to, &head, sizeof(head));
	__atomic_store_n((uint32_t *)(void *)to, BLOCK_MAGIC, __ATOMIC_RELEASE);
	d->container_used += bytes;
	return true;
}

static bool pack_mapped(struct drain *d, const struct chunk_header *c)
{
	const struct chunk_ref ref = { .head = *c, .room = c->bytes - CHUNK_PAYLOAD };
	if (c->used > ref.room)
		return false;
	struct chunk_buf buf = {
		.ref = &ref,
		.payload = (uint8_t *)(uintptr_t)c + CHUNK_PAYLOAD,
		.bytes = c->used,
	};
	return block_make(&d->maker, &ref.head, &buf) == 0 && put_block(d);
}

static bool drain_chunk(struct drain *d, const struct place *p)
{
	struct chunk_header *c =
		mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, (off_t)p->offset);
	if (c == MAP_FAILED)
		return false;
	/* One without anything was drained before, and then left.  (writer.c, leave_chunk)  One
	 * that somebody is in the middle of waits. */
	const bool empty = !c->used && !c->lost,
		   waits = c->state == CHUNK_CLOSED && chunk_is_unfinished(c);
	const bool done = empty || (!waits && pack_mapped(d, c));
	if (done)
		recorder_free(d->file.header, c, p->offset);
	munmap(c, p->bytes);
	return done;
}

static bool look_at(struct drain *d, struct place *p)
{
	struct chunk_header c;
	if (p->done || read_at(d->fd, &c, sizeof(c), p->offset) || c.magic != CHUNK_MAGIC)
		return false;
	if (c.kind != CHUNK_EVENTS && c.kind != CHUNK_RANGES) {
		p->done = true;
		return false;
	}
	if (c.state != CHUNK_CLOSED && c.state != CHUNK_LEFT)
		return false;
	return drain_chunk(d, p);
}

/* Adds the chunks that were begun since the last time. */
static void walk(struct drain *d)
{
	const uint64_t end = __atomic_load_n(&d->file.header->next, __ATOMIC_ACQUIRE);
	while (d->walked < end) {
		struct chunk_header c;
		if (read_at(d->fd, &c, sizeof(c), d->walked) || c.magic != CHUNK_MAGIC)
			return; /* reserved, not begun: next time */
		if (c.bytes < TRACE_GRAIN || c.bytes % TRACE_GRAIN)
			return;
		struct place *p = array_push(&d->places);
		if (!p)
			return;
		*p = (struct place){ .offset = d->walked, .bytes = c.bytes };
		d->walked += c.bytes;
	}
}

bool drain_step(struct drain *d)
{
	const uint32_t closed = __atomic_load_n(&d->file.header->closed, __ATOMIC_ACQUIRE);
	bool any = false;
	if (closed == d->closed_seen)
		return false;
	d->closed_seen = closed;
	walk(d);
	for (size_t i = 0; i < d->places.n; i++)
		any |= look_at(d, &d->places.v[i]);
	return any;
}

static int attach(struct drain *d, const char *path)
{
	struct stat st;
	if (strlen(path) >= sizeof(d->file.path))
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
	return block_maker_init(&d->maker, LEVEL);
}

int drain_open(const char *path, struct drain **ret_d, struct error *err)
{
	struct drain *d = calloc(1, sizeof(*d));
	if (!d)
		return error_set(err, -ENOMEM, "no memory to drain %s", path);
	d->fd = -1;
	const int e = attach(d, path);
	if (e) {
		drain_close(d);
		return error_set(err, e, "%s can't be drained: %s", path, strerror(-e));
	}
	*ret_d = d;
	return 0;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	close_container(d);
	if (d->file.header && d->maker.torn) /* records that were begun and are now left out */
		__atomic_fetch_add(&d->file.header->lost, d->maker.torn, __ATOMIC_RELAXED);
	if (d->maker.zstd)
		block_maker_fini(&d->maker);
	if (d->file.header)
		munmap(d->file.header, TRACE_GRAIN);
	if (d->fd >= 0)
		close(d->fd);
	array_free(&d->places);
	free(d);
}
