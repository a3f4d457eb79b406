/* The lock of the injected library: who gets it, who waits how long, and what a fork leaves. */
#include "unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/core/lock.h"

__thread struct writer hook_self;

static struct lock lock;
static uint64_t counted;

static void *take_and_end(void *unused)
{
	return lock_take(&lock, 0) ? &lock : NULL;
}

static void *try_shortly(void *unused)
{
	return lock_take(&lock, 1) ? &lock : NULL;
}

static void *count(void *unused)
{
	for (int i = 0; i < 20000; i++)
		if (lock_take(&lock, LOCK_NAPS)) {
			counted++;
			lock_give(&lock);
		}
	return NULL;
}

static void *in_thread(void *(*run)(void *))
{
	pthread_t t;
	void *ret = NULL;
	assert_false(pthread_create(&t, NULL, run, NULL));
	assert_false(pthread_join(t, &ret));
	return ret;
}

static void one_thread_at_a_time_has_it(void **state)
{
	pthread_t t[4];
	counted = 0;
	for (int i = 0; i < 4; i++)
		assert_false(pthread_create(&t[i], NULL, count, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(counted, 80000);
}

static void a_handler_of_the_holder_goes_without(void **state)
{
	assert_true(lock_take(&lock, LOCK_NAPS));
	assert_false(lock_take(&lock, LOCK_NAPS)); /* at once, or this test takes two seconds */
	lock_give(&lock);
	assert_false(lock_is_vain(&lock));
	assert_true(lock_take(&lock, LOCK_NAPS));
	lock_give(&lock);
}

static void after_a_wait_in_vain_nobody_waits_until_it_is_given_back(void **state)
{
	assert_true(lock_take(&lock, 0));
	assert_null(in_thread(try_shortly));
	assert_true(lock_is_vain(&lock));
	lock_give(&lock);
	assert_false(lock_is_vain(&lock));
	assert_non_null(in_thread(take_and_end));
	lock_forked(&lock);
}

static void a_holder_that_has_ended_keeps_it(void **state)
{
	assert_non_null(in_thread(take_and_end));
	/* A new thread may have the storage of the one that ended: it gets it as little. */
	assert_null(in_thread(try_shortly));
	assert_false(lock_take(&lock, 1));
	assert_true(lock_is_vain(&lock));
	assert_true(lock_forked(&lock));
}

static void a_forked_child_frees_what_others_held(void **state)
{
	int status = 0;
	assert_non_null(in_thread(take_and_end));
	const pid_t child = fork();
	if (!child)
		_exit(lock_forked(&lock) && !lock_forked(&lock) && lock_take(&lock, 0) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(lock_forked(&lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_at_a_time_has_it),
		cmocka_unit_test(a_handler_of_the_holder_goes_without),
		cmocka_unit_test(after_a_wait_in_vain_nobody_waits_until_it_is_given_back),
		cmocka_unit_test(a_holder_that_has_ended_keeps_it),
		cmocka_unit_test(a_forked_child_frees_what_others_held),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
