/*
 * Replays allocations and frees in the order of time to find live and peak memory.
 *
 * Host memory, VMM handles and device addresses are three spaces. cuMemFree also frees managed
 * memory, so the allocation gives the kind, not the free. A free without a seen allocation is
 * counted and changes nothing else.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"
#include "stack/stacks.h"

struct replay {
	struct report *r;
	struct map by_pointer;
	ARRAY(struct memory_op *) blocks; /* the allocation; NULL: freed */
	ARRAY(uint32_t) unused;
	uint32_t seq; /* of the operation at hand */
	uint64_t ticks;
	bool inside; /* of what is read: operations before it say what was live already */
};

static bool before(const struct memory_op *a, const struct memory_op *b)
{
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks;
	if (a->free != b->free)
		return a->free; /* at the same tick memory is freed first */
	return a->pointer < b->pointer;
}

/* In place: qsort() would take as much memory again, and there may be millions. */
void memory_sort(struct memory_list *lists, unsigned count)
{
#define IS_LATER(a, b) before(&(b), &(a))
	for (unsigned i = 0; i < count; i++)
		SORT_IN_PLACE(lists[i].ops, lists[i].count, IS_LATER)
#undef IS_LATER
}

/* The list whose next operation is the earliest; NULL when all are done. */
static struct memory_list *earliest(struct memory_list *lists, unsigned count)
{
	struct memory_list *first = NULL;
	for (unsigned i = 0; i < count; i++)
		if (lists[i].count && (!first || before(lists[i].ops, first->ops)))
			first = &lists[i];
	return first;
}

struct memory_op *memory_next(struct memory_list *lists, unsigned count)
{
	struct memory_list *list = earliest(lists, count);
	if (!list)
		return NULL;
	expect_slow(list->count == 1 || !before(list->ops + 1, list->ops),
		"operations come in the order of time");
	list->count--;
	return list->ops++;
}

static struct map_key key_of(const struct memory_op *op)
{
	const uint64_t space = op->kind == MEMORY_MANAGED ? MEMORY_DEVICE : op->kind;
	return MAP_KEY(op->pointer, op->process, space);
}

static void grow_use(struct memory_use *u, uint64_t bytes)
{
	u->allocs++;
	u->live++;
	u->allocated_bytes = sat_add(u->allocated_bytes, bytes);
	u->live_bytes = sat_add(u->live_bytes, bytes);
	u->peak_bytes = MAX(u->live_bytes, u->peak_bytes);
	expect(u->live <= u->allocs, "no more is live than was allocated");
}

static void shrink_use(struct memory_use *u, uint64_t bytes)
{
	expect(u->live, "what is freed was live");
	expect(bytes <= u->live_bytes || u->allocated_bytes == UINT64_MAX,
		"no more is freed than is live");
	u->live--;
	u->live_bytes -= bytes < u->live_bytes ? bytes : u->live_bytes;
}

static void forget(struct replay *p, uint32_t index)
{
	if (!expect(index < p->blocks.n && p->blocks.v[index], "the block that is freed is there"))
		return;
	struct memory_op *b = p->blocks.v[index];
	struct memory_detail *d = p->r->memory_detail;
	*array_push(&p->unused) = index;
	shrink_use(&p->r->memory[b->kind], b->bytes);
	if (b->kind != MEMORY_HOST)
		shrink_use(&p->r->gpu_memory, b->bytes);
	b->end = p->seq;
	p->blocks.v[index] = NULL;
	if (d)
		detail_free(d, b, p->ticks);
}

static void do_alloc(struct replay *p, struct memory_op *op, uint32_t *slot)
{
	struct memory_detail *d = p->r->memory_detail;
	/* If there is one, its free was not seen. */
	if (*slot != MAP_NONE)
		forget(p, *slot);
	if (!p->unused.n) {
		array_reserve(&p->blocks, 1);
		*slot = (uint32_t)p->blocks.n++;
	} else {
		*slot = p->unused.v[--p->unused.n];
	}
	op->end = MEMORY_NEVER;
	p->blocks.v[*slot] = op;
	grow_use(&p->r->memory[op->kind], op->bytes);
	if (op->kind != MEMORY_HOST)
		grow_use(&p->r->gpu_memory, op->bytes);
	if (d)
		detail_alloc(d, op);
}

static void do_free(struct replay *p, const struct memory_op *op, uint32_t *slot)
{
	const uint8_t kind = *slot == MAP_NONE ? op->kind : p->blocks.v[*slot]->kind;
	p->r->memory[kind].frees++;
	if (kind != MEMORY_HOST)
		p->r->gpu_memory.frees++;
	if (*slot == MAP_NONE)
		return;
	forget(p, *slot);
	*slot = MAP_NONE;
}

ORDERING(block_order, struct live_block, ORDER(b->bytes, a->bytes), ORDER(a->pointer, b->pointer))

void memory_keep_block(const struct report *r, struct live_blocks *to, const struct memory_op *op)
{
	*array_push(to) = (struct live_block){ .pointer = op->pointer,
		.bytes = op->bytes,
		.ticks = op->ticks,
		.process = op->process,
		.stack = r->memory_detail ? detail_stack(r->memory_detail, op) : STACK_NONE,
		.fn_id = op->fn_id,
		.kind = op->kind };
}

void memory_sort_blocks(struct live_blocks *blocks)
{
	SORT(*blocks, block_order);
}

/* The live set adds up to the totals. */
static void check_live(const struct report *r)
{
	uint64_t count[MEMORY_KINDS] = { 0 }, bytes[MEMORY_KINDS] = { 0 }, gpu = 0;
	array_each(const struct live_block, b, r->live) {
		count[b->kind]++;
		bytes[b->kind] = sat_add(bytes[b->kind], b->bytes);
		gpu += b->kind != MEMORY_HOST;
	}
	for (int k = 0; k < MEMORY_KINDS; k++) {
		const struct memory_use *u = &r->memory[k];
		expect(count[k] == u->live, "the live set has as many blocks as are live");
		expect(bytes[k] == u->live_bytes || u->allocated_bytes == UINT64_MAX,
			"the live set adds up to what is live");
		expect(u->live_bytes <= u->peak_bytes, "no more is live than at the peak");
	}
	expect(gpu == r->gpu_memory.live, "the blocks of the GPU are as many as are live");
}

static void keep_live(struct replay *p)
{
	struct report *r = p->r;
	for (size_t i = 0; i < p->blocks.n; i++)
		if (p->blocks.v[i])
			memory_keep_block(r, &r->live, p->blocks.v[i]);
	memory_sort_blocks(&r->live);
	check_live(r);
}

/* Events before the part count by what they leave. */
static void begin_part(struct replay *p)
{
	struct memory_use *all[MEMORY_KINDS + 1] = { &p->r->gpu_memory };
	p->inside = true;
	if (!p->seq)
		return;
	for (int k = 0; k < MEMORY_KINDS; k++)
		all[k + 1] = &p->r->memory[k];
	for (int k = 0; k <= MEMORY_KINDS; k++) {
		all[k]->peak_bytes = all[k]->live_bytes;
		all[k]->allocs = all[k]->live;
		all[k]->allocated_bytes = all[k]->live_bytes;
		all[k]->frees = 0;
	}
	if (p->r->memory_detail)
		detail_begin_part(p->r->memory_detail, p->r, p->seq);
}

static void replay_one(struct replay *p, struct memory_op *op)
{
	struct memory_detail *d = p->r->memory_detail;
	uint32_t *slot = map_get(&p->by_pointer, key_of(op));
	p->ticks = op->ticks;
	if (op->ticks >= p->r->first_ticks && !p->inside)
		begin_part(p);
	if (d)
		detail_before(d, p->r, p->seq, op->ticks);
	if (op->free)
		do_free(p, op, slot);
	else
		do_alloc(p, op, slot);
	if (d)
		detail_after(d, p->r, p->seq, op->ticks);
	p->seq++;
}

void memory_replay(struct report *r, struct memory_list *lists, unsigned count)
{
	struct replay p = { .r = r };
	struct memory_op *op;
	memory_sort(lists, count);
	while ((op = memory_next(lists, count)))
		replay_one(&p, op);
	if (!p.inside)
		begin_part(&p);
	keep_live(&p);
	map_fini(&p.by_pointer);
	array_free(&p.blocks, &p.unused);
}
