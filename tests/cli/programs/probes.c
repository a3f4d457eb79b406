/* Asks the driver for what it does not have, as libraries do; with an argument it really fails. */
#include "../../hostile/programs/cu.h"

int main(int argc, char **argv)
{
	uint64_t pointer;
	void *module, *function;
	(void)argv;
	cu_start();
	cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
	for (int i = 0; i < 20; i++)
		if (!cuModuleGetFunction(&function, module, "nowhere"))
			return 1;
	return argc > 1 && !cuMemAlloc_v2(&pointer, (size_t)1 << 50);
}
