/* The allocator of device memory: where blocks lie, what lies behind them, and whose it is. */
#include "unit.h"

#include "base/hash.h"
#include "pool_model.h"

#define SLOT   (64u << 10)
#define GRAIN  ((uint64_t)POOL_GRAIN)
#define BASE   (UINT64_C(0x7f) << 32)
#define NOBODY 0u

static const struct pool_shape small = { BASE, 16 * SLOT, SLOT, 512 };

static struct pool_model *m;

static int end(void **state)
{
	if (m)
		model_free(m);
	m = NULL;
	return 0;
}

static struct pool *made(const struct pool_shape *shape)
{
	m = model_new(shape, shape->bytes / shape->slot_bytes);
	return m->pool;
}

/* The offset of a new block that has all its handles. */
static uint64_t place(uint64_t bytes, uint32_t tag)
{
	assert_true(model_place(m, bytes, tag, true));
	return m->blocks.v[m->blocks.n - 1].address - BASE;
}

static void release(uint64_t offset, uint32_t tag)
{
	for (size_t i = 0; i < m->blocks.n; i++)
		if (m->blocks.v[i].address == BASE + offset) {
			model_release(m, i, tag);
			model_check(m);
			return;
		}
	fail();
}

static void a_shape_that_is_none_is_refused(void **state)
{
	const struct pool_shape wrong[] = {
		{ BASE, 16 * SLOT, 0, 512 },
		{ BASE, 16 * SLOT, SLOT - 512, 512 },
		{ BASE, 16 * SLOT, 2048, 512 },
		{ BASE, 16 * SLOT, UINT64_C(1) << 31, 512 },
		{ BASE + 512, 16 * SLOT, SLOT, 512 },
		{ BASE, 16 * SLOT + 512, SLOT, 512 },
		{ BASE, 0, SLOT, 512 },
		{ BASE, 16 * SLOT, SLOT, 0 },
		{ BASE, POOL_MOST_BYTES + SLOT, SLOT, 512 },
		{ UINT64_MAX - SLOT + 1, SLOT, SLOT, 512 },
	};
	struct pool *p = made(&small);
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		assert_int_equal(pool_memory(&wrong[i]), 0);
		assert_int_equal(pool_init(p, &wrong[i]), -1);
	}
	model_check(m);
}

static void blocks_lie_as_low_as_can_be(void **state)
{
	made(&small);
	assert_int_equal(place(1, NOBODY), 0);
	assert_int_equal(place(513, NOBODY), GRAIN);
	assert_int_equal(place(512, NOBODY), 3 * GRAIN);
	release(GRAIN, NOBODY);
	assert_int_equal(place(3 * 512, NOBODY), 4 * GRAIN); /* the gap has two */
	assert_int_equal(place(512, NOBODY), GRAIN);
	assert_int_equal(place(512, NOBODY), 2 * GRAIN);
	model_check(m);
	model_end(m);
}

static void what_is_asked_for_is_what_is_counted(void **state)
{
	struct pool *p = made(&small);
	place(1000, NOBODY);
	assert_int_equal(p->counters.live_bytes, 1000);
	release(0, NOBODY);
	assert_int_equal(p->counters.live_bytes, 0);
	assert_int_equal(p->counters.live_bytes_peak, 1000);
	assert_int_equal(p->counters.placed, 1);
	assert_int_equal(p->counters.freed, 1);
}

static void nothing_and_too_much_are_refused(void **state)
{
	struct pool *p = made(&small);
	struct pool_place at;
	assert_int_equal(pool_place(p, 0, NOBODY, &at), -1);
	assert_int_equal(pool_place(p, 16 * SLOT + 1, NOBODY, &at), -1);
	assert_int_equal(pool_place(p, UINT64_MAX, NOBODY, &at), -1);
	assert_int_equal(pool_place(p, 512, POOL_TAGS, &at), -1);
	assert_int_equal(p->counters.refused, 4);
	assert_int_equal(place(16 * SLOT, NOBODY), 0);
	assert_int_equal(pool_place(p, 1, NOBODY, &at), -1);
	model_end(m);
}

static void what_is_no_block_is_not_freed(void **state)
{
	struct pool *p = made(&small);
	place(4096, NOBODY);
	assert_int_equal(pool_free(p, BASE + 512, NOBODY), -1);
	assert_int_equal(pool_free(p, BASE + 1, NOBODY), -1);
	assert_int_equal(pool_free(p, BASE - 512, NOBODY), -1);
	assert_int_equal(pool_free(p, BASE + 16 * SLOT, NOBODY), -1);
	assert_int_equal(pool_free(p, BASE, POOL_TAGS), -1);
	assert_int_equal(pool_free(p, 0, NOBODY), -1);
	release(0, NOBODY);
	assert_int_equal(pool_free(p, BASE, NOBODY), -1);
	model_check(m);
}

static void a_pointer_into_a_block_names_it(void **state)
{
	struct pool_block b;
	struct pool *p = made(&small);
	place(512, NOBODY);
	place(5 * SLOT + 100, 3);
	assert_true(pool_find(p, BASE + 512 + 4 * SLOT, &b));
	assert_int_equal(b.address, BASE + 512);
	assert_int_equal(b.bytes, 5 * SLOT + 100);
	assert_int_equal(b.tag, 3);
	assert_false(pool_find(p, BASE + 6 * SLOT, &b));
	assert_false(pool_find(p, BASE - 1, &b));
	assert_false(pool_find(p, BASE + 16 * SLOT, &b));
	release(0, NOBODY);
	assert_false(pool_find(p, BASE, &b));
}

/* The beginning is far below the address in a range of half a terabyte, and words between are
 * empty. */
static void a_block_of_many_slots_is_found_from_its_end(void **state)
{
	const struct pool_shape large = { 0, UINT64_C(1) << 39, UINT64_C(32) << 20, 64 };
	struct pool_place a, b;
	struct pool_block found;
	const size_t bytes = pool_memory(&large);
	struct pool *p = calloc(1, bytes + 64);
	assert_non_null(p);
	assert_int_equal(pool_init(p, &large), 0);
	assert_int_equal(pool_place(p, 512, NOBODY, &a), 0);
	assert_int_equal(pool_place(p, large.bytes - 512, NOBODY, &b), 0);
	assert_int_equal(b.missing, b.n_slots);
	for (uint64_t at = 512; at < large.bytes; at += at) {
		assert_true(pool_find(p, at, &found));
		assert_int_equal(found.address, 512);
		assert_true(pool_find(p, large.bytes - at, &found));
		assert_int_equal(found.address, 512);
	}
	assert_true(pool_find(p, 511, &found));
	assert_int_equal(found.address, 0);
	free(p);
}

static void slots_without_a_handle_are_named(void **state)
{
	struct pool_place at;
	struct pool *p = made(&small);
	uint32_t slot;
	place(SLOT + 512, NOBODY);
	assert_int_equal(pool_place(p, 2 * SLOT, NOBODY, &at), 0);
	assert_int_equal(at.first_slot, 1);
	assert_int_equal(at.n_slots, 3);
	assert_int_equal(at.missing, 2);
	slot = at.first_slot;
	assert_true(pool_next_missing(p, &at, &slot));
	assert_int_equal(slot, 2);
	assert_int_equal(pool_back(p, 2, 77), 0);
	assert_int_equal(pool_back(p, 2, 78), -1);
	assert_true(pool_next_missing(p, &at, &slot));
	assert_int_equal(slot, 3);
	assert_int_equal(pool_back(p, 3, 78), 0);
	assert_false(pool_next_missing(p, &at, &slot));
	assert_int_equal(pool_back(p, 16, 79), -1);
	assert_int_equal(p->counters.busy_slots, 4);
	assert_int_equal(pool_slot_address(p, 3), BASE + 3 * SLOT);
}

static void the_handle_that_is_idle_longest_is_taken(void **state)
{
	uint32_t slot;
	uint64_t handle;
	struct pool *p = made(&small);
	for (int i = 0; i < 4; i++)
		place(SLOT, NOBODY);
	assert_false(pool_take_idle(p, &slot, &handle));
	release(2 * SLOT, NOBODY);
	release(0, NOBODY);
	release(3 * SLOT, NOBODY);
	assert_int_equal(place(SLOT, NOBODY), 0); /* in use again: not idle any more */
	assert_true(pool_take_idle(p, &slot, &handle));
	assert_int_equal(slot, 2);
	assert_int_equal(handle, m->handles[2]);
	assert_true(pool_take_idle(p, &slot, &handle));
	assert_int_equal(slot, 3);
	assert_false(pool_take_idle(p, &slot, &handle));
	assert_int_equal(p->counters.backed_slots, 2);
	assert_int_equal(p->counters.taken, 2);
}

/* Memory moves to where a large block found addresses. */
static void free_slots_that_lie_apart_serve_a_large_block(void **state)
{
	struct pool *p;
	m = model_new(&small, 8);
	p = m->pool;
	for (int i = 0; i < 8; i++)
		place(SLOT, NOBODY);
	for (uint64_t i = 0; i < 8; i += 2)
		release(i * SLOT, NOBODY);
	assert_int_equal(place(4 * SLOT, NOBODY), 8 * SLOT);
	assert_int_equal(p->counters.taken, 4);
	assert_int_equal(p->counters.backed_slots_peak, 8);
	assert_false(model_place(m, 512 + SLOT, NOBODY, true)); /* no memory: undone */
	model_check(m);
	assert_int_equal(p->counters.placed, 9);
	model_end(m);
}

static void a_stream_has_its_own_frees_at_once(void **state)
{
	struct pool *p = made(&small);
	place(4096, 1);
	place(4096, 1);
	release(0, 1);
	assert_int_equal(p->counters.unsettled, 1 << 1);
	assert_int_equal(place(4096, 1), 0);
}

static void other_streams_wait_until_frees_are_settled(void **state)
{
	made(&small);
	place(4096, 1);
	place(4096, 1);
	release(0, 1);
	assert_int_equal(place(4096, 2), 8192);
	assert_int_equal(place(4096, NOBODY), 12288);
	model_settle(m, 2); /* of another */
	assert_int_equal(place(4096, 2), 16384);
	model_settle(m, 1);
	model_check(m);
	assert_int_equal(place(4096, 2), 0);
	model_end(m);
}

/* Settled or not, to the stream that freed it all is one range. */
static void one_stream_alone_has_no_seams(void **state)
{
	struct pool *p = made(&small);
	for (int i = 0; i < 4; i++)
		place(4096, 1);
	release(0, 1);
	model_settle(m, 1);
	release(4096, 1);
	release(12288, 1);
	assert_int_equal(p->counters.free_ranges, 2);
	assert_int_equal(place(8192, 1), 0);
	assert_int_equal(place(16 * SLOT - 12288, 1), 12288);
	model_end(m);
}

/* Memory that was never used, and memory that was freed since, are told apart when another stream
 * comes. */
static void another_stream_finds_what_was_never_used(void **state)
{
	struct pool *p = made(&small);
	place(4096, 1);
	release(0, 1);
	assert_int_equal(p->counters.free_ranges, 1);
	assert_int_equal(place(4096, 2), 4096);
	assert_int_equal(p->counters.free_ranges, 2);
	release(4096, 2);
	assert_int_equal(p->counters.free_ranges, 3);
	model_settle(m, 1);
	model_settle(m, 2);
	model_check(m);
	assert_int_equal(p->counters.free_ranges, 1);
}

static void a_slot_is_not_idle_before_each_free_in_it_is_settled(void **state)
{
	struct pool *p = made(&small);
	uint32_t slot;
	uint64_t handle;
	place(4096, 1);
	place(4096, 2);
	release(0, 1);
	release(4096, 2);
	assert_int_equal(p->counters.waiting_slots, 1);
	model_settle(m, 2);
	assert_int_equal(p->counters.waiting_slots, 1);
	assert_false(pool_take_idle(p, &slot, &handle));
	model_settle(m, 1);
	assert_int_equal(p->counters.idle_slots, 1);
	assert_true(model_give_back(m));
}

/* The halves of a settlement: whose the addresses are, and whether work may still be on its way. */
static void what_is_shared_is_not_idle_before_it_is_reached(void **state)
{
	struct pool *p = made(&small);
	struct pool_place at;
	uint32_t slot;
	uint64_t handle;
	place(4096, 1);
	pool_free(p, BASE, 1);
	const uint64_t freed = pool_now(p);
	assert_int_equal(pool_place(p, 4096, 2, &at), 0);
	assert_int_equal(at.address, BASE + 4096);
	pool_share(p, 1);
	assert_int_equal(p->counters.unsettled, 0);
	pool_free(p, BASE + 4096, 0);
	assert_int_equal(pool_place(p, 4096, 2, &at), 0);
	assert_int_equal(at.address, BASE);
	pool_free(p, BASE, 0);
	assert_false(pool_take_idle(p, &slot, &handle));
	assert_null(pool_check(p));
	pool_reached(p, 1, freed); /* all that was ever freed under the tag */
	assert_true(pool_take_idle(p, &slot, &handle));
	assert_null(pool_check(p));
}

/* A slot in which two tags were freed waits for both, and for no later free of either. */
static void a_slot_waits_for_each_tag_until_its_last_free(void **state)
{
	struct pool *p = made(&small);
	uint32_t slot;
	uint64_t handle;
	place(4096, 1);
	place(4096, 2);
	pool_free(p, BASE, 1);
	const uint64_t first = pool_now(p);
	pool_free(p, BASE + 4096, 2);
	const uint64_t second = pool_now(p);
	pool_reached(p, 1, first);
	assert_false(pool_take_idle(p, &slot, &handle));
	pool_reached(p, 2, second);
	assert_true(pool_take_idle(p, &slot, &handle));
	assert_null(pool_check(p));
}

static void at_its_end_a_pool_gives_each_handle_once(void **state)
{
	struct pool *p = made(&small);
	uint32_t slot = 0, handles = 0;
	uint64_t handle;
	place(3 * SLOT, 1);
	place(4096, 0);
	release(0, 1);
	while (pool_take_backed(p, &slot, &handle)) {
		assert_int_equal(handle, m->handles[slot]);
		handles++;
	}
	assert_int_equal(handles, 4);
	assert_int_equal(p->counters.backed_slots, 0);
}

static void a_free_that_was_settled_before_the_last_counts_as_settled(void **state)
{
	struct pool *p = made(&small);
	place(4096, 1);
	place(4096, 2);
	release(0, 1);
	model_settle(m, 1);
	release(4096, 2);
	model_settle(m, 2);
	assert_int_equal(p->counters.idle_slots, 1);
}

static void a_free_after_the_settlement_is_not_settled(void **state)
{
	struct pool *p = made(&small);
	place(4096, 1);
	place(SLOT, 1);
	release(0, 1);
	model_settle(m, 1);
	release(4096, 1);
	assert_int_equal(p->counters.waiting_slots, 2);
	assert_false(model_give_back(m));
	model_settle(m, 1);
	assert_int_equal(p->counters.idle_slots, 2);
}

/* A free range is joined with what lies beside it, so records come back when blocks go. */
static void without_records_a_block_is_refused_and_nothing_is_lost(void **state)
{
	const struct pool_shape tight = { BASE, 16 * SLOT, SLOT, 4 };
	struct pool_place at;
	struct pool *p = made(&tight);
	for (int i = 0; i < 3; i++)
		place(4096, NOBODY);
	assert_int_equal(pool_place(p, 4096, NOBODY, &at), -1);
	release(4096, NOBODY);
	assert_int_equal(place(4096, NOBODY), 4096); /* all of a range needs none */
	release(4096, NOBODY);
	assert_int_equal(pool_place(p, 512, NOBODY, &at), -1);
	release(0, NOBODY);
	assert_int_equal(place(512, NOBODY), 0);
	model_check(m);
	model_end(m);
}

/* One stream's place comes without the record that splitting what was never used from its frees
 * takes: all of it is the stream's then. */
static void without_records_a_seam_lies_too_high(void **state)
{
	const struct pool_shape tight = { BASE, 16 * SLOT, SLOT, 2 };
	struct pool_place at;
	struct pool *p = made(&tight);
	place(4096, 1);
	release(0, 1);
	place(4096, 1);
	assert_int_equal(p->counters.free_ranges, 1);
	release(0, 1);
	place(4096, 1); /* two records: the block, and the rest up to the end */
	release(0, 1);
	model_check(m);
	place(8192, 1);
	assert_int_equal(pool_place(p, 4096, 2, &at), -1);
	model_settle(m, 1);
	model_check(m);
	model_end(m);
}

static uint64_t some(uint64_t *seed, uint64_t below)
{
	return hash_mix(++*seed) % below;
}

static void step(uint64_t *seed, uint32_t tags)
{
	const uint32_t tag = (uint32_t)some(seed, tags);
	const uint64_t what = some(seed, 16);
	if (what < 7)
		model_place(m, 1 + some(seed, UINT64_C(512) << some(seed, 9)), tag, true);
	else if (what < 13 && m->blocks.n)
		model_release(m, some(seed, m->blocks.n), tag);
	else if (what == 13)
		model_settle(m, tag);
	else if (what == 14)
		model_give_back(m);
	else
		model_ask(m, some(seed, 17 * SLOT));
	model_check(m);
}

/* Few and many handles, one to five streams: each answer and all state after each step. */
static void random_use_breaks_nothing(void **state)
{
	uint64_t seed = 1;
	for (uint32_t round = 0; round < 40; round++) {
		m = model_new(&small, round % 4 ? 16 : 5);
		for (int i = 0; i < 1500; i++)
			step(&seed, 1 + round % 6);
		model_end(m);
		end(NULL);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(a_shape_that_is_none_is_refused),
		TEST(blocks_lie_as_low_as_can_be),
		TEST(what_is_asked_for_is_what_is_counted),
		TEST(nothing_and_too_much_are_refused),
		TEST(what_is_no_block_is_not_freed),
		TEST(a_pointer_into_a_block_names_it),
		TEST(a_block_of_many_slots_is_found_from_its_end),
		TEST(slots_without_a_handle_are_named),
		TEST(the_handle_that_is_idle_longest_is_taken),
		TEST(free_slots_that_lie_apart_serve_a_large_block),
		TEST(a_stream_has_its_own_frees_at_once),
		TEST(other_streams_wait_until_frees_are_settled),
		TEST(one_stream_alone_has_no_seams),
		TEST(another_stream_finds_what_was_never_used),
		TEST(a_slot_is_not_idle_before_each_free_in_it_is_settled),
		TEST(what_is_shared_is_not_idle_before_it_is_reached),
		TEST(a_slot_waits_for_each_tag_until_its_last_free),
		TEST(at_its_end_a_pool_gives_each_handle_once),
		TEST(a_free_that_was_settled_before_the_last_counts_as_settled),
		TEST(a_free_after_the_settlement_is_not_settled),
		TEST(without_records_a_block_is_refused_and_nothing_is_lost),
		TEST(without_records_a_seam_lies_too_high),
		TEST(random_use_breaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
