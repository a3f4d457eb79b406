/* NULL where an address is expected, and results that the driver does not write when it fails. */
#include "cu.h"

int main(void)
{
	size_t free_bytes = 0, total = 0;
	uint64_t address = 0x1234;
	void *pointer = (void *)0x77;

	cu_start();
	printf("info %d\n", cuMemGetInfo_v2(&free_bytes, &total));
	printf("one NULL: %d\n", cuMemGetInfo_v2(NULL, &total));
	printf("the other: %d\n", cuMemGetInfo_v2(&free_bytes, NULL));
	printf("both: %d\n", cuMemGetInfo_v2(NULL, NULL));
	printf("alloc nothing: %d", cuMemAlloc_v2(&address, 0));
	printf(" leaves %#lx\n", (unsigned long)address);
	printf("alloc too much: %d", cuMemAlloc_v2(&address, (size_t)1 << 60));
	printf(" leaves %#lx\n", (unsigned long)address);
	printf("alloc nowhere: %d\n", cuMemAlloc_v2(NULL, 64));
	printf("free of nothing: %d\n", cuMemFree_v2(0));
	printf("no function: %d", cuModuleGetFunction(&pointer, NULL, "x"));
	printf(" leaves %p\n", pointer);
	printf("no name: %d\n", cuModuleGetFunction(&pointer, NULL, NULL));
	printf("no image: %d\n", cuModuleLoadData(&pointer, NULL));
	printf("nowhere to: %d\n", cuModuleLoadData(NULL, cu_image));
	printf("no kernel: %d\n", cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	printf("empty grid: %d\n",
		cuLaunchKernel(cu_kernel, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	counts("cuMemGetInfo_v2", 4);
	counts("cuMemAlloc_v2", 3);
	counts("cuLaunchKernel", 2);
	return 0;
}
