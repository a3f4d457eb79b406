/* The ways in which a process ends: `leave HOW`. */
#include "cu.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static void *exits(void *unused)
{
	cu_launch(10);
	counts("cuLaunchKernel", 20);
	exit(5);
}

static void *launches(void *unused)
{
	for (;;)
		cu_launch_once();
	return NULL;
}

/* Never the same for long, so that there is always something to be learnt. */
static void *launches_anew(void *seed)
{
	cuCtxSetCurrent(cu_context);
	for (unsigned g = (unsigned)(uintptr_t)seed;;) {
		g = g * 1664525u + 1013904223u;
		cuLaunchKernel(
			cu_kernel, 1 + (g >> 20) % 4000, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	}
	return NULL;
}

static void at_exit(void)
{
	cu_launch(10);
	counts("cuLaunchKernel", 20);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	struct rlimit none = { 0, 0 };
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &none);
	if (!strcmp(how, "atexit"))
		atexit(at_exit); /* before the driver's own */
	cu_start();
	cu_launch(10);
	printf("leaving by %s\n", how);
	fflush(stdout);
	if (!strcmp(how, "atexit"))
		return 3;
	if (!strcmp(how, "thread")) {
		pthread_create(&thread, NULL, exits, NULL);
		pause();
	}
	if (!strcmp(how, "busy")) { /* exit() while others go on launching */
		for (int i = 0; i < 4; i++)
			pthread_create(&thread, NULL, launches, NULL);
		usleep(20000);
		counts_between("cuLaunchKernel", 10, 1l << 40);
		exit(6);
	}
	if (!strcmp(how, "anew")) { /* the same with launches of ever other shapes */
		for (uintptr_t i = 0; i < 4; i++)
			pthread_create(&thread, NULL, launches_anew, (void *)i);
		usleep(200000);
		exit(6);
	}
	if (!strcmp(how, "last")) { /* main ends first, the process with the last thread */
		pthread_create(&thread, NULL, exits, NULL);
		pthread_exit(NULL);
	}
	counts("cuLaunchKernel", 10);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "quick"))
		quick_exit(8);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "term"))
		kill(getpid(), SIGTERM);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	return 0;
}
