/* Users of the driver that the dynamic linker hides from preloaded libraries: `deep_binding HOW
 * LIBRARY`, the library (libs/user.c) being loaded with RTLD_DEEPBIND or into a namespace of
 * its own. */
#include "cu.h"

int main(int argc, char **argv)
{
	int (*work)(int);
	void *library;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "deepbind"))
		library = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
	else
		library = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
	if (!library) {
		printf("not loaded: %s\n", dlerror());
		return 1;
	}
	*(void **)&work = dlsym(library, "user_work");
	printf("%d failed\n", work(10));
	counts("cuLaunchKernel", 10);
	counts("cuInit", 1);
	return 0;
}
