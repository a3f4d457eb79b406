/*
 * Which calls weir trace shows: by function (-e), kernel, time in the call and process.  A call is
 * shown when it passes all kinds that are given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "cmd/cli/command.h"
#include "event/format.h"
#include "event/schema.h"

/* One word of -e: calls, a class of calls, or failing calls; to show or to leave out. */
struct filter_word {
	char *word;
	bool exclude;
};

struct call_filter {
	ARRAY(struct filter_word) words;
	bool any_include;
	const struct options *options; /* the kernels and processes of the command line */
	uint64_t least_ns;
};

/* From the options.  0, or an exit code after complaining; call_filter_fini() in either case. */
int call_filter_take(struct call_filter *f, const struct schema *schema, const struct options *o);
void call_filter_fini(struct call_filter *f);

bool call_filter_function(
	const struct call_filter *f, const struct schema_fn *fn, const struct record *r);

/* A kernel's name, as the program has it and demangled; NULL: the call launches none. */
bool call_filter_kernel(const struct call_filter *f, const char *mangled, const char *demangled);

/* program: the path of its program, NULL: not known. */
bool call_filter_process(const struct call_filter *f, uint32_t pid, const char *program);
