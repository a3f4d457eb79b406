/* The same function through every handle that dlsym() takes: what is found without Weir is found
 * with it, what is not is not, and every launch is seen. */
#include "cu.h"

typedef int launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	void *, void **, void **);

static int launches;

static void through(const char *what, void *handle)
{
	launch *f = (launch *)dlsym(handle, "cuLaunchKernel");

	printf("%s: %s", what, f ? "found" : "absent");
	if (f) {
		printf(", %d", f(cu_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		launches++;
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	void *self = dlopen(NULL, RTLD_NOW), *user, *again;

	through("itself, before", self);
	through("default, before", RTLD_DEFAULT);
	cu_start();
	through("the driver", cu_library);
	through("itself, driver local", self);
	through("default, driver local", RTLD_DEFAULT);
	through("next, driver local", RTLD_NEXT);

	again = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
	through("the driver again", again);
	through("itself, driver global", self);
	through("default, driver global", RTLD_DEFAULT);
	through("next, driver global", RTLD_NEXT);

	user = dlopen(argv[argc - 1], RTLD_NOW);
	printf("user: %s\n", user ? "loaded" : dlerror());
	if (user)
		through("a library that does not need it", user);
	printf("versions: %d %d\n", dlvsym(cu_library, "cuInit", "NO_SUCH") != NULL,
		dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5") != NULL);
	printf("%d failed\n", cu_launch(10));
	counts("cuLaunchKernel", launches + 10);
	return 0;
}
