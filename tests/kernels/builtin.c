/*
 * Prints the PTX of all plain kernels, as src/kernels/builtin.ptx has it: builtin [NVRTC].  Exits
 * 77 where there is no NVRTC.  PTX of capability 7.5 runs on that and all newer devices.
 */
#include <stdio.h>

#include "kernels/nvrtc.h"
#include "kernels/conv.h"
#include "kernels/rows.h"

static void put_plain(uint32_t operation, uint32_t type, struct buf *program)
{
	struct rows_choice choice[ROWS_FORMS_MOST];
	const struct weir_rows what = {
		.operation = operation, .type = type, .rows = 1, .width = 1
	};
	struct kernel_device device;
	kernel_device_init(&device, "any", 75, 1);
	const size_t n = rows_choose(&device, &what, choice);
	rows_program(&what, &choice[n - 1], program);
}

static void put_product(uint32_t type, uint32_t d_type, struct buf *program)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	const struct weir_gemm what = { .type = type, .d_type = d_type, .m = 1, .n = 2, .k = 1 };
	struct kernel_device device;
	kernel_device_init(&device, "any", 75, 1);
	const size_t n = gemm_choose(&device, &what, choice);
	gemm_program(&what, &choice[n - 1], program);
}

/* The plain, the direct and, where there are gradients, the filters' kernel. */
static void put_convolutions(uint32_t type, uint32_t d_type, struct buf *program)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	kernel_device_init(&device, "any", 75, 1);
	for (unsigned i = 0; i < (type == WEIR_S8 ? 2 : 3); i++) {
		const struct weir_conv what = { .type = type,
			.d_type = d_type,
			.pass = i == 2 ? WEIR_CONV_FILTERS : WEIR_CONV_FORWARD,
			.n = 1,
			.h = 1,
			.w = 1,
			.c = 1,
			.k = i == 1 ? 1 : 64,
			.r = 1,
			.s = 1,
			.stride_h = 1,
			.stride_w = 1,
			.dilation_h = 1,
			.dilation_w = 1,
			.groups = 1 };
		const size_t n = conv_choose(&device, &what, choice);
		conv_program(&what, &choice[n - 1], program);
	}
}

int main(int argc, char **argv)
{
	struct error err;
	struct buf program = { 0 }, ptx = { 0 };
	const struct nvrtc *nvrtc = nvrtc_open(argc > 1 ? argv[1] : NULL);
	if (!nvrtc) {
		puts("there is no NVRTC");
		return 77;
	}
	for (uint32_t operation = WEIR_SOFTMAX; operation <= WEIR_RMS_NORM; operation++)
		for (uint32_t type = WEIR_F32; type <= WEIR_BF16; type++)
			put_plain(operation, type, &program);
	for (uint32_t type = WEIR_F32; type <= WEIR_BF16; type++)
		put_product(type, 0, &program);
	for (uint32_t type = WEIR_S8; type <= WEIR_E4M3; type++)
		for (uint32_t d_type = WEIR_F16; d_type <= WEIR_BF16; d_type++)
			put_product(type, d_type, &program);
	put_product(WEIR_S8, WEIR_S8, &program);
	for (uint32_t type = WEIR_F32; type <= WEIR_BF16; type++)
		put_convolutions(type, 0, &program);
	for (uint32_t d_type = WEIR_F16; d_type <= WEIR_S8; d_type++)
		put_convolutions(WEIR_S8, d_type, &program);
	if (nvrtc_compile(nvrtc, buf_text(&program), "compute_75", &ptx, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	fputs(buf_text(&ptx), stdout);
	return 0;
}
