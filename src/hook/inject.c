/*
 * CUDA_INJECTION64_PATH: the driver loads the library that it names, inside cuInit, and calls
 * InitializeInjection().
 */
#include "hook/process.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Preloaded as well, there is nothing to add: calls come through the wrappers already. */
int InitializeInjection(void)
{
	process_start();
	return 1;
}
