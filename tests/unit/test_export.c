/* The exporters, each read back by something that is not ours, or by a decoder made here. */
#include "unit.h"

#include <errno.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "maker.h"
#include "export/export.h"
#include "export/export_sqlite.h"
#include "export/protobuf.h"

#define FILE_NAME "test_export.weir"
#define OUT       "test_export.out"

static struct trace *trace;

static void put(struct maker *m, int t, struct record head, int count, const uint64_t *args)
{
	head.words = (uint16_t)(RECORD_WORDS + count);
	maker_put(m, t, head, args);
}

/* Two threads: nested calls, a failure, a string with a quote in it, a kernel of C++. */
static int begin(void **state)
{
	static const char process[] = "/bin/prog\0prog\0a \"b\"";
	const uint64_t parent = 1, stream = 7,
		       launch[] = { 0x55, 7, 8 | 1ull << 32, 1 | 256ull << 32, 1 | 1ull << 32 };
	const uint64_t module[] = { 0xabc, 9, 0x225c6e2c22636261, 0x7a };
	const uint64_t alloc[] = { 0, 1ull << 40 }, copy[] = { 0x1000, 0x2000, 64, 7 };
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "first");
	const int b = maker_thread(m, CHUNK_EVENTS, 100, 102, "second");
	maker_meta(m, meta, META_PROCESS, 1, 1, &parent, process, sizeof process, sizeof process);
	maker_name(m, meta, 1, 0x55, "_Z4axpyPfi");
	put(m, a, (struct record){ .ticks = 2000100, .dur = 500, .fn = FN_LAUNCH, .aux = 48 }, 5,
		launch);
	put(m, a, (struct record){ .ticks = 2000000, .dur = 900, .fn = FN_RT_LAUNCH }, 5, launch);
	put(m, a,
		(struct record){
			.ticks = 2001000, .dur = 100, .fn = FN_ALLOC, .result = 2, .aux = 1 },
		2, alloc);
	put(m, a, (struct record){ .ticks = 2002000, .dur = 100, .fn = FN_MODULE_LOAD }, 4, module);
	put(m, b, (struct record){ .ticks = 2000500, .dur = 100, .fn = FN_HTOD }, 4, copy);
	put(m, b, (struct record){ .ticks = 2000700, .dur = 100, .fn = 999 }, 1, &stream);
	maker_finish(m, 3000000, false);
	struct error err;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	return 0;
}

static int end(void **state)
{
	trace_close(trace);
	unlink(FILE_NAME);
	unlink(OUT);
	return 0;
}

static char *exported(const char *format, size_t *ret_bytes)
{
	char *text = NULL;
	struct error err = { .text = "" };
	FILE *out = open_memstream(&text, ret_bytes);
	if (export_run(exporter_find(format), trace, NULL, NULL, out, &err))
		fail_msg("%s", err.text);
	fclose(out);
	return text;
}

struct field {
	uint32_t number;
	uint64_t value;      /* varint */
	const uint8_t *data; /* length-delimited */
	size_t bytes;
};

struct message {
	const uint8_t *at, *end;
};

static uint64_t varint(struct message *m)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 70; shift += 7) {
		assert_true(m->at < m->end);
		v |= (uint64_t)(*m->at & 0x7f) << shift;
		if (!(*m->at++ & 0x80))
			return v;
	}
	fail_msg("a varint without end");
	return 0;
}

static bool next_field(struct message *m, struct field *f)
{
	if (m->at == m->end)
		return false;
	const uint64_t key = varint(m);
	*f = (struct field){ .number = (uint32_t)(key >> 3) };
	f->value = varint(m);
	if ((key & 7) == 0)
		return true;
	assert_int_equal(key & 7, 2);
	f->data = m->at;
	f->bytes = f->value;
	assert_true(f->bytes <= (size_t)(m->end - m->at));
	m->at += f->bytes;
	return true;
}

static struct message inside(const struct field *f)
{
	return (struct message){ f->data, f->data + f->bytes };
}

static bool find(struct message m, uint32_t number, struct field *f)
{
	while (next_field(&m, f))
		if (f->number == number)
			return true;
	return false;
}

struct summary {
	uint64_t packets, processes, threads, begins, ends;
	char interned[8192];
	int depth[8]; /* by track */
	int deepest;
	uint64_t last[8];
	uint64_t submitted; /* that the last call named */
	uint64_t stage[4];  /* numbers of the first ones */
	uint64_t stages;
};

static void sum_event(struct summary *s, struct message event, uint64_t ns)
{
	struct field f;
	assert_true(find(event, 11, &f));
	const uint32_t track = (uint32_t)f.value;
	assert_in_range(track, 2, 7); /* 1 is the process */
	assert_true(ns >= s->last[track]);
	s->last[track] = ns;
	assert_true(find(event, 9, &f));
	s->depth[track] += f.value == 1 ? 1 : f.value == 2 ? -1 : 0; /* 3: an instant */
	assert_true(s->depth[track] >= 0);
	s->deepest = s->depth[track] > s->deepest ? s->depth[track] : s->deepest;
	s->begins += f.value == 1;
	s->ends += f.value == 2;
	if (f.value == 1)
		assert_true(find(event, 10, &f));
	if (find(event, 3000, &f) && find(inside(&f), 1, &f))
		s->submitted = f.value;
}

static void sum_stage(struct summary *s, struct message stage)
{
	struct field f;
	assert_true(find(stage, 1, &f));
	assert_true(s->stages < COUNT_OF(s->stage));
	s->stage[s->stages++] = f.value;
	assert_true(find(stage, 13, &f) && f.value >= 64);
	assert_true(find(stage, 14, &f) && find(stage, 5, &f));
}

static void sum_track(struct summary *s, struct message track)
{
	struct field f;
	assert_true(find(track, 1, &f));
	s->processes += find(track, 3, &f);
	s->threads += find(track, 4, &f);
}

static void sum_interned(struct summary *s, struct message data)
{
	struct field f, text;
	while (next_field(&data, &f)) {
		if (f.number == 23) /* a context, which has no name */
			continue;
		assert_true(find(inside(&f), 2, &text));
		const size_t used = strlen(s->interned);
		snprintf(s->interned + used, sizeof s->interned - used, "%.*s;", (int)text.bytes,
			(const char *)text.data);
	}
}

static void sum_packet(struct summary *s, struct message packet)
{
	struct field f, time = { 0 };
	s->packets++;
	assert_true(find(packet, 10, &f) && f.value == 1);
	assert_true(find(packet, 13, &f) && f.value == (s->packets == 1 ? 1 : 2));
	const bool timed = find(packet, 8, &time);
	if (find(packet, 12, &f))
		sum_interned(s, inside(&f));
	if (find(packet, 60, &f))
		sum_track(s, inside(&f));
	if (find(packet, 11, &f)) {
		assert_true(timed);
		sum_event(s, inside(&f), time.value);
	}
	if (find(packet, 53, &f)) {
		assert_true(timed);
		sum_stage(s, inside(&f));
	}
}

static struct summary sum_file(const char *out, size_t bytes)
{
	struct message file = { (const uint8_t *)out, (const uint8_t *)out + bytes };
	struct summary s = { 0 };
	struct field f;
	while (next_field(&file, &f)) {
		assert_int_equal(f.number, 1);
		sum_packet(&s, inside(&f));
	}
	for (size_t i = 0; i < COUNT_OF(s.depth); i++)
		assert_int_equal(s.depth[i], 0);
	return s;
}

static void perfetto_slices_nest(void **state)
{
	size_t bytes;
	char *out = exported("perfetto", &bytes);
	const struct summary s = sum_file(out, bytes);
	assert_int_equal(s.processes, 1);
	assert_int_equal(s.threads, 2);
	assert_int_equal(s.begins, 6);
	assert_int_equal(s.ends, 6);
	static const char *const words[] = { "cudaLaunchKernel;", "launch;", "axpy(float*, int);",
		"bytesize;", "function 999;" };
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (!strstr(s.interned, words[i]))
			fail_msg("no %s in %s", words[i], s.interned);
	free(out);
}

/* A call that asked for two GPU activities on one stream, and work of another; ranges around. */
static int begin_with_work(void **state)
{
	const uint64_t launch[] = { 0x55, 7, 8 | 1ull << 32, 1 | 256ull << 32, 1 | 1ull << 32 };
	const uint32_t known = GPU_HAS_STREAM | GPU_HAS_CORRELATION | GPU_HAS_SHAPE;
	const struct link link = {
		.correlation = 9, .ticks = 2000100, .dur = 500, .tid = 101, .fn = FN_LAUNCH
	};
	const struct gpu_activity activity[] = {
		{ .start_ns = 2001000,
			.end_ns = 2002000,
			.correlation = 9,
			.name = 1,
			.stream = 7,
			.kind = GPU_KERNEL,
			.valid = known },
		{ .start_ns = 2001500,
			.end_ns = 2003000,
			.correlation = 9,
			.name = 1,
			.stream = 8,
			.kind = GPU_KERNEL,
			.valid = known },
		{ .start_ns = 2001000,
			.end_ns = 2009000,
			.stream = 7,
			.kind = GPU_SYNC,
			.valid = GPU_HAS_STREAM },
	};
	const struct range ranges[] = {
		{ .ticks = 2000050, .dur = 100, .tid = 101, .name = 2, .kind = RANGE_NVTX },
		{ .ticks = 2000000, .dur = 900, .tid = 101, .name = 2, .kind = RANGE_OPERATOR },
		{ .ticks = 2000500, .dur = 900, .tid = 101, .name = 2, .kind = RANGE_NVTX_SPAN },
		{ .ticks = 2000000, .dur = 10, .tid = 101, .name = 2, .kind = RANGE_PYTHON },
	};
	end(state);
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "first");
	maker_meta(m, meta, META_STRING, 1, 1, (uint64_t[]){ 1 }, "_Z4axpyPfi", 10, 10);
	maker_meta(m, meta, META_STRING, 1, 1, (uint64_t[]){ 2 }, "aten::mm", 8, 8);
	put(m, a, (struct record){ .ticks = 2000100, .dur = 500, .fn = FN_LAUNCH }, 5, launch);
	maker_chunk(m, CHUNK_LINKS, 100, 0, &link, sizeof link);
	maker_chunk(m, CHUNK_RANGES, 100, 101, ranges, sizeof ranges);
	maker_chunk(m, CHUNK_DEVICE, 100, 0, activity, sizeof activity);
	maker_finish(m, 3000000, false);
	struct error err;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	return 0;
}

static int begin_again(void **state)
{
	end(state);
	return begin(state);
}

static void perfetto_has_devices_and_arrows(void **state)
{
	size_t bytes;
	char *out = exported("perfetto", &bytes);
	const struct summary s = sum_file(out, bytes);
	assert_int_equal(s.stages, 2);             /* the wait is the host's */
	assert_int_equal(s.stage[0], s.submitted); /* an arrow goes to the first */
	assert_int_not_equal(s.stage[1], s.submitted);
	/* a call, two ranges that nest, a line of Python, a range that may cross others */
	assert_int_equal(s.begins, 5);
	assert_int_equal(s.ends, 5);
	assert_int_equal(s.threads, 1);
	static const char *const words[] = { "axpy(float*, int);", "aten::mm;", "stream 7;",
		"stream 8;", "kernel;" };
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (!strstr(s.interned, words[i]))
			fail_msg("no %s in %s", words[i], s.interned);
	free(out);
}

/* Those that took no time and were given first had ended when the long one began. */
static void ranges_of_no_length_follow_each_other_as_they_were_given(void **state)
{
	const struct range long_one = { .ticks = 2000000,
		.dur = 900,
		.tid = 101,
		.name = 2,
		.kind = RANGE_NVTX },
			   none = { .ticks = 2000000, .tid = 101, .name = 2, .kind = RANGE_NVTX };
	const struct {
		struct range ranges[3];
		int deepest;
	} rows[] = { { { none, none, long_one }, 1 }, { { long_one, none, none }, 2 } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t bytes;
		struct error err;
		end(state);
		struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
		maker_chunk(m, CHUNK_RANGES, 100, 101, rows[i].ranges, sizeof rows[i].ranges);
		maker_finish(m, 3000000, false);
		assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
		char *out = exported("perfetto", &bytes);
		const struct summary s = sum_file(out, bytes);
		assert_int_equal(s.begins, 3);
		assert_int_equal(s.deepest, rows[i].deepest);
		free(out);
	}
}

/* It has no time left to end in, so it is an instant, and nothing is there to be ended. */
static void a_range_at_the_end_of_the_clock_is_an_instant(void **state)
{
	const struct range last = {
		.ticks = UINT64_MAX, .dur = 9, .tid = 101, .name = 2, .kind = RANGE_NVTX_SPAN
	};
	size_t bytes;
	struct error err;
	end(state);
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	maker_chunk(m, CHUNK_RANGES, 100, 101, &last, sizeof last);
	maker_finish(m, 3000000, false);
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	char *out = exported("perfetto", &bytes);
	const struct summary s = sum_file(out, bytes);
	assert_int_equal(s.begins, 0);
	assert_int_equal(s.ends, 0);
	free(out);
}

static void messages_know_their_length(void **state)
{
	struct proto p = { 0 };
	proto_open(&p, 1);
	for (int i = 0; i < 1000; i++) {
		proto_open(&p, 2);
		proto_uint(&p, 3, UINT64_MAX >> (i % 64));
		proto_str(&p, 4, "text");
		proto_close(&p);
	}
	proto_close(&p);
	struct message m = { p.bytes.v, p.bytes.v + p.bytes.n };
	struct field f, g;
	assert_true(next_field(&m, &f) && m.at == m.end);
	struct message list = inside(&f);
	for (int i = 0; i < 1000; i++) {
		assert_true(next_field(&list, &f) && f.number == 2);
		assert_true(find(inside(&f), 3, &g) && g.value == UINT64_MAX >> (i % 64));
		assert_true(find(inside(&f), 4, &g) && g.bytes == 4);
	}
	array_free(&p.bytes);
}

static void chrome_is_json(void **state)
{
	size_t bytes;
	char *out = exported("chrome", &bytes);
	json_error_t e;
	json_t *root = json_loads(out, 0, &e);
	if (!root)
		fail_msg("%s", e.text);
	json_t *events = json_object_get(root, "traceEvents"), *event;
	size_t i, complete = 0;
	json_array_foreach(events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
			continue;
		if (complete++ != 0)
			continue;
		assert_string_equal(
			json_string_value(json_object_get(event, "name")), "cudaLaunchKernel");
		assert_true(json_real_value(json_object_get(event, "ts")) == 1000);
		assert_true(json_real_value(json_object_get(event, "dur")) == 0.9);
	}
	assert_int_equal(complete, 6);
	json_decref(root);
	free(out);
}

#define RANGES_NAME "test_export.ranges.weir"

static void add_string(struct maker *m, int meta, uint64_t id, const char *text)
{
	const uint32_t n = (uint32_t)strlen(text);
	maker_meta(m, meta, META_STRING, 0, 1, &id, text, n, n);
}

/* An operator for each text of arguments, the first around a call of the runtime that launches. */
static json_t *chrome_of_ranges(const char *const *args, uint32_t count)
{
	const uint64_t launch[] = { 0x55, 7, 8 | 1ull << 32, 1 | 256ull << 32, 1 | 1ull << 32 };
	struct maker *m = maker_new(RANGES_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	struct range ranges[16] = { 0 };
	for (uint32_t i = 0; i < count; i++) {
		add_string(m, meta, i + 1, args[i]);
		ranges[i] = (struct range){ .ticks = 2000000 + i * 1000,
			.dur = 900,
			.tid = 100,
			.name = 1,
			.args = i + 1,
			.kind = RANGE_OPERATOR };
	}
	put(m, calls, (struct record){ .ticks = 2000300, .dur = 200, .fn = FN_LAUNCH }, 5, launch);
	put(m, calls, (struct record){ .ticks = 2000200, .dur = 500, .fn = FN_RT_LAUNCH }, 5,
		launch);
	const struct link link = {
		.correlation = 7, .ticks = 2000300, .dur = 200, .tid = 100, .fn = FN_LAUNCH
	};
	const struct gpu_activity activity = { .start_ns = 2005000,
		.end_ns = 2006000,
		.correlation = 7,
		.name = 1,
		.stream = 3,
		.kind = GPU_KERNEL,
		.valid = GPU_HAS_CORRELATION | GPU_HAS_STREAM };
	maker_chunk(m, CHUNK_RANGES, 100, 100, ranges, count * (uint32_t)sizeof *ranges);
	maker_chunk(m, CHUNK_LINKS, 100, 0, &link, sizeof link);
	maker_chunk(m, CHUNK_DEVICE, 100, 0, &activity, sizeof activity);
	maker_finish(m, 3000000, false);

	struct trace *kept = trace;
	struct error err;
	json_error_t e;
	size_t bytes;
	assert_int_equal(trace_open(RANGES_NAME, &trace, &err), 0);
	char *out = exported("chrome", &bytes);
	json_t *root = json_loads(out, 0, &e);
	if (!root)
		fail_msg("%s: %.200s", e.text, out + (e.position < 100 ? 0 : e.position - 100));
	free(out);
	trace_close(trace);
	trace = kept;
	unlink(RANGES_NAME);
	return root;
}

static json_t *find_event(json_t *root, const char *category, size_t nth)
{
	size_t i;
	json_t *event;
	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
	{
		const char *cat = json_string_value(json_object_get(event, "cat"));
		if (cat && !strcmp(cat, category) && !nth--)
			return event;
	}
	return NULL;
}

/* An object in JSON goes in as it is; a recording may hold any other text. */
static void arguments_of_operators_are_json_whatever_was_recorded(void **state)
{
	static const char *const good[] = { "{\"Input Dims\":[[2,3],[]]}", "{}",
		"{\"Input Dims\": [ ] , \"b\":{\"c\":[-1.5e-3,true,null,\"\\u00e9\\n\"]}}" };
	static const char *const bad[] = { "{", "{\"a\":1", "{\"a\":01}", "{\"a\":1.}",
		"{\"a\":\"\x01\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\xff\"}",
		"{\"a\":1}}", "{a:1}", "{\"a\":1,}", "[1]", "{\"a\":nan}", "{\"a\"}" };
	json_t *root = chrome_of_ranges(good, 3);
	for (size_t i = 0; i < 3; i++) {
		json_t *args = json_object_get(find_event(root, "cpu_op", i), "args");
		assert_null(json_object_get(args, "arguments"));
		assert_int_equal(json_is_array(json_object_get(args, "Input Dims")), i != 1);
		assert_true(json_is_integer(json_object_get(args, "External id")));
	}
	json_decref(root);
	root = chrome_of_ranges(bad, 14);
	for (size_t i = 0; i < 14; i++)
		assert_true(json_is_string(json_object_get(
			json_object_get(find_event(root, "cpu_op", i), "args"), "arguments")));
	json_decref(root);
}

static json_int_t arg_of(json_t *event, const char *key)
{
	json_t *value = json_object_get(json_object_get(event, "args"), key);
	return value ? json_integer_value(value) : -1;
}

/* The outer one of two calls inside each other asked, as for torch.profiler; and all three name the
 * operator around it. */
static void a_launch_is_named_by_the_call_that_the_program_made(void **state)
{
	static const char *const args[] = { "{}" };
	json_t *root = chrome_of_ranges(args, 1);
	json_t *outer = find_event(root, "cuda_runtime", 0),
	       *inner = find_event(root, "cuda_driver", 0);
	json_t *kernel = find_event(root, "kernel", 0), *arrow = find_event(root, "ac2g", 0);
	assert_int_equal(arg_of(outer, "correlation"), 7);
	assert_int_equal(arg_of(inner, "correlation"), -1);
	assert_int_equal(arg_of(kernel, "correlation"), 7);
	assert_true(json_equal(json_object_get(arrow, "ts"), json_object_get(outer, "ts")));
	const json_int_t id = arg_of(find_event(root, "cpu_op", 0), "External id");
	assert_true(id > 0);
	assert_int_equal(arg_of(outer, "External id"), id);
	assert_int_equal(arg_of(kernel, "External id"), id);
	json_decref(root);
}

static void each_line_of_ndjson_is_json(void **state)
{
	size_t bytes;
	char *out = exported("ndjson", &bytes), *line = out;
	static const char *const order[] = { "cudaLaunchKernel", "cuLaunchKernel", "cuMemAlloc_v2",
		"cuModuleLoad", "cuMemcpyHtoDAsync_v2", "function 999" };
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		char *nl = strchr(line, '\n');
		assert_non_null(nl);
		json_t *j = json_loadb(line, (size_t)(nl - line), 0, NULL);
		assert_non_null(j);
		assert_string_equal(json_string_value(json_object_get(j, "name")), order[i]);
		json_t *args = json_object_get(j, "args");
		if (i == 1)
			assert_string_equal(json_string_value(json_object_get(args, "kernel")),
				"axpy(float*, int)");
		if (i == 2) {
			assert_int_equal(json_integer_value(json_object_get(args, "result")), 2);
			assert_int_equal(
				json_integer_value(json_object_get(args, "bytesize")), 1ll << 40);
		}
		json_decref(j);
		line = nl + 1;
	}
	assert_int_equal(*line, 0);
	free(out);
}

/* The fields of one line, quotes undone in place; returns how many. */
static int split(char *line, char **fields, int most)
{
	int n = 0;
	for (char *in = line, *out = line; n < most;) {
		fields[n++] = out;
		bool quoted = *in == '"' && in++;
		for (; *in && (quoted || *in != ','); in++) {
			if (quoted && *in == '"' && *++in != '"')
				break;
			*out++ = *in;
		}
		const char stop = *in;
		*out++ = '\0';
		in++;
		if (!stop)
			break;
	}
	return n;
}

static void csv_has_as_many_fields_in_each_line(void **state)
{
	size_t bytes;
	char *out = exported("csv", &bytes), *line = out, *fields[40];
	for (int i = 0; i < 7; i++) {
		char *nl = strstr(line, "\r\n");
		assert_non_null(nl);
		*nl = '\0';
		assert_int_equal(split(line, fields, 40), 27);
		if (i == 2)
			assert_string_equal(fields[10], "axpy(float*, int)");
		if (i == 3)
			assert_string_equal(fields[8], "CUDA_ERROR_OUT_OF_MEMORY");
		if (i == 4)
			assert_string_equal(fields[19],
				"cuModuleLoad(*module=0xabc, fname=\"abc\\\",n\\\\\\\"z\") = 0");
		line = nl + 2;
	}
	assert_int_equal(*line, 0);
	free(out);
}

static void expect_text(sqlite3 *db, const char *query, const char *want)
{
	sqlite3_stmt *s;
	if (sqlite3_prepare_v2(db, query, -1, &s, NULL))
		fail_msg("%s: %s", query, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(s, 0), want);
	sqlite3_finalize(s);
}

static void sqlite_answers_queries(void **state)
{
	struct error err = { .text = "" };
	sqlite3 *db;
	struct stat st;
	if (export_run(&export_sqlite, trace, NULL, OUT, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(OUT, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(sqlite3_open(OUT, &db), SQLITE_OK);
	expect_text(db, "SELECT count(*) FROM calls", "6");
	expect_text(db,
		"SELECT value FROM calls JOIN StringIds s ON s.id = nameId "
		"WHERE returnValue != 0",
		"cuMemAlloc_v2");
	expect_text(db, "SELECT value FROM kernels JOIN StringIds s ON s.id = demangledName",
		"axpy(float*, int)");
	expect_text(db, "SELECT gridX || ',' || blockX || ',' || dynamicSharedMemory FROM kernels",
		"8,256,48");
	expect_text(db, "SELECT direction || bytes FROM copies", "HtoD64");
	expect_text(db, "SELECT group_concat(name) FROM threads", "first,second");
	expect_text(db, "SELECT arguments FROM processes", "prog a \"b\"");
	expect_text(db, "SELECT start || '-' || end FROM calls WHERE id = 1", "1000000-1000900");
	expect_text(db,
		"SELECT group_concat(id || ' ' || COALESCE(outerId, '-'), ', ') FROM calls "
		"WHERE id < 4",
		"1 -, 2 1, 3 -");
	expect_text(db, "PRAGMA integrity_check", "ok");
	sqlite3_close(db);
}

#define LATE_NAME "test_export_late.weir"

/* A launch by the runtime that returned when its chunk was full: what it did inside lies in the
 * chunk before. */
static void late_caller(void)
{
	const uint64_t launch[] = { 0x55, 7, 8 | 1ull << 32, 1 | 256ull << 32, 1 | 1ull << 32 };
	struct maker *m = maker_new(LATE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int first = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	const int second = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	const uint64_t id = 1;
	m->threads[second].head.seq = 1;
	maker_meta(m, meta, META_STRING, 1, 1, &id, "_Z4axpyPfi", 10, 10);
	put(m, first, (struct record){ .ticks = 2000000, .dur = 100, .fn = FN_LAUNCH }, 5, launch);
	put(m, first, (struct record){ .ticks = 2000300, .dur = 200, .fn = FN_LAUNCH }, 5, launch);
	put(m, second, (struct record){ .ticks = 2000200, .dur = 500, .fn = FN_RT_LAUNCH }, 5,
		launch);
	put(m, second, (struct record){ .ticks = 2000800, .dur = 100, .fn = FN_RT_SYNC }, 0, NULL);
	const struct link links[] = {
		{ .correlation = 6, .ticks = 2000000, .dur = 100, .tid = 100, .fn = FN_LAUNCH },
		{ .correlation = 7, .ticks = 2000300, .dur = 200, .tid = 100, .fn = FN_LAUNCH }
	};
	const struct gpu_activity activity = { .start_ns = 2005000,
		.end_ns = 2006000,
		.correlation = 7,
		.name = 1,
		.stream = 3,
		.kind = GPU_KERNEL,
		.valid = GPU_HAS_CORRELATION | GPU_HAS_STREAM };
	maker_chunk(m, CHUNK_LINKS, 100, 0, links, sizeof links);
	maker_chunk(m, CHUNK_DEVICE, 100, 0, &activity, sizeof activity);
	maker_finish(m, 3000000, false);
}

/* As Nsight has it: a row a call that the program made, with the number of its activities. */
static void calls_inside_of_the_runtimes_are_no_rows_for_nsight(void **state)
{
	struct error err = { .text = "" };
	struct trace *t;
	sqlite3 *db;
	late_caller();
	assert_int_equal(trace_open(LATE_NAME, &t, &err), 0);
	if (export_run(&export_sqlite, t, NULL, OUT, NULL, &err))
		fail_msg("%s", err.text);
	trace_close(t);
	unlink(LATE_NAME);
	assert_int_equal(sqlite3_open(OUT, &db), SQLITE_OK);
	expect_text(db,
		"SELECT group_concat(value || ' ' || eventClass || ' ' || "
		"COALESCE(correlationId, '-'), ', ') FROM (SELECT * FROM "
		"CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId ORDER BY start)",
		"cuLaunchKernel 1 6, cudaLaunchKernel 0 7, cudaStreamSynchronize 0 -");
	expect_text(db,
		"SELECT s.value || ' by ' || n.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
		"JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId "
		"JOIN StringIds s ON s.id = k.shortName JOIN StringIds n ON n.id = r.nameId",
		"axpy by cudaLaunchKernel");
	sqlite3_close(db);
}

static void a_short_name_is_the_kernels_alone(void **state)
{
	static const char *const kernels[][2] = { { "axpy", "axpy" },
		{ "axpy(float*, int)", "axpy" }, { "void axpy<float>(float*)", "axpy" },
		{ "void a::(anonymous namespace)::k<b::c<(d)2>, 3>(e::f<g>, h)", "k" },
		{ "(anonymous namespace)::k(int)", "k" },
		{ "void t<f(int)::{lambda(int)#1}::operator()() const::{lambda()#2}>(int)", "t" },
		{ "x::K<y>(y::P) [clone .z]", "K" }, { "", "" }, { "<", "<" }, { "a->b", "a->b" },
		{ "void ", "void " }, { "(", "(" } };
	for (size_t i = 0; i < COUNT_OF(kernels); i++) {
		size_t bytes;
		const char *name = nsight_short_name(kernels[i][0], &bytes);
		assert_int_equal(bytes, strlen(kernels[i][1]));
		assert_memory_equal(name, kernels[i][1], bytes);
	}
}

static void a_file_is_private_and_whole_or_not_there(void **state)
{
	struct error err = { .text = "" };
	struct stat st;
	assert_int_equal(export_run(&export_csv, trace, NULL, OUT, NULL, &err), 0);
	assert_int_equal(stat(OUT, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(
		export_run(&export_csv, trace, NULL, "no/such/folder/x", NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no/such/folder/x can't be written"));
	assert_int_equal(
		export_run(&export_sqlite, trace, NULL, "no/folder/x", NULL, &err), -ENOENT);
}

static void a_full_device_is_an_error(void **state)
{
	struct error err = { .text = "" };
	struct stat st;
	if (stat("/dev/full", &st))
		skip();
	assert_true(export_run(&export_csv, trace, NULL, "/dev/full", NULL, &err) < 0);
	assert_int_equal(export_run(&export_csv, trace, NULL, "/dev/null", NULL, &err), 0);
	assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfetto_slices_nest),
		cmocka_unit_test_setup_teardown(
			perfetto_has_devices_and_arrows, begin_with_work, begin_again),
		cmocka_unit_test_setup(
			ranges_of_no_length_follow_each_other_as_they_were_given, begin_again),
		cmocka_unit_test_teardown(
			a_range_at_the_end_of_the_clock_is_an_instant, begin_again),
		cmocka_unit_test(messages_know_their_length),
		cmocka_unit_test(chrome_is_json),
		cmocka_unit_test(arguments_of_operators_are_json_whatever_was_recorded),
		cmocka_unit_test(a_launch_is_named_by_the_call_that_the_program_made),
		cmocka_unit_test(each_line_of_ndjson_is_json),
		cmocka_unit_test(csv_has_as_many_fields_in_each_line),
		cmocka_unit_test(sqlite_answers_queries),
		cmocka_unit_test(calls_inside_of_the_runtimes_are_no_rows_for_nsight),
		cmocka_unit_test(a_short_name_is_the_kernels_alone),
		cmocka_unit_test(a_file_is_private_and_whole_or_not_there),
		cmocka_unit_test(a_full_device_is_an_error),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
