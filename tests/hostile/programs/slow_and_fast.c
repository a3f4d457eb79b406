/* A slow thread and a fast one take turns, so that in a flight recording the fast one overwrites
 * what the slow one still has mapped; then the slow one ends, and the fast one goes on. */
#include "cu.h"

#include <pthread.h>
#include <semaphore.h>

static sem_t go, done;
#define TURNS 30

static void *slow(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		cu_launch(1100);
		sem_post(&done);
		sem_wait(&go);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	cu_start();
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&thread, NULL, slow, NULL);
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&done);
		cu_launch(20000);
		sem_post(&go);
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < TURNS; i++)
		cu_launch(20000);
	printf("both have ended\n");
	return 0;
}
