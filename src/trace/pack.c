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
	FILE *out;
	struct pack_stats *stats;
	struct block_maker maker;
	struct chunk_buf buf;
	uint64_t bytes; /* written so far */
	bool rebuilds;
	const struct pack_extra *extra;
	size_t extra_count;
};

static int put(struct packer *p, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, p->out) != bytes)
		return errno ? -errno : -EIO;
	p->bytes += bytes;
	return 0;
}

static int put_block(struct packer *p, const struct block_header *b, const uint8_t *payload)
{
	static const uint8_t zeros[8];
	int e = put(p, b, sizeof *b);
	if (!e)
		e = put(p, payload, b->bytes);
	if (!e)
		e = put(p, zeros, -(size_t)b->bytes & 7);
	expect(e || p->bytes % 8 == 0, "blocks begin at whole words");
	return e;
}

static uint16_t kind_of(const struct packer *p, uint16_t kind)
{
	return p->rebuilds && kind == CHUNK_DEVICE ? CHUNK_MEASURED : kind;
}

/* A chunk that was drained is a block already. */
static int copy_block(struct packer *p, const struct chunk_ref *ref)
{
	struct block_header b;
	uint8_t *payload = xmalloc(ref->room ? ref->room : 1);
	int e = read_at(p->t->fd, &b, sizeof b, ref->offset - sizeof b);
	if (!e)
		e = read_at(p->t->fd, payload, ref->room, ref->offset);
	b.chunk.kind = kind_of(p, b.chunk.kind);
	block_sign(&b);
	if (!e)
		e = put_block(p, &b, payload);
	p->stats->records += ref->records;
	free(payload);
	return e;
}

static int make_block(
	struct packer *p, const struct chunk_header *head, const struct chunk_buf *buf)
{
	struct chunk_header h = *head;
	h.kind = kind_of(p, h.kind);
	return block_make(&p->maker, &h, buf);
}

static int pack_chunk(struct packer *p, size_t i)
{
	const struct chunk_ref *ref = &p->t->chunks[i];
	if (ref->packed)
		return copy_block(p, ref);
	int e = trace_load(p->t, i, &p->buf, NULL);
	if (trace_lost(e)) {
		p->stats->damaged++;
		return 0;
	}
	if (!e)
		e = make_block(p, &ref->head, &p->buf);
	return e ? e : put_block(p, &p->maker.header, p->maker.packed);
}

/* A chunk that stands in no file, of pack_stats.stacks. */
static int put_chunk(
	void *context, const struct chunk_header *head, const void *payload, size_t bytes)
{
	struct packer *p = context;
	const struct chunk_ref ref = { .head = *head };
	const struct chunk_buf buf = {
		.ref = &ref, .payload = (uint8_t *)(uintptr_t)payload, .bytes = bytes
	};
	const int e = block_make(&p->maker, head, &buf);
	return e ? e : put_block(p, &p->maker.header, p->maker.packed);
}

/* True: nothing of their pieces is to be kept. */
static bool pack_stacks(struct packer *p, int *ret_e)
{
	*ret_e = p->stats->stacks ? p->stats->stacks(p->t, put_chunk, p) : -ENOSYS;
	const bool done = *ret_e != -ENOSYS;
	*ret_e = done ? *ret_e : 0;
	return done;
}

static int pack_chunks(struct packer *p)
{
	int e;
	const bool without_stacks = pack_stacks(p, &e);
	for (size_t i = 0; i < p->t->chunk_count && !e; i++) {
		if (!without_stacks || p->t->chunks[i].head.kind != CHUNK_STACKS)
			e = pack_chunk(p, i);
		p->stats->chunks++;
		if (p->stats->progress)
			p->stats->progress(p->stats->context, i + 1, p->t->chunk_count);
	}
	return e;
}

/* The extra chunks, which lie in memory. */
static int pack_extras(struct packer *p)
{
	int e = 0;
	for (size_t i = 0; i < p->extra_count && !e; i++) {
		const struct pack_extra *x = &p->extra[i];
		const struct chunk_ref ref = { .head = x->head };
		const struct chunk_buf buf = {
			.ref = &ref, .payload = (uint8_t *)x->payload, .bytes = x->bytes
		};
		e = block_make(&p->maker, &x->head, &buf);
		e = e ? e : put_block(p, &p->maker.header, p->maker.packed);
	}
	return e;
}

static struct trace_header packed_header(const struct packer *p)
{
	struct trace_header h = p->t->header;
	h.form = TRACE_PACKED;
	h.header_bytes = p->t->off.count ? HEADER_WITH_OFF_TIMES : sizeof h;
	add_alone(&h.lost, p->maker.torn);
	store_relaxed(&h.next, p->bytes);
	if (p->rebuilds) {
		h.sampled = 0;
		store_relaxed(&h.optional, load_relaxed(&h.optional) | FEATURE_REBUILT);
	}
	return h;
}

static int write_all(struct packer *p)
{
	struct trace_header h = packed_header(p);
	int e = put(p, &h, sizeof h);
	if (!e && h.header_bytes > sizeof h)
		e = put(p, &p->t->off, sizeof p->t->off);
	if (!e)
		e = pack_chunks(p);
	if (!e)
		e = pack_extras(p);
	h = packed_header(p);
	if (!e && (fseek(p->out, 0, SEEK_SET) || fwrite(&h, sizeof h, 1, p->out) != 1))
		e = -errno;
	if (!e && fflush(p->out))
		e = -errno;
	return e;
}

static int pack_to(struct packer *p, const struct trace *t, FILE *out)
{
	p->t = t;
	p->out = out;
	block_maker_init(&p->maker, LEVEL);
	const int e = write_all(p);
	p->stats->packed_bytes = p->bytes;
	return e;
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

static int pack_and_count(struct packer *p, const struct trace *t, FILE *out)
{
	const int e = pack_to(p, t, out);
	p->stats->records += p->maker.records;
	p->stats->torn += p->maker.torn;
	p->stats->damaged += p->maker.damaged;
	block_maker_fini(&p->maker);
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
	return pack_and_count(&p, t, out);
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
	e = newfile_close(&f, e ? e : pack_and_count(&p, t, f.out));
	return e ? error_set(err, e, "%s can't be written: %s", path, strerror(-e)) : 0;
}
