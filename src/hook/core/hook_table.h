/*
 * The hooked functions: name and wrapper by id, made from api/ at build time, and where the
 * real ones are, found while the program runs.  Ids from FN_COUNT on are those of libraries above
 * CUDA (library.h): they leave ranges, no records, and are in no trace's schema.
 */
#pragma once

#include "base/atomic.h"
#include "fn_ids.h"
#include "library_ids.h"

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

/* The real function by its table name, typed by its first use. */
#define REAL(name, ...) ((int (*)(__VA_ARGS__))real_at(FN_##name))

/* Finds the real fn for `caller`.  Never NULL: a function that nobody has answers
 * CUDA_ERROR_STUB_LIBRARY, as the toolkit's own stub does. */
void *resolve(enum fn fn, const void *caller);

/* The id of a name, or FN_NONE. */
enum fn fn_of_name(const char *name);

/* The wrapper that stands for this address, or NULL when it is no function that we know. */
void *wrapper_of(const void *real);
