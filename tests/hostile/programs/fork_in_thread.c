/* A thread that is not the first one forks; the child asks the driver, which refuses, and leaves.
 */
#include "cu.h"

#include <pthread.h>
#include <sys/wait.h>

static void *forker(void *unused)
{
	int status;
	pid_t child;

	cu_launch(5);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		int version = 0;
		int rc = cuDriverGetVersion(&version);

		printf("child: launch %d, version %d\n", cu_launch_once() != 0, rc);
		fflush(stdout);
		_exit(7);
	}
	waitpid(child, &status, 0);
	printf("child left with %d\n", WEXITSTATUS(status));
	cu_launch(5);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	cu_start();
	cu_launch(10);
	pthread_create(&thread, NULL, forker, NULL);
	pthread_join(thread, NULL);
	cu_launch(10);
	counts("cuLaunchKernel", 31);
	counts("cuDriverGetVersion", 1);
	return 0;
}
