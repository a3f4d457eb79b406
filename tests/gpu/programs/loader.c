/* Runs the library of kernels.cu, loaded past every preloaded library: loader deepbind|dlmopen FILE
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	void *library = !strcmp(argv[1], "dlmopen") ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW)
						    : dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
	int (*run)(void) = library ? (int (*)(void))dlsym(library, "run") : NULL;
	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return run();
}
