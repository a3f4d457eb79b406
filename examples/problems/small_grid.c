/* Sixteen blocks on a device with many more multiprocessors.  The twin cuts the same work into a
 * block for each. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add");
	const unsigned sms = problem_multiprocessors(), grid = fixed ? sms : 16;
	const unsigned rounds = fixed ? 20000 * 16 / sms : 20000;
	problem_compute(compute, grid, 256, 10, stream);
	problem_begin();
	for (int i = 0; i < 100; i++)
		problem_compute(compute, grid, 256, rounds, stream);
	problem_end();
	return 0;
}
