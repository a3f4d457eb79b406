/* Flame graphs: which stacks are made of calls, ranges and GPU activities, and hostile names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flame/flame.h"
#include "maker.h"

#define PATH "flame_test.weir"

static const char evil[] = "k;<a & \"b\">]]>\n\x01\xff\xed\xa0\x80";

static void call(struct maker *m, int thread, uint16_t fn, uint64_t ticks, uint32_t dur)
{
	const bool launch = fn == FN_LAUNCH || fn == FN_RT_LAUNCH;
	const uint64_t args[LAUNCH_WORDS] = { 0x1000, 0, 1ull << 32 | 8, 32ull << 32 | 1,
		1ull << 32 | 1 };
	maker_put(m, thread,
		(struct record){ .ticks = ticks,
			.dur = dur,
			.fn = fn,
			.words = RECORD_WORDS + (launch ? LAUNCH_WORDS : 1) },
		args);
}

static void string(struct maker *m, int thread, uint64_t id, const char *text)
{
	const uint32_t n = (uint32_t)strlen(text);
	maker_meta(m, thread, META_STRING, 0, 1, &id, text, n, n);
}

/* A runtime launch around a driver launch, in an operator, and what it ran on the device. */
static void make(const char *kernel, bool device)
{
	struct maker *m = maker_new(PATH, maker_schema, 1u << 16);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	maker_name(m, meta, 0, 0x1000, kernel);
	string(m, meta, 1, kernel);
	string(m, meta, 2, "outer");
	string(m, meta, 3, "inner");
	call(m, calls, FN_LAUNCH, 2000100, 500);
	call(m, calls, FN_RT_LAUNCH, 2000000, 1000);
	call(m, calls, FN_SYNC, 3000000, 7000);
	const struct range ranges[] = {
		{ .ticks = 1999000, .dur = 5000, .tid = 100, .name = 2, .kind = RANGE_OPERATOR },
		{ .ticks = 1999500, .dur = 2000, .tid = 100, .name = 3, .kind = RANGE_OPERATOR },
	};
	const struct link links[] = {
		{ .correlation = 7, .ticks = 2000100, .dur = 500, .tid = 100, .fn = FN_LAUNCH },
		{ .correlation = 9, .ticks = 2600000, .dur = 50, .tid = 100, .fn = FN_HTOD },
	};
	const struct gpu_activity activity[] = {
		{ .start_ns = 2100000,
			.end_ns = 2100900,
			.correlation = 7,
			.name = 1,
			.kind = GPU_KERNEL,
			.valid = GPU_HAS_CORRELATION },
		{ .start_ns = 2700000,
			.end_ns = 2700040,
			.correlation = 9,
			.what = COPY_HTOD,
			.kind = GPU_MEMCPY,
			.valid = GPU_HAS_CORRELATION | GPU_HAS_WHAT },
		{ .start_ns = 2800000,
			.end_ns = 2800005,
			.correlation = 1234,
			.name = 1,
			.kind = GPU_KERNEL,
			.valid = GPU_HAS_CORRELATION },
	};
	maker_chunk(m, CHUNK_RANGES, 100, 100, ranges, sizeof ranges);
	if (device) {
		maker_chunk(m, CHUNK_LINKS, 100, 0, links, sizeof links);
		maker_chunk(m, CHUNK_DEVICE, 100, 0, activity, sizeof activity);
	}
	maker_finish(m, 9000000, false);
}

/* A writer's text for the trace; free() it. */
static char *said(enum flame_by by, void (*put)(const struct flame *f, FILE *out))
{
	struct trace *t;
	struct flame *f;
	struct error err;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	assert_int_equal(trace_open(PATH, &t, &err), 0);
	assert_int_equal(flame_make(t, by, &f, &err), 0);
	put(f, out);
	fclose(out);
	flame_free(f);
	trace_close(t);
	return text;
}

static void calls_weigh_what_they_took_without_those_inside(void **state)
{
	make("axpy", false);
	char *text = said(FLAME_AUTO, flame_put_folded);
	assert_string_equal(text,
		"process 100;main (100);cuStreamSynchronize 7000\n"
		"process 100;main (100);outer;inner;cudaLaunchKernel 500\n"
		"process 100;main (100);outer;inner;cudaLaunchKernel;cuLaunchKernel;axpy 500\n");
	free(text);
	unlink(PATH);
}

/* Work whose call was not recorded stands under the link's, work without a link by itself. */
static void gpu_activities_stand_under_their_calls(void **state)
{
	make("axpy", true);
	char *text = said(FLAME_AUTO, flame_put_folded);
	assert_string_equal(text,
		"process 100;main (100);outer;inner;cudaLaunchKernel;cuLaunchKernel;axpy 900\n"
		"process 100;main (100);cuMemcpyHtoDAsync_v2;copy HtoD 40\n"
		"process 100;(call not known);axpy 5\n");
	free(text);
	text = said(FLAME_HOST, flame_put_folded);
	assert_non_null(strstr(text, "cuStreamSynchronize 7000\n"));
	free(text);
	unlink(PATH);
}

/* Calls in a chunk that was closed before the chunk of the call around them. */
static void a_call_is_found_in_a_later_chunk(void **state)
{
	struct maker *m = maker_new(PATH, maker_schema, 1u << 16);
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	for (uint64_t i = 0; i < 5000; i++)
		call(m, calls, FN_SYNC, 2000000 + i * 10, 5);
	call(m, calls, FN_RT_SYNC, 1999000, 60000);
	maker_finish(m, 9000000, false);
	char *text = said(FLAME_HOST, flame_put_folded);
	assert_string_equal(text,
		"process 100;main (100);cudaStreamSynchronize 35000\n"
		"process 100;main (100);cudaStreamSynchronize;cuStreamSynchronize 25000\n");
	free(text);
	unlink(PATH);
}

static void hostile_names_break_no_format(void **state)
{
	json_error_t error;
	make(evil, true);
	char *text = said(FLAME_DEVICE, flame_put_folded);
	assert_non_null(strstr(text, "k:<a & \"b\">]]>??"));
	free(text);
	text = said(FLAME_DEVICE, flame_put_speedscope);
	json_t *j = json_loads(text, 0, &error);
	if (!j)
		fail_msg("%s", error.text);
	json_t *profile = json_array_get(json_object_get(j, "profiles"), 0);
	assert_int_equal(json_array_size(json_object_get(profile, "samples")), 3);
	assert_int_equal(json_integer_value(json_object_get(profile, "endValue")), 945);
	json_decref(j);
	free(text);
	text = said(FLAME_DEVICE, flame_put_svg);
	assert_non_null(strstr(text, "k;&lt;a &amp; &quot;b&quot;&gt;]]&gt;??\xef\xbf\xbd"));
	for (const char *s = text; *s; s++)
		assert_true((unsigned char)*s >= 0x20 || *s == '\n');
	free(text);
	unlink(PATH);
}

static void nothing_is_a_picture_too(void **state)
{
	maker_finish(maker_new(PATH, maker_schema, 1u << 16), 2000000, false);
	char *text = said(FLAME_AUTO, flame_put_svg);
	assert_non_null(strstr(text, "Nothing took any time."));
	free(text);
	text = said(FLAME_AUTO, flame_put_folded);
	assert_string_equal(text, "");
	free(text);
	unlink(PATH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_weigh_what_they_took_without_those_inside),
		cmocka_unit_test(gpu_activities_stand_under_their_calls),
		cmocka_unit_test(a_call_is_found_in_a_later_chunk),
		cmocka_unit_test(hostile_names_break_no_format),
		cmocka_unit_test(nothing_is_a_picture_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
