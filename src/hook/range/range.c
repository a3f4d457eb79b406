/* See range.h.  The chain and its levels are explained at struct writer. */
#include "hook/range/range.h"

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/call.h"

#define SLOT_WORDS (sizeof(struct range) / 8)

/* The range at a place that the file names, where that is in this thread's own chunks.  A thread
 * that goes along the chain has made a mark (writer_mark), which goes with it: first the mark, then
 * the look. */
static struct range *stand_on(char *at)
{
	writer_remark(&hook_ranges, at);
	return writer_range(&hook_ranges, at);
}

static struct range *innermost(void)
{
	return stand_on(hook_ranges.open);
}

static char *place_around(const struct range *g)
{
	return (char *)(uintptr_t)load_relaxed(shared(&g->dur));
}

/* The one around an open range, on which the mark is. */
static struct range *around(const struct range *g)
{
	return g->valid & RANGE_OPEN ? stand_on(place_around(g)) : NULL;
}

void ranges_begin(void)
{
	process_start();
	hook_ranges.tid = (uint32_t)sys(gettid);
	if (hook_recorder.header)
		atomic_fetch_or_explicit(
			&hook_recorder.header->optional, FEATURE_DEVICE, memory_order_relaxed);
}

/* All but the word of kind and valid, which is stored last and says that the rest is there. */
static void fill(struct range *to, const struct range_text *text, uint32_t level)
{
	to->external = text->external;
	to->sequence = text->sequence;
	to->tid = hook_ranges.tid;
	to->name = text->name;
	to->args = text->args;
	to->scope = text->scope;
	to->reserved = level;
	to->ticks = clock_now();
}

static void commit(struct range *to, uint16_t kind, uint16_t valid)
{
	_Static_assert(offsetof(struct range, valid) == offsetof(struct range, kind) + 2, "a word");
	_Atomic uint32_t *const word = (_Atomic uint32_t *)(void *)&to->kind;
	store_release(word, kind | (uint32_t)valid << 16);
}

int range_push(const struct range_text *text)
{
	struct writer *w = &hook_ranges;
	const uint32_t level = w->depth++;
	struct range *to = text ? writer_reserve(&hook_recorder, w, SLOT_WORDS) : NULL;
	if (!to)
		return (int)level;
	fill(to, text, level);
	for (;;) { /* again when a handler pushed and did not pop */
		char *const old = w->open;
		to->dur = (uintptr_t)old;
		commit(to, text->kind, text->valid | RANGE_OPEN);
		if (cpu_swap(&w->open, old, (char *)to))
			break;
	}
	writer_unmark(w);
	return (int)level;
}

/* One that a handler pushed after the clock was read took no time. */
static void finish(struct range *g, uint64_t now)
{
	g->dur = now > g->ticks ? now - g->ticks : 0;
	g->reserved = 0;
	store_release(shared(&g->valid), (uint16_t)(g->valid & ~RANGE_OPEN));
}

#define CROSSED_MOST (1 << 20) /* a file that others write to may hold a circle */

/* Ends a range that others are open in: they are one less deep from now on.  It keeps its mark; who
 * looks for it has another. */
static void end_crossing(struct range *g, uint64_t now)
{
	writer_mark(&hook_ranges, NULL);
	struct range *in = innermost();
	for (int i = 0; in && in != g && i < CROSSED_MOST; i++, in = around(in)) {
		in->reserved--;
		if (place_around(in) != (char *)g)
			continue;
		in->dur = g->dur;
		finish(g, now);
		break;
	}
	writer_unmark(&hook_ranges);
}

static void end_innermost(struct writer *w, struct range *g, uint64_t now)
{
	if (cpu_swap(&w->open, (char *)g, (char *)writer_range(w, (const char *)g->dur)))
		finish(g, now);
	else /* a handler pushed and did not pop */
		end_crossing(g, now);
}

#define LOOK_MOST 256 /* ranges around: a program that never pops must not become slow */

static struct range *innermost_of(uint32_t scope)
{
	struct range *g = innermost();
	int i = 0;
	while (g && g->scope != scope && i++ < LOOK_MOST)
		g = around(g);
	return g && g->scope == scope ? g : NULL;
}

/*
 * The level says whether the range to be ended was kept.  One that lies deeper than what is open
 * now was left without a pop, by longjmp() say: it has ended by now.  False: there is none.
 */
static bool end_at(struct writer *w, uint32_t level, uint32_t scope, uint64_t now)
{
	struct range *top = innermost();
	for (; top && top->reserved > level; top = innermost())
		end_innermost(w, top, now);
	if (!top || top->reserved != level)
		return true;
	if (top->scope == scope) {
		end_innermost(w, top, now);
		return true;
	}
	struct range *g = innermost_of(scope);
	if (g)
		end_crossing(g, now);
	return g;
}

int range_pop(uint32_t scope)
{
	struct writer *w = &hook_ranges;
	const uint64_t now = clock_now();
	if (w->depth && !process_is_started())
		ranges_begin(); /* a child of a bare clone(): its parent's ranges are not its own */
	if (!w->depth)
		return -1;
	const uint32_t level = w->depth - 1;
	writer_mark(w, NULL);
	const bool ended = end_at(w, level, scope, now);
	writer_unmark(w);
	if (!ended)
		return -1;
	w->depth = level;
	return (int)level;
}

uint32_t range_args_around(void)
{
	uint32_t args = 0;
	writer_mark(&hook_ranges, NULL);
	const struct range *g = innermost();
	for (int i = 0; g && !args && i < LOOK_MOST; i++, g = around(g))
		args = g->kind == RANGE_ANNOTATION ? g->args : 0;
	writer_unmark(&hook_ranges);
	return args;
}

bool range_is_inside(uint32_t scope)
{
	writer_mark(&hook_ranges, NULL);
	const struct range *g = innermost();
	int i = 0;
	while (g && g->kind != RANGE_OPERATOR && g->scope != scope && i++ < LOOK_MOST)
		g = around(g);
	writer_unmark(&hook_ranges);
	return g; /* so deep that nobody knows: inside */
}

void range_mark(const struct range_text *text)
{
	struct range *to = writer_reserve(&hook_recorder, &hook_ranges, SLOT_WORDS);
	if (!to)
		return;
	fill(to, text, 0);
	commit(to, text->kind, text->valid);
	writer_unmark(&hook_ranges);
}

uint64_t range_start(const struct range_text *text)
{
	uint64_t id = 0;
	struct range *to = span_reserve(&hook_recorder, &id);
	if (!to)
		return 0;
	fill(to, text, 0);
	commit(to, text->kind, text->valid | RANGE_OPEN);
	return id;
}

/* Two threads may end one range: either's time will do. */
void range_stop(uint64_t id)
{
	const uint64_t now = clock_now();
	struct range *g = process_is_started() ? span_find(id) : NULL; /* no parent's */
	if (g && g->kind && g->valid & RANGE_OPEN)
		finish(g, now);
}
