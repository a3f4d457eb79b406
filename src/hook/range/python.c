/*
 * The functions that python/weir calls for ranges of modules and lines. A range's text is defined
 * once and pushed by its number, which keeps the call from Python cheap. The numbers begin anew
 * after a fork.
 */

#include <string.h>

#include "base/atomic.h"
#include "hook/core/call.h"
#include "hook/core/pages.h"
#include "hook/core/strings.h"
#include "hook/range/capture.h"
#include "hook/range/operator.h"
#include "hook/range/range.h"
#include "hook/time/collector.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC uint32_t weir_range_string(const char *text);
PUBLIC uint32_t weir_range_define(uint32_t kind, uint32_t scope, uint32_t name, uint32_t args);
PUBLIC void weir_range_push(uint32_t number);
PUBLIC void weir_range_pop(uint32_t scope);
PUBLIC int weir_range_inside(uint32_t scope);
PUBLIC void weir_collect(void);

static _Atomic uint32_t part_name; /* of the ranges in which recording is on; 0: none has come */

/*
 * The number of a text in this process's part of the trace; 0: nothing is being recorded.  For
 * NULL: whether anything is, without a sign of it in the trace.
 */
uint32_t weir_range_string(const char *text)
{
	if (!ranges_are_kept() || !text)
		return ranges_are_kept();
	ranges_wanted(); /* opens the trace */
	if (!hook_recorder.header)
		return 0;
	const size_t bytes = strnlen(text, STRING_MOST);
	const uint32_t id = string_id(text, bytes);
	if (capture_ranges_are_asked() && capture_range_is(text, bytes))
		store_relaxed(&part_name, id);
	operator_set_args(id, text, bytes);
	return id;
}

#define DEFINED (1u << 16)
static struct {
	_Atomic uint32_t kind, scope, name, args;
} defined[DEFINED] OWN_PAGES;
static _Atomic uint32_t used;

void python_forget(void)
{
	atomic_store_explicit(&used, 0, memory_order_seq_cst);
	store_relaxed(&part_name, 0);
	DROP(defined);
}

/* 0: there is no room for more, and such ranges are lost. */
uint32_t weir_range_define(uint32_t kind, uint32_t scope, uint32_t name, uint32_t args)
{
	if (!kind || kind >= RANGE_CAPTURE) /* which only recording itself makes */
		return 0;
	ranges_wanted(); /* a forked child forgets its parent's numbers */
	if (atomic_load_explicit(&used, memory_order_seq_cst) >= DEFINED)
		return 0;
	const uint32_t at = atomic_fetch_add_explicit(&used, 1, memory_order_seq_cst);
	if (at >= DEFINED)
		return 0;
	store_relaxed(&defined[at].scope, scope);
	store_relaxed(&defined[at].name, name);
	store_relaxed(&defined[at].args, args);
	store_release(&defined[at].kind, kind);
	return at + 1;
}

/* Scopes are numbers: no address of a domain. */
static const void *domain_of(uint32_t scope)
{
	return (const void *)(uintptr_t)(1ull << 63 | scope);
}

static void watch_push(uint32_t number)
{
	if (!number || number > DEFINED ||
		number > atomic_load_explicit(&used, memory_order_seq_cst))
		return;
	const uint32_t name = load_relaxed(&part_name);
	capture_range_push(domain_of(load_relaxed(&defined[number - 1].scope)),
		name && load_relaxed(&defined[number - 1].name) == name);
}

void weir_range_push(uint32_t number)
{
	if (capture_ranges_are_asked())
		watch_push(number);
	if (!ranges_wanted()) {
		range_push(NULL);
		return;
	}
	if (!number || number > DEFINED ||
		number > atomic_load_explicit(&used, memory_order_seq_cst)) {
		add_relaxed(&hook_recorder.header->lost_ranges, 1);
		range_push(NULL);
		return;
	}
	range_push(&(struct range_text){ .kind = (uint16_t)load_relaxed(&defined[number - 1].kind),
		.scope = load_relaxed(&defined[number - 1].scope),
		.name = load_relaxed(&defined[number - 1].name),
		.args = load_relaxed(&defined[number - 1].args) });
}

void weir_range_pop(uint32_t scope)
{
	range_pop(scope);
	if (capture_ranges_are_asked())
		capture_range_pop(domain_of(scope));
}

int weir_range_inside(uint32_t scope)
{
	return range_is_inside(scope);
}

/* Puts the times of what has ended on the GPU into the trace, for a notebook that reads it now. */
void weir_collect(void)
{
	device_times_hand_out();
}
