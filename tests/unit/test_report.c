/* The report's numbers, from traces whose content is known. */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "maker.h"
#include "report/report_make.h"
#include "report/sections.h"
#include "memory/memory.h"
#include "model/demangle.h"
#include "model/gpu_calls.h"
#include "trace/pack.h"

#define FILE_NAME "test_report.weir"

static struct maker *m;
static int thread, meta_thread;
static uint64_t now;

static int begin(void **state)
{
	m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	thread = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	meta_thread = maker_thread(m, CHUNK_META, 100, 100, "main");
	now = 2000000;
	return 0;
}

static struct record *call(uint16_t fn, uint16_t result, int count, ...)
{
	uint64_t args[16];
	va_list ap;
	va_start(ap, count);
	for (int i = 0; i < count; i++)
		args[i] = va_arg(ap, uint64_t);
	va_end(ap);
	now += 1000;
	const struct record head = { .ticks = now,
		.dur = 100,
		.fn = fn,
		.result = result,
		.words = (uint16_t)(RECORD_WORDS + count) };
	return maker_put(m, thread, head, args);
}

#define U(x) ((uint64_t)(x))

static struct record *launch(uint64_t handle, uint32_t grid, uint32_t block)
{
	return call(FN_LAUNCH, 0, 5, handle, U(0), U(grid) | 1ull << 32, 1 | U(block) << 32,
		1 | 1ull << 32);
}

static void graph(uint64_t exec, uint64_t ticks, const struct graph_node *nodes, uint32_t count)
{
	const uint64_t args[3] = { exec, count, 0 };
	maker_meta(m, meta_thread, META_GRAPH, ticks, 3, args, nodes, count * sizeof *nodes, count);
}

static void update(uint64_t exec, uint64_t ticks, const struct graph_node *node)
{
	maker_meta(m, meta_thread, META_NODE, ticks, 1, &exec, node, sizeof *node, 1);
}

static struct trace *trace;
static struct report *report;

static json_t *report_json(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	report_print_json(report, out, false);
	fclose(out);
	json_error_t e;
	json_t *root = json_loads(text, 0, &e);
	if (!root)
		fail_msg("%s in %s", e.text, text);
	free(text);
	return root;
}

static char *report_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	report_print_text(report, out, &(struct report_style){ .rows = 20 });
	fclose(out);
	return text;
}

static void make_report(void)
{
	struct error err;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	assert_int_equal(report_make(trace, 3, FACETS_BUT_HINTS, &report, &err), 0);
}

static json_t *ask(void)
{
	maker_finish(m, now + 5000, false);
	m = NULL;
	make_report();
	return report_json();
}

static int end(void **state)
{
	if (m)
		maker_finish(m, now, false);
	report_free(report);
	trace_close(trace);
	report = NULL;
	trace = NULL;
	unlink(FILE_NAME);
	return 0;
}

static int64_t number(json_t *root, const char *path)
{
	char word[64];
	json_t *at = root;
	while (*path) {
		const size_t n = strcspn(path, ".");
		snprintf(word, sizeof word, "%.*s", (int)n, path);
		at = json_is_array(at) ? json_array_get(at, strtoul(word, NULL, 10))
				       : json_object_get(at, word);
		path += path[n] ? n + 1 : n;
	}
	if (!json_is_integer(at))
		fail_msg("no number there");
	return json_integer_value(at);
}

static json_t *row(json_t *root, const char *table, const char *key, const char *value)
{
	json_t *r;
	size_t i;
	json_array_foreach(json_object_get(root, table), i, r)
	{
		const char *text = json_string_value(json_object_get(r, key));
		if (text && !strcmp(text, value))
			return r;
	}
	fail_msg("no %s %s in %s", key, value, table);
	return NULL;
}

static bool warned(json_t *root, const char *word)
{
	json_t *w;
	size_t i;
	json_array_foreach(json_object_get(root, "warnings"), i,
		w) if (strstr(json_string_value(w), word)) return true;
	return false;
}

static void calls_are_counted_and_timed(void **state)
{
	for (int i = 1; i <= 100; i++)
		call(FN_SYNC, 0, 1, U(7))->dur = (uint32_t)i * 1000;
	json_t *j = ask();
	json_t *r = row(j, "calls", "name", "cuStreamSynchronize");
	assert_int_equal(number(r, "count"), 100);
	assert_int_equal(number(r, "total_ns"), 5050000);
	assert_in_range(number(r, "p50_ns"), 49750, 50250);
	assert_in_range(number(r, "p99_ns"), 98500, 99500);
	assert_int_equal(number(r, "max_ns"), 100000);
	assert_string_equal(json_string_value(json_object_get(r, "api")), "driver");
	assert_int_equal(number(j, "totals.calls"), 100);
	assert_int_equal(number(j, "totals.threads"), 1);
	assert_int_equal(number(j, "totals.processes"), 1);
	assert_int_equal(number(j, "totals.streams"), 0); /* nothing was put on it */
	assert_int_equal(number(j, "totals.wall_ns"), (int64_t)now + 5000 - 1000000);
	json_decref(j);
}

static void streams_that_work_is_put_on_are_used(void **state)
{
	for (unsigned i = 0; i < 20; i++)
		call(FN_SYNC, 0, 1, U(100 + i));
	for (unsigned i = 0; i < 6; i++)
		call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(64), U(i % 3));
	call(FN_SET, 0, 4, U(0x1000), U(0), U(25), U(7));
	json_t *j = ask();
	assert_int_equal(number(j, "totals.streams"), 4);
	json_decref(j);
}

static void long_calls_are_scaled(void **state)
{
	struct record *r = call(FN_SYNC, 0, 1, U(7));
	r->dur = 3u << 20;
	r->flags = RECORD_LONG;
	json_t *j = ask();
	assert_int_equal(number(j, "calls.0.max_ns"), 3ll << 30);
	json_decref(j);
}

static void failures_come_by_code_and_thread(void **state)
{
	call(FN_ALLOC, 2, 2, U(0), U(64))->aux = 1;
	call(FN_ALLOC, 2, 2, U(0), U(64))->aux = 1;
	call(FN_RT_MALLOC, 2, 2, U(0), U(64))->aux = 1;
	call(FN_EVENT_QUERY, 600, 1, U(5)); /* an answer */
	call(FN_RT_LAST_ERROR, 2, 0);       /* of an earlier call */
	call(FN_SYNC, 77, 1, U(7));
	json_t *j = ask();
	assert_int_equal(number(j, "totals.errors"), 4);
	assert_int_equal(json_array_size(json_object_get(j, "failures")), 3);
	json_t *r = row(j, "failures", "name", "cuMemAlloc_v2");
	assert_int_equal(number(r, "code"), 2);
	assert_int_equal(number(r, "count"), 2);
	assert_int_equal(number(r, "tid"), 101);
	assert_int_equal(number(r, "first_ns"), 1001000);
	assert_string_equal(
		json_string_value(json_object_get(r, "error")), "CUDA_ERROR_OUT_OF_MEMORY");
	r = row(j, "failures", "name", "cudaMalloc");
	assert_string_equal(
		json_string_value(json_object_get(r, "error")), "cudaErrorMemoryAllocation");
	assert_true(json_is_null(
		json_object_get(row(j, "failures", "name", "cuStreamSynchronize"), "error")));
	assert_int_equal(number(j, "memory.alloc_count"), 0);
	json_decref(j);
}

static void launches_are_those_that_ran(void **state)
{
	maker_name(m, meta_thread, 1, 0x55, "_Z4axpyPfi");
	launch(0x55, 8, 256);
	launch(0x55, 8, 256);
	launch(0x55, 16, 128);
	launch(0x55, 8, 256)->flags = RECORD_CAPTURED;
	launch(0x55, 8, 256)->result = 2;
	call(FN_RT_LAUNCH, 0, 5, U(0x99), U(0), U(1), U(1), U(1)); /* its driver call counts */
	launch(0x66, 1, 1);
	json_t *j = ask();
	assert_int_equal(number(j, "totals.launches"), 4);
	json_t *r = row(j, "kernels", "name", "axpy(float*, int)");
	assert_int_equal(number(r, "count"), 3);
	assert_int_equal(number(r, "shapes"), 2);
	assert_int_equal(number(r, "grid.0"), 8);
	assert_int_equal(number(r, "block.0"), 256);
	assert_int_equal(number(r, "host_total_ns"), 300);
	assert_string_equal(json_string_value(json_object_get(r, "mangled")), "_Z4axpyPfi");
	assert_int_equal(number(row(j, "kernels", "name", "(unknown kernel 0x66)"), "count"), 1);
	assert_int_equal(number(row(j, "calls", "name", "cuLaunchKernel"), "count"), 6);
	json_decref(j);
}

static void a_reused_handle_is_another_kernel(void **state)
{
	maker_name(m, meta_thread, 1, 0x55, "first");
	launch(0x55, 1, 1);
	maker_name(m, meta_thread, now + 500, 0x55, "second");
	launch(0x55, 1, 1);
	launch(0x55, 1, 1);
	json_t *j = ask();
	assert_int_equal(number(row(j, "kernels", "name", "first"), "count"), 1);
	assert_int_equal(number(row(j, "kernels", "name", "second"), "count"), 2);
	json_decref(j);
}

/* Graphs run what they held when they were launched: a node changes, one is disabled, the
 * handle is instantiated anew. */
static void graphs_run_their_kernels(void **state)
{
	struct graph_node nodes[3] = {
		{ .function = 0x55, .grid = { 8, 1, 1 }, .block = { 32, 1, 1 }, .node = 1 },
		{ .function = 0x66, .grid = { 4, 1, 1 }, .block = { 64, 1, 1 }, .node = 2 },
		{ .type = 1, .node = 3 }, /* a copy */
	};
	maker_name(m, meta_thread, 1, 0x55, "a");
	maker_name(m, meta_thread, 1, 0x66, "b");
	graph(0x77, 10, nodes, 3);
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0)); /* a b */
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0)); /* a b */
	nodes[0].function = 0x66;
	update(0x77, now + 500, &nodes[0]);
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0)); /* b b */
	nodes[1].type = 0x80000000u;
	update(0x77, now + 500, &nodes[1]);
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0)); /* b */
	nodes[0].function = 0x55;
	graph(0x77, now + 500, nodes, 1);
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0));                          /* a */
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0))->flags = RECORD_CAPTURED; /* nothing */
	call(FN_GRAPH_LAUNCH, 2, 2, U(0x77), U(0));                          /* nothing */
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x88), U(0));                          /* unknown */
	json_t *j = ask();
	assert_int_equal(number(j, "totals.graph_launches"), 6);
	assert_int_equal(number(j, "totals.launches"), 4 + 2 + 1 + 1);
	assert_int_equal(number(row(j, "kernels", "name", "a"), "count"), 3);
	assert_int_equal(number(row(j, "kernels", "name", "a"), "graph_count"), 3);
	assert_int_equal(number(row(j, "kernels", "name", "b"), "count"), 5);
	assert_int_equal(number(row(j, "kernels", "name", "b"), "shapes"), 2);
	assert_true(warned(j, "1 graph launches ran kernels that are not known"));
	json_decref(j);
}

static void a_long_graph_comes_in_parts(void **state)
{
	struct graph_node nodes[2] = { { .function = 0x55, .node = 1 },
		{ .function = 0x55, .node = 2 } };
	const uint64_t first[3] = { 0x77, 2, 0 }, second[3] = { 0x77, 2, 1 };
	maker_name(m, meta_thread, 1, 0x55, "a");
	/* Written after the launch began: as good as before it. */
	maker_meta(m, meta_thread, META_GRAPH, now + 50000, 3, first, &nodes[0], 48, 1);
	maker_meta(m, meta_thread, META_GRAPH, now + 50001, 3, second, &nodes[1], 48, 1);
	call(FN_GRAPH_LAUNCH, 0, 2, U(0x77), U(0));
	json_t *j = ask();
	assert_int_equal(number(j, "totals.launches"), 2);
	json_decref(j);
}

static void memory_is_followed(void **state)
{
	call(FN_ALLOC, 0, 2, U(0x1000), U(100));
	call(FN_ALLOC, 0, 2, U(0x2000), U(50));
	call(FN_FREE, 0, 1, U(0x1000));
	call(FN_MANAGED, 0, 3, U(0x3000), U(30), U(1));
	call(FN_FREE, 0, 1, U(0x3000));
	call(FN_CREATE, 0, 4, U(0x1000), U(20), U(0), U(0)); /* a handle, not an address */
	call(FN_ALLOC_HOST, 0, 3, U(0x5000), U(1000), U(0));
	call(FN_FREE_HOST, 0, 1, U(0x5000));
	call(FN_FREE, 0, 1, U(0));      /* frees nothing */
	call(FN_FREE, 0, 1, U(0x9000)); /* allocated before anybody looked */
	call(FN_ALLOC, 0, 2, U(0x4000), U(7))->flags = RECORD_CAPTURED;
	json_t *j = ask();
	assert_int_equal(number(j, "memory.alloc_count"), 4);
	assert_int_equal(number(j, "memory.free_count"), 3);
	assert_int_equal(number(j, "memory.peak_bytes"), 150);
	assert_int_equal(number(j, "memory.live_at_exit_bytes"), 70);
	assert_int_equal(number(j, "memory.device.peak_bytes"), 150);
	assert_int_equal(number(j, "memory.managed.free_count"), 1);
	assert_int_equal(number(j, "memory.vmm.live_at_exit_bytes"), 20);
	assert_int_equal(number(j, "memory.host.peak_bytes"), 1000);
	assert_int_equal(number(j, "memory.host.live_at_exit_bytes"), 0);
	assert_int_equal(number(j, "memory.live.0.bytes"), 50);
	json_decref(j);
}

/* Whatever the order in which operations were found, and by how many workers. */
static void memory_is_replayed_in_the_order_of_time(void **state)
{
	enum { N = 5000 };
	static struct memory_op ops[N];
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct report r = { 0 };
		for (uint64_t i = 0; i < N; i++)
			ops[i] = (struct memory_op){ .ticks = seed % 2 ? i : i / 3,
				.pointer = i / 2 + 1,
				.bytes = 10,
				.free = i % 2 && seed % 2 };
		for (uint64_t i = N - 1; i > 0; i--) {
			const uint64_t k = hash_mix(seed * N + i) % (i + 1);
			const struct memory_op kept = ops[i];
			ops[i] = ops[k];
			ops[k] = kept;
		}
		const size_t half = N / (1 + seed % 3);
		struct memory_list lists[] = { { .ops = ops, .count = half },
			{ .ops = ops + half, .count = N - half } };
		memory_replay(&r, lists, 2);
		if (seed % 2) {
			assert_int_equal(r.gpu_memory.peak_bytes, 10);
			assert_int_equal(r.gpu_memory.live, 0);
		} else { /* each address twice, never freed in between */
			assert_int_equal(r.gpu_memory.live, N / 2);
			assert_int_equal(r.gpu_memory.allocs, N);
		}
		array_free(&r.live);
	}
}

static void copies_go_by_direction(void **state)
{
	call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(64), U(0));
	call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(36), U(0));
	call(FN_DTOH, 0, 4, U(0x2000), U(0x1000), U(10), U(0));
	call(FN_COPY_2D, 0, 2, U(0x1000), U(5));
	call(FN_SET, 0, 4, U(0x1000), U(0), U(25), U(0));
	call(FN_HTOD, 2, 4, U(0x1000), U(0x2000), U(64), U(0));
	json_t *j = ask();
	assert_int_equal(number(row(j, "memcpys", "direction", "HtoD"), "count"), 2);
	assert_int_equal(number(row(j, "memcpys", "direction", "HtoD"), "bytes"), 100);
	assert_int_equal(number(row(j, "memcpys", "direction", "DtoH"), "bytes"), 10);
	assert_int_equal(number(row(j, "memcpys", "direction", "any"), "bytes"), 5);
	assert_int_equal(number(j, "memsets.bytes"), 100);
	json_decref(j);
}

static void counters_add_to_counts(void **state)
{
	struct counter c[FN_RT_LAST_ERROR + 1] = {
		[FN_RT_LAST_ERROR] = { .count = 70, .errors = 3 },
		[FN_SYNC] = { .count = 4, .errors = 1, .ticks = 4000 },
		[FN_HTOD] = { .count = 2, .bytes = 500 },
		[FN_LAUNCH] = { .count = 9 },
	};
	maker_chunk(m, CHUNK_COUNTERS, 100, 101, c, sizeof c);
	call(FN_SYNC, 0, 1, U(7));
	json_t *j = ask();
	assert_int_equal(number(j, "totals.calls"), 70 + 4 + 2 + 9 + 1);
	json_t *r = row(j, "calls", "name", "cudaGetLastError");
	assert_true(json_is_null(json_object_get(r, "total_ns")));
	assert_true(json_is_null(json_object_get(r, "p50_ns")));
	r = row(j, "calls", "name", "cuStreamSynchronize");
	assert_int_equal(number(r, "count"), 5);
	assert_int_equal(number(r, "total_ns"), 4100);
	assert_int_equal(number(r, "max_ns"), 100);
	assert_int_equal(number(row(j, "memcpys", "direction", "HtoD"), "bytes"), 500);
	assert_int_equal(number(j, "totals.launches"), 9);
	assert_int_equal(number(j, "totals.errors"), 1);
	assert_true(warned(j, "without their error code"));
	assert_true(warned(j, "without the kernel's name"));
	json_decref(j);
}

/* Queries that succeed are counted, and those that fail recorded, with their time. */
static void a_total_of_some_calls_is_not_that_of_all(void **state)
{
	struct counter c[FN_RT_LAST_ERROR + 1] = {
		[FN_EVENT_QUERY] = { .count = 8583 },
		[FN_SYNC] = { .count = 4, .ticks = 4000 },
	};
	maker_chunk(m, CHUNK_COUNTERS, 100, 101, c, sizeof c);
	call(FN_EVENT_QUERY, 77, 1, U(5));
	call(FN_SYNC, 0, 1, U(7));
	json_t *j = ask();
	json_t *r = row(j, "calls", "name", "cuEventQuery");
	assert_int_equal(number(r, "count"), 8584);
	assert_int_equal(number(r, "timed_count"), 1);
	assert_true(json_is_null(json_object_get(r, "total_ns")));
	assert_int_equal(number(r, "max_ns"), 100);
	assert_int_equal(number(row(j, "calls", "name", "cuStreamSynchronize"), "total_ns"), 4100);
	char *text = report_text();
	assert_non_null(strstr(text, " calls  timed    total "));
	assert_non_null(strstr(text, " 8,584      1        -  "));
	assert_non_null(strstr(text, "     5      5  4.10 us  "));
	free(text);
	json_decref(j);
}

static void what_is_missing_is_said(void **state)
{
	const uint64_t unknown = 0, counts[2] = { 5, 0 };
	m->header.lost = 12;
	maker_meta(m, meta_thread, META_UNKNOWN, 1, 1, &unknown, "cuBrandNew", 10, 10);
	maker_meta(m, meta_thread, META_MESSAGE, 1, 0, NULL, "loaded late", 11, 11);
	maker_chunk(m, CHUNK_UNKNOWN, 100, 100, counts, sizeof counts);
	call(FN_SYNC, 0, 1, U(7));
	call(FN_SYNC, 0, 1, U(7))->fn = 0;
	m->threads[thread].head.next_free = FN_SYNC;
	json_t *j = ask();
	assert_int_equal(number(j, "totals.lost"), 13);
	assert_true(warned(j, "13 calls were lost"));
	assert_true(warned(j, "1 records were begun"));
	assert_true(warned(j, "cuBrandNew was called 5 times"));
	assert_true(warned(j, "process 100: loaded late"));
	assert_true(warned(j, "cuStreamSynchronize had not returned at the end in thread 101"));
	json_decref(j);
}

static void a_program_without_calls_is_a_sentence(void **state)
{
	json_t *j = ask();
	char *text = report_text();
	assert_int_equal(number(j, "totals.calls"), 0);
	assert_non_null(strstr(text, "made no CUDA calls"));
	free(text);
	json_decref(j);
}

static void processes_are_named(void **state)
{
	static const char words[] = "/bin/a\0a\0-x";
	const uint64_t parent = 7;
	maker_meta(m, meta_thread, META_PROCESS, 1, 1, &parent, words, sizeof words, sizeof words);
	call(FN_SYNC, 0, 1, U(7));
	json_t *j = ask();
	json_t *p = row(j, "processes", "executable", "/bin/a");
	assert_int_equal(number(p, "parent"), 7);
	assert_int_equal(number(p, "pid"), 100);
	assert_string_equal(json_string_value(json_object_get(p, "arguments")), "a -x");
	json_decref(j);
}

/* In samples, kernels say how often each ran. */
static void lists_of_devices_count_no_kernels(void **state)
{
	struct error err;
	launch(0x55, 1, 32);
	json_decref(ask());
	for (unsigned sampled = 0; sampled <= 8; sampled += 8) {
		report_free(report);
		trace->header.sampled = sampled;
		assert_int_equal(
			report_make(trace, 1, section_facets(&section_memops), &report, &err), 0);
		assert_true(report->facets & FACET(DEVICE));
		assert_int_equal((report->facets & FACET(KERNELS)) != 0, sampled != 0);
		assert_int_equal(report->kernel_rows.n, sampled != 0);
	}
}

/* Raw and packed, with one thread and with five: the same report. */
static void the_report_does_not_depend_on_form_or_threads(void **state)
{
	struct pack_stats stats = { 0 };
	struct report *other;
	maker_name(m, meta_thread, 1, 0x55, "a");
	for (uint32_t i = 0; i < 20000; i++) {
		launch(0x55, 1 + i % 3, 32);
		call(FN_ALLOC, 0, 2, U(0x1000) * (i % 100 + 1), U(i));
		call(FN_FREE, 0, 1, U(0x1000) * ((i + 50) % 100 + 1));
	}
	json_t *raw = ask();
	assert_int_equal(report_make(trace, 1, FACETS_BUT_HINTS, &other, NULL), 0);
	report_free(report);
	report = other;
	json_t *single = report_json();
	report_free(report);
	trace_close(trace);
	assert_int_equal(trace_pack(FILE_NAME, FILE_NAME, &stats, NULL), 0);
	make_report();
	json_t *packed = report_json();
	json_object_del(json_object_get(raw, "trace"), "form");
	json_object_del(json_object_get(single, "trace"), "form");
	json_object_del(json_object_get(packed, "trace"), "form");
	assert_true(json_equal(raw, single));
	assert_true(json_equal(raw, packed));
	json_decref(raw);
	json_decref(single);
	json_decref(packed);
}

static void a_trace_without_schema_still_counts(void **state)
{
	maker_finish(m, now, false);
	m = maker_new(FILE_NAME, NULL, TRACE_GRAIN);
	thread = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	call(FN_SYNC, 0, 1, U(7));
	json_t *j = ask();
	assert_int_equal(number(row(j, "calls", "name", "function 9"), "count"), 1);
	assert_true(warned(j, "has no table of functions"));
	json_decref(j);
}

static void names_are_demangled(void **state)
{
	static const char *const rows[][2] = { { "_Z3fooi", "foo(int)" }, { "plain", "plain" },
		{ "_Z", "_Z" }, { "_Zzz", "_Zzz" }, { "", "" },
		{ "_ZN2at6nativeL4axpyIfEEvPT_", "void at::native::axpy<float>(float*)" } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char *name = demangle(rows[i][0]);
		assert_string_equal(name, rows[i][1]);
		free(name);
	}
}

/* A call of the runtime around one of the driver, which has ended before. */
static void around(uint16_t inner, uint16_t outer)
{
	call(inner, 0, 5, U(0x99), U(0), U(1), U(1), U(1));
	const struct record head = {
		.ticks = now - 50, .dur = 200, .fn = outer, .words = RECORD_WORDS + 5
	};
	const uint64_t args[5] = { 0x99, 0, 1, 1, 1 };
	maker_put(m, thread, head, args);
}

static int64_t of_thread(const json_t *root, const char *key)
{
	return json_integer_value(
		json_object_get(json_array_get(json_object_get(root, "threads"), 0), key));
}

/* Traces of torch.profiler have the runtime's calls, and the driver's that came from elsewhere. */
static void calls_of_the_runtime_stand_for_those_of_the_driver_below(void **state)
{
	m->header.launched = 0;
	around(FN_LAUNCH, FN_RT_LAUNCH);
	around(FN_SYNC, FN_RT_SYNC);
	for (int i = 0; i < 5; i++)
		call(FN_RT_LAUNCH, 0, 5, U(0x99), U(0), U(1), U(1), U(1));
	call(FN_RT_LAUNCH, 1, 5, U(0x99), U(0), U(1), U(1), U(1));
	launch(0x99, 1, 1);
	call(FN_RT_SYNC, 0, 0);
	json_t *root = ask();
	assert_int_equal(of_thread(root, "launches"), 7);
	assert_int_equal(of_thread(root, "sync_calls"), 2);
	json_decref(root);
}

/* Three threads, one after the other, that got one thread id. */
static void put_threads_of_one_id(void)
{
	static const char *const order[] = { "first", "second", "third" };
	for (unsigned i = 0; i < COUNT_OF(order); i++) {
		thread = maker_thread(m, CHUNK_EVENTS, 100, 777, order[i]);
		m->threads[thread].head.open.ticks += 1 + i;
		for (unsigned n = 0; n <= i; n++)
			call(FN_SYNC, 0, 1, U(7));
	}
}

static void threads_whose_id_comes_again_are_counted_each(void **state)
{
	put_threads_of_one_id();
	json_t *root = ask();
	assert_int_equal(number(root, "totals.threads"), 3);
	assert_int_equal(number(row(root, "threads", "name", "first"), "calls"), 1);
	assert_int_equal(number(row(root, "threads", "name", "second"), "calls"), 2);
	assert_int_equal(number(row(root, "threads", "name", "third"), "calls"), 3);
	json_decref(root);
}

/* Imports do not count the chunks of a thread. */
static void an_imported_thread_is_one_however_many_chunks_it_has(void **state)
{
	m->header.launched = 0;
	put_threads_of_one_id();
	json_t *root = ask();
	assert_int_equal(number(root, "totals.threads"), 1);
	json_decref(root);
}

static void a_recording_of_all_driver_calls_counts_these(void **state)
{
	assert_int_equal(m->header.launched, 1);
	around(FN_LAUNCH, FN_RT_LAUNCH);
	call(FN_RT_LAUNCH, 0, 5, U(0x99), U(0), U(1), U(1), U(1));
	call(FN_RT_SYNC, 0, 0);
	json_t *root = ask();
	assert_int_equal(of_thread(root, "launches"), 1);
	assert_int_equal(of_thread(root, "sync_calls"), 0);
	json_decref(root);
}

#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* A record that was cut, and a function whose arguments do not tell. */
static void copies_that_do_not_say_their_size_have_none(void **state)
{
	call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(64), U(0));
	call(FN_HTOD, 0, 2, U(0x1000), U(0x2000));
	call(FN_DTOH, 0, 2, U(0x1000), U(0x2000));
	json_t *json = ask(), *copies = json_object_get(json, "memcpys");
	assert_int_equal(json_array_size(copies), 2);
	const json_t *to = json_array_get(copies, 0), *from = json_array_get(copies, 1);
	assert_int_equal(json_integer_value(json_object_get(to, "count")), 2);
	assert_int_equal(json_integer_value(json_object_get(to, "bytes")), 64);
	assert_int_equal(json_integer_value(json_object_get(from, "count")), 1);
	assert_true(json_is_null(json_object_get(from, "bytes")));
	json_decref(json);
	assert_int_equal(report->copies.v[0].sized, 1);
}

static void a_call_that_moves_says_whether_its_size_is_known(void **state)
{
	struct gpu_calls calls;
	call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(64), U(0));
	call(FN_HTOD, 0, 4, U(0x1000), U(0x2000), U(0), U(0));
	call(FN_RT_COPY, 0, 4, U(0x1000), U(0x2000), U(64), U(1));
	json_decref(ask());
	assert_int_equal(gpu_calls_load(trace, &calls), 0);
	assert_int_equal(calls.v.n, 3);
	assert_true(calls.v.v[0].sized && calls.v.v[0].bytes == 64);
	assert_true(calls.v.v[1].sized && calls.v.v[1].bytes == 0);
	assert_false(calls.v.v[2].sized);
	array_free(&calls.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPORT_TEST(calls_are_counted_and_timed),
		REPORT_TEST(streams_that_work_is_put_on_are_used),
		REPORT_TEST(long_calls_are_scaled),
		REPORT_TEST(failures_come_by_code_and_thread),
		REPORT_TEST(launches_are_those_that_ran),
		REPORT_TEST(a_reused_handle_is_another_kernel),
		REPORT_TEST(graphs_run_their_kernels),
		REPORT_TEST(a_long_graph_comes_in_parts),
		REPORT_TEST(memory_is_followed),
		cmocka_unit_test(memory_is_replayed_in_the_order_of_time),
		REPORT_TEST(copies_go_by_direction),
		REPORT_TEST(copies_that_do_not_say_their_size_have_none),
		REPORT_TEST(a_call_that_moves_says_whether_its_size_is_known),
		REPORT_TEST(counters_add_to_counts),
		REPORT_TEST(a_total_of_some_calls_is_not_that_of_all),
		REPORT_TEST(what_is_missing_is_said),
		REPORT_TEST(a_program_without_calls_is_a_sentence),
		REPORT_TEST(processes_are_named),
		REPORT_TEST(lists_of_devices_count_no_kernels),
		REPORT_TEST(the_report_does_not_depend_on_form_or_threads),
		REPORT_TEST(threads_whose_id_comes_again_are_counted_each),
		REPORT_TEST(an_imported_thread_is_one_however_many_chunks_it_has),
		REPORT_TEST(a_trace_without_schema_still_counts),
		REPORT_TEST(calls_of_the_runtime_stand_for_those_of_the_driver_below),
		REPORT_TEST(a_recording_of_all_driver_calls_counts_these),
		cmocka_unit_test(names_are_demangled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
