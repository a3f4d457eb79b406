/*
 * Programs of several shapes, whose kernels last as many microseconds as their first parameter
 * says (WEIR_SIM=kernel=NAME:0:1us), for comparing a reconstructed timeline with the one that ran.
 *
 *	timeline one | streams | crowd | legacy | graph | gaps | copies | noise | syncs
 */
#include "../../hostile/programs/cu.h"

#include <time.h>

#define MORE_FUNCTIONS(X)                                                                          \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuStreamWaitEvent, (void *, void *, unsigned))                                           \
	X(cuEventCreate, (void **, unsigned))                                                      \
	X(cuEventRecord, (void *, void *))                                                         \
	X(cuEventSynchronize, (void *))                                                            \
	X(cuMemAllocHost_v2, (void **, size_t))                                                    \
	X(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                          \
	X(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                                \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                             \
	X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                              \
	X(cuStreamBeginCapture_v2, (void *, int))                                                  \
	X(cuStreamEndCapture, (void *, void **))                                                   \
	X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                      \
	X(cuGraphLaunch, (void *, void *))
MORE_FUNCTIONS(CU_DECLARE)

enum { KERNELS = 6, STREAMS = 3, NON_BLOCKING = 1, NO_TIMING = 2 };

static void *kernel[KERNELS], *stream[STREAMS], *event[STREAMS];
static uint32_t state = 12345;

static uint32_t random_below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)state * n >> 32);
}

static void load_kernels(void)
{
	char ptx[2048] = ".version 7.0\n.target sm_50\n.address_size 64\n";
	void *module;
	for (int i = 0; i < KERNELS; i++) {
		const size_t n = strlen(ptx);
		snprintf(ptx + n, sizeof ptx - n,
			".visible .entry work_%d(.param .u32 us)\n{\n\tret;\n}\n", i);
	}
	cu_need(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	for (int i = 0; i < KERNELS; i++) {
		char name[16];
		snprintf(name, sizeof name, "work_%d", i);
		cu_need(cuModuleGetFunction(&kernel[i], module, name), name);
	}
}

static void prepare(unsigned stream_flags)
{
	void *const library = cu_library;
	MORE_FUNCTIONS(CU_RESOLVE)
	load_kernels();
	for (int i = 0; i < STREAMS; i++) {
		cu_need(cuStreamCreate(&stream[i], stream_flags), "cuStreamCreate");
		cu_need(cuEventCreate(&event[i], NO_TIMING), "cuEventCreate");
	}
}

static void work(int k, unsigned us, unsigned grid, void *on)
{
	void *const parameters[] = { &us };
	cu_need(cuLaunchKernel(kernel[k], grid, 1, 1, 128, 1, 1, 0, on, (void **)parameters, NULL),
		"cuLaunchKernel");
}

static void wait_all(void)
{
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void one(void)
{
	for (int i = 0; i < 600; i++) {
		work(i % KERNELS, 60 + 20u * (unsigned)(i % KERNELS), 1 + (unsigned)(i % 3),
			stream[0]);
		if (i % 100 == 99)
			cu_need(cuStreamSynchronize(stream[0]), "cuStreamSynchronize");
	}
}

/* One stream forks into two, which it waits for. */
static void streams(void)
{
	for (int i = 0; i < 100; i++) {
		work(0, 80, 4, stream[0]);
		cu_need(cuEventRecord(event[0], stream[0]), "cuEventRecord");
		for (int k = 1; k < STREAMS; k++) {
			cu_need(cuStreamWaitEvent(stream[k], event[0], 0), "cuStreamWaitEvent");
			work(k, 100 + 50u * (unsigned)k, 4, stream[k]);
			work(k + 2, 40, 2, stream[k]);
			cu_need(cuEventRecord(event[k], stream[k]), "cuEventRecord");
			cu_need(cuStreamWaitEvent(stream[0], event[k], 0), "cuStreamWaitEvent");
		}
		if (i % 10 == 9)
			cu_need(cuEventSynchronize(event[2]), "cuEventSynchronize");
	}
}

/* Kernels of four streams that the device has not the room for at one time: what is short waits for
 * blocks of what is long, between the event in front of it and its begin. */
static void crowd(void)
{
	enum { CROWD = 4 };
	void *s[CROWD], *done[CROWD];
	for (int k = 0; k < CROWD; k++) {
		cu_need(cuStreamCreate(&s[k], NON_BLOCKING), "cuStreamCreate");
		cu_need(cuEventCreate(&done[k], NO_TIMING), "cuEventCreate");
	}
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < CROWD; k++) {
			work(0, 300, 1500, s[k]);
			work(1, 40, 1800, s[k]);
			cu_need(cuEventRecord(done[k], s[k]), "cuEventRecord");
			cu_need(cuStreamWaitEvent(stream[0], done[k], 0), "cuStreamWaitEvent");
		}
		for (int k = 0; k < CROWD; k++)
			work(2, 50, 8, stream[0]);
		if (i % 25 == 24)
			cu_need(cuStreamSynchronize(stream[0]), "cuStreamSynchronize");
	}
}

/* A small kernel on the default stream is behind all others, and they behind it. */
static void legacy(void)
{
	for (int i = 0; i < 150; i++) {
		work(0, 120, 4, stream[0]);
		work(1, 90, 4, stream[1]);
		work(2, 30, 1, NULL);
	}
}

static void replay(int times)
{
	void *made, *exec;
	for (int k = 0; k < KERNELS; k++)
		work(k, 40 + 10u * (unsigned)k, 2, stream[0]);
	cu_need(cuStreamBeginCapture_v2(stream[0], 0), "cuStreamBeginCapture");
	for (int k = 0; k < KERNELS; k++)
		work(k, 40 + 10u * (unsigned)k, 2, stream[0]);
	cu_need(cuStreamEndCapture(stream[0], &made), "cuStreamEndCapture");
	cu_need(cuGraphInstantiateWithFlags(&exec, made, 0), "cuGraphInstantiate");
	for (int i = 0; i < times; i++) {
		cu_need(cuGraphLaunch(exec, stream[0]), "cuGraphLaunch");
		if (i % 25 == 24)
			wait_all();
	}
}

static void graph(void)
{
	replay(150);
}

/* So often that there are several windows of CUPTI. */
static void replays(void)
{
	replay(1600);
}

/* The host does something else for longer than a kernel lasts. */
static void gaps(void)
{
	const struct timespec pause = { 0, 250000 };
	for (int i = 0; i < 250; i++) {
		work(i % KERNELS, 80 + 10u * (unsigned)(i % KERNELS), 4, stream[0]);
		nanosleep(&pause, NULL);
	}
}

static void copies(void)
{
	enum { MOST = 8 << 20 };
	uint64_t memory;
	void *host;
	cu_need(cuMemAlloc_v2(&memory, MOST), "cuMemAlloc");
	cu_need(cuMemAllocHost_v2(&host, MOST), "cuMemAllocHost");
	for (int i = 0; i < 150; i++) {
		const size_t bytes = (size_t)MOST >> i % 3;
		cu_need(cuMemcpyHtoDAsync_v2(memory, host, bytes, stream[0]), "HtoD");
		work(i % KERNELS, 70, 4, stream[0]);
		cu_need(cuMemsetD8Async(memory, 0, MOST, stream[0]), "memset");
		cu_need(cuMemcpyDtoHAsync_v2(host, memory, bytes, stream[0]), "DtoH");
		if (i % 10 == 9)
			cu_need(cuStreamSynchronize(stream[0]), "cuStreamSynchronize");
		if (i % 50 == 49)
			cu_need(cuMemcpyDtoH_v2(host, memory, MOST), "DtoH");
	}
}

/* No two launches take equally long. */
static void noise(void)
{
	for (int i = 0; i < 800; i++) {
		const int k = i % KERNELS;
		work(k, 60 + 25u * (unsigned)k + random_below(40), 1u << i % 4, stream[0]);
		if (i % 200 == 199)
			wait_all();
	}
}

static void syncs(void)
{
	uint64_t memory;
	for (int i = 0; i < 300; i++) {
		cu_need(cuMemAlloc_v2(&memory, 1 << 20), "cuMemAlloc");
		work(i % KERNELS, 100, 4, stream[0]);
		work((i + 1) % KERNELS, 70, 4, stream[0]);
		cu_need(cuStreamSynchronize(stream[0]), "cuStreamSynchronize");
		cu_need(cuMemFree_v2(memory), "cuMemFree");
	}
}

/* The last call of the program is an asynchronous set. */
static void sets(void)
{
	uint64_t memory;
	cu_need(cuMemAlloc_v2(&memory, 1 << 20), "cuMemAlloc");
	work(0, 100, 4, stream[0]);
	cu_need(cuMemsetD8Async(memory, 0, 1 << 20, stream[0]), "memset");
	exit(0);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
		unsigned flags;
	} all[] = { { "one", one, NON_BLOCKING }, { "streams", streams, NON_BLOCKING },
		{ "crowd", crowd, NON_BLOCKING }, { "legacy", legacy, 0 },
		{ "graph", graph, NON_BLOCKING }, { "replays", replays, NON_BLOCKING },
		{ "gaps", gaps, NON_BLOCKING }, { "copies", copies, NON_BLOCKING },
		{ "noise", noise, NON_BLOCKING }, { "syncs", syncs, NON_BLOCKING },
		{ "sets", sets, NON_BLOCKING } };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (argc < 2 || strcmp(argv[1], all[i].name) != 0)
			continue;
		cu_start();
		prepare(all[i].flags);
		all[i].run();
		wait_all();
		return 0;
	}
	return 2;
}
