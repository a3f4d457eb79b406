/* Bad input: whatever is done to a trace, reading it ends, within its buffers. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/unpack.h"
#include "maker.h"
#include "export/export.h"
#include "report/report_make.h"
#include "trace/block.h"
#include "trace/pack.h"
#include "trace/tail.h"

#define FILE_NAME "test_damage.weir"

static FILE *nowhere;

static const char small_schema[] =
	"4 driver launch launch cuLaunchKernel(CUfunction f, uint x)\n"
	"5 driver launch graphlaunch cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)\n"
	"9 driver sync call cuStreamSynchronize(CUstream hStream)\n"
	"12 driver module call cuModuleLoad(out CUmodule module, str fname)\n"
	"type CUstream ptr 8\ntype str str 8\n";

/* A bit of everything, in as few bytes as possible. */
static void make_small(void)
{
	const struct graph_node node = { .function = 0x55, .node = 1 };
	const uint64_t graph[3] = { 0x77, 1, 0 }, parent = 1;
	const uint64_t launch[5] = { 0x55, 7, 1, 1, 1 },
		       text[4] = { 1, 9, 0x6161616161616161, 0x62 };
	const struct counter counters[2] = { { 0 }, { .count = 3 } };
	struct maker *m = maker_new(FILE_NAME, small_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	maker_meta(m, meta, META_PROCESS, 1, 1, &parent, "a\0b", 4, 4);
	maker_name(m, meta, 1, 0x55, "_Z4axpyPfi");
	maker_meta(m, meta, META_ALIAS, 2, 2, launch, NULL, 0, 0);
	maker_meta(m, meta, META_GRAPH, 1, 3, graph, &node, sizeof node, 1);
	maker_meta(m, meta, META_NODE, 2, 1, graph, &node, sizeof node, 1);
	maker_meta(m, meta, META_UNKNOWN, 2, 1, &parent, "cuNew", 5, 5);
	maker_meta(m, meta, META_MESSAGE, 2, 0, NULL, "note", 4, 4);
	maker_chunk(m, CHUNK_COUNTERS, 100, 101, counters, sizeof counters);
	for (uint64_t i = 0; i < 3; i++) {
		maker_put(m, t,
			(struct record){ .ticks = 2000000 + i, .dur = 9, .fn = 4, .words = 8 },
			launch);
		maker_put(m, t,
			(struct record){ .ticks = 2000010 + i, .dur = 9, .fn = 12, .words = 7 },
			text);
		maker_put(
			m, t, (struct record){ .ticks = 2000020 + i, .fn = 5, .words = 5 }, graph);
	}
	maker_finish(m, 3000000, false);
}

/* Everything that reads traces, on the file as it is. */
static void read_all(void)
{
	struct trace *t = NULL;
	struct report *r = NULL;
	struct error err;
	if (trace_open(FILE_NAME, &t, &err))
		return;
	assert_int_equal(report_make(t, 1, FACETS_BUT_HINTS, &r, &err), 0);
	report_print_text(r, nowhere, &(struct report_style){ .rows = 0 });
	report_print_json(r, nowhere, false);
	report_free(r);
	export_run(&export_csv, t, NULL, NULL, nowhere, &err);
	export_run(&export_perfetto, t, NULL, NULL, nowhere, &err);
	trace_close(t);
}

static void ignore(void *context, const struct chunk_header *chunk, const struct record *r)
{
	*(uint64_t *)context += r->words;
}

static void follow_all(void)
{
	struct tail *tail = NULL;
	uint64_t sum = 0;
	if (tail_open(FILE_NAME, &tail, NULL))
		return;
	tail_poll(tail, ignore, &sum);
	tail_poll(tail, ignore, &sum);
	tail_close(tail);
}

static uint64_t size_of(const char *path)
{
	FILE *f = fopen(path, "r");
	assert_true(f && !fseek(f, 0, SEEK_END));
	const long n = ftell(f);
	fclose(f);
	return (uint64_t)n;
}

static void make_packed(void)
{
	struct pack_stats stats = { 0 };
	make_small();
	assert_int_equal(trace_pack(FILE_NAME, FILE_NAME, &stats, NULL), 0);
}

static void flip(int fd, uint64_t at, uint8_t bits)
{
	uint8_t byte;
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static void packed_traces_may_be_cut_anywhere(void **state)
{
	make_packed();
	const uint64_t size = size_of(FILE_NAME);
	for (uint64_t n = size; n-- > 0;) {
		assert_int_equal(truncate(FILE_NAME, (off_t)n), 0);
		read_all();
	}
}

/* Of the ways to flip a byte, one in so many is tried on it, the next one on the byte after it. */
enum { FLIPS = ROUNDS(1, 3) };

static void each_byte_of_a_packed_trace_may_flip(void **state)
{
	make_packed();
	const uint64_t size = size_of(FILE_NAME);
	const int fd = open(FILE_NAME, O_RDWR);
	for (uint64_t at = 0; at < size; at++) {
		for (int bit = (int)(at % FLIPS); bit < 9; bit += FLIPS) {
			const uint8_t bits = bit == 8 ? 0xff : (uint8_t)(1u << bit);
			flip(fd, at, bits);
			read_all();
			flip(fd, at, bits);
		}
	}
	close(fd);
}

static void raw_traces_may_be_cut_anywhere(void **state)
{
	make_small();
	for (uint64_t n = size_of(FILE_NAME); n > 0; n -= n < 5000 ? n : 4801) {
		assert_int_equal(truncate(FILE_NAME, (off_t)n), 0);
		read_all();
		follow_all();
	}
}

/* Only the bytes that mean something: headers, and payloads as far as they are used. */
static void each_byte_of_a_raw_trace_may_flip(void **state)
{
	make_small();
	const uint64_t size = size_of(FILE_NAME);
	const int fd = open(FILE_NAME, O_RDWR);
	for (uint64_t at = 0; at < size; at++) {
		if (at % TRACE_GRAIN > 1200 || (at < TRACE_GRAIN && at > 200))
			continue;
		const uint8_t all[] = { 0xff, 0x80, 0x01 };
		for (size_t i = at % FLIPS; i < COUNT_OF(all); i += FLIPS) {
			flip(fd, at, all[i]);
			read_all();
			follow_all();
			flip(fd, at, all[i]);
		}
	}
	close(fd);
}

static void damage_is_said(void **state)
{
	make_packed();
	struct trace *t;
	struct report *r;
	const int fd = open(FILE_NAME, O_RDWR);
	flip(fd, size_of(FILE_NAME) - 30, 0x55); /* in the last payload */
	close(fd);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(report_make(t, 1, FACETS_BUT_HINTS, &r, NULL), 0);
	assert_int_equal(r->damaged_chunks + r->meta.damaged, 1);
	bool said = false;
	for (size_t i = 0; i < r->warnings.n; i++)
		said |= strstr(r->warnings.v[i], "1 chunks are damaged") != NULL;
	assert_true(said);
	report_free(r);
	trace_close(t);

	make_packed();
	assert_int_equal(truncate(FILE_NAME, (off_t)size_of(FILE_NAME) - 40), 0);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(t->damage_count, 1);
	assert_string_equal(t->damage.v[0].what, "the file was cut off");
	trace_close(t);
}

static void append(FILE *f, const struct block_maker *maker)
{
	static const uint8_t zeros[8];
	fwrite(&maker->header, sizeof maker->header, 1, f);
	fwrite(maker->packed, 1, maker->header.bytes, f);
	fwrite(zeros, 1, -(size_t)maker->header.bytes & 7, f);
}

/* A block of nothing but one range, over and over; it unpacks to `bytes`. */
static void append_block(FILE *f, struct block_maker *maker, uint32_t tid, size_t bytes)
{
	const struct chunk_ref ref = { .head = { .magic = CHUNK_MAGIC,
					       .kind = CHUNK_RANGES,
					       .state = CHUNK_CLOSED,
					       .bytes = (uint32_t)bytes + CHUNK_PAYLOAD,
					       .pid = 100,
					       .tid = tid } };
	struct range *ranges = calloc(bytes / sizeof *ranges, sizeof *ranges);
	for (size_t i = 0; i < bytes / sizeof *ranges; i++)
		ranges[i] = (struct range){
			.ticks = 2000000, .dur = 5, .tid = tid, .kind = RANGE_OTHER
		};
	const struct chunk_buf buf = { .ref = &ref, .payload = (uint8_t *)ranges, .bytes = bytes };
	assert_int_equal(block_make(maker, &ref.head, &buf), 0);
	append(f, maker);
	free(ranges);
}

/* A few kilobytes may not fill the memory: blocks count as what they unpack to. */
static void blocks_that_unpack_to_too_much_are_left_out(void **state)
{
	const size_t third = UNPACK_LEAST / 3 / sizeof(struct range) * sizeof(struct range);
	struct block_maker maker;
	struct chunk_buf chunk = { 0 };
	struct trace *t;
	make_packed();
	block_maker_init(&maker, 3);
	FILE *f = fopen(FILE_NAME, "a");
	for (uint32_t tid = 1; tid <= 30; tid++)
		append_block(f, &maker, tid, tid % 10 ? third : 64 * sizeof(struct range));
	fclose(f);
	block_maker_fini(&maker);
	assert_true(size_of(FILE_NAME) < UNPACK_LEAST / UNPACK_RATIO);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_non_null(strstr(t->damage.v[0].what, "more than a file of this size may hold"));
	uint64_t bytes = 0, threads = 0;
	for (size_t i = 0; i < t->chunk_count; i++) {
		assert_int_equal(trace_load(t, i, &chunk, NULL), 0);
		bytes += chunk.bytes;
		threads += t->chunks[i].head.kind == CHUNK_RANGES;
	}
	assert_in_range(bytes, 2 * third, UNPACK_LEAST);
	assert_int_equal(threads, 2 + 3); /* the small ones have room beside two large ones */
	chunk_buf_fini(&chunk);
	trace_close(t);
}

/* How many calls of `t` can be read, and in *ret_bytes what their chunks came to. */
static uint64_t count_calls(const struct trace *t, uint64_t *ret_bytes)
{
	struct chunk_buf chunk = { 0 };
	uint64_t calls = 0, damaged = 0;
	*ret_bytes = 0;
	for (size_t at = 0; trace_next(t, CHUNK_EVENTS, &at, &chunk, &damaged) == 1;) {
		*ret_bytes += chunk.bytes;
		for (struct records it = records_of(&chunk); records_next(&it);)
			calls++;
	}
	assert_int_equal(damaged, 0);
	chunk_buf_fini(&chunk);
	return calls;
}

/* One launch over and over, by a clock that goes in even steps, in chunks as the writer makes them.
 */
static void make_calls_all_alike(uint64_t calls)
{
	const uint64_t launch[9] = { 0x55, 7, 1, 1, 1 };
	struct maker *m = maker_new(FILE_NAME, small_schema, 4 * TRACE_GRAIN);
	const int t = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	for (uint64_t i = 0; i < calls; i++)
		maker_put(m, t,
			(struct record){
				.ticks = 2000000 + i * 100, .dur = 9, .fn = 4, .words = 12 },
			launch);
	maker_finish(m, 2000000 + calls * 100, false);
}

static void calls_that_are_all_alike_are_all_read(void **state)
{
	const uint64_t calls = 1500000;
	struct pack_stats stats = { 0 };
	struct trace *t;
	uint64_t bytes;
	make_calls_all_alike(calls);
	assert_int_equal(trace_pack(FILE_NAME, FILE_NAME, &stats, NULL), 0);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(t->damage_count, 0);
	assert_int_equal(count_calls(t, &bytes), calls);
	assert_true(bytes > UNPACK_LEAST && bytes > size_of(FILE_NAME) * UNPACK_RATIO);
	trace_close(t);
}

/* Calls, too, may not unpack to any amount. */
static void calls_that_unpack_to_too_much_are_left_out(void **state)
{
	const uint32_t chunk_bytes = 64u << 20;
	const uint64_t most = UNPACK_LEAST * UNPACK_CALLS;
	const struct chunk_ref ref = { .head = { .magic = CHUNK_MAGIC,
					       .kind = CHUNK_EVENTS,
					       .state = CHUNK_CLOSED,
					       .bytes = chunk_bytes + CHUNK_PAYLOAD,
					       .used = chunk_bytes,
					       .pid = 100,
					       .tid = 101 } };
	struct block_maker maker;
	struct trace *t;
	uint64_t bytes;
	uint8_t *calls = calloc(1, chunk_bytes);
	for (uint32_t at = 0; at < chunk_bytes; at += 4096)
		*(struct record *)(void *)(calls + at) = (struct record){ .fn = 4, .words = 512 };
	const struct chunk_buf buf = { .ref = &ref, .payload = calls, .bytes = chunk_bytes };
	make_packed();
	block_maker_init(&maker, 3);
	assert_int_equal(block_make(&maker, &ref.head, &buf), 0);
	FILE *f = fopen(FILE_NAME, "a");
	for (int i = 0; i < 20; i++)
		append(f, &maker);
	fclose(f);
	block_maker_fini(&maker);
	free(calls);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_non_null(strstr(t->damage.v[0].what, "more than a file of this size may hold"));
	count_calls(t, &bytes);
	assert_in_range(bytes, most - chunk_bytes, most);
	trace_close(t);
}

/* A recording of some thousand threads at the level stat, which are mostly zeros. */
static void counters_of_many_threads_are_all_read(void **state)
{
	const struct chunk_ref ref = { .head = { .magic = CHUNK_MAGIC,
					       .kind = CHUNK_COUNTERS,
					       .state = CHUNK_CLOSED,
					       .bytes = TRACE_GRAIN,
					       .pid = 100 } };
	static struct counter counters[2000];
	counters[1999].count = 1;
	const struct chunk_buf buf = {
		.ref = &ref, .payload = (uint8_t *)counters, .bytes = sizeof counters
	};
	struct block_maker maker;
	struct trace *t;
	make_packed();
	block_maker_init(&maker, 3);
	FILE *f = fopen(FILE_NAME, "a");
	assert_int_equal(block_make(&maker, &ref.head, &buf), 0);
	for (int i = 0; i < 5000; i++)
		append(f, &maker);
	fclose(f);
	block_maker_fini(&maker);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_true(size_of(FILE_NAME) * UNPACK_RATIO < 5000 * sizeof counters);
	assert_int_equal(t->damage_count, 0);
	trace_close(t);
}

/* Columns that join to more than the chunk had in use were not made by packing it. */
static void columns_that_join_to_more_than_they_say_are_damaged(void **state)
{
	struct block_header b;
	struct chunk_buf chunk = { 0 };
	struct trace *t;
	int refused = 0;
	make_packed();
	const int fd = open(FILE_NAME, O_RDWR);
	uint64_t at = sizeof(struct trace_header);
	while (pread(fd, &b, sizeof b, (off_t)at) == sizeof b) {
		if (b.encoding == ENCODING_COLUMNS) {
			const size_t skip = offsetof(struct block_header, bytes);
			b.chunk.used = 24;
			b.check = hash_fnv32((const char *)&b + skip, sizeof b - skip);
			assert_int_equal(pwrite(fd, &b, sizeof b, (off_t)at), sizeof b);
		}
		at += sizeof b + ((b.bytes + 7) & ~7u);
	}
	close(fd);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	for (size_t i = 0; i < t->chunk_count; i++)
		refused += trace_load(t, i, &chunk, NULL) == -EBADMSG;
	assert_int_equal(refused, 1);
	chunk_buf_fini(&chunk);
	trace_close(t);
}

/* A file that has a length and nothing in it: four terabytes of it is passed over at once. */
static void holes_are_not_walked(void **state)
{
	struct trace *t;
	make_small();
	const uint64_t size = size_of(FILE_NAME), hole = 1ull << 42;
	const int fd = open(FILE_NAME, O_RDWR);
	const uint64_t next = size + hole;
	if (ftruncate(fd, (off_t)next)) {
		close(fd);
		skip();
	}
	assert_int_equal(
		pwrite(fd, &next, sizeof next, offsetof(struct trace_header, next)), sizeof next);
	close(fd);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(t->damage_count, 0);
	assert_int_equal(t->unused_granules, hole / TRACE_GRAIN);
	trace_close(t);
}

int main(void)
{
	nowhere = fopen("/dev/null", "w");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_traces_may_be_cut_anywhere),
		cmocka_unit_test(each_byte_of_a_packed_trace_may_flip),
		cmocka_unit_test(raw_traces_may_be_cut_anywhere),
		cmocka_unit_test(each_byte_of_a_raw_trace_may_flip),
		cmocka_unit_test(damage_is_said),
		cmocka_unit_test(blocks_that_unpack_to_too_much_are_left_out),
		cmocka_unit_test(calls_that_are_all_alike_are_all_read),
		cmocka_unit_test(calls_that_unpack_to_too_much_are_left_out),
		cmocka_unit_test(counters_of_many_threads_are_all_read),
		cmocka_unit_test(columns_that_join_to_more_than_they_say_are_damaged),
		cmocka_unit_test(holes_are_not_walked),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	fclose(nowhere);
	unlink(FILE_NAME);
	return failed;
}
