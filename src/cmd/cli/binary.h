/*
 * Reads from a program's ELF headers, without running it, whether a library can be preloaded into
 * it. The caller owns everything, and any thread may call.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum binary_kind {
	BINARY_DYNAMIC, /* of this machine, 64-bit, started by a dynamic linker */
	BINARY_STATIC,  /* the same without one: nothing can be preloaded */
	BINARY_SCRIPT,  /* begins with #! */
	BINARY_FOREIGN, /* ELF of another machine or of 32 bits */
	BINARY_UNKNOWN, /* no ELF file at all */
};

struct binary {
	char path[PATH_MAX];
	enum binary_kind kind;
	char interpreter[PATH_MAX]; /* the dynamic linker, or what a script names */
	bool privileged;            /* setuid, setgid or with file capabilities */
	char runtime[64];           /* the libcudart that it needs, "" when none */
	bool needs_driver;          /* is linked to libcuda.so.1 */
	bool needs_tsan;            /* is linked to ThreadSanitizer's runtime, as gcc does it */
	bool has_kernels;           /* carries device code */
};

/* Finds the program as execvp() does and looks at it.  0 or -errno. */
int binary_look(const char *program, struct binary *ret_b);

/* Why the injected library can't work in it, as what follows its name in a sentence; NULL: it can.
 */
const char *binary_why_closed(const struct binary *b);
