/* One thread learns while others ask: what they are told is never half of one thing and half of
 * another. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "zoo.h"

#define ASKERS 3
#define LEARNT 20000

static struct zoo zoo;
static struct predict predict;
static atomic_bool done;
static atomic_uint wrong, exact;

static bool sensible(const struct predict_answer *a)
{
	return a->launches && a->tier != PREDICT_UNKNOWN && a->t50_ns > 0 && a->t90_ns >= a->t50_ns;
}

/* Siblings tell of a kernel that did not run: half of one sum and half of another would be far off,
 * since what they sum up is large and cancels out. */
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

static void answers_are_whole_while_another_thread_learns(void **state)
{
	/* few entries, so that they are given up and taken again all the time */
	const struct predict_sizes sizes = { .launches = 256, .kernels = 16 };
	const size_t bytes = predict_bytes(&sizes);
	void *memory = aligned_alloc(64, bytes);
	pthread_t askers[ASKERS];
	zoo_init(&zoo, 9, 0.001);
	assert_int_equal(predict_init(&predict, memory, bytes, &sizes, &zoo.device), 0);
	for (uintptr_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&askers[i], NULL, ask_on, (void *)(i + 1)), 0);
	struct zoo own = zoo;
	for (uint64_t i = 0; i < LEARNT || atomic_load(&exact) < 1000; i++) {
		const struct predict_sample s = zoo_next(&own, i << 20);
		predict_learn(&predict, &s);
	}
	atomic_store(&done, true);
	for (int i = 0; i < ASKERS; i++)
		pthread_join(askers[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_whole_while_another_thread_learns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
