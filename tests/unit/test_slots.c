/* Tables that threads fill together: each key gets one slot, and one thread is told that it is
 * new. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "hook/core/slots.h"

#define THREADS 4
#define SIZE    4096u
#define KEYS    1500u
#define TURNS   40u

static _Atomic uint64_t keys[SIZE];
static const struct slots table = { keys, SIZE, 64, memory_order_acquire, memory_order_acq_rel };
static const struct slots small = { keys, 16, 4, memory_order_relaxed, memory_order_relaxed };

static int empty(void **state)
{
	memset(keys, 0, sizeof keys);
	return 0;
}

static void a_key_keeps_its_slot(void **state)
{
	bool new;
	assert_int_equal(slots_find(small, 3, 7), SLOTS_NONE);
	assert_int_equal(slots_claim(small, 3, 7, &new), 3);
	assert_true(new);
	assert_int_equal(slots_claim(small, 3, 7, &new), 3);
	assert_false(new);
	assert_int_equal(slots_claim(small, 3, 8, &new), 4);
	assert_true(new);
	assert_int_equal(slots_find(small, 3, 7), 3);
	assert_int_equal(slots_find(small, 3, 8), 4);
	assert_int_equal(keys[3], 7);
	assert_int_equal(keys[4], 8);
}

static void a_full_window_has_no_room(void **state)
{
	bool new;
	for (uint64_t key = 1; key <= 4; key++)
		assert_int_equal(slots_claim(small, 0, key, &new), key - 1);
	assert_int_equal(slots_claim(small, 0, 5, &new), SLOTS_NONE);
	assert_false(new);
	assert_int_equal(slots_find(small, 0, 5), SLOTS_NONE);
	assert_int_equal(slots_claim(small, 0, 4, &new), 3);
	assert_false(new);
	for (uint32_t at = 4; at < 16; at++)
		assert_int_equal(keys[at], 0);
}

static void a_window_goes_round_the_end(void **state)
{
	bool new;
	const uint32_t first = UINT32_MAX - 1; /* 14 of 16 */
	for (uint64_t key = 1; key <= 4; key++)
		assert_int_equal(slots_claim(small, first, key, &new), (13 + key) % 16);
	assert_int_equal(slots_claim(small, first, 5, &new), SLOTS_NONE);
	assert_int_equal(slots_find(small, first, 4), 1);
}

/* The steps of a caller that gives up a key. */
static void a_key_that_is_overwritten_is_gone(void **state)
{
	bool new;
	for (uint64_t key = 1; key <= 4; key++)
		slots_claim(small, 0, key, &new);
	keys[0] = 5;
	assert_int_equal(slots_find(small, 0, 5), 0);
	assert_int_equal(slots_find(small, 0, 1), SLOTS_NONE);
}

/* No table has room for it, and it takes none. */
static void nothing_is_no_key(void **state)
{
	bool new;
	slots_claim(small, 0, 0, &new);
	assert_false(new);
	assert_int_equal(keys[0], 0);
}

static uint32_t slot[THREADS][KEYS];
static atomic_uint told[KEYS];
static pthread_barrier_t together;

/* Close to one another, so that windows overlap. */
static uint32_t first_of(uint32_t key)
{
	return (uint32_t)hash_mix(key) & ~15u;
}

static void claim_all(uint32_t *slots)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		bool new;
		slots[key] = slots_claim(table, first_of(key), key + 1, &new);
		atomic_fetch_add(&told[key], new);
	}
}

static void *claim_on(void *slots)
{
	for (uint32_t i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&together);
		claim_all(slots);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
	}
	return NULL;
}

static void check_round(void)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		const uint32_t at = slot[0][key];
		assert_true(at < SIZE);
		assert_int_equal(keys[at], key + 1);
		assert_int_equal(slots_find(table, first_of(key), key + 1), at);
		for (uint32_t t = 1; t < THREADS; t++)
			assert_int_equal(slot[t][key], at);
		assert_int_equal(told[key], 1);
	}
	uint32_t used = 0;
	for (uint32_t at = 0; at < SIZE; at++)
		used += keys[at] != 0;
	assert_int_equal(used, KEYS);
}

static void threads_agree_on_each_key(void **state)
{
	pthread_t thread[THREADS];
	assert_int_equal(pthread_barrier_init(&together, NULL, THREADS + 1), 0);
	for (uint32_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, claim_on, slot[t]), 0);
	for (uint32_t i = 0; i < TURNS; i++) {
		memset(keys, 0, sizeof keys);
		memset(told, 0, sizeof told);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		check_round();
		pthread_barrier_wait(&together);
	}
	for (uint32_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(thread[t], NULL), 0);
	pthread_barrier_destroy(&together);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_key_keeps_its_slot, empty),
		cmocka_unit_test_setup(a_full_window_has_no_room, empty),
		cmocka_unit_test_setup(a_window_goes_round_the_end, empty),
		cmocka_unit_test_setup(a_key_that_is_overwritten_is_gone, empty),
		cmocka_unit_test_setup(nothing_is_no_key, empty),
		cmocka_unit_test(threads_agree_on_each_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
