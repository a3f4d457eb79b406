/*
 * Estimates from samples by events, of all launches: programs are made up whose true times are
 * known, timed as the hook times them, on busy and on idle streams, and the interval of the report
 * must hold the truth in 95 of 100 of them.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "event/decode.h"
#include "maker.h"
#include "report/report_make.h"

#define FILE_NAME "test_sampling.weir"
#define CASES     200
#define KERNELS   12
#define MOST      16384 /* launches of a program */
#define RUN       16

/* One program and how it is timed. */
struct program {
	uint32_t kernels, launches, each; /* one launch in each is timed */
	double mean_ns[KERNELS], spread[KERNELS];
	uint32_t weight[KERNELS];
	bool idle;         /* the stream runs dry before each launch */
	double pair_ns;    /* what events alone take */
	double latency_ns; /* from an event to a kernel behind it */
	double host_ns;    /* from an event to the next, of the host */
	bool no_pairs;     /* recorded before these were measured */
};

static uint64_t seed;
static struct gpu_activity activity[MOST];
static struct link links[MOST];
static uint32_t timed;

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(uniform() * n);
}

static double between(double low, double high)
{
	return low + uniform() * (high - low);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static struct program make_program(uint64_t number)
{
	seed = number * 0x9e3779b97f4a7c15u + 1;
	struct program p = { .kernels = 1 + below(KERNELS),
		.launches = 500 + below(4000),
		.each = 2 + below(15),
		.idle = number & 1,
		.pair_ns = between(300, 2500),
		.latency_ns = between(200, 1500),
		.host_ns = between(2500, 9000) };
	for (uint32_t i = 0; i < p.kernels; i++) {
		p.mean_ns[i] = exp(between(log(1500), log(400000)));
		p.spread[i] = between(0, 0.7);
		p.weight[i] = 1 + below(i % 4 == 3 ? 2 : 60); /* some are rare */
	}
	return p;
}

static uint32_t draw_kernel(const struct program *p)
{
	uint32_t all = 0, i = 0;
	for (uint32_t k = 0; k < p->kernels; k++)
		all += p->weight[k];
	uint32_t at = below(all);
	while (at >= p->weight[i])
		at -= p->weight[i++];
	return i;
}

/* Whether the next launch is timed: in runs, which begin by lot. */
static bool is_next(const struct program *p, uint32_t *left, uint32_t *wait)
{
	if (!*left && !*wait) {
		*left = RUN;
		*wait = below(2 * (p->each - 1) * RUN + 1);
	}
	if (*wait) {
		--*wait;
		return false;
	}
	--*left;
	return true;
}

/* How long the stream waits for the host: on an idle one for each launch, and long where that loads
 * the kernel's module or the host loses its processor. */
static double draw_wait(const struct program *p, bool first)
{
	const double usual = p->host_ns * between(0.3, 1.2);
	return !p->idle ? 0 : first || !below(100) ? between(50000, 30000000) : usual;
}

/* False: the sample says nothing. */
static bool time_launch(
	const struct program *p, uint32_t kernel, double ns, uint64_t ticks, bool first)
{
	const double wait = draw_wait(p, first), seen = fmax(wait + between(-500, 500), 0);
	const double alone = p->pair_ns * between(0.8, 1.3) + (p->idle ? between(0, 1000) : 0);
	const double late = between(800, 2000);
	const double measured =
		p->idle ? wait + fmax(ns + between(-600, 600), late)
			: p->pair_ns * between(0.9, 1.2) + p->latency_ns * between(0.7, 1.2) + ns;
	activity[timed] = (struct gpu_activity){ .start_ns = ticks + 500,
		.end_ns = ticks + 500 + (uint64_t)measured,
		.correlation = timed + 1,
		.name = kernel + 1,
		.host_ns = (p->idle ? (uint64_t)seen : 0) | (uint64_t)late << 32,
		.pair_ns = p->no_pairs ? 0 : (uint32_t)alone,
		.kind = GPU_KERNEL,
		.valid = GPU_HAS_CORRELATION | (p->no_pairs ? 0 : GPU_HAS_PAIR) |
			 (p->no_pairs      ? 0
				 : p->idle ? GPU_STREAM_IDLE
					   : GPU_STREAM_BUSY) };
	links[timed] = (struct link){
		.correlation = timed + 1, .ticks = ticks, .dur = 100, .tid = 101, .fn = FN_LAUNCH
	};
	timed++;
	return p->no_pairs || !p->idle || seen <= SLOW_HOST_NS;
}

/* The true time of all launches of kernels that were timed at least once. */
static double record_program(const struct program *p)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, 1u << 20);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	double sum[KERNELS] = { 0 }, truth = 0;
	uint32_t seen[KERNELS] = { 0 }, made[KERNELS] = { 0 }, left = 0, wait = 0;
	timed = 0;
	m->header.sampled = p->each;
	m->header.optional |= FEATURE_DEVICE;
	for (uint64_t k = 0; k < p->kernels; k++) {
		char name[16];
		const int n = snprintf(name, sizeof name, "kernel%02u", (unsigned)k);
		const uint64_t id = k + 1;
		maker_name(m, meta, 1, 0x100 + k, name);
		maker_meta(m, meta, META_STRING, 1, 1, &id, name, (uint32_t)n, (uint32_t)n);
	}
	for (uint32_t i = 0; i < p->launches; i++) {
		const uint32_t k = draw_kernel(p);
		const double s = p->spread[k], ns = p->mean_ns[k] * exp(s * normal() - s * s / 2);
		const uint64_t ticks = 2000000 + i * 1000000ull;
		const uint64_t args[LAUNCH_WORDS] = { 0x100 + k, 0, 1ull << 32 | 8, 32ull << 32 | 1,
			1ull << 32 | 1 };
		maker_put(m, calls,
			(struct record){ .ticks = ticks,
				.dur = 100,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS },
			args);
		sum[k] += ns;
		made[k]++;
		if (is_next(p, &left, &wait))
			seen[k] += time_launch(p, k, ns, ticks, made[k] == 1);
	}
	if (timed) {
		maker_chunk(m, CHUNK_DEVICE, 100, 0, activity, timed * (uint32_t)sizeof *activity);
		maker_chunk(m, CHUNK_LINKS, 100, 0, links, timed * (uint32_t)sizeof *links);
	}
	maker_finish(m, 3000000 + p->launches * 1000000ull, false);
	for (uint32_t k = 0; k < p->kernels; k++)
		truth += seen[k] ? sum[k] : 0;
	return truth;
}

static struct trace *trace;

static struct report *load(void)
{
	struct report *r = NULL;
	struct error err = { 0 };
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	assert_int_equal(report_make(trace, 1, FACETS_BUT_HINTS, &r, &err), 0);
	return r;
}

static void unload(struct report *r)
{
	report_free(r);
	trace_close(trace);
	unlink(FILE_NAME);
}

static void the_interval_holds_the_truth_in_95_of_100_programs(void **state)
{
	uint32_t cases = 0, held[2] = { 0 }, busy_held = 0;
	double widths = 0;
	for (uint64_t i = 0; cases < CASES; i++) {
		const struct program p = make_program(i);
		const double truth = record_program(&p);
		if (truth <= 0)
			continue;
		struct report *r = load();
		const double least = r->sampled_least_ns, most = report_sampled_most_ns(r);
		assert_false(isnan(least));
		const bool holds = least <= truth && truth <= most;
		held[0] += least <= truth;
		held[1] += truth <= most;
		busy_held += holds;
		widths += (most - least) / truth;
		cases++;
		unload(r);
	}
	print_message("held %u of %u: least %u, most %u; width on average %.0f %%\n", busy_held,
		cases, held[0], held[1], 100 * widths / cases);
	assert_true(busy_held * 100 >= 95 * cases);
	assert_true(widths / cases < 0.6); /* an interval that says nothing would hold it, too */
}

/* Without these the time is an upper bound, and nothing is said of the other end. */
static void without_empty_pairs_there_is_no_lower_end(void **state)
{
	struct program p = make_program(3);
	p.no_pairs = true;
	const double truth = record_program(&p);
	struct report *r = load();
	assert_true(isnan(r->sampled_least_ns));
	assert_true(report_sampled_most_ns(r) >= truth);
	unload(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interval_holds_the_truth_in_95_of_100_programs),
		cmocka_unit_test(without_empty_pairs_there_is_no_lower_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
