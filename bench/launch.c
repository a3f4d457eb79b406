/*
 * The cost of recording one CUDA call.
 *
 *	weir record --level all -o t.weir launch [-c CALL] [-t THREADS] [-b BATCH] [-n ROUNDS] [-m]
 *		t.weir
 *
 * Run under weir record, with the trace's name as the argument: the program maps the trace and
 * switches recording itself, so that the variants alternate within one process, batch by
 * batch:
 *
 *	plain   the driver's own function, found past Weir
 *	clocks  the same between two readings of the time-stamp counter, which is the least that
 *	        a recorder of starts and ends can cost
 *	off     through Weir, recording switched off
 *	full    through Weir, recording everything
 *	sample  the same, and one launch in N between two events; only under --gpu=sample:N
 *	args    as full, and what kernels are given
 *	stacks  as full, and its call stack; only under weir record --stacks=launch
 *	predict the same, and how long they will run; only under weir record --predict
 *
 * Without a trace's name: plain and clocks alone, to be run under another tool.
 *
 * Prints the medians of the batches in nanoseconds a call, and the median difference of the
 * batches of one round.  CALL is launch (an empty kernel,
 * <<<1,32>>>), params (the same with four addresses and four scalars), query (cuStreamQuery of an
 * idle stream) or current (cuCtxGetCurrent).  -m: in the main thread, whose stack is copied without
 * the kernel's help.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "event/format.h"
#include "event/level.h"
#include "hook/core/elf.h"

#define EXTRAS CONTROL_MORE

enum variant { PLAIN, CLOCKS, OFF, FULL, SAMPLE, ARGS, PREDICT, STACKS, VARIANTS };
static const char *const variant_names[] = { "plain", "clocks", "off", "full", "sample", "args",
	"predict", "stacks" };

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	void *, void **, void **);
typedef int one_fn(void *);

struct api {
	launch_fn *launch;
	one_fn *query, *current;
};

static struct api plain, hooked_api;
static struct trace_header *header;
static int (*sync_stream)(void *);
static int (*set_current)(void *);
static void *context;
static int batch = 200, rounds = 1000, threads = 1;
static const char *call = "launch";
static pthread_barrier_t barrier;

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry nothing()\n{\n\tret;\n}\n"
			  ".visible .entry params(.param .u64 a, .param .u64 b, .param .u64 c,\n"
			  "\t.param .u64 d, .param .u32 i, .param .u32 j, .param .u32 k,\n"
			  "\t.param .f32 f)\n{\n\tret;\n}\n";

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s failed with %d\n", what, result);
	exit(1);
}

static bool is_driver(const struct elf *e, const void *arg)
{
	return e->soname && !strncmp(e->soname, "libcuda.so", 10);
}

static void *lookup(void *driver, const char *name)
{
	void *p = dlsym(driver, name);
	if (!p)
		must(1, name);
	return p;
}

struct worker {
	void *stream, *function;
	void **params; /* NULL, or what the kernel is given */
	uint64_t *ns[VARIANTS];
	pthread_t thread;
};

static bool launches(void)
{
	return *call == 'l' || *call == 'p';
}

static void **some_params(void)
{
	static uint64_t addresses[4] = { 0x7f0000000000, 0x7f0000100000, 0x7f0000200000,
		0x7f0000300000 };
	static uint32_t scalars[4] = { 1024, 7, 1, 0x3f800000 };
	static void *params[8];
	for (int i = 0; i < 4; i++) {
		params[i] = &addresses[i];
		params[4 + i] = &scalars[i];
	}
	return params;
}

static _Atomic uint64_t ticks_seen; /* so that the readings are used */

static uint64_t run_between_clocks(const struct worker *w)
{
	uint64_t ticks = 0;
	const uint64_t start = now_ns();
	for (int i = 0; i < batch; i++) {
		const uint64_t begun = cpu_ticks();
		if (launches())
			plain.launch(w->function, 1, 1, 1, 32, 1, 1, 0, w->stream, w->params, NULL);
		else if (*call == 'q')
			plain.query(w->stream);
		else {
			void *c;
			plain.current(&c);
		}
		ticks += cpu_ticks() - begun;
	}
	const uint64_t took = now_ns() - start;
	atomic_fetch_add_explicit(&ticks_seen, ticks, memory_order_relaxed);
	return took;
}

static uint64_t run_batch(const struct api *api, const struct worker *w)
{
	const uint64_t start = now_ns();
	if (launches())
		for (int i = 0; i < batch; i++)
			api->launch(w->function, 1, 1, 1, 32, 1, 1, 0, w->stream, w->params, NULL);
	else if (*call == 'q')
		for (int i = 0; i < batch; i++)
			api->query(w->stream);
	else
		for (int i = 0; i < batch; i++) {
			void *c;
			api->current(&c);
		}
	return now_ns() - start;
}

static uint32_t full_control;
static bool predicts, samples, in_main;
static uint32_t stacks;

static uint32_t control_of(enum variant v)
{
	if (v == PREDICT)
		return full_control | CONTROL_ARGS | CONTROL_PREDICT;
	return v == FULL     ? full_control
	       : v == SAMPLE ? full_control | CONTROL_SAMPLE
	       : v == ARGS   ? full_control | CONTROL_ARGS
	       : v == STACKS ? full_control | stacks
			     : 0;
}

/* Whether this recording has it. */
static bool has_variant(enum variant v)
{
	return header ? (v != PREDICT || predicts) && (v != SAMPLE || samples) &&
				(v != STACKS || stacks)
		      : v <= CLOCKS;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	must(set_current(context), "cuCtxSetCurrent");
	for (int r = 0; r < rounds; r++)
		for (int k = 0; k < VARIANTS; k++) {
			/* the order turns from round to round */
			const enum variant v = (enum variant)((r + k) % VARIANTS);
			if (!has_variant(v))
				continue;
			if (header &&
				pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
				atomic_store_explicit(
					&header->control, control_of(v), memory_order_seq_cst);
			if (header)
				pthread_barrier_wait(&barrier);
			w->ns[v][r] = v == CLOCKS ? run_between_clocks(w)
						  : run_batch(v == PLAIN ? &plain : &hooked_api, w);
			sync_stream(w->stream);
		}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* The median over all rounds and threads of v's time, less that of base when it is another:
 * pairs from one round share what the machine did to both. */
static double median(const struct worker *w, enum variant v, int base)
{
	const size_t n = (size_t)threads * (size_t)rounds;
	int64_t *all = malloc(n * sizeof *all);
	for (int t = 0; t < threads; t++)
		for (int r = 0; r < rounds; r++)
			all[t * rounds + r] =
				(int64_t)w[t].ns[v][r] - (base < 0 ? 0 : (int64_t)w[t].ns[base][r]);
	qsort(all, n, sizeof *all, ascending);
	const double ns = (double)all[n / 2] / batch;
	free(all);
	return ns;
}

static void set_up(struct worker *w)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module, *function;
	struct elf e;
	if (!driver || !elf_search(&e, is_driver, NULL))
		must(1, "loading libcuda.so.1");
	int (*init)(unsigned) = lookup(driver, "cuInit");
	int (*retain)(void **, int) = lookup(driver, "cuDevicePrimaryCtxRetain");
	int (*load)(void **, const void *) = lookup(driver, "cuModuleLoadData");
	int (*get)(void **, void *, const char *) = lookup(driver, "cuModuleGetFunction");
	int (*create)(void **, unsigned) = lookup(driver, "cuStreamCreate");
	set_current = lookup(driver, "cuCtxSetCurrent");
	sync_stream = lookup(driver, "cuStreamSynchronize");
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(set_current(context), "cuCtxSetCurrent");
	must(load(&module, ptx), "cuModuleLoadData");
	must(get(&function, module, *call == 'p' ? "params" : "nothing"), "cuModuleGetFunction");
	plain = (struct api){ (launch_fn *)elf_find(&e, "cuLaunchKernel"),
		(one_fn *)elf_find(&e, "cuStreamQuery"),
		(one_fn *)elf_find(&e, "cuCtxGetCurrent") };
	hooked_api = (struct api){ lookup(driver, "cuLaunchKernel"),
		lookup(driver, "cuStreamQuery"), lookup(driver, "cuCtxGetCurrent") };
	if (plain.launch == hooked_api.launch)
		fprintf(stderr,
			header ? "note: Weir is not loaded; all variants are the driver itself\n"
			       : "");
	for (int t = 0; t < threads; t++) {
		must(create(&w[t].stream, 1), "cuStreamCreate");
		w[t].function = function;
		w[t].params = *call == 'p' ? some_params() : NULL;
		for (int v = 0; v < VARIANTS; v++)
			w[t].ns[v] = calloc((size_t)rounds, sizeof *w[t].ns[v]);
	}
}

static void map_trace(const char *path)
{
	const int fd = open(path, O_RDWR);
	header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED || memcmp(header->magic, TRACE_MAGIC, 8))
		must(1, "mapping the trace");
	close(fd);
}

int main(int argc, char **argv)
{
	int option;
	while ((option = getopt(argc, argv, "c:t:b:n:m")) != -1) {
		if (option == 'c')
			call = optarg;
		else if (option == 't')
			threads = (int)strtol(optarg, NULL, 10);
		else if (option == 'b')
			batch = (int)strtol(optarg, NULL, 10);
		else if (option == 'n')
			rounds = (int)strtol(optarg, NULL, 10);
		else if (option == 'm')
			in_main = true;
		else
			return 2;
	}
	if (optind + 1 < argc || threads < 1 || batch < 1 || rounds < 1)
		return 2;
	if (optind < argc)
		map_trace(argv[optind]);
	full_control = header ? load_relaxed(&header->control) & ~EXTRAS : 0;
	predicts = header && load_relaxed(&header->control) & CONTROL_PREDICT;
	stacks = header ? load_relaxed(&header->control) & CONTROL_STACKS : 0;
	struct worker *w = calloc((size_t)threads, sizeof *w);
	set_up(w);
	samples = header && header->sampled; /* known once the driver is there */
	threads = in_main ? 1 : threads;
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	if (in_main)
		work(&w[0]);
	for (int t = 0; t < threads && !in_main; t++)
		pthread_create(&w[t].thread, NULL, work, &w[t]);
	for (int t = 0; t < threads && !in_main; t++)
		pthread_join(w[t].thread, NULL);
	printf("%-8s %2d thread%s", call, threads, threads == 1 ? " " : "s");
	printf("  plain %8.1f ns", median(w, PLAIN, -1));
	for (int v = CLOCKS; v < VARIANTS; v++)
		if (has_variant((enum variant)v))
			printf("  %s adds %6.1f", variant_names[v],
				median(w, (enum variant)v, PLAIN));
	printf("\n");
	return 0;
}
