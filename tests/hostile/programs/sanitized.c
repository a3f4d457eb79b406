/*
 * A program that is built with a sanitizer does this beside its checks: look functions up, launch
 * from threads, fork.  `sanitized wrong` then makes the mistake that its sanitizer looks for, and
 * must be caught at it; `sanitized leak` has the leak checker look in the middle.
 */
#include "cu.h"

#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, LAUNCHES = 500 };

/* Functions of the sanitizers' runtimes, if there is one. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
extern void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum, raced;
static void *volatile kept;

static void *work(void *number)
{
	cuCtxSetCurrent(cu_context);
	for (int i = 0; i < LAUNCHES; i++) {
		char *some = malloc(32 + (size_t)i % 64);

		memset(some, i, 32);
		if (i % 50 == 0 && dlsym(cu_library, "cuLaunchKernel") != (void *)cuLaunchKernel)
			abort();
		pthread_mutex_lock(&lock);
		sum += cu_launch_once() + some[i % 32] + (long)(intptr_t)number;
		pthread_mutex_unlock(&lock);
		free(some);
	}
	return NULL;
}

static void run_threads(void *(*function)(void *))
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, function, (void *)(intptr_t)i))
			_exit(98);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* The driver refuses to work in a child; what it is asked is recorded. */
static void fork_once(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		int version = 0;
		char *some = malloc(100);
		const int rc = cuDriverGetVersion(&version);

		printf("child: launch %d, version %d, %s\n", cu_launch_once() != 0, rc,
			dlsym(RTLD_DEFAULT, "cuNoSuchFunction") ? "found" : "not found");
		free(some);
		fflush(stdout);
		_exit(7);
	}
	waitpid(child, &status, 0);
	printf("child left with %d\n", WEXITSTATUS(status));
}

static void *race(void *unused)
{
	for (int i = 0; i < 1000; i++)
		raced++;
	return NULL;
}

/* One of each: past the end of a block, without a lock, past the largest number. */
static void be_wrong(void)
{
	volatile char *block = malloc(16);
	volatile int most = 0x7fffffff, shift = 16;

	fflush(stdout);
	block[shift] = 1;
	run_threads(race);
	most = most + (int)raced + 1;
	free((void *)block);
}

static void look_for_leaks(void)
{
	if (!__lsan_do_recoverable_leak_check)
		exit(77);
	printf("leaks: %d\n", __lsan_do_recoverable_leak_check());
	fflush(stdout);
	kept = malloc(1234);
	kept = NULL;
	__sanitizer_set_report_fd((void *)(intptr_t)open("/dev/null", O_WRONLY));
	printf("leaks: %d\n", __lsan_do_recoverable_leak_check());
	fflush(stdout);
	_exit(0); /* it has been said */
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	cu_start();
	run_threads(work);
	fork_once();
	printf("sum %ld\n", sum);
	counts("cuLaunchKernel", THREADS * LAUNCHES + 1);
	counts("cuCtxSetCurrent", THREADS + 1);
	counts("cuDriverGetVersion", 1);
	if (!strcmp(what, "wrong"))
		be_wrong();
	if (!strcmp(what, "leak"))
		look_for_leaks();
	return 0;
}
