/* Slowdowns are found, noise is not, and neither memory nor a file that is read can hurt.  The
 * made-up series are in noise.h; rates over many seeds are bench-regress's. */
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>

#include "base/crc.h"
#include "base/hash.h"
#include "base/sort.h"
#include "monitor/rank.h"
#include "monitor/regress.h"
#include "monitor/request_level.h"
#include "noise.h"

#define SECOND 1000000000ull
#define WINDOW REGRESS_WINDOW_NS

static unsigned pairs_above(unsigned below, const float *all, unsigned n)
{
	unsigned u = 0;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			u += below >> i & 1 && !(below >> k & 1) && all[i] < all[k];
	return u;
}

/* The share of all ways to choose the six of twelve that are below which have as large a rank sum.
 * */
static double exact_p(unsigned below, const float *all)
{
	const unsigned u = pairs_above(below, all, 12);
	unsigned as_large = 0, ways = 0;
	for (unsigned set = 0; set < 1u << 12; set++) {
		if (__builtin_popcount(set) != 6)
			continue;
		ways++;
		as_large += pairs_above(set, all, 12) >= u;
	}
	return (double)as_large / ways;
}

static void the_rank_test_is_the_exact_one_and_cautious(void **state)
{
	float all[12], below[6], above[6];
	for (unsigned i = 0; i < 12; i++)
		all[i] = (float)(hash_mix(i) >> 40);
	sort_floats(all, 12);
	for (unsigned set = 0; set < 1u << 12; set += 7) {
		unsigned n = 0, m = 0;
		if (__builtin_popcount(set) != 6)
			continue;
		for (unsigned i = 0; i < 12; i++)
			*(set >> i & 1 ? &below[n++] : &above[m++]) = all[i];
		const double exact = exact_p(set, all), is = rank_p(below, 6, above, 6);
		assert_true(fabs(is - exact) < 0.012);
	}
	assert_true(rank_p(all, 6, all + 6, 6) >= exact_p(0x3f, all));
}

static void ties_say_nothing(void **state)
{
	const float same[] = { 3, 3, 3, 3 };
	assert_true(rank_p(same, 4, same, 4) >= 0.5);
	assert_true(rank_p(same, 4, same, 0) == 1);
}

static struct regress_what what_of(uint32_t i)
{
	struct regress_what w = { .kind = REGRESS_KERNEL, .name_hash = i, .grid = { i } };
	snprintf(w.program, sizeof w.program, "serve");
	snprintf(w.name, sizeof w.name, "kernel_%u", i);
	return w;
}

struct clock {
	struct regress *r;
	uint64_t key, ns;
};

static struct clock new_clock(uint32_t most)
{
	const struct regress_what w = what_of(1);
	struct clock c = {
		.r = regress_new(most, REGRESS_WINDOW_NS, 1), .key = regress_key(&w), .ns = SECOND
	};
	assert_non_null(c.r);
	assert_true(regress_begin(c.r, &w, c.ns));
	return c;
}

/* So many minutes of a value a second, some of them above and some below. */
static void pass(struct clock *c, unsigned minutes, double ns)
{
	for (unsigned i = 0; i < minutes * 60; i++, c->ns += SECOND) {
		const double noise = ((double)(hash_mix(c->ns) >> 32) / 0x1p32 - 0.5) * 0.01;
		assert_true(regress_add(c->r, c->key, 7, c->ns, (uint64_t)(ns * (1 + noise))));
	}
}

static const struct regress_series *only(const struct clock *c)
{
	return regress_at(c->r, 0);
}

static void a_slowdown_is_found_in_five_minutes_with_evidence(void **state)
{
	struct clock c = new_clock(10);
	const struct regress_series *firing[4];
	pass(&c, 120, 1e6);
	assert_int_equal(regress_firing(c.r, c.ns, 4, firing), 0);
	pass(&c, 5, 1.05e6);
	assert_int_equal(regress_firing(c.r, c.ns, 4, firing), 1);
	assert_ptr_equal(firing[0], only(&c));
	const struct regress_series *s = only(&c);
	assert_true(fabs(exp(s->before) - 1e6) < 2e3 && fabs(exp(s->after) - 1.05e6) < 5e3);
	assert_true(s->p <= s->level && s->level < 1.2e-6 && s->pid == 7);
	assert_true(c.ns - s->raised_ns < 120 * SECOND);
	regress_free(c.r);
}

static void one_that_is_too_small_is_not(void **state)
{
	struct clock c = new_clock(10);
	pass(&c, 120, 1e6);
	pass(&c, 60, 1.02e6);
	pass(&c, 60, 0.9e6); /* nor one that is faster */
	assert_int_equal(regress_counts(c.r).raised, 0);
	regress_free(c.r);
}

static void an_alarm_ends_when_it_is_over_or_accepted(void **state)
{
	struct clock c = new_clock(10);
	pass(&c, 120, 1e6);
	assert_int_equal(regress_accept(c.r, c.key), -ESRCH);
	pass(&c, 200, 1.1e6); /* longer than the base is: it does not become what is usual */
	assert_true(regress_fires(only(&c), c.ns));
	pass(&c, 5, 1e6);
	assert_false(regress_fires(only(&c), c.ns));
	pass(&c, 5, 1.1e6);
	assert_true(regress_fires(only(&c), c.ns));
	assert_int_equal(regress_accept(c.r, c.key), 0);
	pass(&c, 120, 1.1e6);
	assert_false(regress_fires(only(&c), c.ns));
	pass(&c, 5, 1.2e6);
	assert_true(regress_fires(only(&c), c.ns));
	assert_int_equal(regress_counts(c.r).raised, 3);
	regress_free(c.r);
}

static void who_is_silent_does_not_fire(void **state)
{
	struct clock c = new_clock(10);
	pass(&c, 120, 1e6);
	pass(&c, 10, 1.1e6);
	assert_false(regress_fires(only(&c), c.ns + REGRESS_SILENT_NS));
	c.ns += 10 * REGRESS_SILENT_NS;
	pass(&c, 1, 1.1e6);
	assert_true(regress_fires(only(&c), c.ns));
	regress_free(c.r);
}

/* 1 % a day is no step, and 10 % after ten days. */
static void what_creeps_is_found_by_the_day(void **state)
{
	struct clock c = new_clock(10);
	for (unsigned day = 0; day < 14; day++) {
		for (unsigned hour = 0; hour < 24; hour++)
			pass(&c, 60, 1e6 * pow(1.01, day + hour / 24.0));
		assert_int_equal(only(&c)->crept, day >= 12);
	}
	assert_int_equal(only(&c)->state, REGRESS_STEADY);
	assert_int_equal(regress_counts(c.r).raised, 1);
	regress_free(c.r);
}

static void memory_is_bounded_and_what_is_idle_gives_way(void **state)
{
	struct regress *r = regress_new(REGRESS_SERIES, REGRESS_WINDOW_NS, 1);
	for (uint32_t i = 0; i < 3 * REGRESS_SERIES; i++) {
		const struct regress_what w = what_of(i);
		assert_int_equal(regress_begin(r, &w, SECOND), i < REGRESS_SERIES);
	}
	assert_int_equal(regress_count(r), REGRESS_SERIES);
	assert_int_equal(regress_counts(r).left_out, 2 * REGRESS_SERIES);
	assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < 24u << 20);
	const uint64_t later = SECOND + REGRESS_IDLE_NS;
	for (uint32_t i = 0; i < 50 * REGRESS_SERIES; i++) {
		const struct regress_what w = what_of(i + 3 * REGRESS_SERIES);
		regress_begin(r, &w, later + (uint64_t)i * SECOND);
	}
	assert_int_equal(regress_count(r), REGRESS_SERIES);
	assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < 24u << 20);
	regress_free(r);
}

static void a_day_of_noise_raises_no_alarm(void **state)
{
	for (uint64_t seed = 1; seed <= ROUNDS(2, 1); seed++) {
		struct regress *r = regress_new(REGRESS_SERIES, REGRESS_WINDOW_NS, seed);
		struct noise_result got;
		noise_run(&(struct noise_config){ .seed = seed,
				  .kernels = 30,
				  .requests = 4,
				  .begins_h = 7,
				  .seconds = ROUNDS(86400, 20000) },
			r, &got);
		assert_int_equal(got.raised, 0);
		assert_true(got.counts.values > ROUNDS(1000000, 200000));
		regress_free(r);
	}
}

/* Kernels of little noise that are launched every second; those of others are found less often. */
static void five_percent_in_noise_are_found_in_five_minutes(void **state)
{
	unsigned slow = 0, in_time = 0;
	for (uint64_t seed = 1; seed <= ROUNDS(6, 1); seed++) {
		struct regress *r = regress_new(REGRESS_SERIES, REGRESS_WINDOW_NS, seed);
		struct noise_result got;
		noise_run(&(struct noise_config){ .seed = seed,
				  .kernels = 30,
				  .begins_h = 9,
				  .seconds = 9000,
				  .slow_at = 7300,
				  .slow_by = 1.05,
				  .slow_count = 15 },
			r, &got);
		assert_int_equal(got.raised, 0);
		for (uint32_t i = 0; i < 15; i++) {
			if (noise_of_kernel(seed, i) > 0.02 || noise_launches_per_s(seed, i) < 1)
				continue;
			slow++;
			in_time += got.found_each[i] > 0 && got.found_each[i] <= 300;
		}
		regress_free(r);
	}
	assert_true(slow > ROUNDS(20, 3));
	assert_true(in_time * 100 >= slow * 90);
}

static void a_restart_forgets_nothing(void **state)
{
	struct clock c = new_clock(10);
	void *data;
	size_t bytes;
	pass(&c, 120, 1e6);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(regress_save(c.r, &data, &bytes), 0);
		regress_free(c.r);
		c.r = regress_new(10, REGRESS_WINDOW_NS, 2);
		assert_int_equal(regress_load(c.r, data, bytes, c.ns, NULL), 0);
		free(data);
		assert_int_equal(regress_count(c.r), 1);
		assert_string_equal(only(&c)->what.name, "kernel_1");
		assert_int_equal(regress_fires(only(&c), c.ns), round); /* an alarm stays */
		pass(&c, 5, 1.05e6);
		assert_true(regress_fires(only(&c), c.ns));
	}
	regress_free(c.r);
}

static void load_damaged(const char *data, size_t bytes, const char *why)
{
	struct regress *r = regress_new(10, REGRESS_WINDOW_NS, 1);
	struct error err = { "" };
	assert_int_equal(regress_load(r, data, bytes, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(regress_count(r), 0);
	regress_free(r);
}

static void what_is_damaged_is_refused(void **state)
{
	struct clock c = new_clock(10);
	void *saved;
	size_t bytes;
	pass(&c, 120, 1e6);
	assert_int_equal(regress_save(c.r, &saved, &bytes), 0);
	char *data = saved;
	load_damaged(data, 5, "no baseline");
	load_damaged(data, bytes - 1, "length");
	data[bytes - 1] ^= 1;
	load_damaged(data, bytes, "checksum");
	memset(data + bytes - 4, 0xff, 4); /* no number */
	const uint32_t check = crc32c(data + 24, bytes - 24);
	memcpy(data + 20, &check, 4);
	load_damaged(data, bytes, "makes no sense");
	data[8]++;
	load_damaged(data, bytes, "another version");
	free(saved);
	regress_free(c.r);
}

static void the_level_of_requests_is_not_that_of_their_tail(void **state)
{
	uint32_t before[SHARE_BUCKETS] = { [40] = UINT32_MAX }, now[SHARE_BUCKETS], count;
	uint64_t sum = 0;
	memcpy(now, before, sizeof now);
	assert_int_equal(request_level(before, now, 0, &count), 0);
	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t ns = i % 50 ? 1000000 + i * 100 : 80000000;
		share_count(now, ns);
		sum += ns;
	}
	const uint64_t level = request_level(before, now, sum, &count);
	assert_int_equal(count, 980);
	assert_true(level > 900000 && level < 1200000); /* the mean is 2.6 ms */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rank_test_is_the_exact_one_and_cautious),
		cmocka_unit_test(ties_say_nothing),
		cmocka_unit_test(a_slowdown_is_found_in_five_minutes_with_evidence),
		cmocka_unit_test(one_that_is_too_small_is_not),
		cmocka_unit_test(an_alarm_ends_when_it_is_over_or_accepted),
		cmocka_unit_test(who_is_silent_does_not_fire),
		cmocka_unit_test(what_creeps_is_found_by_the_day),
		cmocka_unit_test(memory_is_bounded_and_what_is_idle_gives_way),
		cmocka_unit_test(a_day_of_noise_raises_no_alarm),
		cmocka_unit_test(five_percent_in_noise_are_found_in_five_minutes),
		cmocka_unit_test(a_restart_forgets_nothing),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(the_level_of_requests_is_not_that_of_their_tail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
