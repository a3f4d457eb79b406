/*
 * Receives the tasks that a program reports to Intel's tools through ITT.
 *
 * ITT loads the library in INTEL_LIBITTNOTIFY64 at its first domain or task. It calls
 * __itt_api_init() there with a list of function names and the pointers that the program calls
 * through. We fill in three and switch the rest off. Each shared object with ITT does this for
 * itself, and only PyTorch's tasks matter here. Layouts follow ittnotify_config.h and ittnotify.h,
 * version 3.
 *
 * PyTorch registers a text anew for each task, so our handle is the text's number in the trace.
 * Older handles belong to the program's own part and contain the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/core/call.h"
#include "hook/range/capture.h"
#include "hook/range/operator.h"
#include "hook/range/range.h"
#include "hook/core/strings.h"

#define PUBLIC __attribute__((visibility("default")))

/* The task that python/weir begins to see whether we are there: it is in no trace. */
#define TRIAL "weir"
static _Atomic bool tried;

struct api { /* __itt_api_info */
	const char *name;
	void **place;
	void *first;  /* what stands there before a collector comes */
	void *unused; /* what stands there when a collector does not want it; NULL: no call */
	int group;
};

struct global { /* ___itt_global, as far as it is read */
	unsigned char magic[8];
	unsigned long major, minor, build;
	long initialized, mutex_initialized, counter;
	char mutex[40]; /* pthread_mutex_t */
	void *library, *error_handler;
	const char **library_path;
	struct api *list;
};
_Static_assert(offsetof(struct global, list) == 120, "ittnotify_config.h");

struct domain { /* ___itt_domain */
	int flags;
	const char *name;
};

struct text { /* ___itt_string_handle */
	const char *ascii;
};

struct id { /* ___itt_id: on the stack, being of three words */
	uint64_t d1, d2, d3;
};

/* A handle of ours: the text's number, whether it names an operator or a part of the run that is
 * recorded, and that it is ours. */
#define OURS     1u
#define OPERATOR 2u
#define PART     4u
#define NUMBER   3 /* bits to the right of it */

/* The number 0: a task that is not kept. */
static uintptr_t handle_of(const char *text)
{
	const bool part = text && capture_ranges_are_asked() &&
			  capture_range_is(text, strnlen(text, STRING_MOST));
	if (!text || (!ranges_wanted() && !(part && hook_recorder.header)))
		return OURS;
	if (!strcmp(text, TRIAL)) {
		store_release(&tried, true);
		return OURS;
	}
	const size_t bytes = strnlen(text, STRING_MOST);
	const uint32_t number = string_id(text, bytes);
	return (uintptr_t)number << NUMBER | OURS | (part ? PART : 0) |
	       (operator_is(text, bytes, number) ? OPERATOR : 0);
}

static void *text_create(const char *text)
{
	return (void *)handle_of(text);
}

static bool is_torch(const struct domain *domain)
{
	static _Atomic(const struct domain *) known;
	if (domain == load_relaxed(&known))
		return domain;
	if (!domain || !domain->name || strcmp(domain->name, "PyTorch") != 0)
		return false;
	store_relaxed(&known, domain);
	return true;
}

static void task_begin(
	const struct domain *domain, struct id task, struct id parent, const struct text *text)
{
	if (!is_torch(domain))
		return;
	const bool ours = !text || (uintptr_t)text & OURS;
	const uintptr_t handle = ours ? (uintptr_t)text : handle_of(text->ascii);
	if (capture_ranges_are_asked())
		capture_range_push(domain, handle & PART);
	if (!(handle >> NUMBER) || !ranges_wanted()) {
		range_push(NULL);
		return;
	}
	range_push(&(struct range_text){ .name = (uint32_t)(handle >> NUMBER),
		.kind = handle & OPERATOR ? RANGE_OPERATOR : RANGE_ANNOTATION });
}

static void task_end(const struct domain *domain)
{
	if (!is_torch(domain))
		return;
	range_pop(0);
	if (capture_ranges_are_asked())
		capture_range_pop(domain);
}

static const struct {
	const char *name;
	void *function;
} taken[] = {
	{ "__itt_string_handle_create", text_create },
	{ "__itt_task_begin", task_begin },
	{ "__itt_task_end", task_end },
};

static void *find(const char *name)
{
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (!strcmp(name, taken[i].name))
			return taken[i].function;
	return NULL;
}

PUBLIC void __itt_api_init(struct global *global, int groups);
PUBLIC int weir_range_itt(void);

void __itt_api_init(struct global *global, int groups)
{
	static const unsigned char magic[] = { 0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30 };
	if (!global || memcmp(global->magic, magic, sizeof magic) != 0 || global->major != 3)
		return; /* what stands there stays, and does nothing */
	const bool keeps = ranges_are_kept();
	for (const struct api *a = global->list; a->name; a++) {
		void *const ours = keeps ? find(a->name) : NULL;
		*a->place = ours ? ours : a->unused;
	}
}

/* Whether the trial has come. */
int weir_range_itt(void)
{
	return load_acquire(&tried);
}
