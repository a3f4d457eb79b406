/* The page's data: the layout of the timeline, and what the viewer is handed. */
#include "unit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report_make.h"
#include "base/hash.h"
#include "maker.h"
#include "page/html.h"
#include "page/layout.h"
#include "report/memory_print.h"

#define T0 1000000u

static const struct html_sizes sizes = { HTML_ITEMS_MOST, HTML_FINE_MOST };

static struct layout *new_layout(size_t most)
{
	struct layout *t = calloc(1, sizeof *t);
	assert_non_null(t);
	t->most = most;
	return t;
}

static void add(
	struct layout *t, uint32_t tid, uint32_t depth, uint64_t start, uint64_t dur, uint32_t name)
{
	const uint32_t lane =
		layout_lane(t, &(struct layout_lane){ .kind = LANE_CALLS, .tid = tid });
	layout_add(t, lane, depth,
		&(struct layout_item){ .start_ns = start,
			.end_ns = start + dur,
			.name = name,
			.detail = 1,
			.link = start + 1 });
}

static void every_event_is_an_item_while_they_fit(void **state)
{
	struct layout *t = new_layout(100);
	for (uint32_t i = 0; i < 100; i++)
		add(t, i % 3, i % 2, 10 * (100 - i), 5, i);
	layout_finish(t);
	assert_int_equal(0, t->bin_ns);
	assert_int_equal(100, t->items);
	assert_int_equal(6, t->rows.n);
	for (size_t i = 0; i < t->rows.n; i++)
		for (size_t k = 1; k < t->rows.v[i].items.n; k++)
			assert_true(t->rows.v[i].items.v[k - 1].start_ns <
				    t->rows.v[i].items.v[k].start_ns);
	assert_int_equal(1, t->rows.v[0].items.v[0].count);
	assert_true(t->rows.v[0].items.v[0].link != 0);
	layout_free(t);
}

struct sums {
	uint64_t count, busy, first, last, items;
};

static struct sums sums_of(const struct layout *t)
{
	struct sums s = { .first = UINT64_MAX };
	for (size_t i = 0; i < t->rows.n; i++)
		for (size_t k = 0; k < t->rows.v[i].items.n; k++) {
			const struct layout_item *it = &t->rows.v[i].items.v[k];
			s.count += it->count;
			s.busy += it->busy_ns;
			s.first = it->start_ns < s.first ? it->start_ns : s.first;
			s.last = it->end_ns > s.last ? it->end_ns : s.last;
			s.items++;
			assert_true(it->busy_ns <= it->end_ns - it->start_ns);
		}
	return s;
}

static void merging_loses_neither_events_nor_time(void **state)
{
	struct layout *t = new_layout(500);
	uint64_t now = 77, busy = 0, first = now;
	for (uint32_t i = 0; i < 50000; i++) {
		const uint64_t dur = hash_mix(i) % 900;
		add(t, 1, 0, now, dur, i % 7);
		busy += dur;
		now += dur + hash_mix(i + 1) % 100;
	}
	add(t, 1, 0, now, 1, 0);
	layout_finish(t);
	const struct sums s = sums_of(t);
	assert_true(t->bin_ns > 0);
	assert_true(s.items <= 500 && s.items > 100);
	assert_int_equal(s.items, t->items);
	assert_int_equal(50001, s.count);
	assert_int_equal(50001, t->events);
	assert_int_equal(busy + 1, s.busy);
	assert_int_equal(first, s.first);
	assert_int_equal(now + 1, s.last);
	layout_free(t);
}

static void calls_that_come_newest_first_are_laid_out_alike(void **state)
{
	struct layout *a = new_layout(64), *b = new_layout(64);
	for (uint32_t i = 0; i < 5000; i++) {
		const uint32_t j = 4999 - i;
		add(a, 1, 0, i * 100, 20 + hash_mix(i) % 70, (uint32_t)(hash_mix(i) % 5));
		add(b, 1, 0, j * 100, 20 + hash_mix(j) % 70, (uint32_t)(hash_mix(j) % 5));
	}
	layout_finish(a);
	layout_finish(b);
	assert_int_equal(a->bin_ns, b->bin_ns);
	assert_int_equal(a->items, b->items);
	assert_memory_equal(
		a->rows.v[0].items.v, b->rows.v[0].items.v, a->items * sizeof(struct layout_item));
	layout_free(a);
	layout_free(b);
}

static void a_long_event_stays_as_it_was_among_many_short_ones(void **state)
{
	struct layout *t = new_layout(64);
	for (uint32_t i = 0; i < 5000; i++)
		add(t, 1, 0, i * 100, 50, 3);
	add(t, 1, 0, 600000, 5000000, 9);
	for (uint32_t i = 0; i < 5000; i++)
		add(t, 1, 0, 6000000 + i * 100, 50, 3);
	layout_finish(t);
	bool found = false;
	for (size_t k = 0; k < t->rows.v[0].items.n; k++) {
		const struct layout_item *it = &t->rows.v[0].items.v[k];
		found |= it->name == 9 && it->count == 1 && it->start_ns == 600000 &&
			 it->end_ns == 5600000 && it->link == 600001;
	}
	assert_true(found);
	layout_free(t);
}

static void a_coarser_layout_says_of_how_many_items_each_was_made(void **state)
{
	struct layout *fine = new_layout(2000), *t = new_layout(2000);
	for (uint32_t i = 0; i < 9000; i++) {
		const uint64_t dur = hash_mix(i) % 400 * (i % 50 ? 1 : 90);
		add(fine, i % 3, 0, i * 20000, dur, i % 7);
		add(t, i % 3, 0, i * 20000, dur, i % 7);
	}
	layout_finish(fine);
	layout_finish(t);
	layout_coarsen(t, 100);
	assert_true(fine->items <= 2000 && fine->items > 500 && t->items <= 100);
	for (size_t k = 0; k < t->rows.n; k++) {
		const struct layout_item *from = fine->rows.v[k].items.v;
		for (size_t i = 0; i < t->rows.v[k].items.n; i++) {
			const struct layout_item *it = &t->rows.v[k].items.v[i];
			uint64_t count = 0, busy = 0;
			assert_int_equal(it->start_ns, from->start_ns);
			for (uint32_t n = 0; n < it->parts; n++, from++) {
				count += from->count;
				busy += from->busy_ns;
			}
			assert_int_equal(it->count, count);
			assert_int_equal(it->busy_ns, busy);
		}
		assert_ptr_equal(from, fine->rows.v[k].items.v + fine->rows.v[k].items.n);
	}
	layout_free(fine);
	layout_free(t);
}

static void times_at_the_end_of_the_clock_are_laid_out(void **state)
{
	struct layout *t = new_layout(2);
	for (uint64_t i = 0; i < 20; i++)
		add(t, (uint32_t)i, 0, UINT64_MAX - i, i, 1);
	layout_finish(t);
	assert_int_equal(20, t->items); /* one a row: no fewer */
	layout_free(t);
}

#define HOSTILE                                                                                    \
	"</script><script>alert(1)</script><!--\"\\\xe2\x80\xa8 \xff\xfe \x01 <b onclick=x> &lt; ]]>"

static void make_trace(char *path, const char *kernel)
{
	strcpy(path, "/tmp/weir-html-XXXXXX");
	close(mkstemp(path));
	struct maker *m = maker_new(path, maker_schema, 1 << 16);
	const int names = maker_thread(m, CHUNK_META, 100, 100, "python");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "py</script>");
	const uint64_t launch[] = { 0xf00, 7, 8ull << 32 | 4, 256ull << 32 | 1, 1ull << 32 | 1 };
	const uint64_t alloc[] = { 0x7f0000000000, 4096 };
	maker_name(m, names, T0 + 10, 0xf00, kernel);
	for (uint64_t i = 0; i < 10; i++) {
		maker_put(m, calls,
			(struct record){ .ticks = T0 + 100 + i * 50,
				.dur = 20,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS },
			launch);
		maker_put(m, calls,
			(struct record){ .ticks = T0 + 90 + i * 50,
				.dur = 35,
				.fn = FN_RT_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS },
			launch);
	}
	maker_put(m, calls,
		(struct record){
			.ticks = T0 + 800, .dur = 30, .fn = FN_ALLOC, .words = RECORD_WORDS + 2 },
		alloc);
	maker_finish(m, T0 + 2000000, false);
}

struct page {
	char path[64];
	struct trace *t;
	struct html h;
	char *text;
	size_t bytes;
};

static void open_page(struct page *p, const char *kernel)
{
	struct error err;
	make_trace(p->path, kernel);
	assert_int_equal(0, trace_open(p->path, &p->t, &err));
	assert_int_equal(0, html_make(&p->h, p->t, &sizes, &err));
	FILE *out = open_memstream(&p->text, &p->bytes);
	assert_int_equal(0, html_put(&p->h, out));
	fclose(out);
}

static void close_page(struct page *p)
{
	free(p->text);
	html_fini(&p->h);
	trace_close(p->t);
	unlink(p->path);
}

/* The text between the tags of the data, and where it ends. */
static json_t *data_of(const struct page *p, const char **ret_end)
{
	static const char tag[] = "<script type=\"application/json\" id=\"data\">";
	const char *begin = strstr(p->text, tag);
	json_error_t wrong;
	assert_non_null(begin);
	begin += sizeof tag - 1;
	*ret_end = strchr(begin, '<');
	assert_non_null(*ret_end);
	json_t *data = json_loadb(begin, (size_t)(*ret_end - begin), 0, &wrong);
	if (!data)
		fail_msg("%s, at %d", wrong.text, wrong.position);
	return data;
}

static void no_name_ends_the_data(void **state)
{
	struct page p;
	const char *end;
	open_page(&p, HOSTILE);
	json_t *data = data_of(&p, &end);
	assert_int_equal(0, strncmp(end, "</script>\n<script>", 18));
	assert_null(strstr(p.text, "alert(1)</script>"));
	json_t *kernels = json_object_get(json_object_get(data, "report"), "kernels");
	const char *name = json_string_value(json_object_get(json_array_get(kernels, 0), "name"));
	assert_memory_equal(name, "</script><script>alert(1)</script><!--\"\\\xe2\x80\xa8 ", 43);
	json_decref(data);
	close_page(&p);
}

typedef void print_json(const struct report *r, FILE *out, bool compact);

static json_t *printed(print_json *print, const struct report *r)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	print(r, out, false);
	fclose(out);
	json_t *json = json_loadb(text, bytes, 0, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

static void the_page_has_the_numbers_of_the_report(void **state)
{
	struct page p;
	const char *end;
	open_page(&p, "_Z4axpyPfS_f");
	json_t *data = data_of(&p, &end);
	json_t *report = printed(report_print_json, p.h.report);
	json_t *memory = printed(memory_print_json, p.h.report);
	assert_true(json_equal(report, json_object_get(data, "report")));
	assert_true(json_equal(memory, json_object_get(data, "memory")));
	json_decref(report);
	json_decref(memory);
	json_decref(data);
	close_page(&p);
}

static const uint8_t *unpack(const char *base64, size_t *ret_bytes)
{
	static uint8_t room[65536];
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, have = 0;
	*ret_bytes = 0;
	for (; *base64 && *base64 != '='; base64++) {
		bits = bits << 6 | (uint32_t)(strchr(digits, *base64) - digits);
		have += 6;
		if (have >= 8)
			room[(*ret_bytes)++] = (uint8_t)(bits >> (have -= 8));
	}
	return room;
}

static uint64_t varint(const uint8_t **at)
{
	uint64_t v = 0;
	for (int shift = 0;; shift += 7) {
		const uint8_t b = *(*at)++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
}

static void calls_are_rows_by_depth_with_what_they_launched(void **state)
{
	struct page p;
	const char *end;
	open_page(&p, "_Z4axpyPfS_f");
	json_t *data = data_of(&p, &end), *timeline = json_object_get(data, "timeline");
	json_t *lane = json_array_get(json_object_get(timeline, "lanes"), 0);
	assert_string_equal("calls", json_string_value(json_object_get(lane, "kind")));
	assert_string_equal("py</script>", json_string_value(json_object_get(lane, "thread")));
	json_t *rows = json_object_get(lane, "rows");
	assert_int_equal(2, json_array_size(rows));
	size_t bytes;
	const uint8_t *at = unpack(json_string_value(json_array_get(rows, 1)), &bytes);
	const uint8_t *stop = at + bytes;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(
			2 * (i ? 30 : 100), varint(&at)); /* since the last ended; signed */
		assert_int_equal(20, varint(&at));
		const uint64_t name = varint(&at), detail = varint(&at);
		assert_int_equal(0, varint(&at)); /* no link */
		assert_string_equal("cuLaunchKernel",
			json_string_value(
				json_array_get(json_object_get(data, "names"), (size_t)name / 2)));
		json_t *d =
			json_array_get(json_object_get(timeline, "details"), (size_t)detail - 1);
		assert_int_equal(
			256, json_integer_value(json_array_get(json_object_get(d, "block"), 0)));
		assert_string_equal("axpy(float*, float*, float)",
			json_string_value(json_array_get(json_object_get(data, "names"),
				(size_t)json_integer_value(json_object_get(d, "kernel")))));
	}
	assert_ptr_equal(stop, at);
	json_decref(data);
	close_page(&p);
}

/* The number of the link of a lane's first item. */
static uint64_t link_in(json_t *data, const char *kind)
{
	json_t *lane;
	size_t i, bytes;
	json_array_foreach(json_object_get(json_object_get(data, "timeline"), "lanes"), i, lane)
	{
		if (strcmp(json_string_value(json_object_get(lane, "kind")), kind) != 0)
			continue;
		const uint8_t *at =
			unpack(json_string_value(json_array_get(json_object_get(lane, "rows"), 0)),
				&bytes);
		for (int field = 0; field < 4; field++) /* start, length, name, detail */
			varint(&at);
		return varint(&at);
	}
	return 0;
}

/* A recording has no links of its own: they are found by joining. */
static void a_recorded_kernel_is_linked_to_its_call(void **state)
{
	const uint64_t launch[] = { 0xf00, 7, 8ull << 32 | 4, 256ull << 32 | 1, 1ull << 32 | 1 };
	const struct gpu_activity kernel = { .start_ns = T0 + 500,
		.end_ns = T0 + 900,
		.correlation = 5,
		.name = 1,
		.stream = 7,
		.grid = { 4, 8, 1 },
		.block = { 256, 1, 1 },
		.kind = GPU_KERNEL,
		.valid = GPU_HAS_STREAM | GPU_HAS_CORRELATION };
	struct page p;
	struct error err;
	const char *end;
	strcpy(p.path, "/tmp/weir-html-XXXXXX");
	close(mkstemp(p.path));
	struct maker *m = maker_new(p.path, maker_schema, 1 << 16);
	const int names = maker_thread(m, CHUNK_META, 100, 100, "python");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "python");
	maker_name(m, names, T0 + 10, 0xf00, "axpy");
	maker_meta(m, names, META_STRING, 1, 1, (uint64_t[]){ 1 }, "axpy", 4, 4);
	maker_put(m, calls,
		(struct record){ .ticks = T0 + 100,
			.dur = 20,
			.fn = FN_LAUNCH,
			.words = RECORD_WORDS + LAUNCH_WORDS },
		launch);
	maker_chunk(m, CHUNK_DEVICE, 100, 0, &kernel, sizeof kernel);
	maker_finish(m, T0 + 2000000, false);
	assert_int_equal(0, trace_open(p.path, &p.t, &err));
	assert_int_equal(0, html_make(&p.h, p.t, &sizes, &err));
	FILE *out = open_memstream(&p.text, &p.bytes);
	assert_int_equal(0, html_put(&p.h, out));
	fclose(out);
	json_t *data = data_of(&p, &end);
	assert_int_not_equal(link_in(data, "calls"), 0);
	assert_int_equal(link_in(data, "calls"), link_in(data, "stream"));
	json_decref(data);
	close_page(&p);
}

/* More than a page has room for, of which none is short enough to be left out. */
static void frames_as_long_as_the_clock_are_drawn(void **state)
{
	struct flame *f = calloc(1, sizeof *f);
	char name[16], *text;
	struct page p;
	size_t bytes;
	assert_non_null(f);
	assert_int_equal(0, flame_child(f, FLAME_NONE, FRAME_ALL, "all"));
	for (int i = 0; i < 20001; i++) {
		snprintf(name, sizeof name, "%d", i);
		flame_add(f, flame_child(f, 0, FRAME_KERNEL, name), 1ull << 63);
	}
	flame_finish(f);
	open_page(&p, "_Z4axpyPfS_f");
	struct html h = p.h;
	h.host = f;
	FILE *out = open_memstream(&text, &bytes);
	assert_int_equal(0, html_put_data(&h, out));
	fclose(out);
	assert_non_null(strstr(text, "\"host\":{\"left_out\":0,"));
	free(text);
	flame_free(f);
	close_page(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_is_an_item_while_they_fit),
		cmocka_unit_test(merging_loses_neither_events_nor_time),
		cmocka_unit_test(calls_that_come_newest_first_are_laid_out_alike),
		cmocka_unit_test(a_long_event_stays_as_it_was_among_many_short_ones),
		cmocka_unit_test(a_coarser_layout_says_of_how_many_items_each_was_made),
		cmocka_unit_test(times_at_the_end_of_the_clock_are_laid_out),
		cmocka_unit_test(no_name_ends_the_data),
		cmocka_unit_test(the_page_has_the_numbers_of_the_report),
		cmocka_unit_test(calls_are_rows_by_depth_with_what_they_launched),
		cmocka_unit_test(a_recorded_kernel_is_linked_to_its_call),
		cmocka_unit_test(frames_as_long_as_the_clock_are_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
