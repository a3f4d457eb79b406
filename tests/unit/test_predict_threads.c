/* One thread learns while others ask: what they are told is never half of one thing and half of
 * another. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "predict/tables.h"
#include "zoo.h"

#define CALLERS 3
#define LEARNT  ROUNDS(20000, 5000)
#define CHANGES ROUNDS(500, 200)

static struct zoo zoo;
static struct predict predict;
static atomic_bool done;
static atomic_uint wrong, exact;

static bool sensible(const struct predict_answer *a)
{
	return a->launches && a->tier != PREDICT_UNKNOWN && a->t50_ns > 0 && a->t90_ns >= a->t50_ns;
}

/* Siblings tell of a kernel that did not run. */
static bool sensible_stranger(const struct predict_sample *s)
{
	struct predict_kernel stranger = *s->launch.kernel;
	struct predict_launch l = s->launch;
	struct predict_answer a;
	stranger.id ^= 0x5555;
	l.kernel = &stranger;
	l.key = 0;
	predict_ask(&predict, &l, &a);
	const double ratio = (double)a.t50_ns / s->measured_ns;
	return sensible(&a) && ratio > 1e-3 && ratio < 1e3;
}

/* Times of the zoo are at most so far from its law once a launch is known exactly. */
static void *ask_on(void *seed)
{
	struct zoo own = zoo;
	own.random = (uint64_t)(uintptr_t)seed;
	while (!atomic_load(&done)) {
		const struct predict_sample s = zoo_next(&own, 0);
		struct predict_answer a;
		predict_ask(&predict, &s.launch, &a);
		const double ratio = (double)a.t50_ns / s.measured_ns;
		if (!sensible(&a) || !sensible_stranger(&s))
			atomic_fetch_add(&wrong, 1);
		if (a.tier == PREDICT_EXACT) {
			atomic_fetch_add(&exact, 1);
			if (ratio < 0.9 || ratio > 1.1)
				atomic_fetch_add(&wrong, 1);
		}
	}
	return NULL;
}

/* Two states of the slot of some siblings, of which one is sixteen times slower. */
static struct predict_kernel sibling = { .id = 1, .group = 5, .regs = 32, .has_regs = true };
static struct sibling_slot states[2];
static struct sibling_slot *slot;
static float told[2];

static struct predict_launch some_blocks(uint32_t i)
{
	return (struct predict_launch){
		.kernel = &sibling,
		.grid = { 2000 * i, 1, 1 },
		.block = { 256, 1, 1 },
	};
}

static struct predict_launch of_a_stranger(void)
{
	static const struct predict_kernel stranger = {
		.id = 2, .group = 5, .regs = 32, .has_regs = true
	};
	struct predict_launch l = some_blocks(7);
	l.kernel = &stranger;
	return l;
}

static void learn_state(int which, void *memory, const struct predict_sizes *sizes, size_t bytes)
{
	const struct predict_launch stranger = of_a_stranger();
	struct predict_answer a;
	assert_int_equal(predict_init(&predict, memory, bytes, sizes, &zoo.device), 0);
	for (uint32_t i = 1; i <= 64; i++) {
		const double ns = 3000 + (which ? 160.0 : 10.0) * 2000 * i;
		const struct predict_sample s = { .launch = some_blocks(i), .measured_ns = ns };
		predict_learn(&predict, &s);
	}
	slot = tables_siblings(predict.tables);
	while (!slot->head.id)
		slot++;
	states[which] = *slot;
	predict_ask(&predict, &stranger, &a);
	assert_int_equal(a.tier, PREDICT_COLD);
	told[which] = a.t50_ns;
}

static void *ask_of_states(void *unused)
{
	const struct predict_launch stranger = of_a_stranger();
	while (!atomic_load(&done)) {
		struct predict_answer a;
		predict_ask(&predict, &stranger, &a);
		if (a.tier != PREDICT_COLD)
			continue; /* the slot was changing */
		atomic_fetch_add(&exact, 1);
		if (a.t50_ns != told[0] && a.t50_ns != told[1])
			atomic_fetch_add(&wrong, 1);
	}
	return unused;
}

/* The predictions by siblings are of one state of their slot, however often that changes. */
static void siblings_are_never_half_of_two_states(void **state)
{
	const struct predict_sizes sizes = { .launches = 256, .kernels = 16 };
	const size_t bytes = predict_bytes(&sizes);
	void *memory = aligned_alloc(64, bytes);
	pthread_t callers[CALLERS];
	zoo_init(&zoo, 9, 0.001);
	learn_state(0, memory, &sizes, bytes);
	learn_state(1, memory, &sizes, bytes);
	assert_true(told[1] > 4 * told[0]);
	atomic_store(&done, false);
	atomic_store(&exact, 0);
	for (uintptr_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, ask_of_states, NULL), 0);
	/* one answer at least of each state; the other callers are in the middle of theirs then */
	for (uint32_t i = 0; i < CHANGES; i++) {
		const unsigned before = atomic_load(&exact);
		store_stable(slot, &states[i % 2], sizeof states[0], &slot->head.sequence);
		while (atomic_load(&exact) == before)
			sched_yield();
	}
	atomic_store(&done, true);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	free(memory);
}

static void answers_are_whole_while_another_thread_learns(void **state)
{
	/* few entries, so that they are given up and taken again all the time */
	const struct predict_sizes sizes = { .launches = 256, .kernels = 16 };
	const size_t bytes = predict_bytes(&sizes);
	void *memory = aligned_alloc(64, bytes);
	pthread_t callers[CALLERS];
	zoo_init(&zoo, 9, 0.001);
	assert_int_equal(predict_init(&predict, memory, bytes, &sizes, &zoo.device), 0);
	for (uintptr_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, ask_on, (void *)(i + 1)), 0);
	struct zoo own = zoo;
	for (uint64_t i = 0; i < LEARNT || atomic_load(&exact) < 1000; i++) {
		const struct predict_sample s = zoo_next(&own, i << 20);
		predict_learn(&predict, &s);
	}
	atomic_store(&done, true);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_whole_while_another_thread_learns),
		cmocka_unit_test(siblings_are_never_half_of_two_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
