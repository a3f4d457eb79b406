/*
 * Writes a trace as torch.profiler leaves it, with invented numbers: modules of operators, each
 * with calls and kernels, several threads and devices.  The same arguments give the same bytes.
 *
 *	gen-kineto [-n EVENTS] [-t THREADS] [-d DEVICES] > FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"

#define PID 4242

struct generator {
	uint64_t left; /* events still to write */
	uint64_t random;
	uint64_t correlation, external;
	uint64_t total_ns; /* of kernels */
	unsigned devices;
};

static uint64_t draw(struct generator *g, uint64_t below)
{
	return hash_mix(g->random += 0x9e3779b97f4a7c15u) % below;
}

static void begin(struct generator *g, const char *cat, const char *name, uint64_t pid,
	uint64_t tid, uint64_t ns, uint64_t dur)
{
	printf(",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %" PRIu64
	       ", \"tid\": %" PRIu64 ", \"ts\": %" PRIu64 ".%03" PRIu64 ", \"dur\": %" PRIu64
	       ".%03" PRIu64 ", \"args\": {",
		cat, name, pid, tid, ns / 1000, ns % 1000, dur / 1000, dur % 1000);
	if (g->left)
		g->left--;
}

static void op(struct generator *g, const char *name, unsigned thread, uint64_t ns, uint64_t dur)
{
	const unsigned shape = 64u << draw(g, 5);
	const uint64_t id = ++g->external;
	begin(g, "cpu_op", name, PID, PID + thread, ns, dur);
	printf("\"External id\": %" PRIu64 ", \"Record function id\": 0, \"Concrete Inputs\": "
	       "[\"\", \"\"], \"Input type\": [\"c10::Half\", \"c10::Half\"], \"Input Dims\": "
	       "[[8, %u], [%u, 768]], \"Ev Idx\": %" PRIu64 "}}",
		id, shape, shape, id);
}

static void launch(struct generator *g, unsigned thread, uint64_t ns, unsigned kernel)
{
	const uint64_t dur = 2000 + kernel * 500 + draw(g, 1500);
	const unsigned device = thread % g->devices;
	char name[160];
	g->correlation++;
	g->total_ns += dur;
	snprintf(name, sizeof name,
		"void at::native::vectorized_elementwise_kernel<%u, at::native::CUDAFunctor_add"
		"<c10::Half>, std::array<char*, 3ul> >(int, at::native::Functor%u)",
		kernel % 8, kernel);
	begin(g, "kernel", name, device, 7 + thread, ns + 9000, dur);
	printf("\"External id\": %" PRIu64 ", \"queued\": 0, \"device\": %u, \"context\": 1, "
	       "\"stream\": %u, \"correlation\": %" PRIu64 ", \"registers per thread\": 32, "
	       "\"shared memory\": 0, \"blocks per SM\": 7.757576, \"warps per SM\": 62.060608, "
	       "\"grid\": [%u, 1, 1], \"block\": [256, 1, 1], \"est. achieved occupancy %%\": "
	       "97}}",
		g->external, device, 7 + thread, g->correlation, 128 << kernel % 4);
	begin(g, "cuda_runtime", "cudaLaunchKernel", PID, PID + thread, ns, 3800 + draw(g, 900));
	printf("\"External id\": %" PRIu64 ", \"cbid\": 211, \"correlation\": %" PRIu64 "}}",
		g->external, g->correlation);
}

/* Two operators around an inner one that launches: five events. */
static void module(struct generator *g, unsigned thread, uint64_t ns)
{
	static const char *const names[] = { "addmm", "gelu", "layer_norm", "softmax", "add",
		"copy_", "cat", "mul" };
	char outer[64], inner[64];
	const unsigned i = (unsigned)draw(g, 64);
	snprintf(outer, sizeof outer, "aten::%s%u", names[i % 8], i / 8);
	snprintf(inner, sizeof inner, "aten::_%s%u", names[i % 8], i / 8);
	op(g, outer, thread, ns, 18000);
	op(g, "aten::empty", thread, ns + 500, 900);
	op(g, inner, thread, ns + 2000, 14000);
	launch(g, thread, ns + 4000, i);
}

int main(int argc, char **argv)
{
	struct generator g = { .left = 1000000, .random = 1, .devices = 1 };
	unsigned threads = 1;
	int c;
	while ((c = getopt(argc, argv, "n:t:d:")) != -1) {
		if (c == 'n')
			g.left = strtoull(optarg, NULL, 10);
		else if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			g.devices = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (!threads || !g.devices)
		return 2;
	printf("{\"schemaVersion\": 1, \"baseTimeNanoseconds\": 1700000000000000000, "
	       "\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, "
	       "\"tid\": 0, \"args\": {\"name\": \"python3\"}}",
		PID);
	for (uint64_t step = 0; g.left; step++)
		for (unsigned t = 0; t < threads && g.left; t++)
			module(&g, t, 1000000000000 + step * 20000 + t * 100);
	printf("\n], \"traceName\": \"generated\"}\n");
	fprintf(stderr, "%" PRIu64 " kernels, %" PRIu64 " ns\n", g.correlation, g.total_ns);
	return 0;
}
