/*
 * Imports whatever comes, as a file in memory, and reads the trace that is made of it: JSON, gzip
 * or SQLite, as the first bytes say.
 *
 * A thousand inputs a second: the schema that goes into each trace, and is read again out of it, is
 * a small one of its own instead of the thousand functions of api/, and a report is made of some
 * inputs only, chosen by what they hold.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "event/schema.h"
#include "import/import.h"
#include "report/memory_print.h"
#include "report/report_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stands in front of that of the library.  Another function that an input names is added by the
 * import. */
const char schema_text[] =
	"1 driver launch launch cuLaunchKernel(CUfunction f, uint x, CUstream hStream)\n"
	"2 driver memory alloc:p=0:n=1:m=device cuMemAlloc_v2(out CUdeviceptr dptr, size_t bytesize)\n"
	"3 driver memory free:p=0:m=device cuMemFree_v2(CUdeviceptr dptr)\n"
	"4 runtime memory call cudaMalloc(out ptr devPtr, size_t size)\n"
	"5 runtime copy call cudaMemcpyAsync(void* dst, void* src, size_t count, cudaStream_t stream)\n"
	"6 runtime launch rtlaunch cudaLaunchKernel(void* func, dim3 gridDim)\n"
	"7 runtime launch call cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)\n"
	"8 runtime sync call cudaStreamSynchronize(cudaStream_t stream)\n"
	"type ptr ptr 8\ntype void* ptr 8\ntype size_t uint 8\ntype uint uint 4\ntype dim3 dim3 12\n"
	"type CUfunction ptr 8\ntype CUstream ptr 8\ntype CUdeviceptr ptr 8\n"
	"type cudaStream_t ptr 8\ntype cudaGraphExec_t ptr 8\n";
const unsigned schema_text_bytes = sizeof schema_text - 1;

#define REPORTED 16 /* one input in so many */

static FILE *nowhere;

static int memory_file(const char *name, char path[64])
{
	const int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void read_report(const struct trace *t)
{
	struct report *r;
	struct error err;
	if (report_make(t, 1, FACETS_BUT_HINTS, &r, &err) || r->damaged_chunks || r->meta.damaged)
		abort();
	report_print_text(r, nowhere, &(struct report_style){ .rows = 5 });
	report_print_json(r, nowhere, false);
	memory_print_text(r, nowhere, 5, false, true);
	memory_print_json(r, nowhere, false);
	report_free(r);
}

/* Reads the trace that was just written. */
static void read_trace(const char *path, bool report)
{
	struct trace *t;
	struct error err;
	if (trace_open(path, &t, &err) || t->damage_count || t->schema.bad_lines)
		abort();
	if (report)
		read_report(t);
	trace_close(t);
}

static bool is_reported(const uint8_t *data, size_t size)
{
#ifdef FUZZ_REPLAY
	return true;
#else
	return hash_fnv32(data, size) % REPORTED == 0;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char from[64], to[64];
	struct import_stats st;
	struct error err;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	const int in = memory_file("import", from), out = memory_file("trace", to);
	FILE *file = fdopen(out, "w+");
	if (!file || !nowhere || write(in, data, size) != (ssize_t)size)
		abort();
	if (!import_stream(from, file, &st, &err))
		read_trace(to, is_reported(data, size));
	else if (!*err.text)
		abort();
	fclose(file);
	close(in);
	return 0;
}
