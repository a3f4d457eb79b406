/* The host computes while the device waits for it.  The twin computes while the device does. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned grid = problem_multiprocessors();
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	for (int i = 0; i < 200; i++) {
		problem_compute(compute, grid, 256, 20000, stream);
		if (!fixed)
			CHECK(stream_wait(stream));
		problem_think(300);
		if (fixed)
			CHECK(stream_wait(stream));
	}
	problem_end();
	return 0;
}
