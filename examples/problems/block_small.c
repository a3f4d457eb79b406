/* Blocks of one warp: an SM holds 32 blocks at most, so half of its warps stay empty.  The twin has
 * blocks of eight. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel("chase");
	const unsigned block = fixed ? 256 : 32,
		       grid = problem_multiprocessors() * 2048 * 4 / block;
	problem_chase(chase, grid, block, 0, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, block, 0, 600);
	problem_end();
	return 0;
}
