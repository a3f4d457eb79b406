/* A thread is cancelled while it waits inside the driver (the mock's hook sleeps there). */
#include "cu.h"

#include <pthread.h>

static atomic_bool inside;

static void sleep_long(void)
{
	atomic_store(&inside, true);
	for (;;)
		usleep(1000);
}

static void *waiter(void *unused)
{
	cu_launch(5);
	cuCtxSynchronize();
	return NULL;
}

int main(void)
{
	void (**hook)(void);

	cu_start();
	hook = dlsym(cu_library, "hostile_hook");
	cu_need(!hook, "hostile_hook");
	*hook = sleep_long;
	for (int i = 0; i < 10; i++) {
		pthread_t thread;
		void *result = NULL;

		atomic_store(&inside, false);
		pthread_create(&thread, NULL, waiter, NULL);
		while (!atomic_load(&inside))
			usleep(100);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("cancelled: %d\n", result == PTHREAD_CANCELED);
		cu_launch(10);
	}
	counts("cuLaunchKernel", 150);
	return 0;
}
