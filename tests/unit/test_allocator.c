/* Allocations replayed through other allocators: what each reserves, and what it calls. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "allocator/allocator.h"
#include "base/hash.h"
#include "import/import.h"
#include "report/report_make.h"

#define MIB    (UINT64_C(1) << 20)
#define SOURCE "test_allocator.csv"
#define TRACE  "test_allocator.weir"

static struct alloc_trace given;
static struct alloc_replay replayed;
static struct trace *trace;
static struct report *report;

static int end(void **state)
{
	alloc_trace_free(&given);
	given = (struct alloc_trace){ 0 };
	report_free(report);
	trace_close(trace);
	report = NULL;
	trace = NULL;
	unlink(SOURCE);
	unlink(TRACE);
	return 0;
}

static uint32_t place(uint64_t bytes, uint32_t stream)
{
	struct alloc_event *e = array_push(&given.events);
	*e = (struct alloc_event){ .ns = (given.events.n - 1) * 1000,
		.bytes = bytes,
		.block = given.blocks++,
		.stream = stream };
	given.live_most++; /* at most */
	given.live_peak += bytes;
	given.streams = stream >= given.streams ? stream + 1 : given.streams;
	return e->block;
}

static void release(uint32_t block)
{
	struct alloc_event *e = array_push(&given.events);
	size_t i = 0;
	while (given.events.v[i].block != block)
		i++;
	*e = given.events.v[i];
	e->ns = (given.events.n - 1) * 1000;
	e->free = true;
}

static const struct alloc_meter *replay(const char *name)
{
	assert_int_equal(
		allocator_replay(&given, alloc_designs_parse(name), 8 * MIB, &replayed), 0);
	return &replayed.rows[0].meter;
}

static void names_are_those_of_designs(void **state)
{
	assert_int_equal(alloc_designs_parse("pool"), 1);
	assert_int_equal(alloc_designs_parse("driver,pool,pytorch,expandable"), 15);
	assert_int_equal(alloc_designs_parse("pool,pool"), 1);
	assert_int_equal(alloc_designs_parse("poo"), 0);
	assert_int_equal(alloc_designs_parse("pool,"), 0);
	assert_int_equal(alloc_designs_parse(""), 0);
	assert_int_equal(alloc_designs_parse("pool,what"), 0);
}

static void pytorch_takes_segments_of_three_sizes(void **state)
{
	place(1, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 2 * MIB);
	place(MIB, 0); /* beside it */
	assert_int_equal(replay("pytorch")->reserved_peak, 2 * MIB);
	place(MIB, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 4 * MIB);
	place(MIB + 1, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 24 * MIB);
	place(10 * MIB, 0); /* beside it */
	assert_int_equal(replay("pytorch")->reserved_peak, 24 * MIB);
	place(10 * MIB, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 34 * MIB);
	place(11 * MIB + 1, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 46 * MIB);
	assert_int_equal(replay("pytorch")->calls[CALL_MEM_ALLOC], 5);
}

static void pytorch_takes_the_smallest_block_that_is_large_enough(void **state)
{
	const uint32_t large = place(40 * MIB, 0), middle = place(30 * MIB, 0);
	release(large);
	release(middle);
	place(29 * MIB, 0); /* of 30, and the rest is given away with it */
	place(40 * MIB, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 70 * MIB);
	place(1 * MIB + 512, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 90 * MIB);
}

static void pytorch_joins_what_lies_side_by_side(void **state)
{
	uint32_t v[4];
	for (int i = 0; i < 4; i++)
		v[i] = place(5 * MIB, 0); /* all of a segment of 20 */
	release(v[0]);
	release(v[2]);
	release(v[1]);
	place(9 * MIB, 0);
	place(6 * MIB, 0);
	assert_int_equal(replay("pytorch")->reserved_peak, 20 * MIB);
}

static void streams_share_no_segments_in_pytorch(void **state)
{
	const uint32_t block = place(512, 0);
	release(block);
	place(512, 1);
	assert_int_equal(replay("pytorch")->reserved_peak, 4 * MIB);
	assert_int_equal(replay("expandable")->reserved_peak, 4 * MIB);
}

static void an_expandable_segment_grows_at_its_end(void **state)
{
	const uint32_t block = place(30 * MIB, 0);
	assert_int_equal(replay("expandable")->reserved_peak, 40 * MIB);
	assert_int_equal(replay("expandable")->calls[CALL_CREATE], 2);
	release(block);
	place(45 * MIB, 0); /* what is free at the end counts */
	assert_int_equal(replay("expandable")->reserved_peak, 60 * MIB);
	assert_int_equal(replay("expandable")->calls[CALL_MAP], 3);
	place(15 * MIB, 0);
	assert_int_equal(replay("expandable")->reserved_peak, 60 * MIB);
	place(512, 0);
	assert_int_equal(replay("expandable")->reserved_peak, 62 * MIB);
	assert_int_equal(replay("expandable")->calls[CALL_MEM_ALLOC], 0);
}

static void the_driver_gives_pages_and_takes_them_back(void **state)
{
	const uint32_t small = place(512, 0), large = place(3 * MIB, 0);
	place(512, 0);
	assert_int_equal(replay("driver")->reserved_peak, 6 * MIB);
	release(large);
	place(4 * MIB, 0);
	assert_int_equal(replay("driver")->reserved_peak, 6 * MIB);
	assert_int_equal(replay("driver")->calls[CALL_MEM_ALLOC], 4);
	release(small);
	assert_int_equal(replay("driver")->reserved, 6 * MIB);
}

/* Two blocks of three slots, then one of six: in place of the first two, and above where they were
 * when nothing may be added. */
static void the_pool_moves_handles_at_its_minimum_limit(void **state)
{
	const uint32_t first = place(24 * MIB, 0), second = place(8 * MIB, 0);
	const struct alloc_meter *m;
	place(8 * MIB, 0);
	release(first);
	m = replay("pool");
	assert_int_equal(m->reserved_peak, 40 * MIB);
	place(32 * MIB, 0);
	release(second);
	m = replay("pool");
	assert_int_equal(replayed.count, 2);
	assert_int_equal(m->reserved_peak, 72 * MIB);
	assert_int_equal(m->calls[CALL_UNMAP], 0);
	assert_int_equal(replayed.minimum_limit, 48 * MIB);
	assert_int_equal(m[0].over, 0);
	const struct alloc_meter *limited = &replayed.rows[1].meter;
	assert_int_equal(limited->reserved_peak, 48 * MIB);
	assert_int_equal(limited->calls[CALL_UNMAP], 3);
	assert_int_equal(limited->calls[CALL_CREATE], 6);
	assert_int_equal(limited->calls[CALL_MAP], 9);
	assert_int_equal(limited->over, 0);
}

/* A stream's frees are settled now and then, so where blocks lie depends on the limit. */
static void use_two_streams(uint64_t seed)
{
	uint32_t blocks[64] = { 0 };
	for (uint64_t i = seed; i < seed + 4000; i++) {
		const uint32_t at = (uint32_t)(hash_mix(i) % 64);
		if (blocks[at])
			release(blocks[at] - 1);
		blocks[at] = place(MIB << (hash_mix(i) >> 8 & 7), hash_mix(i) >> 60 & 1) + 1;
	}
}

static void several_streams_keep_the_limit_that_is_said(void **state)
{
	for (uint64_t seed = 0; seed < 40000; seed += 10000) {
		use_two_streams(seed);
		replay("pool");
		const struct alloc_meter *limited = &replayed.rows[1].meter;
		assert_int_equal(limited->over, 0);
		assert_int_equal(limited->reserved_peak, replayed.minimum_limit);
		assert_true(limited->reserved_peak < replayed.rows[0].meter.reserved_peak);
		end(NULL);
	}
}

static void what_was_live_and_reserved_is_kept_over_time(void **state)
{
	const uint32_t block = place(8 * MIB, 0);
	release(block);
	place(512, 0);
	const struct alloc_meter *m = replay("driver");
	assert_int_equal(m->live[0], 8 * MIB);
	assert_int_equal(m->held[0], 8 * MIB);
	assert_int_equal(m->live[ALLOC_POINTS - 1], 512);
	assert_int_equal(m->held[ALLOC_POINTS - 1], 2 * MIB);
}

/* A block lives for one of two equal times; its segment stays. */
static void what_is_reserved_and_not_live_counts_by_its_time(void **state)
{
	const uint32_t block = place(20 * MIB, 0);
	release(block);
	place(512, 0);
	const struct alloc_meter *m = replay("pytorch");
	assert_int_equal(m->reserved_peak, 22 * MIB);
	assert_int_equal(m->worst_unused, 20 * MIB);
	assert_true(fabs(alloc_row_unused(&replayed.rows[0]) - .5) < 1e-9);
	m = replay("driver");
	assert_int_equal(m->worst_unused, 0);
	assert_true(alloc_row_unused(&replayed.rows[0]) < 1e-9);
}

static void read_trace(const char *path)
{
	struct import_stats stats;
	struct error err;
	assert_int_equal(import_file(path, TRACE, &stats, &err), 0);
	assert_int_equal(trace_open(TRACE, &trace, &err), 0);
	assert_int_equal(report_make(trace, 2, FACETS_BUT_HINTS, &report, &err), 0);
	assert_int_equal(alloc_trace_read(report, &given, &err), 0);
}

static void read_text(const char *text)
{
	FILE *f = fopen(SOURCE, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	read_trace(SOURCE);
}

static void allocations_and_their_frees_are_taken_in_order(void **state)
{
	read_text("action,addr,size,stream\n"
		  "segment_alloc,4096,2097152,0\n"
		  "free_completed,8192,512,0\n" /* of what was there before */
		  "alloc,4096,1024,0\n"
		  "alloc,8192,512,7\n"
		  "free_requested,4096,1024,0\n"
		  "free_completed,4096,1024,0\n"
		  "alloc,4096,2048,0\n"
		  "alloc,4096,512,0\n"); /* over a live one */
	assert_true(given.framework);
	assert_int_equal(given.blocks, 4);
	assert_int_equal(given.streams, 2);
	assert_int_equal(given.events.n, 6);
	assert_int_equal(given.live_peak, 2560);
	assert_int_equal(given.live_most, 2);
	assert_int_equal(given.processes, 1);
	const struct alloc_event *e = given.events.v;
	assert_int_equal(e[0].ns, 0);
	assert_int_equal(e[0].bytes, 1024);
	assert_int_equal(e[1].stream, 1);
	assert_true(e[2].free && e[2].block == 0 && e[2].bytes == 1024);
	assert_true(e[4].free && e[4].block == 2);
	assert_int_equal(e[5].bytes, 512);
}

/* Each share against what models in another language, written apart from these, made of the trace:
 * 60 forward passes of OPT-125m with sentences of varying length. */
static void a_recording_gives_the_known_shares(void **state)
{
	static const struct {
		const char *design;
		uint64_t handle;
		size_t row;
		double share;
	} known[] = {
		{ "pytorch", 8 * MIB, 0, .698 },
		{ "expandable", 8 * MIB, 0, .930 },
		{ "pool", 2 * MIB, 1, .998 },
		{ "pool", 8 * MIB, 1, .991 },
		{ "pool", 32 * MIB, 1, .966 },
		{ "pool", 8 * MIB, 0, .941 },
	};
	read_trace(GOLDEN "/alloc/opt-varlen.csv.gz");
	assert_int_equal(given.blocks, 17131);
	assert_int_equal(given.live_peak / MIB, 2410);
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		const unsigned mask = alloc_designs_parse(known[i].design);
		assert_int_equal(allocator_replay(&given, mask, known[i].handle, &replayed), 0);
		const struct alloc_row *row = &replayed.rows[known[i].row];
		assert_true(fabs(alloc_row_share(&replayed, row) - known[i].share) < .005);
		assert_int_equal(row->meter.over, 0);
		assert_true(alloc_row_unused(row) >= 0 && alloc_row_unused(row) <= 1);
		assert_true(row->meter.worst_unused <= row->meter.reserved_peak);
		if (known[i].row)
			assert_int_equal(row->meter.reserved_peak, replayed.minimum_limit);
	}
	assert_int_equal(replayed.rows[1].setup.limit_bytes, 2432 * MIB);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(names_are_those_of_designs),
		TEST(pytorch_takes_segments_of_three_sizes),
		TEST(pytorch_takes_the_smallest_block_that_is_large_enough),
		TEST(pytorch_joins_what_lies_side_by_side),
		TEST(streams_share_no_segments_in_pytorch),
		TEST(an_expandable_segment_grows_at_its_end),
		TEST(the_driver_gives_pages_and_takes_them_back),
		TEST(the_pool_moves_handles_at_its_minimum_limit),
		TEST(several_streams_keep_the_limit_that_is_said),
		TEST(what_is_reserved_and_not_live_counts_by_its_time),
		TEST(what_was_live_and_reserved_is_kept_over_time),
		TEST(allocations_and_their_frees_are_taken_in_order),
		TEST(a_recording_gives_the_known_shares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
