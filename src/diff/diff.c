/* Gathering and judging: see diff.h. */
#include "diff/diff.h"

#include "base/expect.h"
#include "base/hash.h"
#include "base/sort.h"

#define CHANCE    0.01 /* p below which a difference is not taken for chance */
#define CONFIRMED 4    /* a period has at least this part of the change of the length */

static const struct diff_total_name total_names[DIFF_TOTALS] = {
	[TOTAL_WALL] = { "wall_ns", "wall time", UNIT_NS, false },
	[TOTAL_DEVICE] = { "device_total_ns", "time on devices", UNIT_NS, false },
	[TOTAL_BUSY] = { "device_busy_ns", "devices busy", UNIT_NS, false },
	[TOTAL_HOST] = { "host_total_ns", "time in driver calls", UNIT_NS, false },
	[TOTAL_UNTIMED] = { "untimed_calls", "driver calls that were only counted", UNIT_COUNT,
		true },
	[TOTAL_CALLS] = { "calls", "calls", UNIT_COUNT, false },
	[TOTAL_LAUNCHES] = { "launches", "kernels run", UNIT_COUNT, false },
	[TOTAL_GRAPH_LAUNCHES] = { "graph_launches", "graph launches", UNIT_COUNT, false },
	[TOTAL_STEPS] = { "steps", "steps", UNIT_COUNT, false },
	[TOTAL_REQUESTS] = { "requests", "requests", UNIT_COUNT, false },
	[TOTAL_ERRORS] = { "errors", "failing calls", UNIT_COUNT, true },
	[TOTAL_LOST] = { "lost", "calls lost", UNIT_COUNT, true },
	[TOTAL_PEAK] = { "peak_bytes", "memory, peak", UNIT_BYTES, false },
	[TOTAL_ALLOCATED] = { "allocated_bytes", "memory allocated", UNIT_BYTES, false },
	[TOTAL_ALLOCS] = { "allocs", "allocations", UNIT_COUNT, false },
	[TOTAL_COPIED] = { "copied_bytes", "bytes copied", UNIT_BYTES, false },
	[TOTAL_IDLE] = { "idle_ns", "devices idle, from the first GPU activity to the last",
		UNIT_NS, false },
	[TOTAL_SPAN] = { "span_ns", "GPU span", UNIT_NS, false },
};

struct diff_total_name diff_total_name(unsigned total)
{
	if (total < DIFF_TOTALS)
		return total_names[total];
	if (total < TOTAL_PATH)
		return (struct diff_total_name){ wall_part_name[total - TOTAL_BREAKDOWN],
			wall_part_text[total - TOTAL_BREAKDOWN], UNIT_NS, false };
	return (struct diff_total_name){ path_part_name[total - TOTAL_PATH],
		path_part_text[total - TOTAL_PATH], UNIT_NS, false };
}

const char *diff_verdict_word(enum diff_verdict v)
{
	static const char *const words[] = { NULL, "same", "faster", "slower", "new", "gone" };
	return expect(v <= VERDICT_GONE, "a verdict is one of all") ? words[v] : NULL;
}

void diff_new(struct diff **ret_d, double threshold_pct)
{
	struct diff *d = xcalloc(1, sizeof *d);
	d->threshold_pct = threshold_pct;
	d->has_device[DIFF_A] = d->has_device[DIFF_B] = true;
	d->analysed[DIFF_A] = d->analysed[DIFF_B] = true;
	d->has_memory[DIFF_A] = d->has_memory[DIFF_B] = true;
	*ret_d = d;
}

static void row_fini(struct diff_row *row)
{
	free(row->name);
	for (int s = 0; s < DIFF_SIDES; s++) {
		array_free(&row->runs[s]);
		hist_fini(&row->host[s]);
		hist_fini(&row->device[s]);
	}
	hist_fini(&row->run_host);
	hist_fini(&row->run_device);
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
		array_free(&d->inputs[s], &d->totals[s]);
	}
	for (size_t i = 0; i < d->notes.n; i++)
		free(d->notes.v[i]);
	for (size_t i = 0; i < DIFF_SENTENCES; i++)
		free(d->conclusion.sentence[i]);
	array_free(&d->notes, &d->judged);
	free(d);
}

static double change(double a, double b)
{
	return a != 0 ? (b - a) / a * 100 : b == 0 ? 0 : NAN;
}

/* A percentile over all runs of a side; NAN when no single durations are known. */
static double percentile(const struct diff_row *row, int side, double p)
{
	const struct hist *h = row->by_device ? &row->device[side] : &row->host[side];
	return h->count ? (double)hist_at(h, p) : NAN;
}

enum field { FIELD_COUNT, FIELD_BYTES, FIELD_TOTAL, FIELD_P50, FIELD_BUSY, FIELD_THREADS };

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
	case FIELD_THREADS:
		return run->threads;
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

/* The median of each run that has it. */
static size_t run_medians(const struct diff_row *row, int side, bool device, double *out)
{
	size_t n = 0;
	for (size_t i = 0; i < row->runs[side].n; i++) {
		const double v = field_of(&row->runs[side].v[i], FIELD_P50, device);
		if (v > 0)
			out[n++] = v;
	}
	return n;
}

static double known(double ns)
{
	return ns > 0 ? ns : NAN;
}

/* Weir compares the medians of several runs, and what single ones consist of. */
static struct stat_medians medians_of(
	struct judge *j, const struct diff_row *row, bool device, double *ret_longer)
{
	const struct hist *h = device ? row->device : row->host;
	const struct stat_medians single = stat_hist_medians(&h[DIFF_A], &h[DIFF_B], ret_longer);
	if (!j->several)
		return single;
	const size_t na = run_medians(row, DIFF_A, device, j->a);
	const size_t nb = run_medians(row, DIFF_B, device, j->b);
	return stat_runs_medians(j->a, na, j->b, nb);
}

/* The only place where a verdict comes from: the change that is printed, against its noise, chance
 * and the threshold. */
struct diff_change diff_change_of(const struct diff *d, const struct stat_medians *m)
{
	struct diff_change c = { .pct = change(m->a, m->b), .p = m->p };
	const double of = m->a > 0 && !isnan(c.p) ? m->a / 100 : NAN;
	c.noise_pct = m->noise / of;
	c.below_pct = fmin(m->below / of, 100 + c.pct); /* nothing takes less than no time */
	c.above_pct = m->above / of;
	if (isnan(c.p) || isnan(c.pct))
		c.verdict = VERDICT_NONE;
	else if (c.p >= CHANCE || fabs(c.pct) < d->threshold_pct || !(fabs(m->b - m->a) > m->noise))
		c.verdict = VERDICT_SAME;
	else
		c.verdict = c.pct > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
	expect(c.verdict != VERDICT_FASTER || m->b < m->a, "what is faster takes less");
	expect(c.verdict != VERDICT_SLOWER || m->b > m->a, "what is slower takes more");
	return c;
}

/* How often something happens is nobody's merit: medians are compared, not totals. */
static void judge_median(struct judge *j, struct diff_row *row)
{
	const struct stat_medians m = medians_of(j, row, row->by_device, &row->longer);
	row->value[DIFF_A].median_ns = known(m.a);
	row->value[DIFF_B].median_ns = known(m.b);
	row->factor = row->value[DIFF_A].median_ns / row->value[DIFF_B].median_ns;
	row->change = diff_change_of(j->d, &m);
	if (isnan(row->factor))
		row->change.pct = row->change.noise_pct = row->change.below_pct =
			row->change.above_pct = NAN;
}

static void add_medians(struct judge *j, struct diff_row *row)
{
	double unused;
	const struct stat_medians span = medians_of(j, row, true, &unused);
	const struct stat_medians host = medians_of(j, row, false, &unused);
	for (int s = 0; s < DIFF_SIDES; s++) {
		struct diff_value *v = &row->value[s];
		v->span_ns = known(s == DIFF_A ? span.a : span.b);
		v->host_ns = known(s == DIFF_A ? host.a : host.b);
		v->busy_ns = known(median_of(j, row, s, FIELD_BUSY, true));
	}
}

/* A host that is ahead of the device leaves a step early, and one that prepares it is longer in it
 * than the device: what takes longer is what a step takes. */
static bool is_longer_on_device(const struct diff_row *row)
{
	double device = 0, host = 0;
	for (int s = 0; s < DIFF_SIDES; s++) {
		device += (double)hist_at(&row->device[s], 0.5);
		host += (double)hist_at(&row->host[s], 0.5);
	}
	return device > host;
}

/* Whether the times of a row are the device's: a range may have launched no activity. */
static bool is_by_device(const struct judge *j, const struct diff_row *row, enum diff_table table)
{
	const bool sampled = j->d->sampled[DIFF_A] || j->d->sampled[DIFF_B];
	if (table == TABLE_CALLS || !j->d->by_device || (sampled && table != TABLE_KERNELS))
		return false;
	for (int s = 0; s < DIFF_SIDES && table >= TABLE_PHASES; s++)
		if (row->runs[s].n && !row->device[s].count)
			return false;
	return table <= TABLE_PHASES || is_longer_on_device(row);
}

/* If a run's value is unknown, so is its side's; only devices time copies. */
static double total_of(struct judge *j, const struct diff_row *row, enum diff_table table, int side)
{
	const bool device = row->by_device;
	if (table == TABLE_COPIES && !device)
		return NAN;
	for (size_t i = 0; i < row->runs[side].n; i++)
		if (!device && row->runs[side].v[i].untimed)
			return NAN;
	return median_of(j, row, side, FIELD_TOTAL, device);
}

static double bytes_of(struct judge *j, const struct diff_row *row, int side)
{
	for (size_t i = 0; i < row->runs[side].n; i++)
		if (row->runs[side].v[i].unsized)
			return NAN;
	return median_of(j, row, side, FIELD_BYTES, row->by_device);
}

/* NAN: of some launches the size is not known. */
static double threads_of(struct judge *j, const struct diff_row *row, int side)
{
	for (size_t i = 0; i < row->runs[side].n; i++)
		if (!(row->runs[side].v[i].threads > 0))
			return NAN;
	return median_of(j, row, side, FIELD_THREADS, row->by_device) /
	       median_of(j, row, side, FIELD_COUNT, row->by_device);
}

static void judge_row(struct judge *j, struct diff_row *row, enum diff_table table)
{
	const bool device = is_by_device(j, row, table);
	row->by_device = device;
	for (int s = 0; s < DIFF_SIDES; s++) {
		struct diff_value *v = &row->value[s];
		*v = (struct diff_value){ .there = row->runs[s].n,
			.count = j->d->off[s] ? NAN : median_of(j, row, s, FIELD_COUNT, device),
			.bytes = j->d->off[s] ? NAN : bytes_of(j, row, s),
			.threads = threads_of(j, row, s),
			.total_ns = total_of(j, row, table, s),
			.p95_ns = percentile(row, s, 0.95),
			.p99_ns = percentile(row, s, 0.99) };
		v->mean_ns = v->there && v->count > 0 ? v->total_ns / v->count : NAN;
	}
	const struct diff_value *a = &row->value[DIFF_A], *b = &row->value[DIFF_B];
	expect(a->there || b->there, "a row is of one side at least");
	row->total_ns = b->total_ns - a->total_ns;
	row->total_pct = change(a->total_ns, b->total_ns);
	row->longer = NAN;
	judge_median(j, row);
	if (table >= TABLE_PHASES)
		add_medians(j, row);
	if (j->d->off[DIFF_A] || j->d->off[DIFF_B])
		row->change.verdict = VERDICT_NONE;
	else if (!a->there || !b->there)
		row->change.verdict = a->there ? VERDICT_GONE : VERDICT_NEW;
	else if (table == TABLE_KERNELS && j->d->apart)
		row->change.verdict = VERDICT_NONE;
	else if (!(a->total_ns > 0 || b->total_ns > 0) && a->count == b->count &&
		 (a->bytes == b->bytes || isnan(a->bytes) || isnan(b->bytes)))
		row->change.verdict = VERDICT_SAME;
}

/* A total is unknown if one run of the side lacks it. */
static bool is_known(const struct diff *d, unsigned t, int side)
{
	if (d->off[side])
		return t == TOTAL_WALL;
	if (t == TOTAL_DEVICE)
		return d->has_device[side];
	if (t == TOTAL_IDLE || t == TOTAL_SPAN || t >= DIFF_TOTALS)
		return d->analysed[side];
	if (t == TOTAL_PEAK || t == TOTAL_ALLOCATED)
		return d->has_memory[side];
	return t != TOTAL_BUSY || (d->has_device[side] && !d->sampled[side]);
}

static bool is_share(double value)
{
	return isnan(value) || (value >= -1e-9 && value <= 1 + 1e-9);
}

/* The totals of all runs of a side. */
static size_t totals_of(const struct diff *d, unsigned t, int side, double *out)
{
	const size_t n = d->inputs[side].n;
	for (size_t i = 0; i < n; i++)
		out[i] = d->totals[side].v[i * DIFF_SUMS + t];
	return n;
}

static void add_total(struct judge *j, unsigned t)
{
	struct diff_sum *sum = &j->d->sums[t];
	const struct diff_total_name name = diff_total_name(t);
	sum->key = name.json;
	sum->text = name.text;
	sum->unit = name.unit;
	for (int s = 0; s < DIFF_SIDES; s++) {
		double *v = s == DIFF_A ? j->a : j->b, most = 0;
		const size_t n = totals_of(j->d, t, s, v);
		for (size_t i = 0; i < n; i++)
			most = MAX(v[i], most);
		const double median = stat_median(v, n);
		sum->side[s] = !is_known(j->d, t, s) ? NAN : name.worst ? most : median;
	}
	sum->change = (struct diff_change){ .pct = change(sum->side[DIFF_A], sum->side[DIFF_B]),
		.noise_pct = NAN,
		.below_pct = NAN,
		.above_pct = NAN,
		.p = NAN };
}

/* Judges a total of the same work. */
static void judge_total(struct judge *j, unsigned t)
{
	struct diff_sum *sum = &j->d->sums[t];
	if (diff_total_name(t).unit != UNIT_NS || isnan(sum->change.pct) ||
		(t == TOTAL_DEVICE && j->d->apart))
		return;
	totals_of(j->d, t, DIFF_A, j->a);
	totals_of(j->d, t, DIFF_B, j->b);
	const struct stat_medians m = stat_runs_medians(j->a, j->na, j->b, j->nb);
	expect(is_share(m.p), "a p-value is a probability");
	sum->change = diff_change_of(j->d, &m);
}

static struct diff_row *find_steps(struct diff *d, const char *kind)
{
	for (size_t i = 0; i < d->rows[TABLE_STEPS].n; i++)
		if (!strcmp(d->rows[TABLE_STEPS].v[i].kind, kind))
			return &d->rows[TABLE_STEPS].v[i];
	return NULL;
}

static void drop_steps(struct diff *d, struct diff_row *row)
{
	struct diff_row *end = d->rows[TABLE_STEPS].v + d->rows[TABLE_STEPS].n--;
	row_fini(row);
	memmove(row, row + 1, (size_t)((char *)end - (char *)(row + 1)));
}

/* Whether the pace of steps rules out that they take as much longer, or less, as their lengths say:
 * then the host does in a step what it did between two. */
static bool is_ruled_out(const struct diff_row *length, const struct diff_row *period)
{
	const struct diff_value *l = length->value, *p = period->value;
	const struct diff_change *c = &period->change;
	const double change = l[DIFF_B].median_ns - l[DIFF_A].median_ns,
		     pace = p[DIFF_B].median_ns - p[DIFF_A].median_ns,
		     one = p[DIFF_A].median_ns / 100;
	if (isnan(c->p))
		return false;
	return length->change.verdict == VERDICT_SLOWER
		       ? pace + c->above_pct * one < change / CONFIRMED
	       : length->change.verdict == VERDICT_FASTER
		       ? pace - c->below_pct * one > change / CONFIRMED
		       : false;
}

/* A step that ends with a wait has a length, from its first launch, and a period, from the end of
 * the one before. Load that comes now and then changes periods, and a host that prepares the next
 * step in this one changes lengths. If they contradict each other, steps of the same work are
 * compared by periods, and others not at all. One of the two rows stays. */
static void settle_steps(struct diff *d)
{
	struct diff_row *length = find_steps(d, DIFF_BY_WAITS),
			*period = find_steps(d, DIFF_BY_PERIODS);
	d->work.period.p = NAN;
	if (!period)
		return;
	d->work.period = period->change;
	d->work.periods = length && is_ruled_out(length, period);
	if (d->work.periods && !d->work.same)
		length->change.verdict = VERDICT_NONE;
	if (length)
		drop_steps(d, d->work.periods && d->work.same ? length : period);
}

/* Unknown changes come last. */
static double size_of_change(const struct diff_row *row)
{
	return isnan(row->total_ns) ? -1 : fabs(row->total_ns);
}

static void check_rows(const struct diff *d, enum diff_table table)
{
	const bool off = d->off[DIFF_A] || d->off[DIFF_B];
	for (size_t i = 0; i < d->rows[table].n; i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		const bool both = row->value[DIFF_A].there && row->value[DIFF_B].there;
		expect(is_share(row->change.p), "a p-value is a probability");
		expect(is_share(row->longer), "the pairs in which B is longer are a share of all");
		expect(!both || row->change.verdict < VERDICT_NEW,
			"what both sides have is not new or gone");
		expect(both || off || row->change.verdict >= VERDICT_NEW,
			"what one side has alone is new or gone");
		expect(!i || size_of_change(row - 1) >= size_of_change(row),
			"the largest change comes first");
	}
}

static double more_of(const struct diff_row *row)
{
	return fabs(row->value[DIFF_B].count - row->value[DIFF_A].count);
}

ORDERING(row_order, struct diff_row, ORDER(size_of_change(b), size_of_change(a)),
	ORDER(more_of(b), more_of(a)), strcmp(a->name, b->name),
	strcmp(a->kind ? a->kind : "", b->kind ? b->kind : ""))

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

void diff_finish(struct diff *d)
{
	struct judge j = { .d = d, .na = d->inputs[DIFF_A].n, .nb = d->inputs[DIFF_B].n };
	j.several = j.na > 1 && j.nb > 1;
	d->by_device = d->has_device[DIFF_A] && d->has_device[DIFF_B];
	d->apart = d->by_device && is_apart(d);
	j.a = xcalloc(j.na + 1, sizeof *j.a);
	j.b = xcalloc(j.nb + 1, sizeof *j.b);
	diff_make_notes(d);
	for (int t = 0; t < DIFF_TABLES; t++) {
		for (size_t i = 0; i < d->rows[t].n; i++)
			judge_row(&j, &d->rows[t].v[i], (enum diff_table)t);
		SORT(d->rows[t], row_order);
		check_rows(d, (enum diff_table)t);
	}
	for (unsigned t = 0; t < DIFF_SUMS; t++)
		add_total(&j, t);
	if (d->sums[TOTAL_UNTIMED].side[DIFF_A] > 0 || d->sums[TOTAL_UNTIMED].side[DIFF_B] > 0)
		d->sums[TOTAL_HOST].text = "time in driver calls that were timed";
	diff_compare_work(d);
	settle_steps(d);
	for (unsigned t = 0; t < DIFF_SUMS && d->work.same; t++)
		judge_total(&j, t);
	diff_conclude(d);
	free(j.a);
	free(j.b);
}
