/*
 * Finds reserved memory over time, and the unused part of it.
 *
 * The first of three sources in the trace counts: an allocator's own statements, its segments, or
 * the pages of 2 MiB that contain a block. Live memory is that of the same allocator, or the
 * driver's blocks. Memory of handles (cuMemCreate) has no visible blocks and is left out.
 *
 * States are read when time passes, so changes at one time count once. If more is live than
 * reserved, the trace contradicts itself and nothing is known.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

#define PAGE_BITS    21
#define ADDRESS_MOST (1ull << 57)
#define MADE_UP_MOST 0x10000u /* addresses that an importer made up: no device has memory there */

const char *const reserved_source_name[] = { NULL, "allocator", "segments", "pages" };

struct change { /* of what is reserved */
	uint64_t ticks;
	uint64_t add, take; /* segments */
	uint64_t bytes;     /* an allocator's own word, for one device */
	uint32_t process, device;
};

struct said { /* by an allocator, of a device */
	uint64_t bytes;
	bool known;
};

struct unused_replay {
	const struct report *r;
	bool framework; /* blocks are those of an allocator above the driver */
	ARRAY(struct change) changes;
	size_t at;           /* the next */
	struct map said_map; /* process and device */
	ARRAY(struct said) said;
	size_t unsaid;       /* of them: not known yet */
	struct map page_map; /* process and page: how many blocks have a part of it */
	uint64_t reserved, live;
	uint64_t ticks; /* until then all is accounted for */
	uint32_t ops;
};

static bool is_framework(const struct report *r, uint16_t fn_id)
{
	return !schema_is_call(&r->trace->schema, fn_id);
}

ORDERING(change_order, struct change, ORDER(a->ticks, b->ticks), ORDER(a->process, b->process),
	ORDER(a->device, b->device))

static void take_notes(struct unused_replay *u, const struct memory_list *l)
{
	for (size_t i = 0; i < l->reserved_count; i++) {
		const struct reserved_note *n = &l->reserved[i];
		MAP_ROW(&u->said_map, MAP_KEY(n->process, n->device), &u->said,
			(struct said){ .known = false });
		*array_push(&u->changes) = (struct change){ .ticks = n->ticks,
			.bytes = n->bytes,
			.process = n->process,
			.device = n->device };
	}
	u->unsaid = u->said.n;
}

static void take_segments(struct unused_replay *u, const struct memory_list *lists, unsigned count)
{
	struct vmm_changes found = { 0 };
	vmm_segment_changes(lists, count, &found);
	for (size_t i = 0; i < found.n; i++)
		*array_push(&u->changes) = (struct change){
			.ticks = found.v[i].ticks, .add = found.v[i].add, .take = found.v[i].take
		};
	array_free(&found);
}

/* Whether blocks are an allocator's: those of the driver are then what it has reserved. */
static bool any_framework(const struct report *r, const struct memory_list *lists, unsigned count)
{
	for (unsigned l = 0; l < count; l++)
		for (size_t i = 0; i < lists[l].count; i++)
			if (is_framework(r, lists[l].ops[i].fn_id))
				return true;
	return false;
}

static void find_changes(struct unused_replay *u, struct memory_unused *to,
	const struct memory_list *lists, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		take_notes(u, &lists[i]);
	to->source = u->changes.n ? RESERVED_ALLOCATOR : RESERVED_SEGMENTS;
	if (!u->changes.n)
		take_segments(u, lists, count);
	if (!u->changes.n)
		to->source = RESERVED_PAGES;
	else
		qsort(u->changes.v, u->changes.n, sizeof *u->changes.v, change_order);
}

void unused_begin(struct report *r, const struct memory_list *lists, unsigned count)
{
	struct memory_detail *d = r->memory_detail;
	struct unused_replay *u = xcalloc(1, sizeof *u);
	d->unused_replay = u;
	u->r = r;
	u->ticks = d->first_ticks;
	u->framework = any_framework(r, lists, count);
	find_changes(u, &d->unused, lists, count);
}

void unused_end(struct memory_detail *d)
{
	struct unused_replay *u = d->unused_replay;
	if (!u)
		return;
	array_free(&u->changes, &u->said);
	map_fini(&u->said_map, &u->page_map);
	free(u);
	d->unused_replay = NULL;
}

static void apply(struct unused_replay *u, const struct change *c)
{
	const uint32_t i =
		u->said.n ? map_find(&u->said_map, MAP_KEY(c->process, c->device)) : MAP_NONE;
	uint64_t add = c->add, take = c->take;
	if (i != MAP_NONE) {
		expect(i < u->said.n, "the device that is spoken of is one of all");
		u->unsaid -= !u->said.v[i].known;
		take = u->said.v[i].bytes;
		add = c->bytes;
		u->said.v[i] = (struct said){ c->bytes, true };
	}
	u->reserved = sat_add(u->reserved - (take < u->reserved ? take : u->reserved), add);
}

static void count_page(struct unused_replay *u, uint32_t process, uint64_t page, bool is_free)
{
	uint32_t *blocks = map_get(&u->page_map, MAP_KEY(page, process));
	if (*blocks == MAP_NONE)
		*blocks = 0;
	expect(!is_free || *blocks, "a block that is freed had its pages");
	if (!is_free && !(*blocks)++)
		u->reserved += 1u << PAGE_BITS;
	else if (is_free && *blocks && !--*blocks)
		u->reserved -= 1u << PAGE_BITS;
}

/* The pages inside are the block's alone; others may lie on the first and the last. */
static void count_pages(struct unused_replay *u, const struct memory_op *b, bool is_free)
{
	if (!b->bytes)
		return;
	const uint64_t first = b->pointer >> PAGE_BITS;
	const uint64_t last = (b->pointer + b->bytes - 1) >> PAGE_BITS;
	const uint64_t inside = last - first > 1 ? (last - first - 1) << PAGE_BITS : 0;
	u->reserved = is_free ? u->reserved - inside : u->reserved + inside;
	count_page(u, b->process, first, is_free);
	if (first != last)
		count_page(u, b->process, last, is_free);
}

static bool is_mine(const struct memory_detail *d, const struct memory_op *b)
{
	const struct unused_replay *u = d->unused_replay;
	if (b->kind != MEMORY_DEVICE || is_framework(u->r, b->fn_id) != u->framework)
		return false;
	return d->unused.source != RESERVED_PAGES ||
	       (b->pointer <= ADDRESS_MOST && b->bytes <= ADDRESS_MOST &&
		       !(u->framework && b->pointer <= MADE_UP_MOST));
}

void unused_change(struct memory_detail *d, const struct memory_op *block, bool is_free)
{
	struct unused_replay *u = d->unused_replay;
	if (!is_mine(d, block))
		return;
	if (is_free)
		u->live -= block->bytes < u->live ? block->bytes : u->live;
	else
		u->live = sat_add(u->live, block->bytes);
	if (d->unused.source == RESERVED_PAGES)
		count_pages(u, block, is_free);
}

bool unused_is_worst(const struct memory_detail *d, const struct memory_op *block, uint32_t seq)
{
	const struct memory_unused *to = &d->unused;
	return to->known && seq < to->worst_ops && block->end >= to->worst_ops && is_mine(d, block);
}

static void put_worst(struct memory_unused *to, const struct unused_replay *u)
{
	const uint64_t unused = u->reserved - u->live;
	if (to->known && unused <= to->worst_reserved - to->worst_live)
		return;
	to->worst_reserved = u->reserved;
	to->worst_live = u->live;
	to->worst_ticks = u->ticks;
	to->worst_ops = u->ops;
}

static void put_peak(struct memory_unused *to, const struct unused_replay *u)
{
	if (u->reserved <= to->reserved_peak)
		return;
	to->reserved_peak = u->reserved;
	to->peak_live = u->live;
	to->peak_ticks = u->ticks;
}

static void put_points(struct memory_detail *d, const struct unused_replay *u, uint64_t until)
{
	const uint32_t last = detail_point(d, until - 1);
	for (uint32_t i = detail_point(d, u->ticks); i <= last; i++) {
		struct memory_point *p = &d->points[i];
		p->reserved_most = MAX(u->reserved, p->reserved_most);
		if (p->reserved_known && p->unused >= u->reserved - u->live)
			continue;
		p->reserved = u->reserved;
		p->unused = u->reserved - u->live;
		p->reserved_known = true;
	}
}

/* All is as it is until then. */
static void settle(struct memory_detail *d, struct unused_replay *u, uint64_t until)
{
	struct memory_unused *to = &d->unused;
	if (until <= u->ticks)
		return;
	const uint64_t span = until - u->ticks;
	if (u->unsaid || u->live > u->reserved) {
		to->unknown_ticks += span;
	} else {
		put_points(d, u, until);
		put_worst(to, u);
		to->known = true;
		to->reserved_area += (double)u->reserved * (double)span;
		to->unused_area += (double)(u->reserved - u->live) * (double)span;
		put_peak(to, u);
	}
	u->ticks = until;
}

void unused_advance(struct memory_detail *d, uint64_t ticks, uint32_t ops)
{
	struct unused_replay *u = d->unused_replay;
	u->ops = ops;
	for (; u->at < u->changes.n && u->changes.v[u->at].ticks < ticks; u->at++) {
		settle(d, u, u->changes.v[u->at].ticks);
		apply(u, &u->changes.v[u->at]);
	}
	settle(d, u, ticks);
}
