/* Which shapes the zoo runs: chance, estimates, and lists of launches.  Nothing here needs a GPU.
 */
#include "zoo.h"

#include <stdio.h>
#include <stdlib.h>

const struct family *const families[] = { &copy_family, &elementwise_family, &transpose_family,
	&gather_family, &reduce_family, &scan_family, &histogram_family, &softmax_family,
	&layernorm_family, &gemm_family, &stencil_family, &convolution_family, &sort_family,
	&sparse_family, NULL };

const long buffer_limit[BUFFERS] = { 12000000000L, 4L << 30, 2L << 30, 4L << 30, 4L * (ROWS + 1),
	12000000000L };

double rng_unit(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* Halves of sizes in programs are multiples of 64, or powers of two. */
static long rounded(struct rng *r, long v, long low, long high)
{
	const long how = rng_below(r, 8);
	long by = 1;
	if (how < 3 && v >= 64) {
		by = v >= 1024 ? 64 : 8;
	} else if (how == 3) {
		while (by * 2 <= v)
			by *= 2;
	}
	v = v / by * by;
	return v < low ? low : v > high ? high : v;
}

long draw_size(struct rng *r, long low, long high)
{
	if (high <= low)
		return low;
	const double span = log((double)high) - log((double)low);
	return rounded(r, (long)exp(log((double)low) + span * rng_unit(r)), low, high);
}

int draw_warps(struct rng *r)
{
	static const int sizes[] = { 64, 128, 128, 256, 256, 256, 512, 1024, 96, 192, 320, 640 };
	return sizes[rng_below(r, sizeof(sizes) / sizeof(*sizes))];
}

int draw_threads(struct rng *r)
{
	static const int odd[] = { 100, 200, 250, 500, 1000 };
	return rng_below(r, 10) ? draw_warps(r) : odd[rng_below(r, 5)];
}

long sparse_begin(long row)
{
	static uint32_t *begin;
	if (!begin) {
		struct rng r = { 77 };
		begin = (uint32_t *)malloc((ROWS + 1) * sizeof(*begin));
		if (!begin)
			abort();
		begin[0] = 0;
		for (long i = 0; i < ROWS; i++)
			begin[i + 1] = begin[i] + (uint32_t)rng_below(&r, 128);
	}
	return begin[row];
}

double plan_us(const struct kernel *k, const struct plan *p)
{
	const double bytes_us = k->gbs > 0 ? p->bytes / k->gbs / 1e3 : 0;
	const double flops_us = k->gflops > 0 ? p->flops / k->gflops / 1e3 : 0;
	const double threads = (double)p->grid.x * p->grid.y * p->grid.z * p->block.x * p->block.y;
	double fill = threads / (132 * 512);
	if (fill > 1)
		fill = 1;
	return 2 + fmax(bytes_us, flops_us) / fill;
}

static bool fits(const struct plan *p)
{
	for (int b = 0; b < BUFFERS; b++)
		if (p->need[b] > buffer_limit[b])
			return false;
	return true;
}

void choose_shape(const struct kernel *k, struct rng *r, double us, struct shape *ret_shape,
	struct plan *ret_plan)
{
	double best = INFINITY;
	for (int tries = 0; tries < 1000 && best > 0.25; tries++) {
		struct shape s = {};
		struct plan p = {};
		k->draw(r, &s);
		k->plan(&s, &p);
		const double off = fabs(log(plan_us(k, &p) / us));
		if (!fits(&p) || off >= best)
			continue;
		best = off;
		*ret_shape = s;
		*ret_plan = p;
	}
	if (best == INFINITY) {
		fprintf(stderr, "zoo: no shape of %s fits into the buffers\n", k->name);
		abort();
	}
}

static void shuffle(struct rng *r, struct list *l)
{
	for (long i = l->n - 1; i > 0; i--) {
		const long k = rng_below(r, i + 1);
		const struct item kept = l->items[i];
		l->items[i] = l->items[k];
		l->items[k] = kept;
	}
}

/* Seeds depend on names, so that a kernel keeps its shapes when others come and go. */
static uint64_t seed_of(uint64_t seed, const char *name)
{
	for (; *name; name++)
		seed = (seed ^ (uint64_t)*name) * 0x100000001b3u;
	return seed;
}

struct list list_family(
	const struct family *f, uint64_t seed, int shapes, double low_us, double high_us)
{
	struct list l = { (struct item *)calloc((size_t)(f->n * shapes * 5), sizeof(struct item)),
		0 };
	if (!l.items)
		abort();
	for (int k = 0; k < f->n; k++) {
		struct rng r = { seed_of(seed, f->kernels[k].name) };
		for (int key = 0; key < shapes; key++) {
			struct item *first = l.items + l.n;
			const double us = low_us * pow(high_us / low_us, rng_unit(&r));
			const int repeats = 3 + (int)rng_below(&r, 3);
			choose_shape(f->kernels + k, &r, us, &first->shape, &first->plan);
			first->kernel = f->kernels + k;
			first->key = key;
			for (int i = 0; i < repeats; i++, l.n++) {
				l.items[l.n] = *first;
				l.items[l.n].repeat = i;
			}
		}
	}
	struct rng r = { seed_of(seed, f->name) };
	shuffle(&r, &l);
	return l;
}
