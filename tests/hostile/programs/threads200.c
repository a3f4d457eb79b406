/* 200 threads at once, on small stacks. */
#include "cu.h"

#include <limits.h>
#include <pthread.h>

enum { THREADS = 200, LAUNCHES = 50 };

static pthread_barrier_t barrier;
static atomic_int failed;

static void *work(void *unused)
{
	cuCtxSetCurrent(cu_context);
	pthread_barrier_wait(&barrier);
	failed += cu_launch(LAUNCHES);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(void)
{
	static pthread_t thread[THREADS];
	pthread_attr_t attributes;

	cu_start();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 * 1024);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], &attributes, work, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%d failed\n", atomic_load(&failed));
	counts("cuLaunchKernel", THREADS * LAUNCHES);
	counts("cuCtxSetCurrent", THREADS + 1);
	return 0;
}
