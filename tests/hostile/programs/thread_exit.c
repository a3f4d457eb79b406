/* Threads that end in the middle of a call (cancelled), by pthread_exit(), and whose key
 * destructors still call the driver. */
#include "cu.h"

#include <pthread.h>

static pthread_key_t key;
static atomic_int destructed;

static void destructor(void *rounds)
{
	cu_launch(3);
	atomic_fetch_add(&destructed, 1);
	if ((intptr_t)rounds > 1) /* again, after the other keys */
		pthread_setspecific(key, (void *)((intptr_t)rounds - 1));
}

static void *leaves(void *unused)
{
	pthread_setspecific(key, (void *)3);
	cuCtxSetCurrent(cu_context);
	cu_launch(5);
	pthread_exit(NULL);
}

static void *cancelled(void *started)
{
	cuCtxSetCurrent(cu_context);
	cu_launch(5);
	atomic_store((atomic_bool *)started, true);
	for (;;) {
		pthread_testcancel();
		usleep(100);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	cu_start();
	pthread_key_create(&key, destructor);
	for (int i = 0; i < 10; i++) {
		atomic_bool started = false;

		pthread_create(&thread, NULL, leaves, NULL);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, cancelled, &started);
		while (!atomic_load(&started))
			usleep(100);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	printf("%d destructors ran\n", atomic_load(&destructed));
	counts("cuLaunchKernel", 10 * (5 + 3 * 3 + 5));
	return 0;
}
