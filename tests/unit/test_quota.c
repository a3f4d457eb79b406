/* Device memory that a program and its children may have together: the sums of the shared file. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/quota.h"

#define MIB (1ull << 20)

static struct share_file *file; /* of each test, which its children share */

static int begin(void **state)
{
	file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return file == MAP_FAILED;
}

static int end(void **state)
{
	return munmap(file, sizeof *file);
}

/* One that nobody can ask after: it has no name space. */
static struct share_slot *slot(uint32_t i, uint32_t device, uint64_t group, uint64_t quota)
{
	struct share_slot *s = &file->slots[i];
	memset(s, 0, sizeof *s);
	s->memory.quota = quota;
	s->memory.group = group;
	s->who.pid = (uint32_t)getpid();
	s->who.device = device;
	s->who.state = SLOT_LIVE;
	share_bit_set(file->devices[device].members, i);
	return s;
}

static struct share_slot *member(uint32_t i, uint64_t quota)
{
	return slot(i, 0, 7, quota);
}

static void a_group_has_what_its_slots_have(void **state)
{
	member(3, 100)->memory.used = 10;
	member(200, 100)->memory.used = 20;
	file->slots[200].memory.idle = 5;
	const struct quota_sum sum = quota_sum(file, 3);
	assert_int_equal(sum.used, 30);
	assert_int_equal(sum.idle, 5);
	assert_int_equal(sum.quota, 100);
	assert_int_equal(quota_left(&sum), 70);
}

static void another_group_and_another_device_are_apart(void **state)
{
	member(0, 100)->memory.used = 10;
	slot(1, 1, 7, 100)->memory.used = 20;
	slot(2, 0, 8, 100)->memory.used = 40;
	slot(3, 0, 0, 0)->memory.used = 80;
	assert_int_equal(quota_sum(file, 0).used, 10);
	assert_int_equal(quota_sum(file, 1).used, 20);
	assert_int_equal(quota_sum(file, 2).used, 40);
	assert_int_equal(quota_sum(file, 3).used, 80);
}

static void one_without_a_group_stands_for_itself(void **state)
{
	slot(0, 0, 0, 100)->memory.used = 10;
	slot(1, 0, 0, 100)->memory.used = 90;
	assert_int_equal(quota_take(file, 0, 90), QUOTA_GRANTED);
	assert_int_equal(quota_take(file, 0, 1), QUOTA_REFUSED);
	assert_int_equal(file->slots[0].memory.refused, 1);
}

static void what_has_no_quota_is_counted_and_never_refused(void **state)
{
	struct share_slot *s = member(0, 0);
	assert_int_equal(quota_take(file, 0, 1ull << 60), QUOTA_GRANTED);
	assert_int_equal(s->memory.used, 1ull << 60);
}

static void what_is_granted_is_used_until_it_is_given_back(void **state)
{
	struct share_slot *s = member(0, 100);
	assert_int_equal(quota_take(file, 0, 60), QUOTA_GRANTED);
	assert_int_equal(quota_take(file, 0, 41), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 0, 40), QUOTA_GRANTED);
	assert_int_equal(s->memory.asked, 0);
	quota_give(s, 60);
	assert_int_equal(quota_take(file, 0, 60), QUOTA_GRANTED);
	assert_int_equal(s->memory.peak, 100);
	assert_int_equal(s->memory.refused, 1);
}

static void what_pools_keep_is_asked_back_when_it_is_too_much(void **state)
{
	struct share_slot *s = member(0, 100);
	s->memory.idle = 50;
	assert_int_equal(quota_take(file, 0, 50), QUOTA_GRANTED);
	assert_int_equal(quota_take(file, 0, 1), QUOTA_TIGHT);
}

static struct share_slot *within(uint32_t i, uint64_t quota, uint64_t outer_quota)
{
	struct share_slot *s = slot(i, 0, 8, quota);
	s->memory.outer_group = 7;
	s->memory.outer_quota = outer_quota;
	return s;
}

static void a_quota_within_another_is_bounded_by_both(void **state)
{
	struct share_slot *outer = member(0, 100);
	within(1, 60, 100);
	assert_int_equal(quota_take(file, 1, 61), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 1, 60), QUOTA_GRANTED);
	assert_int_equal(quota_take(file, 0, 41), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 0, 40), QUOTA_GRANTED);
	quota_give(&file->slots[1], 60);
	assert_int_equal(quota_take(file, 0, 50), QUOTA_GRANTED);
	assert_int_equal(quota_take(file, 1, 11), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 1, 10), QUOTA_GRANTED);
	assert_int_equal(outer->memory.used, 90);
}

static void a_quota_larger_than_the_one_around_it_is_that_one(void **state)
{
	within(1, 1000, 100);
	assert_int_equal(quota_sum(file, 1).quota, 100);
	assert_int_equal(quota_take(file, 1, 101), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 1, 100), QUOTA_GRANTED);
}

static void measure(uint64_t free, uint64_t total)
{
	quota_measure(file, 0, quota_known(file, 0), free, total);
}

static void a_context_takes_what_is_missing_on_the_device(void **state)
{
	struct share_slot *s = member(0, 512 * MIB);
	s->memory.used = 64 * MIB;
	s->memory.contexts = 2;
	measure(1000 * MIB, 1256 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 96 * MIB);
	assert_int_equal(quota_sum(file, 0).contexts, 192 * MIB);
	assert_int_equal(quota_take(file, 0, 257 * MIB), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 0, 256 * MIB), QUOTA_GRANTED);
}

static void the_least_that_was_measured_holds(void **state)
{
	member(0, 512 * MIB)->memory.contexts = 1;
	measure(800 * MIB, 1000 * MIB);
	measure(900 * MIB, 1000 * MIB);
	measure(700 * MIB, 1000 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 100 * MIB);
}

static void nothing_is_learnt_from_what_cannot_be(void **state)
{
	struct share_slot *s = member(0, 512 * MIB);
	measure(900 * MIB, 1000 * MIB); /* no context */
	s->memory.contexts = 1;
	measure(1000 * MIB, 900 * MIB);  /* more free than there is */
	measure(1000 * MIB, 1000 * MIB); /* nothing missing */
	measure(0, 1 << 19);             /* less than a context takes */
	s->memory.used = 200 * MIB;
	measure(900 * MIB, 1000 * MIB); /* more known than missing */
	assert_int_equal(file->devices[0].who.context_bytes, 0);
}

static void what_programs_outside_the_file_have_is_no_context(void **state)
{
	member(0, 1024 * MIB)->memory.contexts = 1;
	measure(0, 4096 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 512 * MIB);
	measure(0, 8192 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 512 * MIB);
	measure(4000 * MIB, 4096 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 96 * MIB);
}

static void nothing_is_measured_while_somebody_allocates_or_frees(void **state)
{
	struct share_slot *s = member(0, 512 * MIB);
	s->memory.contexts = 1;
	quota_changes(s, true);
	measure(900 * MIB, 1000 * MIB);
	quota_changes(s, false);
	const uint64_t before = quota_known(file, 0);
	s->memory.used = 4 * MIB;
	quota_measure(file, 0, before, 900 * MIB, 1000 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 0);
	measure(900 * MIB, 1000 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 96 * MIB);
}

/* Memory that is being allocated or freed is not on the device, or may not be. */
static void what_may_not_be_on_the_device_is_no_part_of_it(void **state)
{
	struct share_slot *s = member(0, 512 * MIB);
	s->memory.contexts = 1;
	s->memory.used = 128 * MIB;
	s->memory.lazy = 64 * MIB;
	measure(800 * MIB, 960 * MIB);
	assert_int_equal(file->devices[0].who.context_bytes, 96 * MIB);
}

static void contexts_beyond_the_quota_leave_nothing(void **state)
{
	member(0, 100 * MIB)->memory.contexts = 2;
	file->devices[0].who.context_bytes = 96 * MIB;
	const struct quota_sum sum = quota_sum(file, 0);
	assert_int_equal(quota_left(&sum), 0);
	assert_int_equal(quota_take(file, 0, 1), QUOTA_REFUSED);
}

static void dies_with(uint32_t i, uint64_t bytes)
{
	static const uint8_t uuid[16] = { 1 };
	const struct share_self self = { .class = CLASS_BEST_EFFORT, .quota = 100, .group = 7 };
	const pid_t child = fork();
	if (!child) {
		const uint32_t device = share_device(file, uuid, 132);
		const uint32_t own = share_claim(file, device, &self);
		_exit(own == i && quota_take(file, own, bytes) == QUOTA_GRANTED ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void what_the_dead_had_is_there_again_at_a_refusal(void **state)
{
	member(0, 100)->memory.used = 10;
	dies_with(1, 90);
	assert_int_equal(file->slots[1].memory.used, 90);
	assert_int_equal(quota_take(file, 0, 90), QUOTA_GRANTED);
	assert_int_equal(file->slots[1].who.state, SLOT_FREE);
	assert_int_equal(file->slots[0].memory.refused, 0);
}

static void who_was_killed_while_it_asked_is_in_nobodys_way(void **state)
{
	member(0, 100);
	dies_with(1, 1);
	file->slots[1].memory.asked = 90;
	assert_int_equal(quota_take(file, 0, 50), QUOTA_GRANTED);
}

static void the_dead_of_other_groups_are_let_be(void **state)
{
	struct share_slot *s = member(0, 100);
	dies_with(1, 90);
	s->memory.used = 100;
	file->slots[1].memory.group = 8;
	assert_int_equal(quota_take(file, 0, 1), QUOTA_REFUSED);
	assert_int_equal(file->slots[1].who.state, SLOT_LIVE);
}

static void sums_that_would_wrap_are_everything(void **state)
{
	member(0, 100)->memory.used = UINT64_MAX - 5;
	member(1, 100)->memory.used = 10;
	assert_int_equal(quota_sum(file, 0).used, UINT64_MAX);
	assert_int_equal(quota_take(file, 0, 1), QUOTA_REFUSED);
	member(0, 100);
	file->slots[1].memory.used = 0;
	file->slots[1].memory.contexts = UINT32_MAX;
	file->devices[0].who.context_bytes = UINT64_MAX / 2;
	assert_int_equal(quota_sum(file, 0).contexts, UINT64_MAX);
	assert_int_equal(quota_take(file, 0, 1), QUOTA_REFUSED);
}

static void a_size_that_would_wrap_is_refused(void **state)
{
	struct share_slot *s = member(0, 100);
	s->memory.used = 10;
	assert_int_equal(quota_take(file, 0, UINT64_MAX), QUOTA_REFUSED);
	assert_int_equal(quota_take(file, 0, UINT64_MAX - 5), QUOTA_REFUSED);
	assert_int_equal(s->memory.used, 10);
	assert_int_equal(s->memory.asked, 0);
}

/* Random words in every slot: answers are what they are, but they come, and nothing is trodden on.
 */
static void nonsense_in_the_file_is_survived(void **state)
{
	uint64_t seed = 88172645463325252ull;
	for (int round = 0; round < 200; round++) {
		uint64_t *words = (uint64_t *)file;
		for (size_t i = 0; i < sizeof *file / 8; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			words[i] = seed & (round & 1 ? UINT64_MAX : 0xff);
		}
		const uint32_t i = (uint32_t)(seed % SHARE_SLOTS);
		const struct quota_sum sum = quota_sum(file, i);
		assert_true(quota_left(&sum) <= sum.quota);
		quota_measure(file, (uint32_t)(seed >> 8) % SHARE_DEVICES, seed, seed, seed * 3);
		quota_wanted(file, i, seed);
	}
}

enum { MOST_THREADS = 12, TURNS = ROUNDS(3000, 600) };

static struct {
	int threads, share;
	bool own_slot; /* one each, or one for all */
	_Atomic int arrived, granted[TURNS];
	_Atomic uint64_t most;
} many;

/* They are to come at the very same time, which is what a barrier of the system avoids. */
static void meet(int time)
{
	atomic_fetch_add_explicit(&many.arrived, 1, memory_order_seq_cst);
	for (int spin = 0;
		atomic_load_explicit(&many.arrived, memory_order_seq_cst) < time * many.threads;)
		if (++spin % 1000 == 0)
			sched_yield();
}

static uint32_t slot_of(uintptr_t number)
{
	return many.own_slot ? (uint32_t)number * 20 : 0;
}

static void note_most(void)
{
	uint64_t used = 0;
	for (uintptr_t i = 0; i < (many.own_slot ? (uintptr_t)many.threads : 1); i++)
		used += atomic_load_explicit(
			&file->slots[slot_of(i)].memory.used, memory_order_seq_cst);
	uint64_t seen = atomic_load_explicit(&many.most, memory_order_seq_cst);
	while (used > seen && !atomic_compare_exchange_weak_explicit(&many.most, &seen, used,
				      memory_order_seq_cst, memory_order_seq_cst))
		;
}

static void *ask_once_a_turn(void *number)
{
	const uint32_t own = slot_of((uintptr_t)number);
	for (int turn = 0; turn < TURNS; turn++) {
		meet(2 * turn + 1);
		const bool has = quota_take(file, own, MIB) != QUOTA_REFUSED;
		atomic_fetch_add_explicit(&many.granted[turn], has, memory_order_seq_cst);
		note_most();
		meet(2 * turn + 2);
		if (has)
			quota_give(&file->slots[own], MIB);
	}
	return NULL;
}

/* However the room and those who want it compare, each time exactly what is there is granted; but
 * one that is off its processor for a tenth of a second while it asks is waited for no longer, and
 * a machine with other work may do that to some. */
static void all_ask_at_once(bool own_slot, int threads, int share)
{
	pthread_t thread[MOST_THREADS];
	memset(&many, 0, sizeof many);
	many.own_slot = own_slot;
	many.threads = threads;
	many.share = share;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) /* all, so that the sum takes its time */
		member(i, (uint64_t)share * MIB + 1);
	for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
		assert_false(pthread_create(&thread[i], NULL, ask_once_a_turn, (void *)i));
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	int fewer = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		assert_true(many.granted[turn] <= share);
		fewer += many.granted[turn] < share;
	}
	assert_in_range(fewer, 0, TURNS / 100);
	assert_true(many.most <= (uint64_t)share * MIB);
	for (uintptr_t i = 0; i < (uintptr_t)threads; i++) {
		assert_int_equal(file->slots[slot_of(i)].memory.used, 0);
		assert_int_equal(file->slots[slot_of(i)].memory.asked, 0);
	}
}

static void programs_that_ask_at_once_get_exactly_what_is_there(void **state)
{
	all_ask_at_once(true, 2, 1);
	all_ask_at_once(true, 12, 5);
}

static void threads_that_ask_at_once_get_exactly_what_is_there(void **state)
{
	all_ask_at_once(false, 2, 1);
	all_ask_at_once(false, 12, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
		T(a_group_has_what_its_slots_have),
		T(another_group_and_another_device_are_apart),
		T(one_without_a_group_stands_for_itself),
		T(what_has_no_quota_is_counted_and_never_refused),
		T(what_is_granted_is_used_until_it_is_given_back),
		T(what_pools_keep_is_asked_back_when_it_is_too_much),
		T(a_quota_within_another_is_bounded_by_both),
		T(a_quota_larger_than_the_one_around_it_is_that_one),
		T(a_context_takes_what_is_missing_on_the_device),
		T(the_least_that_was_measured_holds),
		T(nothing_is_learnt_from_what_cannot_be),
		T(what_programs_outside_the_file_have_is_no_context),
		T(nothing_is_measured_while_somebody_allocates_or_frees),
		T(what_may_not_be_on_the_device_is_no_part_of_it),
		T(contexts_beyond_the_quota_leave_nothing),
		T(what_the_dead_had_is_there_again_at_a_refusal),
		T(who_was_killed_while_it_asked_is_in_nobodys_way),
		T(the_dead_of_other_groups_are_let_be),
		T(sums_that_would_wrap_are_everything),
		T(a_size_that_would_wrap_is_refused),
		T(nonsense_in_the_file_is_survived),
		T(programs_that_ask_at_once_get_exactly_what_is_there),
		T(threads_that_ask_at_once_get_exactly_what_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
