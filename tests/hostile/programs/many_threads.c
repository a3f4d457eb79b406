/* Thousands of threads one after the other, which ask a question or launch, and end: `many_threads
 * N`. The mappings of the process must not grow with them. */
#include "cu.h"

#include <pthread.h>

static void *ask(void *launches)
{
	void *context;
	cuCtxGetCurrent(&context);
	if (launches)
		cu_launch_once();
	return NULL;
}

static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;
	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static void run(long n, bool launches)
{
	pthread_t thread;
	for (long i = 0; i < n; i++) {
		cu_need(pthread_create(&thread, NULL, ask, launches ? &thread : NULL), "thread");
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 2000;
	cu_start();
	run(100, true);
	const int before = count_maps();
	run(n, false);
	run(n / 10, true);
	const int after = count_maps();
	printf("mappings: %s\n", after - before < 20 ? "bounded" : "grow with threads");
	counts("cuCtxGetCurrent", 100 + n + n / 10);
	counts("cuLaunchKernel", 100 + n / 10);
	return 0;
}
