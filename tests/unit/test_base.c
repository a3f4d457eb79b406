/* The small things of src/base, each against a slow version or a second opinion. */
#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/bounded.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/map.h"
#include "base/number.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/text.h"

static int order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Percentiles of the histogram are within 0.5 % of those of the sorted values. */
static void a_percentile_is_half_a_percent_exact(void **state)
{
	enum { N = 20000 };
	static uint64_t values[N];
	for (int bits = 4; bits <= 64; bits += 6) {
		struct hist h = { 0 };
		for (uint64_t i = 0; i < N; i++) {
			values[i] = hash_mix(i + 1) >> (64 - bits);
			hist_add(&h, values[i]);
		}
		qsort(values, N, sizeof values[0], order);
		for (double p = 0; p <= 1; p += 0.01) {
			const double rank = ceil(p * N);
			const double want = (double)values[rank ? (size_t)rank - 1 : 0];
			const double got = (double)hist_at(&h, p);
			assert_true(got >= want * 0.995 && got <= want * 1.005);
		}
		assert_true(h.max == values[N - 1]);
		hist_fini(&h);
	}
}

static void merged_histograms_are_as_one(void **state)
{
	struct hist a = { 0 }, b = { 0 }, both = { 0 };
	for (uint64_t i = 0; i < 1000; i++) {
		hist_add(i % 3 ? &a : &b, i * i);
		hist_add(&both, i * i);
	}
	hist_merge(&a, &b);
	assert_int_equal(a.count, both.count);
	assert_int_equal(a.max, both.max);
	for (double p = 0; p <= 1; p += 0.1)
		assert_int_equal(hist_at(&a, p), hist_at(&both, p));
	assert_int_equal(hist_at(&(struct hist){ 0 }, 0.5), 0);
	struct hist one = { 0 };
	hist_add(&one, 1234567);
	assert_int_equal(hist_at(&one, 0.5), 1234567);
	hist_fini(&one);
	hist_fini(&a);
	hist_fini(&b);
	hist_fini(&both);
}

static void a_map_finds_what_was_put(void **state)
{
	struct map m = { 0 };
	assert_true(map_find(&m, MAP_KEY(1)) == MAP_NONE);
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t *v = map_get(&m, MAP_KEY(i, i / 7, 0, ~(uint64_t)i));
		assert_true(*v == MAP_NONE);
		*v = i;
	}
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(map_find(&m, MAP_KEY(i, i / 7, 0, ~(uint64_t)i)), i);
	assert_true(map_find(&m, MAP_KEY(3, 1)) == MAP_NONE);
	assert_int_equal(m.taken, 10000);
	map_fini(&m);
}

static void an_array_grows(void **state)
{
	ARRAY(uint32_t) a = { 0 };
	for (uint32_t i = 0; i < 1000; i++)
		*array_push(&a) = i;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(a.v[i], i);
	array_free(&a);
}

static void arithmetic_does_not_wrap(void **state)
{
	size_t n = 7;
	assert_false(check_mul(SIZE_MAX / 2, 3, &n));
	assert_int_equal(n, 7);
	assert_true(check_mul(6, 7, &n) && n == 42);
	assert_true(sat_add(UINT64_MAX, 5) == UINT64_MAX);
	assert_true(sat_mul(UINT64_MAX / 2, 3) == UINT64_MAX);
}

static void an_arena_ends(void **state)
{
	char room[64];
	struct arena a = { .base = room + 1, .size = 63 };
	char *p = arena_take(&a, 3), *q = arena_take(&a, 8);
	assert_true(p && q && q >= p + 3 && (uintptr_t)q % 8 == 0);
	assert_null(arena_take(&a, 60));
	assert_null(arena_take(&a, SIZE_MAX));
}

static json_t *parse_back(const char *bytes, size_t n)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_strn(&j, "s", bytes, n);
	json_begin_array(&j, "empty");
	json_end_array(&j);
	json_u64(&j, "n", UINT32_MAX);
	json_i64(&j, "i", -5);
	json_put_null(&j, "nothing");
	json_bool(&j, "yes", true);
	json_end_object(&j);
	fclose(out);
	json_t *root = json_loads(text, 0, NULL);
	free(text);
	return root;
}

static void json_is_json_whatever_the_bytes(void **state)
{
	char bytes[3];
	for (unsigned i = 0; i < 0x10000; i += 7) {
		bytes[0] = (char)i;
		bytes[1] = (char)(i >> 8);
		bytes[2] = (char)(i * 31 >> 3);
		if (!bytes[0] || !bytes[1] || !bytes[2])
			continue; /* jansson refuses \u0000 */
		json_t *root = parse_back(bytes, sizeof bytes);
		assert_non_null(root);
		assert_true(json_is_string(json_object_get(root, "s")));
		json_decref(root);
	}
}

static void json_keeps_what_is_utf8(void **state)
{
	static const char text[] = "a\"b\\c\n\x01 Ünïcødé 漢字 🚀";
	json_t *root = parse_back(text, strlen(text));
	assert_string_equal(json_string_value(json_object_get(root, "s")), text);
	assert_int_equal(json_integer_value(json_object_get(root, "i")), -5);
	assert_int_equal(json_array_size(json_object_get(root, "empty")), 0);
	assert_true(json_is_true(json_object_get(root, "yes")));
	json_decref(root);
}

static void numbers_read_well(void **state)
{
	struct number n;
	assert_string_equal(number_count(&n, 0), "0");
	assert_string_equal(number_count(&n, 999), "999");
	assert_string_equal(number_count(&n, 1000), "1,000");
	assert_string_equal(number_of(&n, 0, "step"), "0 steps");
	assert_string_equal(number_of(&n, 1, "launch"), "1 launch");
	assert_string_equal(number_of(&n, 1000, "launch"), "1,000 launches");
	assert_string_equal(number_of(&n, 1, "GPU activity"), "1 GPU activity");
	assert_string_equal(number_of(&n, UINT64_MAX, "GPU activity"),
		"18,446,744,073,709,551,615 GPU activities");
	assert_string_equal(number_count(&n, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(number_bytes(&n, 1023), "1023 B");
	assert_string_equal(number_bytes(&n, 1024), "1.00 KiB");
	assert_string_equal(number_bytes(&n, 20u << 20), "20.0 MiB");
	assert_string_equal(number_bytes(&n, 1023 << 10), "1.00 MiB");
	assert_string_equal(number_bytes(&n, UINT64_MAX), "16.0 EiB");
	assert_string_equal(number_ns(&n, 999), "999 ns");
	assert_string_equal(number_ns(&n, 1500), "1.50 us");
	assert_string_equal(number_ns(&n, 999999), "1.00 ms");
	assert_string_equal(number_ns(&n, 3600000000000), "3600 s");
}

static void text_for_a_terminal_holds_nothing_that_it_obeys(void **state)
{
	static const struct {
		const char *is, *becomes;
	} rows[] = {
		{ "", "" },
		{ "plain, \xc3\xa4\xe2\x86\x92\xf0\x9f\x98\x80",
			"plain, \xc3\xa4\xe2\x86\x92\xf0\x9f\x98\x80" },
		{ "\x1b[31m\r\n\t\x7f", "?[31m????" },
		{ "\xc2\x9b"
		  "2J\xc2\xa0",
			"?2J\xc2\xa0" }, /* C1, and what is none */
		{ "\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa6", "??\xe2\x80\xa6" },
		{ "\x9b\xff\xc3", "???" }, /* no UTF-8, and a character without its end */
		{ "\xed\xa0\x80", "???" }, /* half of a pair */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[64], printed[64] = "";
		FILE *out = fmemopen(printed, sizeof printed, "w");
		snprintf(text, sizeof text, "%s", rows[i].is);
		text_make_safe(text);
		assert_string_equal(text, rows[i].becomes);
		text_put_safe(out, rows[i].is);
		fclose(out);
		assert_string_equal(printed, rows[i].becomes);
	}
}

static void a_long_name_ends_behind_a_whole_character(void **state)
{
	struct text_short t;
	assert_string_equal(text_short(&t, "name", 4), "name");
	assert_string_equal(text_short(&t, "names", 4), "name…");
	assert_string_equal(text_short(&t, "\xc3\xa4\xc3\xa4\xc3\xa4", 2), "\xc3\xa4\xc3\xa4…");
	assert_string_equal(text_short(&t, "", 4), "");
	char many[4 * TEXT_MOST + 8];
	for (size_t i = 0; i + 4 < sizeof many; i += 4)
		memcpy(many + i, "\xf0\x9f\x98\x80", 5);
	assert_int_equal(strlen(text_short(&t, many, TEXT_MOST)), 4 * TEXT_MOST + 3);
}

static void a_kernel_is_shown_from_where_its_name_tells(void **state)
{
	static const char *const rows[][2] = {
		{ "void at::native::(anonymous namespace)::softmax<float>(at::native::T)",
			"softmax<float>(at::native::T)" },
		{ "void (anonymous namespace)::at::native::k()", "k()" },
		{ "at::native::<unnamed>::k", "k" },
		{ "void cudnn::(anonymous namespace)::k()", "cudnn::(anonymous namespace)::k()" },
		{ "std::enable_if<true, void>::type k()", "std::enable_if<true, void>::type k()" },
		{ "voider", "voider" },
		{ "void", "void" },
		{ "void ", "void " },
		{ "at::native::", "at::native::" },
		{ "at::k", "at::k" },
		{ "void void k", "void k" },
		{ "", "" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_string_equal(text_kernel(rows[i][0]), rows[i][1]);
}

static void a_table_is_as_wide_as_its_cells(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct table t = table_of(">n|<name");
	table_cell(&t, "%d", 12345);
	table_cell(&t, "one\x1b[31m");
	table_cell(&t, "%d", 7);
	table_cell(&t, "two");
	table_print(&t, out);
	fclose(out);
	assert_string_equal(text, "      n  name\n  12345  one?[31m\n      7  two\n");
	free(text);
}

static void cells_of_numbers_are_as_people_read_them(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct table t = table_of(">a|>b|>c|>d|>e|<f");
	table_count(&t, 12345);
	table_bytes(&t, 3 << 20);
	table_ns(&t, 1500000);
	table_share(&t, 1, 4);
	table_share(&t, 1, 0);
	table_percent(&t, 99.96);
	table_end(&t, out, "", "", 1234);
	fclose(out);
	for (const char *const *word = (const char *const[]){ "12,345", "3.00 MiB", "1.50 ms",
		     "25.0 %", " - ", "100.0 %", "… and 1,234 more", NULL };
		*word; word++)
		if (!strstr(text, *word))
			fail_msg("no '%s' in %s", *word, text);
	free(text);
}

static void bounded_text_ends_where_its_room_does(void **state)
{
	for (size_t size = 0; size < 30; size++) {
		char room[32], all[] = "one, two, 3, four";
		memset(room, '#', sizeof room);
		struct bounded b = { .to = room, .size = size };
		bounded_put(&b, "one");
		bounded_printf(&b, ", %s, %d", "two", 3);
		bounded_char(&b, ',');
		bounded_bytes(&b, " fourteen", 5);
		const char *text = bounded_end(&b);
		assert_int_equal(b.cut, size < sizeof all);
		assert_true(room[size] == '#'); /* nothing behind it */
		if (!size) {
			assert_null(text);
			continue;
		}
		all[size < sizeof all ? size - 1 : sizeof all - 1] = '\0';
		assert_string_equal(text, all);
		assert_int_equal(b.used, strlen(all));
	}
}

static void an_error_is_a_sentence(void **state)
{
	struct error err;
	assert_int_equal(error_set(&err, -5, "%s is %d", "x", 3), -5);
	assert_string_equal(err.text, "x is 3");
	assert_int_equal(error_set(NULL, -5, "nobody listens"), -5);
}

static void a_histogram_is_walked_from_the_smallest_value(void **state)
{
	struct hist h = { 0 };
	uint64_t value = 0, count = 0, sum = 0, last = 0;
	unsigned at = 0;
	hist_add_times(&h, 70, 3);
	hist_add_times(&h, 5, 2);
	hist_add_times(&h, 9, 0);
	hist_add(&h, 1000000);
	while (hist_next(&h, &at, &value, &count)) {
		assert_true(value > last);
		last = value;
		sum += count;
	}
	assert_int_equal(sum, 6);
	assert_int_equal(h.count, 6);
	assert_int_equal(h.min, 5);
	assert_int_equal(h.max, 1000000);
	assert_in_range(last, 996000, 1004000);
	hist_fini(&h);
	at = 0;
	assert_false(hist_next(&h, &at, &value, &count));
}

static void a_key_has_one_row_and_one_number(void **state)
{
	struct row {
		uint64_t key, count;
	};
	ARRAY(struct row) rows = { 0 };
	struct map m = { 0 }, numbers = { 0 };
	int made = 0;
	for (uint64_t i = 0; i < 3000; i++) {
		struct row *r = MAP_ROW(
			&m, MAP_KEY(i % 1000, 7), &rows, (made++, (struct row){ .key = i }));
		assert_non_null(r);
		r->count++;
		assert_int_equal(r - rows.v, i % 1000);
		assert_int_equal(map_number(&numbers, MAP_KEY(i % 1000 * 3)), i % 1000);
	}
	assert_int_equal(rows.n, 1000);
	assert_int_equal(made, 1000); /* what a row begins with is asked for once */
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(rows.v[i].key, i);
		assert_int_equal(rows.v[i].count, 3);
	}
	map_fini(&m);
	map_fini(&numbers);
	array_free(&rows);
}

static void a_text_and_a_number_are_a_key(void **state)
{
	struct map m = { 0 };
	*map_get(&m, map_text_key("abc", 3, 0)) = 1;
	*map_get(&m, map_text_key("abc", 3, 5)) = 2;
	assert_int_equal(map_find(&m, map_text_key("abcd", 3, 0)), 1);
	assert_int_equal(map_find(&m, map_text_key("abc", 3, 5)), 2);
	assert_int_equal(map_find(&m, map_text_key("abd", 3, 0)), MAP_NONE);
	assert_int_equal(map_find(&m, map_text_key("ab", 2, 0)), MAP_NONE);
	map_fini(&m);
}

/* Sanitizers end a program that asks for too much, unless it says this. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void without_memory_the_program_ends_with_a_sentence(void **state)
{
	char said[64] = "";
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (!pid) {
		ARRAY(uint64_t) a = { 0 };
		dup2(ends[1], STDERR_FILENO);
		array_reserve(&a, SIZE_MAX / 2);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_true(read(ends[0], said, sizeof said - 1) > 0);
	assert_string_equal(said, "weir: there is not enough memory\n");
	close(ends[0]);
}

/* Against looking at one after the other, in parts of an array with equal ones. */
static void a_search_finds_the_first_that_is_not_before(void **state)
{
	enum { N = 40 };
	size_t v[N];
	for (size_t i = 0; i < N; i++)
		v[i] = i / 3 * 2;
	for (size_t from = 0; from <= N; from++)
		for (size_t to = from; to <= N; to++)
			for (size_t key = 0; key < 30; key++) {
				size_t want = from;
				while (want < to && v[want] < key)
					want++;
				assert_int_equal(SEARCH(k, from, to, v[k] < key), want);
			}
}

struct wide {
	uint64_t key;
	uint64_t rest[5];
};

static int wide_order(const void *one, const void *two)
{
	const struct wide *a = one, *b = two;
	return ORDER(a->key, b->key);
}

/* Runs of `run` records that overlap in time, in each of which every seventh is late by `late`. */
static void check_sort(size_t n, size_t run, size_t late)
{
	struct wide *v = xcalloc(n + 1, sizeof *v);
	for (size_t i = 0; i < n; i++) {
		const size_t in = i % run, back = in % 7 ? 0 : in < late ? in : late;
		v[i].key = ((i / run * 31 % 64) * (run / 2) + in - back) * n + i;
		v[i].rest[4] = ~v[i].key;
	}
	struct wide *want = xmalloc((n + 1) * sizeof *v);
	memcpy(want, v, (n + 1) * sizeof *v);
	qsort(want, n, sizeof *v, wide_order);
	sort_records(v, n, sizeof *v, wide_order);
	assert_memory_equal(v, want, (n + 1) * sizeof *v);
	free(v);
	free(want);
}

static void runs_are_merged_into_order(void **state)
{
	static const size_t lates[] = { 0, 1, 15, 16, 17, 40 };
	(void)state;
	for (size_t n = 1; n < 3000; n = n * 2 + 1)
		for (size_t run = 1; run <= 512; run *= 8)
			for (size_t i = 0; i < sizeof lates / sizeof lates[0]; i++)
				check_sort(n, run, lates[i]);
	sort_records(NULL, 0, 8, wide_order);
}

static int float_order(const void *one, const void *two)
{
	return ORDER(*(const float *)one, *(const float *)two);
}

static void floats_are_sorted(void **state)
{
	float v[600], want[600];
	uint64_t h = 1;
	(void)state;
	for (size_t n = 0; n <= 600; n++) {
		for (size_t i = 0; i < n; i++) {
			h = hash_mix(h);
			v[i] = want[i] = (float)(h % (n % 2 ? 7 : 1000000)) - 3;
		}
		qsort(want, n, sizeof *want, float_order);
		sort_floats(v, n);
		assert_memory_equal(v, want, n * sizeof *v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_percentile_is_half_a_percent_exact),
		cmocka_unit_test(merged_histograms_are_as_one),
		cmocka_unit_test(a_histogram_is_walked_from_the_smallest_value),
		cmocka_unit_test(a_map_finds_what_was_put),
		cmocka_unit_test(a_key_has_one_row_and_one_number),
		cmocka_unit_test(a_text_and_a_number_are_a_key),
		cmocka_unit_test(an_array_grows),
		cmocka_unit_test(without_memory_the_program_ends_with_a_sentence),
		cmocka_unit_test(a_search_finds_the_first_that_is_not_before),
		cmocka_unit_test(runs_are_merged_into_order),
		cmocka_unit_test(floats_are_sorted),
		cmocka_unit_test(arithmetic_does_not_wrap),
		cmocka_unit_test(an_arena_ends),
		cmocka_unit_test(json_is_json_whatever_the_bytes),
		cmocka_unit_test(json_keeps_what_is_utf8),
		cmocka_unit_test(numbers_read_well),
		cmocka_unit_test(text_for_a_terminal_holds_nothing_that_it_obeys),
		cmocka_unit_test(a_long_name_ends_behind_a_whole_character),
		cmocka_unit_test(a_kernel_is_shown_from_where_its_name_tells),
		cmocka_unit_test(a_table_is_as_wide_as_its_cells),
		cmocka_unit_test(cells_of_numbers_are_as_people_read_them),
		cmocka_unit_test(bounded_text_ends_where_its_room_does),
		cmocka_unit_test(an_error_is_a_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
