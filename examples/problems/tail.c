/* One block more than the device holds at a time: it runs alone, as long as all others together.
 * The twin has as many blocks as fit. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel("chase");
	const unsigned grid = problem_resident(chase, 256, 0) + (fixed ? 0 : 1);
	problem_chase(chase, grid, 256, 0, 10);
	problem_begin();
	for (int i = 0; i < 100; i++)
		problem_chase(chase, grid, 256, 0, 1500);
	problem_end();
	return 0;
}
