/* A library whose constructor calls the driver before main() and perhaps before Weir is ready. */
#include "../programs/cu.h"

int early_failed(void);

static int failed = -1;

__attribute__((constructor(101))) static void start(void)
{
	cu_start();
	failed = cu_launch(5);
}

__attribute__((destructor(101))) static void stop(void)
{
	cu_launch(5);
}

int early_failed(void)
{
	return failed;
}
