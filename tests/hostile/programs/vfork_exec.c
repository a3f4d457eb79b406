/* vfork() and exec with an empty environment: the child shares our memory until it is another. */
#include "cu.h"

#include <spawn.h>
#include <sys/wait.h>

static int run(char **environment)
{
	char path[] = "/bin/true", *argv[] = { path, NULL };
	int status = -1;
	pid_t child = vfork();

	if (child == 0) {
		execve(argv[0], argv, environment);
		_exit(127);
	}
	waitpid(child, &status, 0);
	return status;
}

int main(void)
{
	char path[] = "/bin/true", *none[] = { NULL }, *argv[] = { path, NULL };
	int status = -1;
	pid_t child;

	cu_start();
	for (int i = 0; i < 10; i++) {
		cu_launch(10);
		printf("empty environment: %d\n", run(none));
	}
	printf("no environment at all: %d\n", run(NULL));
	if (posix_spawn(&child, argv[0], NULL, NULL, argv, none) == 0)
		waitpid(child, &status, 0);
	printf("spawned: %d\n", status);
	cu_launch(10);
	counts("cuLaunchKernel", 110);
	return 0;
}
