/*
 * Imports whatever comes, as a file, and reads the trace that is made of it to its end: JSON,
 * gzip or SQLite, as the first bytes say.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/import.h"
#include "report/memory.h"
#include "report/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

static int memory_file(const char *name, char *path, size_t bytes)
{
	const int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		abort();
	snprintf(path, bytes, "/proc/self/fd/%d", fd);
	return fd;
}

static void read_trace(const char *path)
{
	struct trace *t;
	struct report *r;
	struct error err;
	if (trace_open(path, &t, &err))
		abort(); /* what was just written */
	if (t->damage_count || t->schema.bad_lines)
		abort();
	const struct decoder d = { .schema = &t->schema };
	if (report_make(t, &d, 1, &r, &err))
		abort();
	if (r->damaged_chunks || r->meta.damaged)
		abort();
	report_print_text(r, nowhere, 5, false);
	report_print_json(r, nowhere);
	memory_print_text(r, nowhere, 5, false, true);
	memory_print_json(r, nowhere);
	report_free(r);
	trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char from[64], to[64];
	struct import_stats st;
	struct error err;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	const int fd = memory_file("import", from, sizeof(from));
	if (size && write(fd, data, size) != (ssize_t)size)
		abort();
	const int out = memory_file("trace", to, sizeof(to));
	FILE *file = fopen(to, "w+");
	if (!file || !nowhere)
		abort();
	if (!import_stream(from, file, &st, &err))
		read_trace(to);
	else if (!*err.text)
		abort();
	fclose(file);
	close(out);
	close(fd);
	return 0;
}
