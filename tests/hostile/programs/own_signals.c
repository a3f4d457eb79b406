/* Uses every signal that a tool might want for itself: dispositions and masks are the program's, at
 * the start and after the driver has come. */
#include "cu.h"

#include <signal.h>

static volatile sig_atomic_t got[NSIG];

static void on_signal(int signal)
{
	got[signal]++;
}

static void print_masks(const char *when)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	printf("%s: blocked", when);
	for (int i = 1; i < 65; i++)
		if (sigismember(&mask, i) == 1)
			printf(" %d", i);
	printf("; not default");
	for (int i = 1; i < 65; i++) {
		struct sigaction action;

		if (!sigaction(i, NULL, &action) && action.sa_handler != SIG_DFL)
			printf(" %d", i);
	}
	printf("\n");
}

int main(void)
{
	print_masks("at the start");
	cu_start();
	print_masks("with the driver");
	for (int i = 1; i < 65; i++) {
		if (i == SIGKILL || i == SIGSTOP || i == 32 || i == 33)
			continue;
		signal(i, on_signal);
		cu_launch(2);
		raise(i);
	}
	printf("got");
	for (int i = 1; i < 65; i++)
		printf(" %d", (int)got[i]);
	printf("\n");
	counts("cuLaunchKernel", 2 * 60);
	return 0;
}
