/* Replays the allocator events of torch.profiler and adds missing ones. */
#include "import/import_memory.h"

#include "base/expect.h"
#include "base/sort.h"
#include "model/memory_op.h"

static void declare(struct memory_import *m, struct store *s)
{
	m->alloc = store_declare(s,
		"allocator memory alloc:p=0:n=1:m=device allocate(out CUdeviceptr pointer, "
		"size_t bytes, CUdevice device, out size_t reserved)");
	m->free = store_declare(s,
		"allocator memory free:p=0:m=device free(CUdeviceptr pointer, size_t bytes, "
		"CUdevice device, out size_t reserved)");
	m->before = store_declare(s,
		"allocator " MEMORY_UNSEEN " alloc:p=0:n=1:m=device "
		"allocated_before(out CUdeviceptr pointer, size_t bytes, CUdevice device)");
	m->unseen = store_declare(s,
		"allocator " MEMORY_UNSEEN " alloc:p=0:n=1:m=device "
		"allocated_unseen(out CUdeviceptr pointer, size_t bytes, CUdevice device)");
	m->gone = store_declare(s,
		"allocator " MEMORY_UNSEEN " free:p=0:m=device "
		"freed_unseen(CUdeviceptr pointer, size_t bytes, CUdevice device)");
}

#define RESERVED_IS_UNKNOWN (1u << 3) /* of a record's aux: no value in that argument */

/* No two events have one time: which of them came first must not be lost. */
static uint64_t next_ns(struct memory_import *m, uint64_t ns)
{
	expect(m->last_ns < UINT64_MAX, "there is a time after the last");
	m->last_ns = ns > m->last_ns ? ns : m->last_ns + 1;
	return m->last_ns;
}

static void put_event(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	const uint64_t bytes = (uint64_t)(e->bytes < 0 ? -e->bytes : e->bytes);
	const struct store_call call = { .start_ns = next_ns(m, e->ns),
		.thread = e->thread,
		.fn = e->bytes < 0 ? m->free : m->alloc,
		.aux = e->has_reserved ? 0 : RESERVED_IS_UNKNOWN };
	store_call_with(s, &call, (uint64_t[]){ e->address, bytes, e->device, e->reserved }, 4);
}

/* Puts memory that changed without a call that was seen, just before the event. */
static void put_unseen(struct memory_import *m, struct store *s, const struct memory_event *e,
	uint16_t fn, uint64_t address, uint64_t bytes)
{
	const struct store_call call = {
		.start_ns = next_ns(m, e->ns), .thread = e->thread, .fn = fn
	};
	store_call_with(s, &call, (uint64_t[]){ address, bytes, e->device }, 3);
}

/* At the beginning of the trace, wherever that will be. */
static void put_early(struct memory_import *m, struct store *s, const struct memory_device *d,
	uint64_t address, uint64_t bytes)
{
	const struct store_call call = { .thread = d->thread, .fn = m->before };
	*array_push(&m->early) = s->calls.n;
	store_call_with(s, &call, (uint64_t[]){ address, bytes, d->number }, 3);
}

#define NONE      MAP_NONE
#define LOOKED_AT 4096u /* blocks, of those that came last */

static uint32_t live_at(const struct memory_import *m, const struct memory_event *e)
{
	return map_find(&m->live, MAP_KEY(e->place, e->address));
}

static void set_live(struct memory_import *m, uint32_t place, uint64_t address, uint32_t block)
{
	uint32_t *value = map_get(&m->live, MAP_KEY(place, address));
	*value = block;
}

static bool is_live(const struct memory_import *m, uint32_t i)
{
	const struct memory_block *b = &m->blocks.v[i];
	return map_find(&m->live, MAP_KEY(b->place, b->address)) == i;
}

static void add_block(struct memory_import *m, struct memory_blocks *list, uint32_t place,
	uint64_t address, uint64_t bytes)
{
	struct memory_block *block = array_push(&m->blocks);
	uint32_t *new = array_push(list);
	*block = (struct memory_block){ address, bytes, place };
	*new = (uint32_t)(m->blocks.n - 1);
	set_live(m, place, address, *new);
}

/* A live block of that size, else the last one, else NONE. */
static uint32_t choose(const struct memory_import *m, struct memory_blocks *list, uint64_t bytes)
{
	while (list->n && !is_live(m, list->v[list->n - 1]))
		list->n--;
	for (size_t i = list->n; i > 0 && list->n - i < LOOKED_AT; i--)
		if (m->blocks.v[list->v[i - 1]].bytes == bytes && is_live(m, list->v[i - 1]))
			return list->v[i - 1];
	return list->n ? list->v[list->n - 1] : NONE;
}

static void allocate_unseen(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t bytes)
{
	const uint64_t address = ++m->made_up;
	put_unseen(m, s, e, m->unseen, address, bytes);
	d->now += bytes;
	add_block(m, &d->loose, e->place, address, bytes);
}

static void free_block(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint32_t i)
{
	expect(i < m->blocks.n && is_live(m, i), "what is freed is live");
	const struct memory_block b = m->blocks.v[i];
	set_live(m, e->place, b.address, NONE);
	d->now -= b.bytes;
	put_unseen(m, s, e, m->gone, b.address, b.bytes);
}

/* Part of what was there before becomes a block of a made-up address, which goes. */
static void free_before(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t bytes)
{
	const uint64_t address = ++m->made_up;
	put_early(m, s, d, address, bytes);
	expect(bytes <= d->before, "what goes of what was there before is part of it");
	d->before -= bytes;
	d->now -= bytes;
	put_unseen(m, s, e, m->gone, address, bytes);
}

/* So many bytes at most; of a larger block the rest stays, as another one.  *bytes is what is
 * left to be freed. */
static void free_some(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t *bytes)
{
	uint32_t i = choose(m, &d->loose, *bytes);
	if (d->before && (i == NONE || m->blocks.v[i].bytes != *bytes)) {
		const uint64_t part = *bytes < d->before ? *bytes : d->before;
		*bytes -= part;
		return free_before(m, s, d, e, part);
	}
	if (i == NONE)
		i = choose(m, &d->firm, *bytes);
	const uint64_t block = i == NONE ? 0 : m->blocks.v[i].bytes, most = *bytes;
	*bytes -= i == NONE || block > most ? most : block;
	expect(*bytes <= most, "less is left to be freed than before");
	if (i != NONE)
		free_block(m, s, d, e, i);
	if (block > most)
		allocate_unseen(m, s, d, e, block - most);
}

static void balance(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t should)
{
	uint64_t bytes = d->now > should ? d->now - should : 0;
	if (d->now < should)
		allocate_unseen(m, s, d, e, should - d->now);
	while (bytes)
		free_some(m, s, d, e, &bytes);
}

void import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	expect(e->thread < s->threads.n, "the thread of an event is one of all");
	const uint32_t process = s->threads.v[e->thread].process;
	const struct memory_device *d = MAP_ROW(&m->device_map, MAP_KEY(process, e->device),
		&m->devices, (struct memory_device){ .number = e->device, .thread = e->thread });
	struct memory_event *to = array_push(&m->events);
	*to = *e;
	to->place = (uint32_t)(d - m->devices.v);
	to->order = (uint32_t)(m->events.n - 1);
}

ORDERING(event_by_time, struct memory_event, ORDER(a->ns, b->ns), ORDER(a->order, b->order))

static bool live_before(const struct memory_event *e, uint64_t *ret_bytes)
{
	if (!e->has_total || (e->bytes > 0 && (uint64_t)e->bytes > e->total))
		return false;
	*ret_bytes = e->total - (uint64_t)e->bytes;
	return true;
}

/* Threads' events of one time: the one that goes on where the last one ended comes first. */
static void put_next_first(struct memory_import *m, size_t i)
{
	struct memory_event *v = m->events.v;
	const struct memory_device *d = &m->devices.v[v[i].place];
	uint64_t was;
	for (size_t k = i; k < m->events.n && v[k].ns == v[i].ns; k++) {
		if (v[k].place != v[i].place || !live_before(&v[k], &was) || was != d->now)
			continue;
		const struct memory_event e = v[k];
		v[k] = v[i];
		v[i] = e;
		return;
	}
}

/* A free of what was there before: which block of that time it is. */
static void put_earlier(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	struct memory_device *d = &m->devices.v[e->place];
	const uint64_t bytes = (uint64_t)-e->bytes;
	if (bytes > d->before || live_at(m, e) != NONE)
		return;
	d->before -= bytes;
	add_block(m, &d->firm, e->place, e->address, bytes);
	put_early(m, s, d, e->address, bytes);
}

/* Which allocations are freed later, and which frees are of blocks that were there before. */
static void look_ahead(struct memory_import *m, struct store *s)
{
	struct map allocated = { 0 };
	for (size_t i = 0; i < m->events.n; i++) {
		const struct memory_event *e = &m->events.v[i];
		uint32_t *index = map_get(&allocated, MAP_KEY(e->place, e->address));
		struct memory_event *old = *index != MAP_NONE ? &m->events.v[*index] : NULL;
		if (e->bytes > 0) {
			*index = (uint32_t)i;
		} else if (e->bytes < 0 && old) {
			old->freed = old->bytes == -e->bytes;
			*index = MAP_NONE;
		} else if (e->bytes < 0) {
			put_earlier(m, s, e);
		}
	}
	map_fini(&allocated);
}

/* How much each device had allocated at the beginning. */
static void find_before(struct memory_import *m)
{
	for (size_t i = 0; i < m->events.n; i++) {
		struct memory_device *d = &m->devices.v[m->events.v[i].place];
		if (!d->begun && live_before(&m->events.v[i], &d->before))
			d->now = d->before;
		d->begun = true;
	}
}

/* A block over which another one comes was freed where nobody saw it. */
static void replay_alloc(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	const uint32_t old = live_at(m, e);
	uint64_t was;
	if (old != NONE)
		free_block(m, s, d, e, old);
	if (live_before(e, &was))
		balance(m, s, d, e, was);
	add_block(m, e->freed ? &d->firm : &d->loose, e->place, e->address, (uint64_t)e->bytes);
	d->now += (uint64_t)e->bytes;
	put_event(m, s, e);
}

/* One that nobody was seen allocating, or of another size, is allocated just before. */
static void replay_free(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	const uint64_t bytes = (uint64_t)-e->bytes;
	const uint32_t block = live_at(m, e);
	const bool known = block != NONE && m->blocks.v[block].bytes == bytes;
	uint64_t was;
	if (block != NONE && !known)
		free_block(m, s, d, e, block);
	if (known)
		set_live(m, e->place, e->address, NONE);
	d->now -= known ? bytes : 0;
	if (live_before(e, &was)) {
		balance(m, s, d, e, was - bytes);
		if (!known)
			put_unseen(m, s, e, m->unseen, e->address, bytes);
	}
	put_event(m, s, e);
}

static void replay(struct memory_import *m, struct store *s)
{
	for (size_t i = 0; i < m->events.n; i++) {
		put_next_first(m, i);
		const struct memory_event *e = &m->events.v[i];
		struct memory_device *d = &m->devices.v[e->place];
		if (e->bytes < 0)
			replay_free(m, s, d, e);
		else if (e->bytes > 0)
			replay_alloc(m, s, d, e);
		else if (e->has_total)
			balance(m, s, d, e, e->total);
	}
}

static uint64_t beginning(const struct memory_import *m, const struct store *s)
{
	uint64_t first = UINT64_MAX;
	size_t early = 0;
	for (size_t i = 0; i < s->calls.n; i++) {
		if (early < m->early.n && m->early.v[early] == i)
			early++;
		else if (s->calls.v[i].start_ns < first)
			first = s->calls.v[i].start_ns;
	}
	for (size_t i = 0; i < s->ranges.n; i++)
		first = MIN(s->ranges.v[i].ticks, first);
	for (size_t i = 0; i < s->activities.n; i++)
		first = MIN(s->activities.v[i].start_ns, first);
	return first;
}

void import_memory_finish(struct memory_import *m, struct store *s)
{
	if (m->events.n)
		declare(m, s);
	SORT(m->events, event_by_time);
	find_before(m);
	look_ahead(m, s);
	replay(m, s);
	array_each(const struct memory_device, d, m->devices)
		if (d->before)
			put_early(m, s, d, ++m->made_up, d->before);
	const uint64_t first = m->early.n ? beginning(m, s) : 0;
	for (size_t i = 0; i < m->early.n; i++)
		if (expect(m->early.v[i] < s->calls.n, "what was there before is one of the calls"))
			s->calls.v[m->early.v[i]].start_ns = first ? first - 1 : 0;
}

void import_memory_fini(struct memory_import *m)
{
	for (size_t i = 0; i < m->devices.n; i++)
		array_free(&m->devices.v[i].loose, &m->devices.v[i].firm);
	array_free(&m->blocks, &m->events, &m->devices, &m->early);
	map_fini(&m->live, &m->device_map);
}
