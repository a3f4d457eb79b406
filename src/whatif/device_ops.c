/* Collects the GPU activities of each call. */
#include "whatif/device_ops.h"

#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "join/links.h"
#include "trace/activity.h"

#define WARPS_MOST 32u    /* of a block */
#define LEAD_MOST  20000u /* between nodes of a graph */

struct op_device op_device_of(const struct meta *m, uint32_t process)
{
	struct op_device d = { 0, occupancy_device_find(9, 0) };
	array_each(const struct meta_device, on, m->devices) {
		if (on->process != process)
			continue;
		const struct occupancy_device *sm =
			occupancy_device_find(on->capability >> 16, on->capability & 0xffff);
		d.sms = on->multiprocessors;
		d.sm = sm ? sm : d.sm;
		break;
	}
	return d;
}

static uint64_t product(const uint32_t v[3])
{
	const uint64_t most = (uint64_t)1 << 40;
	uint64_t n = 1;
	for (int i = 0; i < 3; i++)
		n = v[i] && n < most ? n * v[i] : n;
	return MIN(n, most);
}

static struct device_op kernel_op(const struct op_device *d, const uint32_t grid[3],
	const uint32_t block[3], struct occupancy_launch l)
{
	const uint64_t threads = product(block);
	l.threads = threads < OCCUPANCY_THREADS_PER_BLOCK ? (uint32_t)threads
							  : OCCUPANCY_THREADS_PER_BLOCK;
	const struct occupancy o = occupancy_of(d->sm, &l);
	const uint32_t warps = (l.threads + OCCUPANCY_WARP - 1) / OCCUPANCY_WARP;
	return (struct device_op){ .kind = LAW_KERNEL,
		.blocks = product(grid),
		.warps = (uint8_t)(warps < WARPS_MOST ? warps : WARPS_MOST),
		.per_sm = (uint8_t)(o.blocks ? o.blocks : 1) };
}

struct device_op op_of_launch(
	const struct op_device *d, const struct gpu_call *c, const struct meta_attributes *a)
{
	struct occupancy_launch l = { .smem_dynamic_bytes = c->shared };
	if (a && a->known >> ATTRIBUTE_REGISTERS & 1)
		l.regs = a->value[ATTRIBUTE_REGISTERS];
	if (a && a->known >> ATTRIBUTE_STATIC_SHARED & 1)
		l.smem_static_bytes = a->value[ATTRIBUTE_STATIC_SHARED];
	return kernel_op(d, c->grid, c->block, l);
}

/* A graph that is one activity fills the device, as far as anybody knows. */
static struct device_op whole_device(const struct op_device *d)
{
	return (struct device_op){
		.kind = LAW_KERNEL, .blocks = d->sms ? d->sms : 1, .warps = WARPS_MOST, .per_sm = 2
	};
}

static enum law_engine engine_of(const struct gpu_activity *w)
{
	if (w->kind != GPU_MEMCPY || !(w->valid & GPU_HAS_WHAT))
		return LAW_WITHIN;
	if (w->what == COPY_HTOD || w->what == COPY_HTOA)
		return LAW_TO_DEVICE;
	return w->what == COPY_DTOH || w->what == COPY_ATOH ? LAW_FROM_DEVICE : LAW_WITHIN;
}

static struct device_op op_of(const struct op_device *d, const struct gpu_activity *w)
{
	const struct occupancy_launch l = { .regs = w->valid & GPU_HAS_REGISTERS ? w->registers : 0,
		.smem_static_bytes = w->valid & GPU_HAS_SHARED ? w->shared_static : 0,
		.smem_dynamic_bytes = w->valid & GPU_HAS_SHARED ? w->shared_dynamic : 0 };
	if (w->kind == GPU_KERNEL && w->valid & GPU_HAS_SHAPE)
		return kernel_op(d, w->grid, w->block, l);
	if (w->kind == GPU_KERNEL || w->kind == GPU_GRAPH)
		return whole_device(d);
	return (struct device_op){ .kind = LAW_COPY, .engine = (uint8_t)engine_of(w) };
}

ORDERING(op_order, struct timed_op, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->ticks, b->ticks), ORDER(a->start_ns, b->start_ns))

/* An operation that runs beside another of the same call counts from when that has ended. */
static void set_times(struct timed_ops *ops)
{
	uint64_t until = 0;
	for (size_t i = 0; i < ops->v.n; i++) {
		struct timed_op *o = &ops->v.v[i];
		const bool same = i && o[-1].process == o->process && o[-1].tid == o->tid &&
				  o[-1].ticks == o->ticks;
		const uint64_t from = same && until > o->start_ns ? until : o->start_ns;
		o->op.alone_ns = o->end_ns > from ? o->end_ns - from : 1;
		o->op.alone_ns = MIN(o->op.alone_ns, LAW_MAX_NS);
		if (same && from == o->start_ns)
			o->op.lead_ns =
				from - until < LEAD_MOST ? (uint32_t)(from - until) : LEAD_MOST;
		until = same && until > o->end_ns ? until : o->end_ns;
	}
}

static int take(struct timed_ops *ops, const struct trace *t, const struct meta *m,
	const struct links *links)
{
	struct cursor at = { .t = t };
	size_t hint = 0;
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const uint32_t process = at.ref->process;
		const struct call_link *link =
			activity_is_work(w.kind) ? links_of(links, process, &w, &hint) : NULL;
		if (!link)
			continue;
		const struct op_device d = op_device_of(m, process);
		*array_push(&ops->v) = (struct timed_op){ .ticks = link->ticks,
			.start_ns = w.start_ns,
			.end_ns = w.end_ns,
			.process = process,
			.tid = link->tid,
			.op = op_of(&d, &w) };
	}
	return at.error;
}

int timed_ops_load(const struct trace *t, const struct meta *m, struct timed_ops *ret_ops)
{
	struct links links;
	*ret_ops = (struct timed_ops){ 0 };
	int e = links_load(t, m, &links);
	if (!e)
		e = take(ret_ops, t, m, &links);
	links_fini(&links);
	if (e)
		return e;
	SORT(ret_ops->v, op_order);
	set_times(ret_ops);
	return 0;
}

static size_t from(const struct timed_ops *ops, const struct gpu_call *c, uint64_t ticks)
{
	const struct timed_op key = { .ticks = ticks, .process = c->process, .tid = c->tid };
	return SEARCH(i, 0, ops->v.n, op_order(&ops->v.v[i], &key) < 0);
}

size_t timed_ops_find(const struct timed_ops *ops, const struct gpu_call *c, uint32_t *ret_count)
{
	const uint64_t tries[] = { c->start, c->outer };
	for (int i = 0; i < 2; i++) {
		const size_t at = from(ops, c, tries[i]);
		size_t end = at;
		while (end < ops->v.n && ops->v.v[end].process == c->process &&
			ops->v.v[end].tid == c->tid && ops->v.v[end].ticks == tries[i])
			end++;
		*ret_count = (uint32_t)(end - at);
		if (end > at)
			return at;
	}
	return 0;
}
