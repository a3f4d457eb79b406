/* The first calls of a process come from eight threads at once: of this one (`start_race first`),
 * or of a child that is forked from one that has started (`start_race forked`). */
#include "cu.h"

#include <pthread.h>
#include <sys/wait.h>

#define THREADS 8
#define EACH    2000

static pthread_barrier_t together;

static void *launch(void *unused)
{
	pthread_barrier_wait(&together);
	cu_launch(EACH);
	return NULL;
}

static void *initialise(void *unused)
{
	pthread_barrier_wait(&together);
	for (int i = 0; i < EACH; i++)
		cuInit(0);
	return NULL;
}

static void run(void *(*work)(void *))
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "first")) {
		cu_open();
		run(initialise);
		counts("cuInit", THREADS * EACH);
		return 0;
	}
	cu_start();
	for (int i = 0; i < 5; i++) {
		int status = -1;
		const pid_t child = fork();
		if (!child) {
			run(launch);
			_exit(0);
		}
		waitpid(child, &status, 0);
		printf("child: %x\n", (unsigned)status);
	}
	counts("cuLaunchKernel", 5 * THREADS * EACH);
	return 0;
}
