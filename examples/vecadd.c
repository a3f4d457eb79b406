/*
 * Adds vectors on the GPU through the CUDA driver API: the smallest program in which most of what
 * Weir records happens.  Two streams, copies, launches, events, and a captured graph.
 *
 * It needs no toolkit: the few declarations it uses stand below, the kernel is PTX that the driver
 * compiles, and libcuda.so.1 is opened at run time.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 20, ROUNDS = 100, STREAMS = 2, BLOCK = 256 };

typedef int result;
typedef uint64_t device_pointer;

/* X(name here, exported symbol, parameters) */
#define DRIVER(X)                                                                                  \
	X(init, "cuInit", (unsigned flags))                                                        \
	X(device_get, "cuDeviceGet", (int *device, int ordinal))                                   \
	X(device_name, "cuDeviceGetName", (char *name, int size, int device))                      \
	X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                \
	X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                           \
	X(context_set, "cuCtxSetCurrent", (void *context))                                         \
	X(module_load, "cuModuleLoadData", (void **module, const void *image))                     \
	X(module_unload, "cuModuleUnload", (void *module))                                         \
	X(get_function, "cuModuleGetFunction", (void **function, void *module, const char *name))  \
	X(alloc, "cuMemAlloc_v2", (device_pointer * p, size_t bytes))                              \
	X(release, "cuMemFree_v2", (device_pointer p))                                             \
	X(alloc_host, "cuMemAllocHost_v2", (void **p, size_t bytes))                               \
	X(free_host, "cuMemFreeHost", (void *p))                                                   \
	X(copy_in, "cuMemcpyHtoDAsync_v2",                                                         \
		(device_pointer to, const void *from, size_t bytes, void *stream))                 \
	X(copy_out, "cuMemcpyDtoHAsync_v2",                                                        \
		(void *to, device_pointer from, size_t bytes, void *stream))                       \
	X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                        \
	X(stream_wait, "cuStreamSynchronize", (void *stream))                                      \
	X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                    \
	X(event_create, "cuEventCreate", (void **event, unsigned flags))                           \
	X(event_record, "cuEventRecord", (void *event, void *stream))                              \
	X(event_elapsed, "cuEventElapsedTime", (float *ms, void *start, void *end))                \
	X(event_destroy, "cuEventDestroy_v2", (void *event))                                       \
	X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                      \
	X(capture_end, "cuStreamEndCapture", (void *stream, void **graph))                         \
	X(graph_instantiate, "cuGraphInstantiateWithFlags",                                        \
		(void **exec, void *graph, unsigned long long flags))                              \
	X(graph_launch, "cuGraphLaunch", (void *exec, void *stream))                               \
	X(graph_exec_destroy, "cuGraphExecDestroy", (void *exec))                                  \
	X(graph_destroy, "cuGraphDestroy", (void *graph))                                          \
	X(error_name, "cuGetErrorName", (result code, const char **name))                          \
	X(launch, "cuLaunchKernel",                                                                \
		(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
			unsigned bz, unsigned shared_bytes, void *stream, void **parameters,       \
			void **extra))

#define DECLARE(name, symbol, parameters) static result(*name) parameters;
DRIVER(DECLARE)

static const char ptx[] = ".version 7.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry vecadd(.param .u64 pa, .param .u64 pb, .param .u64 pc,\n"
			  "	.param .u32 pn)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .f32 %f<4>;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %d<8>;\n"
			  "	ld.param.u64 %d1, [pa];\n"
			  "	ld.param.u64 %d2, [pb];\n"
			  "	ld.param.u64 %d3, [pc];\n"
			  "	ld.param.u32 %r1, [pn];\n"
			  "	mov.u32 %r2, %ctaid.x;\n"
			  "	mov.u32 %r3, %ntid.x;\n"
			  "	mov.u32 %r4, %tid.x;\n"
			  "	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
			  "	setp.ge.u32 %p, %r5, %r1;\n"
			  "	@%p bra done;\n"
			  "	cvta.to.global.u64 %d1, %d1;\n"
			  "	cvta.to.global.u64 %d2, %d2;\n"
			  "	cvta.to.global.u64 %d3, %d3;\n"
			  "	mul.wide.u32 %d4, %r5, 4;\n"
			  "	add.s64 %d5, %d1, %d4;\n"
			  "	add.s64 %d6, %d2, %d4;\n"
			  "	add.s64 %d7, %d3, %d4;\n"
			  "	ld.global.f32 %f1, [%d5];\n"
			  "	ld.global.f32 %f2, [%d6];\n"
			  "	add.f32 %f3, %f1, %f2;\n"
			  "	st.global.f32 [%d7], %f3;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n";

struct vectors {
	float *a, *b, *c; /* on the host, pinned */
	device_pointer da, db, dc;
	unsigned n;
	void *stream;
};

static void check(result code, const char *what)
{
	const char *name = "unknown error";

	if (code == 0)
		return;
	if (error_name)
		error_name(code, &name);
	fprintf(stderr, "vecadd: %s: %s\n", what, name);
	exit(1);
}
#define CHECK(call) check(call, #call)

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "vecadd: %s\n", dlerror());
		exit(1);
	}
#define RESOLVE(name, symbol, parameters)                                                          \
	*(void **)&name = dlsym(library, symbol);                                                  \
	if (!name) {                                                                               \
		fprintf(stderr, "vecadd: the driver has no %s\n", symbol);                         \
		exit(1);                                                                           \
	}
	DRIVER(RESOLVE)
}

static void vectors_init(struct vectors *v)
{
	v->n = N;
	CHECK(alloc_host((void **)&v->a, N * sizeof(float)));
	CHECK(alloc_host((void **)&v->b, N * sizeof(float)));
	CHECK(alloc_host((void **)&v->c, N * sizeof(float)));
	CHECK(alloc(&v->da, N * sizeof(float)));
	CHECK(alloc(&v->db, N * sizeof(float)));
	CHECK(alloc(&v->dc, N * sizeof(float)));
	CHECK(stream_create(&v->stream, 1)); /* 1: does not wait for the default stream */
	for (unsigned i = 0; i < N; i++) {
		v->a[i] = (float)i;
		v->b[i] = (float)(2 * i);
		v->c[i] = -1;
	}
}

static void vectors_fini(struct vectors *v)
{
	CHECK(stream_destroy(v->stream));
	CHECK(release(v->dc));
	CHECK(release(v->db));
	CHECK(release(v->da));
	CHECK(free_host(v->c));
	CHECK(free_host(v->b));
	CHECK(free_host(v->a));
}

static void add(struct vectors *v, void *function)
{
	void *parameters[] = { &v->da, &v->db, &v->dc, &v->n };

	CHECK(launch(function, (N + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, v->stream, parameters,
		NULL));
}

/* The same work once more, as a graph of one copy and two launches. */
static void add_as_graph(struct vectors *v, void *function)
{
	void *graph, *exec;

	CHECK(capture_begin(v->stream, 0));
	CHECK(copy_in(v->da, v->a, N * sizeof(float), v->stream));
	add(v, function);
	add(v, function);
	CHECK(capture_end(v->stream, &graph));
	CHECK(graph_instantiate(&exec, graph, 0));
	for (int i = 0; i < 10; i++)
		CHECK(graph_launch(exec, v->stream));
	CHECK(stream_wait(v->stream));
	CHECK(graph_exec_destroy(exec));
	CHECK(graph_destroy(graph));
}

static unsigned wrong(const struct vectors *v)
{
	unsigned count = 0;

	for (unsigned i = 0; i < N; i++)
		count += v->c[i] != v->a[i] + v->b[i];
	return count;
}

static float run(struct vectors *v, void *function)
{
	void *start, *end;
	float ms;

	CHECK(event_create(&start, 0));
	CHECK(event_create(&end, 0));
	CHECK(event_record(start, v[0].stream));
	for (int s = 0; s < STREAMS; s++) {
		CHECK(copy_in(v[s].da, v[s].a, N * sizeof(float), v[s].stream));
		CHECK(copy_in(v[s].db, v[s].b, N * sizeof(float), v[s].stream));
	}
	for (int i = 0; i < ROUNDS; i++)
		for (int s = 0; s < STREAMS; s++)
			add(&v[s], function);
	for (int s = 0; s < STREAMS; s++)
		CHECK(copy_out(v[s].c, v[s].dc, N * sizeof(float), v[s].stream));
	CHECK(event_record(end, v[0].stream));
	for (int s = 0; s < STREAMS; s++)
		CHECK(stream_wait(v[s].stream));
	CHECK(event_elapsed(&ms, start, end));
	CHECK(event_destroy(start));
	CHECK(event_destroy(end));
	return ms;
}

static int judge(const struct vectors *v, const char *device)
{
	unsigned bad = wrong(&v[0]) + wrong(&v[1]);

	if (bad == 0)
		printf("all %d sums are right\n", STREAMS * N);
	else if (strcasestr(device, "simulated"))
		puts("the simulated driver executes no kernels: sums not checked");
	else
		printf("%u of %d sums are wrong\n", bad, STREAMS * N);
	return bad && !strcasestr(device, "simulated");
}

int main(void)
{
	struct vectors v[STREAMS];
	char name[100] = "";
	void *context, *module, *function;
	int device, rc;

	open_driver();
	CHECK(init(0));
	CHECK(device_get(&device, 0));
	CHECK(device_name(name, sizeof(name), device));
	CHECK(context_retain(&context, device));
	CHECK(context_set(context));
	CHECK(module_load(&module, ptx));
	CHECK(get_function(&function, module, "vecadd"));
	for (int s = 0; s < STREAMS; s++)
		vectors_init(&v[s]);

	printf("%s: %d launches on %d streams\n", name, ROUNDS * STREAMS, STREAMS);
	printf("%.3f ms between the events\n", (double)run(v, function));
	for (int s = 0; s < STREAMS; s++)
		add_as_graph(&v[s], function);
	rc = judge(v, name);

	for (int s = 0; s < STREAMS; s++)
		vectors_fini(&v[s]);
	CHECK(module_unload(module));
	CHECK(context_release(device));
	return rc;
}
