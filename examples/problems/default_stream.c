/* Four streams that could run beside each other, and a small kernel on the default stream between:
 * it waits for all of them, and they for it.  The twin's streams do not wait for the default
 * stream. */
#include "problem.h"

enum { STREAMS = 4 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *compute = problem_kernel("multiply_add"), *streams[STREAMS];
	for (int i = 0; i < STREAMS; i++)
		CHECK(stream_create(&streams[i], fixed ? STREAM_NON_BLOCKING : 0));
	const unsigned grid = problem_multiprocessors();
	problem_compute(compute, grid, 128, 10, NULL);
	problem_begin();
	for (int i = 0; i < 400; i++) {
		problem_compute(compute, grid, 128, 3000, streams[i % STREAMS]);
		problem_compute(compute, 1, 32, 10, NULL);
	}
	problem_end();
	return 0;
}
