/* Goes to another directory, and to another root where it may, while it is recorded. */
#include "cu.h"

#include <sys/stat.h>
#include <sys/wait.h>

int main(void)
{
	counts_between("cuLaunchKernel", 10010, 20020);
	cu_start();
	cu_launch(10);
	mkdir("inner", 0755);
	printf("chdir %d\n", chdir("inner"));
	printf("%d failed\n", cu_launch(10000));
	if (geteuid() == 0)
		chroot(".");
	printf("chdir %d\n", chdir("/"));
	printf("%d failed\n", cu_launch(10000));
	fflush(stdout);
	if (fork() == 0)
		_exit(cu_launch(10) != 10);
	wait(NULL);
	return 0;
}
