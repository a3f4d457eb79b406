/*
 * A child that leaves by exit(), as its parent will: handlers that were registered before the fork
 * run in both.  The parent's own words at its end the child must not say for it.
 */
#include "cu.h"

#include <sys/wait.h>

int main(void)
{
	int status;

	setvbuf(stdout, NULL, _IONBF, 0);
	cu_start();
	cu_launch(100);
	cuCtxSynchronize();
	for (int i = 0; i < 3; i++) {
		const pid_t child = fork();
		if (!child)
			exit(7);
		waitpid(child, &status, 0);
		printf("child left with %d\n", WEXITSTATUS(status));
	}
	cu_launch(10);
	cuCtxSynchronize();
	counts("cuLaunchKernel", 110);
	return 0;
}
