/*
 * Writes a trace as a training loop in Python would leave it: steps of some 150 calls whose
 * arguments repeat, times that don't, a few graphs, allocations, failures.  The same seed
 * gives the same bytes.
 *
 *	gen-trace [-n CALLS] [-t THREADS] [-s SEED] [-a PAIRS] [-p] FILE
 *
 * -p: packed; -a: so many allocations with their frees, of many sizes, a step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "trace/pack.h"
#include "maker.h"

#define KERNELS       64
#define GRAPH_NODES   40
#define STEP_LAUNCHES 58
#define PID           100
#define TICKS_A_NS    2.5 /* a processor of 2.5 GHz */

struct generator {
	struct maker *m;
	uint64_t left; /* calls still to write */
	uint64_t random;
	double spare; /* of the normal deviate's pair */
	bool has_spare;
	int pairs; /* of allocations and frees a step */
};

struct program_thread {
	int at;         /* of the maker */
	uint64_t ticks; /* its now */
	uint64_t step;
	uint64_t base; /* its tensors begin here */
	uint64_t stream;
	uint64_t blocks;
	uint64_t churned;
};

static uint64_t draw(struct generator *g)
{
	return hash_mix(g->random += 0x9e3779b97f4a7c15u);
}

static double uniform(struct generator *g)
{
	return ((double)(draw(g) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller's pair of normal deviates. */
static double normal(struct generator *g)
{
	if (g->has_spare) {
		g->has_spare = false;
		return g->spare;
	}
	const double r = sqrt(-2 * log(uniform(g))), a = 6.283185307179586 * uniform(g);
	g->spare = r * sin(a);
	g->has_spare = true;
	return r * cos(a);
}

/* Lognormal: what times of calls look like. */
static uint32_t some_ticks(struct generator *g, double median_ns, double sigma)
{
	const double t = median_ns * TICKS_A_NS * exp(sigma * normal(g));
	return t < 1e9 ? (uint32_t)t : 1000000000u;
}

struct call {
	uint16_t fn;
	uint16_t result;
	uint32_t aux;
	double median_ns;
	int arg_count;
	uint64_t args[8];
};

static void put(struct generator *g, struct program_thread *t, const struct call *c, uint64_t begin,
	uint32_t dur)
{
	const struct record head = { .ticks = begin,
		.dur = dur,
		.fn = c->fn,
		.aux = c->aux,
		.words = (uint16_t)(RECORD_WORDS + c->arg_count),
		.result = c->result };
	maker_put(g->m, t->at, head, c->args);
	if (g->left)
		g->left--;
}

static void wait_some(struct generator *g, struct program_thread *t)
{
	t->ticks += some_ticks(g, 3000, 0.6);
}

static void do_call(struct generator *g, struct program_thread *t, struct call c)
{
	wait_some(g, t);
	const uint32_t dur = some_ticks(g, c.median_ns, 0.35);
	put(g, t, &c, t->ticks, dur);
	t->ticks += dur;
}

/* A runtime call around a driver call: the inner one ends, and stands, first. */
static void do_nested(
	struct generator *g, struct program_thread *t, struct call outer, struct call inner)
{
	wait_some(g, t);
	const uint32_t before = some_ticks(g, 250, 0.3), after = some_ticks(g, 80, 0.3);
	const uint32_t dur = some_ticks(g, inner.median_ns, 0.35);
	put(g, t, &inner, t->ticks + before, dur);
	put(g, t, &outer, t->ticks, before + dur + after);
	t->ticks += before + dur + after;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static void launch(struct generator *g, struct program_thread *t, int i)
{
	const uint32_t kernel = (uint32_t)(i * 7 + i / 5) % KERNELS;
	const uint32_t blocks = 32u << (kernel % 6), threads = kernel % 3 ? 256 : 512;
	struct call inner = { .fn = FN_LAUNCH,
		.aux = kernel % 4 ? 0 : 16384,
		.median_ns = 2200,
		.arg_count = LAUNCH_WORDS,
		.args = { 0x55550000u + kernel * 64, t->stream, pair(blocks, 1), pair(1, threads),
			pair(1, 1) } };
	struct call outer = inner;
	outer.fn = FN_RT_LAUNCH;
	outer.args[0] = 0x400000u + kernel * 16;
	do_nested(g, t, outer, inner);
}

static void copy(struct generator *g, struct program_thread *t, int i)
{
	const bool down = i / 10 % 2;
	const uint64_t device = t->base + (uint64_t)i * 65536, host = 0x7fff00000000u + t->base;
	const uint64_t bytes = 4096u << (i % 5);
	const struct call inner = { .fn = down ? FN_DTOH : FN_HTOD,
		.median_ns = 3500,
		.arg_count = 4,
		.args = { down ? host : device, down ? device : host, bytes, t->stream } };
	const struct call outer = { .fn = FN_RT_COPY,
		.arg_count = 5,
		.args = { inner.args[0], inner.args[1], bytes, down ? 2 : 1, t->stream } };
	do_nested(g, t, outer, inner);
}

static void synchronize(struct generator *g, struct program_thread *t)
{
	const struct call inner = {
		.fn = FN_SYNC, .median_ns = 120000, .arg_count = 1, .args = { t->stream }
	};
	struct call outer = inner;
	outer.fn = FN_RT_SYNC;
	do_nested(g, t, outer, inner);
}

static void alloc(struct generator *g, struct program_thread *t, bool fails)
{
	const uint64_t bytes = fails ? 1ull << 40 : 2u << 20;
	const uint64_t at = fails ? 0 : t->base + 0x10000000u + t->blocks++ % 32 * bytes;
	const struct call inner = { .fn = FN_ALLOC,
		.median_ns = 90000,
		.arg_count = 2,
		.result = fails ? 2 : 0,
		.aux = fails,
		.args = { at, bytes } };
	struct call outer = inner;
	outer.fn = FN_RT_MALLOC;
	do_nested(g, t, outer, inner);
	if (!fails && t->blocks > 16)
		do_call(g, t,
			(struct call){ .fn = FN_FREE,
				.median_ns = 60000,
				.arg_count = 1,
				.args = {
					t->base + 0x10000000u + (t->blocks - 16) % 32 * bytes } });
}

/* Blocks that live for some ten others. */
static void churn(struct generator *g, struct program_thread *t)
{
	for (int i = 0; i < g->pairs; i++) {
		const uint64_t n = t->churned++, slot = n % 1024;
		const uint64_t at = t->base + 0x20000000u + slot * (1u << 20);
		const struct call inner = { .fn = FN_ALLOC,
			.median_ns = 2000,
			.arg_count = 2,
			.args = { at, 512u << (hash_mix(n) % 11) } };
		struct call outer = inner;
		outer.fn = FN_RT_MALLOC;
		do_nested(g, t, outer, inner);
		if (n >= 10)
			do_call(g, t,
				(struct call){ .fn = FN_FREE,
					.median_ns = 1000,
					.arg_count = 1,
					.args = { t->base + 0x20000000u +
						  (n - 10) % 1024 * (1u << 20) } });
	}
}

static void step(struct generator *g, struct program_thread *t)
{
	for (int i = 0; i < STEP_LAUNCHES; i++) {
		launch(g, t, i);
		if (i % 10 == 3)
			copy(g, t, i);
		if (i % 12 == 5)
			do_call(g, t,
				(struct call){ .fn = FN_EVENT_RECORD,
					.median_ns = 900,
					.arg_count = 2,
					.args = { 0x66660000u, t->stream } });
		if (i % 15 == 7)
			do_call(g, t,
				(struct call){ .fn = FN_SET,
					.median_ns = 2500,
					.arg_count = 4,
					.args = { t->base, 0, 1024, t->stream } });
	}
	if (t->step % 4 == 1)
		do_call(g, t,
			(struct call){ .fn = FN_GRAPH_LAUNCH,
				.median_ns = 9000,
				.arg_count = 2,
				.args = { 0x77770000u, t->stream } });
	do_call(g, t,
		(struct call){ .fn = FN_EVENT_QUERY,
			.median_ns = 600,
			.arg_count = 1,
			.result = t->step % 3 ? 0 : 600,
			.args = { 0x66660000u } });
	churn(g, t);
	if (t->step % 16 == 0)
		alloc(g, t, t->step % 64 == 48);
	synchronize(g, t);
	t->step++;
}

static void name_kernels(struct generator *g, int meta)
{
	static const char *const ops[] = { "add", "mul", "relu", "gelu", "softmax", "layer_norm",
		"copy", "reduce" };
	char name[160];
	for (int i = 0; i < KERNELS; i++) {
		const char *op = ops[i % 8];
		if (i % 8 == 7)
			snprintf(name, sizeof name, "ampere_sgemm_%dx%d_nn", 32 << i / 16, 64);
		else
			snprintf(name, sizeof name,
				"_ZN2at6native13vectorized_%02dIf%zu%s_opEEvPT_i", i,
				strlen(op) + 3, op);
		maker_name(g->m, meta, 1000000, 0x55550000u + (uint64_t)i * 64, name);
	}
}

static void name_graph(struct generator *g, int meta)
{
	struct graph_node nodes[GRAPH_NODES];
	for (uint32_t i = 0; i < GRAPH_NODES; i++)
		nodes[i] = (struct graph_node){ .type = i % 10 == 9 ? 1 : 0,
			.function = 0x55550000u + i % KERNELS * 64,
			.grid = { 64, 1, 1 },
			.block = { 128, 1, 1 },
			.node = 0x88880000u + i };
	const uint64_t args[3] = { 0x77770000u, GRAPH_NODES, 0 };
	maker_meta(g->m, meta, META_GRAPH, 1000000, 3, args, nodes, sizeof nodes, GRAPH_NODES);
}

static void name_all(struct generator *g)
{
	static const char process[] = "/usr/bin/python3\0python3\0train.py\0--epochs\0003";
	const int meta = maker_thread(g->m, CHUNK_META, PID, PID, "python3");
	const uint64_t parent = 1;
	maker_meta(g->m, meta, META_PROCESS, 1000000, 1, &parent, process, sizeof process,
		sizeof process);
	name_kernels(g, meta);
	name_graph(g, meta);
}

/* Threads take turns by their clocks, so that chunks come in the order of time. */
static uint64_t run(struct generator *g, int count)
{
	struct program_thread *threads = calloc((size_t)count, sizeof *threads);
	uint64_t end = 0;
	for (int i = 0; i < count; i++) {
		threads[i] = (struct program_thread){ .ticks = 1000000 + (uint64_t)i * 5000,
			.base = 0x7f0000000000u + ((uint64_t)i << 32),
			.stream = (uint64_t)i * 256 };
		threads[i].at =
			maker_thread(g->m, CHUNK_EVENTS, PID, (uint32_t)(PID + i), "python3");
	}
	while (g->left) {
		struct program_thread *t = threads;
		for (int i = 1; i < count; i++)
			if (threads[i].ticks < t->ticks)
				t = &threads[i];
		step(g, t);
		end = t->ticks > end ? t->ticks : end;
	}
	free(threads);
	return end;
}

static void count_queries(struct generator *g, uint64_t calls)
{
	struct counter counters[FN_RT_MALLOC_3D + 1] = { 0 };
	counters[FN_RT_LAST_ERROR].count = calls / 3;
	maker_chunk(g->m, CHUNK_COUNTERS, PID, PID, counters, sizeof counters);
}

static void generate(const char *path, uint64_t calls, int threads, uint64_t seed, int pairs)
{
	struct generator g = { .left = calls, .random = seed, .pairs = pairs };
	g.m = maker_new(path, maker_schema, calls > 100000 ? 1u << 20 : TRACE_GRAIN);
	g.m->header.clock = CLOCK_IS_TSC;
	name_all(&g);
	count_queries(&g, calls);
	const uint64_t end = run(&g, threads);
	struct maker *m = g.m;
	maker_finish(m, end, false);
}

/* The end's two clocks tell how long a tick is. */
static int set_end(const char *path)
{
	struct trace_header h;
	FILE *file = fopen(path, "r+");
	if (!file || fread(&h, sizeof h, 1, file) != 1)
		return -1;
	h.end.mono_ns =
		h.start.mono_ns + (uint64_t)((double)(h.end.ticks - h.start.ticks) / TICKS_A_NS);
	h.end.real_ns = h.start.real_ns + (h.end.mono_ns - h.start.mono_ns);
	rewind(file);
	const int wrong = fwrite(&h, sizeof h, 1, file) != 1;
	return fclose(file) || wrong ? -1 : 0;
}

static int pack(const char *path, uint64_t calls)
{
	struct pack_stats stats = { 0 };
	struct error err;
	if (trace_pack(path, path, &stats, &err)) {
		fprintf(stderr, "gen-trace: %s\n", err.text);
		return 1;
	}
	fprintf(stderr, "%llu calls, raw %.1f bytes a call, packed %.2f\n",
		(unsigned long long)stats.records, (double)stats.raw_bytes / (double)calls,
		(double)stats.packed_bytes / (double)stats.records);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t calls = 10000000, seed = 1;
	int threads = 2, pairs = 0, packed = 0, c;
	while ((c = getopt(argc, argv, "n:t:s:a:p")) != -1) {
		if (c == 'n')
			calls = strtoull(optarg, NULL, 10);
		else if (c == 't')
			threads = (int)strtol(optarg, NULL, 10);
		else if (c == 'a')
			pairs = (int)strtol(optarg, NULL, 10);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else
			packed = c == 'p';
	}
	if (optind + 1 != argc || threads < 1 || threads >= MAKER_THREADS - 1) {
		fprintf(stderr,
			"usage: gen-trace [-n CALLS] [-t THREADS] [-s SEED] [-a PAIRS] [-p] FILE\n");
		return 2;
	}
	generate(argv[optind], calls, threads, seed, pairs);
	if (set_end(argv[optind]))
		return 1;
	return packed ? pack(argv[optind], calls) : 0;
}
