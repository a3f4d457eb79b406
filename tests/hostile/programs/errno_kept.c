/* errno is what the program set, through calls, chunk changes and lookups. */
#include "cu.h"

int main(void)
{
	int changed = 0, version;
	void *found;

	cu_start();
	for (int i = 0; i < 30000; i++) {
		errno = 1000 + i % 7;
		cu_launch_once();
		changed += errno != 1000 + i % 7;
	}
	printf("changed by launches: %d\n", changed);
	errno = 4711;
	cuDriverGetVersion(&version);
	printf("after a query: %d\n", errno);
	errno = 4712;
	cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	printf("after a failure: %d\n", errno);
	errno = 4713;
	found = dlsym(cu_library, "cuMemcpy");
	printf("after dlsym: %d %d\n", errno, found != NULL);
	found = dlsym(cu_library, "cuNoSuchThing");
	printf("after a vain dlsym: %d", found != NULL);
	printf(", %s", dlerror() ? "a reason" : "silence");
	printf(", then %s\n", dlerror() ? "a reason" : "silence");
	counts("cuLaunchKernel", 30001);
	return 0;
}
