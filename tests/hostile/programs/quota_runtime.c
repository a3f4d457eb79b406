/* A program on the CUDA runtime under a quota of 256 MiB.  Built twice, with the shared runtime and
 * with the static one. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemGetInfo(size_t *left, size_t *all);
int cudaGetDeviceProperties(void *properties, int device);
int cudaGetLastError(void);

enum { TOTAL = 288 }; /* where the properties have totalGlobalMem */

int main(void)
{
	static char properties[4096];
	size_t left = 0, all = 0, total = 0;
	void *p = NULL, *q = NULL;
	const size_t mib = 1 << 20;
	printf("cudaMalloc: %d\n", cudaMalloc(&p, 128 * mib));
	printf("too much: %d\n", cudaMalloc(&q, 192 * mib));
	printf("which is the last error: %d\n", cudaGetLastError());
	printf("once: %d\n", cudaGetLastError());
	printf("cudaMemGetInfo: %d\n", cudaMemGetInfo(&left, &all));
	printf("%zu of %zu MiB left\n", left / mib, all / mib);
	printf("cudaFree: %d\n", cudaFree(p));
	printf("and now: %d\n", cudaMalloc(&q, 192 * mib));
	printf("cudaGetDeviceProperties: %d\n", cudaGetDeviceProperties(properties, 0));
	memcpy(&total, properties + TOTAL, sizeof total);
	printf("%zu MiB in all\n", total / mib);
	return 0;
}
