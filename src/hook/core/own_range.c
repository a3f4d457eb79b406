/* Ranges of the injected library itself: see own_range.h. */
#include "hook/core/own_range.h"

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/strings.h"
#include "hook/core/process.h"
#include "record/writer.h"

uint64_t own_range_begin(uint16_t kind, const char *name)
{
	_Static_assert(offsetof(struct range, valid) == offsetof(struct range, kind) + 2, "a word");
	uint64_t id = 0;
	struct range *g = span_reserve(&hook_recorder, &id);
	if (!g)
		return 0;
	g->ticks = clock_now();
	g->tid = (uint32_t)sys(gettid);
	g->name = string_id(name, strlen(name));
	store_release((_Atomic uint32_t *)(void *)&g->kind, kind | (uint32_t)RANGE_OPEN << 16);
	return id;
}

void own_range_end(uint64_t id)
{
	struct range *g = id ? span_find(id) : NULL;
	if (!g)
		return;
	const uint64_t now = clock_now();
	g->dur = now > g->ticks ? now - g->ticks : 0;
	store_release(shared(&g->valid), 0);
}
