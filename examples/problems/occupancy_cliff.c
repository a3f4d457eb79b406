/* 114 KiB of shared memory a block, two of which just do not fit an SM of 228 KiB, since each block
 * takes 1 KiB more.  The twin has 112 KiB. */
#include "problem.h"

enum { ATTRIBUTE_DYNAMIC_BYTES = 8 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel("chase");
	const unsigned grid = problem_multiprocessors() * 24, bytes = (fixed ? 112u : 114u) << 10;
	CHECK(set_function(chase, ATTRIBUTE_DYNAMIC_BYTES, (int)bytes));
	problem_chase(chase, grid, 512, bytes, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, 512, bytes, 600);
	problem_end();
	return 0;
}
