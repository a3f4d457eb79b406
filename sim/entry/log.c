/*
 * The call log: one line `name count` per exported function, which tests read as the truth
 * about what reached the driver.  It must be right when the program ends with _exit() or
 * dies, so nothing is written at the end: each call rewrites its own number in a shared
 * mapping of the file.
 *
 * Numbers are text of fixed width.  Two threads may write the same line at once; whoever
 * finishes compares what it wrote with the counter and writes again if that has moved on,
 * so the last writer leaves the last number.  The counters live in shared memory, because
 * a forked child goes on writing the same file.
 */
#include "entry/entry.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME_WIDTH = 56, NUMBER_WIDTH = 12, LINE = NAME_WIDTH + 1 + NUMBER_WIDTH + 1 };

static atomic_ullong *counters;
static char *text;

/* Copies PATH with %p replaced by the process id, so that children can have own logs. */
static void expand(const char *path, char *ret_path, size_t size)
{
	const char *mark = strstr(path, "%p");

	if (mark)
		snprintf(ret_path, size, "%.*s%ld%s", (int)(mark - path), path, (long)getpid(),
			mark + 2);
	else
		snprintf(ret_path, size, "%s", path);
}

static int create(const char *path)
{
	char name[4096];

	expand(path, name, sizeof name);
	unlink(name); /* a log still mapped by another process keeps its own pages */
	return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int write_lines(int fd)
{
	char line[LINE + 1];

	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		snprintf(line, sizeof line, "%-*s %*llu\n", NAME_WIDTH, entry_table[i].name,
			NUMBER_WIDTH, 0ull);
		if (write(fd, line, LINE) != LINE)
			return -1;
	}
	return 0;
}

void log_open(const char *path)
{
	size_t size = (size_t)SIM_FUNCTIONS * LINE;
	int fd = create(path);

	if (fd < 0 || write_lines(fd) != 0) {
		fprintf(stderr, "weir sim: cannot write the call log %s\n", path);
		if (fd >= 0)
			close(fd);
		return;
	}
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *count = mmap(NULL, SIM_FUNCTIONS * sizeof *counters, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	close(fd);
	if (map == MAP_FAILED || count == MAP_FAILED)
		return;
	counters = count;
	text = map;
}

static void write_number(char *field, unsigned long long n)
{
	for (int i = NUMBER_WIDTH - 1; i >= 0; i--) {
		char c = (n || i == NUMBER_WIDTH - 1) ? (char)('0' + n % 10) : ' ';

		atomic_store_explicit((_Atomic char *)&field[i], c, memory_order_seq_cst);
		n /= 10;
	}
}

void log_count(int id)
{
	if (!text)
		return;
	char *field = text + (size_t)id * LINE + NAME_WIDTH + 1;
	unsigned long long n = atomic_fetch_add(&counters[id], 1) + 1;
	unsigned long long now;
	while (write_number(field, n), (now = atomic_load(&counters[id])) != n)
		n = now;
}
