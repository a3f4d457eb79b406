/* Blocks of 1,024 threads of a kernel with some 40 registers: one fits an SM, and a third of the
 * room for warps is left over.  The twin has blocks of 256. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel("chase_24");
	const unsigned block = fixed ? 256 : 1024,
		       grid = problem_multiprocessors() * 2048 * 6 / block;
	problem_chase(chase, grid, block, 0, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, block, 0, 600);
	problem_end();
	return 0;
}
