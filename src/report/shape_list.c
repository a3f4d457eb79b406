/*
 * Kernels by the shape of their launches: see event_lists.h.  A row is a kernel with a grid, a
 * block, registers, shared memory and a process's device, and says how full that makes an SM.
 */
#include "report/lister.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/bounded.h"
#include "base/map.h"
#include "base/sort.h"
#include "predict/occupancy.h"
#include "trace/activity.h"

#include "base/banned.h"

struct form_row {
	struct gpu_activity of; /* one of them */
	uint32_t process;
	struct values device;
};

struct form_rows {
	ARRAY(struct form_row) v;
	struct map kernels, shapes, rows; /* names with resources, geometries, and both */
};

static uint64_t two(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static int add_launch(struct lister *l, struct form_rows *rows, const struct event *v)
{
	const struct gpu_activity *w = &v->w;
	const uint32_t name = meta_find_string(&l->r->meta, v->process, w->name);
	const uint64_t resources = two(w->valid & GPU_HAS_REGISTERS ? w->registers : UINT32_MAX,
		w->valid & GPU_HAS_SHARED ? w->shared_static + w->shared_dynamic : UINT32_MAX);
	const uint32_t kernel = map_number(&rows->kernels,
		MAP_KEY(name, resources,
			two(v->process, w->valid & GPU_HAS_DEVICE ? w->device : UINT32_MAX)));
	const uint32_t shape = map_number(
		&rows->shapes, MAP_KEY(two(w->grid[0], w->grid[1]), two(w->grid[2], w->block[0]),
				       two(w->block[1], w->block[2])));
	if (kernel == MAP_NONE || shape == MAP_NONE)
		return -ENOMEM;
	struct form_row *row = MAP_ROW(&rows->rows, MAP_KEY(kernel, shape), &rows->v,
		(struct form_row){ .of = *w, .process = v->process });
	if (!row)
		return -ENOMEM;
	values_add(&row->device, w->end_ns - w->start_ns);
	return 0;
}

static int shape_order(const void *one, const void *two)
{
	const struct form_row *a = one, *b = two;
	return a->device.total != b->device.total ? ORDER(b->device.total, a->device.total)
						  : ORDER(a->of.start_ns, b->of.start_ns);
}

static const struct meta_device *device_of(const struct lister *l, const struct form_row *row)
{
	const struct meta *m = &l->r->meta;
	for (size_t i = 0; i < m->devices.n && row->of.valid & GPU_HAS_DEVICE; i++)
		if (m->devices.v[i].process == row->process &&
			m->devices.v[i].device == row->of.device)
			return &m->devices.v[i];
	return NULL;
}

/* All that allow no more: with fewer registers alone nothing would be gained. */
static void put_limits(struct json *j, uint32_t limiters)
{
	char text[64] = "";
	struct bounded b = BOUNDED(text);
	for (unsigned i = 0; i < OCCUPANCY_LIMITS; i++)
		if (limiters >> i & 1)
			bounded_printf(&b, "%s%s", *text ? ", " : "",
				occupancy_limit_word((enum occupancy_limit)i));
	bounded_end(&b);
	json_str_or_null(j, "limited_by", *text ? text : NULL);
}

/* What an SM of that device holds of it at a time; null where something of that is not known. */
static void put_occupancy(struct lister *l, struct json *j, const struct form_row *row)
{
	const unsigned wanted = GPU_HAS_REGISTERS | GPU_HAS_SHARED;
	const struct meta_device *m = device_of(l, row);
	const struct gpu_activity *w = &row->of;
	const struct occupancy_device *d =
		m ? occupancy_device_find(m->capability >> 16, m->capability & 0xffff) : NULL;
	const bool known = d && (w->valid & wanted) == wanted;
	struct occupancy o = { 0 };
	if (known)
		o = occupancy_of(d, &(struct occupancy_launch){
					    .threads = w->block[0] * w->block[1] * w->block[2],
					    .regs = w->registers,
					    .smem_static_bytes = w->shared_static,
					    .smem_dynamic_bytes = w->shared_dynamic });
	const double blocks = (double)w->grid[0] * w->grid[1] * w->grid[2];
	const bool fits = known && o.blocks;
	json_u64_or_null(j, "blocks_per_sm", fits, o.blocks);
	json_u64_or_null(j, "warps_per_sm", fits, o.warps);
	json_put_real(j, "occupancy", fits ? (double)o.warps / d->warps_per_sm : NAN);
	put_limits(j, fits ? o.limiters : 0);
	const double waves =
		fits && m->multiprocessors ? blocks / ((double)o.blocks * m->multiprocessors) : NAN;
	json_put_real(j, "waves", waves);
	json_put_real(j, "device_occupancy",
		fits ? (double)o.warps / d->warps_per_sm * fmin(waves, 1) : NAN);
}

static int put_row(struct lister *l, const struct form_row *row)
{
	const struct gpu_activity *w = &row->of;
	const bool shared = w->valid & GPU_HAS_SHARED;
	struct json *j = lister_begin_row(l);
	json_str(j, "name", lister_string(l, row->process, w->name));
	json_u64(j, "pid", l->r->trace->processes.v[row->process].pid);
	json_u64_or_null(j, "device", w->valid & GPU_HAS_DEVICE, w->device);
	lister_put_triple(j, "grid", true, w->grid);
	lister_put_triple(j, "block", true, w->block);
	json_u64_or_null(j, "registers", w->valid & GPU_HAS_REGISTERS, w->registers);
	json_u64_or_null(j, "shared_static_bytes", shared, w->shared_static);
	json_u64_or_null(j, "shared_dynamic_bytes", shared, w->shared_dynamic);
	put_occupancy(l, j, row);
	json_u64(j, "count", row->device.hist.count);
	values_put(j, "device", &row->device);
	return lister_end_row(l);
}

int list_kernel_shapes(struct lister *l)
{
	struct events events = { 0 };
	struct form_rows rows = { 0 };
	int e = events_read(l->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++) {
		const struct gpu_activity *w = &events.v.v[i].w;
		if (w->kind == GPU_KERNEL && w->valid & GPU_HAS_SHAPE)
			e = add_launch(l, &rows, &events.v.v[i]);
	}
	SORT(rows.v, shape_order);
	for (size_t i = 0; i < rows.v.n && !e; i++)
		e = put_row(l, &rows.v.v[i]);
	for (size_t i = 0; i < rows.v.n; i++)
		hist_fini(&rows.v.v[i].device.hist);
	array_free(&rows.v);
	map_fini(&rows.kernels);
	map_fini(&rows.shapes);
	map_fini(&rows.rows);
	events_fini(&events);
	return e;
}
