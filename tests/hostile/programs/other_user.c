/* Gives up root's rights while it is recorded: what the new user may not write is lost, and
 * counted, and nothing else changes. */
#include "cu.h"

#include <sys/prctl.h>

int main(void)
{
	if (getuid() != 0) {
		puts("only root has rights to give up");
		return 77;
	}
	counts_between("cuLaunchKernel", 10, 20010);
	cu_start();
	cu_launch(10);
	printf("setgid %d", setgid(65534));
	printf(", setuid %d\n", setuid(65534));
	printf("%d failed\n", cu_launch(20000));
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	return 0;
}
