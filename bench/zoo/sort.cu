/* Passes of sorts, and products with a sparse matrix. */
#include "zoo.h"

/* ---- sort ---- */

/* One compare-and-exchange step of a bitonic sort of n keys, a power of two, in place. */
extern "C" __global__ void bitonic_step(uint32_t *keys, long n, long j, long k)
{
	const long i = zoo_thread(), other = i ^ j;
	if (i >= n || other <= i)
		return;
	const uint32_t a = keys[i], b = keys[other];
	if ((a > b) == ((i & k) == 0)) {
		keys[i] = b;
		keys[other] = a;
	}
}

/* Sorts each run of 1024 keys in shared memory; 512 threads a block. */
extern "C" __global__ void __launch_bounds__(512) bitonic_shared(const uint32_t *in, uint32_t *out)
{
	__shared__ uint32_t keys[1024];
	const long first = (long)blockIdx.x * 1024;
	const int t = threadIdx.x;
	keys[t] = in[first + t];
	keys[t + 512] = in[first + t + 512];
	for (int k = 2; k <= 1024; k *= 2)
		for (int j = k / 2; j; j /= 2) {
			__syncthreads();
			const int i = 2 * t - (t & (j - 1)); /* the t-th whose bit j is 0 */
			const uint32_t a = keys[i], b = keys[i + j];
			if ((a > b) == ((i & k) == 0)) {
				keys[i] = b;
				keys[i + j] = a;
			}
		}
	__syncthreads();
	out[first + t] = keys[t];
	out[first + t + 512] = keys[t + 512];
}

/* First half of a radix pass: each block counts the digits of its `per_block` keys. */
extern "C" __global__ void radix_count(
	const uint32_t *keys, uint32_t *counts, long n, int shift, int per_block)
{
	__shared__ uint32_t bins[256];
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		bins[b] = 0;
	__syncthreads();
	const long first = (long)blockIdx.x * per_block;
	for (long i = first + threadIdx.x; i < first + per_block && i < n; i += blockDim.x)
		atomicAdd(&bins[keys[i] >> shift & 255], 1u);
	__syncthreads();
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		counts[(long)b * gridDim.x + blockIdx.x] = bins[b];
}

/* Second half, for random keys: 256 regions of `region` keys.  A block takes room for each digit by
 * one atomic on the cursors, which stand before the regions, and then stores its keys there; a
 * region that is full begins anew. */
extern "C" __global__ void radix_spread(
	const uint32_t *keys, uint32_t *out, long n, int shift, int per_block, unsigned region)
{
	__shared__ uint32_t bins[256];
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		bins[b] = 0;
	__syncthreads();
	const long first = (long)blockIdx.x * per_block;
	for (long i = first + threadIdx.x; i < first + per_block && i < n; i += blockDim.x)
		atomicAdd(&bins[keys[i] >> shift & 255], 1u);
	__syncthreads();
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		bins[b] = atomicAdd(&out[b], bins[b]);
	__syncthreads();
	for (long i = first + threadIdx.x; i < first + per_block && i < n; i += blockDim.x) {
		const uint32_t key = keys[i], digit = key >> shift & 255;
		const uint32_t at = atomicAdd(&bins[digit], 1u) % region;
		out[256 + (long)digit * region + at] = key;
	}
}

static void draw_step(struct rng *r, struct shape *s)
{
	const long log = 10 + rng_below(r, 21), k = 1 + rng_below(r, log);
	s->s[0] = 1L << log;
	s->s[2] = 1L << k;
	s->s[1] = 1L << rng_below(r, k);
	s->threads = draw_warps(r);
}

static void draw_runs(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1, 1L << 20);
	s->threads = 512;
}

static void draw_radix(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = 8 * rng_below(r, 4);
	s->s[2] = 1024 << rng_below(r, 5);
	s->s[3] = up(s->s[0], 256) + 1024;
	s->threads = draw_warps(r);
}

static void plan_step(const struct shape *s, struct plan *p)
{
	p->bytes = 8.0 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[Z] = 4 * s->s[0];
}

static void plan_runs(const struct shape *s, struct plan *p)
{
	p->bytes = 8192.0 * (double)s->s[0];
	p->block = dim3(512);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[I] = p->need[Z] = 4096 * s->s[0];
}

static void plan_count(const struct shape *s, struct plan *p)
{
	const long blocks = up(s->s[0], s->s[2]);
	p->bytes = 4.0 * (double)(s->s[0] + 256 * blocks);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)blocks);
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4 * 256 * blocks;
}

static void plan_spread(const struct shape *s, struct plan *p)
{
	plan_count(s, p);
	p->bytes = 12.0 * (double)s->s[0]; /* the keys are read twice */
	p->need[Z] = 4 * 256 * (1 + s->s[3]);
}

static void launch_step(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(bitonic_step, p, z_u32(m), s->s[0], s->s[1], s->s[2]);
}

static void launch_runs(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(bitonic_shared, p, m->i, z_u32(m));
}

static void launch_count(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(radix_count, p, m->i, z_u32(m), s->s[0], (int)s->s[1], (int)s->s[2]);
}

static void launch_spread(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(radix_spread, p, m->i, z_u32(m), s->s[0], (int)s->s[1], (int)s->s[2],
		(unsigned)s->s[3]);
}

static void oracle_step(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		const long other = i ^ s->s[1];
		uint32_t *a = z_u32(m) + i, *b = z_u32(m) + other;
		const bool rising = (i & s->s[2]) == 0;
		if (other > i && (rising ? *a > *b : *a <= *b)) {
			const uint32_t kept = *a;
			*a = *b;
			*b = kept;
		}
	}
}

static void oracle_runs(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long run = 0; run < s->s[0]; run++) {
		uint32_t *out = z_u32(m) + run * 1024;
		for (int i = 0; i < 1024; i++) { /* insertion */
			const uint32_t key = m->i[run * 1024 + i];
			int at = i;
			for (; at && out[at - 1] > key; at--)
				out[at] = out[at - 1];
			out[at] = key;
		}
	}
}

static void oracle_count(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long blocks = p->grid.x;
	for (long i = 0; i < 256 * blocks; i++)
		z_u32(m)[i] = 0;
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[(m->i[i] >> s->s[1] & 255) * blocks + i / s->s[2]]++;
}

/* Blocks take their room in any order: what is the same in all of them is how far the cursors come.
 */
static void oracle_spread(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[m->i[i] >> s->s[1] & 255]++;
}

static const struct kernel sorts[] = {
	{ "sort", "bitonic_step", "n_pow2,j,k", 1500, 0, WORDS, 0, draw_step, plan_step,
		launch_step, oracle_step },
	{ "sort", "bitonic_shared", "runs", 500, 0, WORDS, 0, draw_runs, plan_runs, launch_runs,
		oracle_runs },
	{ "sort", "radix_count", "n,shift,per_block", 1500, 0, WORDS, 0, draw_radix, plan_count,
		launch_count, oracle_count },
	/* Only the 256 cursors have one right answer. */
	{ "sort", "radix_spread", "n,shift,per_block,region", 600, 0, CURSORS, 0, draw_radix,
		plan_spread, launch_spread, oracle_spread },
};
FAMILY(sort, sorts);

/* ---- sparse matrices ---- */

/* Row r has the entries begin[r] .. begin[r + 1]; column numbers are random words. */
extern "C" __global__ void spmv_scalar(const uint32_t *begin, const uint32_t *index,
	const float *values, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread();
	if (row >= rows)
		return;
	float sum = 0;
	for (long e = begin[row]; e < begin[row + 1]; e++)
		sum += values[e] * x[__umulhi(index[e], (unsigned)columns)];
	out[row] = sum;
}

/* One warp a row. */
extern "C" __global__ void spmv_vector(const uint32_t *begin, const uint32_t *index,
	const float *values, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread() / 32;
	const int lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	float sum = 0;
	for (long e = (long)begin[row] + lane; e < begin[row + 1]; e += 32)
		sum += values[e] * x[__umulhi(index[e], (unsigned)columns)];
	sum = warp_sum(sum);
	if (lane == 0)
		out[row] = sum;
}

/* Every row has `width` entries, stored by columns of entries: coalesced. */
extern "C" __global__ void spmv_ell(const uint32_t *index, const float *values, const float *x,
	float *out, int rows, int width, int columns)
{
	const long row = zoo_thread();
	if (row >= rows)
		return;
	float sum = 0;
	for (int e = 0; e < width; e++) {
		const long at = (long)e * rows + row;
		sum += values[at] * x[__umulhi(index[at], (unsigned)columns)];
	}
	out[row] = sum;
}

static void draw_sparse(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 256, ROWS);
	s->s[1] = draw_size(r, 256, 1L << 28);
	s->threads = draw_warps(r);
}

static void draw_ell(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 1, 256);
	s->s[0] = draw_size(r, 256, at_most(1L << 24, (1L << 30) / s->s[1]));
	s->s[2] = draw_size(r, 256, 1L << 28);
	s->threads = draw_warps(r);
}

static void plan_sparse(const struct shape *s, struct plan *p, long entries, long columns)
{
	p->flops = 2.0 * (double)entries;
	p->bytes = 8.0 * (double)entries + 4.0 * (double)(s->s[0] + at_most(entries, columns));
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[X] = 4 * entries;
	p->need[I] = 4 * entries;
	p->need[Y] = 4 * columns;
	p->need[Z] = 4 * s->s[0];
}

static void plan_scalar(const struct shape *s, struct plan *p)
{
	plan_sparse(s, p, sparse_begin(s->s[0]), s->s[1]);
	p->need[R] = 4 * (s->s[0] + 1);
	p->bytes += 4.0 * (double)s->s[0];
}

static void plan_vector(const struct shape *s, struct plan *p)
{
	plan_scalar(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads / 32));
}

static void plan_ell(const struct shape *s, struct plan *p)
{
	plan_sparse(s, p, s->s[0] * s->s[1], s->s[2]);
}

static void launch_scalar(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_scalar, p, m->r, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void launch_vector(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_vector, p, m->r, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void launch_ell(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_ell, p, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static double entry(const struct arena *m, long at, long columns)
{
	return (double)m->x[at] * m->y[(uint64_t)m->i[at] * (uint64_t)columns >> 32];
}

static void oracle_csr(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++) {
		double sum = 0;
		for (long e = m->r[row]; e < m->r[row + 1]; e++)
			sum += entry(m, e, s->s[1]);
		z_f32(m)[row] = (float)sum;
	}
}

static void oracle_ell(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++) {
		double sum = 0;
		for (long e = 0; e < s->s[1]; e++)
			sum += entry(m, e * s->s[0] + row, s->s[2]);
		z_f32(m)[row] = (float)sum;
	}
}

static const struct kernel sparse[] = {
	{ "sparse", "spmv_scalar", "rows,columns", 400, 0, FLOATS, 1e-3, draw_sparse, plan_scalar,
		launch_scalar, oracle_csr },
	{ "sparse", "spmv_vector", "rows,columns", 1000, 0, FLOATS, 1e-3, draw_sparse, plan_vector,
		launch_vector, oracle_csr },
	{ "sparse", "spmv_ell", "rows,width,columns", 1000, 0, FLOATS, 1e-3, draw_ell, plan_ell,
		launch_ell, oracle_ell },
};
FAMILY(sparse, sparse);
