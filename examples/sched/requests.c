/*
 * A service that says its requests to Weir's scheduler: each has a deadline, and what a request
 * took is read at the end.  Its work is a memset on a stream of high priority; a real one would ask
 * for kernels.
 *
 *	cc -std=c99 requests.c -o requests $(pkg-config --cflags --libs weirapi) -ldl
 *	weir run --class latency -- ./requests
 *
 * Without weir run it does the same, and says what it can't: the answers of the library are looked
 * at, and nothing depends on them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/sched.h>

enum { REQUESTS = 100, BYTES = 1 << 20, LATENCY_US = 5000, DEADLINE_US = 20000 };

static int (*init)(unsigned flags);
static int (*retain)(void **context, int device);
static int (*set_current)(void *context);
static int (*allocate)(unsigned long long *p, size_t bytes);
static int (*set)(unsigned long long p, unsigned char byte, size_t bytes, void *stream);
static int (*wait_for)(void *stream);

static void *find(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;
	if (!function) {
		fprintf(stderr, "requests: there is no CUDA driver with %s\n", name);
		exit(1);
	}
	return function;
}

static void check(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "requests: %s failed with CUDA error %d\n", what, code);
	exit(1);
}

static void open_driver(void)
{
	void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&init = find(library, "cuInit");
	*(void **)&retain = find(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = find(library, "cuCtxSetCurrent");
	*(void **)&allocate = find(library, "cuMemAlloc_v2");
	*(void **)&set = find(library, "cuMemsetD8Async");
	*(void **)&wait_for = find(library, "cuStreamSynchronize");
	check(init(0), "cuInit");
	check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(set_current(context), "cuCtxSetCurrent");
}

/* If a setting can't be had, the program says so; the service goes on. */
static int asked(int status, const char *what)
{
	if (status)
		fprintf(stderr, "requests: %s: %s\n", what, weir_sched_strerror(status));
	return !status;
}

static void configure(weir_sched weir)
{
	struct weir_sched_config config = { .size = sizeof config };
	config.set = WEIR_SET_CLASS | WEIR_SET_LATENCY_THRESHOLD;
	config.sched_class = WEIR_CLASS_LATENCY;
	config.latency_threshold_us = LATENCY_US;
	asked(weir_sched_configure(weir, &config), "no threshold");
}

static void serve(weir_sched weir, unsigned long long memory, void *stream)
{
	uint64_t request;
	const int begun = !weir_sched_request_begin(weir, DEADLINE_US, &request);
	check(set(memory, 1, BYTES, stream), "cuMemsetD8Async");
	check(set(memory, 2, BYTES, stream), "cuMemsetD8Async");
	check(wait_for(stream), "cuStreamSynchronize");
	if (begun)
		weir_sched_request_end(weir, request);
}

static void print_metrics(weir_sched weir)
{
	struct weir_sched_metrics m = { .size = sizeof m };
	if (!asked(weir_sched_get_metrics(weir, 0, &m), "no metrics"))
		return;
	printf("%llu requests", (unsigned long long)m.request_count);
	if (m.valid & WEIR_VALID_REQUESTS)
		printf(", p50 %.3f ms, p99 %.3f ms", (double)m.request_p50_ns / 1e6,
			(double)m.request_p99_ns / 1e6);
	printf("\n");
}

int main(void)
{
	weir_sched weir;
	unsigned long long memory;
	void *stream;
	open_driver();
	check(allocate(&memory, BYTES), "cuMemAlloc_v2");
	if (!asked(weir_sched_open(NULL, &weir), "no handle"))
		return 1;
	configure(weir);
	if (!asked(weir_sched_stream_get(weir, WEIR_CLASS_LATENCY, &stream), "no stream"))
		return 1;
	for (int i = 0; i < REQUESTS; i++)
		serve(weir, memory, stream);
	print_metrics(weir);
	weir_sched_stream_return(weir, stream);
	weir_sched_close(weir);
	return 0;
}
