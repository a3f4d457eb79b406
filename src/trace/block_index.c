/* Finds chunks that were drained after the trace was opened. */
#include "trace/trace.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/expect.h"

struct container {
	uint64_t at; /* behind the last block that is known */
	uint64_t end;
};

struct block_index {
	pthread_mutex_t lock;
	uint64_t walked; /* every chunk before this offset has been looked at */
	ARRAY(struct container) containers;
	ARRAY(struct chunk_ref) blocks;
	struct map index; /* identity of a chunk to blocks; offset of a container: it is known */
};

struct block_index *block_index_new(void)
{
	struct block_index *m = xcalloc(1, sizeof *m);
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void block_index_free(struct block_index *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	array_free(&m->containers, &m->blocks);
	map_fini(&m->index);
	free(m);
}

/* No two chunks of a thread are begun at one time. */
static struct map_key identity(const struct chunk_header *c)
{
	return MAP_KEY(c->identity ^ c->process_start, (uint64_t)c->pid << 32 | c->tid, c->kind,
		c->open.ticks);
}

static void add_block(struct block_index *m, const struct block_header *b, uint64_t payload)
{
	uint32_t *index = map_get(&m->index, identity(&b->chunk));
	*array_push(&m->blocks) = chunk_ref_of_block(b, payload);
	*index = (uint32_t)(m->blocks.n - 1);
}

static void add_container(struct block_index *m, uint64_t offset, uint64_t end)
{
	uint32_t *known = map_get(&m->index, MAP_KEY(0, 0, 0, offset));
	if (*known != MAP_NONE)
		return;
	*array_push(&m->containers) = (struct container){ offset + CHUNK_PAYLOAD, end };
	*known = 0;
}

static void walk_container(const struct trace *t, struct block_index *m, struct container *c)
{
	struct block_header b;
	while (c->end - c->at >= sizeof b && !read_at(t->fd, &b, sizeof b, c->at) &&
		block_sane(&b)) {
		const uint64_t payload = c->at + sizeof b;
		const uint64_t padded = ((uint64_t)b.bytes + 7) & ~7ull;
		if (padded > c->end - payload)
			return;
		add_block(m, &b, payload);
		c->at = payload + padded;
		expect(c->at <= c->end, "a walk over blocks stays inside its container");
	}
}

/* From the first place on where nothing was begun yet: it may have been since. */
static void walk_chunks(const struct trace *t, struct block_index *m)
{
	struct trace_header now;
	struct stat st;
	if (read_at(t->fd, &now, sizeof now, 0) || fstat(t->fd, &st))
		return;
	const uint64_t size = (uint64_t)st.st_size, end = MIN(load_relaxed(&now.next), size);
	bool all = true;
	uint64_t at = m->walked ? m->walked : now.header_bytes;
	while (at < end && end - at >= TRACE_GRAIN) {
		struct chunk_header c;
		const bool sane = !read_at(t->fd, &c, sizeof c, at) && c.magic == CHUNK_MAGIC &&
				  chunk_sane(&c, end - at);
		all &= sane;
		if (sane && c.kind == CHUNK_PACKED)
			add_container(m, at, at + c.bytes);
		at += sane ? c.bytes : TRACE_GRAIN;
		m->walked = all ? at : m->walked;
	}
}

bool block_index_find(
	const struct trace *t, const struct chunk_ref *ref, struct chunk_ref *ret_block)
{
	struct block_index *m = t->block_index;
	if (!m)
		return false;
	pthread_mutex_lock(&m->lock);
	uint32_t at = map_find(&m->index, identity(&ref->head));
	if (at == MAP_NONE) {
		walk_chunks(t, m);
		for (size_t i = 0; i < m->containers.n; i++)
			walk_container(t, m, &m->containers.v[i]);
		at = map_find(&m->index, identity(&ref->head));
	}
	if (at != MAP_NONE && !expect(at < m->blocks.n, "what moved is in one of the blocks"))
		at = MAP_NONE;
	if (at != MAP_NONE)
		*ret_block = m->blocks.v[at];
	pthread_mutex_unlock(&m->lock);
	return at != MAP_NONE;
}
