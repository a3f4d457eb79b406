/* Every odd question that one can put to cuGetProcAddress() and dlsym(). */
#include "cu.h"

#include <link.h>

typedef int (*lookup_v1)(const char *, void **, int, uint64_t);
typedef int (*lookup_v2)(const char *, void **, int, uint64_t, int *);

static lookup_v1 ask_v1;
static lookup_v2 ask_v2;

static void ask(const char *name, int version, uint64_t flags)
{
	void *pointer = (void *)0x55;
	int status = -7, code;

	code = ask_v2(name, &pointer, version, flags, &status);
	printf("'%s' %d %d: %d, status %d, %s\n", name, version, (int)flags, code, status,
		!pointer                  ? "NULL"
		: pointer == (void *)0x55 ? "unwritten"
					  : "an address");
	pointer = (void *)0x55;
	code = ask_v2(name, &pointer, version, flags, NULL);
	printf("  without status: %d, %d\n", code, pointer != NULL);
	pointer = (void *)0x55;
	if (ask_v1) {
		code = ask_v1(name, &pointer, version, flags);
		printf("  version 1: %d, %d\n", code, pointer != NULL);
	}
}

/* The functions found in a chain, each through the one before, still are Weir's. */
static void chain(void)
{
	lookup_v2 next = ask_v2;
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		void *, void **, void **) = NULL;
	int status;

	for (int i = 0; i < 3; i++)
		cu_need(next("cuGetProcAddress", (void **)&next, 12000, 0, &status), "chain");
	cu_need(next("cuLaunchKernel", (void **)&launch, 12000, 0, &status), "cuLaunchKernel");
	printf("through the chain: %d\n",
		launch(cu_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	if (next("cuLaunchKernel", (void **)&launch, 12000, 2, &status) == 0)
		printf("per-thread stream: %d\n",
			launch(cu_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static const char *library_of(const void *address)
{
	Dl_info info;
	const char *slash;

	if (!address || !dladdr(address, &info))
		return "nowhere";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

int main(void)
{
	static const char *const strangers[] = { "cudnnCreate", "curl_easy_init", "cufftExecC2C",
		"cublasCreate_v2", "cuserid", "cu", "cuda", "", "cuNoSuchThing" };

	cu_start();
	*(void **)&ask_v2 = dlsym(cu_library, "cuGetProcAddress_v2");
	*(void **)&ask_v1 = dlsym(cu_library, "cuGetProcAddress");
	cu_need(!ask_v2, "cuGetProcAddress_v2");
	ask("", 0, 0);
	ask("", 12000, 0);
	ask("cuInit", 0, 0);
	ask("cuInit", 2000, 0);
	ask("cuLaunchKernel", 3000, 0);
	ask("cuLaunchKernel", 4000, 0);
	ask("cuLaunchKernel", 7000, 2);
	ask("cuMemAlloc", 2000, 0);
	ask("cuMemAlloc", 99000, 0);
	ask("cuMemAlloc_v2", 12000, 0);
	ask("cuNoSuchThing", 12000, 0);
	ask("cudaMalloc", 12000, 0);
	chain();
	for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
		printf("%s: %s, in the driver: %s\n", strangers[i],
			library_of(dlsym(RTLD_DEFAULT, strangers[i])),
			library_of(dlsym(cu_library, strangers[i])));
		dlerror();
	}
	printf("%d failed\n", cu_launch(10));
	counts_between("cuInit", 1, 1);
	return 0;
}
