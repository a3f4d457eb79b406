/*
 * A little of everything that makes the hook ask the kernel for something: calls of two threads
 * and of a forked child, more than one chunk of them, counted queries, ranges, and names.  Its
 * output and end must be the same whatever goes wrong inside the hook.
 */
#include "cu.h"
#include "nvtx.h"

#include <pthread.h>
#include <sys/wait.h>

#define LAUNCHES 1500 /* more than two chunks of a thread hold */

static void *other_thread(void *unused)
{
	printf("thread: %d failed\n", cu_launch(20));
	return unused;
}

static int child(void)
{
	NVTX(push, "child");
	printf("child: %d failed\n", cu_launch(10));
	NVTX(pop);
	fflush(stdout);
	return 7;
}

int main(int argc, char **argv)
{
	/* So long does a recorder wait before it drains what is there. */
	const useconds_t pause_us = argc > 1 ? (useconds_t)strtoul(argv[1], NULL, 10) : 0;
	void *context = NULL;
	uint64_t memory = 0;
	pthread_t thread;
	int status = 0;

	cu_start();
	nvtx_load();
	NVTX(push, "outer");
	const uint64_t span = NVTX(start, "span-apart");
	printf("main: %d failed\n", cu_launch(LAUNCHES));
	usleep(pause_us);
	printf("main: %d failed\n", cu_launch(LAUNCHES));
	for (int i = 0; i < 10; i++)
		cuCtxGetCurrent(&context);
	printf("memory: %d\n", cuMemAlloc_v2(&memory, 4096) + cuMemFree_v2(memory));
	NVTX_VOID(end, span);
	NVTX(pop);
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(child());
	waitpid(pid, &status, 0);
	printf("child left with %d\n", WEXITSTATUS(status));
	return 5;
}
