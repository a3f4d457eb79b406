/* Children that no handler of a fork hears of: `bare_clone clone` by the system call, `bare_clone
 * fork` by _Fork().  Parent and children go on with CUDA; each call is its own caller's. */
#include "cu.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern int _Fork(void) __attribute__((weak));

#define CHILDREN 10
#define EACH     300

static pid_t make_child(bool by_clone)
{
	return by_clone ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : _Fork();
}

static void allocate_and_launch(int n)
{
	uint64_t p = 0;
	for (int i = 0; i < n; i++) {
		cuMemAlloc_v2(&p, 4096);
		cuMemFree_v2(p);
		cu_launch_once();
	}
}

int main(int argc, char **argv)
{
	const bool by_clone = argc > 1 && !strcmp(argv[1], "clone");
	if (!by_clone && !_Fork)
		return 77;
	cu_start();
	for (int i = 0; i < CHILDREN; i++) {
		int status = -1;
		const pid_t child = make_child(by_clone);
		if (!child) {
			allocate_and_launch(EACH);
			_exit(0);
		}
		waitpid(child, &status, 0);
		printf("child %d: %x\n", i, (unsigned)status);
		allocate_and_launch(7);
	}
	counts("cuLaunchKernel", CHILDREN * (EACH + 7));
	counts("cuMemAlloc_v2", CHILDREN * (EACH + 7));
	counts("cuMemFree_v2", CHILDREN * (EACH + 7));
	return 0;
}
