/* Every other of many small blocks is freed: half of the memory is free, in pieces that fit nothing
 * larger.  The twin frees the same number, one after the other. */
#include "problem.h"

enum { BLOCKS = 2048, BYTES = 64 << 10 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	static device_pointer blocks[BLOCKS];
	void *compute = problem_kernel("multiply_add");
	const unsigned grid = problem_multiprocessors();
	device_pointer large;
	for (int i = 0; i < BLOCKS; i++)
		CHECK(alloc(&blocks[i], BYTES));
	for (int i = 0; i < BLOCKS / 2; i++)
		CHECK(release(blocks[fixed ? i : 2 * i]));
	CHECK(alloc(&large, (size_t)BYTES * BLOCKS));
	problem_begin();
	for (int i = 0; i < 100; i++)
		problem_compute(compute, grid, 256, 20000, stream);
	problem_end();
	for (int i = 0; i < BLOCKS / 2; i++)
		CHECK(release(blocks[fixed ? BLOCKS / 2 + i : 2 * i + 1]));
	CHECK(release(large));
	return 0;
}
