/*
 * How long single launches take, the slow ones too.
 *
 *	bench-worst [-n LAUNCHES] [TRACE]
 *
 * TRACE is the one that the program is recorded in.  If it is a flight recording, launches are
 * measured once the first chunk of it has been overwritten: how long that takes to come is the size
 * of the ring.  Prints the median, the 99.9th percentile and the longest of LAUNCHES (2000000), of
 * an empty kernel, in nanoseconds, each between two readings of the clock, which are part of it.
 * Launches during which the machine ran something else are left out.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/atomic.h"
#include "cu.h"
#include "event/format.h"

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Launches until there is no new room left. */
static int fill(const char *path)
{
	const int fd = open(path, O_RDONLY);
	const struct trace_header *h = mmap(NULL, sizeof *h, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || h == MAP_FAILED || memcmp(h->magic, TRACE_MAGIC, 8)) {
		fprintf(stderr, "%s is no trace\n", path);
		return 1;
	}
	while (h->mode == TRACE_FLIGHT && !load_relaxed(&h->reused))
		if (cu_launch(1000) || load_relaxed(&h->lost))
			return 1;
	return 0;
}

#define SLOW_NS 5000

/* Whether this thread has had to make room for another since it was last asked. */
static bool was_put_aside(void)
{
	static long before;
	struct rusage now = { 0 };
	getrusage(RUSAGE_THREAD, &now);
	const bool changed = now.ru_nivcsw != before;
	before = now.ru_nivcsw;
	return changed;
}

static long measure(uint64_t *ns, long launches)
{
	uint64_t ended = now_ns();
	long n = 0;
	was_put_aside();
	for (long i = 0; i < launches; i++) {
		if (now_ns() - ended > SLOW_NS)
			was_put_aside();
		const uint64_t begun = now_ns();
		cu_launch_once();
		ended = now_ns();
		if (ended - begun < SLOW_NS || !was_put_aside())
			ns[n++] = ended - begun;
	}
	return n;
}

int main(int argc, char **argv)
{
	long launches = 2000000;
	if (argc > 2 && !strcmp(argv[1], "-n")) {
		launches = strtol(argv[2], NULL, 10);
		argc -= 2, argv += 2;
	}
	uint64_t *ns = launches > 0 ? calloc((size_t)launches, sizeof *ns) : NULL;
	if (!ns)
		return 2;
	cu_start();
	if (cu_launch(1000) || (argc > 1 && fill(argv[1])))
		return 1;
	memset(ns, 1, (size_t)launches * sizeof *ns); /* no page fault of ours among them */
	launches = measure(ns, launches);
	qsort(ns, (size_t)launches, sizeof *ns, ascending);
	printf("p50 %6lu ns  p99.9 %7lu ns  worst %9.1f us\n", (unsigned long)ns[launches / 2],
		(unsigned long)ns[launches / 1000 * 999], (double)ns[launches - 1] / 1e3);
	return 0;
}
