/*
 * load PAGE THREADS CHURN FORKS SPACES CALLS: makes CUDA calls in many ways at once, and keeps its
 * own count of them in the file PAGE, which outlives whoever is killed.
 *
 * THREADS at a time launch; with CHURN each ends after some hundred calls and another takes its
 * place, in a PID namespace with the same id.  FORKS children do the same beside their parent,
 * SPACES of them as the first process of a PID namespace of their own, so that several have one
 * pid.  All stop after CALLS launches, or when the page says so.
 */
#include "../hostile/programs/cu.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct page {
	atomic_long begun, done;               /* launches */
	atomic_long asked, answered;           /* queries */
	atomic_long allocs_begun, allocs_done; /* allocations, and as many frees */
	atomic_long stop;
	atomic_long processes;
};

static struct page *page;
static long threads, churn, calls;

static bool is_over(void)
{
	return atomic_load(&page->stop) || atomic_load(&page->done) >= calls;
}

static void one_call(long i)
{
	void *context;
	uint64_t p = 0;
	atomic_fetch_add(&page->begun, 1);
	cu_launch_once();
	atomic_fetch_add(&page->done, 1);
	if (i % 4 == 0) {
		atomic_fetch_add(&page->asked, 1);
		cuCtxGetCurrent(&context);
		atomic_fetch_add(&page->answered, 1);
	}
	if (i % 16 == 0) {
		atomic_fetch_add(&page->allocs_begun, 1);
		cuMemAlloc_v2(&p, 64);
		cuMemFree_v2(p);
		atomic_fetch_add(&page->allocs_done, 1);
	}
}

static void *work(void *number)
{
	const long most = churn ? 1 + (long)(intptr_t)number * 7919 % 700 : LONG_MAX;
	for (long i = 0; i < most && !is_over(); i++)
		one_call(i);
	return NULL;
}

/* In a PID namespace of its own: the next thread has the id of the one before. */
static void rewind_ids(void)
{
	const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
	if (fd >= 0) {
		(void)!write(fd, "40", 2);
		close(fd);
	}
}

static void run_threads(bool alone)
{
	pthread_t running[16];
	long started = 0;
	do {
		for (long i = 0; i < threads; i++) {
			if (alone && churn)
				rewind_ids();
			cu_need(pthread_create(
					&running[i], NULL, work, (void *)(intptr_t)started++),
				"pthread_create");
		}
		for (long i = 0; i < threads; i++)
			pthread_join(running[i], NULL);
	} while (!is_over());
}

static void child(bool alone)
{
	atomic_fetch_add(&page->processes, 1);
	run_threads(alone);
	_exit(0);
}

/* The first process of a new PID namespace; where that may not be made, a plain child. */
static void child_in_space(void)
{
	if (unshare(CLONE_NEWPID))
		child(false);
	const pid_t first = fork();
	if (!first)
		child(true);
	int status = 0;
	if (first > 0)
		waitpid(first, &status, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	const int fd = argc == 7 ? open(argv[1], O_RDWR) : -1;
	cu_need(fd < 0, "page");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cu_need(page == MAP_FAILED, "page");
	close(fd);
	threads = atol(argv[2]), churn = atol(argv[3]), calls = atol(argv[6]);
	const long forks = atol(argv[4]), spaces = atol(argv[5]);
	cu_start();
	atomic_fetch_add(&page->processes, 1);
	for (long i = 0; i < forks; i++)
		if (!fork())
			child(false);
	for (long i = 0; i < spaces; i++)
		if (!fork())
			child_in_space();
	run_threads(false);
	while (wait(NULL) > 0)
		;
	return 0;
}
