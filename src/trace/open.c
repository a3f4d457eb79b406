/*
 * Opens a trace: it checks the header, walks the chunks or blocks once, fits the clock and parses
 * the schema. Senseless parts are skipped and noted as damage. Only a file that cannot be a trace
 * is refused.
 */
#include "base/atomic.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/expect.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/unpack.h"
#include "trace/merge.h"

int read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	char *p = to;
	while (bytes) {
		const ssize_t n = pread(fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		p += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Internal to src/trace: where in the file something was left out.  Literal `what`. */
static void trace_damage(struct trace *t, uint64_t offset, uint64_t bytes, const char *what)
{
	t->damage_count++;
	t->damage_bytes += bytes;
	struct damage *last = t->damage.n ? &t->damage.v[t->damage.n - 1] : NULL;
	if (last && last->what == what && last->offset + last->bytes == offset) {
		last->bytes += bytes;
		t->damage_count--;
		return;
	}
	if (t->damage.n >= DAMAGE_KEPT)
		return;
	*array_push(&t->damage) = (struct damage){ .offset = offset, .bytes = bytes, .what = what };
}

static int check_file(int fd, const char *path, uint64_t *ret_size, struct error *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, "%s is a directory, not a trace", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a regular file, so not a trace", path);
	if (st.st_size == 0)
		return error_set(err, -EINVAL, "%s is empty: nothing was recorded", path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int check_version(const struct trace_header *h, const char *path, struct error *err)
{
	if (h->version > TRACE_VERSION)
		return error_set(err, -ENOTSUP,
			"%s was written by a newer Weir: its format is version %u, this one reads "
			"up to %u",
			path, h->version, TRACE_VERSION);
	if (h->required)
		return error_set(err, -ENOTSUP,
			"%s needs features that this Weir does not have (bits 0x%" PRIx64 ")", path,
			h->required);
	return 0;
}

static int check_header(const struct trace *t, const char *path, struct error *err)
{
	const struct trace_header *h = &t->header;
	if (h->version == 0 && h->header_bytes == 0) /* recorder.c, begin_file */
		return error_set(err, -EINVAL,
			"%s was begun and not written: its recorder was killed, and it is empty",
			path);
	if (h->version == 0 || h->form > TRACE_PACKED || h->header_bytes < sizeof *h ||
		h->header_bytes % 8)
		return error_set(err, -EINVAL, "%s is damaged: its header makes no sense", path);
	if (h->form == TRACE_RAW && h->header_bytes % TRACE_GRAIN)
		return error_set(err, -EINVAL, "%s is damaged: its header makes no sense", path);
	if (h->header_bytes > t->size)
		return error_set(err, -EINVAL,
			"%s is truncated: %" PRIu64 " bytes are left, its header alone has %u",
			path, t->size, h->header_bytes);
	return 0;
}

/* Older traces have none. */
static void read_off_times(struct trace *t)
{
	if (t->header.header_bytes < HEADER_WITH_OFF_TIMES ||
		read_at(t->fd, &t->off, sizeof t->off, sizeof t->header) ||
		t->off.count > OFF_TIMES)
		t->off.count = 0;
}

static int read_header(struct trace *t, const char *path, struct error *err)
{
	struct trace_header *h = &t->header;
	const size_t there = t->size < sizeof *h ? (size_t)t->size : sizeof *h;
	const int e = read_at(t->fd, h, there, 0);
	if (e)
		return error_set(err, e, "%s can't be read: %s", path, strerror(-e));
	const size_t magic = MIN(there, 8);
	if (memcmp(h->magic, TRACE_MAGIC, magic) != 0)
		return error_set(err, -EINVAL,
			"%s is not a trace. Make one from another tool's file with weir import",
			path);
	if (there < sizeof *h)
		return error_set(err, -EINVAL,
			"%s is truncated: it ends after %" PRIu64 " bytes, inside its header", path,
			t->size);
	h->host[sizeof h->host - 1] = '\0';
	h->program[sizeof h->program - 1] = '\0';
	if (!(load_relaxed(&h->optional) & FEATURE_ACCOUNTS)) {
		store_relaxed(&h->overwritten, 0);
		store_relaxed(&h->unaccounted, 0);
	}
	if (!(load_relaxed(&h->optional) & FEATURE_STACKS))
		store_relaxed(&h->lost_stacks, 0);
	int v = check_version(h, path, err);
	if (!v)
		v = check_header(t, path, err);
	if (!v)
		read_off_times(t);
	return v;
}

static uint32_t process_of(struct trace *t, const struct chunk_header *c)
{
	const bool named = load_relaxed(&t->header.optional) & FEATURE_ACCOUNTS && c->identity;
	const struct trace_process *p = MAP_ROW(&t->process_map,
		MAP_KEY(c->pid, named ? c->identity : c->process_start), &t->processes,
		(struct trace_process){ .pid = c->pid, .start = c->process_start });
	return (uint32_t)(p - t->processes.v);
}

/* A chunk of drained chunks that was open when the walk came by: more may have been added. */
struct container {
	uint64_t at; /* behind the last block seen */
	uint64_t end;
};

struct chunk_list {
	ARRAY(struct chunk_ref) refs;
	ARRAY(struct container) open;
	uint64_t walked; /* every chunk before this offset has been looked at */
};

static void add_clock(struct trace *t, const struct clock_pair *pair)
{
	clock_fit_add(&t->clock, pair);
	t->last_ticks = MAX(pair->ticks, t->last_ticks);
}

static void add_chunk(struct trace *t, struct chunk_list *list, struct chunk_ref ref)
{
	ref.head.thread[sizeof ref.head.thread - 1] = '\0';
	if (chunk_has_process(ref.head.kind))
		ref.process = process_of(t, &ref.head);
	add_clock(t, &ref.head.open);
	add_clock(t, &ref.head.last);
	expect(ref.process < t->processes.n || !chunk_has_process(ref.head.kind),
		"the process of a chunk is known");
	*array_push(&list->refs) = ref;
}

bool chunk_sane(const struct chunk_header *c, uint64_t left)
{
	return c->bytes >= TRACE_GRAIN && c->bytes % TRACE_GRAIN == 0 && c->bytes <= left &&
	       c->bytes <= CHUNK_LIMIT && c->kind >= CHUNK_EVENTS && c->state >= CHUNK_OPEN &&
	       c->state <= CHUNK_FREE;
}

bool block_sane(const struct block_header *b)
{
	const size_t skip = offsetof(struct block_header, bytes);
	return b->magic == BLOCK_MAGIC &&
	       b->check == hash_fnv32((const char *)b + skip, sizeof *b - skip);
}

/* Columns are joined after they are decompressed, to what the chunk had in use. */
static bool block_fits(struct trace *t, const struct block_header *b)
{
	const uint64_t used = b->encoding == ENCODING_COLUMNS ? b->chunk.used : 0;
	uint64_t bytes = used > b->raw_bytes ? used : b->raw_bytes;
	/* Counters are zeros but for a few, one chunk a thread, and summed up without being kept.
	 */
	if (b->chunk.kind == CHUNK_COUNTERS && bytes <= TRACE_GRAIN)
		bytes /= 16;
	/* Calls are read chunk by chunk, and shrink to next to nothing where all are alike. */
	if (b->chunk.kind == CHUNK_EVENTS)
		bytes /= UNPACK_CALLS;
	if (bytes > unpack_most(t->size) - t->unpacked)
		return false;
	t->unpacked += bytes;
	expect(t->unpacked <= unpack_most(t->size), "blocks unpack to no more than the limit");
	return true;
}

/*
 * The block at *at, which ends before `end`; moves *at behind it.  1: no block fits there,
 * or its header is damaged, which is noted.
 */
static int walk_block(struct trace *t, struct chunk_list *list, uint64_t end, uint64_t *at)
{
	struct block_header b;
	const int e = read_at(t->fd, &b, sizeof b, *at);
	if (e)
		return e;
	if (!block_sane(&b)) {
		trace_damage(t, *at, end - *at, "a block header is damaged");
		*at = end;
		return 1;
	}
	const uint64_t payload = *at + sizeof b;
	if (b.bytes > end - payload)
		return 1;
	const uint64_t padded = ((uint64_t)b.bytes + 7) & ~7ull;
	*at = padded > end - payload ? end : payload + padded;
	expect(*at >= payload && *at <= end, "a walk over blocks goes forwards, to the end");
	if (!block_fits(t, &b)) {
		trace_damage(t, payload - sizeof b, *at - (payload - sizeof b),
			"blocks unpack to more than a file of this size may hold");
		return 0;
	}
	add_chunk(t, list, chunk_ref_of_block(&b, payload));
	return 0;
}

/* The blocks of a container, up to the first word of zeros. */
static int walk_blocks(struct trace *t, struct chunk_list *list, struct container *c)
{
	int e = 0;
	while (!e && c->end - c->at >= sizeof(struct block_header)) {
		uint32_t magic;
		e = read_at(t->fd, &magic, sizeof magic, c->at);
		if (e || !magic)
			break;
		e = walk_block(t, list, c->end, &c->at);
	}
	return MIN(e, 0);
}

static int walk_container(
	struct trace *t, struct chunk_list *list, const struct chunk_header *head, uint64_t at)
{
	const uint32_t room = head->bytes - CHUNK_PAYLOAD;
	const bool open = head->state == CHUNK_OPEN;
	struct container c = { .at = at, .end = at + (open ? room : head->used) };
	const int e = walk_blocks(t, list, &c);
	if (open && !e)
		*array_push(&list->open) = c;
	return e;
}

/* Moves *at, behind a granule that is not used, behind all that the file has no blocks for. */
static void pass_hole(struct trace *t, uint64_t end, uint64_t *at)
{
	const off_t data = lseek(t->fd, (off_t)*at, SEEK_DATA);
	uint64_t next = data < 0 ? (errno == ENXIO ? end : *at) : (uint64_t)data;
	next = next / TRACE_GRAIN * TRACE_GRAIN;
	t->unused_granules++;
	if (next <= *at)
		return;
	next = next > end ? end / TRACE_GRAIN * TRACE_GRAIN : next;
	expect(next >= *at, "a walk over holes goes forwards");
	t->unused_granules += (next - *at) / TRACE_GRAIN;
	*at = next;
}

/* One chunk of a raw file, or one granule that holds none; moves *at behind it. */
static int walk_granule(struct trace *t, struct chunk_list *list, uint64_t end, uint64_t *at)
{
	struct chunk_header c;
	const uint64_t offset = *at;
	int e = read_at(t->fd, &c, sizeof c, offset);
	if (e)
		return e;
	*at += TRACE_GRAIN;
	if (c.magic != CHUNK_MAGIC) {
		if (c.magic == 0 && chunk_sane(&c, end - offset)) { /* one that is being wiped */
			*at = offset + c.bytes;
			t->unused_granules += c.bytes / TRACE_GRAIN;
		} else if (c.magic == 0)
			pass_hole(t, end, at);
		else
			trace_damage(t, offset, TRACE_GRAIN, "no chunk begins here");
		return 0;
	}
	if (!chunk_sane(&c, end - offset)) {
		trace_damage(t, offset, TRACE_GRAIN, "a chunk header makes no sense");
		return 0;
	}
	*at = offset + c.bytes;
	if (c.state == CHUNK_FREE)
		return 0;
	const uint32_t room = c.bytes - CHUNK_PAYLOAD;
	if (c.state != CHUNK_OPEN && c.used > room) {
		trace_damage(t, offset, 0, "a chunk claims more than it holds");
		c.used = room;
	}
	if (c.kind == CHUNK_PACKED)
		return walk_container(t, list, &c, offset + CHUNK_PAYLOAD);
	add_chunk(t, list,
		(struct chunk_ref){ .offset = offset + CHUNK_PAYLOAD, .room = room, .head = c });
	return 0;
}

/* A thread id may come again in a process, and then counts its chunks from 0 once more: what tells
 * two chunks apart for certain is when they were begun. */
static int by_owner(const void *one, const void *two)
{
	const struct chunk_header *a = &((const struct chunk_ref *)one)->head;
	const struct chunk_header *b = &((const struct chunk_ref *)two)->head;
	int order = ORDER(a->identity, b->identity) ?: ORDER(a->open.ticks, b->open.ticks);
	order = order ?: ORDER(a->process_start, b->process_start) ?: ORDER(a->pid, b->pid);
	return order ?: ORDER(a->tid, b->tid) ?: ORDER(a->kind, b->kind) ?: ORDER(a->seq, b->seq);
}

/* A chunk that was being drained when the file was left stands there twice: as itself and as
 * a block.  The block stays. */
static void drop_twins(struct chunk_list *list)
{
	size_t blocks = 0, kept = 0;
	struct chunk_ref *sorted = xmalloc((list->refs.n + 1) * sizeof *sorted);
	for (size_t i = 0; i < list->refs.n; i++)
		if (list->refs.v[i].packed)
			sorted[blocks++] = list->refs.v[i];
	qsort(sorted, blocks, sizeof *sorted, by_owner);
	array_each(const struct chunk_ref, ref, list->refs)
		if (ref->packed || !chunk_is_drained(ref->head.kind) ||
			!bsearch(ref, sorted, blocks, sizeof *sorted, by_owner))
			list->refs.v[kept++] = *ref;
	list->refs.n = kept;
	free(sorted);
}

static int walk_raw(struct trace *t, struct chunk_list *list)
{
	uint64_t end = load_relaxed(&t->header.next);
	if (end > t->size) {
		/* Room that was taken when the disk was full, or by who was killed before it was
		 * there: what did not fit is counted, and what is missing shows (accounts.h). */
		const bool counted = load_relaxed(&t->header.optional) & FEATURE_ACCOUNTS &&
				     t->header.state == TRACE_RECORDING;
		const bool refused = counted || load_relaxed(&t->header.lost) ||
				     load_relaxed(&t->header.lost_ranges);
		if (refused && t->size % TRACE_GRAIN == 0)
			t->unused_granules += (end - t->size) / TRACE_GRAIN;
		else
			trace_damage(t, t->size, end - t->size, "the file was cut off");
		end = t->size;
	}
	if (end < t->header.header_bytes) {
		trace_damage(t, 0, 0, "the header does not say where the chunks end");
		end = t->size;
	}
	uint64_t at = t->header.header_bytes;
	while (end - at >= TRACE_GRAIN) {
		const int e = walk_granule(t, list, end, &at);
		if (e)
			return e;
	}
	if (at < end)
		trace_damage(t, at, end - at, "the file was cut off");
	list->walked = at;
	return 0;
}

/* Containers that were begun after the walk. */
static int walk_later(struct trace *t, struct chunk_list *list)
{
	struct trace_header now;
	struct stat st;
	if (read_at(t->fd, &now, sizeof now, 0) || fstat(t->fd, &st))
		return 0;
	const uint64_t size = (uint64_t)st.st_size, end = MIN(load_relaxed(&now.next), size);
	int e = 0;
	for (uint64_t at = list->walked; !e && at < end && end - at >= TRACE_GRAIN;) {
		struct chunk_header c;
		if (read_at(t->fd, &c, sizeof c, at))
			break;
		const bool sane = c.magic == CHUNK_MAGIC && chunk_sane(&c, end - at) &&
				  c.used <= c.bytes - CHUNK_PAYLOAD;
		if (sane && c.kind == CHUNK_PACKED)
			e = walk_container(t, list, &c, at + CHUNK_PAYLOAD);
		at += sane ? c.bytes : TRACE_GRAIN;
	}
	return e;
}

/*
 * While we walked, chunks ahead of us may have been drained into containers behind us, or into
 * new ones: then they were free when we came to them.  A block is there before its chunk is
 * free, so a second look at the containers finds what the first walk passed over.
 */
static int walk_again(struct trace *t, struct chunk_list *list)
{
	int e = 0;
	for (size_t i = 0, n = list->open.n; !e && i < n; i++)
		e = walk_blocks(t, list, &list->open.v[i]);
	return e ? e : walk_later(t, list);
}

static int walk_packed(struct trace *t, struct chunk_list *list)
{
	uint64_t at = t->header.header_bytes;
	int e = 0;
	while (!e && t->size - at >= sizeof(struct block_header))
		e = walk_block(t, list, t->size, &at);
	if (e < 0)
		return e;
	if (at < t->size)
		trace_damage(t, at, t->size - at, "the file was cut off");
	else if (load_relaxed(&t->header.next) > t->size)
		trace_damage(t, t->size, load_relaxed(&t->header.next) - t->size,
			"the file was cut off");
	return 0;
}

static int walk(struct trace *t, const char *path, struct error *err)
{
	struct chunk_list list = { 0 };
	add_clock(t, &t->header.start);
	add_clock(t, &t->header.end);
	int e = t->header.form == TRACE_RAW ? walk_raw(t, &list) : walk_packed(t, &list);
	if (!e && t->header.form == TRACE_RAW && t->header.state == TRACE_RECORDING) {
		t->block_index = block_index_new();
		e = walk_again(t, &list);
	}
	if (!e && t->header.form == TRACE_RAW)
		drop_twins(&list);
	array_free(&list.open);
	t->chunks = list.refs.v;
	t->chunk_count = list.refs.n;
	clock_fit_finish(&t->clock, (enum trace_clock)t->header.clock, &t->header.start);
	if (e && e != -ENODATA)
		return error_set(err, e, "%s can't be read: %s", path, strerror(-e));
	if (e)
		trace_damage(t, t->size, 0, "the file became shorter while it was read");
	return 0;
}

int schema_load(struct schema *s, const char *text, size_t bytes, void **ret_memory)
{
	const size_t need = schema_need(text, bytes);
	struct arena arena = { .base = xmalloc(need), .size = need };
	*ret_memory = arena.base;
	return schema_parse(s, &arena, text, bytes);
}

static int load_schema(struct trace *t, const char *path, struct error *err)
{
	struct chunk_buf buf = { 0 };
	int e = 0;
	for (size_t i = 0; i < t->chunk_count && !t->schema.fn_count && !e; i++) {
		if (t->chunks[i].head.kind != CHUNK_SCHEMA)
			continue;
		e = trace_load(t, i, &buf, NULL);
		if (trace_lost(e)) {
			trace_damage(t, t->chunks[i].offset, t->chunks[i].room,
				"the schema can't be read");
			e = 0;
			continue;
		}
		if (e)
			break;
		free(t->schema_memory);
		const char *text = (const char *)buf.payload;
		e = schema_load(&t->schema, text, strnlen(text, buf.bytes), &t->schema_memory);
	}
	chunk_buf_fini(&buf);
	return e ? error_set(err, e, "%s: the schema can't be read: %s", path, strerror(-e)) : 0;
}

static int open_file(struct trace *t, const char *path, struct error *err)
{
	t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		return error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	int e = check_file(t->fd, path, &t->size, err);
	if (!e)
		e = read_header(t, path, err);
	if (!e)
		e = walk(t, path, err);
	/* The file's growth since looks like room that nobody used. */
	if (!e && t->header.stopped == STOP_CUT && !t->damage_count)
		trace_damage(t, t->size, 0, "the file was cut off while it was recorded");
	if (!e)
		e = load_schema(t, path, err);
	return e;
}

int trace_open(const char *path, struct trace **ret_t, struct error *err)
{
	struct trace *t = xcalloc(1, sizeof *t);
	const int e = open_file(t, path, err);
	if (e) {
		trace_close(t);
		return e;
	}
	*ret_t = t;
	return 0;
}

void trace_close(struct trace *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	block_index_free(t->block_index);
	free_all(t->chunks, t->schema_memory);
	merge_free(t);
	array_free(&t->processes, &t->excluded, &t->parts, &t->asked);
	free(t->launched);
	array_free(&t->damage);
	map_fini(&t->process_map);
	free(t);
}

uint64_t trace_ns(const struct trace *t, uint64_t ticks)
{
	return clock_fit_ns(&t->clock, ticks);
}

uint64_t trace_since_ns(const struct trace *t, uint64_t ticks)
{
	const uint64_t ns = trace_ns(t, ticks);
	return ns > t->header.start.mono_ns ? ns - t->header.start.mono_ns : 0;
}

uint64_t trace_span_ns(const struct trace *t, uint64_t ticks)
{
	return clock_fit_span_ns(&t->clock, ticks);
}
