/* Packing: see pack.h.  One chunk in memory at a time; blocks keep the order of the chunks. */
#include "trace/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "trace/columns.h"
#include "trace/trace.h"

#include "base/banned.h"

#define LEVEL 6

struct packer {
	const struct trace *t;
	FILE *out;
	struct pack_stats *stats;
	struct splitter split;
	struct chunk_buf buf;
	ZSTD_CCtx *zstd;
	uint8_t *columns;
	size_t columns_room;
	uint8_t *packed;
	size_t packed_room;
	uint64_t bytes; /* written so far */
};

static int want(uint8_t **p, size_t *room, size_t bytes)
{
	if (bytes <= *room)
		return 0;
	free(*p);
	*p = malloc(bytes);
	*room = *p ? bytes : 0;
	return *p ? 0 : -ENOMEM;
}

static int put(struct packer *p, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, p->out) != bytes)
		return errno ? -errno : -EIO;
	p->bytes += bytes;
	return 0;
}

static int put_block(struct packer *p, struct block_header *b)
{
	static const uint8_t zeros[8];
	const size_t skip = offsetof(struct block_header, bytes);
	b->magic = BLOCK_MAGIC;
	b->check = hash_fnv32((const char *)b + skip, sizeof(*b) - skip);
	int e = put(p, b, sizeof(*b));
	if (!e)
		e = put(p, p->packed, b->bytes);
	if (!e)
		e = put(p, zeros, -(size_t)b->bytes & 7);
	return e;
}

static int deflate_from(struct packer *p, const uint8_t *data, size_t bytes, struct block_header *b)
{
	int e = want(&p->packed, &p->packed_room, ZSTD_compressBound(bytes));
	if (e)
		return e;
	const size_t n = ZSTD_compress2(p->zstd, p->packed, p->packed_room, data, bytes);
	if (ZSTD_isError(n))
		return -EIO;
	b->bytes = (uint32_t)n;
	b->raw_bytes = (uint32_t)bytes;
	return 0;
}

/* ---- the content of a chunk ---- */

static int split_records(struct packer *p)
{
	struct records it = records_of(&p->buf);
	const struct record *r;
	int e = splitter_begin(&p->split, p->buf.payload);
	while (!e && (r = records_next(&it)))
		e = splitter_add(&p->split, r);
	p->stats->torn += it.torn;
	p->stats->damaged += it.damaged != NULL;
	p->stats->records += p->split.records;
	return e;
}

static int pack_events(struct packer *p, struct block_header *b)
{
	int e = split_records(p);
	const size_t bytes = splitter_bytes(&p->split);
	if (!e)
		e = want(&p->columns, &p->columns_room, bytes);
	if (e)
		return e;
	splitter_put(&p->split, p->columns);
	b->encoding = ENCODING_COLUMNS;
	b->records = p->split.records;
	return deflate_from(p, p->columns, bytes, b);
}

/* Arrays and text without the zeros behind them; whole counters.  Records end by themselves. */
static size_t used_bytes(const struct chunk_buf *buf)
{
	size_t n = buf->bytes;
	if (buf->ref->head.kind == CHUNK_META)
		return n;
	while (n && !buf->payload[n - 1])
		n--;
	n = (n + sizeof(struct counter) - 1) & ~(sizeof(struct counter) - 1);
	return n < buf->bytes ? n : buf->bytes;
}

static int pack_chunk(struct packer *p, size_t i)
{
	struct block_header b = { .chunk = p->t->chunks[i].head };
	int e = trace_load(p->t, i, &p->buf, NULL);
	if (e == -EBADMSG || e == -ENODATA) {
		p->stats->damaged++;
		return 0;
	}
	if (e)
		return e;
	if (b.chunk.kind == CHUNK_EVENTS)
		e = pack_events(p, &b);
	else
		e = deflate_from(p, p->buf.payload, used_bytes(&p->buf), &b);
	b.chunk.state = CHUNK_CLOSED;
	b.chunk.used = b.raw_bytes;
	if (!e && b.encoding == ENCODING_COLUMNS)
		b.chunk.used = (uint32_t)p->buf.bytes;
	return e ? e : put_block(p, &b);
}

static int pack_chunks(struct packer *p)
{
	int e = 0;
	for (size_t i = 0; i < p->t->chunk_count && !e; i++) {
		e = pack_chunk(p, i);
		p->stats->chunks++;
		if (p->stats->progress)
			p->stats->progress(p->stats->context, i + 1, p->t->chunk_count);
	}
	return e;
}

/* ---- the file ---- */

static struct trace_header packed_header(const struct packer *p)
{
	struct trace_header h = p->t->header;
	h.form = TRACE_PACKED;
	h.header_bytes = sizeof(h);
	h.lost += p->stats->torn;
	h.next = p->bytes;
	return h;
}

static int write_all(struct packer *p)
{
	struct trace_header h = packed_header(p);
	int e = put(p, &h, sizeof(h));
	if (!e)
		e = pack_chunks(p);
	h = packed_header(p);
	if (!e && (fseek(p->out, 0, SEEK_SET) || fwrite(&h, sizeof(h), 1, p->out) != 1))
		e = -errno;
	if (!e && fflush(p->out))
		e = -errno;
	return e;
}

static int pack_to(struct packer *p, const struct trace *t, FILE *out)
{
	p->t = t;
	p->out = out;
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	const int e = write_all(p);
	p->stats->packed_bytes = p->bytes;
	return e;
}

static void packer_fini(struct packer *p)
{
	splitter_fini(&p->split);
	chunk_buf_fini(&p->buf);
	ZSTD_freeCCtx(p->zstd);
	free(p->columns);
	free(p->packed);
}

static int copy_to(const struct trace *t, FILE *out)
{
	char piece[65536];
	for (uint64_t at = 0; at < t->size;) {
		const uint64_t left = t->size - at;
		const size_t n = left < sizeof(piece) ? (size_t)left : sizeof(piece);
		const int e = read_at(t->fd, piece, n, at);
		if (e)
			return e;
		if (fwrite(piece, 1, n, out) != n)
			return -errno;
		at += n;
	}
	return fflush(out) ? -errno : 0;
}

static int make(const struct trace *t, FILE *out, struct pack_stats *stats)
{
	struct packer p = { .stats = stats };
	stats->raw_bytes = t->size;
	if (t->header.form == TRACE_PACKED) {
		stats->packed_bytes = t->size;
		return copy_to(t, out);
	}
	const int e = pack_to(&p, t, out);
	packer_fini(&p);
	return e;
}

/* mkstemp() makes files of mode 0600, which is what a trace has. */
static int make_beside(const struct trace *t, const char *dst, struct pack_stats *stats)
{
	char *temp;
	if (asprintf(&temp, "%s.XXXXXX", dst) < 0)
		return -ENOMEM;
	int e = 0;
	const int fd = mkstemp(temp);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		e = -errno;
		if (fd >= 0)
			close(fd);
		goto done;
	}
	e = make(t, out, stats);
	if (fclose(out) && !e)
		e = -errno;
	if (!e && rename(temp, dst))
		e = -errno;
done:
	if (e && fd >= 0)
		unlink(temp);
	free(temp);
	return e;
}

int trace_pack(const char *src, const char *dst, struct pack_stats *stats, struct error *err)
{
	struct trace *t;
	int e = trace_open(src, &t, err);
	if (e)
		return e;
	e = make_beside(t, dst, stats);
	trace_close(t);
	return e ? error_set(err, e, "%s can't be written: %s", dst, strerror(-e)) : 0;
}
