/*
 * The tests of the simulated driver share this: cmocka, the driver's prototypes, a small PTX
 * module, and running a piece of a test in a fresh process with a WEIR_SIM of its own.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "sim_enums.h"
#include "sim_exports.h"

#define OK(call)          assert_int_equal(call, 0)
#define FAILS(code, call) assert_int_equal(call, code)

/* In a child process: ends it with the line number where something is not as it should be. */
#define CHILD_EXPECT(x)                                                                            \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static const char test_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			       ".global .align 4 .u32 counter;\n"
			       "// a comment with .entry in it\n"
			       ".visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)\n"
			       ".maxntid 256, 1, 1\n"
			       "{\n\t.shared .align 8 .b8 tile[512];\n\tret;\n}\n"
			       ".visible .entry empty()\n{\n\tret;\n}\n";

/* A context for the tests of one program. */
static inline void *test_context(void)
{
	static void *ctx;

	if (!ctx) {
		OK(cuInit(0));
		OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	}
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline void *test_function(const char *name)
{
	void *module, *function;

	test_context();
	OK(cuModuleLoadData(&module, (void *)test_ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static inline int test_launch(void *function, unsigned blocks, unsigned threads, void *stream)
{
	return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, NULL, NULL);
}

/* Runs body in a child whose WEIR_SIM is script; fails when the child does. */
static inline int run_scripted(const char *script, void (*body)(void))
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (script)
			setenv("WEIR_SIM", script, 1);
		else
			unsetenv("WEIR_SIM");
		body();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

#define SCRIPTED(script, body) assert_int_equal(run_scripted(script, body), 0)
