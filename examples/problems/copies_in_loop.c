/* The same input is copied to the device in every iteration.  The twin copies it once. */
#include "problem.h"

#include <string.h>

enum { BYTES = 16 << 20 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add"), *host;
	const unsigned grid = problem_multiprocessors();
	device_pointer data;
	CHECK(alloc(&data, BYTES));
	CHECK(alloc_host(&host, BYTES));
	memset(host, 1, BYTES);
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	CHECK(copy_in(data, host, BYTES, stream));
	for (int i = 0; i < 200; i++) {
		if (!fixed)
			CHECK(copy_in(data, host, BYTES, stream));
		problem_compute(compute, grid, 256, 10000, stream);
	}
	problem_end();
	return 0;
}
