/* The arguments of launches: keys, scalars and their place in a record. */
#include "unit.h"

#include "event/args.h"
#include "event/predicted.h"

#define PLACES(...)                                                                                \
	(const struct param_place[])                                                               \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static struct launch_args pointers(
	const struct param_place *place, uint32_t count, void *const *params)
{
	struct launch_args a;
	args_of_pointers(&a, place, count, params);
	return a;
}

static const struct param_place axpy[] = { { 0, 8 }, { 8, 8 }, { 16, 4 }, { 20, 4 } };

static struct launch_args of_axpy(uint64_t x, uint64_t y, uint32_t n, float f)
{
	void *params[] = { &x, &y, &n, &f };
	return pointers(axpy, 4, params);
}

static void equal_scalars_have_equal_keys_wherever_the_buffers_lie(void **state)
{
	const struct launch_args a = of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f);
	const struct launch_args b = of_axpy(0x7e0000000000, 0x302000000, 1024, 2.0f);
	assert_true(a.key == b.key);
	assert_int_equal(a.kept, 2);
	assert_int_equal(a.scalars, 2);
	assert_int_equal(a.bytes, 24);
	assert_int_equal(a.value[0], 1024);
	assert_int_equal(a.value[1], 0x40000000);
}

static void each_scalar_changes_the_key(void **state)
{
	const uint64_t key = of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f).key;
	assert_true(key != of_axpy(0x7f0012345600, 0x7f0012340000, 1025, 2.0f).key);
	assert_true(key != of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.5f).key);
	assert_true(key != of_axpy(0x7f0012345600, 0, 1024, 2.0f).key);
	assert_true(key != pointers(axpy, 0, NULL).key);
}

static void the_place_of_an_address_counts(void **state)
{
	uint64_t address = 0x7f0012345600, n = 7;
	void *one[] = { &address, &n }, *two[] = { &n, &address };
	assert_true(pointers(axpy, 2, one).key != pointers(axpy, 2, two).key);
}

static void a_buffer_reads_as_pointers_do(void **state)
{
	struct {
		uint64_t x, y;
		uint32_t n;
		float f;
	} buffer = { 0x7f0012345600, 0x7f0012340000, 1024, 2.0f };
	struct launch_args a;
	args_of_buffer(&a, axpy, 4, &buffer, sizeof buffer);
	assert_true(a.key == of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f).key);
	args_of_buffer(&a, axpy, 4, &buffer, 22); /* the last parameter is not in it */
	assert_int_equal(a.bytes, 20);
	assert_int_equal(a.kept, 1);
}

static void what_is_an_address(void **state)
{
	static const struct {
		uint64_t word;
		bool address;
	} rows[] = {
		{ 0, false },
		{ 1u << 31, false },
		{ 0xffffffff, false },
		{ 0x7f1234567890, true },     /* device memory, mappings */
		{ 0x7fffffffe000, true },     /* the stack */
		{ 0x555555554000, true },     /* the program */
		{ 0x302000000, true },        /* mapped by hand */
		{ 0x1234402000000, false },   /* beyond user space */
		{ 7ull << 32 | 1024, false }, /* two integers */
		{ 0x2000ull << 32 | 5, false },
		{ 0x3ff0000000000000, false }, /* 1.0 */
		{ 0xbff0000000000000, false },
		{ ~0ull, false },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_true(looks_like_address(rows[i].word) == rows[i].address);
}

static void a_structure_is_split_into_its_integers(void **state)
{
	const struct param_place place[] = { { 0, 28 } };
	struct {
		uint32_t a, b;
		double d;
		uint64_t address;
		uint32_t last;
	} given = { 5, 6, 1.5, 0x7f0000000200, 9 };
	void *params[] = { &given };
	const struct launch_args a = pointers(place, 1, params);
	assert_int_equal(a.kept, 4);
	assert_int_equal(a.value[0], 5);
	assert_int_equal(a.value[1], 6);
	assert_true(a.value[2] == 0x3ff8000000000000);
	assert_int_equal(a.value[3], 9);
}

static void small_parameters_are_read_to_their_last_byte_and_no_further(void **state)
{
	uint8_t *small = malloc(3), *one = malloc(1); /* for ASan */
	memcpy(small, "\1\2\3", 3);
	*one = 0x80;
	void *params[] = { small, one };
	const struct launch_args a = pointers(PLACES({ 0, 3 }, { 3, 1 }), 2, params);
	assert_int_equal(a.value[0], 0x030201);
	assert_int_equal(a.value[1], 0x80);
	free(small);
	free(one);
}

static void more_scalars_than_are_kept_change_the_key_all_the_same(void **state)
{
	uint32_t n[20];
	void *params[20];
	struct param_place place[20];
	for (uint16_t i = 0; i < 20; i++) {
		n[i] = i;
		params[i] = &n[i];
		place[i] = (struct param_place){ i * 4, 4 };
	}
	const struct launch_args a = pointers(place, 20, params);
	assert_int_equal(a.kept, ARGS_KEPT);
	assert_int_equal(a.scalars, 20);
	n[19] = 100;
	assert_true(a.key != pointers(place, 20, params).key);
}

static void huge_parameters_are_read_in_part(void **state)
{
	char *big = calloc(1, 4000), *bigger = calloc(1, 32764);
	void *params[] = { big, bigger };
	const struct launch_args a = pointers(PLACES({ 0, 4000 }, { 4000, 28764 }), 2, params);
	assert_int_equal(a.bytes, 4000);
	free(big);
	free(bigger);
}

struct kept {
	struct record head;
	uint64_t arg[40];
};

static struct kept recorded(uint16_t flags, const struct launch_args *a)
{
	const uint32_t first = LAUNCH_WORDS + (flags & RECORD_CLUSTER ? 1 : 0);
	struct kept k = { .head = { .flags = flags | RECORD_ARGS } };
	k.head.words = (uint16_t)(RECORD_WORDS + first + args_words(a));
	args_put(a, k.arg + first);
	return k;
}

static void a_record_gives_back_what_was_put(void **state)
{
	const struct launch_args a = of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f);
	for (int cluster = 0; cluster < 2; cluster++) {
		const struct kept k = recorded(cluster ? RECORD_CLUSTER : 0, &a);
		struct launch_args b;
		assert_true(args_get((const struct record *)&k, &b));
		assert_true(b.key == a.key);
		assert_int_equal(b.kept, 2);
		assert_int_equal(b.scalars, 2);
		assert_int_equal(b.bytes, 24);
		assert_memory_equal(b.value, a.value, 16);
	}
}

static void a_damaged_record_is_read_as_far_as_it_goes(void **state)
{
	const struct launch_args a = of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f);
	struct kept k = recorded(0, &a);
	struct launch_args b;
	k.arg[LAUNCH_WORDS + ARGS_COUNTS] |= 0xff;
	assert_true(args_get((const struct record *)&k, &b));
	assert_int_equal(b.kept, 2);
	for (uint16_t words = 0; words < RECORD_WORDS + LAUNCH_WORDS + ARGS_VALUES; words++) {
		k.head.words = words;
		assert_false(args_get((const struct record *)&k, &b));
	}
	k.head.words = RECORD_WORDS + LAUNCH_WORDS + ARGS_VALUES;
	assert_true(args_get((const struct record *)&k, &b));
	assert_int_equal(b.kept, 0);
	k.head.flags = 0;
	assert_false(args_get((const struct record *)&k, &b));
}

static void a_predicted_time_goes_through_its_word(void **state)
{
	static const struct predicted_time rows[] = { { 1234.5f, 2000, 6, false },
		{ 1e9f, 3e9f, 1, true }, { 0.5f, 0.75f, 5, false } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct predicted_time f = predicted_of_word(predicted_word(&rows[i]));
		assert_true(f.t50_ns == rows[i].t50_ns);
		assert_true(f.t90_ns <= rows[i].t90_ns && f.t90_ns > rows[i].t90_ns * 0.9999f);
		assert_int_equal(f.tier, rows[i].tier);
		assert_int_equal(f.class_only, rows[i].class_only);
	}
}

static void a_predicted_time_is_the_last_word_behind_the_launch(void **state)
{
	const struct predicted_time told = { 100, 200, 6, false };
	const struct launch_args a = of_axpy(0x7f0012345600, 0x7f0012340000, 1024, 2.0f);
	struct kept k = recorded(0, &a);
	struct predicted_time f = { 0 };
	struct launch_args b;
	k.arg[k.head.words++ - RECORD_WORDS] = predicted_word(&told);
	assert_false(predicted_get((const struct record *)&k, &f));
	k.head.flags |= RECORD_PREDICTED;
	assert_true(predicted_get((const struct record *)&k, &f));
	assert_true(f.t50_ns == 100);
	assert_true(args_get((const struct record *)&k, &b) && b.kept == 2);
	k.head.words = RECORD_WORDS + LAUNCH_WORDS;
	assert_false(predicted_get((const struct record *)&k, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_scalars_have_equal_keys_wherever_the_buffers_lie),
		cmocka_unit_test(each_scalar_changes_the_key),
		cmocka_unit_test(the_place_of_an_address_counts),
		cmocka_unit_test(a_buffer_reads_as_pointers_do),
		cmocka_unit_test(what_is_an_address),
		cmocka_unit_test(a_structure_is_split_into_its_integers),
		cmocka_unit_test(small_parameters_are_read_to_their_last_byte_and_no_further),
		cmocka_unit_test(more_scalars_than_are_kept_change_the_key_all_the_same),
		cmocka_unit_test(huge_parameters_are_read_in_part),
		cmocka_unit_test(a_record_gives_back_what_was_put),
		cmocka_unit_test(a_damaged_record_is_read_as_far_as_it_goes),
		cmocka_unit_test(a_predicted_time_goes_through_its_word),
		cmocka_unit_test(a_predicted_time_is_the_last_word_behind_the_launch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
