/*
 * The cost of a fork of a program that uses CUDA, and the pages that its child has written to
 * before it does anything itself.
 *
 *	[weir record -o t.weir --] bench-fork [-n FORKS]
 *
 * Prints the median of the forks in microseconds, each until the child, which exits at once, has
 * been waited for; and the child's own memory in kB as the kernel counts it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cu.h"

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

static uint64_t fork_once(void)
{
	const uint64_t begun = now_ns();
	const pid_t child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return now_ns() - begun;
}

static long dirty_kb(void)
{
	static char text[4096];
	const int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	const char *line = got > 0 ? strstr(text, "Private_Dirty:") : NULL;
	return line ? strtol(line + strlen("Private_Dirty:"), NULL, 10) : -1;
}

/* In a child, which has asked for nothing yet. */
static long child_kb(void)
{
	long kb = -1;
	int ends[2];
	if (pipe(ends))
		return -1;
	const pid_t child = fork();
	if (!child) {
		kb = dirty_kb();
		_exit(write(ends[1], &kb, sizeof kb) != sizeof kb);
	}
	if (read(ends[0], &kb, sizeof kb) != sizeof kb)
		kb = -1;
	waitpid(child, NULL, 0);
	return kb;
}

int main(int argc, char **argv)
{
	const int forks = argc > 2 && !strcmp(argv[1], "-n") ? (int)strtol(argv[2], NULL, 10) : 300;
	uint64_t *ns = forks > 0 ? calloc((size_t)forks, sizeof *ns) : NULL;
	if (!ns)
		return 2;
	cu_start();
	if (cu_launch(1000))
		return 1;
	for (int i = 0; i < forks; i++)
		ns[i] = fork_once();
	qsort(ns, (size_t)forks, sizeof *ns, ascending);
	printf("%8.1f us  %6ld kB\n", (double)ns[forks / 2] / 1e3, child_kb());
	return 0;
}
