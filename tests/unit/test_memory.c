/* `weir memory`, on traces whose content is known and on random ones that a slow model follows byte
 * by byte. */
#include "unit.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "report/report_make.h"
#include "base/hash.h"
#include "maker.h"
#include "memory_functions.h"
#include "export/export_memory.h"
#include "report/memory_print.h"

#define FILE_NAME "test_memory.weir"

static struct maker *m;
static int thread;
static uint64_t now;
static struct trace *trace;
static struct report *report;
static json_t *said;

static int begin(void **state)
{
	char *schema;
	if (asprintf(&schema, "%s%s", maker_schema, memory_schema) < 0)
		abort();
	m = maker_new(FILE_NAME, schema, TRACE_GRAIN);
	free(schema);
	thread = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	now = 2000000;
	return 0;
}

static void call(uint16_t fn, int count, ...)
{
	uint64_t args[16];
	va_list ap;
	va_start(ap, count);
	for (int i = 0; i < count; i++)
		args[i] = va_arg(ap, uint64_t);
	va_end(ap);
	now += 1000;
	const struct record head = {
		.ticks = now, .dur = 100, .fn = fn, .words = (uint16_t)(RECORD_WORDS + count)
	};
	maker_put(m, thread, head, args);
}

#define U(x) ((uint64_t)(x))

static void allocate(uint64_t at, uint64_t bytes)
{
	call(FN_ALLOC, 2, at, bytes);
}

static void release(uint64_t at)
{
	call(FN_FREE, 1, at);
}

static void launch(uint64_t handle)
{
	call(FN_LAUNCH, 5, handle, U(0), 1 | 1ull << 32, 1 | 32ull << 32, 1 | 1ull << 32);
}

static json_t *memory_json(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	memory_print_json(report, out, false);
	fclose(out);
	json_error_t e;
	json_t *root = json_loads(text, 0, &e);
	if (!root)
		fail_msg("%s in %s", e.text, text);
	free(text);
	return root;
}

static void ask_file(bool open)
{
	struct error err;
	maker_finish(m, now + 5000, open);
	m = NULL;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	assert_int_equal(report_make(trace, 3, FACETS_BUT_HINTS, &report, &err), 0);
	said = memory_json();
}

static void ask(void)
{
	ask_file(false);
}

static char *memory_text(bool utf8)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	memory_print_text(report, out, 20, false, utf8);
	fclose(out);
	return text;
}

static int end(void **state)
{
	if (m)
		maker_finish(m, now, false);
	json_decref(said);
	report_free(report);
	trace_close(trace);
	said = NULL;
	report = NULL;
	trace = NULL;
	unlink(FILE_NAME);
	return 0;
}

static json_t *at(const char *path)
{
	char word[64];
	json_t *j = said;
	while (*path && j) {
		const size_t n = strcspn(path, ".");
		snprintf(word, sizeof word, "%.*s", (int)n, path);
		j = json_is_array(j) ? json_array_get(j, (size_t)strtoul(word, NULL, 10))
				     : json_object_get(j, word);
		path += n + (path[n] == '.');
	}
	return j;
}

static int64_t number(const char *path)
{
	json_t *j = at(path);
	if (!json_is_integer(j))
		fail_msg("%s is no integer", path);
	return json_integer_value(j);
}

static double real(const char *path)
{
	json_t *j = at(path);
	if (!json_is_number(j))
		fail_msg("%s is no number", path);
	return json_number_value(j);
}

static void the_peak_is_made_of_what_was_live_then(void **state)
{
	allocate(0x1000, 100);
	allocate(0x2000, 5000);
	release(0x1000);
	call(FN_MANAGED, 3, U(0x900000), U(3000), U(1));
	release(0x2000);
	allocate(0x5000, 6000);
	call(FN_ALLOC_HOST, 3, U(0x7000), U(1 << 20), U(0)); /* not on the GPU */
	release(0x5000);
	ask();
	assert_int_equal(number("peak_bytes"), 9000);
	assert_int_equal(json_array_size(at("by_call")), 3);
	assert_string_equal(json_string_value(at("by_call.0.name")), "cuMemHostAlloc");
	assert_int_equal(number("by_call.0.at_peak_bytes"), 0);
	assert_string_equal(json_string_value(at("by_call.1.name")), "cuMemAlloc_v2");
	assert_int_equal(number("by_call.1.count"), 3);
	assert_int_equal(number("by_call.1.at_peak_bytes"), 6000);
	assert_int_equal(number("by_call.2.at_peak_bytes"), 3000);
	assert_int_equal(number("by_call.2.live_at_exit_bytes"), 3000);
	assert_int_equal(json_array_size(at("by_size")), 3);
	assert_int_equal(number("by_size.0.from_bytes"), 64);
	assert_int_equal(number("by_size.2.from_bytes"), 4096);
	assert_int_equal(number("by_size.2.count"), 2);
	assert_int_equal(number("by_size.2.at_peak_count"), 1);
	assert_int_equal(number("by_thread.0.tid"), 101);
	assert_int_equal(number("by_thread.0.at_peak_bytes"), 9000);
	assert_int_equal(number("churn.pairs"), 3);
	assert_int_equal(number("leaked_bytes"), 3000);
	/* The first lives from its call's end to the beginning of its free. */
	assert_int_equal(number("by_size.0.mean_lifetime_ns"), 1900);
	assert_int_equal(number("peak_at_ns"), 2000000 + 6 * 1000 + 100 - 1000000);
}

static void a_block_allocated_over_another_ends_it(void **state)
{
	allocate(0x1000, 100);
	allocate(0x1000, 40);
	allocate(0x3000, 50);
	ask();
	assert_int_equal(number("peak_bytes"), 100);
	assert_int_equal(number("by_size.0.at_peak_count") + number("by_size.1.at_peak_count"), 1);
	assert_int_equal(number("live_at_exit_bytes"), 90);
}

static void streams_and_pools_are_distinguished(void **state)
{
	call(FN_ASYNC, 3, U(0x1000), U(10), U(7));
	call(FN_POOL, 4, U(0x2000), U(20), U(0x99), U(7));
	call(FN_FREE_ASYNC, 2, U(0x1000), U(8));
	allocate(0x3000, 30);
	ask();
	assert_int_equal(json_array_size(at("by_thread")), 3);
	assert_true(json_is_null(at("by_thread.0.stream")));
	assert_int_equal(number("by_thread.1.stream"), 7);
	assert_int_equal(number("by_thread.1.pool"), 0x99);
	assert_int_equal(number("by_thread.2.pool"), 0);
	assert_int_equal(number("by_thread.2.freed_count"), 1);
}

static void a_handle_lives_while_it_is_held_or_mapped(void **state)
{
	const uint64_t mib = 1 << 20;
	call(FN_RESERVE, 5, U(0x700000000), 8 * mib, U(0), U(0), U(0));
	call(FN_CREATE, 4, U(0x11), 2 * mib, U(0), U(0));
	call(FN_MAP, 5, U(0x700000000), 2 * mib, U(0), U(0x11), U(0));
	call(FN_RELEASE, 1, U(0x11)); /* still mapped */
	call(FN_CREATE, 4, U(0x12), 2 * mib, U(0), U(0));
	call(FN_MAP, 5, 0x700000000 + 2 * mib, 2 * mib, U(0), U(0x12), U(0));
	call(FN_UNMAP, 2, U(0x700000000), 4 * mib); /* both at once; the second is held */
	call(FN_UNMAP, 2, U(0x800000000), 4 * mib); /* nobody mapped it */
	call(FN_ADDRESS_FREE, 2, U(0x700000000), 8 * mib);
	ask();
	assert_int_equal(number("peak_bytes"), 4 * mib);
	assert_int_equal(number("live_at_exit_bytes"), 2 * mib);
	assert_int_equal(number("virtual_memory.creates"), 2);
	assert_int_equal(number("virtual_memory.maps"), 2);
	assert_int_equal(number("virtual_memory.unknown"), 1);
	assert_int_equal(number("virtual_memory.reserved.peak_bytes"), 8 * mib);
	assert_int_equal(number("virtual_memory.reserved.at_exit_bytes"), 0);
	assert_int_equal(number("virtual_memory.mapped.peak_bytes"), 4 * mib);
	assert_int_equal(number("virtual_memory.mapped.at_exit_bytes"), 0);
	assert_int_equal(number("virtual_memory.backed.peak_bytes"), 4 * mib);
	assert_int_equal(number("virtual_memory.backed.at_exit_bytes"), 2 * mib);
}

static void what_cannot_be_said_is_null(void **state)
{
	allocate(0x200000, 2 << 20);
	ask_file(true); /* nobody saw the end */
	assert_true(json_is_null(at("leaked_bytes")));
	assert_true(json_is_null(at("fragmentation"))); /* nothing is free */
	assert_true(json_is_null(at("growth")));
	assert_true(json_is_null(at("growth_bytes_per_period")));
}

static void without_allocations_there_is_a_sentence(void **state)
{
	launch(0x55);
	ask();
	char *text = memory_text(false);
	assert_non_null(strstr(text, "No allocations were recorded."));
	free(text);
	assert_true(json_is_null(at("peak_at_ns")));
	assert_int_equal(number("peak_bytes"), 0);
}

static void operators_at_the_peak_are_the_innermost(void **state)
{
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const struct range ranges[] = {
		{ .ticks = now + 500, .dur = 5000, .tid = 101, .name = 1, .kind = RANGE_OPERATOR },
		{ .ticks = now + 1500, .dur = 1000, .tid = 101, .name = 2, .kind = RANGE_OPERATOR },
		{ .ticks = now + 500, .dur = 9000, .tid = 102, .name = 2, .kind = RANGE_OPERATOR },
		{ .ticks = now + 2900, .dur = 900, .tid = 101, .name = 2, .kind = RANGE_OVERHEAD },
	};
	for (uint64_t id = 1; id <= 2; id++)
		maker_meta(m, meta, META_STRING, 1, 1, &id, id == 1 ? "outer" : "inner", 5, 5);
	maker_chunk(m, CHUNK_RANGES, 100, 101, ranges, sizeof ranges);
	allocate(0x1000, 10); /* outer */
	allocate(0x2000, 20); /* inner */
	allocate(0x3000, 40); /* outer */
	now += 10000;
	allocate(0x4000, 5);
	ask();
	assert_int_equal(json_array_size(at("by_operator")), 3);
	assert_string_equal(json_string_value(at("by_operator.0.name")), "outer");
	assert_int_equal(number("by_operator.0.at_peak_bytes"), 50);
	assert_string_equal(json_string_value(at("by_operator.1.name")), "inner");
	assert_int_equal(number("by_operator.1.at_peak_bytes"), 20);
	assert_true(json_is_null(at("by_operator.2.name")));
}

/* "aten::empty" inside of "aten::cudnn_batch_norm" inside of a module; then one by itself. */
static void what_allocates_for_others_is_not_to_blame(void **state)
{
	static const char *const texts[] = { "aten::empty", "aten::cudnn_batch_norm", "bn1" };
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const struct range ranges[] = {
		{ .ticks = now + 100,
			.dur = 9000,
			.tid = 101,
			.name = 3,
			.kind = RANGE_ANNOTATION },
		{ .ticks = now + 200, .dur = 8000, .tid = 101, .name = 2, .kind = RANGE_OPERATOR },
		{ .ticks = now + 300, .dur = 7000, .tid = 101, .name = 1, .kind = RANGE_OPERATOR },
		{ .ticks = now + 10000,
			.dur = 9000,
			.tid = 101,
			.name = 1,
			.kind = RANGE_OPERATOR },
	};
	for (uint64_t id = 1; id <= 3; id++)
		maker_meta(m, meta, META_STRING, 1, 1, &id, texts[id - 1],
			(uint32_t)strlen(texts[id - 1]), (uint32_t)strlen(texts[id - 1]));
	maker_chunk(m, CHUNK_RANGES, 100, 101, ranges, sizeof ranges);
	allocate(0x1000, 100);
	now += 10000;
	allocate(0x2000, 10);
	ask();
	assert_int_equal(json_array_size(at("by_operator")), 2);
	assert_string_equal(json_string_value(at("by_operator.0.name")), "aten::cudnn_batch_norm");
	assert_string_equal(json_string_value(at("by_operator.0.module")), "bn1");
	assert_true(json_is_null(at("by_operator.0.line")));
	assert_string_equal(json_string_value(at("by_operator.1.name")), "aten::empty");
	assert_true(json_is_null(at("by_operator.1.module")));
}

static void the_chart_is_plain_where_the_terminal_is(void **state)
{
	allocate(0x1000, 8 << 20);
	ask();
	char *plain = memory_text(false), *blocks = memory_text(true);
	assert_non_null(strstr(plain, "8.00 MiB |"));
	assert_non_null(strstr(plain, "#\n"));
	for (size_t i = 0; plain[i]; i++)
		assert_true((unsigned char)plain[i] < 128);
	assert_non_null(strstr(blocks, "█\n"));
	free(plain);
	free(blocks);
}

/* The order in which an exporter of allocations gets them, as lines. */
static struct block_log block_log;

static void log_call(struct export *x, const struct export_call *c)
{
	block_log_add(&block_log, c);
}

static void log_event(void *context, const struct block_event *e, struct block_event *alloc)
{
	struct export *x = context;
	fprintf(x->out, "%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n",
		e->what == BLOCK_FREE ? "free" : "allocate", e->pointer, e->bytes, e->stream);
}

static int log_end(struct export *x)
{
	const struct block_sink sink = { .event = log_event, .context = x };
	return block_log_play(&block_log, x, &sink);
}

static void log_cleanup(struct export *x)
{
	array_free(&block_log.events);
}

static const struct exporter export_log = {
	.name = "log", .call = log_call, .end = log_end, .cleanup = log_cleanup
};

static void a_log_has_what_is_freed_and_no_strangers(void **state)
{
	const uint64_t mib = 1 << 20;
	release(0x9000); /* allocated before anybody looked */
	allocate(0x1000, 10);
	allocate(0x1000, 20); /* over the first */
	call(FN_ALLOC_HOST, 3, U(0x7000), U(30), U(0));
	call(FN_CREATE, 4, U(0x11), 4 * mib, U(0), U(0));
	call(FN_MAP, 5, U(0x40000000), 2 * mib, U(0), U(0x11), U(0));
	call(FN_MAP, 5, U(0x40200000), 2 * mib, 2 * mib, U(0x11), U(0));
	call(FN_UNMAP, 2, U(0x40000000), 4 * mib);
	call(FN_ASYNC, 3, U(0x2000), U(40), U(7));
	call(FN_FREE_ASYNC, 2, U(0x2000), U(8));
	ask();
	char *text = NULL, *line, *rest;
	size_t size, n = 0;
	struct error err = { .text = "" };
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(export_run(&export_log, trace, NULL, NULL, out, &err), 0);
	fclose(out);
	static const char *const rows[] = { "allocate,0x1000,10,0x0", "free,0x1000,10,0x0",
		"allocate,0x1000,20,0x0", "allocate,0x40000000,2097152,0x0",
		"allocate,0x40200000,2097152,0x0", "free,0x40000000,2097152,0x0",
		"free,0x40200000,2097152,0x0", "allocate,0x2000,40,0x7", "free,0x2000,40,0x8" };
	for (rest = text; (line = strsep(&rest, "\n")) && *line; n++) {
		assert_true(n < COUNT_OF(rows));
		if (!strstr(line, rows[n]))
			fail_msg("%s is not %s", line, rows[n]);
	}
	assert_int_equal(n, COUNT_OF(rows));
	free(text);
}

/* Iterations of `launches` launches of one kernel; blocks come and go, and one stays. */
static void iterate(int iterations, int launches, uint64_t stays, int noise)
{
	uint64_t next = 0x10000000;
	for (int i = 0; i < iterations; i++) {
		for (int k = 0; k < launches; k++) {
			const uint64_t extra = noise ? hash_mix((uint64_t)(i * 100 + k)) % 1000 : 0;
			allocate(0x1000, 100000 + (uint64_t)k * 5000 + extra);
			launch(0x55);
			if (k % 2)
				launch(0x66);
			release(0x1000);
		}
		if (stays)
			allocate(next += 0x10000, stays);
	}
}

static void steady_growth_is_found_with_its_period(void **state)
{
	iterate(60, 7, 4096, 0);
	ask();
	assert_string_equal(json_string_value(at("growth.mark")), "launch");
	assert_int_equal(number("growth.marks"), 420);
	assert_int_equal(number("growth.marks_per_period"), 7);
	assert_true(fabs(real("growth_bytes_per_period") - 4096) < 1);
	assert_true(real("growth_confidence") > 0.99);
}

static void twelve_iterations_tell_growth_and_fewer_do_not(void **state)
{
	iterate(12, 1, 4096, 0);
	ask();
	assert_int_equal(number("growth.periods"), 8);
	assert_true(fabs(real("growth_bytes_per_period") - 4096) < 1);
	assert_true(real("growth_confidence") > 0.99);
}

static void of_eleven_iterations_growth_is_not_known(void **state)
{
	iterate(11, 1, 4096, 0);
	ask();
	assert_true(json_is_null(at("growth")));
}

static void nothing_grows_where_all_is_freed(void **state)
{
	iterate(60, 7, 0, 0);
	ask();
	assert_true(fabs(real("growth_bytes_per_period")) < 1);
	assert_true(real("growth_confidence") < 0.1);
}

static void growth_is_found_under_noise(void **state)
{
	iterate(100, 5, 3000, 1);
	ask();
	const double launches =
		json_is_null(at("growth.marks_per_period")) ? 1 : real("growth.marks_per_period");
	const double each = real("growth_bytes_per_period") / launches * 5;
	assert_true(each > 2700 && each < 3300);
	assert_true(real("growth_confidence") > 0.8);
}

static void without_launches_a_size_tells_iterations(void **state)
{
	for (uint64_t i = 0; i < 80; i++) {
		allocate(0x1000, 12345);
		allocate(0x100000, 600);
		release(0x1000);
		release(0x100000);
		allocate(0x10000000 + i * 4096, 256);
		launch(i % 40); /* no kernel often enough */
	}
	ask();
	assert_string_equal(json_string_value(at("growth.mark")), "allocation");
	assert_int_equal(number("growth.size"), 256);
	assert_true(fabs(real("growth_bytes_per_period") - 256) < 1);
}

/* The invariants of every answer: no more is live than is reserved, shares are shares, and the
 * worst moment is the timeline's. */
static void check_reserved(void)
{
	int64_t worst = 0, most = 0;
	json_t *p;
	size_t i;
	json_array_foreach(at("series"), i, p)
	{
		json_t *r = json_object_get(p, "reserved_bytes");
		json_t *u = json_object_get(p, "unused_bytes");
		assert_int_equal(json_is_null(r), json_is_null(u));
		const int64_t reserved = json_integer_value(r), unused = json_integer_value(u);
		assert_true(0 <= unused && unused <= reserved);
		worst = unused > worst ? unused : worst;
		most = reserved > most ? reserved : most;
	}
	if (json_is_null(at("reserved")))
		return;
	assert_int_equal(number("reserved.worst.unused_bytes"), worst);
	assert_true(most <= number("reserved.peak_bytes"));
	assert_int_equal(number("reserved.worst.reserved_bytes"),
		number("reserved.worst.live_bytes") + worst);
	assert_true(number("reserved.live_at_peak_bytes") <= number("reserved.peak_bytes"));
	assert_true(real("reserved.unused_share") >= 0 && real("reserved.unused_share") <= 1);
	assert_true(real("reserved.worst.unused_share") >= 0 &&
		    real("reserved.worst.unused_share") <= 1);
	int64_t live = 0;
	json_array_foreach(at("reserved.worst.live"), i, p) live +=
		json_integer_value(json_object_get(p, "bytes"));
	if (json_array_size(at("reserved.worst.live")) == (size_t)number("reserved.worst.blocks"))
		assert_int_equal(live, number("reserved.worst.live_bytes"));
}

#define TAKE(at, bytes, device, reserved) call(FN_TAKE, 4, U(at), U(bytes), U(device), U(reserved))
#define GIVE(at, bytes, device, reserved) call(FN_GIVE, 4, U(at), U(bytes), U(device), U(reserved))

static void what_an_allocator_says_it_has_is_reserved(void **state)
{
	TAKE(0x1000000, 100, 0, 1000); /* of the other device nothing is known yet */
	TAKE(0x2000000, 200, 1, 2000);
	GIVE(0x1000000, 100, 0, 1000);
	TAKE(0x3000000, 900, 0, 1500);
	allocate(0x7000000, 1 << 20); /* the driver's: what the allocator has it from */
	ask();
	check_reserved();
	assert_string_equal(json_string_value(at("reserved.source")), "allocator");
	assert_int_equal(number("reserved.unknown_ns"), 1100);
	assert_int_equal(number("reserved.peak_bytes"), 3500);
	assert_int_equal(number("reserved.live_at_peak_bytes"), 1100);
	assert_int_equal(number("reserved.worst.reserved_bytes"), 3000);
	assert_int_equal(number("reserved.worst.live_bytes"), 200);
	assert_int_equal(number("reserved.worst.live.0.address"), 0x2000000);
	assert_int_equal(number("reserved.worst.blocks"), 1);
	assert_int_equal(number("reserved.worst.at_ns"), 2000000 + 3 * 1000 - 1000000);
}

static void segments_are_reserved_until_they_are_freed(void **state)
{
	call(FN_SEGMENT, 2, U(0x10000000), U(4096));
	TAKE(0x10000000, 1000, 0, 5000);
	now += 8000;
	call(FN_SEGMENT, 2, U(0x20000000), U(8192));
	GIVE(0x10000000, 1000, 0, 5000);
	call(FN_SEGMENT_FREE, 1, U(0x20000000));
	ask();
	check_reserved();
	/* The allocator's own word counts before its segments do. */
	assert_string_equal(json_string_value(at("reserved.source")), "allocator");
	end(state);
	begin(state);
	call(FN_SEGMENT, 2, U(0x10000000), U(4096));
	call(FN_SEGMENT, 2, U(0x20000000), U(8192));
	call(FN_SEGMENT_FREE, 1, U(0x20000000));
	ask();
	check_reserved();
	assert_string_equal(json_string_value(at("reserved.source")), "segments");
	assert_int_equal(number("reserved.peak_bytes"), 12288);
	assert_int_equal(number("reserved.worst.unused_bytes"), 12288);
	assert_int_equal(number("virtual_memory.segments_at_peak_bytes"), 0);
}

/* More is live than is said to be there: then nothing is known, and nothing is below zero. */
static void a_trace_that_contradicts_itself_says_nothing_of_it(void **state)
{
	TAKE(0x1000000, 5000, 0, 1000);
	TAKE(0x2000000, 10, 0, 6000);
	GIVE(0x2000000, 10, 0, 4000);
	ask();
	check_reserved();
	assert_int_equal(number("reserved.worst.unused_bytes"), 990);
	assert_true(number("reserved.unknown_ns") >= 1000);
}

/* Two blocks share a page of 2 MiB, and one of them has a part of the next. */
static void a_page_is_reserved_while_a_block_lies_in_it(void **state)
{
	const uint64_t page = 2 << 20;
	allocate(16 * page, 100);
	allocate(16 * page + 4096, page);
	release(16 * page);
	release(16 * page + 4096);
	allocate(32 * page, 5 * page);
	ask();
	check_reserved();
	assert_string_equal(json_string_value(at("reserved.source")), "pages");
	assert_int_equal(number("reserved.peak_bytes"), 5 * page);
	assert_int_equal(number("reserved.live_at_peak_bytes"), 5 * page);
	assert_int_equal(number("reserved.worst.reserved_bytes"), 2 * page);
	assert_int_equal(number("reserved.worst.live_bytes"), page);
}

static void timed(int to, uint16_t fn, uint64_t from, uint64_t dur, uint64_t address)
{
	const uint64_t args[] = { address, 64 };
	const int count = fn == FN_ALLOC ? 2 : 1;
	const struct record head = { .ticks = 2000000 + from,
		.dur = (uint32_t)dur,
		.fn = fn,
		.words = (uint16_t)(RECORD_WORDS + count) };
	maker_put(m, to, head, args);
	now = 2000000 + from + dur > now ? 2000000 + from + dur : now;
}

static int64_t sum_of_histogram(json_t *row)
{
	int64_t sum = 0;
	size_t i;
	json_t *bucket;
	json_array_foreach(json_object_get(row, "histogram"), i, bucket) sum +=
		json_integer_value(json_object_get(bucket, "count"));
	return sum;
}

static void calls_that_take_time_for_memory_are_told_apart(void **state)
{
	const int other = maker_thread(m, CHUNK_EVENTS, 100, 102, "other");
	for (uint64_t i = 0; i < 98; i++)
		timed(thread, FN_ALLOC, i * 1000, 100, 0x100000 + i * 0x1000);
	timed(thread, FN_ALLOC, 98000, 5000, 0x900000);
	timed(thread, FN_ALLOC, 104000, 70000, 0x901000);
	timed(other, FN_FREE, 100000, 2000, 0x900000);   /* half of it inside of another's call */
	timed(other, FN_FREE, 200000, 800000, 0x901000); /* until the end */
	launch(7);
	ask();
	json_t *row;
	size_t i;
	json_array_foreach(at("call_time.calls"), i, row)
	{
		assert_int_equal(sum_of_histogram(row),
			json_integer_value(json_object_get(row, "timed_count")));
		const double share = json_number_value(json_object_get(row, "share_of_run"));
		assert_true(share >= 0 && share <= 1);
	}
	assert_int_equal(json_array_size(at("call_time.calls")), 2);
	assert_int_equal(number("call_time.count"), 102);
	assert_string_equal(json_string_value(at("call_time.calls.0.name")), "cuMemFree_v2");
	assert_true(json_is_true(at("call_time.calls.0.waits")));
	assert_false(json_is_true(at("call_time.calls.1.waits")));
	assert_int_equal(number("call_time.calls.1.p50_ns"), 100);
	assert_int_equal(number("call_time.calls.1.p90_ns"), 100);
	assert_true(fabs(real("call_time.calls.1.p99_ns") - 5000) < 5000 * 0.004);
	assert_int_equal(number("call_time.calls.1.max_ns"), 70000);
	assert_int_equal(number("call_time.calls.1.histogram.0.from_ns"), 64);
	assert_int_equal(number("call_time.calls.1.histogram.0.count"), 98);
	/* 98 calls of 100 ns, one of 5000, which holds the free, one of 70000, one of 800000. */
	const double run = (double)report->wall_ns; /* not from the first call to the last */
	assert_true(run > (double)number("series.959.at_ns") - 1000000);
	assert_true(
		fabs(real("call_time.share_of_run") - (9800 + 5000 + 70000 + 800000) / run) < 1e-5);
}

#define CELL  65536u /* blocks are of whole cells */
#define CELLS 2048u  /* 128 MiB: 64 pages of 2 MiB */
#define PAGE  32u    /* cells */
#define BASE  0x700000000ull

struct model {
	uint16_t owner[CELLS]; /* block + 1, or 0 */
	bool touched[CELLS / PAGE];
	uint64_t live, peak;
	uint64_t worst, worst_live; /* bytes of pages in which something is live, and not live */
};

/* After an operation. */
static void model_unused(struct model *s)
{
	uint64_t pages = 0;
	for (uint64_t i = 0; i < CELLS / PAGE; i++) {
		bool any = false;
		for (uint64_t k = 0; k < PAGE; k++)
			any = any || s->owner[i * PAGE + k];
		pages += any;
	}
	const uint64_t unused = pages * PAGE * CELL - s->live;
	if (unused <= s->worst)
		return;
	s->worst = unused;
	s->worst_live = s->live;
}

struct expected {
	uint64_t free, largest, count;
};

static void model_extents(const struct model *s, bool pages, struct expected *e)
{
	uint64_t first = CELLS, last = 0, run = 0;
	*e = (struct expected){ 0 };
	for (uint64_t i = 0; i < CELLS; i++)
		if (s->owner[i]) {
			first = i < first ? i : first;
			last = i;
		}
	for (uint64_t i = 0; i <= CELLS; i++) {
		const bool inside =
			i < CELLS && (pages ? s->touched[i / PAGE] : i >= first && i <= last);
		if (inside && !s->owner[i]) {
			run++;
			continue;
		}
		e->count += run > 0;
		e->free += run * CELL;
		e->largest = run * CELL > e->largest ? run * CELL : e->largest;
		run = 0;
	}
}

/* row: of space[], in which the pages come before the span. */
static void check_extents(int row, const struct model *s)
{
	char key[80];
	for (int pages = 0; pages < 2; pages++) {
		struct expected e;
		model_extents(s, pages, &e);
		const int at_row = row + !pages;
		snprintf(key, sizeof key, "space.%d.free_bytes", at_row);
		assert_int_equal(number(key), e.free);
		snprintf(key, sizeof key, "space.%d.largest_free_extent_bytes", at_row);
		assert_int_equal(number(key), e.largest);
		snprintf(key, sizeof key, "space.%d.free_extents", at_row);
		assert_int_equal(number(key), e.count);
		snprintf(key, sizeof key, "space.%d.fragmentation", at_row);
		if (e.free)
			assert_true(
				fabs(real(key) - (1 - (double)e.largest / (double)e.free)) < 1e-5);
	}
}

static void fill_cells(struct model *s, uint64_t from, uint64_t cells, uint16_t owner)
{
	for (uint64_t i = from; i < from + cells; i++) {
		s->owner[i] = owner;
		if (owner)
			s->touched[i / PAGE] = true;
	}
}

static bool is_free(const struct model *s, uint64_t from, uint64_t cells)
{
	for (uint64_t i = from; i < from + cells; i++)
		if (i >= CELLS || s->owner[i])
			return false;
	return true;
}

static void random_blocks(uint64_t seed, struct model *s, struct model *at_peak)
{
	struct {
		uint64_t from, cells;
	} blocks[400] = { 0 };
	for (uint64_t step = 0; step < 3000; step++) {
		const uint64_t draw = hash_mix(seed * 100000 + step);
		const uint16_t b = draw % COUNT_OF(blocks);
		if (blocks[b].cells) {
			fill_cells(s, blocks[b].from, blocks[b].cells, 0);
			s->live -= blocks[b].cells * CELL;
			blocks[b].cells = 0;
			release(BASE + blocks[b].from * CELL);
			model_unused(s);
			continue;
		}
		const uint64_t from = (draw >> 16) % CELLS, cells = 1 + (draw >> 32) % 40;
		if (!is_free(s, from, cells))
			continue;
		blocks[b].from = from;
		blocks[b].cells = cells;
		fill_cells(s, from, cells, (uint16_t)(b + 1));
		s->live += cells * CELL;
		allocate(BASE + from * CELL, cells * CELL);
		model_unused(s);
		if (s->live > s->peak) {
			s->peak = s->live;
			*at_peak = *s;
		}
	}
}

static uint64_t most_of_series(void)
{
	uint64_t most = 0;
	assert_in_range(json_array_size(at("series")), 1, 1000);
	for (size_t i = 0; i < json_array_size(at("series")); i++) {
		json_t *p = json_array_get(at("series"), i);
		const uint64_t v = (uint64_t)json_integer_value(json_object_get(p, "max_bytes"));
		most = v > most ? v : most;
	}
	return most;
}

static void free_extents_and_peaks_are_those_of_the_slow_model(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct model *s = calloc(1, sizeof *s), *peak = calloc(1, sizeof *peak);
		assert_true(s && peak);
		begin(state);
		random_blocks(seed, s, peak);
		ask();
		assert_int_equal(number("peak_bytes"), s->peak);
		assert_int_equal(most_of_series(), s->peak);
		assert_int_equal(number("leaked_bytes"), s->live);
		check_extents(0, peak);
		check_extents(2, s);
		check_reserved();
		assert_int_equal(number("reserved.worst.unused_bytes"), s->worst);
		assert_int_equal(number("reserved.worst.live_bytes"), s->worst_live);
		end(state);
		free(s);
		free(peak);
	}
}

#define MEMORY_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMORY_TEST(the_peak_is_made_of_what_was_live_then),
		MEMORY_TEST(a_block_allocated_over_another_ends_it),
		MEMORY_TEST(streams_and_pools_are_distinguished),
		MEMORY_TEST(a_handle_lives_while_it_is_held_or_mapped),
		MEMORY_TEST(what_cannot_be_said_is_null),
		MEMORY_TEST(without_allocations_there_is_a_sentence),
		MEMORY_TEST(operators_at_the_peak_are_the_innermost),
		MEMORY_TEST(what_allocates_for_others_is_not_to_blame),
		MEMORY_TEST(the_chart_is_plain_where_the_terminal_is),
		MEMORY_TEST(a_log_has_what_is_freed_and_no_strangers),
		MEMORY_TEST(steady_growth_is_found_with_its_period),
		MEMORY_TEST(twelve_iterations_tell_growth_and_fewer_do_not),
		MEMORY_TEST(of_eleven_iterations_growth_is_not_known),
		MEMORY_TEST(nothing_grows_where_all_is_freed),
		MEMORY_TEST(growth_is_found_under_noise),
		MEMORY_TEST(without_launches_a_size_tells_iterations),
		MEMORY_TEST(what_an_allocator_says_it_has_is_reserved),
		MEMORY_TEST(segments_are_reserved_until_they_are_freed),
		MEMORY_TEST(a_trace_that_contradicts_itself_says_nothing_of_it),
		MEMORY_TEST(a_page_is_reserved_while_a_block_lies_in_it),
		MEMORY_TEST(calls_that_take_time_for_memory_are_told_apart),
		cmocka_unit_test(free_extents_and_peaks_are_those_of_the_slow_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
