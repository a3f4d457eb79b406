/* Learns the layout of a kernel's parameters and reads the arguments of its launches. */
#include "hook/meta/params.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/core/hook_table.h"
#include "hook/meta/kernels.h"
#include "hook/core/metadata.h"
#include "hook/core/pages.h"
#include "hook/core/process.h"

enum { SUCCESS = 0, INVALID_VALUE = 1 }; /* CUresult */

#define ROOM_WORDS (1u << 18) /* of 8 bytes: 2 MiB, which cost nothing until they are used */
#define SLOTS      (1u << 14)
#define WINDOW     8u
#define PLACES     1024u /* the most parameters of one function that are looked at */

static uint64_t room[ROOM_WORDS];
static _Atomic uint32_t room_used;
static _Atomic uint32_t slots[SLOTS] OWN_PAGES; /* where in the room, counted from 1 */

/* Goes up whenever handles may have died.  Never 0, which no layout is of. */
static _Atomic uint32_t generation = 1;

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15u >> 50) & ~(WINDOW - 1);
}

static struct function *function_at(uint32_t slot)
{
	const uint32_t place = load_acquire(&slots[slot]);
	return place ? (struct function *)&room[place - 1] : NULL;
}

static struct function *find(uint64_t handle)
{
	const uint32_t first = slot_of(handle);
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct function *l = function_at(first + i);
		if (l && load_relaxed(&l->handle) == handle)
			return l;
	}
	return NULL;
}

static uint32_t words_of(uint32_t count)
{
	return (uint32_t)(sizeof(struct function) + count * sizeof(struct param_place) + 7) / 8;
}

/* Once a layout has found no room the driver is asked for no other: the answers could not be kept,
 * and each launch would ask again. */
static bool is_full(void)
{
	return load_relaxed(&room_used) >= ROOM_WORDS;
}

static void close_room(void)
{
	if (atomic_exchange_explicit(&room_used, ROOM_WORDS, memory_order_relaxed) < ROOM_WORDS)
		meta_message("there is no room for more functions: what those that come now are "
			     "given is not kept, and their times are not predicted");
}

/* Room for a layout; a signal handler may take some in the middle of it.  0: there is none. */
static uint32_t take_room(uint32_t count)
{
	const uint32_t words = words_of(count);
	uint32_t at = load_relaxed(&room_used);
	while (at + words <= ROOM_WORDS)
		if (replace_if(&room_used, &at, at + words, relaxed, relaxed))
			return at + 1;
	close_room();
	return 0;
}

/* In the slot of the same handle, else a free one, else the first: that function is asked about
 * again when it is launched. */
static void publish(uint64_t handle, uint32_t place)
{
	const uint32_t first = slot_of(handle);
	uint32_t to = first;
	for (uint32_t i = WINDOW; i-- > 0;) {
		const struct function *l = function_at(first + i);
		if (!l || load_relaxed(&l->handle) == handle)
			to = first + i;
		if (l && load_relaxed(&l->handle) == handle)
			break;
	}
	store_release(&slots[to], place);
}

typedef int ask_param(void *function, size_t index, size_t *ret_offset, size_t *ret_bytes);

static int ask(ask_param *with, uint64_t handle, uint32_t i, struct param_place *ret)
{
	size_t offset = 0, bytes = 0;
	const int result =
		with ? with((void *)(uintptr_t)handle, i, &offset, &bytes) : INVALID_VALUE;
	if (!result && offset + bytes > UINT16_MAX)
		return INVALID_VALUE;
	*ret = (struct param_place){ (uint16_t)offset, (uint16_t)bytes };
	return result;
}

/*
 * Launches take a CUfunction or a CUkernel, which are asked about differently.  NULL: neither
 * question is understood.  A function without parameters answers "invalid value" to the first.
 */
static ask_param *who_knows(uint64_t handle)
{
	ask_param *function = (ask_param *)real_at(FN_cuFuncGetParamInfo);
	ask_param *kernel = (ask_param *)real_at(FN_cuKernelGetParamInfo);
	struct param_place first;
	const int as_function = function ? ask(function, handle, 0, &first) : -1;
	if (as_function == SUCCESS)
		return function;
	const int as_kernel = kernel ? ask(kernel, handle, 0, &first) : -1;
	if (as_kernel == SUCCESS)
		return kernel;
	return as_function == INVALID_VALUE ? function : as_kernel == INVALID_VALUE ? kernel : NULL;
}

/* How many parameters there are, and whether they are those of `l`, which may be NULL. */
static uint32_t count_params(
	ask_param *with, uint64_t handle, const struct function *l, bool *ret_as)
{
	struct param_place p;
	uint32_t n = 0;
	*ret_as = l != NULL;
	for (; with && n < PLACES && !ask(with, handle, n, &p); n++)
		if (l && (n >= l->count || memcmp(&p, &l->place[n], sizeof p)))
			*ret_as = false;
	*ret_as = *ret_as && n == l->count && l->known == (with != NULL);
	return n;
}

static struct predict_kernel describe(uint64_t handle)
{
	uint32_t value[ATTRIBUTES] = { 0 };
	const uint32_t known = kernel_attributes(handle, value);
	const char *name = kernel_name(handle);
	struct predict_kernel k = {
		.regs = value[ATTRIBUTE_REGISTERS],
		.smem_static_bytes = value[ATTRIBUTE_STATIC_SHARED],
		.local_bytes = value[ATTRIBUTE_LOCAL],
		.has_regs = known >> ATTRIBUTE_REGISTERS & 1,
		.has_local = known >> ATTRIBUTE_LOCAL & 1,
	};
	predict_kernel_name(&k, name ? name : "", 0);
	return k;
}

static bool same_kernel(const struct predict_kernel *a, const struct predict_kernel *b)
{
	return a->id == b->id && a->regs == b->regs && a->local_bytes == b->local_bytes &&
	       a->smem_static_bytes == b->smem_static_bytes;
}

static const struct function *learn(uint64_t handle, struct function *before)
{
	const uint32_t now = load_acquire(&generation);
	if (!before && is_full())
		return NULL;
	ask_param *with = who_knows(handle);
	bool as_before;
	const uint32_t count = count_params(with, handle, before, &as_before);
	const struct predict_kernel kernel = describe(handle);
	if (as_before && same_kernel(&kernel, &before->kernel)) {
		store_release(&before->generation, now);
		return before;
	}
	const uint32_t place = take_room(count);
	if (!place) {
		if (before) /* another function now: not to be asked about again */
			store_relaxed(&before->handle, 0);
		return NULL;
	}
	struct function *l = (struct function *)&room[place - 1];
	*l = (struct function){ .kernel = kernel,
		.handle = handle,
		.generation = now,
		.count = (uint16_t)count,
		.known = with != NULL };
	for (uint32_t i = 0; i < count; i++)
		ask(with, handle, i, &l->place[i]);
	publish(handle, place);
	return l;
}

/* CU_LAUNCH_PARAM_…: pairs of what and its value, until the end. */
static const void *buffer_of(void *const *extra, size_t *ret_bytes)
{
	enum { END = 0, POINTER = 1, SIZE = 2, PAIRS = 8 };
	const void *buffer = NULL;
	*ret_bytes = 0;
	for (int i = 0; i < PAIRS && extra[2 * i] != (void *)END; i++) {
		if (extra[2 * i] == (void *)POINTER)
			buffer = extra[2 * i + 1];
		else if (extra[2 * i] == (void *)SIZE && extra[2 * i + 1])
			*ret_bytes = *(const size_t *)extra[2 * i + 1];
	}
	return buffer;
}

/* The facts of a function that has been launched; NULL when there is no room for them. */
static const struct function *params_function(uint64_t handle)
{
	const uint32_t now = load_acquire(&generation);
	struct function *f = find(handle);
	if (f && load_acquire(&f->generation) == now)
		return f;
	return learn(handle, f);
}

bool params_read(const struct function *f, void *const *params, void *const *extra,
	struct launch_args *ret_args)
{
	size_t bytes = 0;
	if (!f->known)
		return false;
	const void *buffer = !params && extra ? buffer_of(extra, &bytes) : NULL;
	if (params)
		args_of_pointers(ret_args, f->place, f->count, params);
	else if (buffer || !f->count)
		args_of_buffer(ret_args, f->place, buffer ? f->count : 0, buffer, bytes);
	else
		return false;
	return true;
}

void params_invalidate(uint64_t function)
{
	const uint32_t first = slot_of(function);
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct function *l = function_at(first + i);
		if (l && load_relaxed(&l->handle) == function)
			store_release(&l->generation, 0);
	}
}

void params_invalidate_all(void)
{
	if (atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel) == UINT32_MAX)
		store_release(&generation, 1);
}

void params_forget(void)
{
	DROP(slots);
	store_relaxed(&room_used, 0);
}

uint32_t params_given(uint32_t control, const struct launch_shape *s, void *const *params,
	void *const *extra, struct launch_given *ret_given)
{
	struct launch_given *g = ret_given;
	g->function = params_function((uintptr_t)s->what);
	if (!g->function)
		return 0;
	g->has_args = params_read(g->function, params, extra, &g->args);
	g->keep = g->has_args && control & CONTROL_ARGS;
	g->predict = control & CONTROL_PREDICT;
	return (g->keep ? args_words(&g->args) : 0) + g->predict;
}
