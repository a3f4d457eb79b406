/* See import_memory.h. */
#include "report/import_memory.h"

#include <errno.h>

#include "base/sort.h"
#include "report/memory.h"

#include "base/banned.h"

static int declare(struct memory_import *m, struct store *s)
{
	static const char *const lines[] = {
		"allocator memory alloc:p=0:n=1:m=device allocate(out CUdeviceptr pointer, "
		"size_t bytes, CUdevice device, out size_t reserved)",
		"allocator memory free:p=0:m=device free(CUdeviceptr pointer, size_t bytes, "
		"CUdevice device, out size_t reserved)",
		"allocator " MEMORY_UNSEEN " alloc:p=0:n=1:m=device "
		"allocated_before(out CUdeviceptr pointer, size_t bytes, CUdevice device)",
		"allocator " MEMORY_UNSEEN " alloc:p=0:n=1:m=device "
		"allocated_unseen(out CUdeviceptr pointer, size_t bytes, CUdevice device)",
		"allocator " MEMORY_UNSEEN " free:p=0:m=device "
		"freed_unseen(CUdeviceptr pointer, size_t bytes, CUdevice device)",
	};
	uint16_t *const to[] = { &m->alloc, &m->free, &m->before, &m->unseen, &m->gone };
	int e = 0;
	for (int i = 0; i < 5 && !e; i++)
		e = store_declare(s, lines[i], to[i]);
	return e;
}

#define RESERVED_IS_UNKNOWN (1u << 3) /* of a record's aux: no value in that argument */

/* ---- calls ---- */

static int put(struct store *s, const struct store_call *call, const uint64_t *args, uint8_t count)
{
	if (!array_reserve(&s->args, count) || s->args.n > UINT32_MAX - count)
		return -ENOMEM;
	struct store_call *c = array_push(&s->calls);
	if (!c)
		return -ENOMEM;
	*c = *call;
	c->arg_count = count;
	c->first_arg = (uint32_t)s->args.n;
	for (uint8_t i = 0; i < count; i++)
		s->args.v[s->args.n++] = args[i];
	return 0;
}

/* No two events have one time: which of them came first must not be lost. */
static uint64_t next_ns(struct memory_import *m, uint64_t ns)
{
	m->last_ns = ns > m->last_ns ? ns : m->last_ns + 1;
	return m->last_ns;
}

static int put_event(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	const uint64_t bytes = (uint64_t)(e->bytes < 0 ? -e->bytes : e->bytes);
	const uint64_t args[] = { e->address, bytes, e->device, e->reserved };
	return put(s,
		&(struct store_call){ .start_ns = next_ns(m, e->ns),
			.thread = e->thread,
			.fn = e->bytes < 0 ? m->free : m->alloc,
			.aux = e->has_reserved ? 0 : RESERVED_IS_UNKNOWN },
		args, 4);
}

/* What nobody was seen doing, just before the event. */
static int put_unseen(struct memory_import *m, struct store *s, const struct memory_event *e,
	uint16_t fn, uint64_t address, uint64_t bytes)
{
	const uint64_t args[] = { address, bytes, e->device };
	return put(s,
		&(struct store_call){
			.start_ns = next_ns(m, e->ns), .thread = e->thread, .fn = fn },
		args, 3);
}

/* At the beginning of the trace, wherever that will be. */
static int put_early(struct memory_import *m, struct store *s, const struct memory_device *d,
	uint64_t address, uint64_t bytes)
{
	const uint64_t args[] = { address, bytes, d->number };
	size_t *new = array_push(&m->early);
	if (!new)
		return -ENOMEM;
	*new = s->calls.n;
	return put(s, &(struct store_call){ .thread = d->thread, .fn = m->before }, args, 3);
}

/* ---- blocks that nobody frees ---- */

static int add_loose(struct memory_device *d, uint64_t address, uint64_t bytes)
{
	struct memory_loose *to = array_push(&d->loose);
	if (!to)
		return -ENOMEM;
	*to = (struct memory_loose){ address, bytes };
	return 0;
}

static int allocate_unseen(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t bytes)
{
	const uint64_t address = ++m->made_up;
	const int failed = put_unseen(m, s, e, m->unseen, address, bytes);
	d->now += bytes;
	return failed ? failed : add_loose(d, address, bytes);
}

#define LOOKED_AT 4096u /* blocks, of those that came last */

/* Of that size, or else the last one. */
static size_t choose_loose(const struct memory_device *d, uint64_t bytes)
{
	for (size_t i = d->loose.n; i > 0 && d->loose.n - i < LOOKED_AT; i--)
		if (d->loose.v[i - 1].bytes == bytes)
			return i - 1;
	return d->loose.n - 1;
}

static int set_live(struct memory_import *m, uint32_t place, uint64_t address, bool live)
{
	uint32_t *value = map_get(&m->live, MAP_KEY(place, address));
	if (!value)
		return -ENOMEM;
	*value = live ? 1 : MAP_NONE;
	return 0;
}

static bool is_live(const struct memory_import *m, const struct memory_event *e)
{
	return map_find(&m->live, MAP_KEY(e->place, e->address)) != MAP_NONE;
}

static int free_loose(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, size_t i)
{
	const struct memory_loose block = d->loose.v[i];
	const int failed = set_live(m, e->place, block.address, false);
	d->loose.v[i] = d->loose.v[--d->loose.n];
	d->now -= block.bytes < d->now ? block.bytes : d->now;
	return failed ? failed : put_unseen(m, s, e, m->gone, block.address, block.bytes);
}

/* Part of what was there before becomes a block of a made-up address, which goes. */
static int free_before(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t bytes)
{
	const uint64_t address = ++m->made_up;
	const int failed = put_early(m, s, d, address, bytes);
	d->before -= bytes;
	d->now -= bytes;
	return failed ? failed : put_unseen(m, s, e, m->gone, address, bytes);
}

static int free_unseen(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e, uint64_t bytes)
{
	int failed = 0;
	while (bytes && !failed) {
		const size_t i = choose_loose(d, bytes);
		if (d->before && (!d->loose.n || d->loose.v[i].bytes != bytes)) {
			const uint64_t part = bytes < d->before ? bytes : d->before;
			bytes -= part;
			failed = free_before(m, s, d, e, part);
			continue;
		}
		if (!d->loose.n)
			break;
		const uint64_t block = d->loose.v[i].bytes;
		failed = free_loose(m, s, d, e, i);
		if (!failed && block > bytes)
			failed = allocate_unseen(m, s, d, e, block - bytes);
		bytes -= block < bytes ? block : bytes;
	}
	return failed;
}

/* ---- events ---- */

int import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	const uint32_t process = s->threads.v[e->thread].process;
	uint32_t *index = map_get(&m->device_map, MAP_KEY(process, e->device));
	if (index && *index == MAP_NONE) {
		struct memory_device *d = array_push(&m->devices);
		if (!d)
			return -ENOMEM;
		*d = (struct memory_device){ .number = e->device, .thread = e->thread };
		*index = (uint32_t)(m->devices.n - 1);
	}
	struct memory_event *to = index ? array_push(&m->events) : NULL;
	if (!to)
		return -ENOMEM;
	*to = *e;
	to->place = *index;
	to->order = (uint32_t)(m->events.n - 1);
	return 0;
}

static int event_by_time(const void *one, const void *two)
{
	const struct memory_event *a = one, *b = two;
	return a->ns != b->ns ? ORDER(a->ns, b->ns) : ORDER(a->order, b->order);
}

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
static int put_earlier(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	struct memory_device *d = &m->devices.v[e->place];
	const uint64_t bytes = (uint64_t)-e->bytes;
	if (bytes > d->before || is_live(m, e))
		return 0;
	d->before -= bytes;
	const int failed = set_live(m, e->place, e->address, true);
	return failed ? failed : put_early(m, s, d, e->address, bytes);
}

/* Which allocations are freed later, and which frees are of blocks that were there before. */
static int look_ahead(struct memory_import *m, struct store *s)
{
	struct map allocated = { 0 };
	int failed = 0;
	for (size_t i = 0; i < m->events.n && !failed; i++) {
		const struct memory_event *e = &m->events.v[i];
		uint32_t *index = map_get(&allocated, MAP_KEY(e->place, e->address));
		if (!index) {
			failed = -ENOMEM;
		} else if (!e->bytes) {
			continue;
		} else if (e->bytes > 0) {
			*index = (uint32_t)i;
		} else if (*index != MAP_NONE) {
			m->events.v[*index].freed = true;
			*index = MAP_NONE;
		} else {
			failed = put_earlier(m, s, e);
		}
	}
	map_fini(&allocated);
	return failed;
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

/* Until the live set is what it was just before the event. */
static int balance(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	uint64_t was;
	if (!live_before(e, &was) || was == d->now)
		return 0;
	return was > d->now ? allocate_unseen(m, s, d, e, was - d->now)
			    : free_unseen(m, s, d, e, d->now - was);
}

/* A block over which another one comes was freed where nobody saw it. */
static int free_old(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	for (size_t i = 0; i < d->loose.n; i++)
		if (d->loose.v[i].address == e->address)
			return free_loose(m, s, d, e, i);
	return 0;
}

static int replay_alloc(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	int failed = is_live(m, e) ? free_old(m, s, d, e) : 0;
	if (!failed)
		failed = balance(m, s, d, e);
	if (!failed)
		failed = set_live(m, e->place, e->address, true);
	if (!failed && !e->freed)
		failed = add_loose(d, e->address, (uint64_t)e->bytes);
	d->now += (uint64_t)e->bytes;
	return failed ? failed : put_event(m, s, e);
}

static int replay_free(struct memory_import *m, struct store *s, struct memory_device *d,
	const struct memory_event *e)
{
	const uint64_t bytes = (uint64_t)-e->bytes;
	int failed = balance(m, s, d, e);
	if (failed)
		return failed;
	if (is_live(m, e))
		d->now -= bytes < d->now ? bytes : d->now;
	else if (e->has_total)
		failed = free_unseen(m, s, d, e, bytes); /* of what nobody allocated */
	if (!failed)
		failed = set_live(m, e->place, e->address, false);
	return failed ? failed : put_event(m, s, e);
}

static int replay(struct memory_import *m, struct store *s)
{
	int failed = 0;
	for (size_t i = 0; i < m->events.n && !failed; i++) {
		put_next_first(m, i);
		const struct memory_event *e = &m->events.v[i];
		struct memory_device *d = &m->devices.v[e->place];
		if (!e->bytes)
			failed = balance(m, s, d, e);
		else
			failed = e->bytes < 0 ? replay_free(m, s, d, e) : replay_alloc(m, s, d, e);
	}
	return failed;
}

/* ---- the whole ---- */

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
		if (s->ranges.v[i].ticks < first)
			first = s->ranges.v[i].ticks;
	for (size_t i = 0; i < s->work.n; i++)
		if (s->work.v[i].start_ns < first)
			first = s->work.v[i].start_ns;
	return first;
}

int import_memory_finish(struct memory_import *m, struct store *s)
{
	int failed = m->events.n ? declare(m, s) : 0;
	SORT(m->events, event_by_time);
	find_before(m);
	if (!failed)
		failed = look_ahead(m, s);
	if (!failed)
		failed = replay(m, s);
	for (size_t i = 0; i < m->devices.n && !failed; i++) {
		const struct memory_device *d = &m->devices.v[i];
		failed = d->before ? put_early(m, s, d, ++m->made_up, d->before) : 0;
	}
	if (failed)
		return failed;
	const uint64_t first = m->early.n ? beginning(m, s) : 0;
	for (size_t i = 0; i < m->early.n; i++)
		s->calls.v[m->early.v[i]].start_ns = first ? first - 1 : 0;
	return 0;
}

void import_memory_fini(struct memory_import *m)
{
	for (size_t i = 0; i < m->devices.n; i++)
		array_free(&m->devices.v[i].loose);
	array_free(&m->events);
	array_free(&m->devices);
	array_free(&m->early);
	map_fini(&m->live);
	map_fini(&m->device_map);
}
