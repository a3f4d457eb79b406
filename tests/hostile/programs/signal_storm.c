/* A timer's handler launches kernels in the middle of everything: on the thread's stack, on a small
 * one of its own (`stack`), or in the middle of itself (`nested`).  Needs a driver that may be
 * called from a handler: the mock. */
#include "cu.h"

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t handled;
static atomic_long failed;

static void handler(int signal)
{
	int saved = errno;

	failed += cu_launch_once() != 0;
	handled++;
	errno = saved;
}

int main(int argc, char **argv)
{
	static char stack[16384];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_handler = handler };
	struct itimerval fast = { { 0, 100 }, { 0, 100 } }, off = { { 0, 0 }, { 0, 0 } };
	long launched = 0;

	if (argc > 1 && !strcmp(argv[1], "stack")) {
		sigaltstack(&alternate, NULL);
		action.sa_flags = SA_ONSTACK;
	}
	if (argc > 1 && !strcmp(argv[1], "nested"))
		action.sa_flags = SA_NODEFER;
	cu_start();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &fast, NULL);
	while (handled < 1500) {
		failed += cu_launch(100);
		launched += 100;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	printf("%ld failed\n", atomic_load(&failed));
	counts("cuLaunchKernel", launched + handled);
	return 0;
}
