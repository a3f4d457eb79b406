/* Launches until it is killed, in several threads, and keeps the number of launches that have
 * returned in the file `finished`, which outlives it. */
#include "cu.h"

#include <pthread.h>
#include <sys/mman.h>

static atomic_long *finished;

static void *work(void *unused)
{
	cuCtxSetCurrent(cu_context);
	for (;;) {
		cu_launch_once();
		atomic_fetch_add(finished, 1);
	}
	return NULL;
}

int main(void)
{
	int fd = open("finished", O_RDWR | O_CREAT | O_TRUNC, 0644);
	pthread_t thread;

	cu_need(ftruncate(fd, 4096), "finished");
	finished = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cu_need(finished == MAP_FAILED, "finished");
	cu_start();
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, work, NULL);
	work(NULL);
	return 0;
}
