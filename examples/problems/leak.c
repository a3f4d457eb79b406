/* Each iteration allocates a little that nobody frees.  The twin uses one block for all. */
#include "problem.h"

enum { BYTES = 1 << 20 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned grid = problem_multiprocessors();
	device_pointer data;
	CHECK(alloc(&data, BYTES));
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	for (int i = 0; i < 200; i++) {
		if (!fixed)
			CHECK(alloc(&data, BYTES));
		problem_compute(compute, grid, 256, 20000, stream);
	}
	problem_end();
	if (fixed)
		CHECK(release(data));
	return 0;
}
