/* Children are forked while another thread is in the middle of launches; some children launch, and
 * the grandchild too. */
#include "cu.h"

#include <pthread.h>
#include <sys/wait.h>

static atomic_bool done;
static long launched;

static void *launcher(void *unused)
{
	while (!atomic_load(&done) || launched < 2000) {
		cu_launch_once();
		launched++;
	}
	return NULL;
}

static void child(int i)
{
	int version;

	if (i % 2)
		_exit(0);
	for (int k = 0; k < 10; k++)
		cuDriverGetVersion(&version);
	if (i % 4 == 0 && fork() == 0)
		cuDriverGetVersion(&version);
	else if (i % 4 == 0)
		wait(NULL);
	_exit(i);
}

int main(void)
{
	pthread_t thread;
	long sum = 0;

	cu_start();
	pthread_create(&thread, NULL, launcher, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0)
			child(i);
		waitpid(pid, &status, 0);
		sum += status;
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	printf("statuses add up to %ld\n", sum);
	counts("cuLaunchKernel", launched);
	counts("cuDriverGetVersion", 10 * 10 + 5);
	return 0;
}
