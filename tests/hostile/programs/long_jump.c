/* Leaves a driver call by longjmp(), from below it and from a signal handler; what comes after is
 * recorded as before.  Needs the mock driver, which calls hostile_hook. */
#include "cu.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;

static void jump(void)
{
	siglongjmp(back, 1);
}

static void on_alarm(int signal)
{
	siglongjmp(back, 2);
}

static void wait_for_alarm(void)
{
	for (;;)
		pause();
}

static void set_hook(void (*hook)(void))
{
	void (**place)(void) = dlsym(cu_library, "hostile_hook");

	cu_need(!place, "hostile_hook");
	*place = hook;
}

int main(void)
{
	volatile int jumps = 0, failed = 0;

	cu_start();
	signal(SIGALRM, on_alarm);
	for (volatile int i = 0; i < 50; i++) {
		set_hook(i % 10 ? jump : wait_for_alarm);
		if (sigsetjmp(back, 1)) {
			jumps++;
		} else {
			if (i % 10 == 0)
				ualarm(2000, 0);
			cuCtxSynchronize();
		}
		failed += cu_launch(10);
	}
	set_hook(NULL);
	failed += cuCtxSynchronize();
	failed += cu_launch(5000);
	printf("%d jumps, %d failed\n", jumps, failed);
	counts("cuLaunchKernel", 5500);
	counts_between("cuCtxSynchronize", 1, 51);
	return 0;
}
