/* Memory is allocated and freed in every iteration, and freeing waits for the device.  The twin
 * does it once. */
#include "problem.h"

enum { BYTES = 64 << 20 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned grid = problem_multiprocessors();
	device_pointer data;
	CHECK(alloc(&data, BYTES));
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	for (int i = 0; i < 400; i++) {
		if (!fixed)
			CHECK(alloc(&data, BYTES));
		problem_compute(compute, grid, 256, 3000, stream);
		if (!fixed)
			CHECK(release(data));
	}
	problem_end();
	return 0;
}
