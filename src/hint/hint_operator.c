/* Rules about what kernels compute, as far as their names and their order tell. */
#include "hint_rules.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/text.h"
#include "base/xmalloc.h"

#define GAIN_LEAST 0.1
#define NAME_CUT   80
#define STAYS_NS   300.0 /* between two kernels of a graph: see hint_host.c */

static double alone_of(const struct hint_facts *f, uint32_t names, uint64_t *ret_count)
{
	double ns = 0;
	uint64_t count = 0;
	for (size_t i = 0; i < f->kernels.n; i++) {
		if (!(f->kernels.v[i].names & names))
			continue;
		ns += (double)f->kernels.v[i].alone_ns;
		count += f->kernels.v[i].count;
	}
	if (ret_count)
		*ret_count = count;
	return ns;
}

static const struct hint_kernel *largest_of(const struct hint_facts *f, uint32_t names)
{
	const struct hint_kernel *best = NULL;
	array_each(const struct hint_kernel, k, f->kernels)
		if (k->names & names && (!best || k->alone_ns > best->alone_ns))
			best = k;
	return best;
}

/* How much faster the second unit is on this device by its maker's word; 1 when not known. */
static double ratio_of(
	const struct hint_facts *f, uint32_t device, enum gpu_unit now, enum gpu_unit then)
{
	const struct hint_device *d = facts_device(f, device);
	double a, b;
	if (!d || !d->gpu || !gpu_peak(d->gpu, now, &a) || !gpu_peak(d->gpu, then, &b) || a <= 0)
		return 1;
	return b / a;
}

static void precision(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	uint32_t names, enum gpu_unit now, enum gpu_unit then, double confidence)
{
	const struct hint_kernel *k = largest_of(f, names);
	uint64_t count;
	struct text_short name;
	const double share = facts_share(f, alone_of(f, names, &count));
	if (!k)
		return;
	/* Memory does not keep up with all of it. */
	const double ratio = ratio_of(f, k->device, now, then), reached = fmax(1, 0.9 * ratio);
	const double gain = fmin(share * (1 - 1 / reached), facts_most(f, NULL));
	if (gain < GAIN_LEAST)
		return;
	hint_add(to, rule, gain, confidence,
		xasprintf("%llu matrix products, most time in %s", (unsigned long long)count,
			text_short(&name, text_kernel(k->name), NAME_CUT)),
		xasprintf("%.0f %% of the analysed time is in %s products. The peak of this device "
			  "is %.1f times as high in %s, of which 90 %% are assumed",
			100 * share, gpu_unit_word(now), ratio, gpu_unit_word(then)));
}

HINT_RULE(fp32)
{
	precision(f, rule, to, NAME_FP32, GPU_FP32, GPU_TF32, 0.6);
}

/* Small products are bound by memory, training in eight bits is another matter, and convolutions
 * have no such kernels. */
HINT_RULE(low_precision)
{
	uint64_t count;
	const double ns = alone_of(f, NAME_HALF, &count);
	const struct hint_kernel *k = largest_of(f, NAME_HALF);
	if (largest_of(f, NAME_TRAINING) || !k || k->names & NAME_CONV ||
		ns / (double)count < 50000 || facts_share(f, ns) < 0.4)
		return;
	precision(f, rule, to, NAME_HALF, GPU_FP16, GPU_FP8, 0.3);
}

/* Steps of training; what inference may round to is its user's to know. */
HINT_RULE(mixed_precision)
{
	if (!largest_of(f, NAME_TRAINING))
		return;
	precision(f, rule, to, NAME_TF32, GPU_TF32, GPU_FP16, 0.5);
}

HINT_RULE(layout)
{
	uint64_t count;
	const double ns = alone_of(f, NAME_LAYOUT, &count), gain = facts_share(f, ns);
	struct text_short name;
	struct number all;
	if (count < 10 || gain < GAIN_SHOWN)
		return;
	hint_add(to, rule, gain, 0.7,
		xasprintf("%llu kernels, most time in %s", (unsigned long long)count,
			text_short(&name, text_kernel(largest_of(f, NAME_LAYOUT)->name), NAME_CUT)),
		xasprintf(
			"they take %s (%.0f %% of the analysed time) to change the layout of images "
			"before and after convolutions",
			number_ns(&all, hint_u64(ns)), 100 * gain));
}

struct runs { /* groups of kernels of one stream, one after the other */
	uint64_t groups, kernels;
	double all_ns, fused_ns; /* now, and as one kernel each */
	uint64_t again;          /* groups of the same kernels as the one before */
	uint32_t first, last;    /* kernels of that one */
};

/* The kernels of one stream in their order. */
struct sequence {
	const struct hint_facts *f;
	uint32_t *v; /* into activities */
	size_t n;
};

static const struct hint_kernel *kernel_at(const struct sequence *s, size_t i)
{
	return &s->f->kernels.v[s->f->activities.v[s->v[i]].kernel];
}

static bool is_named(const struct sequence *s, size_t i, uint32_t names)
{
	return i < s->n && kernel_at(s, i)->names & names;
}

static double ns_at(const struct sequence *s, size_t i)
{
	return (double)s->f->activities.v[s->v[i]].alone_ns;
}

/* Kernels from..to - 1 belong together, and would take fused_ns as one. */
static void add_group(
	const struct sequence *s, size_t from, size_t to, double fused_ns, struct runs *r)
{
	if (!expect(from < to && to <= s->n, "kernels that could be one follow on each other"))
		return;
	const uint32_t first = s->f->activities.v[s->v[from]].kernel,
		       last = s->f->activities.v[s->v[to - 1]].kernel;
	r->again += r->groups && first == r->first && last == r->last;
	r->groups++;
	r->kernels += to - from;
	for (size_t i = from; i < to; i++)
		r->all_ns += ns_at(s, i);
	r->fused_ns += fused_ns;
	r->first = first;
	r->last = last;
}

static double largest_ns(const struct sequence *s, size_t from, size_t to)
{
	double largest = 0;
	for (size_t i = from; i < to; i++)
		largest = fmax(largest, ns_at(s, i));
	return largest;
}

/* Calls `look` with each stream's kernels. */
static void each_sequence(const struct hint_facts *f, struct runs *r,
	void (*look)(const struct sequence *s, struct runs *r))
{
	struct sequence s = { .f = f, .v = xcalloc(f->activities.n + 1, sizeof *s.v) };
	for (uint32_t stream = 0; stream < f->streams.n && stream < 64; stream++) {
		s.n = 0;
		for (size_t i = 0; i < f->activities.n; i++)
			if (f->activities.v[i].stream == stream &&
				f->activities.v[i].kernel != HINT_NONE)
				s.v[s.n++] = (uint32_t)i;
		look(&s, r);
	}
	free(s.v);
}

/* A product, a softmax a few kernels later, and a product a few later again.  The fusion also saves
 * the writes and reads between the products, about half of their time. */
#define REACH 6u

static size_t find_next(const struct sequence *s, size_t from, uint32_t names, uint32_t not )
{
	for (size_t i = from; i < s->n && i < from + REACH; i++) {
		if (is_named(s, i, names))
			return i;
		if (is_named(s, i, not ))
			break;
	}
	return s->n;
}

static void find_attention(const struct sequence *s, struct runs *r)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!is_named(s, i, NAME_MATMUL))
			continue;
		const size_t softmax = find_next(s, i + 1, NAME_SOFTMAX, NAME_MATMUL);
		const size_t last = find_next(s, softmax + 1, NAME_MATMUL, NAME_SOFTMAX);
		if (softmax >= s->n || last >= s->n)
			continue;
		add_group(s, i, last + 1, 0.5 * (ns_at(s, i) + ns_at(s, last)), r);
		i = last;
	}
}

/* A product of Hopper's tensor cores, and one or two kernels behind it that add or activate.  On an
 * H200 such an end of weir.kernels made products of FP16 and BF16 take 1.03 to 1.06 times as long
 * (docs/explanation/kernels-results.md). */
#define WITH_EPILOGUE 1.06

static void find_product(const struct sequence *s, struct runs *r)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t to = i + 1;
		double rest = 0;
		const struct hint_device *d = facts_device(s->f, kernel_at(s, i)->device);
		if (!is_named(s, i, NAME_HALF) || is_named(s, i, NAME_CONV) || !d || !d->limits ||
			d->limits->major != 9)
			continue;
		for (; to < i + 3 && is_named(s, to, NAME_EPILOGUE); to++)
			rest += ns_at(s, to);
		if (rest > (WITH_EPILOGUE - 1) * ns_at(s, i))
			add_group(s, i, to, WITH_EPILOGUE * ns_at(s, i), r);
	}
}

/* A mean and a root close to each other, with what is computed for one element around them. */
static void find_norm(const struct sequence *s, struct runs *r)
{
	size_t done = 0;
	for (size_t i = 0; i < s->n; i++) {
		size_t from = i, to = i + 1;
		bool mean = false;
		if (!is_named(s, i, NAME_ROOT) || i < done)
			continue;
		while (from > done && i - from < REACH + 2 &&
			is_named(s, from - 1, NAME_POINTWISE | NAME_MEAN))
			mean |= is_named(s, --from, NAME_MEAN);
		while (to < s->n && to - i < 4 && is_named(s, to, NAME_POINTWISE) &&
			!is_named(s, to, NAME_ROOT))
			to++;
		if (!mean)
			continue;
		add_group(s, from, to, largest_ns(s, from, to), r);
		done = to;
	}
}

#define SHORT_NS 200000.0

/* One operation an element, or a program's own kernels over the same grid. */
static bool continues(const struct sequence *s, size_t i)
{
	const struct hint_kernel *k = kernel_at(s, i), *before = kernel_at(s, i - 1);
	if (ns_at(s, i) > SHORT_NS || k->names & NAME_COMPILED)
		return false;
	if (k->names & NAME_POINTWISE && before->names & NAME_POINTWISE)
		return true;
	return !((k->names | before->names) & NAME_LIBRARY) && k->name_id != before->name_id &&
	       !memcmp(&k->shape, &before->shape, sizeof k->shape);
}

/* A loop over a program's own kernels. */
static bool begins_anew(const struct sequence *s, size_t from, size_t i)
{
	const struct hint_kernel *k = kernel_at(s, i);
	return !(k->names & NAME_POINTWISE) && k->name_id == kernel_at(s, from)->name_id;
}

static void find_small(const struct sequence *s, struct runs *r)
{
	size_t from = 0;
	for (size_t i = 1; i <= s->n; i++) {
		if (i < s->n && continues(s, i) && i - from < 16 && !begins_anew(s, from, i))
			continue;
		if (i - from >= 3)
			add_group(s, from, i, largest_ns(s, from, i), r);
		from = i;
	}
}

static void fuse(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	void (*look)(const struct sequence *s, struct runs *r), uint64_t least, double confidence,
	const char *what)
{
	struct runs r = { 0 };
	struct number ns;
	each_sequence(f, &r, look);
	const double gain = facts_share(f, r.all_ns - r.fused_ns);
	expect(r.fused_ns <= r.all_ns * (1 + 1e-9),
		"one kernel takes no longer than those it replaces");
	expect(r.again <= r.groups, "groups that come again are part of all");
	/* Kernels that follow each other by chance differ from time to time. */
	if (r.groups < least || gain < GAIN_LEAST || 3 * r.again < r.groups)
		return;
	hint_add(to, rule, gain, confidence,
		xasprintf("%llu %s", (unsigned long long)r.groups, what),
		xasprintf(
			"%llu kernels take %s alone (%.0f %% of the analysed time). One kernel each "
			"would take about %.0f %% of that",
			(unsigned long long)r.kernels, number_ns(&ns, hint_u64(r.all_ns)),
			100 * facts_share(f, r.all_ns), 100 * r.fused_ns / r.all_ns));
}

HINT_RULE(attention)
{
	fuse(f, rule, to, find_attention, 3, 0.7, "times product, softmax, product");
}

/* Weir's kernels have no gradients. */
HINT_RULE(product)
{
	if (!largest_of(f, NAME_TRAINING))
		fuse(f, rule, to, find_product, 3, 0.5,
			"products followed by what one kernel could do too");
}

HINT_RULE(norm)
{
	fuse(f, rule, to, find_norm, 3, 0.7, "normalisations in several kernels");
}

HINT_RULE(small_kernels)
{
	fuse(f, rule, to, find_small, 10, 0.5, "runs of short kernels over the same elements");
}

HINT_RULE(compile)
{
	const struct hint_gaps *p = &f->idle_gaps[GAP_LAUNCH];
	uint64_t torch;
	struct number ns, pointwise;
	alone_of(f, NAME_TORCH, &torch);
	if (torch * 10 < facts_kernels(f, 0) * 3 || facts_compiled(f) ||
		f->report->graph_launches * 20 > torch)
		return;
	const double single = alone_of(f, NAME_POINTWISE, NULL);
	const double waits = fmax(0, (double)p->ns - (double)p->count * STAYS_NS);
	const double gain = facts_share(f, 0.8 * waits + 0.5 * single);
	if (gain < 1.5 * GAIN_LEAST)
		return;
	hint_add(to, rule, gain, 0.5,
		xasprintf("%llu kernels of PyTorch operators, none compiled",
			(unsigned long long)torch),
		xasprintf("%s%s: %s (%.0f %% of the analysed time), and element-wise operators "
			  "took %s (%.0f %%)%s",
			wall_part_text[gap_cause_words[GAP_LAUNCH].part],
			gap_cause_words[GAP_LAUNCH].besides, number_ns(&ns, p->ns),
			100 * facts_share(f, (double)p->ns),
			number_ns(&pointwise, hint_u64(single)), 100 * facts_share(f, single),
			waits > single / 2 ? facts_slowed(f) : ""));
}
