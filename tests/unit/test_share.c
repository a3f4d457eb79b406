/* Another client of CUPTI beside us: what it is given of our buffers, and its clock. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "cupti_records.h"
#include "hook/core/process.h"
#include "hook/time/cupti_shared.h"

__thread struct writer hook_self;

#define CLIENT_BYTES (3 * sizeof(struct cupti_kernel))

static uint64_t monotonic(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int asked, given_back;
static size_t records;
static uint32_t last_kind, last_correlation;
static bool refuse;

static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
	asked++;
	*buffer = refuse ? NULL : malloc(CLIENT_BYTES);
	*bytes = refuse ? 0 : CLIENT_BYTES;
	*most = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	assert_int_equal(bytes, CLIENT_BYTES);
	assert_int_equal(valid % sizeof(struct cupti_kernel), 0);
	for (size_t at = 0; at < valid; at += sizeof(struct cupti_kernel)) {
		struct cupti_kernel k;
		memcpy(&k, buffer + at, sizeof k);
		last_kind = k.kind;
		last_correlation = k.correlation;
		records++;
	}
	given_back++;
	free(buffer);
}

/* All records of these tests are as long as a kernel's. */
static int next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record ? (uint8_t *)*record + sizeof(struct cupti_kernel) : buffer;
	if (at >= buffer + valid)
		return 12;
	*record = at;
	return 0;
}

static void fill(struct cupti_kernel *v, size_t n, uint32_t kind, uint64_t start)
{
	for (size_t i = 0; i < n; i++)
		v[i] = (struct cupti_kernel){ .kind = kind,
			.start = start,
			.end = start + 5,
			.correlation = (uint32_t)i + 1 };
}

static int come(void **unused)
{
	asked = given_back = 0;
	records = 0;
	refuse = false;
	share_callbacks(request, complete);
	share_read_clocks();
	return 0;
}

/* Leaves no buffer with us. */
static int go(void **unused)
{
	share_begin_flush();
	share_end_flush();
	share_forget();
	share_take_dropped();
	return 0;
}

static void what_it_did_not_enable_is_not_its(void **unused)
{
	struct cupti_kernel v[4];
	fill(v, 4, CUPTI_KERNEL, monotonic());
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(records, 0);
}

static void what_it_enabled_is_copied_in_buffers_of_its_own_size(void **unused)
{
	struct cupti_kernel v[8];
	share_enable(CUPTI_KERNEL, true);
	fill(v, 8, CUPTI_KERNEL, monotonic());
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(records, 8);
	assert_int_equal(given_back, 3);
	assert_int_equal(last_correlation, 8);
	share_enable(CUPTI_KERNEL, false);
}

static void what_ran_outside_of_its_time_is_not_its(void **unused)
{
	struct cupti_kernel v[2];
	const uint64_t before = monotonic() - 1000;
	share_enable(CUPTI_KERNEL, true);
	fill(v, 2, CUPTI_KERNEL, before);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	share_enable(CUPTI_KERNEL, false);
	fill(v, 2, CUPTI_KERNEL, monotonic() + 1000);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(records, 0);
}

static void kinds_that_only_it_can_have_enabled_are_its(void **unused)
{
	struct cupti_kernel v[3];
	share_enable(5, true);
	fill(v, 3, 5, 0);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(records, 3);
	assert_int_equal(last_kind, 5);
	share_enable(5, false);
}

static void until_it_flushes_it_has_a_buffer_with_us(void **unused)
{
	struct cupti_kernel v[3];
	share_enable(5, true);
	share_prepare();
	fill(v, 3, 5, 0);
	for (int i = 0; i < 4; i++) {
		share_copy(next, NULL, 0, (uint8_t *)v, (size_t)i * sizeof v[0]);
		assert_int_equal(asked, given_back + 1);
	}
	share_enable(5, false);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(asked, given_back + 1);
	assert_int_equal(records, 9);
	share_begin_flush();
	share_end_flush();
	assert_int_equal(asked, given_back);
}

static void after_its_last_flush_it_hears_of_us_no_more(void **unused)
{
	struct cupti_kernel v[3];
	share_enable(5, true);
	share_enable(5, false);
	share_begin_flush();
	share_end_flush();
	fill(v, 3, 5, 0);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	share_prepare();
	assert_int_equal(asked, 0);
	assert_int_equal(records, 0);
}

/* Cannot be undone, and so comes last. */
static void after_exit_it_is_called_within_its_own_flush_alone(void **unused)
{
	struct cupti_kernel v[3];
	share_enable(5, true);
	fill(v, 3, 5, 0);
	share_leave();
	assert_true(share_is_shut());
	share_prepare();
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(asked, 0);
	share_begin_flush();
	assert_false(share_is_shut());
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	share_end_flush();
	assert_int_equal(records, 3);
	assert_true(share_is_shut());
	share_enable(5, false);
}

static void it_is_asked_for_a_buffer_before_there_is_a_record(void **unused)
{
	share_prepare();
	assert_int_equal(asked, 0);
	share_enable(CUPTI_MEMCPY, true);
	share_prepare();
	share_prepare();
	assert_int_equal(asked, 1);
	share_enable(CUPTI_MEMCPY, false);
}

static void records_for_which_it_has_no_buffer_are_counted(void **unused)
{
	struct cupti_kernel v[5];
	share_enable(5, true);
	refuse = true;
	fill(v, 5, 5, 0);
	share_copy(next, NULL, 0, (uint8_t *)v, sizeof v);
	assert_int_equal(share_take_dropped(), 5);
	assert_int_equal(share_take_dropped(), 0);
	share_enable(5, false);
	refuse = false;
}

static uint64_t ticks(void)
{
	return monotonic() / 2 * 5 + 7;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void dates_of_its_clock_become_ours(void **unused)
{
	const uint64_t early = monotonic();
	share_clock(ticks, true);
	const uint64_t until = monotonic() + 3000000;
	while (monotonic() < until)
		;
	share_read_clocks();
	/* The clocks are read one after the other: a busy machine may come between. */
	uint64_t off = UINT64_MAX;
	for (int i = 0; i < 1000 && off > 50000; i++) {
		const uint64_t d = distance(share_to_monotonic(ticks()), monotonic());
		off = d < off ? d : off;
	}
	assert_true(off <= 50000);
	/* A date from before it came is one of CLOCK_MONOTONIC, and stays. */
	assert_int_equal(share_to_monotonic(early), early);
	assert_int_equal(share_to_monotonic(0), 0);
	/* The work in flight then has a date of neither. */
	assert_true(share_is_date(share_to_monotonic(ticks())));
	assert_false(share_is_date(share_to_monotonic(ticks() * 3)));
	share_clock(NULL, false);
}

static _Atomic bool sampling;

static void *sample_on(void *unused)
{
	while (sampling)
		share_read_clocks();
	return NULL;
}

/* Buffers come back on several threads, and the client changes its mind on another. */
static void readings_are_used_whole_while_others_take_them(void **unused)
{
	pthread_t thread;
	share_clock(ticks, true);
	sampling = true;
	assert_int_equal(pthread_create(&thread, NULL, sample_on, NULL), 0);
	for (int i = 0; i < 3000; i++) {
		const uint64_t before = monotonic();
		const uint64_t at = share_to_monotonic(ticks());
		assert_in_range(at, before - 1000000000u, monotonic() + 1000000000u);
		share_is_date(at);
	}
	sampling = false;
	pthread_join(thread, NULL);
	share_clock(NULL, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_did_not_enable_is_not_its, come, go),
		cmocka_unit_test_setup_teardown(
			what_it_enabled_is_copied_in_buffers_of_its_own_size, come, go),
		cmocka_unit_test_setup_teardown(what_ran_outside_of_its_time_is_not_its, come, go),
		cmocka_unit_test_setup_teardown(
			kinds_that_only_it_can_have_enabled_are_its, come, go),
		cmocka_unit_test_setup_teardown(
			it_is_asked_for_a_buffer_before_there_is_a_record, come, go),
		cmocka_unit_test_setup_teardown(
			records_for_which_it_has_no_buffer_are_counted, come, go),
		cmocka_unit_test_setup_teardown(until_it_flushes_it_has_a_buffer_with_us, come, go),
		cmocka_unit_test_setup_teardown(
			after_its_last_flush_it_hears_of_us_no_more, come, go),
		cmocka_unit_test_setup_teardown(dates_of_its_clock_become_ours, come, go),
		cmocka_unit_test_setup_teardown(
			readings_are_used_whole_while_others_take_them, come, go),
		cmocka_unit_test_setup_teardown(
			after_exit_it_is_called_within_its_own_flush_alone, come, go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
