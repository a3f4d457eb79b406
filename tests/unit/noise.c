/* See noise.h. */
#include "noise.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "monitor/request_level.h"
#include "share/segment.h"

#define STEP_S 5.0 /* between two looks */

struct gpu {
	double clock, burst_until, burst;
};

struct made {
	struct regress_what what;
	uint64_t key;
	double level, scatter, wander, rate;
	bool pauses;
	uint32_t before[SHARE_BUCKETS], now[SHARE_BUCKETS];
};

struct noise {
	const struct noise_config *c;
	uint64_t random;
	struct gpu gpu;
	struct made *made;
	double at, load;
};

static uint64_t bits(struct noise *n)
{
	n->random += 0x9e3779b97f4a7c15u;
	return hash_mix(n->random);
}

static double unit(struct noise *n)
{
	return ((double)(bits(n) >> 11) + 0.5) / 0x1p53;
}

/* The sum of four uniform values is near enough to normal, and cheap. */
static double normal(struct noise *n)
{
	const uint64_t b = bits(n);
	const double sum = (double)(b & 0xffff) + (double)(b >> 16 & 0xffff) +
			   (double)(b >> 32 & 0xffff) + (double)(b >> 48);
	return (sum / 65536 - 2) * 1.7320508;
}

static double between(struct noise *n, double low, double high)
{
	return low + (high - low) * unit(n);
}

static double time_of_day(const struct noise *n)
{
	return (n->c->begins_h + n->at / 3600) / 24 * 2 * M_PI;
}

static void step_machine(struct noise *n)
{
	struct gpu *g = &n->gpu;
	const double keep = exp(-STEP_S / 1800);
	g->clock = g->clock * keep + 0.005 * sqrt(1 - keep * keep) * normal(n);
	n->load = 0.55 - 0.45 * cos(time_of_day(n));
	if (n->at >= g->burst_until && unit(n) < STEP_S / 600) {
		g->burst_until = n->at + between(n, 5, 60);
		g->burst = log(between(n, 1.1, 2));
	}
}

/* The logarithm of what all kernels take longer by: clocks come in steps of 15 MHz. */
static double slow_machine(const struct noise *n)
{
	const struct gpu *g = &n->gpu;
	const double hertz = 1980 * exp(-g->clock + 0.01 * cos(time_of_day(n)));
	const double clock = log(1980 / (15 * round(hertz / 15)));
	return clock + (n->at < g->burst_until ? g->burst : 0);
}

double noise_of_kernel(uint64_t seed, uint32_t kernel)
{
	struct noise n = { .random = seed * 1000003 + kernel };
	return 0.005 * pow(10, unit(&n));
}

/* At the peak.  More would tell no more: a window keeps REGRESS_SAMPLES. */
double noise_launches_per_s(uint64_t seed, uint32_t kernel)
{
	struct noise n = { .random = seed * 2000003 + kernel };
	return 0.2 * pow(40, unit(&n));
}

static void make(struct noise *n, uint32_t i, struct regress *r)
{
	struct made *m = &n->made[i];
	const bool kernel = i < n->c->kernels;
	m->what.kind = kernel ? REGRESS_KERNEL : REGRESS_REQUEST;
	m->what.grid[0] = m->what.name_hash = i + 1;
	snprintf(m->what.program, sizeof m->what.program, "serve");
	snprintf(m->what.name, sizeof m->what.name, "%s_%u", kernel ? "kernel" : "class", i);
	m->key = regress_key(&m->what);
	m->scatter = kernel ? noise_of_kernel(n->c->seed, i) : 0.3;
	m->level = kernel ? 5e3 * pow(1000, unit(n)) : 2e6 * pow(100, unit(n));
	m->rate = kernel ? STEP_S * noise_launches_per_s(n->c->seed, i) : between(n, 50, 1000);
	m->pauses = unit(n) < 0.2;
	regress_begin(r, &m->what, 0);
}

static bool is_slow(const struct noise *n, uint32_t i)
{
	const struct noise_config *c = n->c;
	return c->slow_by > 0 && n->at >= c->slow_at && i >= c->slow_first &&
	       i - c->slow_first < c->slow_count;
}

static double duration(struct noise *n, const struct made *m, double log_factor)
{
	double ns = m->level * exp(log_factor + m->wander + m->scatter * normal(n));
	if (unit(n) < 0.01)
		ns *= m->what.kind == REGRESS_KERNEL ? pow(unit(n), -0.5) : between(n, 5, 50);
	return ns;
}

static uint32_t count_of(struct noise *n, const struct made *m)
{
	const double mean = m->pauses && n->load < 0.3 ? 0 : m->rate * n->load;
	const double about = mean + sqrt(mean) * normal(n) + unit(n);
	return about > 0 ? (uint32_t)about : 0;
}

static void step_kernel(struct noise *n, uint32_t i, struct regress *r)
{
	struct made *m = &n->made[i];
	const double slow = slow_machine(n) + (is_slow(n, i) ? log(n->c->slow_by) : 0);
	const uint32_t count = count_of(n, m);
	for (uint32_t k = 0; k < count; k++)
		regress_add(r, m->key, 1, (uint64_t)((n->at + k * STEP_S / count) * 1e9) + 1,
			(uint64_t)duration(n, m, slow));
}

static void step_requests(struct noise *n, uint32_t i, struct regress *r)
{
	struct made *m = &n->made[i];
	const double slow = 0.15 * n->load + (n->at < n->gpu.burst_until ? n->gpu.burst / 3 : 0) +
			    (is_slow(n, i) ? log(n->c->slow_by) : 0);
	uint64_t sum = 0;
	uint32_t of, count = count_of(n, m);
	memcpy(m->before, m->now, sizeof m->now);
	for (; count; count--) {
		const uint64_t took = (uint64_t)duration(n, m, slow);
		share_count(m->now, took);
		sum += took;
	}
	const uint64_t level = request_level(m->before, m->now, sum, &of);
	if (of)
		regress_add(r, m->key, 1, (uint64_t)(n->at * 1e9) + 1, level);
}

static void step_series(struct noise *n, uint32_t i, struct regress *r)
{
	struct made *m = &n->made[i];
	const double keep = exp(-STEP_S / 300);
	m->wander = m->wander * keep + 0.003 * sqrt(1 - keep * keep) * normal(n);
	if (i < n->c->kernels)
		step_kernel(n, i, r);
	else
		step_requests(n, i, r);
}

static void judge(
	const struct noise *n, const struct regress *r, bool *fired, struct noise_result *ret)
{
	for (uint32_t i = 0; i < n->c->kernels + n->c->requests; i++) {
		const bool fires = regress_alarmed(regress_at(r, i));
		if (fires && !fired[i]) {
			const double within = n->at + STEP_S - n->c->slow_at;
			ret->raised += !is_slow(n, i);
			ret->found += is_slow(n, i);
			if (is_slow(n, i) && within > ret->found_within)
				ret->found_within = within;
			if (is_slow(n, i) && i - n->c->slow_first < 64)
				ret->found_each[i - n->c->slow_first] = within;
		}
		fired[i] = fires;
	}
}

void noise_run(const struct noise_config *c, struct regress *r, struct noise_result *ret)
{
	const uint32_t count = c->kernels + c->requests;
	struct noise n = { .c = c, .random = c->seed, .made = calloc(count, sizeof *n.made) };
	bool *fired = calloc(count, sizeof *fired);
	*ret = (struct noise_result){ 0 };
	for (uint32_t i = 0; i < count; i++)
		make(&n, i, r);
	for (n.at = 0; n.at < c->seconds; n.at += STEP_S) {
		step_machine(&n);
		for (uint32_t i = 0; i < count; i++)
			step_series(&n, i, r);
		judge(&n, r, fired, ret);
	}
	ret->counts = regress_counts(r);
	free(fired);
	free(n.made);
}
