/* What is served stays bounded, whatever runs: a thousand programs, ten thousand kernels, names of
 * any length and content. */
#include "unit.h"

#include <stdio.h>

#include "monitor/prometheus.h"
#include "monitor/watch.h"

#define PROGRAMS 1000u
#define SLOW     500u
#define WINDOW   REGRESS_WINDOW_NS
#define LEARNT   (REGRESS_CURRENT + REGRESS_LEAST * REGRESS_STEP)

static struct regress_what what_of(uint32_t i)
{
	struct regress_what w = { .kind = REGRESS_KERNEL, .name_hash = i };
	memset(w.program, 'p', sizeof w.program - 1);
	memset(w.name, '"', sizeof w.name - 1); /* each is two characters there */
	return w;
}

/* Of which SLOW become slower. */
static struct regress *ten_thousand_kernels(void)
{
	struct regress *r = regress_new(REGRESS_SERIES, WINDOW, 1);
	for (uint32_t i = 0; i < REGRESS_SERIES; i++) {
		const struct regress_what w = what_of(i);
		const uint64_t key = regress_key(&w);
		const uint32_t values = i < SLOW ? LEARNT + 2 * REGRESS_CURRENT : 2;
		assert_true(regress_begin(r, &w, 1));
		for (uint64_t k = 1; k <= values; k++)
			regress_add(r, key, 1, k * WINDOW, k > LEARNT ? 2000 + i : 1000);
	}
	return r;
}

static struct watch *thousand_programs(void)
{
	struct watch *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->ns = (LEARNT + 2 * REGRESS_CURRENT) * WINDOW;
	w->feed.regress = ten_thousand_kernels();
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		struct watch_program *p = array_push(&w->programs);
		assert_non_null(p);
		*p = (struct watch_program){ .pid = 4000000 + i,
			.shares = true,
			.recorded = true,
			.class = CLASS_LATENCY,
			.memory_quota = UINT64_MAX,
			.request_p99_ns = UINT64_MAX,
			.calls = UINT64_MAX };
		memset(p->name, '\\', sizeof p->name - 1);
	}
	return w;
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;
	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

static void a_scrape_is_bounded(void **state)
{
	struct watch *w = thousand_programs();
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	prometheus_put(out, w, "1");
	fclose(out);
	assert_in_range(bytes, 100000, 1000000);
	assert_in_range(count_of(text, "\n"), 1000, 4500);
	assert_int_equal(count_of(text, "\nweir_program_info{"), PROMETHEUS_PROGRAMS);
	assert_int_equal(
		count_of(text, "\nweir_regression_slowdown_ratio{"), PROMETHEUS_REGRESSIONS);
	assert_non_null(strstr(text, "\nweir_regressions_firing 500\n"));
	assert_non_null(strstr(text, "\nweir_regression_series 10000\n"));
	assert_non_null(strstr(text, "\nweir_programs_left_out 744\n"));
	free(text);
	regress_free(w->feed.regress);
	watch_fini(w);
	free(w);
}

static void the_slowest_are_those_that_are_shown(void **state)
{
	const struct regress_series *firing[3];
	struct regress *r = ten_thousand_kernels();
	const uint64_t now = (LEARNT + 2 * REGRESS_CURRENT) * WINDOW;
	assert_int_equal(regress_firing(r, now, 3, firing), SLOW);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(firing[i]->what.name_hash, SLOW - 1 - i);
	assert_int_equal(regress_firing(r, now, 0, firing), SLOW);
	regress_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scrape_is_bounded),
		cmocka_unit_test(the_slowest_are_those_that_are_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
