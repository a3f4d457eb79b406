/* Copies the needed parts of a report into a comparison. */
#include "diff/diff.h"

#include "base/expect.h"
#include "base/hash.h"
#include "trace/steps.h"

#define NAME_OF_REQUEST 256u

struct adder {
	struct diff *d;
	double *totals; /* of this run */
	const struct report *r;
	enum diff_side_id side;
	size_t run; /* of this side, from 0 */
};

static uint64_t ns_of(const struct adder *a, uint64_t ticks)
{
	return trace_span_ns(a->r->trace, ticks);
}

/* A ring holds what came last; how much that is says nothing of the program. */
static bool is_window(const struct report *r)
{
	return r->trace->header.mode == TRACE_FLIGHT;
}

static struct diff_row *row_of(
	struct adder *a, enum diff_table table, const char *name, const char *kind)
{
	const uint64_t other = kind ? hash_fnv32(kind, strlen(kind)) : 0;
	struct diff_row *row = MAP_ROW(&a->d->names[table], map_text_key(name, strlen(name), other),
		&a->d->rows[table], (struct diff_row){ .name = xstrdup(name), .kind = kind });
	return row;
}

/* The row, with room for this run's numbers; runs in which there was no such row are zeros. */
static struct diff_row *enter(
	struct adder *a, enum diff_table table, const char *name, const char *kind)
{
	struct diff_row *row = row_of(a, table, name, kind);
	while (row->runs[a->side].n <= a->run)
		*array_push(&row->runs[a->side]) = (struct diff_run){ 0 };
	expect(row->runs[a->side].n == a->run + 1, "the run at hand is a row's last");
	return row;
}

static struct diff_run *run_of(const struct adder *a, struct diff_row *row)
{
	return &row->runs[a->side].v[a->run];
}

static void add_ticks(const struct adder *a, struct hist *to, const struct hist *from)
{
	uint64_t value, count;
	for (unsigned at = 0; hist_next(from, &at, &value, &count);)
		hist_add_times(to, ns_of(a, value), count);
}

/* The threads of each launch, if most launches have one size. */
static double threads_of(const struct kernel_row *k)
{
	const uint32_t *g = k->shape.grid, *b = k->shape.block;
	const double threads = (double)g[0] * g[1] * g[2] * b[0] * b[1] * b[2];
	return threads > 0 && k->common > k->count / 2 ? threads * (double)k->count : NAN;
}

static void add_kernels(struct adder *a)
{
	const struct report *r = a->r;
	array_each(const struct kernel_row, k, r->kernel_rows) {
		const struct activity_row *w =
			k->activity == ACTIVITY_NONE ? NULL : &r->activities.v[k->activity];
		expect(k->activity == ACTIVITY_NONE || k->activity < r->activities.n,
			"the GPU activities of a kernel are one of the rows");
		struct diff_row *row = enter(a, TABLE_KERNELS, k->name, NULL);
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, k->count);
		run->host_ns = sat_add(run->host_ns, ns_of(a, k->host_ticks));
		run->threads += threads_of(k);
		add_ticks(a, &row->run_host, &k->hist);
		if (!w)
			continue;
		run->device_ns = sat_add(run->device_ns, w->total_ns);
		hist_merge(&row->run_device, &w->hist);
	}
}

static void add_calls(struct adder *a)
{
	const struct report *r = a->r;
	array_each(const struct call_row, c, r->call_rows) {
		const char *api = schema_api_name(c->fn);
		struct fn_name room;
		const char *name = report_fn_name(r, c->id, &room);
		struct diff_row *row = enter(a, TABLE_CALLS, name, api);
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, c->count);
		run->bytes = sat_add(run->bytes, c->bytes);
		run->untimed |= !call_total_known(c);
		run->host_ns = sat_add(run->host_ns, ns_of(a, c->total_ticks));
		if (call_total_known(c)) /* those that are timed all the same have failed */
			add_ticks(a, &row->run_host, &c->hist);
	}
}

static struct diff_run *add_ranges(struct adder *a, struct diff_row *row, uint64_t count,
	uint64_t host_ticks, const struct hist *host)
{
	struct diff_run *run = run_of(a, row);
	run->count = sat_add(run->count, count);
	run->host_ns = sat_add(run->host_ns, ns_of(a, host_ticks));
	add_ticks(a, &row->run_host, host);
	return run;
}

static void add_operators(struct adder *a)
{
	array_each(const struct operator_row, o, a->r->operators) {
		const char *kind = range_kind_name(o->kind);
		struct diff_row *row = enter(a, TABLE_OPERATORS, o->name, kind);
		struct diff_run *run = add_ranges(a, row, o->count, o->host_ticks, &o->host_hist);
		run->device_ns = sat_add(run->device_ns, o->device_total_ns);
		hist_merge(&row->run_device, &o->device_hist);
	}
}

static void add_phases(struct adder *a)
{
	array_each(const struct operator_row, o, a->r->operators) {
		if (o->kind == RANGE_OPERATOR)
			continue;
		struct diff_row *row = enter(a, TABLE_PHASES, o->name, range_kind_name(o->kind));
		struct diff_run *run = add_ranges(a, row, o->count, o->host_ticks, &o->host_hist);
		run->device_ns = sat_add(run->device_ns, o->span_ns);
		run->busy_p50_ns = hist_at(&o->device_hist, 0.5);
		hist_merge(&row->run_device, &o->span_hist);
	}
}

/* From the end of a step to the end of the next: with what the host does before the first launch,
 * and time in which the program was asked for nothing. */
static void add_periods(struct adder *a, const struct steps *s)
{
	if (s->found != STEPS_WAITS || s->v.n < 2)
		return;
	struct diff_row *row = enter(a, TABLE_STEPS, "step", DIFF_BY_PERIODS);
	struct diff_run *run = run_of(a, row);
	run->count = s->v.n;
	for (size_t i = 1; i < s->v.n; i++) {
		const uint64_t ns = ns_of(a, s->v.v[i].to - s->v.v[i - 1].to);
		run->host_ns = sat_add(run->host_ns, ns);
		hist_add(&row->run_host, ns);
	}
}

/* A step is as long as its steps are on the host; ranges that the program numbers also have spans
 * on the device, and what a wait ends begins with its first launch: time in which the program was
 * asked for nothing is no part of it. */
static void add_step_lengths(struct adder *a, const struct steps *s)
{
	static const char *const ways[] = { [STEPS_NUMBERED] = "numbered",
		[STEPS_OPTIMIZER] = "optimizer",
		[STEPS_WAITS] = DIFF_BY_WAITS,
		[STEPS_REPEATED] = DIFF_BY_RANGES };
	/* That kernels come again tells a launch from the next as well: those are compared. */
	if (s->found == STEPS_KERNELS)
		return;
	/* In a ring the begin of the first is not known. */
	const size_t first = is_window(a->r) && s->found != STEPS_NUMBERED;
	if (s->v.n <= first)
		return;
	struct diff_row *row = enter(a, TABLE_STEPS, "step", ways[s->found]);
	struct diff_run *run = run_of(a, row);
	run->count = s->v.n;
	for (size_t i = first; i < s->v.n; i++) {
		const struct step *v = &s->v.v[i];
		const uint64_t from = v->launched ? v->launched : v->from,
			       ns = ns_of(a, v->to > from ? v->to - from : 0);
		run->host_ns = sat_add(run->host_ns, ns);
		hist_add(&row->run_host, ns);
	}
	for (size_t i = 0; i < a->r->operators.n && s->found == STEPS_NUMBERED; i++) {
		const struct operator_row *o = &a->r->operators.v[i];
		if (!range_is_named(o->kind) ||
			hash_bytes(o->name, name_without_number(o->name)) != s->name)
			continue;
		run->device_ns = sat_add(run->device_ns, o->span_ns);
		hist_merge(&row->run_device, &o->span_hist);
	}
}

static int add_steps(struct adder *a)
{
	struct steps s;
	int e = steps_load(a->r->trace, &a->r->meta, NULL, &s);
	if (!e) {
		a->totals[TOTAL_STEPS] = (double)s.v.n;
		add_step_lengths(a, &s);
		add_periods(a, &s);
	}
	steps_fini(&s);
	return e;
}

static struct diff_row *enter_request(struct adder *a, const char *name, uint16_t kind)
{
	char family[NAME_OF_REQUEST];
	const size_t n = range_is_named(kind) ? name_of_request(name) : 0;
	if (!n || n >= sizeof family)
		return NULL;
	memcpy(family, name, n);
	family[n] = '\0';
	return enter(a, TABLE_REQUESTS, family, NULL);
}

static void add_requests(struct adder *a)
{
	const struct report *r = a->r;
	array_each(const struct operator_row, o, r->operators) {
		struct diff_row *row = enter_request(a, o->name, o->kind);
		if (!row)
			continue;
		struct diff_run *run = add_ranges(a, row, o->count, o->host_ticks, &o->host_hist);
		run->device_ns = sat_add(run->device_ns, o->span_ns);
		hist_merge(&row->run_device, &o->span_hist);
		a->totals[TOTAL_REQUESTS] += (double)o->count;
	}
	array_each(const struct span_row, o, r->span_rows) {
		struct diff_row *row = enter_request(a, o->name, o->kind);
		if (!row)
			continue;
		add_ranges(a, row, o->count, o->host_ticks, &o->host_hist);
		a->totals[TOTAL_REQUESTS] += (double)o->count;
	}
}

static void add_moved(struct adder *a, const struct moved_row *m, const char *name)
{
	if (!m->count)
		return;
	struct diff_row *row = enter(a, TABLE_COPIES, name, NULL);
	struct diff_run *run = run_of(a, row);
	run->count = sat_add(run->count, m->count);
	run->bytes = sat_add(run->bytes, m->bytes);
	run->unsized |= m->sized < m->count;
	run->device_ns = sat_add(run->device_ns, m->device_ns);
}

static void add_copies(struct adder *a)
{
	add_moved(a, &a->r->sets, "memset");
	for (size_t i = 0; i < a->r->copies.n; i++)
		add_moved(a, &a->r->copies.v[i], a->r->copies.v[i].direction);
}

/* Several rows of a report may have one name: the median is that of all. */
static void end_run(const struct adder *a, struct diff_row *row)
{
	struct diff_run *run = run_of(a, row);
	run->host_p50_ns = hist_at(&row->run_host, 0.5);
	run->device_p50_ns = hist_at(&row->run_device, 0.5);
	hist_merge(&row->host[a->side], &row->run_host);
	hist_merge(&row->device[a->side], &row->run_device);
	hist_fini(&row->run_host);
	hist_fini(&row->run_device);
	row->run_host = row->run_device = (struct hist){ 0 };
}

static void end_runs(const struct adder *a)
{
	for (int t = 0; t < DIFF_TABLES; t++)
		for (size_t i = 0; i < a->d->rows[t].n; i++)
			if (a->d->rows[t].v[i].runs[a->side].n == a->run + 1)
				end_run(a, &a->d->rows[t].v[i]);
}

static void add_device(const struct report *r, double *v)
{
	if (r->sampled) {
		v[TOTAL_DEVICE] = r->sampled_ns;
		return;
	}
	array_each(const struct device_row, w, r->devices) {
		v[TOTAL_DEVICE] += (double)(w->kernel_ns + w->copy_ns + w->set_ns);
		v[TOTAL_BUSY] += (double)w->busy_ns;
	}
}

static void add_analysis(const struct report *r, double *v)
{
	const struct analysis *a = &r->analysis;
	for (int i = 0; i < WALL_PARTS && a->known; i++) {
		v[TOTAL_BREAKDOWN + i] = (double)a->wall_ns[i];
		if (i >= WALL_LAUNCHING && i <= WALL_UNKNOWN)
			v[TOTAL_IDLE] += (double)a->wall_ns[i];
		if (i != WALL_BEFORE && i != WALL_AFTER && i != WALL_OFF)
			v[TOTAL_SPAN] += (double)a->wall_ns[i];
	}
	for (int i = 0; i < PATH_PARTS && a->known; i++)
		v[TOTAL_PATH + i] = (double)a->path_ns[i];
}

static void add_totals(struct adder *a)
{
	const struct report *r = a->r;
	array_reserve(&a->d->totals[a->side], DIFF_SUMS);
	double *v = a->totals = a->d->totals[a->side].v + a->d->totals[a->side].n;
	a->d->totals[a->side].n += DIFF_SUMS;
	expect(a->d->totals[a->side].n == (a->run + 1) * DIFF_SUMS, "each run has its totals");
	memset(v, 0, DIFF_SUMS * sizeof *v);
	v[TOTAL_WALL] = (double)r->wall_ns;
	v[TOTAL_CALLS] = (double)r->calls;
	v[TOTAL_LAUNCHES] = (double)r->launches;
	v[TOTAL_GRAPH_LAUNCHES] = (double)r->graph_launches;
	v[TOTAL_ERRORS] = (double)r->errors;
	v[TOTAL_LOST] = (double)r->lost;
	v[TOTAL_PEAK] = (double)r->gpu_memory.peak_bytes;
	v[TOTAL_ALLOCATED] = (double)r->gpu_memory.allocated_bytes;
	v[TOTAL_ALLOCS] = (double)r->gpu_memory.allocs;
	add_device(r, v);
	add_analysis(r, v);
	array_each(const struct call_row, c, r->call_rows) {
		if (c->fn && c->fn->api != API_DRIVER)
			continue;
		v[TOTAL_HOST] += (double)ns_of(a, c->total_ticks);
		v[TOTAL_UNTIMED] += (double)(c->count - c->summed);
	}
	for (size_t i = 0; i < r->copies.n; i++)
		v[TOTAL_COPIED] += (double)r->copies.v[i].bytes;
}

static bool has_lost(const struct report *r)
{
	return r->lost || r->damaged_chunks || r->trace->damage_count || r->accounts.missing;
}

int diff_add(struct diff *d, enum diff_side_id side, const char *file, const struct report *r)
{
	struct adder a = { .d = d, .r = r, .side = side, .run = d->inputs[side].n };
	*array_push(&d->inputs[side]) = (struct diff_input){ xstrdup(file),
		xstrdup(r->trace->header.program), has_lost(r), r->sampled };
	d->has_device[side] &= r->device_kernels != 0;
	d->analysed[side] &= r->analysis.known;
	d->has_memory[side] &= report_knows_bytes(r, &r->gpu_memory);
	d->sampled[side] |= r->sampled != 0;
	d->window[side] |= is_window(r);
	d->lost[side] |= has_lost(r);
	d->part |= r->trace->parts.n != 0;
	d->off[side] = report_is_off(r) && (a.run == 0 || d->off[side]);
	add_totals(&a);
	add_kernels(&a);
	add_calls(&a);
	add_operators(&a);
	add_phases(&a);
	add_copies(&a);
	int e = add_steps(&a);
	if (!e)
		add_requests(&a);
	end_runs(&a);
	return e;
}
