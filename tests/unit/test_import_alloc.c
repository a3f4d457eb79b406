/* Tables of allocations, imported, followed and exported again. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "report/report_make.h"
#include "base/hash.h"
#include "export/export.h"
#include "import/import.h"
#include "memory/memory.h"

#define SOURCE "test_import_alloc.csv"
#define TRACE  "test_import_alloc.weir"

static struct import_stats stats;
static struct error err;
static struct trace *trace;
static struct report *report;

static void let_go(void)
{
	report_free(report);
	trace_close(trace);
	report = NULL;
	trace = NULL;
}

static int end(void **state)
{
	let_go();
	unlink(SOURCE);
	unlink(TRACE);
	return 0;
}

static int import_bytes(const void *bytes, size_t n)
{
	FILE *f = fopen(SOURCE, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	let_go();
	err.text[0] = '\0';
	const int e = import_file(SOURCE, TRACE, &stats, &err);
	if (e)
		return e;
	assert_int_equal(trace_open(TRACE, &trace, &err), 0);
	assert_int_equal(trace->schema.bad_lines, 0);
	assert_int_equal(report_make(trace, 2, FACETS_BUT_HINTS, &report, &err), 0);
	return 0;
}

static int import(const char *text)
{
	return import_bytes(text, strlen(text));
}

#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"

static void a_log_of_rmm_is_read_whole(void **state)
{
	static const char log[] = RMM "7,15:47:02.841961,allocate,0x10012400000,1048576,0x0\n"
				      "8,15:47:02.841962,allocate,0x20000000000,4096,0x2\n"
				      "8,15:47:02.841999,allocate failure,0x0,99999999999,0x2\n"
				      "7,15:47:03.000001,free,0x10012400000,1048576,0x0\n";
	assert_int_equal(import(log), 0);
	assert_int_equal(stats.allocator_events, 4);
	assert_int_equal(report->gpu_memory.peak_bytes, 1052672);
	assert_int_equal(report->gpu_memory.live_bytes, 4096);
	assert_int_equal(report->errors, 1);
	assert_int_equal(report->threads.n, 2);
	assert_int_equal(report->memory_detail->origins.n, 2);
}

static void older_logs_have_other_numbers(void **state)
{
	assert_int_equal(import(RMM "7,23:59:59:999000,allocate,7f0000000000,512,(nil)\r\n"
				    "7,00:00:00:001000,allocate,7f0000000200,512,0\r\n"
				    "7,00:00:00:002000,free,7f0000000000,512,0\r\n"),
		0);
	assert_int_equal(report->gpu_memory.live_bytes, 512);
	assert_int_equal(report->live.v[0].pointer, 0x7f0000000200);
	assert_int_equal(report->wall_ns, 3000000); /* over midnight */
}

static void rows_keep_their_order_within_a_microsecond(void **state)
{
	char text[4000] = RMM;
	for (int i = 0; i < 20; i++) {
		const size_t n = strlen(text);
		snprintf(text + n, sizeof text - n, "1,10:00:00.000005,%s,0x1000,10,0\n",
			i % 2 ? "free" : "allocate");
	}
	assert_int_equal(import(text), 0);
	assert_int_equal(report->gpu_memory.peak_bytes, 10);
	assert_int_equal(report->gpu_memory.live, 0);
	assert_int_equal(report->memory_detail->matched, 10);
}

static void events_of_pytorch_have_segments(void **state)
{
	assert_int_equal(import("action,addr,size,stream\n"
				"segment_alloc,140000000000000,2097152,0\n"
				"alloc,140000000000000,512,0\n"
				"alloc,140000000000512,1024,0\n"
				"free_requested,140000000000000,512,0\n"
				"free_completed,140000000000000,512,0\n"
				"segment_free,150000000000000,1,0\n"
				"snapshot,0,0,0\n"),
		0);
	const struct memory_vmm *v = &report->memory_detail->vmm;
	assert_int_equal(report->gpu_memory.peak_bytes, 1536);
	assert_int_equal(report->gpu_memory.live_bytes, 1024);
	assert_int_equal(v->segments.most, 2097152);
	assert_int_equal(v->segments_at_peak, 2097152);
	assert_int_equal(v->unknown, 1);
	bool said = false;
	for (size_t i = 0; i < report->warnings.n; i++)
		said = said || strstr(report->warnings.v[i], "has no times");
	assert_true(said);
}

static void columns_may_stand_in_any_order(void **state)
{
	assert_int_equal(import("\xef\xbb\xbf\"Size\", \"note\",time_us , ADDRESS,Event\n"
				"10, x,5.5,0x1000,malloc\n"
				"\n"
				"20,,7,4096,malloc\n"),
		0);
	assert_int_equal(report->gpu_memory.allocs, 2);
	assert_int_equal(report->gpu_memory.live_bytes, 20); /* over the first */
	assert_int_equal(report->wall_ns, 1500);
}

static void a_gzip_file_is_read_as_well(void **state)
{
	gzFile f = gzopen(SOURCE, "wb");
	assert_non_null(f);
	assert_true(gzputs(f, "action,addr,size\nalloc,4096,77\n") > 0);
	gzclose(f);
	assert_int_equal(import_file(SOURCE, TRACE, &stats, &err), 0);
	assert_int_equal(stats.allocator_events, 1);
	assert_string_equal(stats.format, "table of allocations");
}

/* Compressed blanks; the rows before the limit are kept. */
static void a_small_file_that_unpacks_to_a_large_one_is_left(void **state)
{
	gzFile f = gzopen(SOURCE, "wb");
	gzputs(f, "action,addr,size\n");
	for (int i = 0; i < 65 << 9; i++)
		gzprintf(f, "alloc,4096,%2040d\n", 1);
	gzclose(f);
	assert_int_equal(import_file(SOURCE, TRACE, &stats, &err), 0);
	assert_in_range(stats.allocator_events, 63 << 9, 65 << 9);
	assert_non_null(strstr(stats.partial, "more than a file of its size may hold"));
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "alloc,12x,5,0\n", "line 3: \"12x\" is no address" },
		{ "alloc,-5,5,0\n", "line 3: \"-5\" is no address" },
		{ "alloc,4096,,0\n", "line 3: \"\" is no size" },
		{ "alloc,4096,99999999999999999999,0\n", "is no size" },
		{ "alloc,4096,5,x\n", "line 3: \"x\" is no stream" },
		{ "burn,4096,5,0\n", "line 3: \"burn\" is no action" },
		{ "\x1b[31m,4096,5,0\n", "line 3: \"?[31m\" is no action" },
		{ "alloc,4096\n", "line 3 has 2 fields, and the first line 4" },
		{ "alloc,1,2,3,4\n", "line 3 has 5 fields" },
	};
	char text[512];
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		snprintf(text, sizeof text, "action,addr,size,stream\nalloc,1,2,3\n%s",
			rows[i].text);
		assert_int_equal(import(text), -EINVAL);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s", err.text);
		assert_non_null(strstr(err.text, SOURCE));
	}
}

static void times_that_are_none_are_refused(void **state)
{
	static const char *const times[] = { "x", "1:2", "10:61:00", "99999999999999999999",
		"1.2.3", "-1", ":", "1:2:3:4:5" };
	char text[256];
	for (size_t i = 0; i < COUNT_OF(times); i++) {
		snprintf(text, sizeof text, RMM "1,%s,allocate,0x1000,10,0\n", times[i]);
		assert_int_equal(import(text), -EINVAL);
		if (!strstr(err.text, "is no time"))
			fail_msg("%s: %s", times[i], err.text);
	}
}

static void a_last_line_cut_off_is_left_out(void **state)
{
	assert_int_equal(import("action,addr,size\nalloc,4096,77\nalloc,81"), 0);
	assert_int_equal(report->gpu_memory.allocs, 1);
	assert_non_null(strstr(stats.partial, "line 3 has 2 fields"));
}

static void long_lines_and_zeros_are_no_rows(void **state)
{
	static char text[10000];
	const int n = snprintf(text, sizeof text, "action,addr,size\nalloc,");
	memset(text + n, '1', sizeof text - (size_t)n);
	assert_int_equal(import_bytes(text, sizeof text), -EINVAL);
	assert_non_null(strstr(err.text, "line 2 is longer than"));
	assert_int_equal(import_bytes("action,addr,size\nal\0loc,1,2\nalloc,1,2\n", 38), -EINVAL);
	assert_non_null(strstr(err.text, "line 2 has a byte that is zero"));
	assert_int_equal(import("action,addr\nalloc,1\n"), -EINVAL); /* no such table */
	assert_non_null(strstr(err.text, "columns action, pointer and size"));
}

/* A random log, followed by a list that is searched from its beginning. */
static void a_random_log_is_followed(void **state)
{
	struct {
		uint64_t pointer, bytes;
	} live[64] = { 0 };
	char *text = NULL;
	size_t size;
	uint64_t now = 0, peak = 0;
	FILE *out = open_memstream(&text, &size);
	fputs("action,addr,size\n", out);
	for (uint64_t i = 0; i < 5000; i++) {
		const uint64_t draw = hash_mix(i), slot = draw % COUNT_OF(live);
		if (live[slot].bytes) {
			fprintf(out, "free,%llu,0\n", (unsigned long long)live[slot].pointer);
			now -= live[slot].bytes;
			live[slot].bytes = 0;
			continue;
		}
		live[slot].pointer = (i + 1) << 12;
		live[slot].bytes = 1 + (draw >> 20) % 100000;
		now += live[slot].bytes;
		peak = now > peak ? now : peak;
		fprintf(out, "alloc,%llu,%llu\n", (unsigned long long)live[slot].pointer,
			(unsigned long long)live[slot].bytes);
	}
	fclose(out);
	assert_int_equal(import_bytes(text, size), 0);
	assert_int_equal(report->gpu_memory.peak_bytes, peak);
	assert_int_equal(report->gpu_memory.live_bytes, now);
	free(text);
}

#define ALLOC_TEST(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALLOC_TEST(a_log_of_rmm_is_read_whole),
		ALLOC_TEST(older_logs_have_other_numbers),
		ALLOC_TEST(rows_keep_their_order_within_a_microsecond),
		ALLOC_TEST(events_of_pytorch_have_segments),
		ALLOC_TEST(columns_may_stand_in_any_order),
		ALLOC_TEST(a_gzip_file_is_read_as_well),
		ALLOC_TEST(a_small_file_that_unpacks_to_a_large_one_is_left),
		ALLOC_TEST(what_is_wrong_is_said_with_its_line),
		ALLOC_TEST(times_that_are_none_are_refused),
		ALLOC_TEST(a_last_line_cut_off_is_left_out),
		ALLOC_TEST(long_lines_and_zeros_are_no_rows),
		ALLOC_TEST(a_random_log_is_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
