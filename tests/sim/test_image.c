/* The kernels in images: PTX, cubin, plain and compressed fat binaries. */
#include "sim_test.h"

#include "image/image.h"

static uint8_t *read_data(const char *name, size_t *ret_size)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", TEST_DATA, name);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	long size = ftell(f);
	rewind(f);
	uint8_t *data = malloc((size_t)size);
	assert_int_equal(fread(data, 1, (size_t)size, f), size);
	fclose(f);
	*ret_size = (size_t)size;
	return data;
}

static struct image load(const char *name)
{
	struct image image;
	size_t size;
	uint8_t *data = read_data(name, &size);

	OK(image_parse(data, size, 90, &image));
	free(data);
	return image;
}

static const struct image_kernel *kernel(struct image *image, const char *name)
{
	const struct image_kernel *k = image_find_kernel(image, name, strlen(name));

	assert_non_null(k);
	return k;
}

/* All forms of probe.cu share this. */
static void check_probe(struct image *image)
{
	assert_int_equal(image->kernel_count, 3);
	const struct image_kernel *add = kernel(image, "add");
	assert_int_equal(add->param_count, 4);
	assert_int_equal(add->params[3].offset, 24);
	assert_int_equal(add->params[3].size, 4);
	assert_int_equal(add->max_threads, 1024);
	const struct image_kernel *tile = kernel(image, "tile");
	assert_int_equal(tile->max_threads, 128);
	assert_int_equal(tile->shared_bytes, 512);
	assert_int_equal(tile->params[0].size, 16);
	assert_int_equal(tile->params[1].offset, 16);
	assert_int_equal(tile->params[2].offset, 24);
	assert_int_equal(kernel(image, "_Z4fillIiEvPT_S0_")->param_count, 2);
	assert_int_equal(image->global_count, 2);
}

static void every_form_of_a_program_names_the_same_kernels(void **state)
{
	const char *forms[] = { "probe.ptx", "probe_sm90.cubin", "probe_plain.fatbin",
		"probe_zstd.fatbin", "probe_lz4.fatbin" };

	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		struct image image = load(forms[i]);
		check_probe(&image);
		image_fini(&image);
	}
}

static void machine_code_tells_its_registers(void **state)
{
	struct image image = load("probe_plain.fatbin");

	assert_int_equal(kernel(&image, "add")->registers, 12);
	assert_int_equal(kernel(&image, "tile")->registers, 18);
	assert_int_equal(kernel(&image, "tile")->binary_version, 90);
	image_fini(&image);
}

static void code_for_another_architecture_is_not_run(void **state)
{
	struct image image;
	size_t size;
	uint8_t *data = read_data("probe_sm75.fatbin", &size);

	FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, image_parse(data, size, 90, &image));
	OK(image_parse(data, size, 75, &image));
	image_fini(&image);
	free(data);
	data = read_data("probe.ptx", &size);
	FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, image_parse(data, size, 80, &image));
	free(data);
}

static void what_is_no_image_is_refused(void **state)
{
	struct image image;
	const char *const texts[] = { "", "abc", "\177ELF", ".version", "not an image at all",
		".version 8.0\n.target sm_80\n.entry", "/* never closed" };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_int_not_equal(
			image_parse((const uint8_t *)texts[i], strlen(texts[i]), 90, &image), 0);
}

static void no_cut_of_an_image_is_read_beyond_its_end(void **state)
{
	const char *forms[] = { "probe.ptx", "probe_sm90.cubin", "probe_zstd.fatbin" };
	struct image image;

	for (size_t i = 0; i < 3; i++) {
		size_t size;
		uint8_t *whole = read_data(forms[i], &size);

		for (size_t cut = 0; cut < size; cut += 7) {
			uint8_t *part = malloc(cut + !cut); /* so that a sanitizer sees the end */
			memcpy(part, whole, cut);
			if (image_parse(part, cut, 90, &image) == 0)
				image_fini(&image);
			free(part);
		}
		free(whole);
	}
}

static struct image parse_text(const char *text)
{
	struct image image;

	OK(image_parse((const uint8_t *)text, strlen(text), 90, &image));
	return image;
}

static void ptx_parameters_are_laid_out_by_size_and_alignment(void **state)
{
	struct image image =
		parse_text(".version 7.0\n.target sm_70\n"
			   ".entry k(.param .u8 a, .param .align 16 .b8 b[20], .param .f64 c,\n"
			   "  .param .u64 .ptr .global .align 4 d, .param .v2 .f32 e) { ret; }\n");
	const struct image_kernel *k = kernel(&image, "k");
	const uint32_t offsets[] = { 0, 16, 40, 48, 56 }, sizes[] = { 1, 20, 8, 8, 8 };

	assert_int_equal(k->param_count, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(k->params[i].offset, offsets[i]);
		assert_int_equal(k->params[i].size, sizes[i]);
	}
	image_fini(&image);
}

static void ptx_comments_and_functions_hold_no_kernels(void **state)
{
	struct image image =
		parse_text(".version 7.0\n.target sm_90a\n"
			   "// .entry a() {}\n/* .entry b() {} */\n"
			   ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r; { } ret; }\n"
			   ".visible .func g();\n"
			   ".weak .entry c() .maxntid 8, 8 .minnctapersm 2 { .shared .b32 s[4]; }\n"
			   ".extern .shared .align 16 .b8 dynamic[];\n"
			   ".global .align 8 .b8 data[2][3] = { 1, 2 };\n"
			   ".global .attribute(.managed) .align 4 .u32 m;\n");

	assert_int_equal(image.kernel_count, 1);
	assert_int_equal(kernel(&image, "c")->max_threads, 64);
	assert_int_equal(kernel(&image, "c")->shared_bytes, 16);
	assert_int_equal(image.global_count, 2);
	assert_int_equal(image.globals[0].size, 6);
	assert_true(image.globals[1].managed);
	image_fini(&image);
}

static void modules_and_libraries_answer_from_their_image(void **state)
{
	void *module, *library, *kernels[3], *function, *other;
	unsigned count;
	unsigned long long address;
	size_t size, offset;
	char path[512], *name;
	int value;

	test_context();
	snprintf(path, sizeof path, "%s/probe_sm90.cubin", TEST_DATA);
	OK(cuModuleLoad(&module, path));
	OK(cuModuleGetFunctionCount(&count, module));
	assert_int_equal(count, 3);
	OK(cuModuleGetFunction(&function, module, "tile"));
	OK(cuFuncGetName(&name, function));
	assert_string_equal(name, "tile");
	OK(cuFuncGetModule(&other, function));
	assert_ptr_equal(other, module);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	assert_int_equal(value, 18);
	OK(cuFuncGetParamInfo(function, 2, &offset, &size));
	assert_int_equal(offset, 24);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function, 3, &offset, &size));
	FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nothing"));
	OK(cuModuleGetGlobal_v2(&address, &size, module, "table"));
	assert_int_equal(size, 64);
	OK(cuMemsetD8_v2(address, 1, size));
	OK(cuModuleUnload(module));
	OK(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&count, library));
	OK(cuLibraryEnumerateKernels(kernels, count, library));
	OK(cuKernelGetName(&name, kernels[0]));
	OK(cuKernelGetFunction(&function, kernels[0]));
	OK(cuKernelGetLibrary(&other, kernels[0]));
	assert_ptr_equal(other, library);
	OK(cuLibraryUnload(library));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, kernels[0]));
	FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/does/not/exist"));
	FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, (void *)"nonsense"));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_a_program_names_the_same_kernels),
		cmocka_unit_test(machine_code_tells_its_registers),
		cmocka_unit_test(code_for_another_architecture_is_not_run),
		cmocka_unit_test(what_is_no_image_is_refused),
		cmocka_unit_test(no_cut_of_an_image_is_read_beyond_its_end),
		cmocka_unit_test(ptx_parameters_are_laid_out_by_size_and_alignment),
		cmocka_unit_test(ptx_comments_and_functions_hold_no_kernels),
		cmocka_unit_test(modules_and_libraries_answer_from_their_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
