/* Samples for prediction: what becomes of a kernel that ran, of its launch's arguments, and of
 * those that shared a device. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "event/args.h"
#include "maker.h"
#include "predict/key.h"
#include "model/samples.h"
#include "trace/pack.h"

#define FILE_NAME "test_samples.weir"
#define PACKED    "test_samples.packed.weir"

static struct maker *m;
static int events, names;
static struct gpu_activity activity[64];
static struct link links[64];
static uint32_t activity_count, link_count;

static struct trace *trace;
static struct meta meta;
static struct launch_samples samples;
static struct error err;

static int begin(void **state)
{
	m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	events = maker_thread(m, CHUNK_EVENTS, 100, 101, "main");
	names = maker_thread(m, CHUNK_META, 100, 100, "main");
	activity_count = link_count = 0;
	const uint64_t ids[] = { 1, 2 };
	maker_meta(m, names, META_STRING, 1, 1, &ids[0], "_Z4axpyPfS_if", 13, 13);
	maker_meta(m, names, META_STRING, 1, 1, &ids[1], "gemm", 4, 4);
	return 0;
}

static int end(void **state)
{
	launch_samples_fini(&samples);
	meta_fini(&meta);
	trace_close(trace);
	trace = NULL;
	unlink(FILE_NAME);
	unlink(PACKED);
	return 0;
}

static void load(const char *path)
{
	assert_int_equal(trace_open(path, &trace, &err), 0);
	assert_int_equal(meta_load(trace, &meta, &err), 0);
	assert_int_equal(launch_samples_load(trace, &meta, &samples, &err), 0);
}

static void finish(void)
{
	maker_chunk(m, CHUNK_DEVICE, 100, 0, activity, activity_count * (uint32_t)sizeof *activity);
	if (link_count)
		maker_chunk(m, CHUNK_LINKS, 100, 0, links, link_count * (uint32_t)sizeof *links);
	maker_finish(m, 2000000, false);
	load(FILE_NAME);
}

/* A kernel of one device from start to end, asked for by the call of that correlation. */
static struct gpu_activity *ran(uint32_t name, uint64_t start, uint64_t end, uint64_t correlation)
{
	struct gpu_activity *w = &activity[activity_count++];
	*w = (struct gpu_activity){ .start_ns = start,
		.end_ns = end,
		.correlation = correlation,
		.name = name,
		.stream = 7,
		.grid = { 8, 2, 1 },
		.block = { 256, 1, 1 },
		.shared_static = 1024,
		.shared_dynamic = 2048,
		.registers = 40,
		.kind = GPU_KERNEL,
		.valid = GPU_HAS_CORRELATION | GPU_HAS_DEVICE | GPU_HAS_STREAM | GPU_HAS_SHAPE |
			 GPU_HAS_SHARED | GPU_HAS_REGISTERS };
	return w;
}

/* The launch behind it, with these scalars. */
static void launched(uint64_t ticks, uint64_t correlation, const uint32_t *scalars, uint32_t count)
{
	struct launch_args a;
	uint64_t arg[LAUNCH_WORDS + ARGS_VALUES + ARGS_KEPT] = { 0x55 };
	struct param_place place[20];
	void *params[20];
	for (uint32_t i = 0; i < count; i++) {
		place[i] = (struct param_place){ (uint16_t)(i * 4), 4 };
		params[i] = (void *)(uintptr_t)&scalars[i];
	}
	args_of_pointers(&a, place, count, params);
	args_put(&a, arg + LAUNCH_WORDS);
	maker_put(m, events,
		(struct record){ .ticks = ticks,
			.dur = 10,
			.fn = FN_LAUNCH,
			.words = (uint16_t)(RECORD_WORDS + LAUNCH_WORDS + args_words(&a)),
			.flags = RECORD_ARGS },
		arg);
	links[link_count++] = (struct link){
		.correlation = correlation, .ticks = ticks, .dur = 10, .tid = 101, .fn = FN_LAUNCH
	};
}

static void a_kernel_that_ran_is_a_sample(void **state)
{
	ran(1, 5000, 7500, 1);
	finish();
	assert_int_equal(samples.v.n, 1);
	const struct sample *s = &samples.v.v[0];
	const struct sample_kernel *k = samples.kernels.v[s->p.name];
	assert_string_equal(k->name, "axpy(float*, float*, int, float)");
	assert_string_equal(k->mangled, "_Z4axpyPfS_if");
	assert_ptr_equal(s->p.launch.kernel, &k->k);
	assert_true(s->p.measured_ns == 2500);
	assert_int_equal(s->p.order, 5000);
	assert_int_equal(s->p.launch.grid[1], 2);
	assert_int_equal(s->p.launch.block[0], 256);
	assert_int_equal(s->p.launch.smem_dynamic_bytes, 2048);
	assert_int_equal(k->k.smem_static_bytes, 1024);
	assert_int_equal(k->k.regs, 40);
	assert_true(k->k.has_regs && s->has_stream && s->stream == 7);
	assert_false(k->k.has_local);
	assert_false(s->has_args || s->p.launch.contended || s->on);
	assert_int_equal(s->p.launch.args, 0);
	assert_true(s->p.launch.key == predict_key(&s->p.launch));
}

static void the_arguments_are_those_of_its_launch(void **state)
{
	const uint32_t first[] = { 1024, 7 }, second[] = { 2048, 7 };
	launched(1000100, 1, first, 2);
	launched(1000200, 2, second, 2);
	launched(1000300, 3, first, 2);
	ran(1, 9000, 9100, 3);
	ran(1, 7000, 7100, 2);
	ran(1, 5000, 5100, 1);
	finish();
	assert_int_equal(samples.v.n, 3);
	const struct sample *s = samples.v.v;
	assert_int_equal(s[0].start_ns, 5000);
	assert_int_equal(s[0].p.launch.arg[0], 1024);
	assert_int_equal(s[1].p.launch.arg[0], 2048);
	assert_int_equal(s[1].p.launch.args, 2);
	assert_true(s[0].has_args && s[0].args_key == s[2].args_key);
	assert_true(s[0].args_key != s[1].args_key);
	assert_true(s[0].p.launch.key == s[2].p.launch.key);
	assert_true(s[0].p.launch.key != s[1].p.launch.key);
}

static void arguments_beyond_those_kept_make_another_key(void **state)
{
	uint32_t many[12] = { 0 };
	launched(1000100, 1, many, 12);
	many[11] = 1;
	launched(1000200, 2, many, 12);
	ran(1, 5000, 5100, 1);
	ran(1, 6000, 6100, 2);
	finish();
	assert_int_equal(samples.v.v[0].scalars, 12);
	assert_int_equal(samples.v.v[0].p.launch.args, PREDICT_ARGS);
	assert_true(samples.v.v[0].p.launch.key != samples.v.v[1].p.launch.key);
}

static void a_packed_trace_says_the_same(void **state)
{
	const uint32_t first[] = { 1024, 7 }, second[] = { 2048, 7, 9 };
	struct pack_stats stats = { 0 };
	for (uint64_t i = 0; i < 20; i++) {
		launched(1000100 + i * 100, i + 1, i % 3 ? first : second, i % 3 ? 2 : 3);
		ran(1, 5000 + i * 100, 5050 + i * 100, i + 1);
	}
	finish();
	uint64_t keys[20];
	assert_int_equal(samples.v.n, 20);
	for (size_t i = 0; i < 20; i++)
		keys[i] = samples.v.v[i].p.launch.key;
	launch_samples_fini(&samples);
	meta_fini(&meta);
	trace_close(trace);
	assert_int_equal(trace_pack(FILE_NAME, PACKED, &stats, &err), 0);
	load(PACKED);
	assert_int_equal(samples.v.n, 20);
	for (size_t i = 0; i < 20; i++)
		assert_true(samples.v.v[i].p.launch.key == keys[i]);
}

static void attributes_come_from_the_function_where_the_work_has_none(void **state)
{
	const uint32_t scalar = 1;
	const uint64_t attributes[] = { 0x55, 0x1f, 64 | 1024ull << 32, 512 | 49152ull << 32, 96 };
	maker_meta(m, names, META_ATTRIBUTES, 1000150, 5, attributes, NULL, 0, 0);
	launched(1000100, 1, &scalar, 1);
	ran(1, 5000, 5100, 1)->valid &= ~(uint32_t)(GPU_HAS_REGISTERS | GPU_HAS_SHARED);
	finish();
	const struct sample_kernel *k = samples.kernels.v[0];
	assert_true(k->k.has_regs && k->k.regs == 64);
	assert_true(k->has_shared && k->k.smem_static_bytes == 512);
	assert_true(k->k.has_local && k->k.local_bytes == 96);
	assert_false(samples.v.v[0].has_dynamic);
}

static void kernels_that_overlap_are_contended(void **state)
{
	/* The first lasts over two others, the fourth begins as the first ends. */
	static const struct {
		uint64_t start, end;
		bool contended;
	} rows[] = { { 1000, 9000, true }, { 2000, 3000, true }, { 4000, 5000, true },
		{ 9000, 9500, false }, { 20000, 20100, true }, { 20050, 20200, true },
		{ 20150, 20300, true }, { 30000, 30000, false } };
	for (size_t i = COUNT_OF(rows); i-- > 0;)
		ran(2, rows[i].start, rows[i].end, 0);
	finish();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(samples.v.v[i].start_ns, rows[i].start);
		assert_int_equal(samples.v.v[i].p.launch.contended, rows[i].contended);
	}
}

static bool shares(size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++)
		if (k != i && activity[k].device == activity[i].device &&
			activity[k].start_ns < activity[i].end_ns &&
			activity[i].start_ns < activity[k].end_ns)
			return true;
	return false;
}

/* Against each pair, on two devices. */
static void the_sweep_finds_what_comparing_all_finds(void **state)
{
	uint64_t seed = 7;
	for (int i = 0; i < 64; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		const uint64_t start = 1000 + (seed >> 33) % 20000;
		ran(2, start, start + 1 + (seed >> 20) % 500, 0)->device = seed >> 60 & 1;
		activity[i].stream = (uint32_t)i; /* who it is */
	}
	finish();
	for (size_t i = 0; i < samples.v.n; i++)
		assert_int_equal(samples.v.v[i].p.launch.contended,
			shares(activity_count, samples.v.v[i].stream));
}

static void the_device_is_that_of_the_process(void **state)
{
	const uint64_t device[] = { 0, 1ull << 37, 132, 9 << 16 };
	maker_meta(m, names, META_DEVICE, 1, 4, device, "NVIDIA H200", 11, 11);
	ran(2, 5000, 5100, 0);
	ran(2, 6000, 6100, 0)->device = 1;
	finish();
	assert_non_null(samples.v.v[0].on);
	assert_int_equal(samples.v.v[0].on->multiprocessors, 132);
	assert_null(samples.v.v[1].on);
}

/* A product of matrices with a kernel before the one that does it. */
static void an_operators_work_is_its_longest_kernels(void **state)
{
	static const char args[] = "{\"Input Dims\":[[64,32],[32,16]],"
				   "\"Input type\":[\"float\",\"float\"]}";
	const uint64_t ids[] = { 3, 4 };
	const uint32_t scalar = 1;
	struct range g = { .ticks = 1000050,
		.dur = 500,
		.tid = 101,
		.name = 3,
		.args = 4,
		.kind = RANGE_OPERATOR };
	maker_meta(m, names, META_STRING, 1, 1, &ids[0], "aten::mm", 8, 8);
	maker_meta(m, names, META_STRING, 1, 1, &ids[1], args, sizeof args - 1, sizeof args - 1);
	maker_chunk(m, CHUNK_RANGES, 100, 101, &g, sizeof g);
	launched(1000100, 1, &scalar, 1);
	launched(1000200, 2, &scalar, 1);
	launched(1000700, 3, &scalar, 1);
	ran(1, 5000, 5100, 1);
	ran(2, 6000, 6900, 2);
	ran(2, 8000, 9900, 3); /* outside */
	finish();
	const struct sample *s = samples.v.v;
	assert_false(s[0].p.launch.has_flops || s[0].p.launch.has_bytes);
	assert_true(s[1].p.launch.has_flops && s[1].p.launch.flops == 2.0 * 64 * 32 * 16);
	assert_true(s[1].p.launch.has_bytes);
	assert_true(s[1].p.launch.bytes == 4.0 * (64 * 32 + 32 * 16 + 64 * 16));
	assert_false(s[2].p.launch.has_flops || s[2].p.launch.has_bytes);
	assert_true(s[2].has_call && s[2].call_tid == 101);
}

/* PyTorch copies the bias by itself and leaves the product to cuBLAS. */
static void a_product_left_to_a_library_is_not_the_copys(void **state)
{
	static const char dims[] = "{\"Input Dims\":[[16],[64,32],[32,16]],"
				   "\"Input type\":[\"float\",\"float\",\"float\"]}";
	static const char call[] = "{\"m\":16,\"n\":64,\"k\":32,\"type\":\"float32\"}";
	static const char *const texts[] = { "aten::addmm", dims, "cublasSgemm_v2", call };
	const uint32_t scalar = 1;
	const struct range g[] = { { .ticks = 1000050,
					   .dur = 900,
					   .tid = 101,
					   .name = 3,
					   .args = 4,
					   .kind = RANGE_OPERATOR },
		{ .ticks = 1000300,
			.dur = 500,
			.tid = 101,
			.name = 5,
			.args = 6,
			.kind = RANGE_OPERATOR } };
	for (uint64_t id = 3; id < 7; id++) {
		const uint32_t n = (uint32_t)strlen(texts[id - 3]);
		maker_meta(m, names, META_STRING, 1, 1, &id, texts[id - 3], n, n);
	}
	maker_chunk(m, CHUNK_RANGES, 100, 101, g, sizeof g);
	launched(1000100, 1, &scalar, 1);
	launched(1000400, 2, &scalar, 1);
	ran(1, 5000, 5900, 1);
	ran(2, 6000, 6100, 2);
	finish();
	const struct sample *s = samples.v.v;
	assert_false(s[0].p.launch.has_flops || s[0].p.launch.has_bytes);
	assert_true(s[1].p.launch.has_flops && s[1].p.launch.flops == 2.0 * 64 * 32 * 16);
}

static void what_is_no_kernel_or_has_no_shape_is_no_sample(void **state)
{
	ran(1, 5000, 5100, 0)->kind = GPU_MEMCPY;
	ran(1, 6000, 6100, 0)->valid &= ~(uint32_t)GPU_HAS_SHAPE;
	finish();
	assert_int_equal(samples.v.n, 0);
	assert_int_equal(samples.shapeless, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_that_ran_is_a_sample),
		TEST(the_arguments_are_those_of_its_launch),
		TEST(arguments_beyond_those_kept_make_another_key),
		TEST(a_packed_trace_says_the_same),
		TEST(attributes_come_from_the_function_where_the_work_has_none),
		TEST(kernels_that_overlap_are_contended),
		TEST(the_sweep_finds_what_comparing_all_finds),
		TEST(the_device_is_that_of_the_process),
		TEST(an_operators_work_is_its_longest_kernels),
		TEST(a_product_left_to_a_library_is_not_the_copys),
		TEST(what_is_no_kernel_or_has_no_shape_is_no_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
