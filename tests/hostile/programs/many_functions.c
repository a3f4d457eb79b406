/* More functions than the hook has room for, and then one of the last again and again. */
#include "cu.h"

#define PARAMS 64
#define LOADED 9000
#define AGAIN  5000

static const char *image(void)
{
	static char ptx[4096];
	size_t n = (size_t)snprintf(ptx, sizeof ptx,
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry f(");

	for (int i = 0; i < PARAMS; i++)
		n += (size_t)snprintf(
			ptx + n, sizeof ptx - n, "%s.param .u64 p%d", i ? "," : "", i);
	snprintf(ptx + n, sizeof ptx - n, ")\n{\n\tret;\n}\n");
	return ptx;
}

int main(void)
{
	uint64_t value = 1;
	void *params[PARAMS], *module, *function = NULL;
	long failed = 0;

	for (int i = 0; i < PARAMS; i++)
		params[i] = &value;
	cu_start();
	for (int i = 0; i < LOADED + AGAIN; i++) {
		if (i < LOADED) {
			cu_need(cuModuleLoadData(&module, image()), "cuModuleLoadData");
			cu_need(cuModuleGetFunction(&function, module, "f"), "cuModuleGetFunction");
		}
		failed += cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) != 0;
	}
	printf("%ld failed\n", failed);
	counts("cuLaunchKernel", LOADED + AGAIN);
	return 0;
}
