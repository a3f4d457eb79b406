/* Trace files: what is refused, what is read, what survives packing, following a live file. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "maker.h"
#include "base/expect.h"
#include "trace/block.h"
#include "trace/meta.h"
#include "trace/pack.h"
#include "trace/tail.h"
#include "trace/trace.h"

#define FILE_NAME "test_trace.weir"
#define PACKED    "test_trace.packed"

static const struct record sync_call = { .dur = 100, .fn = FN_SYNC, .words = 4 };

static struct record call_at(uint64_t ticks)
{
	struct record r = sync_call;
	r.ticks = ticks;
	return r;
}

/* count calls of one thread, then the end. */
static void make_calls(int count, bool open)
{
	const uint64_t stream = 7;
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "worker");
	for (int i = 0; i < count; i++)
		maker_put(m, t, call_at(2000000 + (uint64_t)i * 1000), &stream);
	maker_finish(m, 9000000, open);
}

static struct trace *must_open(const char *path)
{
	struct trace *t = NULL;
	struct error err = { .text = "" };
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void must_refuse(const char *path, const char *why)
{
	struct trace *t = NULL;
	struct error err = { .text = "" };
	assert_true(trace_open(path, &t, &err) < 0);
	assert_null(t);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static uint64_t count_records(const struct trace *t, uint64_t *ret_torn)
{
	struct chunk_buf buf = { 0 };
	uint64_t n = 0, torn = 0;
	for (size_t i = 0; i < t->chunk_count; i++) {
		if (t->chunks[i].head.kind != CHUNK_EVENTS || trace_load(t, i, &buf, NULL))
			continue;
		struct records it = records_of(&buf);
		while (records_next(&it))
			n++;
		torn += it.torn;
	}
	chunk_buf_fini(&buf);
	*ret_torn = torn;
	return n;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "w");
	assert_true(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f));
}

static void change_header(void (*change)(struct trace_header *h))
{
	struct trace_header h;
	FILE *f = fopen(FILE_NAME, "r+");
	assert_true(f && fread(&h, sizeof h, 1, f) == 1);
	change(&h);
	rewind(f);
	assert_true(fwrite(&h, sizeof h, 1, f) == 1 && !fclose(f));
}

static void newer(struct trace_header *h)
{
	h->version = 2;
}

static void demanding(struct trace_header *h)
{
	h->required = 4;
}

static void senseless(struct trace_header *h)
{
	h->header_bytes = 12;
}

static void what_is_no_trace_is_refused(void **state)
{
	must_refuse("does/not/exist", "No such file");
	must_refuse(".", "is a directory");
	must_refuse("/dev/null", "not a regular file");
	write_file(FILE_NAME, "", 0);
	must_refuse(FILE_NAME, "is empty");
	write_file(FILE_NAME,
		"\x7f"
		"ELF and so on, for long enough",
		30);
	must_refuse(FILE_NAME, "is not a trace");
	write_file(FILE_NAME, "WEIRTRC\n\1\0\0\0", 12);
	must_refuse(FILE_NAME, "truncated");
	make_calls(1, false);
	assert_int_equal(truncate(FILE_NAME, 600), 0);
	must_refuse(FILE_NAME, "truncated");
}

static void what_a_later_weir_wrote_is_refused(void **state)
{
	make_calls(1, false);
	change_header(newer);
	must_refuse(FILE_NAME, "newer Weir");
	make_calls(1, false);
	change_header(demanding);
	must_refuse(FILE_NAME, "bits 0x4");
	make_calls(1, false);
	change_header(senseless);
	must_refuse(FILE_NAME, "makes no sense");
}

static void what_may_not_be_read_is_said(void **state)
{
	if (geteuid() == 0)
		skip();
	make_calls(1, false);
	chmod(FILE_NAME, 0);
	must_refuse(FILE_NAME, "Permission denied");
	chmod(FILE_NAME, 0600);
}

static void finished_and_abandoned_files_read_alike(void **state)
{
	uint64_t torn;
	for (int open = 0; open < 2; open++) {
		make_calls(5000, open);
		struct trace *t = must_open(FILE_NAME);
		assert_int_equal(count_records(t, &torn), 5000);
		assert_int_equal(torn, 0);
		assert_int_equal(t->damage_count, 0);
		assert_string_equal(schema_find(&t->schema, FN_SYNC)->name, "cuStreamSynchronize");
		trace_close(t);
	}
}

static void a_torn_record_is_passed_over(void **state)
{
	uint64_t torn, stream = 7;
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "worker");
	maker_put(m, t, call_at(2000000), &stream);
	struct record r = call_at(3000000);
	r.fn = 0;
	maker_put(m, t, r, &stream);
	maker_put(m, t, call_at(4000000), &stream);
	maker_finish(m, 9000000, true);
	struct trace *trace = must_open(FILE_NAME);
	assert_int_equal(count_records(trace, &torn), 2);
	assert_int_equal(torn, 1);
	trace_close(trace);

	struct pack_stats stats = { 0 };
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, NULL), 0);
	trace = must_open(PACKED);
	assert_int_equal(count_records(trace, &torn), 2);
	assert_int_equal(trace->header.lost, 1);
	assert_int_equal(stats.torn, 1);
	trace_close(trace);
}

static void garbage_between_chunks_is_passed_over(void **state)
{
	uint64_t torn;
	make_calls(5000, false);
	const int fd = open(FILE_NAME, O_RDWR);
	char zeros[128] = { 0 }, noise[128];
	memset(noise, 'x', sizeof noise);
	/* The second granule holds the schema, the third and fourth the first two chunks. */
	assert_int_equal(pwrite(fd, zeros, sizeof zeros, 2 * TRACE_GRAIN), sizeof zeros);
	assert_int_equal(pwrite(fd, noise, sizeof noise, 3 * TRACE_GRAIN), sizeof noise);
	close(fd);
	struct trace *t = must_open(FILE_NAME);
	assert_int_equal(t->unused_granules, 1);
	assert_int_equal(t->damage_count, 1);
	assert_int_equal(t->damage.v[0].offset, 3 * TRACE_GRAIN);
	assert_true(count_records(t, &torn) > 0);
	trace_close(t);
}

static void ticks_become_nanoseconds(void **state)
{
	struct clock_fit fit = { 0 };
	const struct clock_pair start = { 5000, 1000000, 0 };
	clock_fit_add(&fit, &(struct clock_pair){ 25005000, 11000000, 0 });
	clock_fit_add(&fit, &start);
	clock_fit_add(&fit, &(struct clock_pair){ 0 });
	clock_fit_finish(&fit, CLOCK_IS_TSC, &start);
	assert_true(fit.known);
	assert_int_equal(clock_fit_ns(&fit, 5000), 1000000);
	assert_int_equal(clock_fit_ns(&fit, 5000 + 2500), 1001000);
	assert_int_equal(clock_fit_ns(&fit, 0), 998000);
	assert_int_equal(clock_fit_span_ns(&fit, 25000), 10000);
	assert_int_equal(clock_fit_ns(&fit, UINT64_MAX) > 1000000, 1);
}

static void a_single_pair_says_nothing_about_speed(void **state)
{
	struct clock_fit fit = { 0 };
	const struct clock_pair start = { 5000, 1000000, 0 };
	clock_fit_add(&fit, &start);
	clock_fit_add(&fit, &(struct clock_pair){ 9000, 1000500, 0 });
	clock_fit_finish(&fit, CLOCK_IS_TSC, &start);
	assert_false(fit.known);
	assert_int_equal(clock_fit_span_ns(&fit, 77), 77);
}

/* A short program: its readings are some tens of microseconds apart. */
static void pairs_that_are_close_still_say_how_fast_ticks_pass(void **state)
{
	struct clock_fit fit = { 0 };
	const struct clock_pair start = { 5000, 1000000, 0 };
	clock_fit_add(&fit, &start);
	clock_fit_add(&fit, &(struct clock_pair){ 5000 + 75000, 1030000, 0 });
	clock_fit_finish(&fit, CLOCK_IS_TSC, &start);
	assert_true(fit.known);
	assert_int_equal(clock_fit_span_ns(&fit, 2500000), 1000000);
}

/* Ticks and CLOCK_REALTIME pass alike in all of them, CLOCK_MONOTONIC has another origin. */
static void time_namespaces_do_not_break_the_clock(void **state)
{
	const uint64_t real = 1700000000000000000, offset = 86400000000000;
	const struct clock_pair start = { 5000, 1000000, real };
	const struct clock_pair inside = { 5000 + 25000000, 11000000 + offset, real + 10000000 };
	const struct clock_pair end = { 5000 + 50000000, 21000000, real + 20000100 };
	struct clock_fit fit = { 0 };
	clock_fit_add(&fit, &start);
	clock_fit_add(&fit, &inside);
	clock_fit_add(&fit, &end);
	clock_fit_finish(&fit, CLOCK_IS_TSC, &start);
	assert_true(fit.known);
	assert_int_equal(clock_fit_ns(&fit, inside.ticks), 11000000);
}

/* Killed while it was made ready to be used again: its payload still holds what it held. */
static void a_chunk_that_was_being_wiped_is_no_damage(void **state)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, 4 * TRACE_GRAIN);
	const int t1 = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	const uint64_t args[60] = { 0x0101010101010101 };
	struct trace *t;
	for (uint64_t i = 0; i < 5000; i++)
		maker_put(m, t1,
			(struct record){
				.ticks = 2000000 + i, .dur = 9, .fn = FN_SYNC, .words = 63 },
			args);
	maker_finish(m, 3000000, false);
	const int fd = open(FILE_NAME, O_RDWR);
	struct chunk_header c = { 0 };
	off_t at = 0;
	while (c.kind != CHUNK_EVENTS) {
		at += TRACE_GRAIN;
		assert_int_equal(pread(fd, &c, sizeof c, at), sizeof c);
	}
	c.magic = 0;
	c.state = CHUNK_FREE;
	assert_int_equal(pwrite(fd, &c, sizeof c, at), sizeof c);
	close(fd);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(t->damage_count, 0);
	trace_close(t);
}

/* Threads that find the disk full at one moment leave `next` behind the end of the file. */
static void room_that_was_never_got_is_no_damage(void **state)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	struct trace_header h;
	struct trace *t;
	maker_finish(m, 3000000, true);
	const int fd = open(FILE_NAME, O_RDWR);
	assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
	for (h.lost = 0; h.lost < 2; h.lost++) {
		h.next += 100 * TRACE_GRAIN;
		assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
		assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
		assert_int_equal(t->damage_count, h.lost ? 0 : 1); /* calls were lost, or chunks */
		trace_close(t);
	}
	close(fd);
}

static void compare(const struct trace *a, const struct trace *b)
{
	struct chunk_buf x = { 0 }, y = { 0 };
	assert_int_equal(a->chunk_count, b->chunk_count);
	for (size_t i = 0; i < a->chunk_count; i++) {
		assert_int_equal(trace_load(a, i, &x, NULL), 0);
		assert_int_equal(trace_load(b, i, &y, NULL), 0);
		if (a->chunks[i].head.kind == CHUNK_EVENTS || a->chunks[i].head.kind == CHUNK_META)
			assert_int_equal(x.bytes, y.bytes);
		assert_memory_equal(x.payload, y.payload, y.bytes);
	}
	chunk_buf_fini(&x);
	chunk_buf_fini(&y);
}

/* Records of all shapes, with times and arguments at the ends of their ranges. */
static void packing_changes_no_record(void **state)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, 2 * TRACE_GRAIN);
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "worker");
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	uint64_t args[40], x = 1;
	maker_name(m, meta, 5, 0x55, "_Z4axpyv");
	for (int i = 0; i < 9000; i++) {
		struct record r = { .fn = (uint16_t)(i % 300 + 1),
			.words = (uint16_t)(RECORD_WORDS + i % 40) };
		for (int k = 0; k < i % 40; k++)
			args[k] = (x = x * 6364136223846793005u + 1442695040888963407u) >> (i % 64);
		r.ticks = i % 50 ? 2000000 + (uint64_t)i * 1000 : x;
		r.dur = (uint32_t)(x >> 33);
		r.aux = (uint32_t)x;
		r.result = (uint16_t)(i % 97 ? 0 : i);
		r.flags = (uint16_t)(i % 16);
		maker_put(m, t, r, args);
	}
	maker_finish(m, 9000000, false);
	struct pack_stats stats = { 0 };
	struct error err;
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, &err), 0);
	assert_int_equal(stats.records, 9000);
	struct trace *a = must_open(FILE_NAME), *b = must_open(PACKED);
	compare(a, b);
	assert_int_equal(b->header.next, b->size);
	trace_close(a);
	trace_close(b);
	struct stat st;
	assert_int_equal(stat(PACKED, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void packing_twice_is_packing_once(void **state)
{
	struct pack_stats stats = { 0 };
	uint64_t torn;
	make_calls(100, false);
	assert_int_equal(trace_pack(FILE_NAME, FILE_NAME, &stats, NULL), 0);
	assert_int_equal(trace_pack(FILE_NAME, FILE_NAME, &stats, NULL), 0);
	struct trace *t = must_open(FILE_NAME);
	assert_int_equal(t->header.form, TRACE_PACKED);
	assert_int_equal(count_records(t, &torn), 100);
	trace_close(t);
}

static void a_failed_packing_leaves_nothing(void **state)
{
	struct pack_stats stats = { 0 };
	struct error err;
	make_calls(100, false);
	assert_true(trace_pack(FILE_NAME, "no/such/folder/x", &stats, &err) < 0);
	assert_non_null(strstr(err.text, "no/such/folder/x can't be written"));
	assert_true(trace_pack("no/such/file", PACKED, &stats, &err) < 0);
}

/* A raw file whose first chunk of calls was drained: it stands there twice, then free. */
static void a_drained_chunk_counts_once(void **state)
{
	struct pack_stats stats = { 0 };
	uint64_t torn;
	make_calls(1000, false);
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, NULL), 0);
	struct trace *t = must_open(PACKED);
	static uint64_t blocks[TRACE_GRAIN / 8];
	const struct chunk_ref *c = &t->chunks[1];
	const size_t bytes = sizeof(struct block_header) + ((c->room + 7) & ~7u);
	assert_int_equal(c->head.kind, CHUNK_EVENTS);
	assert_int_equal(read_at(t->fd, blocks, bytes, c->offset - sizeof(struct block_header)), 0);
	trace_close(t);

	const int fd = open(FILE_NAME, O_RDWR | O_APPEND);
	const struct chunk_header h = { .magic = CHUNK_MAGIC,
		.kind = CHUNK_PACKED,
		.state = CHUNK_OPEN,
		.bytes = 2 * TRACE_GRAIN };
	char pad[CHUNK_PAYLOAD - sizeof h] = { 0 };
	static char rest[TRACE_GRAIN - CHUNK_PAYLOAD];
	assert_int_equal(lseek(fd, 0, SEEK_END), 3 * TRACE_GRAIN);
	assert_true(write(fd, &h, sizeof h) > 0 && write(fd, pad, sizeof pad) > 0 &&
		    write(fd, blocks, sizeof blocks) > 0 && write(fd, rest, sizeof rest) > 0);
	const uint64_t next = 5 * TRACE_GRAIN;
	close(fd);
	const int again = open(FILE_NAME, O_RDWR);
	assert_int_equal(pwrite(again, &next, 8, offsetof(struct trace_header, next)), 8);
	t = must_open(FILE_NAME);
	assert_int_equal(t->damage_count, 0);
	assert_int_equal(count_records(t, &torn), 1000);
	trace_close(t);

	const uint16_t freed = CHUNK_FREE;
	assert_int_equal(
		pwrite(again, &freed, 2, 2 * TRACE_GRAIN + offsetof(struct chunk_header, state)),
		2);
	close(again);
	t = must_open(FILE_NAME);
	assert_int_equal(count_records(t, &torn), 1000);
	trace_close(t);
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, NULL), 0);
	t = must_open(PACKED);
	assert_int_equal(count_records(t, &torn), 1000);
	trace_close(t);
}

static void put_at(uint64_t offset, const void *data, size_t bytes)
{
	const int fd = open(FILE_NAME, O_RDWR);
	assert_int_equal(pwrite(fd, data, bytes, (off_t)offset), bytes);
	close(fd);
}

/* A chunk that is drained after the file was opened is read as long as it is there; one that its
 * thread, or another with as many chunks behind it, has begun anew is not taken for it. */
static void a_chunk_is_read_until_it_is_another(void **state)
{
	struct chunk_buf buf = { 0 };
	make_calls(1000, false);
	struct trace *t = must_open(FILE_NAME);
	const struct chunk_ref *c = &t->chunks[1];
	const uint64_t head = c->offset - CHUNK_PAYLOAD;
	assert_int_equal(c->head.kind, CHUNK_EVENTS);

	const uint16_t freed = CHUNK_FREE;
	put_at(head + offsetof(struct chunk_header, state), &freed, 2);
	assert_int_equal(trace_load(t, 1, &buf, NULL), 0);
	assert_true(buf.bytes > 0);

	const uint32_t none = 0, magic = CHUNK_MAGIC, tid = c->head.tid + 1;
	put_at(head, &none, 4);
	assert_int_equal(trace_load(t, 1, &buf, NULL), -ENODATA);
	put_at(head, &magic, 4);
	put_at(head + offsetof(struct chunk_header, tid), &tid, 4);
	assert_int_equal(trace_load(t, 1, &buf, NULL), -ENODATA);

	const uint64_t later = c->head.open.ticks + 1;
	put_at(head + offsetof(struct chunk_header, tid), &c->head.tid, 4);
	assert_int_equal(trace_load(t, 1, &buf, NULL), 0);
	put_at(head + offsetof(struct chunk_header, open), &later, 8);
	assert_int_equal(trace_load(t, 1, &buf, NULL), -ENODATA);
	chunk_buf_fini(&buf);
	trace_close(t);
}

static void a_handle_means_what_it_meant_then(void **state)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	maker_name(m, meta, 300, 0x55, "second");
	maker_name(m, meta, 100, 0x55, "first");
	maker_name(m, meta, 100, 0x77, "other");
	const uint64_t alias[2] = { 0x88, 0x55 };
	maker_meta(m, meta, META_ALIAS, 310, 2, alias, NULL, 0, 0);
	const uint64_t circle[2] = { 0x99, 0x9a }, back[2] = { 0x9a, 0x99 };
	maker_meta(m, meta, META_ALIAS, 310, 2, circle, NULL, 0, 0);
	maker_meta(m, meta, META_ALIAS, 310, 2, back, NULL, 0, 0);
	maker_finish(m, 9000000, false);
	struct trace *t = must_open(FILE_NAME);
	struct meta meta_index;
	assert_int_equal(meta_load(t, &meta_index, NULL), 0);
	static const struct {
		uint64_t handle, ticks;
		const char *name;
	} rows[] = { { 0x55, 100, "first" }, { 0x55, 299, "first" }, { 0x55, 300, "second" },
		{ 0x55, UINT64_MAX, "second" }, { 0x55, 50, "first" }, { 0x77, 200, "other" },
		{ 0x88, 400, "second" }, { 0x99, 400, NULL }, { 0x11, 400, NULL } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const uint32_t name =
			meta_find_kernel(&meta_index, 0, rows[i].handle, rows[i].ticks);
		if (rows[i].name)
			assert_string_equal(meta_index.names.v[name].text, rows[i].name);
		else
			assert_true(name == META_NONE);
	}
	assert_true(meta_find_kernel(&meta_index, 1, 0x55, 100) == META_NONE);
	meta_fini(&meta_index);
	trace_close(t);
}

static void many_names_of_one_handle_are_found(void **state)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	char name[16];
	for (uint64_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "k%d", (int)i);
		maker_name(m, meta, 10 * i, 0x55, name);
	}
	maker_finish(m, 9000000, false);
	struct trace *t = must_open(FILE_NAME);
	struct meta index;
	assert_int_equal(meta_load(t, &index, NULL), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "k%d", (int)i);
		const uint32_t found = meta_find_kernel(&index, 0, 0x55, 10 * i + i % 10);
		assert_string_equal(index.names.v[found].text, name);
	}
	meta_fini(&index);
	trace_close(t);
}

struct seen {
	uint64_t count;
	uint64_t last_end;
	uint32_t tids;
	bool sorted;
};

static void see(void *context, const struct chunk_header *chunk, const struct record *r)
{
	struct seen *s = context;
	s->count++;
	s->tids |= 1u << (chunk->tid - 100);
	s->sorted &= record_end(r) >= s->last_end;
	s->last_end = record_end(r);
}

static void a_tail_hands_each_record_over_once(void **state)
{
	const uint64_t stream = 7;
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	const int b = maker_thread(m, CHUNK_EVENTS, 100, 102, "b");
	for (uint64_t i = 0; i < 5000; i++)
		maker_put(m, i % 3 ? a : b, call_at(2000000 + i * 1000), &stream);
	maker_finish(m, 9000000, true);
	struct tail *tail = NULL;
	struct seen seen = { .sorted = true };
	struct error err;
	assert_int_equal(tail_open(FILE_NAME, &tail, &err), 0);
	assert_int_equal(tail_poll(tail, see, &seen), 5000);
	assert_int_equal(seen.count, 5000);
	assert_int_equal(seen.tids, 6);
	assert_true(seen.sorted);
	assert_int_equal(tail_poll(tail, see, &seen), 0);

	/* One more record, committed in three steps, into thread b's last chunk. */
	const int fd = open(FILE_NAME, O_RDWR);
	struct trace *t = must_open(FILE_NAME);
	const struct chunk_ref *last = &t->chunks[t->chunk_count - 1];
	struct chunk_buf buf = { 0 };
	assert_int_equal(trace_load(t, t->chunk_count - 1, &buf, NULL), 0);
	struct record r = call_at(8000000);
	const uint64_t at = last->offset + buf.bytes;
	r.fn = 0;
	assert_int_equal(pwrite(fd, &r, sizeof r, (off_t)at), sizeof r);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	r.fn = FN_SYNC;
	assert_int_equal(pwrite(fd, &r, sizeof r, (off_t)at), sizeof r);
	assert_int_equal(tail_poll(tail, see, &seen), 1);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	chunk_buf_fini(&buf);
	trace_close(t);
	close(fd);
	tail_close(tail);
}

/* A chunk of two granules that is reserved, but not begun, when the tail first looks; behind
 * it another is in use already. */
static void a_tail_waits_for_a_chunk_to_begin(void **state)
{
	const uint64_t stream = 7;
	struct chunk_header h;
	struct maker *m = maker_new(FILE_NAME, maker_schema, 2 * TRACE_GRAIN);
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	const int b = maker_thread(m, CHUNK_EVENTS, 100, 102, "b");
	maker_put(m, a, call_at(2000000), &stream);
	maker_put(m, b, call_at(2000500), &stream);
	maker_finish(m, 9000000, true);
	const int fd = open(FILE_NAME, O_RDWR);
	const struct chunk_header none = { 0 };
	assert_int_equal(pread(fd, &h, sizeof h, 2 * TRACE_GRAIN), sizeof h);
	assert_int_equal(pwrite(fd, &none, sizeof none, 2 * TRACE_GRAIN), sizeof none);

	struct tail *tail = NULL;
	struct seen seen = { .sorted = true };
	assert_int_equal(tail_open(FILE_NAME, &tail, NULL), 0);
	assert_int_equal(tail_poll(tail, see, &seen), 1);
	assert_int_equal(pwrite(fd, &h, sizeof h, 2 * TRACE_GRAIN), sizeof h);
	assert_int_equal(tail_poll(tail, see, &seen), 1);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	assert_int_equal(seen.tids, 6);
	close(fd);
	tail_close(tail);
}

/* Two chunks of one thread: the full one is given back once it was handed over, and read again
 * when it has been begun anew. */
static void a_tail_gives_back_what_it_has_read(void **state)
{
	const uint64_t stream = 7;
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	for (uint64_t i = 0; i < 3000; i++)
		maker_put(m, a, call_at(2000000 + i * 1000), &stream);
	maker_finish(m, 9000000, true);
	struct tail *tail = NULL;
	struct seen seen = { .sorted = true };
	struct trace *t = must_open(FILE_NAME);
	const struct chunk_ref *full = &t->chunks[1], *open_one = &t->chunks[2];
	const uint64_t head = full->offset - CHUNK_PAYLOAD;
	struct chunk_header h;
	assert_int_equal(full->head.state, CHUNK_CLOSED);
	assert_int_equal(open_one->head.state, CHUNK_OPEN);
	assert_int_equal(tail_open(FILE_NAME, &tail, NULL), 0);
	assert_int_equal(tail_consume(tail, FILE_NAME), 0);
	assert_int_equal(tail_poll(tail, see, &seen), 3000);
	assert_int_equal(read_at(t->fd, &h, sizeof h, head), 0);
	assert_int_equal(h.state, CHUNK_FREE);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	assert_int_equal(read_at(t->fd, &h, sizeof h, open_one->offset - CHUNK_PAYLOAD), 0);
	assert_int_equal(h.state, CHUNK_OPEN);

	/* Its thread comes back to it: one record, then nothing. */
	const struct record r = call_at(8000000);
	const uint64_t nothing[3] = { 0 };
	h = full->head;
	h.state = CHUNK_OPEN;
	h.open.ticks += 5000000;
	put_at(full->offset, &r, sizeof r);
	put_at(full->offset + sizeof r, nothing, sizeof nothing);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	put_at(head, &h, sizeof h);
	assert_int_equal(tail_poll(tail, see, &seen), 1);
	assert_int_equal(tail_poll(tail, see, &seen), 0);
	tail_close(tail);
	trace_close(t);
}

enum { LIVE_CALLS = 200000 };

/* The child: commits records into one mapped chunk, as the hook does. */
static void write_live(char *payload)
{
	for (uint64_t i = 0; i < LIVE_CALLS; i++) {
		struct record *r = (struct record *)(payload + i * 32);
		r->ticks = 2000000 + i;
		r->dur = 5;
		r->words = 4;
		r->arg[0] = ~i;
		atomic_store_explicit(&r->fn, FN_SYNC, memory_order_release);
	}
	_exit(0);
}

static void check_live(void *context, const struct chunk_header *chunk, const struct record *r)
{
	uint64_t *count = context;
	assert_int_equal(r->ticks, 2000000 + *count);
	assert_true(r->arg[0] == ~*count);
	++*count;
}

static void make_live(uint32_t bytes)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, bytes);
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	m->threads[t].head.next_free = FN_SYNC; /* so that the empty chunk is written */
	maker_finish(m, 9000000, true);
}

static void a_live_file_is_read_without_a_torn_record(void **state)
{
	const uint32_t bytes = (CHUNK_PAYLOAD + LIVE_CALLS * 32 + TRACE_GRAIN) & ~(TRACE_GRAIN - 1);
	uint64_t followed = 0, counted = 0, torn;
	struct tail *tail = NULL;
	make_live(bytes);
	const int fd = open(FILE_NAME, O_RDWR);
	char *chunk = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * TRACE_GRAIN);
	assert_true(chunk != MAP_FAILED);
	assert_int_equal(tail_open(FILE_NAME, &tail, NULL), 0);
	const pid_t child = fork();
	if (child == 0)
		write_live(chunk + CHUNK_PAYLOAD);
	while (followed < LIVE_CALLS || counted < LIVE_CALLS) {
		assert_true(tail_poll(tail, check_live, &followed) >= 0);
		struct trace *t = must_open(FILE_NAME);
		const uint64_t now = count_records(t, &torn);
		assert_true(now >= counted && torn <= 1);
		counted = now;
		trace_close(t);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(followed, LIVE_CALLS);
	tail_close(tail);
	munmap(chunk, bytes);
	close(fd);
}

static void a_tail_wants_a_raw_trace(void **state)
{
	struct tail *tail = NULL;
	struct error err;
	struct pack_stats stats = { 0 };
	make_calls(10, false);
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, NULL), 0);
	assert_int_equal(tail_open(PACKED, &tail, &err), -ENOTSUP);
	write_file(FILE_NAME, "WEIR", 4);
	assert_int_equal(tail_open(FILE_NAME, &tail, &err), -EAGAIN);
	assert_int_equal(tail_open("no/such/file", &tail, &err), -ENOENT);
}

/* As in a chunk whose header says a wrong length. */
static void bytes_that_are_no_record_are_not_packed(void **state)
{
	const struct record r = { .ticks = 1, .words = RECORD_WORDS, .fn = 5 };
	uint64_t payload[RECORD_WORDS + 1] = { [RECORD_WORDS] = 7 };
	const struct chunk_ref ref = { .head = { .kind = CHUNK_EVENTS } };
	const struct chunk_buf buf = {
		.ref = &ref, .payload = (uint8_t *)payload, .bytes = sizeof payload
	};
	struct block_maker m;
	memcpy(payload, &r, sizeof r);
	block_maker_init(&m, 1);
	assert_int_equal(block_make(&m, &ref.head, &buf), 0);
	assert_int_equal(m.records, 1);
	assert_int_equal(expect_report().count, 0);
	block_maker_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_no_record_are_not_packed),
		cmocka_unit_test(what_is_no_trace_is_refused),
		cmocka_unit_test(what_a_later_weir_wrote_is_refused),
		cmocka_unit_test(what_may_not_be_read_is_said),
		cmocka_unit_test(finished_and_abandoned_files_read_alike),
		cmocka_unit_test(a_torn_record_is_passed_over),
		cmocka_unit_test(garbage_between_chunks_is_passed_over),
		cmocka_unit_test(ticks_become_nanoseconds),
		cmocka_unit_test(a_single_pair_says_nothing_about_speed),
		cmocka_unit_test(pairs_that_are_close_still_say_how_fast_ticks_pass),
		cmocka_unit_test(time_namespaces_do_not_break_the_clock),
		cmocka_unit_test(a_chunk_that_was_being_wiped_is_no_damage),
		cmocka_unit_test(room_that_was_never_got_is_no_damage),
		cmocka_unit_test(packing_changes_no_record),
		cmocka_unit_test(packing_twice_is_packing_once),
		cmocka_unit_test(a_failed_packing_leaves_nothing),
		cmocka_unit_test(a_drained_chunk_counts_once),
		cmocka_unit_test(a_chunk_is_read_until_it_is_another),
		cmocka_unit_test(a_handle_means_what_it_meant_then),
		cmocka_unit_test(many_names_of_one_handle_are_found),
		cmocka_unit_test(a_tail_hands_each_record_over_once),
		cmocka_unit_test(a_tail_waits_for_a_chunk_to_begin),
		cmocka_unit_test(a_tail_gives_back_what_it_has_read),
		cmocka_unit_test(a_live_file_is_read_without_a_torn_record),
		cmocka_unit_test(a_tail_wants_a_raw_trace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
