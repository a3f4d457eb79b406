/* Gathering and judging: see diff.h. */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "model/statistic.h"
#include "trace/activity.h"

#include "base/banned.h"

#define CHANCE 0.01 /* p below which a difference is not taken for chance */

const struct diff_total_name diff_total_names[DIFF_TOTALS] = {
	[TOTAL_WALL] = { "wall", "wall_ns", "wall time", UNIT_NS, false },
	[TOTAL_DEVICE] = { "device_total", "device_total_ns", "time on devices", UNIT_NS, false },
	[TOTAL_BUSY] = { "device_busy", "device_busy_ns", "devices busy", UNIT_NS, false },
	[TOTAL_HOST] = { "host_total", "host_total_ns", "time in driver calls", UNIT_NS, false },
	[TOTAL_CALLS] = { "calls", "calls", "calls", UNIT_COUNT, false },
	[TOTAL_LAUNCHES] = { "launches", "launches", "kernels run", UNIT_COUNT, false },
	[TOTAL_GRAPH_LAUNCHES] = { "graph_launches", "graph_launches", "graph launches", UNIT_COUNT,
		false },
	[TOTAL_ERRORS] = { "errors", "errors", "failing calls", UNIT_COUNT, true },
	[TOTAL_LOST] = { "lost", "lost", "calls lost", UNIT_COUNT, true },
	[TOTAL_PEAK] = { "peak_bytes", "peak_bytes", "memory, peak", UNIT_BYTES, false },
	[TOTAL_ALLOCATED] = { "allocated_bytes", "allocated_bytes", "memory allocated", UNIT_BYTES,
		false },
	[TOTAL_ALLOCS] = { "allocs", "allocs", "allocations", UNIT_COUNT, false },
	[TOTAL_COPIED] = { "copied_bytes", "copied_bytes", "bytes copied", UNIT_BYTES, false },
};

const char *diff_verdict_word(enum diff_verdict v)
{
	static const char *const words[] = { NULL, "same", "faster", "slower", "new", "gone" };
	return expect(v <= VERDICT_GONE, "a verdict is one of all") ? words[v] : NULL;
}

int diff_new(struct diff **ret_d, double threshold_pct)
{
	struct diff *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->threshold_pct = threshold_pct;
	d->has_device[DIFF_A] = d->has_device[DIFF_B] = true;
	*ret_d = d;
	return 0;
}

static void row_fini(struct diff_row *row)
{
	free(row->name);
	for (int s = 0; s < DIFF_SIDES; s++) {
		array_free(&row->runs[s]);
		hist_fini(&row->host[s]);
		hist_fini(&row->device[s]);
	}
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (int t = 0; t < DIFF_TABLES; t++) {
		for (size_t i = 0; i < d->rows[t].n; i++)
			row_fini(&d->rows[t].v[i]);
		array_free(&d->rows[t]);
		map_fini(&d->names[t]);
	}
	for (int s = 0; s < DIFF_SIDES; s++) {
		for (size_t i = 0; i < d->inputs[s].n; i++) {
			free(d->inputs[s].v[i].file);
			free(d->inputs[s].v[i].program);
		}
		array_free(&d->inputs[s]);
		array_free(&d->totals[s]);
	}
	for (size_t i = 0; i < d->notes.n; i++)
		free(d->notes.v[i]);
	array_free(&d->notes);
	free(d);
}

/* ---- gathering ---- */

struct adder {
	struct diff *d;
	const struct report *r;
	enum diff_side_id side;
	size_t run; /* of this side, from 0 */
};

static uint64_t ns_of(const struct adder *a, uint64_t ticks)
{
	return trace_span_ns(a->r->trace, ticks);
}

static struct diff_row *row_of(
	struct adder *a, enum diff_table table, const char *name, const char *kind)
{
	const uint64_t other = kind ? hash_fnv32(kind, strlen(kind)) : 0;
	struct diff_row *row = MAP_ROW(&a->d->names[table], map_text_key(name, strlen(name), other),
		&a->d->rows[table], (struct diff_row){ .name = strdup(name), .kind = kind });
	return row && row->name ? row : NULL;
}

/* The row, with room for this run's numbers; runs in which there was no such row are zeros. */
static struct diff_row *enter(
	struct adder *a, enum diff_table table, const char *name, const char *kind)
{
	struct diff_row *row = row_of(a, table, name, kind);
	while (row && row->runs[a->side].n <= a->run) {
		struct diff_run *new = array_push(&row->runs[a->side]);
		if (!new)
			return NULL;
		*new = (struct diff_run){ 0 };
	}
	expect(!row || row->runs[a->side].n == a->run + 1, "the run at hand is a row's last");
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

static int add_kernels(struct adder *a)
{
	const struct report *r = a->r;
	for (size_t i = 0; i < r->kernel_rows.n; i++) {
		const struct kernel_row *k = &r->kernel_rows.v[i];
		const struct activity_row *w =
			k->activity == ACTIVITY_NONE ? NULL : &r->activities.v[k->activity];
		expect(k->activity == ACTIVITY_NONE || k->activity < r->activities.n,
			"the GPU activities of a kernel are one of the rows");
		struct diff_row *row = enter(a, TABLE_KERNELS, k->name, NULL);
		if (!row)
			return -ENOMEM;
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, k->count);
		run->host_ns = sat_add(run->host_ns, ns_of(a, k->host_ticks));
		run->host_p50_ns = ns_of(a, hist_at(&k->hist, 0.5));
		add_ticks(a, &row->host[a->side], &k->hist);
		if (!w)
			continue;
		run->device_ns = sat_add(run->device_ns, w->total_ns);
		run->device_p50_ns = hist_at(&w->hist, 0.5);
		hist_merge(&row->device[a->side], &w->hist);
	}
	return 0;
}

static int add_calls(struct adder *a)
{
	const struct report *r = a->r;
	for (size_t i = 0; i < r->call_rows.n; i++) {
		const struct call_row *c = &r->call_rows.v[i];
		const char *api = schema_api_name(c->fn);
		struct fn_name room;
		const char *name = report_fn_name(r, c->id, &room);
		struct diff_row *row = enter(a, TABLE_CALLS, name, api);
		if (!row)
			return -ENOMEM;
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, c->count);
		run->host_ns = sat_add(run->host_ns, ns_of(a, c->total_ticks));
		run->host_p50_ns = ns_of(a, hist_at(&c->hist, 0.5));
		run->bytes = sat_add(run->bytes, c->bytes);
		add_ticks(a, &row->host[a->side], &c->hist);
	}
	return 0;
}

static int add_operators(struct adder *a)
{
	for (size_t i = 0; i < a->r->operators.n; i++) {
		const struct operator_row *o = &a->r->operators.v[i];
		const char *kind = range_kind_name(o->kind);
		struct diff_row *row = enter(a, TABLE_OPERATORS, o->name, kind);
		if (!row)
			return -ENOMEM;
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, o->count);
		run->host_ns = sat_add(run->host_ns, ns_of(a, o->host_ticks));
		run->device_ns = sat_add(run->device_ns, o->device_total_ns);
		run->host_p50_ns = ns_of(a, hist_at(&o->host_hist, 0.5));
		run->device_p50_ns = hist_at(&o->device_hist, 0.5);
		add_ticks(a, &row->host[a->side], &o->host_hist);
		hist_merge(&row->device[a->side], &o->device_hist);
	}
	return 0;
}

static int add_phases(struct adder *a)
{
	for (size_t i = 0; i < a->r->operators.n; i++) {
		const struct operator_row *o = &a->r->operators.v[i];
		if (o->kind == RANGE_OPERATOR)
			continue;
		struct diff_row *row = enter(a, TABLE_PHASES, o->name, range_kind_name(o->kind));
		if (!row)
			return -ENOMEM;
		struct diff_run *run = run_of(a, row);
		run->count = sat_add(run->count, o->count);
		run->host_ns = sat_add(run->host_ns, ns_of(a, o->host_ticks));
		run->device_ns = sat_add(run->device_ns, o->span_ns);
		run->host_p50_ns = ns_of(a, hist_at(&o->host_hist, 0.5));
		run->device_p50_ns = hist_at(&o->span_hist, 0.5);
		run->busy_p50_ns = hist_at(&o->device_hist, 0.5);
		add_ticks(a, &row->host[a->side], &o->host_hist);
		hist_merge(&row->device[a->side], &o->span_hist);
	}
	return 0;
}

static int add_moved(struct adder *a, const struct moved_row *m, const char *name)
{
	struct diff_row *row = m->count ? enter(a, TABLE_COPIES, name, NULL) : NULL;
	if (!row)
		return m->count ? -ENOMEM : 0;
	struct diff_run *run = run_of(a, row);
	run->count = sat_add(run->count, m->count);
	run->bytes = sat_add(run->bytes, m->bytes);
	run->device_ns = sat_add(run->device_ns, m->device_ns);
	return 0;
}

static int add_copies(struct adder *a)
{
	int e = add_moved(a, &a->r->sets, "set");
	for (size_t i = 0; i < a->r->copies.n && !e; i++)
		e = add_moved(a, &a->r->copies.v[i], a->r->copies.v[i].direction);
	return e;
}

static void add_device(const struct report *r, double *v)
{
	if (r->sampled) {
		v[TOTAL_DEVICE] = r->sampled_ns;
		return;
	}
	for (size_t i = 0; i < r->devices.n; i++) {
		const struct device_row *w = &r->devices.v[i];
		v[TOTAL_DEVICE] += (double)(w->kernel_ns + w->copy_ns + w->set_ns);
		v[TOTAL_BUSY] += (double)w->busy_ns;
	}
}

static int add_totals(struct adder *a)
{
	const struct report *r = a->r;
	double *v = array_reserve(&a->d->totals[a->side], DIFF_TOTALS)
			    ? a->d->totals[a->side].v + a->d->totals[a->side].n
			    : NULL;
	if (!v)
		return -ENOMEM;
	a->d->totals[a->side].n += DIFF_TOTALS;
	expect(a->d->totals[a->side].n == (a->run + 1) * DIFF_TOTALS, "each run has its totals");
	memset(v, 0, DIFF_TOTALS * sizeof *v);
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
	for (size_t i = 0; i < r->call_rows.n; i++) {
		const struct call_row *c = &r->call_rows.v[i];
		if (!c->fn || c->fn->api == API_DRIVER)
			v[TOTAL_HOST] += (double)ns_of(a, c->total_ticks);
	}
	for (size_t i = 0; i < r->copies.n; i++)
		v[TOTAL_COPIED] += (double)r->copies.v[i].bytes;
	return 0;
}

int diff_add(struct diff *d, enum diff_side_id side, const char *file, const struct report *r)
{
	struct adder a = { .d = d, .r = r, .side = side, .run = d->inputs[side].n };
	struct diff_input *in = array_push(&d->inputs[side]);
	if (!in)
		return -ENOMEM;
	*in = (struct diff_input){ strdup(file), strdup(r->trace->header.program), r->lost != 0,
		r->sampled };
	d->has_device[side] &= r->device_kernels != 0;
	d->sampled[side] |= r->sampled != 0;
	int e = in->file && in->program ? add_totals(&a) : -ENOMEM;
	if (!e)
		e = add_kernels(&a);
	if (!e)
		e = add_calls(&a);
	if (!e)
		e = add_operators(&a);
	if (!e)
		e = add_phases(&a);
	return e ? e : add_copies(&a);
}

/* ---- judging ---- */

static double change(double a, double b)
{
	return a != 0 ? (b - a) / a * 100 : b == 0 ? 0 : NAN;
}

double diff_percentile(const struct diff_row *row, enum diff_side_id side, double p)
{
	const struct hist *h = row->by_device ? &row->device[side] : &row->host[side];
	return h->count ? (double)hist_at(h, p) : NAN;
}

double diff_mean(const struct diff_row *row, enum diff_side_id side)
{
	const struct diff_value *v = &row->value[side];
	return v->there && v->count > 0 ? v->total_ns / v->count : NAN;
}

enum field { FIELD_COUNT, FIELD_BYTES, FIELD_TOTAL, FIELD_P50, FIELD_BUSY };

static double field_of(const struct diff_run *run, enum field field, bool device)
{
	switch (field) {
	case FIELD_COUNT:
		return (double)run->count;
	case FIELD_BYTES:
		return (double)run->bytes;
	case FIELD_P50:
		return (double)(device ? run->device_p50_ns : run->host_p50_ns);
	case FIELD_BUSY:
		return (double)run->busy_p50_ns;
	default:
		return (double)(device ? run->device_ns : run->host_ns);
	}
}

/* One number of each run; runs at the end that lack the row are zeros. */
static void fields(const struct diff_row *row, int side, size_t runs, enum field field, bool device,
	double *out)
{
	expect(row->runs[side].n <= runs, "a row is of no more runs than its side has");
	for (size_t i = 0; i < runs; i++)
		out[i] = i < row->runs[side].n ? field_of(&row->runs[side].v[i], field, device) : 0;
}

struct judge {
	struct diff *d;
	double *a, *b; /* room for one number of each run */
	size_t na, nb;
	bool several; /* two runs or more on each side */
};

static double median_of(
	struct judge *j, const struct diff_row *row, int side, enum field field, bool device)
{
	double *v = side == DIFF_A ? j->a : j->b;
	const size_t n = side == DIFF_A ? j->na : j->nb;
	fields(row, side, n, field, device, v);
	return stat_median(v, n);
}

static double runs_p(struct judge *j, const struct diff_row *row, enum field field, bool device)
{
	fields(row, DIFF_A, j->na, field, device, j->a);
	fields(row, DIFF_B, j->nb, field, device, j->b);
	return stat_runs_p(j->a, j->na, j->b, j->nb);
}

/* More or less time than the threshold lets pass, and not by chance. */
static enum diff_verdict verdict_of(const struct diff *d, double pct, double p)
{
	if (isnan(p))
		return VERDICT_NONE;
	if (p >= CHANCE || isnan(pct) || fabs(pct) < d->threshold_pct)
		return VERDICT_SAME;
	return pct > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
}

/* The total decides; where it cannot, what one takes decides, unless the total contradicts. */
static void judge_times(struct judge *j, struct diff_row *row, bool device)
{
	const struct hist *h = device ? row->device : row->host;
	double longer = NAN;
	double p = stat_hist_p(&h[DIFF_A], &h[DIFF_B], &longer);
	double p50 = change((double)hist_at(&h[DIFF_A], 0.5), (double)hist_at(&h[DIFF_B], 0.5));
	double total_p = stat_totals_p(&h[DIFF_A], &h[DIFF_B]);
	if (j->several) {
		total_p = runs_p(j, row, FIELD_TOTAL, device);
		p = runs_p(j, row, FIELD_P50, device);
		p50 = change(median_of(j, row, DIFF_A, FIELD_P50, device),
			median_of(j, row, DIFF_B, FIELD_P50, device));
	}
	row->longer = longer;
	row->p = total_p;
	row->verdict = verdict_of(j->d, row->change_pct, total_p);
	if (row->verdict == VERDICT_SLOWER || row->verdict == VERDICT_FASTER)
		return;
	const enum diff_verdict of_median = verdict_of(j->d, p50, p);
	const bool contradicts =
		fabs(row->change_pct) >= j->d->threshold_pct && (row->change_pct > 0) != (p50 > 0);
	if (of_median <= VERDICT_SAME || contradicts)
		return;
	row->verdict = of_median;
	row->p = p;
}

/* Estimates of totals: from the few that were timed, and how often all ran. */
static void judge_estimates(struct judge *j, struct diff_row *row)
{
	const struct hist *h = row->device;
	row->p = stat_estimates_p(
		&h[DIFF_A], row->value[DIFF_A].count, &h[DIFF_B], row->value[DIFF_B].count);
	if (j->several)
		row->p = runs_p(j, row, FIELD_TOTAL, true);
	row->verdict = verdict_of(j->d, row->change_pct, row->p);
}

static double known(double ns)
{
	return ns > 0 ? ns : NAN;
}

/* How often something happens is nobody's merit: medians are compared, not totals. */
static void judge_phase(struct judge *j, struct diff_row *row)
{
	const struct hist *h = row->by_device ? row->device : row->host;
	double median[DIFF_SIDES];
	for (int s = 0; s < DIFF_SIDES; s++) {
		struct diff_value *v = &row->value[s];
		v->span_ns = known(median_of(j, row, s, FIELD_P50, true));
		v->busy_ns = known(median_of(j, row, s, FIELD_BUSY, true));
		v->host_ns = known(median_of(j, row, s, FIELD_P50, false));
		median[s] = row->by_device ? v->span_ns : v->host_ns;
	}
	row->factor = median[DIFF_A] / median[DIFF_B];
	row->change_pct = 100 / row->factor - 100;
	if (!row->value[DIFF_A].there || !row->value[DIFF_B].there)
		return;
	row->p = stat_hist_p(&h[DIFF_A], &h[DIFF_B], &row->longer);
	if (j->several)
		row->p = runs_p(j, row, FIELD_P50, row->by_device);
	row->verdict = verdict_of(j->d, row->change_pct, row->p);
}

/* Whether the times of a row are the device's: a phase may have launched no activity. */
static bool is_by_device(const struct judge *j, const struct diff_row *row, enum diff_table table)
{
	const bool sampled = j->d->sampled[DIFF_A] || j->d->sampled[DIFF_B];
	if (table == TABLE_CALLS || !j->d->by_device || (sampled && table != TABLE_KERNELS))
		return false;
	for (int s = 0; s < DIFF_SIDES && table == TABLE_PHASES; s++)
		if (row->runs[s].n && !row->device[s].count)
			return false;
	return true;
}

static void judge_row(struct judge *j, struct diff_row *row, enum diff_table table)
{
	const bool device = is_by_device(j, row, table);
	for (int s = 0; s < DIFF_SIDES; s++)
		row->value[s] = (struct diff_value){ .there = row->runs[s].n,
			.count = median_of(j, row, s, FIELD_COUNT, device),
			.bytes = median_of(j, row, s, FIELD_BYTES, device),
			.total_ns = median_of(j, row, s, FIELD_TOTAL, device) };
	row->by_device = device;
	const struct diff_value *a = &row->value[DIFF_A], *b = &row->value[DIFF_B];
	expect(a->there || b->there, "a row is of one side at least");
	row->change_ns = b->total_ns - a->total_ns;
	row->change_pct = change(a->total_ns, b->total_ns);
	row->p = row->longer = row->factor = NAN;
	if (!a->there || !b->there)
		row->verdict = a->there ? VERDICT_GONE : VERDICT_NEW;
	if (table == TABLE_PHASES)
		judge_phase(j, row);
	else if (!a->there || !b->there || (table == TABLE_KERNELS && j->d->apart))
		return;
	else if (table == TABLE_KERNELS && device && j->d->sampled[DIFF_A])
		judge_estimates(j, row);
	else if (a->total_ns > 0 || b->total_ns > 0)
		judge_times(j, row, device);
	else if (a->count == b->count && a->bytes == b->bytes)
		row->verdict = VERDICT_SAME;
}

/* What no run, or not every run, of a side says is not known there. */
static bool is_known(const struct diff *d, enum diff_total t, int side)
{
	if (t == TOTAL_DEVICE)
		return d->has_device[side];
	return t != TOTAL_BUSY || (d->has_device[side] && !d->sampled[side]);
}

static bool is_share(double value)
{
	return isnan(value) || (value >= -1e-9 && value <= 1 + 1e-9);
}

static void judge_total(struct judge *j, enum diff_total t)
{
	struct diff_sum *sum = &j->d->sums[t];
	for (int s = 0; s < DIFF_SIDES; s++) {
		double *v = s == DIFF_A ? j->a : j->b, most = 0;
		const size_t n = s == DIFF_A ? j->na : j->nb;
		for (size_t i = 0; i < n; i++) {
			v[i] = j->d->totals[s].v[i * DIFF_TOTALS + t];
			most = v[i] > most ? v[i] : most;
		}
		const double median = stat_median(v, n);
		sum->side[s] = !is_known(j->d, t, s)       ? NAN
			       : diff_total_names[t].worst ? most
							   : median;
	}
	sum->change_pct = change(sum->side[DIFF_A], sum->side[DIFF_B]);
	sum->p = NAN;
	sum->verdict = VERDICT_NONE;
	if (diff_total_names[t].unit != UNIT_NS || isnan(sum->change_pct) ||
		(t == TOTAL_DEVICE && j->d->apart))
		return;
	sum->p = stat_runs_p(j->a, j->na, j->b, j->nb);
	expect(is_share(sum->p), "a p-value is a probability");
	sum->verdict = verdict_of(j->d, sum->change_pct, sum->p);
}

static void check_rows(const struct diff *d, enum diff_table table)
{
	for (size_t i = 0; i < d->rows[table].n; i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		const bool both = row->value[DIFF_A].there && row->value[DIFF_B].there;
		expect(is_share(row->p), "a p-value is a probability");
		expect(is_share(row->longer), "the pairs in which B is longer are a share of all");
		expect(!both || row->verdict < VERDICT_NEW,
			"what both sides have is not new or gone");
		expect(both || row->verdict >= VERDICT_NEW,
			"what one side has alone is new or gone");
		expect(!i || fabs(row[-1].change_ns) >= fabs(row->change_ns),
			"the largest change comes first");
	}
}

static int row_order(const void *one, const void *two)
{
	const struct diff_row *a = one, *b = two;
	const double x = fabs(a->change_ns), y = fabs(b->change_ns);
	if (x != y)
		return x > y ? -1 : 1;
	const double m = fabs(a->value[DIFF_B].count - a->value[DIFF_A].count);
	const double n = fabs(b->value[DIFF_B].count - b->value[DIFF_A].count);
	if (m != n)
		return m > n ? -1 : 1;
	const int names = strcmp(a->name, b->name);
	return names ? names : strcmp(a->kind ? a->kind : "", b->kind ? b->kind : "");
}

/* Whether some runs were sampled and others not. */
static bool is_apart(const struct diff *d)
{
	bool some = false, all = true;
	for (int s = 0; s < DIFF_SIDES; s++)
		for (size_t i = 0; i < d->inputs[s].n; i++) {
			some |= d->inputs[s].v[i].sampled != 0;
			all &= d->inputs[s].v[i].sampled != 0;
		}
	return some && !all;
}

int diff_finish(struct diff *d)
{
	struct judge j = { .d = d, .na = d->inputs[DIFF_A].n, .nb = d->inputs[DIFF_B].n };
	j.several = j.na > 1 && j.nb > 1;
	d->by_device = d->has_device[DIFF_A] && d->has_device[DIFF_B];
	d->apart = d->by_device && is_apart(d);
	j.a = calloc(j.na + 1, sizeof *j.a);
	j.b = calloc(j.nb + 1, sizeof *j.b);
	const int e = j.a && j.b ? diff_make_notes(d) : -ENOMEM;
	for (int t = 0; t < DIFF_TOTALS && !e; t++)
		judge_total(&j, (enum diff_total)t);
	for (int t = 0; t < DIFF_TABLES && !e; t++) {
		for (size_t i = 0; i < d->rows[t].n; i++)
			judge_row(&j, &d->rows[t].v[i], (enum diff_table)t);
		if (d->rows[t].n)
			qsort(d->rows[t].v, d->rows[t].n, sizeof *d->rows[t].v, row_order);
		check_rows(d, (enum diff_table)t);
	}
	free(j.a);
	free(j.b);
	return e;
}
