/* Weak references to the driver and the runtime in a program that has neither: what a program that
 * tests for CUDA in this way concludes must stay what it was. */
#include <stddef.h>
#include <stdio.h>

extern int cuInit(unsigned flags) __attribute__((weak));
extern int cuDeviceGetCount(int *count) __attribute__((weak));
extern int cudaGetDeviceCount(int *count) __attribute__((weak));

int main(void)
{
	int count = 0;

	printf("driver: %s\n", cuInit && cuInit(0) == 0 ? "usable" : "not usable");
	printf("devices: %s\n",
		cuDeviceGetCount && cuDeviceGetCount(&count) == 0 ? "some" : "none");
	printf("runtime: %s\n",
		cudaGetDeviceCount && cudaGetDeviceCount(&count) == 0 ? "usable" : "not usable");
	printf("count %d\n", count);
	return 0;
}
