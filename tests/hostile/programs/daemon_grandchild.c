/* A grandchild that has left the session goes on after everybody else has gone. */
#include "cu.h"

#include <sys/wait.h>

static void grandchild(void)
{
	usleep(200000);
	cu_start();
	cu_launch(50);
	close(open("finished", O_WRONLY | O_CREAT, 0644));
	_exit(0);
}

int main(void)
{
	counts_between("cuInit", 0, 1);
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			close(0);
			close(1);
			close(2);
			grandchild();
		}
		_exit(0);
	}
	wait(NULL);
	puts("the parent leaves");
	return 0;
}
