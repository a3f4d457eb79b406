/* Eight kernels one after the other, each one operation on the same numbers.  The twin does all
 * eight in one kernel. */
#include "problem.h"

enum { COUNT = 8 << 20 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	static const char *const names[] = { "scale", "add", "square", "negate", "halve", "shift",
		"clamp", "mix" };
	void *kernels[8];
	device_pointer data;
	for (int k = 0; k < 8; k++)
		kernels[k] = problem_kernel(fixed ? "all_eight" : names[k]);
	CHECK(alloc(&data, COUNT * sizeof(float)));
	for (int k = 0; k < 8; k++)
		problem_pointwise(kernels[k], data, COUNT);
	problem_begin();
	for (int i = 0; i < 400; i++)
		for (int k = 0; k < (fixed ? 1 : 8); k++)
			problem_pointwise(kernels[k], data, COUNT);
	problem_end();
	return 0;
}
