/* The host waits for each short kernel before it launches the next.  The twin waits once. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned grid = problem_multiprocessors();
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	for (int i = 0; i < 2000; i++) {
		problem_compute(compute, grid, 256, 1000, stream);
		if (!fixed)
			CHECK(stream_wait(stream));
	}
	problem_end();
	return 0;
}
