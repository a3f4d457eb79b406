/* See problem.h.  The kernels are PTX, which the driver compiles. */
#include "problem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFINE(name, symbol, parameters) int(*name) parameters;
DRIVER(DEFINE)

enum { RING_BYTES = 4 << 20, ATTRIBUTE_MULTIPROCESSORS = 16 };

bool fixed;
void *stream;

static const char *program = "problem";
static void *module;
static int device;
static device_pointer ring;
static struct timespec begun;

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* %i: the thread's number in the grid; %w: its warp's. */
#define THREAD                                                                                     \
	"	mov.u32 %i, %ctaid.x;\n"                                                                 \
	"	mov.u32 %w, %ntid.x;\n"                                                                  \
	"	mul.lo.u32 %i, %i, %w;\n"                                                                \
	"	mov.u32 %w, %tid.x;\n"                                                                   \
	"	add.u32 %i, %i, %w;\n"                                                                   \
	"	shr.u32 %w, %i, 5;\n"

#define FMA "	fma.rn.f32 %x, %x, %y, %y;\n"

static const char multiply_add[] =
	".visible .entry multiply_add(.param .u64 out, .param .u32 rounds)\n"
	"{\n"
	"	.reg .pred %p; .reg .f32 %x, %y; .reg .b32 %k, %n; .reg .b64 %o;\n"
	"	ld.param.u64 %o, [out];\n"
	"	ld.param.u32 %n, [rounds];\n"
	"	mov.u32 %k, %tid.x;\n"
	"	cvt.rn.f32.u32 %x, %k;\n"
	"	mov.f32 %y, 0f3F7FFFF0;\n"
	"	mov.u32 %k, 0;\n"
	"again:\n" FMA FMA FMA FMA FMA FMA FMA FMA "	add.u32 %k, %k, 1;\n"
	"	setp.lt.u32 %p, %k, %n;\n"
	"	@%p bra again;\n"
	"	setp.eq.f32 %p, %x, 0fFF7FFFFF;\n"
	"	@!%p bra done;\n" /* always: but no compiler knows */
	"	st.global.f32 [%o], %x;\n"
	"done:\n"
	"	ret;\n"
	"}\n";

/* The ring holds zeros, which no compiler knows: each step's address hangs on the load before. */
#define CHASE                                                                                      \
	"	mov.u32 %k, 0;\n"                                                                        \
	"again:\n"                                                                                 \
	"	mad.lo.u32 %w, %w, 1664525, 1013904223;\n"                                               \
	"	and.b32 %i, %w, 4194272;\n"                                                              \
	"	cvt.u64.u32 %a, %i;\n"                                                                   \
	"	add.u64 %a, %a, %o;\n"                                                                   \
	"	ld.global.cg.u32 %v, [%a];\n"                                                            \
	"	add.u32 %w, %w, %v;\n"                                                                   \
	"	add.u32 %k, %k, 1;\n"                                                                    \
	"	setp.lt.u32 %p, %k, %n;\n"                                                               \
	"	@%p bra again;\n"

#define CHASE_BEGIN                                                                                \
	"	.reg .pred %p; .reg .b32 %i, %k, %n, %v, %w; .reg .b64 %a, %o;\n"                        \
	"	ld.param.u64 %o, [from];\n"                                                              \
	"	ld.param.u32 %n, [rounds];\n" THREAD

static const char chase[] = ".visible .entry chase(.param .u64 from, .param .u32 rounds)\n"
			    "{\n" CHASE_BEGIN CHASE "	setp.eq.u32 %p, %w, 1;\n"
			    "	@!%p bra done;\n"
			    "	st.global.u32 [%o], %w;\n"
			    "done:\n"
			    "	ret;\n"
			    "}\n";

/* chase with `values` numbers that are loaded before and needed after. */
static void write_wide(FILE *out, const char *name, int values)
{
	fprintf(out, ".visible .entry %s(.param .u64 from, .param .u32 rounds)\n{\n%s", name,
		CHASE_BEGIN);
	fprintf(out, "	.reg .b32 %%h<%d>;\n", values);
	for (int i = 0; i < values; i++)
		fprintf(out, "	ld.volatile.global.u32 %%h%d, [%%o+%d];\n", i, i * 4);
	fputs(CHASE, out);
	for (int i = 0; i < values; i++)
		fprintf(out, "	mad.lo.u32 %%w, %%w, %%w, %%h%d;\n", i);
	fputs("	setp.eq.u32 %p, %w, 1;\n	@!%p bra done;\n	st.global.u32 [%o], %w;\n"
	      "done:\n	ret;\n}\n",
		out);
}

/* chase behind a barrier, whose number is a register's or a constant. */
static void write_barrier(FILE *out, const char *name, bool constant)
{
	fprintf(out, ".visible .entry %s(.param .u64 from, .param .u32 rounds)\n{\n%s", name,
		CHASE_BEGIN);
	fprintf(out, "	ld.volatile.global.u32 %%k, [%%o];\n	bar.sync %s;\n",
		constant ? "0" : "%k");
	fputs(CHASE, out);
	fputs("	setp.eq.u32 %p, %w, 1;\n	@!%p bra done;\n	st.global.u32 [%o], %w;\n"
	      "done:\n	ret;\n}\n",
		out);
}

struct pointwise {
	const char *name, *operation;
};
static const struct pointwise pointwise[] = {
	{ "scale", "mul.f32 %x, %x, 0f3F800010;\n" },
	{ "add", "add.f32 %x, %x, 0f3F000000;\n" },
	{ "square", "mul.f32 %x, %x, %x;\n" },
	{ "negate", "neg.f32 %x, %x;\n" },
	{ "halve", "mul.f32 %x, %x, 0f3F000000;\n" },
	{ "shift", "sub.f32 %x, %x, 0f3E800000;\n" },
	{ "clamp", "min.f32 %x, %x, 0f3F800000;\n" },
	{ "mix", "fma.rn.f32 %x, %x, 0f3E000000, %x;\n" },
};
enum { OPERATIONS = sizeof(pointwise) / sizeof(pointwise[0]) };

static void write_pointwise(FILE *out, const char *name, int first, int count)
{
	fprintf(out,
		".visible .entry %s(.param .u64 data, .param .u32 count)\n{\n"
		"	.reg .pred %%p; .reg .f32 %%x; .reg .b32 %%i, %%n, %%w; .reg .b64 %%a, "
		"%%o;\n"
		"	ld.param.u64 %%o, [data];\n	ld.param.u32 %%n, [count];\n%s"
		"	setp.ge.u32 %%p, %%i, %%n;\n	@%%p bra done;\n"
		"	mul.wide.u32 %%a, %%i, 4;\n	add.u64 %%a, %%a, %%o;\n"
		"	ld.global.f32 %%x, [%%a];\n",
		name, THREAD);
	for (int i = first; i < first + count; i++)
		fprintf(out, "	%s", pointwise[i].operation);
	fputs("	st.global.f32 [%a], %x;\ndone:\n	ret;\n}\n", out);
}

static char *write_module(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		problem_check(2, "open_memstream");
	fputs(HEAD, out);
	fputs(multiply_add, out);
	fputs(chase, out);
	write_wide(out, "chase_24", 24);
	write_wide(out, "chase_44", 44);
	write_wide(out, "chase_76", 76);
	write_barrier(out, "chase_register", false);
	write_barrier(out, "chase_constant", true);
	for (int i = 0; i < OPERATIONS; i++)
		write_pointwise(out, pointwise[i].name, i, 1);
	write_pointwise(out, "all_eight", 0, OPERATIONS);
	fclose(out);
	return text;
}

void problem_check(int code, const char *what)
{
	const char *name = "unknown error";
	if (code == 0)
		return;
	if (error_name)
		error_name(code, &name);
	fprintf(stderr, "%s: %s: %s\n", program, what, name);
	exit(1);
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s: %s\n", program, dlerror());
		exit(1);
	}
#define RESOLVE(name, symbol, parameters)                                                          \
	*(void **)&name = dlsym(library, symbol);                                                  \
	if (!name) {                                                                               \
		fprintf(stderr, "%s: the driver has no %s\n", program, symbol);                    \
		exit(1);                                                                           \
	}
	DRIVER(RESOLVE)
}

void problem_open(int argc, char **argv)
{
	void *context;
	program = argv[0];
	fixed = argc == 2 && !strcmp(argv[1], "--fixed");
	if (argc > 2 || (argc == 2 && !fixed)) {
		fprintf(stderr, "usage: %s [--fixed]\n", program);
		exit(2);
	}
	open_driver();
	CHECK(init(0));
	CHECK(device_get(&device, 0));
	CHECK(context_retain(&context, device));
	CHECK(context_set(context));
	char *ptx = write_module();
	CHECK(module_load(&module, ptx));
	free(ptx);
	CHECK(stream_create(&stream, STREAM_NON_BLOCKING));
	CHECK(alloc(&ring, RING_BYTES));
	CHECK(fill(ring, 0, RING_BYTES));
}

unsigned problem_multiprocessors(void)
{
	int count;
	CHECK(device_attribute(&count, ATTRIBUTE_MULTIPROCESSORS, device));
	return (unsigned)count;
}

unsigned problem_resident(void *kernel, unsigned threads, unsigned shared_bytes)
{
	int blocks;
	CHECK(occupancy(&blocks, kernel, (int)threads, shared_bytes));
	return (unsigned)blocks * problem_multiprocessors();
}

void *problem_kernel(const char *name)
{
	void *function;
	CHECK(get_function(&function, module, name));
	return function;
}

void problem_compute(void *kernel, unsigned grid, unsigned block, unsigned rounds, void *on)
{
	void *parameters[] = { &ring, &rounds };
	CHECK(launch_kernel(kernel, grid, 1, 1, block, 1, 1, 0, on, parameters, NULL));
}

void problem_chase(
	void *kernel, unsigned grid, unsigned block, unsigned shared_bytes, unsigned rounds)
{
	void *parameters[] = { &ring, &rounds };
	CHECK(launch_kernel(
		kernel, grid, 1, 1, block, 1, 1, shared_bytes, stream, parameters, NULL));
}

void problem_pointwise(void *kernel, device_pointer data, unsigned count)
{
	void *parameters[] = { &data, &count };
	CHECK(launch_kernel(
		kernel, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
}

void problem_begin(void)
{
	CHECK(context_wait());
	clock_gettime(CLOCK_MONOTONIC, &begun);
}

static double us_since(const struct timespec *t)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) * 1e6 + (double)(now.tv_nsec - t->tv_nsec) / 1e3;
}

void problem_end(void)
{
	CHECK(context_wait());
	printf("hot %.1f us\n", us_since(&begun));
}

void problem_think(unsigned us)
{
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (us_since(&from) < us)
		;
}
