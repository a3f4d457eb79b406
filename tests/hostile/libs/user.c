/* A library that uses the driver by dlopen() and dlsym(), as cudart does. */
#include "../programs/cu.h"

int user_work(int n);

int user_work(int n)
{
	cu_start();
	return cu_launch(n);
}
