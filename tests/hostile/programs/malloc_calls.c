/* With libs/count_malloc.c: malloc() calls the driver, and a driver call allocates nothing. */
#include "cu.h"

#include <pthread.h>

extern atomic_long malloc_inside;
extern _Thread_local int driver_depth;
extern int (*malloc_ask)(void **context);

enum { ROUNDS = 500 };

static void *rounds(void *unused)
{
	void *volatile keep;

	for (int i = 0; i < ROUNDS; i++) {
		driver_depth++;
		cu_launch_once();
		driver_depth--;
		keep = malloc(16); /* asks the driver */
		free(keep);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	driver_depth++;
	cu_start();
	driver_depth--;
	atomic_store(&malloc_inside, 0);
	malloc_ask = cuCtxGetCurrent;
	rounds(NULL);
	driver_depth++;
	pthread_create(&thread, NULL, rounds, NULL);
	driver_depth--;
	atomic_store(&malloc_inside, 0);
	pthread_join(thread, NULL);
	malloc_ask = NULL;
	printf("allocated inside driver calls: %ld\n", atomic_load(&malloc_inside));
	counts("cuLaunchKernel", 2 * ROUNDS);
	counts_between("cuCtxGetCurrent", 2 * ROUNDS, 2 * ROUNDS + 10);
	return 0;
}
