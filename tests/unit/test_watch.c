/* The served text stays bounded, whatever runs: a thousand programs, ten thousand kernels, names of
 * any length and content; and what is not known of a program is not said. */
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "monitor/prometheus.h"
#include "monitor/watch.h"
#include "record/lane.h"
#include "record/writer.h"

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

/* SLOW of these become slower. */
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
	assert_in_range(bytes, 100000, 2000000);
	assert_in_range(count_of(text, "\n"), 1000, 9500); /* with 18 of a histogram each */
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

#define FILE_NAME "watch.weir"

static struct recorder file;

static void put_kernel(uint64_t start_ns, uint64_t end_ns)
{
	const struct gpu_activity w = {
		.start_ns = start_ns, .end_ns = end_ns, .kind = GPU_KERNEL, .valid = GPU_HAS_DEVICE
	};
	struct chunk_header *c = recorder_chunk(&file, CHUNK_DEVICE, TRACE_GRAIN, 0);
	assert_non_null(c);
	memcpy((char *)c + CHUNK_PAYLOAD, &w, sizeof w);
	c->used = sizeof w;
	atomic_store_explicit(&c->state, CHUNK_CLOSED, memory_order_release);
}

static const struct watch_program *look_at_self(struct watch *w)
{
	watch_look(w, NVML_QUICK);
	for (size_t i = 0; i < w->programs.n; i++)
		if (w->programs.v[i].pid == (uint32_t)getpid())
			return &w->programs.v[i];
	fail_msg("this process is not watched");
	return NULL;
}

static bool json_has(const struct watch *w, const char *key)
{
	char *text = NULL;
	size_t bytes = 0;
	struct json j;
	FILE *out = open_memstream(&text, &bytes);
	json_begin_document(&j, out);
	watch_put_json(&j, w);
	json_end_object(&j);
	fclose(out);
	const bool has = strstr(text, key);
	free(text);
	return has;
}

static void how_busy_a_gpu_was_is_known_once_something_was_timed(void **state)
{
	struct trace_header blank;
	struct watch w = { .ns = 0 };
	unlink(FILE_NAME);
	lanes_forget();
	shared_forget();
	file = (struct recorder){ .path = FILE_NAME, .pid = (uint32_t)getpid(), .identity = 7 };
	header_blank(&blank, 0);
	blank.launched = 1;
	blank.control = CONTROL_COUNT;
	assert_int_equal(recorder_open(&file, &blank), 0);
	look_at_self(&w);
	const struct watch_program *p = look_at_self(&w);
	assert_true(p->recorded && watch_has_calls(p) && !watch_has_requests(p));
	assert_false(p->has_busy || json_has(&w, "\"busy\""));
	assert_false(json_has(&w, "\"waiting\"") || json_has(&w, "\"memory_used_bytes\""));

	const uint64_t t = w.ns;
	put_kernel(t, t + 1000);
	put_kernel(t + 3000, t + 4000);
	p = look_at_self(&w);
	assert_true(p->has_busy && json_has(&w, "\"busy\": 0.5,"));
	assert_true(p->busy == 0.5);
	assert_false(look_at_self(&w)->has_busy); /* nothing came */
	put_kernel(t + 4000, t + 5000);
	assert_true(look_at_self(&w)->busy == 1);
	put_kernel(t + 10000000000, t + 10000000000 + 1000000000);
	assert_true(look_at_self(&w)->busy < 0.2); /* as it seems, from before the look */
	put_kernel(t + 20000000000, t + 20000000000 + 1000000000);
	w.ns = t + 19000000000; /* a look, when nothing had run for long */
	p = look_at_self(&w);
	assert_true(p->busy > 0.33 && p->busy < 0.34);
	watch_fini(&w);
	unlink(FILE_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scrape_is_bounded),
		cmocka_unit_test(the_slowest_are_those_that_are_shown),
		cmocka_unit_test(how_busy_a_gpu_was_is_known_once_something_was_timed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
