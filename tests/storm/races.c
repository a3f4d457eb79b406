/* Two threads write to one variable: what threads.sh must find. */
#include "../hostile/programs/cu.h"

#include <pthread.h>

static int written;

static void *writes(void *unused)
{
	cu_launch_once();
	written++;
	return NULL;
}

int main(void)
{
	pthread_t other;
	cu_start();
	cu_need(pthread_create(&other, NULL, writes, NULL), "pthread_create");
	writes(NULL);
	pthread_join(other, NULL);
	return written != 2;
}
