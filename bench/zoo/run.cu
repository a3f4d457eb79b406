/* The parts of the zoo on the GPU: one stream, one launch after the other, each a row of the side
 * table, which numbers them as the driver saw them.  Only launch() and fill() start kernels. */
#include "zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

cudaStream_t zoo_stream;

struct zoo {
	const char *app;
	FILE *csv;
	struct arena arena;
	long order;        /* of the next launch of this process */
	int waiting;       /* launches since the last wait */
	double waiting_us; /* of them, by estimate */
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "zoo: %s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

static void wait_for_all(struct zoo *z)
{
	must(cudaStreamSynchronize(zoo_stream), "waiting for the launches");
	z->waiting = 0;
	z->waiting_us = 0;
}

static void put_head(struct zoo *z)
{
	fprintf(z->csv, "app,order,family,kernel,key,repeat,flops,bytes,sizes,host_ns\n");
}

/* "m=64 n=64", of the shape's sizes and the kernel's names for them. */
static void put_sizes(FILE *f, const char *names, const long *sizes)
{
	for (int i = 0; *names; i++) {
		const int n = (int)strcspn(names, ",");
		fprintf(f, "%s%.*s=%ld", i ? " " : "", n, names, sizes[i]);
		names += n + (names[n] == ',');
	}
}

static void put_row(struct zoo *z, const char *family, const struct item *it)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	fprintf(z->csv, "%s,%ld,%s,%s,%d,%d,%.0f,%.0f,", z->app, z->order++, family,
		it->kernel->name, it->key, it->repeat, it->plan.flops, it->plan.bytes);
	put_sizes(z->csv, it->kernel->sizes, it->shape.s);
	fprintf(z->csv, ",%lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
}

static void launch(struct zoo *z, const char *family, const struct item *it)
{
	put_row(z, family, it);
	it->kernel->launch(&it->plan, &it->shape, &z->arena);
	must(cudaGetLastError(), it->kernel->name);
	z->waiting_us += plan_us(it->kernel, &it->plan);
	if (++z->waiting >= 64 || z->waiting_us > 20000)
		wait_for_all(z);
}

static __device__ uint32_t hash(uint64_t i)
{
	uint64_t v = (i + 1) * 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 31) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(v >> 32);
}

extern "C" __global__ void fill_floats(float *to, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		to[i] = (float)(int)hash(i) * 0x1p-31f;
}

extern "C" __global__ void fill_halves(__half *to, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		to[i] = __float2half((float)(int)hash(i) * 0x1p-31f);
}

extern "C" __global__ void fill_words(uint32_t *to, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		to[i] = hash(i);
}

/* Fills a buffer; a row of the side table like every launch. */
static void fill(struct zoo *z, int buffer, void *p, long bytes)
{
	static const struct kernel floats = { "setup", "fill_floats", "n", 3000 };
	static const struct kernel halves = { "setup", "fill_halves", "n", 3000 };
	static const struct kernel words = { "setup", "fill_words", "n", 3000 };
	struct item it = { buffer == H ? &halves : buffer == I ? &words : &floats };
	const long n = bytes / (buffer == H ? 2 : 4);
	it.shape.s[0] = n;
	it.plan.bytes = (double)bytes;
	put_row(z, "setup", &it);
	if (buffer == H)
		fill_halves<<<1056, 256, 0, zoo_stream>>>((__half *)p, n);
	else if (buffer == I)
		fill_words<<<1056, 256, 0, zoo_stream>>>((uint32_t *)p, n);
	else
		fill_floats<<<1056, 256, 0, zoo_stream>>>((float *)p, n);
	must(cudaGetLastError(), "filling a buffer");
}

static void *new_rows(long bytes)
{
	uint32_t *host = (uint32_t *)malloc((size_t)bytes);
	void *p = NULL;
	if (!host)
		abort();
	for (long i = 0; i < bytes / 4; i++)
		host[i] = (uint32_t)sparse_begin(i);
	must(cudaMalloc(&p, (size_t)bytes), "memory for rows");
	must(cudaMemcpyAsync(p, host, (size_t)bytes, cudaMemcpyHostToDevice, zoo_stream), "rows");
	must(cudaStreamSynchronize(zoo_stream), "rows");
	free(host);
	return p;
}

static void *new_buffer(struct zoo *z, int buffer, long bytes)
{
	void *p = NULL;
	if (!bytes)
		return NULL;
	if (buffer == R)
		return new_rows(bytes);
	must(cudaMalloc(&p, (size_t)bytes), "memory on the device");
	fill(z, buffer, p, bytes);
	return p;
}

static void need_list(long need[BUFFERS], const struct list *l)
{
	for (long i = 0; i < l->n; i++)
		for (int b = 0; b < BUFFERS; b++)
			if (l->items[i].plan.need[b] > need[b])
				need[b] = l->items[i].plan.need[b];
}

static int open_zoo(struct zoo *z, const struct options *o)
{
	z->app = o->app;
	z->csv = fopen(o->csv ? o->csv : "/dev/null", "w");
	if (!z->csv) {
		fprintf(stderr, "zoo: cannot write %s\n", o->csv);
		return 1;
	}
	setvbuf(z->csv, NULL, _IOFBF, 1 << 20);
	must(cudaStreamCreate(&zoo_stream), "a stream");
	put_head(z);
	return 0;
}

static void fill_arena(struct zoo *z, const long need[BUFFERS])
{
	void *p[BUFFERS];
	for (int b = 0; b < BUFFERS; b++)
		p[b] = new_buffer(z, b, need[b]);
	z->arena = (struct arena){ (float *)p[X], (float *)p[Y], (__half *)p[H],
		(const uint32_t *)p[I], (const uint32_t *)p[R], p[Z] };
	wait_for_all(z);
}

static int close_zoo(struct zoo *z)
{
	wait_for_all(z);
	const int bad = fclose(z->csv) != 0;
	if (bad)
		fprintf(stderr, "zoo: the side table is not whole: no space?\n");
	printf("%s: %ld launches\n", z->app, z->order);
	return bad;
}

static const struct kernel *find_kernel(const char *name)
{
	for (int f = 0; families[f]; f++)
		for (int k = 0; k < families[f]->n; k++)
			if (!strcmp(families[f]->kernels[k].name, name))
				return families[f]->kernels + k;
	abort();
}

static struct item item_of(const struct kernel *k, int key, const struct shape *s)
{
	struct item it = { k, *s, {}, key, 0 };
	k->plan(s, &it.plan);
	return it;
}

/* Half a second of work, so that clocks are up and the driver has loaded what it loads. */
static void warm_up(struct zoo *z)
{
	const struct shape s = { { 1 << 20, 2000 }, 256 };
	const struct item it = item_of(find_kernel("chain_fma"), -1, &s);
	const double end = now_s() + 0.5;
	for (int i = 0; i < 5000 && now_s() < end; i++)
		launch(z, "warmup", &it);
	wait_for_all(z);
}

static long count_kernels(const char *only)
{
	long n = 0;
	for (int f = 0; families[f]; f++)
		if (!only || !strcmp(only, families[f]->name))
			n += families[f]->n;
	return n;
}

static void run_family(struct zoo *z, const struct family *f, const struct list *l, double seconds)
{
	const double begin = now_s();
	long done = 0;
	while (done < l->n && now_s() < begin + seconds)
		launch(z, f->name, l->items + done++);
	wait_for_all(z);
	printf("%-12s %6ld of %6ld launches in %.2f s\n", f->name, done, l->n, now_s() - begin);
}

int run_zoo(const struct options *o)
{
	struct zoo z = {};
	struct list lists[32] = {};
	long need[BUFFERS] = { 4L << 20, 0, 0, 0, 0, 4L << 20 }; /* the warm-up's */
	const long kernels = count_kernels(o->family);
	if (!kernels) {
		fprintf(stderr, "zoo: there is no family %s\n", o->family);
		return 2;
	}
	for (int f = 0; families[f]; f++) {
		if (o->family && strcmp(o->family, families[f]->name))
			continue;
		lists[f] = list_family(families[f], o->seed, o->shapes, 2, 10000);
		need_list(need, lists + f);
	}
	if (open_zoo(&z, o))
		return 1;
	fill_arena(&z, need);
	warm_up(&z);
	for (int f = 0; families[f]; f++)
		if (lists[f].n)
			run_family(&z, families[f], lists + f,
				o->seconds * families[f]->n / (double)kernels);
	return close_zoo(&z);
}

/* One key a thousand times. */
struct ruler {
	const char *kernel;
	struct shape shape; /* of about 2 us, but for s[scaled] */
	int scaled;
	long least, most;
	double most_us;
};

static const struct ruler rulers[] = {
	{ "copy_f32", { { 0 }, 256 }, 0, 1000, 3000000000L, 5000 },
	{ "chain_fma", { { 1 << 19, 0 }, 256 }, 1, 1, 1 << 30, 10000 },
	{ "gemm_tile_64x64", { { 512, 512, 0 }, 0 }, 2, 16, 1 << 20, 2000 },
};

static double measure_us(struct zoo *z, const struct item *it)
{
	static cudaEvent_t begin, end;
	float ms = 0, best = INFINITY;
	if (!begin) {
		must(cudaEventCreate(&begin), "an event");
		must(cudaEventCreate(&end), "an event");
	}
	for (int i = 0; i < 4; i++) {
		must(cudaEventRecord(begin, zoo_stream), "an event");
		launch(z, "calibrate", it);
		must(cudaEventRecord(end, zoo_stream), "an event");
		wait_for_all(z);
		must(cudaEventElapsedTime(&ms, begin, end), "an event");
		best = fminf(best, ms);
	}
	return best * 1e3;
}

/* The size that makes the ruler's kernel take about `us`. */
static struct item item_of_length(struct zoo *z, const struct ruler *r, int key, double us)
{
	const struct kernel *k = find_kernel(r->kernel);
	struct shape s = r->shape;
	double size = (double)r->least * 64;
	struct item it;
	for (int i = 0; i < 6; i++) {
		size = fmin(fmax(size, (double)r->least), (double)r->most);
		s.s[r->scaled] = (long)size;
		it = item_of(k, key, &s);
		const double t = measure_us(z, &it);
		if (fabs(t / us - 1) < 0.1)
			break;
		/* At most 30 times more at once: what the start of a kernel takes does not grow. */
		size *= fmin(30, fmax(us - 2, 0.1) / fmax(t - 2, 0.1));
	}
	return it;
}

static void repeat_length(struct zoo *z, const struct ruler *r, int key, double us, int times)
{
	struct item it = item_of_length(z, r, key, us);
	for (it.repeat = 0; it.repeat < times; it.repeat++) {
		launch(z, "repeat", &it);
		z->waiting_us += us - plan_us(it.kernel, &it.plan);
	}
	wait_for_all(z);
}

int run_repeat(const struct options *o)
{
	static const double lengths[] = { 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000,
		10000 };
	enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };
	struct zoo z = {};
	/* The longest products take 512 x 2^18 floats. */
	const long need[BUFFERS] = { 12000000000L, 4L << 30, 0, 0, 0, 12000000000L };
	const double end = now_s() + o->seconds;
	if (open_zoo(&z, o))
		return 1;
	fill_arena(&z, need);
	warm_up(&z);
	for (int i = 0; i < LENGTHS; i++)
		for (size_t r = 0; r < sizeof(rulers) / sizeof(*rulers); r++) {
			if (lengths[i] > rulers[r].most_us)
				continue;
			/* A thousand, but at most a third of the time that is left. */
			const double room = (end - now_s()) / 3 / (lengths[i] * 1e-6);
			const int times = room > 1000 ? 1000 : (int)room;
			if (times >= 50)
				repeat_length(&z, rulers + r, i, lengths[i], times);
			else
				printf("no time left for %s of %.0f us\n", rulers[r].kernel,
					lengths[i]);
		}
	return close_zoo(&z);
}

/* A mixture for as long as asked. Start two of these at once. */
int run_contend(const struct options *o)
{
	static const char *const mix[] = { "copy_f32x4", "chain_fma", "transpose_tiled",
		"gather_rows", "reduce_rows", "histogram_shared", "softmax_block",
		"layernorm_block", "gemm_tile_64x64", "gemm_wmma_64x64", "stencil2d_5",
		"conv2d_depthwise" };
	enum { KERNELS = sizeof(mix) / sizeof(*mix), KEYS = 8 };
	static struct item items[KERNELS * KEYS];
	struct list all = { items, KERNELS * KEYS };
	struct rng shapes = { 4711 }, order = { o->seed };
	struct zoo z = {};
	long need[BUFFERS] = { 4L << 20, 0, 0, 0, 0, 4L << 20 };
	for (int i = 0; i < KERNELS * KEYS; i++) {
		items[i].kernel = find_kernel(mix[i / KEYS]);
		items[i].key = i % KEYS;
		choose_shape(items[i].kernel, &shapes, 5 * pow(400, rng_unit(&shapes)),
			&items[i].shape, &items[i].plan);
	}
	need_list(need, &all);
	if (open_zoo(&z, o))
		return 1;
	fill_arena(&z, need);
	warm_up(&z);
	const double end = now_s() + o->seconds;
	for (int i = 0; i < 200000 && now_s() < end; i++) {
		struct item *it = items + rng_below(&order, KERNELS * KEYS);
		launch(&z, "contend", it);
		it->repeat++;
	}
	return close_zoo(&z);
}
