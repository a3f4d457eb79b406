/* The functions that RTLD_NEXT and RTLD_DEFAULT find, seen from the program and from a preloaded
 * library (libs/next.c), with other libraries that wrap dlsym() before and behind Weir. */
#include "cu.h"

#include <link.h>

const char *next_describe(const char *symbol) __attribute__((weak));

static const char *where(const void *address)
{
	Dl_info info;

	if (!address)
		return "nowhere";
	if (!dladdr(address, &info))
		return "unknown";
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

int main(void)
{
	static const char *const names[] = { "getppid", "puts", "malloc", "dlopen", "no_such_thing",
		"cuInit" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		printf("%s: next in %s, default in %s\n", names[i],
			where(dlsym(RTLD_NEXT, names[i])), where(dlsym(RTLD_DEFAULT, names[i])));
		printf("%s: from the library: %s\n", names[i],
			next_describe ? next_describe(names[i]) : "not asked");
	}
	printf("getppid works: %d\n", getppid() > 0);
	cu_start();
	printf("%d failed\n", cu_launch(10));
	counts("cuLaunchKernel", 10);
	return 0;
}
