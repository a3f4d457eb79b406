/*
 * A hook that records events of its own must not disturb these: captures, streams of several
 * threads, contexts that come and go, launches that fail.  Run with every launch timed.
 *
 *	sampled streams | threads | capture | contexts | release | failing | between
 *
 * In the file `samples`: how many launches can be timed, which a runner compares with how many
 * were.
 */
#include "cu.h"

#include <pthread.h>

#define MORE_FUNCTIONS(X)                                                                          \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuStreamBeginCapture_v2, (void *, int))                                                  \
	X(cuStreamEndCapture, (void *, void **))                                                   \
	X(cuGraphGetNodes, (void *, void **, size_t *))                                            \
	X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                      \
	X(cuGraphLaunch, (void *, void *))                                                         \
	X(cuCtxCreate_v2, (void **, unsigned, int))                                                \
	X(cuCtxDestroy_v2, (void *))                                                               \
	X(cuDevicePrimaryCtxRelease_v2, (int))                                                     \
	X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                              \
	X(cuStreamWaitEvent, (void *, void *, unsigned))                                           \
	X(cuEventCreate, (void **, unsigned))                                                      \
	X(cuEventRecord, (void *, void *))
MORE_FUNCTIONS(CU_DECLARE)

enum { LAUNCHES = 1000, GLOBAL = 0 };

static long timed; /* that can be */

static void resolve_more(void)
{
	void *const library = cu_library;
	MORE_FUNCTIONS(CU_RESOLVE)
}

static int launch_on(void *stream)
{
	const int result = cuLaunchKernel(cu_kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	timed += !result;
	return result;
}

static void *new_stream(void)
{
	void *stream;
	cu_need(cuStreamCreate(&stream, 1), "cuStreamCreate");
	return stream;
}

static void streams(void)
{
	void *one = new_stream(), *two = new_stream();
	int failed = 0;
	for (int i = 0; i < LAUNCHES; i++)
		failed += launch_on(i % 3 ? one : i % 2 ? two : NULL) != 0;
	printf("%d failed, %d\n", failed, cuCtxSynchronize());
}

static void *on_own_stream(void *unused)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	int failed = 0;
	cuCtxSetCurrent(cu_context);
	void *stream = new_stream();
	for (int i = 0; i < LAUNCHES; i++)
		failed += cuLaunchKernel(cu_kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
	pthread_mutex_lock(&mutex);
	timed += LAUNCHES - failed;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	launch_on(NULL);
	for (int i = 0; i < 4; i++)
		cu_need(pthread_create(&thread[i], NULL, on_own_stream, NULL), "pthread_create");
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	printf("%ld launched\n", timed);
}

/* 300 launches into a graph, others beside it, then the graph. */
static void capture(void)
{
	void *stream = new_stream(), *other = new_stream(), *graph, *exec;
	size_t nodes = 0;
	cu_need(cuStreamBeginCapture_v2(stream, GLOBAL), "cuStreamBeginCapture_v2");
	for (int i = 0; i < 300; i++) {
		launch_on(stream);
		launch_on(other);
	}
	timed = 0; /* none while anybody captures */
	const int ended = cuStreamEndCapture(stream, &graph);
	const int asked = cuGraphGetNodes(graph, NULL, &nodes);
	printf("%d %d: %zu nodes\n", ended, asked, nodes);
	cu_need(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
	for (int i = 0; i < 20; i++)
		timed += !cuGraphLaunch(exec, stream);
	printf("%d\n", cuStreamSynchronize(stream));
}

/* More of them than the hook has room for at a time. */
static void contexts(void)
{
	for (int i = 0; i < 60; i++) {
		void *context, *module;
		cu_need(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate_v2");
		cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
		cu_need(cuModuleGetFunction(&cu_kernel, module, "nothing"), "cuModuleGetFunction");
		for (int k = 0; k < 10; k++)
			launch_on(NULL);
		printf("%d ", cuCtxSynchronize());
		printf("%d\n", cuCtxDestroy_v2(context));
	}
}

static void release(void)
{
	for (int i = 0; i < 5; i++) {
		void *module;
		for (int k = 0; k < 10; k++)
			launch_on(NULL);
		printf("%d\n", cuDevicePrimaryCtxRelease_v2(0));
		cu_need(cuDevicePrimaryCtxRetain(&cu_context, 0), "cuDevicePrimaryCtxRetain");
		cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
		cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
		cu_need(cuModuleGetFunction(&cu_kernel, module, "nothing"), "cuModuleGetFunction");
	}
}

/* A shape that no device takes, a stream that is none. */
static void failing(void)
{
	static char nothing[256];
	for (int i = 0; i < 100; i++) {
		printf("%d ", cuLaunchKernel(cu_kernel, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		printf("%d ", cuLaunchKernel(cu_kernel, 1, 1, 1, 32, 1, 1, 0, nothing, NULL, NULL));
		printf("%d\n", launch_on(NULL));
	}
}

/* Other work of the stream between two launches, and work of another stream that it waits for: no
 * kernel's time. */
static void between(void)
{
	enum { BYTES = 16 << 20 };
	void *stream = new_stream(), *other = new_stream(), *event;
	uint64_t memory;
	int failed = 0;
	cu_need(cuMemAlloc_v2(&memory, BYTES), "cuMemAlloc_v2");
	cu_need(cuEventCreate(&event, 0), "cuEventCreate");
	for (int i = 0; i < LAUNCHES; i++) {
		void *const busy = i % 3 == 1 ? other : stream;
		if (i % 3)
			failed += cuMemsetD8Async(memory, 1, BYTES, busy) != 0;
		if (busy == other)
			failed += cuEventRecord(event, other) + cuStreamWaitEvent(stream, event, 0);
		failed += launch_on(stream);
	}
	printf("%d failed, %d\n", failed, cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = { { "streams", streams }, { "threads", threads }, { "capture", capture },
		{ "contexts", contexts }, { "release", release }, { "failing", failing },
		{ "between", between } };
	cu_start();
	resolve_more();
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name))
			ways[i].run();
	FILE *f = fopen("samples", "w");
	cu_need(!f, "samples");
	fprintf(f, "%ld\n", timed);
	return fclose(f) != 0;
}
