/* The code that functions of include/weir/sched.h share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/handle.h"

/* A program's structure of `size` bytes into `to`: what it lacks is 0.  False: it is older than the
 * first version, or says something in members that this library does not know. */
bool sized_read(void *to, size_t known, const void *from);

/* The other way; its size stays. */
bool sized_is_known(const void *structure, size_t known);
void sized_write(void *to, const void *from, size_t known);

/* The slots of this process in the handle's directory: WEIR_OK with at least one, or why not. */
struct own_slots {
	const struct injected *injected;
	struct share_file *file;
	uint32_t count;
	uint32_t slot[SHARE_DEVICES];
};
int own_slots_find(struct handle *h, struct own_slots *ret);

/* The injected library in this process, found by name (injected.c): its half of libweirapi is in
 * src/hook/sched/requests.c, that of weir serve in src/hook/range/serve_range.c. */
struct served_request;
struct trace_header;

/* X(member, result, parameters): weir_hook_MEMBER. The three served_ ones are for weir serve. */
#define INJECTED_FUNCTIONS(X)                                                                      \
	X(deadline, void, (uint64_t ns))                                                           \
	X(deadline_now, uint64_t, (void))                                                          \
	X(request_begin, uint64_t, (uint64_t deadline_ns))                                         \
	X(request_end, int, (uint64_t name))                                                       \
	X(requests_by_work, void, (void))                                                          \
	X(share_directory, const char *, (void))                                                   \
	X(slot, int, (uint32_t number, uint32_t * ret_slot))                                       \
	X(served_batch, void, (const char *model, uint64_t number))                                \
	X(served_batch_end, void, (void))                                                          \
	X(served_request, void, (const struct served_request *request, const char *model))         \
	X(trace, struct trace_header *, (void))

struct injected {
#define INJECTED_MEMBER(name, result, parameters) result(*name) parameters;
	INJECTED_FUNCTIONS(INJECTED_MEMBER)
#undef INJECTED_MEMBER
};

/* NULL: it is not there, or of another version.  Found once: it is loaded before the program is. */
const struct injected *injected_find(void);

/* The same when this process shares a GPU through that directory, else NULL. */
const struct injected *injected_in(const char *directory);
