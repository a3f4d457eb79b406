/* Finds what bounds kernels and operators. */
#include "model/roofline.h"

#include "base/expect.h"
#include "base/number.h"
#include "predict/predict.h"
#include "model/cost.h"
#include "model/host_time.h"
#include "model/tally.h"

/* Below this share of both ceilings neither is what bounds a kernel. */
#define BOUND_SHARE 0.25

/* A kernel so short is mostly its own start and end. */
#define SHORT_NS 5000u

/* Executions that are no chance. */
#define OFTEN 3u

const char *const bound_class_name[] = { NULL, "compute", "memory", "latency", "launch" };
const char *const bound_basis_name[] = { NULL, "cost", "time", "name" };

void roofline_gpu(struct report *r)
{
	const struct device_row *busiest = NULL;
	for (size_t i = 0; i < r->devices.n; i++)
		if (!busiest || r->devices.v[i].busy_ns > busiest->busy_ns)
			busiest = &r->devices.v[i];
	for (size_t i = 0; busiest && i < r->meta.devices.n; i++) {
		const struct meta_device *d = &r->meta.devices.v[i];
		const unsigned cc = (d->capability >> 16) * 10 + (d->capability & 0xffff);
		if (d->device != busiest->device)
			continue;
		r->gpu = gpu_find(r->meta.names.v[d->name].text, cc);
		r->gpu_sms = d->multiprocessors;
		return;
	}
}

/* The share of the unit's peak; 0: not known. */
static double flops_share(const struct gpu *g, const struct cost *c, double ns)
{
	const double rate = c->flops * 1e9 / ns;
	if (!c->has_flops || !c->has_unit)
		return 0;
	bool beyond;
	const double share = gpu_flops_share(g, c->unit, c->matrix, rate, &beyond);
	/* If FP32 units cannot have done the work, tensor cores have, though no name says so. */
	if (beyond && c->matrix && c->unit == GPU_FP32 && !c->unit_by_name)
		return gpu_flops_share(g, GPU_TF32, true, rate, &beyond);
	return beyond && c->at_most ? 0 : share;
}

static void add_share(struct roofline_share *to, double share, double ns)
{
	if (share <= 0)
		return;
	to->ns += ns;
	to->ideal_ns += share * ns;
}

void roofline_add(const struct gpu *g, struct roofline *to, const struct cost *c, uint64_t ns)
{
	to->count++;
	to->ns = sat_add(to->ns, ns);
	to->flops += c->has_flops ? c->flops : 0;
	to->bytes += c->has_bytes ? c->bytes : 0;
	to->has_flops |= c->has_flops;
	to->has_bytes |= c->has_bytes;
	if (c->has_flops && c->has_unit && expect(c->unit < GPU_UNITS, "a unit is one of all")) {
		to->unit_flops[c->unit] += c->flops;
		if (!to->has_unit || to->unit_flops[c->unit] > to->unit_flops[to->unit])
			to->unit = (uint8_t)c->unit;
		to->has_unit = true;
	}
	if (!g || !ns)
		return;
	add_share(&to->compute, flops_share(g, c, (double)ns), (double)ns);
	bool beyond = false;
	double memory = c->has_bytes ? gpu_bytes_share(g, c->bytes, (double)ns, &beyond) : 0;
	memory = beyond && c->at_most ? 0 : memory;
	add_share(&to->memory, memory, (double)ns);
	if (c->has_bytes && memory <= 0)
		to->cached_ns += (double)ns;
}

static void find_shares(struct roofline *l)
{
	l->flops_share = l->compute.ns > 0 ? l->compute.ideal_ns / l->compute.ns : 0;
	l->bytes_share = l->memory.ns > 0 ? l->memory.ideal_ns / l->memory.ns : 0;
	expect(!(l->flops_share < 0) && !(l->bytes_share < 0), "a share is not below 0");
}

/* False where it does not follow from costs: what computes little may still be close to what memory
 * can do, where its bytes are not known. */
static bool classify_cost(struct roofline *l)
{
	const double most = l->flops_share > l->bytes_share ? l->flops_share : l->bytes_share;
	const bool cached = 2 * l->cached_ns > (double)l->ns;
	if (most < BOUND_SHARE && !cached && l->memory.ns <= 0)
		return false;
	l->basis = BASIS_COST;
	l->class = cached && l->flops_share < BOUND_SHARE ? BOUND_MEMORY
		   : most < BOUND_SHARE                   ? BOUND_LATENCY
		   : l->flops_share > l->bytes_share      ? BOUND_COMPUTE
							  : BOUND_MEMORY;
	return true;
}

static bool is_small(const struct report *r, const struct activity_row *w)
{
	const struct launch_shape *s = &w->shape;
	const double blocks = (double)s->grid[0] * s->grid[1] * s->grid[2];
	const bool few = w->common && r->gpu_sms && blocks < r->gpu_sms;
	/* If a kernel runs long and short, as a copy of all sizes does, the long runs take the
	 * time. */
	return few || (w->count && w->total_ns / w->count < SHORT_NS);
}

static enum bound_class class_of_family(enum predict_family family)
{
	switch (family) {
	case FAMILY_GEMM:
	case FAMILY_CONV:
	case FAMILY_ATTENTION:
		return BOUND_COMPUTE;
	case FAMILY_SOFTMAX:
	case FAMILY_NORM:
	case FAMILY_REDUCE:
	case FAMILY_SCAN:
	case FAMILY_GATHER:
	case FAMILY_STENCIL:
	case FAMILY_POOL:
	case FAMILY_TRANSPOSE:
	case FAMILY_COPY:
	case FAMILY_ELEMENTWISE:
		return BOUND_MEMORY;
	default:
		return BOUND_UNKNOWN;
	}
}

static void classify_name(struct activity_row *w)
{
	struct predict_kernel k = { 0 };
	predict_kernel_name(&k, w->name, 0);
	w->roofline.class = (uint8_t)class_of_family(k.family);
	/* A kernel that only helps a product, by adding up parts of it, moves data. */
	if (w->roofline.class == BOUND_COMPUTE && predict_product_of(w->name).helps)
		w->roofline.class = BOUND_MEMORY;
	w->roofline.basis = w->roofline.class ? BASIS_NAME : BASIS_NONE;
}

/*
 * The device stood still before it for longer than it ran, since the host was slow to launch:
 * before half of its executions, for one long gap says nothing of the others.  A kernel that runs
 * for longer than a framework needs from one launch to the next has to be seen to starve again and
 * again: a gap before one execution, at the begin of the run or of the part that is read, has other
 * causes.
 */
static bool is_starved(const struct activity_row *w)
{
	const bool often = w->count >= OFTEN || hist_at(&w->hist, 0.5) < HOST_GAP_NS;
	return w->starved_ns > w->total_ns && often && 2 * w->starved_count >= w->count;
}

static void classify_kernel(const struct report *r, struct activity_row *w)
{
	struct roofline *l = &w->roofline;
	const bool at_ceiling = l->flops_share >= BOUND_SHARE || l->bytes_share >= BOUND_SHARE;
	if (!at_ceiling && is_starved(w)) {
		l->class = BOUND_LAUNCH;
		l->basis = BASIS_TIME;
	} else if (classify_cost(l)) {
		return;
	} else if (is_small(r, w)) {
		l->class = BOUND_LATENCY;
		l->basis = BASIS_TIME;
	} else {
		classify_name(w);
	}
}

void roofline_fill(struct report *r)
{
	array_each(struct activity_row, w, r->activities) {
		find_shares(&w->roofline);
		if (w->kind == GPU_KERNEL && !w->communicates)
			classify_kernel(r, w);
	}
	for (size_t i = 0; i < r->operators.n; i++) {
		find_shares(&r->operators.v[i].roofline);
		classify_cost(&r->operators.v[i].roofline);
	}
}

/* The share that the class is about; 0: of none, or not known. */
static double class_share(const struct roofline *l)
{
	if (l->class == BOUND_LAUNCH)
		return 0;
	if (l->class == BOUND_MEMORY)
		return l->bytes_share;
	return l->flops_share > l->bytes_share ? l->flops_share : l->bytes_share;
}

static double in_percent(double share)
{
	return round(share * 100);
}

bool roofline_is_over(const struct roofline *l)
{
	return in_percent(class_share(l)) > 100;
}

void roofline_put_over(FILE *out)
{
	fputs("  over 100 %: faster than what was measured on such a GPU, which is less than its "
	      "maker's peak; or what was done is less than sizes and types say\n",
		out);
}

bool roofline_text(const struct roofline *l, char *to, size_t size)
{
	const double share = class_share(l);
	if (share > 0)
		snprintf(to, size, "%s %.0f %%", bound_class_name[l->class], in_percent(share));
	else if (l->class)
		snprintf(to, size, "%s%s", bound_class_name[l->class],
			l->basis == BASIS_NAME ? "?" : "");
	return l->class;
}

void roofline_put_sum(FILE *out, const struct report *r)
{
	double flops = 0;
	uint64_t ns = 0;
	struct number n;
	array_each(const struct activity_row, w, r->activities) {
		flops += w->kind == GPU_KERNEL && w->roofline.has_flops ? w->roofline.flops : 0;
		ns += w->kind == GPU_KERNEL ? w->total_ns : 0;
	}
	if (flops > 0 && ns)
		fprintf(out,
			"All kernels, as far as their FLOPs are known: %.3g TFLOP in %s of kernels, a mean of %.3g TFLOP/s.\n",
			flops / 1e12, number_ns(&n, ns), flops / 1e3 / (double)ns);
}

void roofline_put_unknown(FILE *out, const struct report *r)
{
	uint64_t calls = 0, known = 0;
	array_each(const struct operator_row, o, r->operators) {
		if (o->kind != RANGE_OPERATOR || !o->roofline.count)
			continue;
		calls += o->count;
		known += o->roofline.count < o->count ? o->roofline.count : o->count;
	}
	struct number a, b;
	if (known < calls)
		fprintf(out,
			"FLOPs and bytes leave out %s of %s calls, whose shapes or types are not known (costed_count: calls that are in).\n",
			number_count(&a, calls - known), number_count(&b, calls));
}

double roofline_peak_share(const struct gpu *g, const struct roofline *l)
{
	double ceiling, peak;
	return g && l->has_unit && l->flops_share > 0 && gpu_ceiling(g, l->unit, &ceiling) &&
			       gpu_peak(g, l->unit, &peak)
		       ? l->flops_share * ceiling / peak
		       : 0;
}
