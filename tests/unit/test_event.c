/* The schema and the decoder. */
#include "unit.h"

#include "event/decode.h"
#include "event/schema.h"
#include "maker.h"

static char memory[1 << 20];
static struct schema schema;

static void parse(const char *text)
{
	struct arena arena = { .base = memory, .size = sizeof memory };
	assert_true(schema_need(text, strlen(text)) <= sizeof memory);
	assert_int_equal(schema_parse(&schema, &arena, text, strlen(text)), 0);
}

static const char *name_of(void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes)
{
	*ret_bytes = 4;
	return handle == 0x55 && ticks >= 100 ? "axpy" : NULL;
}

struct sample {
	struct record head;
	uint64_t args[80];
};

static char line[2048];

static const char *decoded(const struct sample *s)
{
	const struct decoder d = { .schema = &schema, .kernel_name = name_of };
	struct sample *copy = malloc(sizeof *copy); /* as long as the record says: for ASan */
	memcpy(copy, s, sizeof *s);
	const size_t bytes = copy->head.words * 8u;
	copy = realloc(copy, bytes < 24 ? 24 : bytes);
	const size_t n = decode_record(&d, (const struct record *)copy, line, sizeof line);
	assert_int_equal(n, strlen(line));
	free(copy);
	return line;
}

static void a_line_becomes_a_function(void **state)
{
	parse(maker_schema);
	const struct schema_fn *fn = schema_find(&schema, FN_ALLOC);
	assert_int_equal(schema.bad_lines, 0);
	assert_string_equal(fn->name, "cuMemAlloc_v2");
	assert_string_equal(fn->class, "memory");
	assert_string_equal(fn->memory, "device");
	assert_int_equal(fn->kind, CALL_ALLOC);
	assert_int_equal(fn->api, API_DRIVER);
	assert_int_equal(fn->arg_count, 2);
	assert_int_equal(fn->pointer, 0);
	assert_true(fn->args[0].out);
	assert_int_equal(fn->args[0].kind, ARG_PTR);
	assert_int_equal(fn->args[1].kind, ARG_UINT);
	assert_string_equal(fn->args[1].name, "bytesize");
	assert_null(schema_find(&schema, 99));
	assert_null(schema_find(&schema, 0xffffffff));
}

static void words_depend_on_kinds(void **state)
{
	parse(maker_schema);
	const struct schema_fn *rt = schema_find(&schema, FN_RT_LAUNCH);
	assert_true(rt->launch_layout);
	assert_int_equal(rt->args[1].words, 2);
	assert_int_equal(rt->args[3].first, 5);
	assert_int_equal(rt->arg_words, 8);
	assert_int_equal(schema_find(&schema, FN_RT_MALLOC_3D)->arg_words, 4);
	assert_true(schema_find(&schema, FN_COPY_2D)->args[1].derived);
	assert_string_equal(schema_find(&schema, FN_COPY_2D)->args[1].name, "bytes");
}

static void bytes_are_a_product(void **state)
{
	parse("7 driver set set:n=1*2x4 f(CUdeviceptr p, size_t w, size_t h)\n"
	      "type size_t uint 8\n");
	struct sample s = { .head = { .fn = 7, .words = 6 }, .args = { 1, 10, 20 } };
	uint64_t bytes = 0;
	assert_true(schema_call_bytes(schema_find(&schema, 7), &s.head, &bytes));
	assert_int_equal(bytes, 800);
	s.head.words = 5; /* the last argument is missing */
	assert_false(schema_call_bytes(schema_find(&schema, 7), &s.head, &bytes));
	s.head.words = 6;
	s.args[1] = UINT64_MAX;
	assert_true(schema_call_bytes(schema_find(&schema, 7), &s.head, &bytes));
	assert_true(bytes == UINT64_MAX);
}

static void nonsense_is_passed_over_and_counted(void **state)
{
	static const char *const bad[] = { "x driver c call f()\n", "0 driver c call f()\n",
		"65300 driver c call f()\n", "1 driver c call f\n", "1 driver c call ()\n",
		"1 driver c alloc:p=9 f(int a)\n", "1 driver c set:n=7 f(int a)\n",
		"1 driver c set:n=z f(int a)\n", "1 driver c call f(int)\n", "1\n", "type x\n",
		"type x strange 3\n", "1 driver c call f(int a,,)\n" };
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		parse(bad[i]);
		assert_int_equal(schema.bad_lines, 1);
		assert_int_equal(schema.fn_count, 0);
	}
	parse("1 driver c call f()\n1 driver c call g()\n# a remark\n\n");
	assert_int_equal(schema.fn_count, 1);
	assert_int_equal(schema.bad_lines, 1);
	assert_string_equal(schema_find(&schema, 1)->name, "f");
}

static void a_small_arena_is_refused(void **state)
{
	struct arena arena = { .base = memory, .size = 1000 };
	assert_int_equal(schema_parse(&schema, &arena, maker_schema, strlen(maker_schema)), -12);
	assert_null(schema_find(&schema, FN_ALLOC));
}

static void an_allocation_is_shown(void **state)
{
	parse(maker_schema);
	struct sample s = { .head = { .fn = FN_ALLOC, .words = 5 },
		.args = { 0x7f0000000000, 4096 } };
	assert_string_equal(decoded(&s), "cuMemAlloc_v2(*dptr=0x7f0000000000, bytesize=4096) = 0");
	s.head.result = 2;
	s.head.aux = 1;
	assert_string_equal(
		decoded(&s), "cuMemAlloc_v2(*dptr=?, bytesize=4096) = 2 CUDA_ERROR_OUT_OF_MEMORY");
	s.head.fn = FN_RT_MALLOC;
	assert_string_equal(
		decoded(&s), "cudaMalloc(*devPtr=?, size=4096) = 2 cudaErrorMemoryAllocation");
}

static void a_launch_is_shown(void **state)
{
	parse(maker_schema);
	struct sample s = {
		.head = { .ticks = 90, .dur = 20, .fn = FN_LAUNCH, .words = 8, .aux = 48 },
		.args = { 0x55, 0, 8 | 2ull << 32, 1 | 256ull << 32, 4 | 1ull << 32 }
	};
	assert_string_equal(decoded(&s), "cuLaunchKernel(f=0x55 <axpy>, grid=(8,2,1), "
					 "block=(256,4,1), shared=48, stream=0x0) = 0");
	s.head.words = 9;
	s.head.flags = RECORD_CLUSTER | RECORD_CAPTURED;
	s.args[0] = 0x66;
	s.args[5] = 2 | 1ull << 16 | 1ull << 32 | 1ull << 48 | 3ull << 56;
	assert_string_equal(decoded(&s), "cuLaunchKernel(f=0x66, grid=(8,2,1), block=(256,4,1), "
					 "shared=48, stream=0x0, cluster=(2,1,1), cooperative, "
					 "attributes=3) = 0 [captured]");
	s.head.words = 7; /* too short for a launch */
	assert_string_equal(decoded(&s), "cuLaunchKernel(...) = 0 [captured]");
}

static void strings_stand_behind_the_words(void **state)
{
	parse(maker_schema);
	struct sample s = { .head = { .fn = FN_TWO_STRINGS, .words = 3 + 3 + 2 },
		.args = { 5, 3, 7 } };
	memcpy(&s.args[3], "a\"b\nc\0\0\0xyz", 11);
	assert_string_equal(decoded(&s), "cuProfilerInitialize(configFile=\"a\\\"b\\nc\", "
					 "outputFile=\"xyz\", outputMode=7) = 0");
	s.args[0] = UINT64_MAX;
	memcpy(&s.args[3], "xyz\0\0\0\0\0", 8);
	assert_string_equal(decoded(&s), "cuProfilerInitialize(configFile=NULL, "
					 "outputFile=\"xyz\", outputMode=7) = 0");
	s.args[1] = 1000; /* more than the record holds */
	assert_non_null(strstr(decoded(&s), "\"..., outputMode=7"));
}

static void kinds_are_shown_as_they_are(void **state)
{
	parse("1 driver c call f(int i, float x, dim3 d, cudaExtent e, CUlimit l, loc w, ipc h, "
	      "foo* p)\ntype int int 4\ntype float float 4\ntype dim3 dim3 12\n"
	      "type cudaExtent extent 24\ntype CUlimit enum 4\ntype loc loc 8\ntype ipc ipc 64\n");
	struct sample s = { .head = { .fn = 1, .words = 3 + 10 },
		.args = { (uint64_t)-3, 0x3fc00000, 1 | 2ull << 32, 3, 4, 5, 6, 1, 1 | 2ull << 32,
			0xabc } };
	assert_string_equal(decoded(&s), "f(i=-3, x=1.5, d=(1,2,3), e=(4,5,6), "
					 "l=CU_LIMIT_PRINTF_FIFO_SIZE, w={type=1, id=2}, h=..., "
					 "p=0xabc) = 0");
	s.args[7] = 77;
	assert_non_null(strstr(decoded(&s), "l=77"));
	static const struct {
		uint32_t bits;
		const char *text;
	} floats[] = { { 0, "x=0," }, { 0xbf800000, "x=-1," }, { 0x7f800000, "x=inf," },
		{ 0x7fc00000, "x=nan," }, { 0x3dcccccd, "x=0.1," }, { 0x7f7fffff, "*2^" },
		{ 0x00000001, "x=0," } };
	for (size_t i = 0; i < COUNT_OF(floats); i++) {
		s.args[1] = floats[i].bits;
		assert_non_null(strstr(decoded(&s), floats[i].text));
	}
}

static void missing_arguments_are_dots(void **state)
{
	parse(maker_schema);
	struct sample s = { .head = { .fn = FN_ALLOC, .words = 4 }, .args = { 1 } };
	assert_string_equal(decoded(&s), "cuMemAlloc_v2(*dptr=0x1, bytesize=...) = 0");
	s.head.fn = 999;
	assert_string_equal(decoded(&s), "function 999(...) = 0");
}

/* The decoder writes into what it is given, and no further. */
static void a_small_buffer_is_enough(void **state)
{
	parse(maker_schema);
	const struct decoder d = { .schema = &schema };
	struct sample s = { .head = { .fn = FN_ALLOC, .words = 5 }, .args = { 1, 2 } };
	for (size_t size = 1; size < 60; size++) {
		char *buf = malloc(size);
		const size_t n = decode_record(&d, &s.head, buf, size);
		assert_int_equal(n, strlen(buf));
		assert_true(strlen(buf) < size);
		free(buf);
	}
	assert_int_equal(decode_record(&d, &s.head, NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_becomes_a_function),
		cmocka_unit_test(words_depend_on_kinds),
		cmocka_unit_test(bytes_are_a_product),
		cmocka_unit_test(nonsense_is_passed_over_and_counted),
		cmocka_unit_test(a_small_arena_is_refused),
		cmocka_unit_test(an_allocation_is_shown),
		cmocka_unit_test(a_launch_is_shown),
		cmocka_unit_test(strings_stand_behind_the_words),
		cmocka_unit_test(kinds_are_shown_as_they_are),
		cmocka_unit_test(missing_arguments_are_dots),
		cmocka_unit_test(a_small_buffer_is_enough),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
