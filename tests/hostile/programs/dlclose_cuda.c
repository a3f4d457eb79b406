/*
 * Gives the driver back while addresses of its functions are still about; perhaps loads it again:
 * dlclose_cuda ROUNDS [elsewhere].
 *
 * `elsewhere`: each time where it has not been before, and kernels are launched by the address that
 * cuGetProcAddress gives.
 */
#include "cu.h"

#include <sys/mman.h>

static void launch_by_address(void)
{
	int (*find)(const char *, void **, int, uint64_t, int *) = (int (*)(const char *, void **,
		int, uint64_t, int *))dlsym(cu_library, "cuGetProcAddress_v2");
	void *found = NULL;

	cu_need(!find || find("cuLaunchKernel", &found, 12000, 0, NULL), "cuGetProcAddress_v2");
	*(void **)&cuLaunchKernel = found;
}

/* Nothing comes to lie where the driver was. */
static void occupy(uintptr_t address)
{
	mmap((void *)(address & ~4095ul), 4096, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1;
	const bool elsewhere = argc > 2;
	int failed = 0;

	for (int i = 0; i < rounds; i++) {
		cu_start();
		if (elsewhere)
			launch_by_address();
		const uintptr_t was = (uintptr_t)dlsym(cu_library, "hostile_hook");
		failed += cu_launch(10);
		printf("dlclose %d\n", dlclose(cu_library));
		if (elsewhere)
			occupy(was);
	}
	printf("%d failed\n", failed);
	counts("cuLaunchKernel", 10 * rounds);
	counts("cuInit", rounds);
	return 0;
}
