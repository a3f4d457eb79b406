/* Driver calls from destructors: of the program, of a library linked to it that is finished
 * after Weir (libs/late.c, preloaded before it too), and from atexit() registered first. */
#include "cu.h"

void late_set(void (*call)(void)) __attribute__((weak));

static void call(void)
{
	cu_launch(5);
}

__attribute__((destructor)) static void at_the_end(void)
{
	call();
}

int main(void)
{
	cu_start();
	if (late_set)
		late_set(call);
	printf("late library: %s\n", late_set ? "there" : "absent");
	counts("cuLaunchKernel", late_set ? 10 : 5);
	return 0;
}
