/* See import_memory.h. */
#include "report/import_memory.h"

#include <errno.h>

#include "report/memory.h"

#include "base/banned.h"

static int declare(struct memory_import *m, struct store *s)
{
	static const char *const lines[] = {
		"driver memory alloc:p=0:n=1:m=device " MEMORY_BEFORE "("
		"out CUdeviceptr pointer, size_t bytes)",
		"driver memory alloc:p=0:n=1:m=device allocate("
		"out CUdeviceptr pointer, size_t bytes)",
		"driver memory free:p=0:m=device free(CUdeviceptr pointer)",
	};
	uint16_t *const to[] = { &m->before, &m->alloc, &m->free };
	int e = 0;
	for (int i = 0; i < 3 && !e && !m->free; i++)
		e = store_declare(s, lines[i], to[i]);
	return e;
}

static int put(struct store *s, uint64_t ns, uint32_t thread, uint16_t fn, uint64_t address,
	uint64_t bytes)
{
	if (!array_reserve(&s->args, 2) || s->args.n > UINT32_MAX - 2)
		return -ENOMEM;
	struct store_call *c = array_push(&s->calls);
	if (!c)
		return -ENOMEM;
	*c = (struct store_call){ .start_ns = ns,
		.thread = thread,
		.fn = fn,
		.arg_count = bytes ? 2 : 1,
		.first_arg = (uint32_t)s->args.n };
	s->args.v[s->args.n++] = address;
	if (bytes)
		s->args.v[s->args.n++] = bytes;
	return 0;
}

/* At the beginning of the trace, wherever that will be. */
static int put_early(
	struct memory_import *m, struct store *s, uint32_t thread, uint64_t address, uint64_t bytes)
{
	size_t *new = array_push(&m->early);
	if (!new)
		return -ENOMEM;
	*new = s->calls.n;
	return put(s, 0, thread, m->before, address, bytes);
}

static struct memory_device *device_of(struct memory_import *m, const struct memory_event *e)
{
	const uint64_t bytes = e->bytes < 0 ? 0 : (uint64_t)e->bytes;
	const uint64_t given = e->bytes < 0 ? (uint64_t)-e->bytes : 0;
	uint32_t *index = map_get(&m->device_map, MAP_KEY(e->device));
	if (!index)
		return NULL;
	if (*index != MAP_NONE)
		return &m->devices.v[*index];
	struct memory_device *d = array_push(&m->devices);
	if (!d)
		return NULL;
	*d = (struct memory_device){ .number = e->device, .thread = e->thread };
	if (e->has_total && e->total >= bytes)
		d->before = e->total - bytes + given;
	*index = (uint32_t)(m->devices.n - 1);
	return d;
}

static int put_free(struct memory_import *m, struct store *s, const struct memory_event *e,
	struct memory_device *d, uint32_t *live)
{
	const uint64_t bytes = (uint64_t)-e->bytes;
	if (*live != 1 && bytes <= d->before) {
		const int failed = put_early(m, s, e->thread, e->address, bytes);
		if (failed)
			return failed;
		d->before -= bytes;
	}
	*live = 0;
	return put(s, e->ns, e->thread, m->free, e->address, 0);
}

int import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e)
{
	const int failed = declare(m, s);
	struct memory_device *d = failed ? NULL : device_of(m, e);
	uint32_t *live = d ? map_get(&m->live, MAP_KEY(e->address, e->device)) : NULL;
	if (!live)
		return failed ? failed : -ENOMEM;
	if (e->bytes < 0)
		return put_free(m, s, e, d, live);
	if (!e->bytes)
		return 0;
	*live = 1;
	return put(s, e->ns, e->thread, m->alloc, e->address, (uint64_t)e->bytes);
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
		if (s->ranges.v[i].ticks < first)
			first = s->ranges.v[i].ticks;
	for (size_t i = 0; i < s->work.n; i++)
		if (s->work.v[i].start_ns < first)
			first = s->work.v[i].start_ns;
	return first;
}

int import_memory_finish(struct memory_import *m, struct store *s)
{
	for (size_t i = 0; i < m->devices.n; i++) {
		const struct memory_device *d = &m->devices.v[i];
		if (d->before && put_early(m, s, d->thread, d->number + 1u, d->before))
			return -ENOMEM;
	}
	const uint64_t first = m->early.n ? beginning(m, s) : 0;
	for (size_t i = 0; i < m->early.n; i++)
		s->calls.v[m->early.v[i]].start_ns = first ? first - 1 : 0;
	return 0;
}

void import_memory_fini(struct memory_import *m)
{
	map_fini(&m->live);
	map_fini(&m->device_map);
	array_free(&m->devices);
	array_free(&m->early);
}
