/* So many registers a thread that one block of 512 fills an SM's file.  In the twin two fit. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel(fixed ? "chase_44" : "chase_76");
	const unsigned grid = problem_multiprocessors() * 24;
	problem_chase(chase, grid, 512, 0, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, 512, 0, 600);
	problem_end();
	return 0;
}
