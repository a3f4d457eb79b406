/*
 * Loads a chunk's payload and walks through its records.
 *
 * A closed or packed chunk is read once. An open chunk of a live file is read at least twice. The
 * first read shows how far its records are committed, and the second has them whole, in whatever
 * order the kernel copied.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/activity.h"
#include "trace/columns.h"
#include "trace/merge.h"
#include "trace/part.h"
#include "trace/trace.h"

void buffer_want(uint8_t **p, size_t *room, size_t bytes)
{
	if (bytes <= *room)
		return;
	free(*p);
	*p = xmalloc(bytes);
	*room = bytes;
}

/* How many bytes of records are committed or passed over as torn. */
static size_t committed_bytes(const uint8_t *payload, size_t bytes, uint64_t *ret_torn)
{
	struct records it = { .at = payload, .end = payload + bytes, .until_zero = true };
	while (records_next(&it))
		;
	*ret_torn = it.torn;
	expect(it.at >= payload && (size_t)(it.at - payload) <= bytes,
		"records end inside their chunk");
	return (size_t)(it.at - payload);
}

static bool is_records(const struct chunk_header *c)
{
	return c->kind == CHUNK_EVENTS || c->kind == CHUNK_META || c->kind == CHUNK_STACKS;
}

/* Again and again until no record is finished in between: then none was finished while it
 * was copied. */
static int load_committed(const struct trace *t, const struct chunk_ref *ref, struct chunk_buf *buf)
{
	uint64_t before, torn;
	buf->bytes = committed_bytes(buf->payload, buf->bytes, &torn);
	do {
		before = torn;
		const int e = read_at(t->fd, buf->payload, buf->bytes, ref->offset);
		if (e)
			return e;
		committed_bytes(buf->payload, buf->bytes, &torn);
	} while (torn < before);
	return 0;
}

/*
 * A chunk of a live file may be drained, and begun anew, after the file was opened.  Its date
 * goes before its content does, and no two of a thread's are begun at one time; one that is
 * free is still what it was.
 */
static int check_same(const struct trace *t, const struct chunk_ref *ref)
{
	struct chunk_header now;
	const struct chunk_header *was = &ref->head;
	const int e = read_at(t->fd, &now, sizeof now, ref->offset - CHUNK_PAYLOAD);
	if (e)
		return e;
	const bool same = now.magic == CHUNK_MAGIC && now.pid == was->pid && now.tid == was->tid &&
			  now.process_start == was->process_start &&
			  now.identity == was->identity && now.open.ticks == was->open.ticks;
	return same ? 0 : -ENODATA;
}

static int load_raw(const struct trace *t, const struct chunk_ref *ref, struct chunk_buf *buf)
{
	const bool open = ref->head.state == CHUNK_OPEN;
	const size_t bytes = open ? ref->room : ref->head.used;
	buffer_want(&buf->payload, &buf->payload_room, bytes ? bytes : 8);
	int e = read_at(t->fd, buf->payload, bytes, ref->offset);
	if (e)
		return e;
	buf->bytes = bytes;
	if (open && is_records(&ref->head))
		e = load_committed(t, ref, buf);
	return e ? e : check_same(t, ref);
}

static int inflate_to(struct chunk_buf *buf, uint8_t *to, size_t raw_bytes, size_t packed_bytes)
{
	if (!buf->zstd)
		buf->zstd = xcheck(ZSTD_createDCtx());
	const size_t n = ZSTD_decompressDCtx(buf->zstd, to, raw_bytes, buf->packed, packed_bytes);
	return ZSTD_isError(n) || n != raw_bytes ? -EBADMSG : 0;
}

/* A frame says how large its content is; a lie would make us take memory for nothing. */
static bool raw_bytes_agree(const struct chunk_ref *ref, const struct chunk_buf *buf)
{
	return ref->raw_bytes <= CHUNK_LIMIT &&
	       ZSTD_getFrameContentSize(buf->packed, ref->room) == ref->raw_bytes;
}

static int join(struct chunk_buf *buf, const struct chunk_ref *ref)
{
	struct last_table last;
	const int64_t bytes = columns_joined_bytes(buf->columns, ref->raw_bytes, ref->records);
	if (bytes < 0)
		return (int)bytes;
	if (bytes > ref->head.used) /* what trace_open() counted */
		return -EBADMSG;
	expect(bytes % 8 == 0, "records are of whole words");
	buffer_want(&buf->payload, &buf->payload_room, bytes ? (size_t)bytes : 8);
	last_table_init(&last, &buf->last, &buf->last_room);
	const int e = columns_join(buf->columns, ref->raw_bytes, ref->records, buf->payload, &last);
	if (!e)
		buf->bytes = (size_t)bytes;
	return e;
}

static int join_words(struct chunk_buf *buf, const struct chunk_ref *ref)
{
	const size_t each = array_record_bytes(ref->head.kind);
	if (!each || ref->raw_bytes != (uint64_t)ref->records * each)
		return -EBADMSG;
	buffer_want(&buf->payload, &buf->payload_room, ref->raw_bytes ? ref->raw_bytes : 8);
	words_join(buf->columns, ref->records, each, buf->payload);
	buf->bytes = ref->raw_bytes;
	return 0;
}

static int load_packed(const struct trace *t, const struct chunk_ref *ref, struct chunk_buf *buf)
{
	const bool columns = ref->encoding != ENCODING_ZSTD;
	uint8_t **to = columns ? &buf->columns : &buf->payload;
	size_t *room = columns ? &buf->columns_room : &buf->payload_room;
	if (ref->encoding > ENCODING_WORDS || ref->room > CHUNK_LIMIT)
		return -EBADMSG;
	buffer_want(&buf->packed, &buf->packed_room, ref->room ? ref->room : 8);
	int e = read_at(t->fd, buf->packed, ref->room, ref->offset);
	if (!e && !raw_bytes_agree(ref, buf))
		e = -EBADMSG;
	if (!e)
		buffer_want(to, room, ref->raw_bytes ? ref->raw_bytes : 8);
	if (!e)
		e = inflate_to(buf, *to, ref->raw_bytes, ref->room);
	if (!e && columns)
		return ref->encoding == ENCODING_WORDS ? join_words(buf, ref) : join(buf, ref);
	if (!e)
		buf->bytes = ref->raw_bytes;
	return e;
}

static int load_own(const struct trace *t, const struct chunk_ref *ref, struct chunk_buf *buf)
{
	struct chunk_ref block;
	const int e = ref->packed ? load_packed(t, ref, buf) : load_raw(t, ref, buf);
	return e == -ENODATA && !ref->packed && block_index_find(t, ref, &block)
		       ? load_packed(t, &block, buf)
		       : e;
}

int trace_load(const struct trace *t, size_t i, struct chunk_buf *buf, struct error *err)
{
	if (!expect(i < t->chunk_count, "the chunk is one of the trace's"))
		return -EINVAL;
	const struct chunk_ref *ref = &t->chunks[i];
	expect(!chunk_has_process(ref->head.kind) || ref->process < t->processes.n,
		"the process of a chunk is known");
	buf->bytes = 0;
	int e = ref->source ? trace_load(merge_owner(t, ref), ref->number, buf, NULL)
			    : load_own(t, ref, buf);
	buf->ref = ref;
	buf->last_ticks = t->last_ticks;
	if (!e && ref->source)
		merge_apply(t, buf);
	if (!e && !expect(buf->bytes <= buf->payload_room, "content is inside its buffer"))
		e = -EBADMSG;
	if (!e && t->leaves_out && ref->head.kind == CHUNK_DEVICE)
		activity_filter_apply(t, buf);
	if (!e && t->parts.n && !buf->whole)
		part_apply(t, buf);
	if (!e)
		return 0;
	buf->bytes = 0;
	return error_set(err, e, "chunk %zu: %s", i,
		e == -EBADMSG ? "its content is damaged" : strerror(-e));
}

bool trace_has(const struct trace *t, enum chunk_kind kind)
{
	for (size_t i = 0; i < t->chunk_count; i++)
		if (t->chunks[i].head.kind == kind)
			return true;
	return false;
}

int trace_next(const struct trace *t, enum chunk_kind kind, size_t *at, struct chunk_buf *buf,
	uint64_t *damaged)
{
	return trace_next_of(t, 1u << kind, at, buf, damaged);
}

int trace_next_of(
	const struct trace *t, uint32_t kinds, size_t *at, struct chunk_buf *buf, uint64_t *damaged)
{
	while (*at < t->chunk_count) {
		const size_t i = (*at)++;
		const unsigned kind = t->chunks[i].head.kind;
		if (kind >= 32 || !(kinds >> kind & 1))
			continue;
		const int e = trace_load(t, i, buf, NULL);
		if (!e)
			return 1;
		if (!trace_lost(e)) {
			chunk_buf_fini(buf);
			return e;
		}
		if (damaged)
			(*damaged)++;
	}
	chunk_buf_fini(buf);
	return 0;
}

void chunk_buf_fini(struct chunk_buf *buf)
{
	if (!buf)
		return;
	free_all(buf->payload, buf->packed, buf->columns, buf->last);
	ZSTD_freeDCtx(buf->zstd);
	*buf = (struct chunk_buf){ .whole = buf->whole, .history = buf->history };
}

struct records records_of(const struct chunk_buf *buf)
{
	struct records it = { .at = buf->payload, .end = buf->payload + buf->bytes };
	if (!buf->bytes)
		it.at = it.end = NULL;
	return it;
}

static const struct record *stop(struct records *it, const char *damaged)
{
	it->damaged = damaged;
	if (!it->until_zero)
		it->at = it->end;
	else
		it->end = it->at;
	return NULL;
}

const struct record *records_next(struct records *it)
{
	while ((size_t)(it->end - it->at) >= sizeof(struct record)) {
		const struct record *r = (const struct record *)it->at;
		const size_t bytes = r->words * sizeof(uint64_t);
		if (!r->words && !r->fn && !r->dur)
			return stop(it, NULL);
		if (r->words < RECORD_WORDS)
			return stop(it, "a record is too short");
		if (bytes > (size_t)(it->end - it->at))
			return stop(it, "a record runs beyond its chunk");
		it->at += bytes;
		expect_slow(it->at <= it->end, "a record ends inside its chunk");
		if (r->fn)
			return r;
		it->torn++;
	}
	return NULL;
}

const char *record_text(const struct record *r, unsigned args, size_t *ret_bytes)
{
	const size_t before = (RECORD_WORDS + args) * sizeof(uint64_t);
	const size_t all = r->words * sizeof(uint64_t);
	const size_t room = all > before ? all - before : 0;
	*ret_bytes = MIN(r->aux, room);
	return room ? (const char *)(r->arg + args) : "";
}

ORDERING(number_order, struct launch_number, ORDER(a->process, b->process),
	ORDER(a->correlation, b->correlation))

void activity_filter_add(struct trace *t, uint32_t process, uint64_t correlation)
{
	*array_push(&t->excluded) = (struct launch_number){ process, correlation };
	t->excluded_activities++;
}

void activity_filter_finish(struct trace *t)
{
	size_t n = 0;
	SORT(t->excluded, number_order);
	for (size_t i = 0; i < t->excluded.n; i++)
		if (!n || number_order(&t->excluded.v[n - 1], &t->excluded.v[i]) != 0)
			t->excluded.v[n++] = t->excluded.v[i];
	t->excluded.n = n;
	t->leaves_out = n > 0;
}

static bool is_excluded(const struct trace *t, uint32_t process, uint64_t correlation)
{
	const struct launch_number key = { process, correlation };
	const size_t i = SEARCH(k, 0, t->excluded.n, number_order(&t->excluded.v[k], &key) < 0);
	return i < t->excluded.n && number_order(&t->excluded.v[i], &key) == 0;
}

void activity_filter_apply(const struct trace *t, struct chunk_buf *buf)
{
	const size_t each = sizeof(struct gpu_activity);
	for (size_t at = 0; buf->bytes - at >= each; at += each) {
		struct gpu_activity *w = (struct gpu_activity *)(buf->payload + at);
		if (w->valid & GPU_HAS_CORRELATION &&
			is_excluded(t, buf->ref->process, w->correlation))
			w->kind = 0;
	}
}
