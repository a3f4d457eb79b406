/* Makes compressed blocks of chunks. */
#include "trace/block.h"

#include <string.h>
#include <zstd.h>

#include "base/expect.h"
#include "base/hash.h"
#include "trace/activity.h"

static int deflate_from(struct block_maker *m, const uint8_t *data, size_t bytes)
{
	buffer_want(&m->packed, &m->packed_room, ZSTD_compressBound(bytes));
	const size_t n = ZSTD_compress2(m->zstd, m->packed, m->packed_room, data, bytes);
	if (ZSTD_isError(n))
		return -EIO;
	expect(n <= m->packed_room, "what is packed has room");
	m->header.bytes = (uint32_t)n;
	m->header.raw_bytes = (uint32_t)bytes;
	return 0;
}

static void split_records(struct block_maker *m, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	const struct record *r;
	splitter_begin(&m->split, buf->payload);
	while ((r = records_next(&it)))
		splitter_add(&m->split, r);
	expect(it.damaged || (size_t)(it.end - it.at) < sizeof *r,
		"all records of a chunk are packed");
	m->torn += it.torn;
	m->damaged += it.damaged != NULL;
	m->records += m->split.records;
}

static int make_columns(struct block_maker *m, const struct chunk_buf *buf)
{
	split_records(m, buf);
	const size_t bytes = splitter_bytes(&m->split);
	buffer_want(&m->columns, &m->columns_room, bytes);
	splitter_put(&m->split, m->columns);
	m->header.encoding = ENCODING_COLUMNS;
	m->header.records = m->split.records;
	return deflate_from(m, m->columns, bytes);
}

/* How much of a payload there is before the zeros at its end: mostly it is short, in a long chunk.
 */
static size_t without_zeros(const uint8_t *v, size_t n)
{
	for (uint64_t word = 0; n >= sizeof word; n -= sizeof word) {
		memcpy(&word, v + n - sizeof word, sizeof word);
		if (word)
			break;
	}
	while (n && !v[n - 1])
		n--;
	return n;
}

/* Arrays of records of one size, without the slots behind the last. */
static int make_words(struct block_maker *m, const struct chunk_buf *buf, size_t each)
{
	const size_t used = without_zeros(buf->payload, buf->bytes);
	const size_t count = (used + each - 1) / each, whole = count * each;
	expect(used <= whole && each % 4 == 0, "records of one size are of whole words");
	buffer_want(&m->columns, &m->columns_room, whole ? 2 * whole : 8);
	uint8_t *records = m->columns + whole;
	memset(records, 0, whole);
	memcpy(records, buf->payload, used);
	words_split(records, count, each, m->columns);
	m->header.encoding = ENCODING_WORDS;
	m->header.records = (uint32_t)count;
	return deflate_from(m, m->columns, whole);
}

/* Arrays and text without the zeros behind them; whole counters and accounts.  Records end by
 * themselves. */
static size_t used_bytes(const struct chunk_buf *buf)
{
	size_t n = buf->bytes;
	if (buf->ref->head.kind == CHUNK_META || buf->ref->head.kind == CHUNK_STACKS ||
		buf->ref->head.kind == CHUNK_CALLERS)
		return n;
	n = without_zeros(buf->payload, n);
	static_assert(sizeof(struct thread_account) % sizeof(struct counter) == 0, "whole both");
	n = (n + sizeof(struct thread_account) - 1) & ~(sizeof(struct thread_account) - 1);
	return n < buf->bytes ? n : buf->bytes;
}

static int make_payload(struct block_maker *m, uint16_t kind, const struct chunk_buf *buf)
{
	const size_t each = array_record_bytes(kind);
	if (kind == CHUNK_EVENTS)
		return make_columns(m, buf);
	return each ? make_words(m, buf, each) : deflate_from(m, buf->payload, used_bytes(buf));
}

void block_sign(struct block_header *b)
{
	const size_t skip = offsetof(struct block_header, bytes);
	b->check = hash_fnv32((const char *)b + skip, sizeof *b - skip);
}

int block_make(struct block_maker *m, const struct chunk_header *head, const struct chunk_buf *buf)
{
	struct block_header *b = &m->header;
	*b = (struct block_header){ .magic = BLOCK_MAGIC, .chunk = *head };
	const int e = make_payload(m, head->kind, buf);
	if (e)
		return e;
	b->chunk.state = CHUNK_CLOSED;
	b->chunk.used = b->encoding == ENCODING_COLUMNS ? (uint32_t)buf->bytes : b->raw_bytes;
	expect(b->raw_bytes <= CHUNK_LIMIT, "no block is larger than readers take");
	block_sign(b);
	return 0;
}

void block_maker_init(struct block_maker *m, int level)
{
	*m = (struct block_maker){ .zstd = xcheck(ZSTD_createCCtx()) };
	ZSTD_CCtx_setParameter(m->zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(m->zstd, ZSTD_c_checksumFlag, 1);
}

void block_maker_fini(struct block_maker *m)
{
	splitter_fini(&m->split);
	ZSTD_freeCCtx(m->zstd);
	free_all(m->columns, m->packed);
}

void block_writer_put(struct block_writer *w, const void *data, size_t bytes)
{
	if (!w->failed && fwrite(data, 1, bytes, w->out) != bytes)
		w->failed = errno ? -errno : -EIO;
	w->bytes += bytes;
}

void block_writer_block(
	struct block_writer *w, const struct block_header *b, const uint8_t *payload)
{
	static const uint8_t zeros[8];
	block_writer_put(w, b, sizeof *b);
	block_writer_put(w, payload, b->bytes);
	block_writer_put(w, zeros, -(size_t)b->bytes & 7);
	expect(w->bytes % 8 == 0, "blocks begin at whole words");
}

void block_writer_chunk(
	struct block_writer *w, const struct chunk_header *head, const void *payload, size_t bytes)
{
	const struct chunk_ref ref = { .head = *head };
	const struct chunk_buf buf = {
		.ref = &ref, .payload = (uint8_t *)(uintptr_t)payload, .bytes = bytes
	};
	if (!w->failed)
		w->failed = block_make(&w->maker, head, &buf);
	if (!w->failed)
		block_writer_block(w, &w->maker.header, w->maker.packed);
}

int block_writer_finish(struct block_writer *w, const struct trace_header *h)
{
	if (!w->failed && (fseek(w->out, 0, SEEK_SET) || fwrite(h, sizeof *h, 1, w->out) != 1 ||
				  fflush(w->out)))
		w->failed = errno ? -errno : -EIO;
	return w->failed;
}
