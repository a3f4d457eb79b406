/* Packs a trace with one chunk in memory at a time. Blocks keep the order of the chunks. */
#include "trace/pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/newfile.h"
#include "trace/block.h"

#define LEVEL 6 /* zstd's */

struct packer {
	const struct trace *t;
	struct pack_stats *stats;
	struct block_writer w;
	struct chunk_buf buf;
	bool rebuilds;
	const struct pack_extra *extra;
	size_t extra_count;
};

static uint16_t kind_of(const struct packer *p, uint16_t kind)
{
	return p->rebuilds && kind == CHUNK_DEVICE ? CHUNK_MEASURED : kind;
}

/* A chunk that was drained is a block already. */
static void copy_block(struct packer *p, const struct chunk_ref *ref)
{
	struct block_header b;
	uint8_t *payload = xmalloc(ref->room ? ref->room : 1);
	int e = read_at(p->t->fd, &b, sizeof b, ref->offset - sizeof b);
	if (!e)
		e = read_at(p->t->fd, payload, ref->room, ref->offset);
	b.chunk.kind = kind_of(p, b.chunk.kind);
	block_sign(&b);
	if (!e)
		block_writer_block(&p->w, &b, payload);
	else
		p->w.failed = e;
	p->stats->records += ref->records;
	free(payload);
}

static void pack_chunk(struct packer *p, size_t i)
{
	const struct chunk_ref *ref = &p->t->chunks[i];
	struct chunk_header head = ref->head;
	if (ref->packed)
		return copy_block(p, ref);
	const int e = trace_load(p->t, i, &p->buf, NULL);
	head.kind = kind_of(p, head.kind);
	if (trace_lost(e))
		p->stats->damaged++;
	else if (e)
		p->w.failed = e;
	else
		block_writer_chunk(&p->w, &head, p->buf.payload, p->buf.bytes);
}

/* A chunk that stands in no file, of pack_stats.stacks. */
static int put_chunk(
	void *context, const struct chunk_header *head, const void *payload, size_t bytes)
{
	struct packer *p = context;
	block_writer_chunk(&p->w, head, payload, bytes);
	return p->w.failed;
}

/* True: nothing of their pieces is to be kept. */
static bool pack_stacks(struct packer *p)
{
	const int e = p->stats->stacks ? p->stats->stacks(p->t, put_chunk, p) : -ENOSYS;
	if (e && e != -ENOSYS)
		p->w.failed = e;
	return e != -ENOSYS;
}

static void pack_chunks(struct packer *p)
{
	const bool without_stacks = pack_stacks(p);
	for (size_t i = 0; i < p->t->chunk_count && !p->w.failed; i++) {
		if (!without_stacks || p->t->chunks[i].head.kind != CHUNK_STACKS)
			pack_chunk(p, i);
		p->stats->chunks++;
		if (p->stats->progress)
			p->stats->progress(p->stats->context, i + 1, p->t->chunk_count);
	}
}

static struct trace_header packed_header(const struct packer *p)
{
	struct trace_header h = p->t->header;
	h.form = TRACE_PACKED;
	h.header_bytes = p->t->off.count ? HEADER_WITH_OFF_TIMES : sizeof h;
	add_alone(&h.lost, p->w.maker.torn);
	store_relaxed(&h.next, p->w.bytes);
	if (p->rebuilds) {
		h.sampled = 0;
		store_relaxed(&h.optional, load_relaxed(&h.optional) | FEATURE_REBUILT);
	}
	return h;
}

static int write_all(struct packer *p)
{
	struct trace_header h = packed_header(p);
	block_writer_put(&p->w, &h, sizeof h);
	if (h.header_bytes > sizeof h)
		block_writer_put(&p->w, &p->t->off, sizeof p->t->off);
	pack_chunks(p);
	for (size_t i = 0; i < p->extra_count; i++)
		block_writer_chunk(
			&p->w, &p->extra[i].head, p->extra[i].payload, p->extra[i].bytes);
	h = packed_header(p);
	return block_writer_finish(&p->w, &h);
}

static int copy_to(const struct trace *t, FILE *out)
{
	char piece[65536];
	for (uint64_t at = 0; at < t->size;) {
		const uint64_t left = t->size - at;
		const size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
		const int e = read_at(t->fd, piece, n, at);
		if (e)
			return e;
		if (fwrite(piece, 1, n, out) != n)
			return -errno;
		at += n;
	}
	return fflush(out) ? -errno : 0;
}

static int pack_to(struct packer *p, const struct trace *t, FILE *out)
{
	const struct block_maker *m = &p->w.maker;
	p->t = t;
	p->w.out = out;
	block_maker_init(&p->w.maker, LEVEL);
	const int e = write_all(p);
	p->stats->packed_bytes = p->w.bytes;
	p->stats->records += m->records;
	p->stats->torn += m->torn;
	p->stats->damaged += m->damaged;
	block_maker_fini(&p->w.maker);
	chunk_buf_fini(&p->buf);
	return e;
}

static int make(const struct trace *t, FILE *out, struct pack_stats *stats)
{
	struct packer p = { .stats = stats };
	stats->raw_bytes = t->size;
	if (t->header.form == TRACE_PACKED) {
		stats->packed_bytes = t->size;
		return copy_to(t, out);
	}
	return pack_to(&p, t, out);
}

int trace_pack(const char *src, const char *dst, struct pack_stats *stats, struct error *err)
{
	struct trace *t;
	int e = trace_open(src, &t, err);
	if (e)
		return e;
	if (t->damage_count)
		stats->damage = t->damage.v[0];
	stats->damage.bytes = t->damage_bytes;
	struct newfile f;
	e = newfile_open(&f, dst);
	e = newfile_close(&f, e ? e : make(t, f.out, stats));
	trace_close(t);
	return e ? error_set(err, e, "%s can't be written: %s", dst, strerror(-e)) : 0;
}

int trace_rebuild(const struct trace *t, const char *path, const struct pack_extra *extra,
	size_t count, struct error *err)
{
	struct pack_stats stats = { 0 };
	struct packer p = {
		.stats = &stats, .rebuilds = true, .extra = extra, .extra_count = count
	};
	struct newfile f;
	int e = newfile_open(&f, path);
	e = newfile_close(&f, e ? e : pack_to(&p, t, f.out));
	return e ? error_set(err, e, "%s can't be written: %s", path, strerror(-e)) : 0;
}
