/* Clears its environment before it first calls the driver, and writes over its arguments. */
#include "cu.h"

int main(int argc, char **argv)
{
	clearenv();
	for (int i = 0; i < argc; i++)
		memset(argv[i], 'x', strlen(argv[i]));
	cu_start();
	printf("%d failed\n", cu_launch(10));
	counts("cuLaunchKernel", 10);
	return 0;
}
