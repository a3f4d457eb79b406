/*
 * The rows of device.c once all is counted: in order, and joined with what calls say of
 * kernels and copies.
 */
#include "base/expect.h"
#include "base/sort.h"
#include "model/device_time.h"
#include "model/roofline.h"
#include "model/statistic.h"
#include "model/tally.h"

uint32_t *device_text_slot(struct map *m, const char *text, uint16_t kind)
{
	return map_get(m, map_text_key(text, strlen(text), kind));
}

ORDERING(activity_order, struct activity_row, ORDER(b->total_ns, a->total_ns),
	ORDER(b->count, a->count), strcmp(a->name, b->name))

ORDERING(copy_order, struct copy_row, ORDER(b->total_ns, a->total_ns), ORDER(b->bytes, a->bytes))

ORDERING(operator_order, struct operator_row, ORDER(b->device_self_ns, a->device_self_ns),
	ORDER(b->device_total_ns, a->device_total_ns), ORDER(b->host_ticks, a->host_ticks),
	strcmp(a->name, b->name))

ORDERING(span_order, struct span_row, ORDER(b->host_ticks, a->host_ticks),
	ORDER(b->count, a->count), strcmp(a->name, b->name), ORDER(a->kind, b->kind))

ORDERING(stream_order, struct stream_row, ORDER(b->total_ns, a->total_ns),
	ORDER(a->stream, b->stream))

ORDERING(device_order, struct device_row, ORDER(a->device, b->device))

int moved_order(const void *one, const void *two)
{
	const struct moved_row *a = one, *b = two;
	return ORDER(b->bytes, a->bytes) ?: strcmp(a->direction, b->direction);
}

static struct moved_row *moved_of(struct report *r, const struct copy_row *c)
{
	const char *direction = copy_direction_name(c->what);
	if (c->is_memset)
		return &r->sets;
	direction = direction ? direction : "unknown";
	for (size_t i = 0; i < r->copies.n; i++)
		if (!strcmp(r->copies.v[i].direction, direction))
			return &r->copies.v[i];
	struct moved_row *new = array_push(&r->copies);
	*new = (struct moved_row){ .direction = direction };
	return new;
}

/* Puts the bytes that devices moved in place of those that calls asked for. */
static void replace_moved(struct report *r)
{
	bool copies = false, sets = false;
	for (size_t i = 0; i < r->device_copies.n; i++)
		*(r->device_copies.v[i].is_memset ? &sets : &copies) = true;
	if (copies)
		r->copies.n = 0;
	if (sets)
		r->sets = (struct moved_row){ 0 };
	array_each(const struct copy_row, c, r->device_copies) {
		struct moved_row *to = moved_of(r, c);
		to->count = sat_add(to->count, c->count);
		to->sized = sat_add(to->sized, c->sized);
		to->bytes = sat_add(to->bytes, c->bytes);
		to->sized_ns = sat_add(to->sized_ns, c->sized_ns);
		to->device_ns = sat_add(to->device_ns, c->total_ns);
	}
	SORT(r->copies, moved_order);
}

/* Names of kernels that calls asked for: which row each is. */
static void name_kernels(const struct report *r, struct map *names)
{
	for (size_t i = 0; i < r->kernel_rows.n; i++) {
		uint32_t *index = device_text_slot(names, r->kernel_rows.v[i].name, GPU_KERNEL);
		if (*index == MAP_NONE)
			*index = (uint32_t)i;
	}
}

/* Memcpys and memsets are not: of those a file has all, or none. */
static bool is_sampled(const struct activity_row *w)
{
	return w->kind == GPU_KERNEL || w->kind == GPU_GRAPH;
}

/* For timed activities: the part behind other work.  Events take time there; on an idle stream the
 * host does so, until it has recorded the second. */
static double busy_share(const struct activity_row *w)
{
	return w->hist.count ? 1 - (double)w->idle_count / (double)w->hist.count : 1;
}

/* How often it ran: as the calls say, which were all recorded, or as the samples suggest. */
static void estimate(const struct report *r, struct map *names, struct activity_row *w)
{
	const uint64_t timed = w->count;
	if (!is_sampled(w))
		return;
	uint64_t runs = sat_mul(timed, r->sampled);
	if (w->kind == GPU_GRAPH && r->graph_launches >= timed)
		runs = r->graph_launches;
	if (w->kind == GPU_KERNEL) {
		const uint32_t *index = device_text_slot(names, w->name, GPU_KERNEL);
		if (*index != MAP_NONE && r->kernel_rows.v[*index].count >= timed)
			runs = r->kernel_rows.v[*index].count;
	}
	const double mean = timed ? (double)w->total_ns / (double)timed : 0;
	const double offset = (double)r->event_pairs.least_ns * busy_share(w);
	const double total = mean > offset ? (mean - offset) * (double)runs : 0;
	w->total_ns = total < (double)(UINT64_MAX / 2) ? (uint64_t)total : UINT64_MAX / 2;
	w->error_ns = stat_estimate_error(&w->hist, (double)runs);
	w->count = runs;
}

/* Nodes of graphs are in what graphs take. */
static uint64_t launched(const struct report *r, struct map *names, const struct activity_row *w)
{
	const uint32_t *index =
		w->kind == GPU_KERNEL ? device_text_slot(names, w->name, GPU_KERNEL) : NULL;
	const struct kernel_row *k = index && *index != MAP_NONE ? &r->kernel_rows.v[*index] : NULL;
	return k && k->graph_count < w->count ? w->count - k->graph_count : w->count;
}

/*
 * The measured time holds more than the work: what events alone take, of which the least is taken
 * off, how long the stream waited for the host, of which the end is not known exactly, and the host
 * until it recorded the event behind, where the work was over by then.  So the work took at least
 * what is left without all of that, and at most what was measured.
 */
static double least_mean(const struct report *r, const struct activity_row *w)
{
	const struct event_pairs *pairs = &r->event_pairs;
	if (!pairs->count || w->waited_unknown)
		return NAN;
	const double besides = (double)pairs->total_ns / (double)pairs->count * busy_share(w) +
			       (double)w->late_ns / (double)w->hist.count;
	return fmax(w->spread.mean - besides, 0);
}

static void sum_estimates(struct report *r, struct map *names)
{
	double squares = 0, least = 0, waited = 0;
	array_each(struct activity_row, w, r->activities) {
		if (!is_sampled(w))
			continue;
		w->launched = launched(r, names, w);
		expect(w->launched <= w->count, "no more was launched than ran");
		const double share = w->count ? (double)w->launched / (double)w->count : 0;
		const double total = (double)w->total_ns * share;
		const double error = isnan(w->error_ns) ? total : w->error_ns * share;
		r->sampled_ns += total;
		squares += error * error;
		least += least_mean(r, w) * (double)w->launched;
		waited += (double)w->waited_ns / (double)w->hist.count * (double)w->launched;
	}
	r->sampled_waited_ns = waited;
	r->sampled_error_ns = sqrt(squares);
	r->sampled_least_ns = isnan(least) ? NAN : fmax(least - r->sampled_error_ns, 0);
}

static void estimate_all(struct report *r)
{
	struct map names = { 0 };
	name_kernels(r, &names);
	for (size_t i = 0; i < r->activities.n; i++)
		estimate(r, &names, &r->activities.v[i]);
	sum_estimates(r, &names);
	map_fini(&names);
}

static struct kernel_row *new_kernel(struct report *r, const struct activity_row *w)
{
	char *name = xstrdup(w->name);
	struct kernel_row *k = array_push(&r->kernel_rows);
	*k = (struct kernel_row){ .name = name,
		.mangled = w->mangled,
		.host_ticks = w->host_ticks,
		.common = w->common,
		.shapes = w->shapes,
		.shape = w->shape,
		.activity = ACTIVITY_NONE };
	return k;
}

static int join_kernel(struct report *r, struct map *names, uint32_t activity)
{
	const struct activity_row *w = &r->activities.v[activity];
	uint32_t *index = device_text_slot(names, w->name, GPU_KERNEL);
	if (*index == MAP_NONE) {
		new_kernel(r, w);
		*index = (uint32_t)(r->kernel_rows.n - 1);
	}
	if (!expect(*index < r->kernel_rows.n, "the row of a kernel is one of all"))
		return -EINVAL;
	struct kernel_row *k = &r->kernel_rows.v[*index];
	k->count = w->count;
	if (!r->sampled)
		k->graph_count = w->graph_count;
	k->activity = activity;
	return 0;
}

/* By time, and what never ran behind. */
ORDERING(kernel_order, struct kernel_row, ORDER(a->activity, b->activity),
	ORDER(b->count, a->count), strcmp(a->name, b->name))

static int join_kernels(struct report *r)
{
	struct map names = { 0 };
	name_kernels(r, &names);
	int e = 0;
	for (size_t i = 1; i < r->activities.n; i++)
		expect(r->activities.v[i - 1].total_ns >= r->activities.v[i].total_ns,
			"activities come in the order of their times");
	for (uint32_t i = 0; i < r->activities.n && !e; i++)
		if (r->activities.v[i].kind == GPU_KERNEL)
			e = join_kernel(r, &names, i);
	map_fini(&names);
	SORT(r->kernel_rows, kernel_order);
	return e;
}

static void fill_totals(struct report *r)
{
	struct map contexts = { 0 };
	r->launches = MAX(r->device_kernels, r->launches);
	if (!r->graph_launches)
		r->graph_launches = r->runtime_graph_launches;
	if (r->stream_rows.n && !r->sampled)
		r->streams = r->stream_rows.n;
	for (size_t i = 0; i < r->stream_rows.n && !r->contexts; i++) {
		const struct stream_row *s = &r->stream_rows.v[i];
		if (s->context)
			map_get(&contexts, MAP_KEY(s->process, s->device, s->context));
	}
	if (!r->contexts)
		r->contexts = contexts.taken;
	expect(contexts.taken <= r->stream_rows.n, "a context has a stream");
	map_fini(&contexts);
}

int device_make_rows(struct report *r)
{
	if (r->sampled)
		estimate_all(r);
	SORT(r->activities, activity_order);
	SORT(r->device_copies, copy_order);
	SORT(r->operators, operator_order);
	SORT(r->span_rows, span_order);
	SORT(r->stream_rows, stream_order);
	SORT(r->devices, device_order);
	if (r->device_copies.n)
		replace_moved(r);
	int e = 0;
	if (r->device_kernels && r->facets & FACET(KERNELS))
		e = join_kernels(r);
	fill_totals(r);
	roofline_fill(r);
	return e;
}

void device_fini(struct report *r)
{
	for (size_t i = 0; i < r->activities.n; i++) {
		free(r->activities.v[i].name);
		hist_fini(&r->activities.v[i].hist);
	}
	for (size_t i = 0; i < r->device_copies.n; i++)
		hist_fini(&r->device_copies.v[i].hist);
	for (size_t i = 0; i < r->operators.n; i++) {
		hist_fini(&r->operators.v[i].host_hist);
		hist_fini(&r->operators.v[i].device_hist);
		hist_fini(&r->operators.v[i].span_hist);
	}
	for (size_t i = 0; i < r->span_rows.n; i++)
		hist_fini(&r->span_rows.v[i].host_hist);
	hist_fini(&r->analysis.queue.queued);
	array_free(&r->analysis.idle_gaps, &r->analysis.idle, &r->activities, &r->device_copies,
		&r->operators, &r->span_rows, &r->stream_rows, &r->devices);
}
