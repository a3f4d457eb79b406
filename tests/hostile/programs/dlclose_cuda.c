/* Gives the driver back while addresses of its functions are still about; perhaps loads it again.
 */
#include "cu.h"

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < rounds; i++) {
		cu_start();
		cu_launch(10);
		printf("dlclose %d\n", dlclose(cu_library));
	}
	counts("cuLaunchKernel", 10 * rounds);
	counts("cuInit", rounds);
	return 0;
}
