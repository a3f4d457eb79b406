/* The first calls of a process come from eight threads at once: of this one (`start_race first`),
 * or of a child that is forked from one that has started (`start_race forked`).  Or the first calls
 * of eight processes come at once (`start_race processes`), which end when all have made theirs. */
#include "cu.h"

#include <pthread.h>
#include <sys/mman.h>
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

static void run_processes(void)
{
	pthread_barrierattr_t shared;
	pthread_barrier_t *all =
		mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(all, &shared, THREADS);
	for (int i = 0; i < THREADS; i++) {
		if (fork())
			continue;
		pthread_barrier_wait(all);
		cu_start();
		cu_launch(EACH);
		pthread_barrier_wait(all);
		_exit(0);
	}
	for (int status; wait(&status) > 0;)
		printf("child: %x\n", (unsigned)status);
	counts("cuLaunchKernel", THREADS * EACH);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "processes")) {
		run_processes();
		return 0;
	}
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
