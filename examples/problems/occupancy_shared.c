/* 160 KiB of shared memory a block: one fits an SM.  In the twin it is 104 KiB, and two fit. */
#include "problem.h"

enum { ATTRIBUTE_DYNAMIC_BYTES = 8 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel("chase");
	const unsigned grid = problem_multiprocessors() * 24, bytes = (fixed ? 104u : 160u) << 10;
	CHECK(set_function(chase, ATTRIBUTE_DYNAMIC_BYTES, (int)bytes));
	problem_chase(chase, grid, 512, bytes, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, 512, bytes, 600);
	problem_end();
	return 0;
}
