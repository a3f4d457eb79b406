/*
 * Replays virtual memory: handles are made and released (cuMemCreate, cuMemRelease) and mapped to
 * reserved addresses. A handle's memory exists until nothing holds or maps it, because programs
 * release handles right after mapping.
 *
 * Segments of imported logs are another allocator's memory from the driver. They count as reserved,
 * not as blocks.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

struct handle {
	struct vmm_op made;
	uint32_t refs; /* the program's own, and mappings */
	bool held;
};

struct mapping {
	uint64_t bytes;
	uint32_t handle; /* or MAP_NONE */
};

struct vmm_replay {
	struct memory_vmm *v;
	struct vmm_blocks *blocks;
	struct map handle_map, mapping_map, reserve_map; /* process and handle, or address */
	ARRAY(struct handle) handles;
	ARRAY(struct mapping) mappings;
	ARRAY(struct vmm_op) reserved;
};

static void rise(struct level *l, uint64_t bytes)
{
	l->now = sat_add(l->now, bytes);
	l->most = MAX(l->now, l->most);
}

static void fall(struct level *l, uint64_t bytes)
{
	l->now -= bytes < l->now ? bytes : l->now;
}

static void add_block(struct vmm_replay *p, const struct vmm_op *made, uint64_t ticks, bool free)
{
	*array_push(&p->blocks->ops) = (struct memory_op){ .ticks = ticks,
		.pointer = made->pointer,
		.bytes = made->bytes,
		.process = made->process,
		.source = made->tid,
		.end = MEMORY_NEVER,
		.fn_id = made->fn_id,
		.kind = MEMORY_VMM,
		.free = free };
}

static void drop(struct vmm_replay *p, uint32_t index, uint64_t ticks)
{
	struct handle *h = &p->handles.v[index];
	if (!expect(h->refs, "a handle that is dropped is held"))
		return;
	if (--h->refs)
		return;
	fall(&p->v->backed, h->made.bytes);
	add_block(p, &h->made, ticks, true);
}

static void create(struct vmm_replay *p, const struct vmm_op *op)
{
	uint32_t *slot = map_get(&p->handle_map, MAP_KEY(op->process, op->pointer));
	*array_push(&p->handles) = (struct handle){ *op, 1, true };
	*slot = (uint32_t)(p->handles.n - 1);
	p->v->creates++;
	rise(&p->v->backed, op->bytes);
	add_block(p, op, op->ticks, false);
}

/* A free of a handle that nobody was seen making is for the replay to count. */
static void release(struct vmm_replay *p, const struct vmm_op *op)
{
	const uint32_t i = map_find(&p->handle_map, MAP_KEY(op->process, op->pointer));
	if (i == MAP_NONE || !p->handles.v[i].held) {
		add_block(p, op, op->ticks, true);
		return;
	}
	p->handles.v[i].held = false;
	drop(p, i, op->ticks);
}

static void map(struct vmm_replay *p, const struct vmm_op *op)
{
	const uint32_t handle = map_find(&p->handle_map, MAP_KEY(op->process, op->handle));
	uint32_t *slot = map_get(&p->mapping_map, MAP_KEY(op->process, op->pointer));
	struct mapping *m = array_push(&p->mappings);
	*m = (struct mapping){ op->bytes, handle };
	if (handle != MAP_NONE && p->handles.v[handle].refs)
		p->handles.v[handle].refs++;
	else
		m->handle = MAP_NONE;
	*slot = (uint32_t)(p->mappings.n - 1);
	p->v->maps++;
	rise(&p->v->mapped, op->bytes);
}

/* One call may take away several mappings that lie side by side. */
static void unmap(struct vmm_replay *p, const struct vmm_op *op)
{
	uint64_t done = 0;
	while (done < op->bytes) {
		const struct map_key key = MAP_KEY(op->process, op->pointer + done);
		if (map_find(&p->mapping_map, key) == MAP_NONE) {
			p->v->unknown++;
			break;
		}
		uint32_t *slot = map_get(&p->mapping_map, key);
		expect(*slot < p->mappings.n, "the mapping is one of all");
		const struct mapping m = p->mappings.v[*slot];
		*slot = MAP_NONE;
		fall(&p->v->mapped, m.bytes);
		if (m.handle != MAP_NONE)
			drop(p, m.handle, op->ticks);
		if (!m.bytes)
			break;
		done = sat_add(done, m.bytes);
	}
}

static void reserve(struct vmm_replay *p, const struct vmm_op *op)
{
	uint32_t *slot = map_get(&p->reserve_map, MAP_KEY(op->process, op->pointer));
	*array_push(&p->reserved) = *op;
	*slot = (uint32_t)(p->reserved.n - 1);
	p->v->reserves += !op->segment;
	rise(op->segment ? &p->v->segments : &p->v->reserved, op->bytes);
}

static void give_back(struct vmm_replay *p, const struct vmm_op *op)
{
	const struct map_key key = MAP_KEY(op->process, op->pointer);
	if (map_find(&p->reserve_map, key) == MAP_NONE) {
		p->v->unknown++;
		return;
	}
	uint32_t *slot = map_get(&p->reserve_map, key);
	expect(*slot < p->reserved.n, "what is given back was reserved");
	const struct vmm_op *r = &p->reserved.v[*slot];
	fall(r->segment ? &p->v->segments : &p->v->reserved, r->bytes);
	*slot = MAP_NONE;
}

static void do_one(struct vmm_replay *p, const struct vmm_op *op)
{
	switch (op->what) {
	case VMM_CREATE:
		create(p, op);
		return;
	case VMM_RELEASE:
		release(p, op);
		return;
	case VMM_MAP:
		map(p, op);
		return;
	case VMM_UNMAP:
		unmap(p, op);
		return;
	case VMM_RESERVE:
		reserve(p, op);
		return;
	default:
		give_back(p, op);
		return;
	}
}

ORDERING(vmm_order, struct vmm_op, ORDER(a->ticks, b->ticks), ORDER(a->what, b->what),
	ORDER(a->pointer, b->pointer))

struct vmm_ops {
	struct vmm_op *v;
	size_t n;
};

/* All of them, sorted; free() v. */
static void gather(const struct memory_list *lists, unsigned count, struct vmm_ops *ret_ops)
{
	size_t n = 0;
	*ret_ops = (struct vmm_ops){ 0 };
	for (unsigned i = 0; i < count; i++)
		n += lists[i].vmm_count;
	if (!n)
		return;
	ret_ops->v = xcalloc(n, sizeof *ret_ops->v);
	for (unsigned i = 0; i < count; i++) {
		if (lists[i].vmm_count)
			memcpy(ret_ops->v + ret_ops->n, lists[i].vmm,
				lists[i].vmm_count * sizeof *ret_ops->v);
		ret_ops->n += lists[i].vmm_count;
	}
	qsort(ret_ops->v, n, sizeof *ret_ops->v, vmm_order);
}

void vmm_replay(struct memory_vmm *v, const struct memory_list *lists, unsigned count,
	struct vmm_blocks *blocks)
{
	struct vmm_replay p = { .v = v, .blocks = blocks };
	struct vmm_ops ops;
	gather(lists, count, &ops);
	for (size_t i = 0; i < ops.n; i++)
		do_one(&p, &ops.v[i]);
	free(ops.v);
	map_fini(&p.handle_map, &p.mapping_map, &p.reserve_map);
	array_free(&p.handles, &p.mappings, &p.reserved);
}

static void add_change(
	struct vmm_changes *to, const struct vmm_replay *p, uint64_t ticks, uint64_t before)
{
	const uint64_t now = p->v->segments.now;
	if (now != before)
		*array_push(to) = (struct vmm_change){ .ticks = ticks,
			.add = now > before ? now - before : 0,
			.take = now < before ? before - now : 0 };
}

void vmm_segment_changes(
	const struct memory_list *lists, unsigned count, struct vmm_changes *ret_changes)
{
	struct memory_vmm v = { 0 };
	struct vmm_blocks blocks = { 0 };
	struct vmm_replay p = { .v = &v, .blocks = &blocks };
	struct vmm_ops ops;
	gather(lists, count, &ops);
	for (size_t i = 0; i < ops.n; i++) {
		const uint64_t before = v.segments.now;
		if (ops.v[i].what != VMM_RESERVE && ops.v[i].what != VMM_GIVE_BACK)
			continue;
		do_one(&p, &ops.v[i]);
		add_change(ret_changes, &p, ops.v[i].ticks, before);
	}
	free(ops.v);
	map_fini(&p.reserve_map);
	array_free(&p.reserved);
}

uint64_t vmm_segments_at(const struct memory_list *lists, unsigned count, uint64_t ticks)
{
	struct vmm_changes changes = { 0 };
	vmm_segment_changes(lists, count, &changes);
	uint64_t now = 0;
	for (size_t i = 0; i < changes.n && changes.v[i].ticks <= ticks; i++)
		now = now + changes.v[i].add - changes.v[i].take;
	array_free(&changes);
	return now;
}
