/*
 * Works on batches, as a training or an inference job does: reads a batch, copies it to the GPU,
 * and runs a network of 14 layers on it.  Reading takes about as long as the network.
 *
 *	batches			waits for the network, then reads the next batch
 *	batches --fixed		reads the next batch while the network runs
 */
#include "problems/problem.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 100, LAYERS = 14, READING_US = 4000, BYTES = 1 << 20 };

/* The disk is slow, and the processor has nothing to do. */
static void read_batch(void *batch)
{
	nanosleep(&(struct timespec){ .tv_nsec = READING_US * 1000 }, NULL);
	memset(batch, 1, BYTES);
}

static void run_network(void *layer, unsigned grid, device_pointer input, const void *batch)
{
	CHECK(copy_in(input, batch, BYTES, stream));
	for (int i = 0; i < LAYERS; i++)
		problem_compute(layer, grid, 256, 170, stream);
}

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *layer = problem_kernel("multiply_add"), *batch[2];
	const unsigned grid = 160 * problem_multiprocessors();
	device_pointer input;
	CHECK(alloc(&input, BYTES));
	for (int i = 0; i < 2; i++)
		CHECK(alloc_host(&batch[i], BYTES));
	read_batch(batch[0]);
	for (int i = 0; i < BATCHES; i++) {
		run_network(layer, grid, input, batch[i % 2]);
		if (!fixed)
			CHECK(stream_wait(stream));
		read_batch(batch[(i + 1) % 2]);
		if (fixed)
			CHECK(stream_wait(stream));
	}
	printf("%d batches are done\n", BATCHES);
	return 0;
}
