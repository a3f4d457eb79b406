/* Every kernel of the zoo against its oracle, on small shapes with awkward sizes.  Buffers have
 * exactly the size that the shape's plan names, so that a checker of memory (AddressSanitizer when
 * emulated, compute-sanitizer on a GPU) sees every access beyond. */
#include "zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
static void *there_new(const void *from, size_t bytes)
{
	void *p = NULL;
	if (cudaMalloc(&p, bytes) != cudaSuccess ||
		cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
		abort();
	return p;
}

static void there_get(void *to, const void *from, size_t bytes)
{
	const cudaError_t e = cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "zoo: %s\n", cudaGetErrorString(e));
	exit(1);
}

static void there_free(void *p)
{
	cudaFree(p);
}

enum { ORDERS = 1 };

static void set_order(int order) /* the GPU takes the order that it takes */
{
}
#else
static void *there_new(const void *from, size_t bytes)
{
	void *p = malloc(bytes);
	if (!p)
		abort();
	memcpy(p, from, bytes);
	return p;
}

static void there_get(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static void there_free(void *p)
{
	free(p);
}

enum { ORDERS = 3 };

static void set_order(int order)
{
	emulate_order = order;
}
#endif

static void fill(struct rng *r, int buffer, void *to, long bytes)
{
	float *f = (float *)to;
	__half *h = (__half *)to;
	uint32_t *u = (uint32_t *)to;
	for (long i = 0; i < bytes / (buffer == H ? 2 : 4); i++)
		switch (buffer) {
		case X:
		case Y:
			f[i] = (float)(2 * rng_unit(r) - 1);
			break;
		case H:
			h[i] = __float2half((float)(2 * rng_unit(r) - 1));
			break;
		case R:
			u[i] = (uint32_t)sparse_begin(i);
			break;
		case Z: /* small as a float, and as a counter */
			u[i] = (uint32_t)rng_below(r, 1000);
			break;
		default:
			u[i] = (uint32_t)rng_next(r);
		}
}

static struct arena arena_of(void *const buffers[BUFFERS])
{
	const struct arena m = { (float *)buffers[X], (float *)buffers[Y], (__half *)buffers[H],
		(const uint32_t *)buffers[I], (const uint32_t *)buffers[R], buffers[Z] };
	return m;
}

static int answer_bytes(enum answer answer)
{
	return answer == HALVES ? 2 : answer == DOUBLES ? 8 : 4;
}

static double answer_at(enum answer answer, const void *from, long i)
{
	if (answer == HALVES)
		return __half2float(((const __half *)from)[i]);
	return answer == DOUBLES ? ((const double *)from)[i] : ((const float *)from)[i];
}

/* Elements that differ. */
static long differences(const struct kernel *k, const void *got, const void *want, long bytes)
{
	const long n = k->answer == CURSORS ? 256 : bytes / answer_bytes(k->answer);
	long wrong = 0;
	for (long i = 0; i < n; i++) {
		if (k->answer == WORDS || k->answer == CURSORS) {
			wrong += ((const uint32_t *)got)[i] != ((const uint32_t *)want)[i];
			continue;
		}
		const double a = answer_at(k->answer, got, i), b = answer_at(k->answer, want, i);
		wrong += !(fabs(a - b) <= k->tolerance * (1 + fabs(b)));
	}
	return wrong;
}

static long check_shape(
	const struct kernel *k, const struct shape *s, const struct plan *p, struct rng *r)
{
	void *here[BUFFERS], *there[BUFFERS];
	long wrong = 0;
	for (int b = 0; b < BUFFERS; b++) {
		here[b] = malloc((size_t)p->need[b] + 1);
		if (!here[b])
			abort();
		fill(r, b, here[b], p->need[b]);
		there[b] = there_new(here[b], (size_t)p->need[b]);
	}
	const struct arena m = arena_of(there), expected = arena_of(here);
	k->launch(p, s, &m);
	k->oracle(p, s, &expected);
	void *got = malloc((size_t)p->need[Z] + 1);
	if (!got)
		abort();
	there_get(got, there[Z], (size_t)p->need[Z]);
	wrong = differences(k, got, here[Z], p->need[Z]);
	free(got);
	for (int b = 0; b < BUFFERS; b++) {
		free(here[b]);
		there_free(there[b]);
	}
	return wrong;
}

static void say_wrong(const struct kernel *k, const struct shape *s, long wrong)
{
	printf("%s: %ld elements are wrong at", k->name, wrong);
	for (int i = 0; i < SIZES; i++)
		printf(" %ld", s->s[i]);
	printf(", %d threads\n", s->threads);
}

static double work(const struct plan *p)
{
	return p->flops + (double)p->grid.x * p->grid.y * p->grid.z * p->block.x * p->block.y * 16;
}

/* The smallest of several draws: sizes stay odd, and an emulated thread costs a microsecond. */
static void choose_small(
	const struct kernel *k, struct rng *r, struct shape *ret_shape, struct plan *ret_plan)
{
	double best = INFINITY;
	for (int tries = 0; tries < 300 && best > 1.5e5; tries++) {
		struct shape s = {};
		struct plan p = {};
		k->draw(r, &s);
		k->plan(&s, &p);
		if (work(&p) >= best || p.need[X] + p.need[Y] + p.need[Z] + p.need[I] > 1L << 25)
			continue;
		best = work(&p);
		*ret_shape = s;
		*ret_plan = p;
	}
}

static bool check_kernel(const struct kernel *k, uint64_t seed, int shapes)
{
	struct rng r = { seed };
	bool good = true;
	for (int i = 0; i < shapes && good; i++) {
		struct shape s = {};
		struct plan p = {};
		choose_small(k, &r, &s, &p);
		for (int order = 0; order < ORDERS && good; order++) {
			set_order(order);
			const long wrong = check_shape(k, &s, &p, &r);
			good = !wrong;
			if (wrong)
				say_wrong(k, &s, wrong);
		}
	}
	printf("%-4s %s\n", good ? "ok" : "BAD", k->name);
	return good;
}

int check_all(const char *only, uint64_t seed, int shapes)
{
	int bad = 0;
	for (int f = 0; families[f]; f++)
		for (int k = 0; k < families[f]->n; k++) {
			const struct kernel *kernel = families[f]->kernels + k;
			if (!only || !strcmp(only, families[f]->name) ||
				!strcmp(only, kernel->name))
				bad += !check_kernel(kernel, seed, shapes);
		}
	return bad;
}
