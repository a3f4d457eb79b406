/*
 * Finds the real functions of cuBLAS, cuBLASLt and cuDNN (api/library.tbl) and opens a range around
 * each call.
 *
 * A process may have several copies of such a library, and a handle is valid only in the copy that
 * made it. With one copy its functions stand in hook_real. With more, hook_real is empty and each
 * call looks up the copy that its caller would have reached. The copies are counted at each call
 * that makes a handle (rule "open").
 */
#pragma once

#include "event/level.h"
#include "hook/core/elf.h"
#include "hook/core/process.h"
#include "hook/core/hook_table.h"

struct library {
	const char *name;   /* "cublas" */
	const char *opener; /* the function that makes a handle: who has it is a copy … */
	const char *parts; /* … unless its name begins so: libcudnn hands calls on to its parts */
};
extern const struct library libraries[LIBRARIES];
extern const unsigned char library_of[HOOK_COUNT - FN_COUNT]; /* enum library_id */

/* Questions to a library about the descriptors of a call; NULL when it can't be asked. */
enum library_question { ASK_LAYOUT, ASK_MATMUL, ASK_TENSOR, ASK_FILTER, LIBRARY_QUESTIONS };
extern _Atomic(void *) library_ask[LIBRARY_QUESTIONS];

/* The real function for this caller.  Never NULL: one that nobody has answers that the library is
 * not initialised. */
void *library_real(unsigned fn, const void *caller);

/* Looks for the library of a function in what is loaded. */
void library_look(unsigned fn);

/* The auditor has seen the function in an object that we may not see. */
void library_bound_by_audit(unsigned fn, const struct elf *e);

/*
 * LIBRARY_ENTRY(NAME) is what the program calls.  It needs no argument, so it touches none: with
 * nothing wanted and the real function known it jumps there, else to recorded_NAME().  In C each
 * argument on the stack would be copied onto itself.
 */
#if defined(__x86_64__)
#include "hook/range/entry_x86_64.h"
#elif defined(__aarch64__)
#include "hook/range/entry_aarch64.h"
#endif
#define LIBRARY_SLOT(name) (LIBRARY_##name * sizeof(void *)) /* in hook_real */
#define LIBRARY_WANTED     ((1u << CLASS_COUNT) - 1)
_Static_assert(offsetof(struct hot_line, control) == 0, "LIBRARY_ENTRY");

/* Begins the range of a call; args as of shape.h.  Returns what range_pop() ends it by. */
uint32_t library_enter(unsigned fn, uint32_t args);
