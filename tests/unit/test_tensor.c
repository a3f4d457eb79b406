/* Types, shapes and the bytes of tensors. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tensor/tensor.h"

static void each_type_is_found_by_all_its_names(void **state)
{
	for (enum dtype t = DTYPE_NONE + 1; t < DTYPES; t++) {
		assert_int_equal(dtype_find(slice_of(dtype_rows[t].name)), t);
		assert_int_equal(dtype_of_config(slice_of(dtype_rows[t].config)), t);
		assert_int_equal(dtype_of_onnx(dtype_rows[t].onnx), t);
	}
	assert_int_equal(dtype_find(SLICE("FP31")), DTYPE_NONE);
	assert_int_equal(dtype_find(SLICE("FP3")), DTYPE_NONE);
	assert_int_equal(dtype_of_onnx(99), DTYPE_NONE);
}

static void floats_of_all_types_are_numbers(void **state)
{
	static const uint16_t half[] = { 0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000 };
	static const double value[] = { 1, -2, 0x1p-24, 65504, -0. };
	for (unsigned i = 0; i < COUNT_OF(half); i++)
		assert_true(dtype_float(DTYPE_FP16, &half[i]) == value[i]);
	assert_true(isinf(dtype_float(DTYPE_FP16, &(uint16_t){ 0x7c00 })));
	assert_true(isnan(dtype_float(DTYPE_FP16, &(uint16_t){ 0x7c01 })));
	assert_true(dtype_float(DTYPE_BF16, &(uint16_t){ 0xbfc0 }) == -1.5);
	assert_true(dtype_float(DTYPE_FP32, &(float){ 2.5f }) == 2.5);
	assert_true(dtype_float(DTYPE_FP64, &(double){ 1e300 }) == 1e300);
	assert_true(isnan(dtype_float(DTYPE_INT32, &(int32_t){ 1 })));
}

static void sizes_that_overflow_are_refused(void **state)
{
	uint64_t n;
	assert_int_equal(shape_elements(&(struct shape){ 0 }, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(shape_elements(&(struct shape){ 3, { 2, 3, 4 } }, &n), 0);
	assert_int_equal(n, 24);
	assert_int_equal(shape_elements(&(struct shape){ 2, { INT64_MAX, 0 } }, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(shape_elements(&(struct shape){ 1, { -1 } }, &n), -EINVAL);
	assert_int_equal(shape_elements(&(struct shape){ 2, { INT64_MAX, 3 } }, &n), -EOVERFLOW);
	assert_int_equal(
		shape_bytes(&(struct shape){ 1, { INT64_MAX } }, DTYPE_FP64, &n), -EOVERFLOW);
	assert_int_equal(shape_bytes(&(struct shape){ 2, { 2, 5 } }, DTYPE_FP16, &n), 0);
	assert_int_equal(n, 20);
}

static void a_shape_fits_where_the_model_takes_any(void **state)
{
	const struct shape model = { 2, { -1, 3 } };
	assert_true(shape_fits(&(struct shape){ 2, { 7, 3 } }, &model));
	assert_false(shape_fits(&(struct shape){ 2, { 7, 4 } }, &model));
	assert_false(shape_fits(&(struct shape){ 1, { 3 } }, &model));
	struct buf b = { 0 };
	shape_put(&b, &model);
	assert_string_equal(buf_text(&b), "[-1,3]");
	buf_free(&b);
}

static int check(enum dtype type, int64_t elements, const void *data, size_t bytes)
{
	const struct tensor t = { SLICE("x"), type, { 1, { elements } }, data, bytes };
	struct error err = { "" };
	const int e = tensor_check(&t, &err);
	assert_int_equal(e == 0, err.text[0] == 0);
	return e;
}

static void bytes_have_to_be_what_the_shape_says(void **state)
{
	assert_int_equal(check(DTYPE_FP32, 2, "12345678", 8), 0);
	assert_int_equal(check(DTYPE_FP32, 2, "1234567", 7), -EINVAL);
	assert_int_equal(check(DTYPE_FP32, -2, "12345678", 8), -EINVAL);
	const char two[] = "\2\0\0\0ab\0\0\0\0";
	assert_int_equal(check(DTYPE_BYTES, 2, two, 10), 0);
	assert_int_equal(check(DTYPE_BYTES, 0, two, 0), 0);
	for (size_t n = 0; n < 10; n++) {
		/* of its own, so that what reads on is found */
		char *cut = malloc(n + !n);
		memcpy(cut, two, n);
		assert_int_equal(check(DTYPE_BYTES, 2, cut, n), -EINVAL);
		free(cut);
	}
	assert_int_equal(check(DTYPE_BYTES, 1, two, 10), -EINVAL);
	assert_int_equal(check(DTYPE_BYTES, 1, "\377\377\377\377a", 5), -EINVAL);
}

static void numbers_are_digits_that_fit(void **state)
{
	uint64_t n = 7;
	assert_true(slice_u64(SLICE("18446744073709551615"), &n));
	assert_true(n == UINT64_MAX);
	n = 7;
	const char *const wrong[] = { "", "18446744073709551616", "-1", "+1", " 1", "1 ", "0x1" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(slice_u64(slice_of(wrong[i]), &n));
	assert_int_equal(n, 7);
	struct buf b = { 0 };
	buf_u64(&b, UINT64_MAX);
	buf_i64(&b, INT64_MIN);
	buf_printf(&b, "%s", "|");
	buf_u64(&b, 0);
	assert_string_equal(buf_text(&b), "18446744073709551615-9223372036854775808|0");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_is_found_by_all_its_names),
		cmocka_unit_test(floats_of_all_types_are_numbers),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(a_shape_fits_where_the_model_takes_any),
		cmocka_unit_test(bytes_have_to_be_what_the_shape_says),
		cmocka_unit_test(numbers_are_digits_that_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
