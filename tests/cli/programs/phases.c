/*
 * A loop as PyTorch's are: each forward is an NVTX range that asks for kernels, and the host is
 * through with all of them long before the device.  `phases [KERNELS]`: of one forward.
 */
#include "../../hostile/programs/cu.h"
#include "../../hostile/programs/nvtx.h"

enum { WARM = 2, FORWARDS = 20 };

int main(int count, char **arguments)
{
	const int kernels = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 4;

	cu_start();
	nvtx_load();
	for (int i = 0; i < WARM + FORWARDS; i++) {
		NVTX(push, i < WARM ? "warming up" : "forward");
		cu_launch(i < WARM ? 10 * kernels : kernels);
		NVTX(pop);
	}
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	return 0;
}
