/* Blocks of 33 threads: two warps, of which the second has one thread.  The twin does the same in
 * blocks of 256. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned block = fixed ? 256 : 33,
		       grid = problem_multiprocessors() * 8 * 33 * 256 / block;
	problem_compute(compute, grid, block, 10, stream);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_compute(compute, grid, block, 250, stream);
	problem_end();
	return 0;
}
