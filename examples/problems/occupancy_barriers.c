/* A barrier whose number is in a register: the block is given all sixteen, and four blocks fit an
 * SM. The twin's number is a constant. */
#include "problem.h"

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *chase = problem_kernel(fixed ? "chase_constant" : "chase_register");
	const unsigned grid = problem_multiprocessors() * 16 * 6;
	problem_resident(chase, 128, 0);
	problem_chase(chase, grid, 128, 0, 10);
	problem_begin();
	for (int i = 0; i < 40; i++)
		problem_chase(chase, grid, 128, 0, 600);
	problem_end();
	return 0;
}
