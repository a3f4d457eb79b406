/* The state of the GPUs as a recording has it: values, phases in which the clock fell, and what ran
 * then. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "maker.h"
#include "model/gpu_state.h"
#include "trace/meta.h"

#define FILE_NAME "test_gpu_state.weir"
#define MS        1000000ull

static const uint8_t used[16] = { 1, 2, 3 }, other[16] = { 9 };
static struct maker *m;
static struct trace *trace;
static struct meta meta;
static struct gpu_states states;

static struct gpu_sample sample(uint16_t device, uint64_t ms, uint16_t mhz)
{
	struct gpu_sample s = { .ns = ms * MS,
		.device = device,
		.busy_pct = 90,
		.sm_mhz = mhz,
		.nvlink_tx = ms * 1000,
		.valid = SAMPLE_TAKEN | SAMPLE_HAS_BUSY | SAMPLE_HAS_SM_CLOCK | SAMPLE_HAS_REASONS |
			 SAMPLE_HAS_NVLINK };
	memcpy(s.uuid, device ? other : used, 16);
	s.reasons = mhz < 1900 ? THROTTLE_THERMAL : 0;
	return s;
}

static struct gpu_activity kernel(uint64_t from_ms, uint64_t to_ms)
{
	return (struct gpu_activity){ .kind = GPU_KERNEL,
		.start_ns = from_ms * MS,
		.end_ns = to_ms * MS,
		.device = 3,
		.valid = GPU_HAS_DEVICE };
}

static void read_back(struct gpu_sample *s, size_t n)
{
	struct error err;
	maker_chunk(m, CHUNK_SAMPLES, 7, 0, s, (uint32_t)(n * sizeof *s));
	maker_finish(m, 900 * MS, false);
	m = NULL;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	assert_int_equal(meta_load(trace, &meta, &err), 0);
	assert_int_equal(gpu_states_load(trace, &meta, &states), 0);
}

static int begin(void **state)
{
	m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	return 0;
}

/* The process calls the GPU 3. */
static void name_gpu(void)
{
	uint64_t words[3] = { 3 };
	const uint64_t device[4] = { 3, 1 << 30, 132, 9 << 16 };
	const int names = maker_thread(m, CHUNK_META, 100, 100, "main");
	memcpy(words + 1, used, 16);
	maker_meta(m, names, META_DEVICE, 1000, 4, device, "GPU", 3, 3);
	maker_meta(m, names, META_UUID, 1001, 3, words, "", 0, 0);
}

static int end(void **state)
{
	gpu_states_fini(&states);
	meta_fini(&meta);
	trace_close(trace);
	trace = NULL;
	unlink(FILE_NAME);
	return 0;
}

static void a_phase_lasts_from_its_first_slow_sample_to_the_next_that_is_not(void **state)
{
	struct gpu_sample s[] = { sample(0, 10, 1980), sample(0, 20, 1200), sample(0, 30, 1500),
		sample(0, 40, 1980), sample(0, 50, 1700), sample(0, 60, 1980) };
	read_back(s, 6);
	assert_int_equal(states.gpus.n, 1);
	const struct gpu_state *g = &states.gpus.v[0];
	assert_int_equal(g->slow.n, 2);
	assert_int_equal(g->slow.v[0].start_ns, 20 * MS);
	assert_int_equal(g->slow.v[0].ns, 20 * MS);
	assert_int_equal(g->slow.v[0].mhz, 1200);
	assert_int_equal(g->slow.v[0].reasons, THROTTLE_THERMAL);
	assert_int_equal(g->slow.v[1].start_ns, 50 * MS);
	assert_int_equal(g->slow_ns, 30 * MS);
	assert_true(
		g->range[METRIC_SM_CLOCK].low == 1200 && g->range[METRIC_SM_CLOCK].high == 1980);
	assert_true(g->range[METRIC_SM_CLOCK].median == 1700);
	assert_int_equal(states.interval_ns, 10 * MS);
}

static void links_have_a_rate_from_one_sample_to_the_next(void **state)
{
	struct gpu_sample s[] = { sample(0, 10, 1980), sample(0, 20, 1980), sample(0, 40, 1980) };
	s[2].nvlink_tx = s[1].nvlink_tx - 1; /* the driver was loaded anew */
	read_back(s, 3);
	assert_int_equal(states.gpus.v[0].range[METRIC_NVLINK_TX].count, 1);
	assert_true(states.gpus.v[0].range[METRIC_NVLINK_TX].high == 1e6);
	assert_int_equal(states.gpus.v[0].range[METRIC_POWER].count, 0);
}

static void kernels_of_a_slow_phase_are_those_of_that_gpu(void **state)
{
	struct gpu_sample s[] = { sample(0, 10, 1980), sample(0, 20, 1200), sample(0, 30, 1980),
		sample(0, 40, 1980) };
	struct gpu_activity w[] = { kernel(5, 15), kernel(15, 25), kernel(26, 28), kernel(29, 50),
		kernel(22, 24) };
	w[4].device = 0;
	name_gpu();
	maker_chunk(m, CHUNK_DEVICE, 100, 0, w, sizeof w);
	read_back(s, 4);
	assert_int_equal(states.gpus.v[0].slow.n, 1);
	assert_int_equal(states.gpus.v[0].slow.v[0].kernel_ns, 8 * MS); /* 20-25, 26-28, 29-30 */
}

static void a_gpu_that_was_not_used_is_left_out(void **state)
{
	struct gpu_sample s[] = { sample(1, 10, 1980), sample(0, 10, 1980), sample(1, 20, 1980),
		sample(0, 20, 1980) };
	name_gpu();
	read_back(s, 4);
	assert_int_equal(states.gpus.n, 1);
	assert_int_equal(states.gpus.v[0].device, 0);
	assert_int_equal(states.gpus.v[0].count, 2);
}

static void without_its_name_every_gpu_is_there_and_no_process_more(void **state)
{
	struct gpu_sample s[] = { sample(1, 10, 1980), sample(0, 10, 1980) };
	read_back(s, 2);
	assert_int_equal(states.gpus.n, 2);
	assert_int_equal(states.interval_ns, 0);
	for (size_t i = 0; i < trace->processes.n; i++)
		assert_int_not_equal(trace->processes.v[i].pid, 7);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_phase_lasts_from_its_first_slow_sample_to_the_next_that_is_not),
		TEST(links_have_a_rate_from_one_sample_to_the_next),
		TEST(kernels_of_a_slow_phase_are_those_of_that_gpu),
		TEST(a_gpu_that_was_not_used_is_left_out),
		TEST(without_its_name_every_gpu_is_there_and_no_process_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
