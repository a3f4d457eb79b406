/* Kernels that take less time than their launch.  The twin launches them as graphs of 100. */
#include "problem.h"

enum { COUNT = 1 << 14, NODES = 100 };

static void *make_graph(void *kernel, device_pointer data)
{
	void *graph, *exec;
	CHECK(capture_begin(stream, 0));
	for (int i = 0; i < NODES; i++)
		problem_pointwise(kernel, data, COUNT);
	CHECK(capture_end(stream, &graph));
	CHECK(graph_instantiate(&exec, graph, 0));
	CHECK(graph_launch(exec, stream));
	return exec;
}

static void run(void *kernel, device_pointer data, void *exec)
{
	if (exec)
		CHECK(graph_launch(exec, stream));
	for (int i = 0; !exec && i < NODES; i++)
		problem_pointwise(kernel, data, COUNT);
}

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	device_pointer data;
	void *scale = problem_kernel("scale"), *exec = NULL;
	CHECK(alloc(&data, COUNT * sizeof(float)));
	problem_pointwise(scale, data, COUNT);
	if (fixed)
		exec = make_graph(scale, data);
	problem_begin();
	for (int i = 0; i < 4000 / NODES; i++)
		run(scale, data, exec);
	problem_end();
	return 0;
}
