/*
 * A program on the CUDA runtime whose mapped code is another at each call, so that each look at
 * what is mapped finds some; and what its recording says of when those looks were.
 *
 *	looks run      the program
 *	looks FILE     says how many looks there were behind the first, and how many in a call of
 * the runtime
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/trace.h"

enum { ROUNDS = 300000, PAGE = 4096, OFFSETS = 3000, KEPT = 100000 };

static int run(void)
{
	void *const runtime = dlopen("libcudart.so.13", RTLD_NOW);
	int (*allocate)(void **, size_t) = NULL, (*release)(void *) = NULL;
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (!runtime || fd < 0)
		return 1;
	*(void **)&allocate = dlsym(runtime, "cudaMalloc");
	*(void **)&release = dlsym(runtime, "cudaFree");
	for (int i = 0; i < ROUNDS; i++) {
		void *memory, *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				      (off_t)PAGE * (i % OFFSETS));
		if (code == MAP_FAILED || allocate(&memory, 4096) || release(memory))
			return 1;
		munmap(code, PAGE);
	}
	return 0;
}

/* Calls of the runtime, in their order: all are of one thread. */
static struct span {
	uint64_t from, end;
} * calls;
static size_t call_count;
static uint64_t looks[KEPT];
static size_t look_count;

static void take(const struct trace *t, const struct record *r)
{
	const struct schema_fn *fn = schema_find(&t->schema, r->fn);
	if (r->fn == META_MAPPING && look_count < KEPT)
		looks[look_count++] = r->ticks;
	else if (fn && !strncmp(fn->name, "cuda", 4) && call_count < 2 * ROUNDS)
		calls[call_count++] = (struct span){ r->ticks, record_end(r) };
}

static int read_all(const char *path)
{
	struct trace *t;
	struct chunk_buf buf = { 0 };
	const struct record *r;
	size_t at = 0;
	if (trace_open(path, &t, NULL))
		return 1;
	while (trace_next_of(t, 1u << CHUNK_META | 1u << CHUNK_EVENTS, &at, &buf, NULL) == 1)
		for (struct records it = records_of(&buf); (r = records_next(&it));)
			take(t, r);
	chunk_buf_fini(&buf);
	trace_close(t);
	return 0;
}

static int by_start(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	return a->from < b->from ? -1 : a->from > b->from;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "run"))
		return run();
	calls = calloc(2 * ROUNDS, sizeof *calls);
	if (argc != 2 || !calls || read_all(argv[1]) || !call_count)
		return 1;
	size_t later = 0, inside = 0;
	qsort(calls, call_count, sizeof *calls, by_start);
	for (size_t i = 0; i < look_count; i++) {
		/* The process starts, and looks for the first time, in its first call. */
		later += looks[i] > calls[0].end;
		for (size_t c = 1; c < call_count && calls[c].from < looks[i]; c++)
			inside += looks[i] < calls[c].end;
	}
	printf("%s, %zu of them in calls of the runtime\n", later ? "looks" : "no look", inside);
	free(calls);
	return 0;
}
