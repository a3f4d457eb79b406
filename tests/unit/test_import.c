/* Traces of other tools: what becomes of them, and of files that are none. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "maker.h"
#include "export/export.h"
#include "import/import.h"
#include "import/import_store.h"
#include "import/json_reader.h"
#include "report/report_make.h"
#include "trace/activity.h"
#include "trace/pack.h"

#define SOURCE "test_import.source"
#define TRACE  "test_import.weir"

static struct import_stats stats;
static struct error err;
static struct trace *trace;
static struct report *report;

static void write_file(const char *bytes, size_t n)
{
	FILE *file = fopen(SOURCE, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	fclose(file);
}

static void let_go(void)
{
	report_free(report);
	trace_close(trace);
	report = NULL;
	trace = NULL;
}

/* Imports SOURCE and makes its report. */
static int take_source(void)
{
	let_go();
	err.text[0] = '\0';
	const int e = import_file(SOURCE, TRACE, &stats, &err);
	if (e)
		return e;
	if (trace_open(TRACE, &trace, &err))
		fail_msg("%s", err.text);
	if (report_make(trace, 1, FACETS_BUT_HINTS, &report, &err))
		fail_msg("%s", err.text);
	assert_int_equal(trace->damage_count, 0);
	assert_int_equal(report->damaged_chunks + report->meta.damaged, 0);
	assert_int_equal(trace->schema.bad_lines, 0);
	return 0;
}

static int import(const char *text)
{
	write_file(text, strlen(text));
	return take_source();
}

static int end(void **state)
{
	let_go();
	unlink(SOURCE);
	unlink(TRACE);
	return 0;
}

static const struct activity_row *activity_named(const char *name)
{
	for (size_t i = 0; i < report->activities.n; i++)
		if (!strcmp(report->activities.v[i].name, name))
			return &report->activities.v[i];
	return NULL;
}

static const struct operator_row *operator_named(const char *name)
{
	for (size_t i = 0; i < report->operators.n; i++)
		if (!strcmp(report->operators.v[i].name, name))
			return &report->operators.v[i];
	return NULL;
}

#define OP(name, pid, ts, dur, id)                                                                 \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":" pid                      \
	",\"tid\":2,\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"External id\":" id                   \
	",\"Input Dims\":[[2,3],[]]}}"
#define CALL(name, pid, ts, dur, correlation)                                                      \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"pid\":" pid                \
	",\"tid\":2,\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"correlation\":" correlation "}}"
#define KERNEL(name, ts, dur, correlation)                                                         \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts    \
	",\"dur\":" dur                                                                            \
	",\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":" correlation          \
	",\"grid\":[4,2,1],\"block\":[32,1,1],\"registers per thread\":40}}"

static const char small[] = "{\"schemaVersion\":1,\"traceEvents\":[" OP("outer", "1", "10", "50",
	"1") "," OP("inner", "1", "20.5", "10.25", "2") "," KERNEL("k", "40.125", "2.5",
	"9") "," CALL("cudaLaunchKernel", "1", "25", "3", "9") "," KERNEL("k", "50", "1.001",
	"10") "," CALL("cudaLaunchKernel", "1", "45", "2", "10") "],\"traceName\":\"small\"}";

static void a_kernel_belongs_to_the_innermost_operator_of_its_call(void **state)
{
	assert_int_equal(import(small), 0);
	assert_int_equal(stats.calls, 2);
	assert_int_equal(stats.ranges, 2);
	assert_int_equal(stats.activities, 2);
	assert_int_equal(stats.unjoined, 0);
	assert_int_equal(report->kernel_rows.n, 1);
	const struct kernel_row *k = report->kernel_rows.v;
	assert_string_equal(k->name, "k");
	assert_int_equal(k->count, 2);
	assert_int_equal(report->activities.v[k->activity].total_ns, 3501);
	assert_int_equal(k->host_ticks, 5000);
	assert_int_equal(k->shape.grid[1], 2);
	const struct operator_row *inner = operator_named("inner"),
				  *outer = operator_named("outer");
	assert_int_equal(inner->device_self_ns, 2500);
	assert_int_equal(inner->device_total_ns, 2500);
	assert_int_equal(outer->device_self_ns, 1001);
	assert_int_equal(outer->device_total_ns, 3501);
	assert_int_equal(outer->host_self_ticks, 39750);
	assert_int_equal(report->devices.v[0].busy_ns, 3501);
	assert_int_equal(report->stream_rows.v[0].stream, 7);
}

#define PRODUCT(name, ts, dur, dims)                                                               \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" ts    \
	",\"dur\":" dur ",\"args\":{\"Input Dims\":" dims                                          \
	",\"Input type\":[\"float\",\"float\",\"float\"]}}"

/* The kernel that adds the bias runs longer than the product, which is made by the operator inside.
 * */
static void a_product_left_to_an_operator_inside_is_not_the_copys(void **state)
{
	assert_int_equal(
		import("{\"traceEvents\":[" PRODUCT("aten::addmm", "10", "50",
			"[[16],[64,32],[32,16]]") "," PRODUCT("aten::mm", "30", "20",
			"[[64,32],[32,16]]") "," CALL("cudaLaunchKernel", "1", "12", "3",
			"9") "," CALL("cudaLaunchKernel", "1", "35", "3", "10") "," KERNEL("add",
			"40", "9", "9") "," KERNEL("product", "50", "4", "10") "]}"),
		0);
	const double flops = 2.0 * 64 * 32 * 16;
	assert_false(activity_named("add")->roofline.has_flops);
	assert_true(activity_named("product")->roofline.flops == flops);
	assert_true(operator_named("aten::mm")->roofline.flops == flops);
	assert_true(operator_named("aten::addmm")->roofline.flops == flops);
	assert_int_equal(operator_named("aten::addmm")->roofline.ns, 13000);
}

/* Each beginning of the file gives what is whole in it, never less than a shorter one. */
static void a_file_cut_anywhere_gives_what_is_whole(void **state)
{
	uint64_t last = 0;
	for (size_t n = 1; n < sizeof small - 1; n += ROUNDS(1, 2)) {
		write_file(small, n);
		const int e = take_source();
		if (e) {
			assert_int_equal(last, 0);
			assert_true(strlen(err.text) > 10);
			continue;
		}
		assert_non_null(strstr(stats.partial, "events before it are here"));
		assert_int_equal(report->warnings.n, 1);
		assert_true(stats.calls + stats.ranges + stats.activities >= last);
		last = stats.calls + stats.ranges + stats.activities;
	}
	assert_int_equal(last, 6);
}

static void a_compressed_file_is_read_and_may_be_cut_too(void **state)
{
	uint8_t packed[4096];
	gzFile file = gzopen(SOURCE, "wb");
	gzwrite(file, small, sizeof small - 1);
	gzclose(file);
	assert_int_equal(take_source(), 0);
	assert_int_equal(stats.activities, 2);
	FILE *plain = fopen(SOURCE, "r");
	const size_t n = fread(packed, 1, sizeof packed, plain);
	fclose(plain);
	write_file((char *)packed, n - 40);
	if (!take_source())
		assert_true(*stats.partial);
	packed[n / 2] ^= 0x55;
	write_file((char *)packed, n);
	if (!take_source())
		assert_true(*stats.partial);
	else
		assert_true(*err.text);
}

/* Compressed blanks: what stands in front of them is kept, what is behind is not waited for. */
static void a_small_file_that_unpacks_to_a_large_one_is_left(void **state)
{
	static const char event[] = "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1}";
	char blanks[65536];
	memset(blanks, ' ', sizeof blanks);
	gzFile file = gzopen(SOURCE, "wb");
	gzprintf(file, "{\"traceEvents\":[%s,", event);
	for (int i = 0; i < 65 << 4; i++)
		gzwrite(file, blanks, sizeof blanks);
	gzprintf(file, "%s]}", event);
	gzclose(file);
	assert_int_equal(take_source(), 0);
	assert_int_equal(stats.ranges, 1);
	assert_non_null(strstr(stats.partial, "more than a file of its size may hold"));
}

static void older_names_and_numbers_as_strings_are_known(void **state)
{
	assert_int_equal(
		import("[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"o\",\"pid\":\"1\","
		       "\"tid\":\"2\",\"ts\":\"10\",\"dur\":\"20\"},"
		       "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\","
		       "\"pid\":1,\"tid\":2,\"ts\":11e0,\"dur\":1,\"args\":{\"correlation\":"
		       "\"5\",\"external id\":\"3\"}},"
		       "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":\"7\","
		       "\"ts\":15,\"dur\":3,\"args\":{\"correlation\":5}},"
		       "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD (Pinned -> "
		       "Device)\",\"pid\":0,\"tid\":7,\"ts\":25,\"dur\":2,\"args\":{\"bytes\":"
		       "1000}},]"),
		0);
	assert_int_equal(operator_named("o")->device_self_ns, 3000);
	assert_int_equal(trace->processes.v[0].pid, 1);
	const struct copy_row *c = report->device_copies.v;
	assert_int_equal(c->what, COPY_HTOD);
	assert_int_equal(c->from, MEMORY_KIND_PINNED);
	assert_int_equal(c->to, MEMORY_KIND_DEVICE);
	assert_string_equal(report->copies.v[0].direction, "HtoD");
	assert_int_equal(report->copies.v[0].bytes, 1000);
	assert_int_equal(stats.unjoined, 1);
}

static void processes_may_use_the_same_correlations(void **state)
{
	assert_int_equal(
		import("{\"traceEvents\":[" OP("one", "1", "10", "5", "1") "," OP(
			"two", "2", "100", "5", "1") "," CALL("cudaLaunchKernel", "1", "11", "1",
			"7") "," CALL("cudaLaunchKernel", "2", "101", "1", "7") "," KERNEL("k",
			"12", "1", "7") "," KERNEL("k", "102", "2", "7") "]}"),
		0);
	assert_int_equal(operator_named("one")->device_self_ns, 1000);
	assert_int_equal(operator_named("two")->device_self_ns, 2000);
	assert_int_equal(trace->processes.n, 2);
	assert_int_equal(activity_named("k")->count, 2);
}

static void work_without_a_call_finds_its_operator_by_number(void **state)
{
	assert_int_equal(
		import("[" OP("o", "1", "10", "5",
			"31") ",{\"ph\":\"X\",\"cat\":"
			      "\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":40,"
			      "\"dur\":2,\"args\":{\"External id\":31,\"correlation\":8}}]"),
		0);
	assert_int_equal(stats.unjoined, 1);
	assert_int_equal(operator_named("o")->device_self_ns, 2000);
}

static void a_range_that_calls_itself_counts_its_time_once(void **state)
{
	assert_int_equal(import("[" OP("f", "1", "10", "50", "1") "," OP(
				 "f", "1", "15", "30", "2") "," OP("g", "1", "16", "20",
				 "3") "," OP("f", "1", "17", "10", "4") "," CALL("cudaLaunchKernel",
				 "1", "18", "1", "9") "," KERNEL("k", "60", "3", "9") "]"),
		0);
	assert_int_equal(operator_named("f")->device_total_ns, 3000);
	assert_int_equal(operator_named("f")->host_ticks, 50000);
	assert_int_equal(operator_named("f")->count, 2); /* one only passes on */
	assert_int_equal(operator_named("g")->device_total_ns, 3000);
}

static void begin_and_end_events_make_ranges(void **state)
{
	assert_int_equal(import("[{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1},"
				"{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2},"
				"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},"
				"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5},"
				"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6},"
				"{\"ph\":\"B\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":7}]"),
		0);
	assert_int_equal(stats.ranges, 2);
	assert_int_equal(stats.left_out, 2); /* an end too many, and a begin */
}

static void times_that_cannot_be_are_counted(void **state)
{
	assert_int_equal(import("[" OP("a", "1", "-5", "2", "1") "," OP("b", "1", "1e300", "2",
				 "1") "," OP("c", "1", "5", "1e300", "1") "," OP("d", "1", "NaN",
				 "1", "1") "," OP("e", "1", "5", "-3", "1") "," OP("f", "1", "null",
				 "1", "1") "," KERNEL("k", "9", "-1", "1") "]"),
		0);
	assert_int_equal(stats.ranges, 1);
	assert_int_equal(stats.left_out, 5);
	assert_int_equal(activity_named("k")->total_ns, 0);
}

static void functions_that_are_new_get_a_name_of_their_own(void **state)
{
	assert_int_equal(import("[" CALL("cudaNotYetThere(x y", "1", "1", "1", "1") "," CALL(
				 "cudaLaunchKernel_v7000", "1", "3", "1",
				 "2") "," CALL("cuMemcpyHtoDAsync_v2", "1", "5", "1", "3") "]"),
		0);
	bool found = false;
	for (size_t i = 0; i < report->call_rows.n; i++) {
		assert_non_null(report->call_rows.v[i].fn);
		found |= !strcmp(report->call_rows.v[i].fn->name, "cudaNotYetThere_x_y");
	}
	assert_true(found);
	assert_int_equal(report->call_rows.n, 3);
}

static void what_is_no_trace_is_told_in_a_sentence(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "hello", "is neither JSON, nor" },
		{ "{}", "has no traceEvents" },
		{ "{\"traceEvents\":5}", "has no traceEvents" },
		{ "[1,2", "holds no whole event: the file ends in the middle" },
		{ "{\"traceEvents\":[{\"ph\":\"X\" \"name\":1}]}",
			"a comma is missing at byte 26" },
		{ "{\"traceEvents\":[}]}", "brackets do not match" },
		{ "{\"a\" 1}", "a colon is missing" },
		{ "{1:2}", "a key is missing" },
		{ "{\"a\":truth}", "a word that is no value" },
		{ "WEIRTRC\n", "is a trace of Weir's already" },
		{ "PK\3\4", "unpack it" },
		{ "SQLite format 3", "without the tables of Nsight Systems" },
		{ "  ", "the file ends" },
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_true(import(cases[i].text) < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
	write_file("", 0);
	assert_int_equal(take_source(), -EINVAL);
	assert_non_null(strstr(err.text, "is empty"));
	assert_int_equal(import_file(".", TRACE, &stats, &err), -EISDIR);
	assert_int_equal(import_file("/dev/null", TRACE, &stats, &err), -EINVAL);
	assert_int_equal(import_file("no-such-file", TRACE, &stats, &err), -ENOENT);
	write_file(small, sizeof small - 1);
	assert_int_equal(import_file(SOURCE, "no/such/folder", &stats, &err), -ENOENT);
}

static void nesting_ends_somewhere(void **state)
{
	char text[4096];
	memset(text, '[', 1000);
	text[1000] = '\0';
	assert_true(import(text) < 0);
	assert_non_null(strstr(err.text, "nested too deep"));
	memset(text, ']', sizeof text);
	memcpy(text, "[{\"ph\":\"X\",\"ts\":1,\"args\":{\"a\":", 30);
	memset(text + 30, '[', 400);
	memcpy(text + 830, "}}]", 4);
	assert_int_equal(import(text), 0);
	assert_int_equal(stats.ranges, 1);
}

static void the_same_file_gives_the_same_bytes(void **state)
{
	static char one[65536], two[65536];
	assert_int_equal(import(small), 0);
	FILE *file = fopen(TRACE, "r");
	const size_t n = fread(one, 1, sizeof one, file);
	fclose(file);
	assert_int_equal(import(small), 0);
	file = fopen(TRACE, "r");
	assert_int_equal(fread(two, 1, sizeof two, file), n);
	fclose(file);
	assert_memory_equal(one, two, n);
	struct stat st;
	assert_int_equal(stat(TRACE, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* By way of chrome's format and back: the operators are found by their numbers. */
static void what_is_exported_can_be_imported_again(void **state)
{
	static const char text[] = "[" OP("o", "1", "10", "50",
		"31") ",{\"ph\":\"X\",\"cat\":\"kernel\","
		      "\"name\":\"k<\\\"a\\\">\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":2.5,\"args\":"
		      "{\"External id\":31,\"device\":0,\"stream\":7,\"grid\":[1,2,3],\"block\":"
		      "[4,5,6]}},{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device "
		      "-> Pinned)\",\"pid\":0,\"tid\":7,\"ts\":50,\"dur\":1,\"args\":{\"bytes\":"
		      "64}}]";
	assert_int_equal(import(text), 0);
	assert_int_equal(export_run(exporter_find("chrome"), trace, NULL, SOURCE, NULL, &err), 0);
	assert_int_equal(take_source(), 0);
	assert_int_equal(activity_named("k<\"a\">")->total_ns, 2500);
	assert_int_equal(activity_named("k<\"a\">")->shape.block[2], 6);
	assert_int_equal(operator_named("o")->device_self_ns, 2500);
	assert_int_equal(report->copies.v[0].bytes, 64);
}

static void numbers_are_taken_digit_by_digit(void **state)
{
	static const struct {
		const char *text;
		unsigned times;
		bool good;
		int64_t value;
	} cases[] = {
		{ "4319771774068.53", 1000, true, 4319771774068530 },
		{ "4319771774068.5304", 1000, true, 4319771774068530 },
		{ "4319771774068.5306", 1000, true, 4319771774068531 },
		{ "1700000000000000.123", 1000, true, 1700000000000000123 },
		{ "0.0004", 1000, true, 0 },
		{ "0.0006", 1000, true, 1 },
		{ "-2.5", 1000, true, -2500 },
		{ "1e3", 1, true, 1000 },
		{ "1.5E-1", 1000, true, 150 },
		{ "12345678901234567890123e-10", 1, true, 1234567890123 },
		{ "9223372036854775807", 1, true, INT64_MAX },
		{ "9223372036854775808", 1, false, 0 },
		{ "1e300", 1000, false, 0 },
		{ "1e-300", 1000, true, 0 },
		{ "1e99999999999", 1, false, 0 },
		{ "0e99999999999", 1, true, 0 },
		{ "", 1, false, 0 },
		{ "-", 1, false, 0 },
		{ ".", 1, false, 0 },
		{ "1e", 1, false, 0 },
		{ "1x", 1, false, 0 },
		{ "1.2.3", 1, false, 0 },
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		int64_t value = 0;
		const bool good = json_number(cases[i].text, cases[i].times, &value);
		if (good != cases[i].good || (good && value != cases[i].value))
			fail_msg("%s: %d %lld", cases[i].text, good, (long long)value);
	}
}

static void gpu_activities_survive_packing(void **state)
{
	struct gpu_activity activity[100] = { 0 };
	for (size_t i = 0; i < COUNT_OF(activity); i++)
		activity[i] = (struct gpu_activity){ .start_ns = 1000000 + i * 100,
			.end_ns = 1000000 + i * 100 + i % 7,
			.kind = i % 10 ? GPU_KERNEL : 0, /* a slot that holds nothing */
			.correlation = UINT64_MAX - i,
			.valid = GPU_HAS_CORRELATION };
	struct maker *m = maker_new(SOURCE, maker_schema, TRACE_GRAIN);
	maker_chunk(m, CHUNK_DEVICE, 100, 0, activity, sizeof activity);
	maker_chunk(m, 99, 100, 0, activity, sizeof activity); /* a kind of chunk from later */
	maker_finish(m, 2000000, false);
	struct pack_stats pack = { 0 };
	let_go();
	assert_int_equal(trace_pack(SOURCE, TRACE, &pack, &err), 0);
	static const char *const forms[] = { SOURCE, TRACE };
	for (int form = 0; form < 2; form++) {
		struct chunk_buf buf = { 0 };
		struct gpu_activity w;
		size_t at = 0, chunk = 0, i = 0;
		assert_int_equal(trace_open(forms[form], &trace, &err), 0);
		while (trace->chunks[chunk].head.kind != CHUNK_DEVICE)
			chunk++;
		assert_int_equal(trace_load(trace, chunk, &buf, &err), 0);
		for (; activity_next(&buf, &at, &w); i++) {
			i += i % 10 == 0;
			assert_memory_equal(&w, &activity[i], sizeof w);
		}
		assert_int_equal(i, COUNT_OF(activity));
		chunk_buf_fini(&buf);
		trace_close(trace);
		trace = NULL;
	}
}

static const char nsys_schema[] =
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);"
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);"
	"CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER,"
	" smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
	"CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,"
	" streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
	" demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
	" launchType INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,"
	" gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,"
	" blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,"
	" dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER, graphId INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
	" correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,"
	" copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
	" correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL,"
	" end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,"
	" correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,"
	" nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);"
	"CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,"
	" rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,"
	" endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);";

#define GLOBAL_TID "281475933012056" /* machine 1, pid 57, tid 88: 1 << 48 | 57 << 24 | 88 */
#define GLOBAL_PID "281475933011968"

static const char nsys_rows[] =
	"INSERT INTO StringIds VALUES (1, 'axpy(float*, int)'), (2, 'axpy'),"
	" (3, 'cudaLaunchKernel_v7000'), (4, 'cudaMemcpyAsync_v3020'), (5, 'step'), (6, 'main'),"
	" (7, 'cudaFree_v3020');"
	"INSERT INTO ThreadNames VALUES (6, 10, " GLOBAL_TID ");"
	"INSERT INTO PROCESSES VALUES (" GLOBAL_PID ", 57, '/bin/app');"
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, 'x');"
	"INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', 150109880320, 132, 9, 0);"
	"INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'a', 'Pageable'), (1, 'b', 'Pinned'),"
	" (2, 'c', 'Device');"
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 7000, 0, 1, NULL, 7, 11, " GLOBAL_PID
	", 1, 2, 1, 1, 32, 8, 1, 1, 128, 1, 1, 0, 16, NULL, NULL),"
	" (8000, 7999, 0, 1, NULL, 7, 12, " GLOBAL_PID
	", 1, 2, 1, 1, 32, 8, 1, 1, 128, 1, 1, 0, 16, NULL, NULL);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (9000, 9500, 0, 1, 7, 13, " GLOBAL_PID
	", 4096, 1, 1, 2, NULL);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (9600, 9700, 0, 1, 7, 14, " GLOBAL_PID
	", 0, 64, NULL, 2);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (9700, 9900, 0, 1, 7, 15, " GLOBAL_PID
	", 3);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 2000, 0, " GLOBAL_TID
	", 11, 3, 0, NULL), (3000, 3500, 0, " GLOBAL_TID ", 13, 4, 0, NULL),"
	" (3600, 3700, 0, " GLOBAL_TID ", 16, 7, 1, NULL);"
	"INSERT INTO NVTX_EVENTS VALUES (500, 2500, 59, NULL, 0, 0, NULL, " GLOBAL_TID ", NULL, 5,"
	" 0), (900, 2100, 59, NULL, 0, 0, 'inner', " GLOBAL_TID ", NULL, NULL, 0),"
	" (100, 9000, 60, 1, 0, 0, 'span', " GLOBAL_TID ", NULL, NULL, 0),"
	" (100, NULL, 34, 1, 0, 0, 'mark', " GLOBAL_TID ", NULL, NULL, 0),"
	" (9000, NULL, 59, 1, 0, 0, 'unfinished', " GLOBAL_TID ", NULL, NULL, 0);";

static void make_database(const char *sql, const char *more)
{
	sqlite3 *db;
	char *message = NULL;
	unlink(SOURCE);
	assert_int_equal(sqlite3_open(SOURCE, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) ||
		sqlite3_exec(db, more, NULL, NULL, &message))
		fail_msg("%s", message);
	sqlite3_close(db);
}

static void an_export_of_nsight_systems_is_read(void **state)
{
	make_database(nsys_schema, nsys_rows);
	if (take_source())
		fail_msg("%s", err.text);
	assert_string_equal(stats.partial, "");
	assert_int_equal(stats.calls, 3);
	assert_int_equal(stats.ranges, 3);
	assert_int_equal(stats.activities, 4);
	assert_int_equal(stats.left_out, 2); /* ends before it begins; never ended */
	assert_int_equal(trace->processes.v[0].pid, 57);
	assert_string_equal(report->meta.processes.v[0].executable, "/bin/app");
	assert_int_equal(report->threads.v[0].tid, 88);
	assert_string_equal(report->threads.v[0].name, "main");
	assert_string_equal(report->kernel_rows.v[0].name, "axpy(float*, int)");
	assert_int_equal(report->kernel_rows.v[0].shape.block[0], 128);
	assert_int_equal(report->kernel_rows.v[0].host_ticks, 1000);
	assert_int_equal(operator_named("inner")->device_self_ns, 2000);
	assert_int_equal(operator_named("step")->device_total_ns, 2000);
	assert_int_equal(report->device_copies.v[0].from, MEMORY_KIND_PINNED);
	assert_int_equal(report->device_copies.v[0].to, MEMORY_KIND_DEVICE);
	assert_int_equal(report->device_copies.v[0].bytes, 4096);
	assert_int_equal(activity_named("Synchronize")->kind, GPU_SYNC);
	assert_int_equal(report->devices.v[0].busy_ns, 2000 + 500 + 100);
	assert_string_equal(report->devices.v[0].name, "NVIDIA H200");
	assert_int_equal(report->errors, 1);
	assert_int_equal(trace->header.start.real_ns, 1700000000000000000 + 100);
}

/* As one that came through a pipe. */
static void a_database_without_a_name_is_read(void **state)
{
	char path[40];
	make_database(nsys_schema, nsys_rows);
	const int fd = open(SOURCE, O_RDONLY);
	assert_true(fd >= 0);
	unlink(SOURCE);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (import_file(path, TRACE, &stats, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stats.calls, 3);
	assert_int_equal(stats.activities, 4);
	close(fd);
}

static void tables_and_columns_may_be_missing(void **state)
{
	make_database("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT);"
		      "CREATE TABLE StringIds (id INT, value TEXT);",
		"INSERT INTO StringIds VALUES (7, 'gemv');"
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 4, 7), (5, 6, 8), ('x', NULL, "
		"7);");
	assert_int_equal(take_source(), 0);
	assert_int_equal(activity_named("gemv")->total_ns, 3);
	assert_int_equal(activity_named("(no name)")->total_ns, 1);
	assert_int_equal(stats.left_out, 1);
	make_database("CREATE TABLE x (y INT);", "");
	assert_int_equal(take_source(), -EINVAL);
	assert_non_null(strstr(err.text, "without the tables of Nsight Systems"));
	make_database(
		"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(start) AS (SELECT "
		"1 UNION ALL SELECT start + 1 FROM c) SELECT start, start AS end FROM c;",
		"");
	assert_int_equal(take_source(), -EINVAL);
}

/* SQLite refuses some of what is left, and reads some of it. */
static void a_damaged_database_does_no_harm(void **state)
{
	static char bytes[1 << 17];
	make_database(nsys_schema, nsys_rows);
	FILE *file = fopen(SOURCE, "r");
	const size_t n = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	for (size_t cut = n; cut > 16; cut -= 1024 < cut ? 1024 : cut) {
		write_file(bytes, cut);
		if (take_source())
			assert_true(*err.text);
	}
	for (size_t at = 16; at < n; at += 97) {
		bytes[at] ^= 0x41;
		write_file(bytes, n);
		if (take_source())
			assert_true(*err.text);
	}
}

/* The work that an operator has a library do is its own, and the library's call knows what it
 * costs. */
static void the_work_of_a_library_is_that_of_its_operator(void **state)
{
	static const char gemm[] =
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"cublasGemmEx\",\"pid\":1,"
		"\"tid\":2,\"ts\":20,\"dur\":10,\"args\":{\"m\":8,\"n\":4,\"k\":2,"
		"\"batch\":1,\"type\":\"float16\"}}";
	char text[2048];
	snprintf(text, sizeof text, "{\"traceEvents\":[%s,%s,%s,%s]}",
		OP("my_mm", "1", "10", "50", "1"), gemm,
		CALL("cudaLaunchKernel", "1", "25", "3", "9"), KERNEL("k", "40", "2", "9"));
	assert_int_equal(import(text), 0);
	assert_int_equal(operator_named("my_mm")->device_self_ns, 2000);
	assert_int_equal(operator_named("my_mm")->activity_count, 1);
	assert_true(operator_named("my_mm")->roofline.flops == 2 * 8 * 4 * 2);
	assert_int_equal(operator_named("cublasGemmEx")->device_self_ns, 0);
	assert_int_equal(operator_named("cublasGemmEx")->device_total_ns, 2000);
	assert_true(activity_named("k")->roofline.flops == 2 * 8 * 4 * 2);
}

#define MEMORY_OF(tid, ts, bytes, address, total, type)                                            \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1," \
	"\"tid\":" tid ",\"ts\":" ts ",\"args\":{\"Total Allocated\":" total ",\"Bytes\":" bytes   \
	",\"Device Id\":0,\"Device Type\":" type ",\"Addr\":" address "}}"
#define MEMORY(ts, bytes, address, total, type) MEMORY_OF("2", ts, bytes, address, total, type)

/* 1000 bytes are there before; 300 of them are given back, 700 stay. */
static void the_live_set_is_what_the_allocator_said(void **state)
{
	assert_int_equal(
		import("{\"traceEvents\":[" OP("mm", "1", "10", "50", "1") "," MEMORY(
			"15", "512", "4096", "1512", "1") "," MEMORY("20", "64", "9", "64",
			"0") "," MEMORY("25", "-300", "8192", "1212", "1") "," MEMORY("30", "256",
			"16384", "1468", "1") "," MEMORY("35", "-512", "4096", "956", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 1512);
	assert_int_equal(report->gpu_memory.live_bytes, 956);
	assert_int_equal(report->gpu_memory.allocs, 4);
	assert_int_equal(report->gpu_memory.frees, 2);
	assert_int_equal(report->live.n, 2);
	assert_int_equal(report->live.v[0].bytes, 700);
	assert_int_equal(report->live.v[1].bytes, 256);
	assert_int_equal(stats.allocator_events, 4);
}

/* A thread gives back what another one, which comes later in the file, has allocated. */
static void allocations_of_several_threads_are_taken_in_the_order_of_time(void **state)
{
	assert_int_equal(import("{\"traceEvents\":[" MEMORY_OF("3", "30", "-512", "4096", "1000",
				 "1") "," MEMORY_OF("2", "20", "512", "4096", "1512", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 1512);
	assert_int_equal(report->gpu_memory.live_bytes, 1000);
	assert_int_equal(report->gpu_memory.allocs, 2);
	assert_int_equal(report->gpu_memory.frees, 1);
}

/* Both at 20: the one that ends at 712 came first, since the other begins there. */
static void allocations_of_one_time_go_on_where_the_last_one_ended(void **state)
{
	assert_int_equal(import("{\"traceEvents\":[" MEMORY_OF("2", "10", "512", "4096", "512",
				 "1") "," MEMORY_OF("2", "20", "-512", "4096", "200",
				 "1") "," MEMORY_OF("3", "20", "200", "8192", "712", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 712);
	assert_int_equal(report->gpu_memory.live_bytes, 200);
	assert_int_equal(report->gpu_memory.allocs, 2);
	assert_int_equal(report->gpu_memory.frees, 1);
}

/* 1000 bytes come and go where nobody looks, and 300 of the time before. */
static void what_threads_do_that_nobody_looks_at_is_known_by_its_size(void **state)
{
	assert_int_equal(
		import("{\"traceEvents\":[" MEMORY("10", "512", "4096", "912", "1") "," MEMORY(
			"20", "256", "8192", "2168", "1") "," MEMORY("30", "-512", "4096", "656",
			"1") "," MEMORY("40", "64", "4096", "420", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 2168);
	assert_int_equal(report->gpu_memory.live_bytes, 420);
	assert_int_equal(report->gpu_memory.live, 3);
}

/* 8192 was freed by who knows whom, and then is part of what somebody else has; so is 4096. */
static void a_block_that_nobody_was_seen_freeing_makes_room(void **state)
{
	assert_int_equal(
		import("{\"traceEvents\":[" MEMORY("10", "512", "4096", "512", "1") "," MEMORY(
			"20", "256", "8192", "768", "1") "," MEMORY("30", "64", "16384", "576",
			"1") "," MEMORY("40", "32", "4096", "96", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 768);
	assert_int_equal(report->gpu_memory.live_bytes, 96);
	assert_int_equal(report->gpu_memory.live, 2);
}

/* 512 bytes at 16384 cannot be those that were there before: all is gone at 20. */
static void a_block_of_somebody_else_is_not_taken_for_one_of_before(void **state)
{
	assert_int_equal(import("{\"traceEvents\":[" MEMORY(
				 "10", "512", "4096", "1024", "1") "," MEMORY("20", "1024", "8192",
				 "1024", "1") "," MEMORY("30", "-512", "16384", "1024", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 1536);
	assert_int_equal(report->gpu_memory.live_bytes, 1024);
	assert_int_equal(report->gpu_memory.live, 1);
}

/* The freed block is larger than the allocated one that was seen there: other hands were between.
 */
static void a_free_of_another_size_is_of_another_block(void **state)
{
	assert_int_equal(import("{\"traceEvents\":[" MEMORY(
				 "10", "512", "4096", "512", "1") "," MEMORY("20", "256", "8192",
				 "2304", "1") "," MEMORY("30", "-2048", "4096", "256", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.peak_bytes, 2304);
	assert_int_equal(report->gpu_memory.live_bytes, 256);
	assert_int_equal(report->gpu_memory.live, 1);
}

static void allocations_that_make_no_sense_are_passed_over(void **state)
{
	assert_int_equal(import("{\"traceEvents\":[" MEMORY("15", "-9223372036854775808", "1", "1",
				 "1") "," MEMORY("16", "0", "1", "1", "1") "," MEMORY("17", "5",
				 "-1", "1", "1") "," MEMORY("18", "\"x\"", "1", "1",
				 "1") "," MEMORY("19", "7", "4096", "\"x\"", "1") "," MEMORY("-5",
				 "7", "1", "1", "1") "," OP("mm", "1", "10", "50", "1") "]}"),
		0);
	assert_int_equal(report->gpu_memory.allocs, 2);
	assert_int_equal(report->gpu_memory.live_bytes, 8);
}

/* Ids from 0xff00 on are those of records that hold names. */
static void however_many_functions_there_are_none_is_numbered_as_a_name(void **state)
{
	struct store s;
	char name[32];
	uint16_t fn;
	assert_int_equal(store_init(&s), 0);
	for (int i = 0; i < 0x10000; i++) {
		const int n = snprintf(name, sizeof name, "hipFunction%d", i);
		fn = store_function(&s, name, (size_t)n);
		assert_in_range(fn, 1, 0xfeff);
	}
	assert_in_range(store_declare(&s, "allocator memory call allocate()"), 1, 0xfeff);
	store_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_belongs_to_the_innermost_operator_of_its_call),
		cmocka_unit_test(a_product_left_to_an_operator_inside_is_not_the_copys),
		cmocka_unit_test(a_file_cut_anywhere_gives_what_is_whole),
		cmocka_unit_test(a_compressed_file_is_read_and_may_be_cut_too),
		cmocka_unit_test(a_small_file_that_unpacks_to_a_large_one_is_left),
		cmocka_unit_test(older_names_and_numbers_as_strings_are_known),
		cmocka_unit_test(processes_may_use_the_same_correlations),
		cmocka_unit_test(work_without_a_call_finds_its_operator_by_number),
		cmocka_unit_test(a_range_that_calls_itself_counts_its_time_once),
		cmocka_unit_test(begin_and_end_events_make_ranges),
		cmocka_unit_test(times_that_cannot_be_are_counted),
		cmocka_unit_test(functions_that_are_new_get_a_name_of_their_own),
		cmocka_unit_test(what_is_no_trace_is_told_in_a_sentence),
		cmocka_unit_test(nesting_ends_somewhere),
		cmocka_unit_test(the_same_file_gives_the_same_bytes),
		cmocka_unit_test(what_is_exported_can_be_imported_again),
		cmocka_unit_test(numbers_are_taken_digit_by_digit),
		cmocka_unit_test(the_work_of_a_library_is_that_of_its_operator),
		cmocka_unit_test(the_live_set_is_what_the_allocator_said),
		cmocka_unit_test(allocations_of_several_threads_are_taken_in_the_order_of_time),
		cmocka_unit_test(allocations_of_one_time_go_on_where_the_last_one_ended),
		cmocka_unit_test(what_threads_do_that_nobody_looks_at_is_known_by_its_size),
		cmocka_unit_test(a_block_that_nobody_was_seen_freeing_makes_room),
		cmocka_unit_test(a_block_of_somebody_else_is_not_taken_for_one_of_before),
		cmocka_unit_test(a_free_of_another_size_is_of_another_block),
		cmocka_unit_test(allocations_that_make_no_sense_are_passed_over),
		cmocka_unit_test(gpu_activities_survive_packing),
		cmocka_unit_test(however_many_functions_there_are_none_is_numbered_as_a_name),
		cmocka_unit_test(an_export_of_nsight_systems_is_read),
		cmocka_unit_test(a_database_without_a_name_is_read),
		cmocka_unit_test(tables_and_columns_may_be_missing),
		cmocka_unit_test(a_damaged_database_does_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, end);
}
