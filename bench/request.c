/*
 * The cost of a recording to weir serve: a request and a batch, as src/serve/recorded.c says them.
 *
 *	weir record -o t.weir -- bench-request [ROUNDS]
 *
 * Prints the median of the rounds, of 2,000 each, in nanoseconds.  The exit status is 1 if a
 * request costs 200 ns or more.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "event/format.h"

#define BATCH   2000
#define MOST_NS 200.0

static void (*served_batch)(const char *model, uint64_t number);
static void (*served_batch_end)(void);
static void (*served_request)(const struct served_request *request, const char *model);

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void request(uint64_t i)
{
	const struct served_request r = { .id = i, .batch = i, .rows = 1, .outcome = REQUEST_MET };
	served_request(&r, "resnet50");
}

static void batch(uint64_t i)
{
	served_batch("resnet50", i);
	served_batch_end();
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(void (*one)(uint64_t i), int rounds)
{
	double *ns = calloc((size_t)rounds, sizeof *ns);
	if (!ns)
		exit(3);
	for (int r = 0; r < rounds; r++) {
		const uint64_t begun = now_ns();
		for (uint64_t i = 1; i <= BATCH; i++)
			one((uint64_t)r * BATCH + i);
		ns[r] = (double)(now_ns() - begun) / BATCH;
	}
	qsort(ns, (size_t)rounds, sizeof *ns, ascending);
	const double middle = ns[rounds / 2];
	free(ns);
	return middle;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 300;
	*(void **)&served_batch = dlsym(RTLD_DEFAULT, "weir_hook_served_batch");
	*(void **)&served_batch_end = dlsym(RTLD_DEFAULT, "weir_hook_served_batch_end");
	*(void **)&served_request = dlsym(RTLD_DEFAULT, "weir_hook_served_request");
	if (rounds < 1 || !served_batch || !served_batch_end || !served_request) {
		fputs("usage: weir record -o FILE -- bench-request [ROUNDS]\n", stderr);
		return 2;
	}
	const double of_request = median(request, rounds), of_batch = median(batch, rounds);
	printf("request %.0f ns, batch %.0f ns\n", of_request, of_batch);
	return of_request >= MOST_NS;
}
