/*
 * How often weir monitor raises an alarm in a day in which nothing is wrong, and how often, and how
 * soon, it finds a slowdown: bench-regress [DAYS [SLOWDOWNS [PERCENT]]], in made-up noise
 * (tests/unit/noise.h), of many seeds.
 */
#include "noise.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KERNELS  60u
#define REQUESTS 6u
#define CLASSES  4u

static const double bounds[CLASSES] = { 0.01, 0.02, 0.03, 0.06 };

static void days(uint64_t count)
{
	uint64_t raised = 0, bad = 0, values = 0;
	for (uint64_t seed = 1; seed <= count; seed++) {
		struct regress *r = regress_new(REGRESS_SERIES, REGRESS_WINDOW_NS, seed);
		struct noise_result got;
		const struct noise_config c = { .seed = seed,
			.kernels = KERNELS,
			.requests = REQUESTS,
			.begins_h = (double)(seed % 24),
			.seconds = 86400 };
		noise_run(&c, r, &got);
		raised += got.raised;
		bad += got.raised > 0;
		values += got.counts.values;
		regress_free(r);
	}
	printf("nothing wrong: %llu days of %u series, %llu durations: %llu alarms, in %llu days\n",
		(unsigned long long)count, KERNELS + REQUESTS, (unsigned long long)values,
		(unsigned long long)raised, (unsigned long long)bad);
}

/* The last class is of kernels that are launched less than once a second. */
static unsigned class_of(uint64_t seed, uint32_t kernel)
{
	const double noise = noise_of_kernel(seed, kernel);
	unsigned i = 0;
	if (noise_launches_per_s(seed, kernel) < 1)
		return CLASSES;
	while (i + 1 < CLASSES && noise > bounds[i])
		i++;
	return i;
}

struct tally {
	unsigned all, found, in_time;
	double within;
};

static void add(struct tally *t, double within)
{
	t->all++;
	t->found += within > 0;
	t->in_time += within > 0 && within <= 300;
	t->within += within;
}

static void print(const struct tally *t, const char *what)
{
	printf("  %-34s %5u slowed down, %5u found in 5 minutes (%.1f %%), %.0f s in the mean\n",
		what, t->all, t->in_time, t->all ? 100.0 * t->in_time / t->all : 0,
		t->found ? t->within / t->found : 0);
}

static void slowdowns(uint64_t count, double percent)
{
	struct tally kernels[CLASSES + 1] = { 0 }, requests = { 0 };
	uint64_t raised = 0;
	for (uint64_t seed = 1; seed <= count; seed++) {
		struct regress *r = regress_new(REGRESS_SERIES, REGRESS_WINDOW_NS, seed);
		struct noise_result got;
		const struct noise_config c = { .seed = seed + 1000000,
			.kernels = 40,
			.requests = 4,
			.begins_h = 6 + (double)(seed % 12),
			.seconds = 2.5 * 3600,
			.slow_at = 2 * 3600 + (double)(seed % 600),
			.slow_by = 1 + percent / 100,
			.slow_first = seed % 2 ? 0 : 30,
			.slow_count = 14 };
		noise_run(&c, r, &got);
		raised += got.raised;
		for (unsigned i = 0; i < c.slow_count; i++)
			add(c.slow_first + i < c.kernels
					? &kernels[class_of(c.seed, c.slow_first + i)]
					: &requests,
				got.found_each[i]);
		regress_free(r);
	}
	printf("%.1f %% slower: %llu runs, %llu alarms of what was not slow\n", percent,
		(unsigned long long)count, (unsigned long long)raised);
	print(&kernels[0], "kernels, noise up to 1 %");
	print(&kernels[1], "kernels, noise from 1 to 2 %");
	print(&kernels[2], "kernels, noise from 2 to 3 %");
	print(&kernels[3], "kernels, noise from 3 to 5 %");
	print(&kernels[4], "kernels, less than one a second");
	print(&requests, "requests, noise 30 % and a tail");
}

int main(int argc, char **argv)
{
	const clock_t begun = clock();
	const uint64_t day_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	const uint64_t slow_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	days(day_count);
	slowdowns(slow_count, argc > 3 ? strtod(argv[3], NULL) : 5);
	printf("%.1f s of processor time\n", (double)(clock() - begun) / CLOCKS_PER_SEC);
	return 0;
}
