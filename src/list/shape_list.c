/*
 * Section kernel_shapes: kernels by the shape of their launches.  A row is a kernel with a grid, a
 * block, registers, shared memory and a process's device, and says how full that makes an SM.
 */
#include "list/device_events.h"
#include "list/lists.h"
#include "section/shared_columns.h"

#include "base/bounded.h"
#include "base/sort.h"
#include "predict/occupancy.h"

struct form_row {
	struct gpu_activity of; /* one of them */
	uint32_t process;
	struct values device;
	struct occupancy occupancy; /* valid with fits */
	bool fits;
	double share, waves; /* of the warps that an SM can hold; NAN: not known */
};

struct form_rows {
	ARRAY(struct form_row) v;
	struct map kernels, shapes, rows; /* names with resources, geometries, and both */
};

static uint64_t two(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static void add_launch(const struct report *r, struct form_rows *forms, const struct event *v)
{
	const struct gpu_activity *w = &v->w;
	const uint32_t name = meta_find_string(&r->meta, v->process, w->name);
	const uint64_t resources = two(w->valid & GPU_HAS_REGISTERS ? w->registers : UINT32_MAX,
		w->valid & GPU_HAS_SHARED ? w->shared_static + w->shared_dynamic : UINT32_MAX);
	const uint32_t kernel = map_number(&forms->kernels,
		MAP_KEY(name, resources,
			two(v->process, w->valid & GPU_HAS_DEVICE ? w->device : UINT32_MAX)));
	const uint32_t shape = map_number(
		&forms->shapes, MAP_KEY(two(w->grid[0], w->grid[1]), two(w->grid[2], w->block[0]),
					two(w->block[1], w->block[2])));
	struct form_row *row = MAP_ROW(&forms->rows, MAP_KEY(kernel, shape), &forms->v,
		(struct form_row){ .of = *w, .process = v->process });
	values_add(&row->device, w->end_ns - w->start_ns);
}

ORDERING(shape_order, struct form_row, ORDER(b->device.total, a->device.total),
	ORDER(a->of.start_ns, b->of.start_ns))

static const struct meta_device *device_of(const struct report *r, const struct form_row *row)
{
	const struct meta *m = &r->meta;
	for (size_t i = 0; i < m->devices.n && row->of.valid & GPU_HAS_DEVICE; i++)
		if (m->devices.v[i].process == row->process &&
			m->devices.v[i].device == row->of.device)
			return &m->devices.v[i];
	return NULL;
}

/* The blocks that an SM of that device holds at a time, if registers, shared memory and the device
 * are known. */
static void fill_occupancy(const struct report *r, struct form_row *row)
{
	const unsigned wanted = GPU_HAS_REGISTERS | GPU_HAS_SHARED;
	const struct meta_device *m = device_of(r, row);
	const struct gpu_activity *w = &row->of;
	const struct occupancy_device *d =
		m ? occupancy_device_find(m->capability >> 16, m->capability & 0xffff) : NULL;
	const bool known = d && (w->valid & wanted) == wanted;
	if (known)
		row->occupancy =
			occupancy_of(d, &(struct occupancy_launch){
						.threads = w->block[0] * w->block[1] * w->block[2],
						.regs = w->registers,
						.smem_static_bytes = w->shared_static,
						.smem_dynamic_bytes = w->shared_dynamic });
	const double blocks = (double)w->grid[0] * w->grid[1] * w->grid[2];
	row->fits = known && row->occupancy.blocks;
	row->share = row->fits ? (double)row->occupancy.warps / d->warps_per_sm : NAN;
	row->waves = row->fits && m->multiprocessors
			     ? blocks / ((double)row->occupancy.blocks * m->multiprocessors)
			     : NAN;
}

static int count_forms(const struct report *r, struct form_rows *forms)
{
	struct events events = { 0 };
	const int e = events_read(r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++) {
		const struct gpu_activity *w = &events.v.v[i].w;
		if (w->kind == GPU_KERNEL && w->valid & GPU_HAS_SHAPE)
			add_launch(r, forms, &events.v.v[i]);
	}
	events_fini(&events);
	for (size_t i = 0; i < forms->v.n; i++)
		fill_occupancy(r, &forms->v.v[i]);
	SORT(forms->v, shape_order);
	return e;
}

MAKER(make_forms, struct form_rows, count_forms(rows->r, own))

static void free_forms(struct rows *rows)
{
	struct form_rows *forms = rows->own;
	for (size_t i = 0; i < forms->v.n; i++)
		hist_fini(&forms->v.v[i].device.hist);
	array_free(&forms->v);
	map_fini(&forms->kernels, &forms->shapes, &forms->rows);
	free(forms);
}

GETTER(get_name, struct form_row, f, value_text(rows_string(row->rows, f->process, f->of.name)))

FINDER(has_device, struct form_row, f, f->of.valid &GPU_HAS_DEVICE ? f : NULL)
FINDER(has_registers, struct form_row, f, f->of.valid &GPU_HAS_REGISTERS ? f : NULL)
FINDER(has_shared, struct form_row, f, f->of.valid &GPU_HAS_SHARED ? f : NULL)
FINDER(fits, struct form_row, f, f->fits ? f : NULL)

/* All that allow no more: with fewer registers alone nothing would be gained. */
static struct value get_limits(const struct row *row, const void *of)
{
	const uint32_t limiters = ((const struct form_row *)of)->occupancy.limiters;
	struct bounded b = { .to = row->text, .size = ROW_TEXT };
	for (unsigned i = 0; i < OCCUPANCY_LIMITS; i++)
		if (limiters >> i & 1)
			bounded_printf(&b, "%s%s", b.used ? ", " : "",
				occupancy_limit_word((enum occupancy_limit)i));
	bounded_end(&b);
	return b.used ? value_text(row->text) : value_null();
}

GETTER(get_device_occupancy, struct form_row, f, value_real(fmin(f->waves, 1) * f->share))

static const struct column form_columns[] = {
	{ "name", UNIT_KERNEL, "kernel", "its name", .get = get_name },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct form_row, process) },
	{ "device", UNIT_ID, "device", "device", .find = has_device,
		MEMBER(struct form_row, of.device) },
	{ "grid", UNIT_DIM3, "grid", "x, y, z", MEMBER(struct form_row, of.grid) },
	{ "block", UNIT_DIM3, "block", "x, y, z", MEMBER(struct form_row, of.block) },
	{ "registers", UNIT_COUNT, "registers", "of a thread; null: not recorded",
		.find = has_registers, MEMBER(struct form_row, of.registers) },
	{ "shared_static_bytes", UNIT_BYTES, "static shared", "static shared memory of a block",
		.find = has_shared, MEMBER(struct form_row, of.shared_static) },
	{ "shared_dynamic_bytes", UNIT_BYTES, "dynamic shared", "dynamic shared memory of a block",
		.find = has_shared, MEMBER(struct form_row, of.shared_dynamic) },
	{ "blocks_per_sm", UNIT_COUNT, "blocks per SM",
		"that an SM holds at a time; null: registers, shared memory or the device are not known",
		.find = fits, MEMBER(struct form_row, occupancy.blocks) },
	{ "warps_per_sm", UNIT_COUNT, "warps per SM", "that an SM holds at a time", .find = fits,
		MEMBER(struct form_row, occupancy.warps) },
	{ "occupancy", UNIT_SHARE, "occupancy", "of the warps that an SM could hold",
		MEMBER(struct form_row, share) },
	{ "limited_by", UNIT_TEXT, "limited by",
		"`warps`, `blocks`, `registers`, `shared memory`: all that allow no more, with commas "
		"between",
		.get = get_limits, .find = fits },
	{ "waves", UNIT_REAL, "waves", "blocks by those that the device holds at a time",
		MEMBER(struct form_row, waves) },
	{ "device_occupancy", UNIT_SHARE, "of device",
		"of all warps that the device can hold, those that the grid fills at a time: less than "
		"`occupancy` where there is less than one wave",
		.get = get_device_occupancy },
	{ "count", UNIT_COUNT, "runs", "executions", .get = get_values_count,
		AT(struct form_row, device), .sums = true },
	VALUES("device", "", "time on the device", struct form_row, device, true),
	{ 0 },
};

const struct section section_kernel_shapes = {
	.name = "kernel_shapes",
	.heading = "Kernels by shape",
	.about =
		"Kernels by the shape of their launches, those that took longest first. Occupancy is the theoretical one of `weir occupancy`: by block, registers and shared memory, without regard to the carveout.",
	.of = OF_GPU,
	.columns = form_columns,
	.make = make_forms,
	.fini = free_forms,
	.asked = true,
	.shown = "device_total_ns,count,device_mean_ns,grid,block,registers,occupancy,waves,"
		 "device_occupancy,limited_by,pid,device,name",
	.note = "Occupancy is how many of the warps that an SM can hold it holds of this kernel at a time, by registers, shared memory and block.  Waves are the blocks, divided by those that the device holds at a time.  Of the device is what the grid fills of all SMs at once, which is less if there is less than one wave.",
};
