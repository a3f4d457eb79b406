/*
 * The hooked functions: name and wrapper by id, made from api/ at build time, and where the
 * real ones are, found while the program runs.  Ids from FN_COUNT on are those of libraries above
 * CUDA (library.h): they leave ranges, no records, and are in no trace's schema.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "fn_ids.h"
#include "library_ids.h"
#include "named_functions.h"

#define WRAPPER __attribute__((visibility("default")))

struct hooked {
	const char *name;
	void *wrapper;
};
extern const struct hooked hooked[HOOK_COUNT]; /* [0] is empty */

extern const unsigned char fn_classes[FN_COUNT];   /* enum fn_class */
extern const unsigned int fn_stack_bits[FN_COUNT]; /* CONTROL_STACK() of its group, or 0 */

/* The real functions by id; NULL until found.  Relaxed atomics: a value never changes once
 * set, except that the runtime's go back to NULL when a program has two runtimes. */
extern _Atomic(void *) hook_real[HOOK_COUNT];

/* NULL: it was not found yet. */
static inline void *real_at(enum fn fn)
{
	return load_relaxed(&hook_real[fn]);
}

/* The real function by its name in api/cuda.tbl; and by that of the legacy stream's, or of the
 * calling thread's own. */
#define REAL(name)                ((real_##name *)real_at(FN_##name))
#define REAL_OF(name, per_thread) ((per_thread) ? REAL(name##_ptsz) : REAL(name))

static inline bool all_found(const enum fn *fns, size_t n)
{
	while (n && real_at(fns[n - 1]))
		n--;
	return !n;
}
#define ALL_FOUND(fns) all_found(fns, sizeof fns / sizeof *fns)

/* Finds the real fn for `caller`.  Never NULL: a function that nobody has answers
 * CUDA_ERROR_STUB_LIBRARY, as the toolkit's own stub does. */
void *resolve(enum fn fn, const void *caller);

/* The id of a name, or FN_NONE. */
enum fn fn_of_name(const char *name);

/* The wrapper that stands for this address, or NULL when it is no function that we know. */
void *wrapper_of(const void *real);
