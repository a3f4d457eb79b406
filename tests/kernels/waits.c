/*
 * Kernels that are launched before the launch before them has ended wait for its end, and no others
 * do: the PTX of each says so.  Exits 77, which is "skipped", where there is no NVRTC.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/nvrtc.h"
#include "kernels/rows.h"

#include "same_size.h"

static const struct nvrtc *nvrtc;
static struct kernel_device device;
static unsigned bad, waiting, others;

static bool waits(const char *name, struct buf *program)
{
	struct error err;
	struct buf ptx = { 0 };
	if (nvrtc_compile(nvrtc, buf_text(program), "compute_90a", &ptx, &err)) {
		printf("%s: %s\n", name, err.text);
		bad++;
	}
	const bool yes = strstr(buf_text(&ptx), "griddepcontrol.wait") != NULL;
	buf_free(&ptx);
	return yes;
}

static void check(const char *name, struct buf *program, bool ahead)
{
	if (waits(name, program) != ahead) {
		printf("%s %s\n", name, ahead ? "is launched ahead and does not wait" : "waits");
		bad++;
	}
	*(ahead ? &waiting : &others) += 1;
	program->n = 0;
}

static struct weir_rows rows_of(uint32_t operation, int64_t width)
{
	return (struct weir_rows){ .operation = operation,
		.type = WEIR_BF16,
		.rows = 64,
		.width = width,
		.x_row = width,
		.x_column = 1,
		.y_row = width,
		.y_column = 1 };
}

static void check_rows(void)
{
	struct rows_choice choice[ROWS_FORMS_MOST];
	struct buf program = { 0 };
	for (int64_t width = 128; width <= 1 << 17; width *= 32)
		for (uint32_t operation = WEIR_SOFTMAX; operation <= WEIR_RMS_NORM;
			operation += 2) {
			const struct weir_rows what = rows_of(operation, width);
			const size_t n = rows_choose(&device, &what, choice);
			for (size_t i = 0; i < n; i += n - 1) {
				rows_program(&what, &choice[i], &program);
				check(choice[i].name, &program, choice[i].form.vectors);
			}
		}
	buf_free(&program);
}

/* The control: a kernel without its wait. */
static void check_control(void)
{
	static const char wait[] = "launch_wait();";
	struct rows_choice choice[ROWS_FORMS_MOST];
	struct buf program = { 0 };
	const struct weir_rows what = rows_of(WEIR_SOFTMAX, 128);
	rows_choose(&device, &what, choice);
	rows_program(&what, &choice[0], &program);
	memset(strstr(buf_text(&program), wait), ' ', strlen(wait));
	if (waits("the control", &program)) {
		puts("a kernel without its wait is taken for one that waits");
		bad++;
	}
	buf_free(&program);
}

/* The best tile, every sixth, and the kernels for other rows. */
static void check_products(int64_t m, uint32_t type, uint32_t stays)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct buf program = { 0 };
	const struct weir_gemm what = {
		.type = type, .m = m, .n = 4096, .k = 4096, .b_stays = stays
	};
	const size_t n = gemm_choose(&device, &what, choice);
	for (size_t i = 0; i < n; i++) {
		const struct gemm_form *f = &choice[i].form;
		if (i % 6 && i + 2 < n)
			continue;
		gemm_program(&what, &choice[i], &program);
		check(choice[i].name, &program, f->buffers || f->few);
	}
	buf_free(&program);
}

static void check_convolutions(void)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct buf name = { 0 }, program = { 0 };
	for (uint32_t kind = 0; kind <= WEIR_CONV_FILTERS + 1; kind++) {
		const uint32_t pass = kind > WEIR_CONV_FILTERS ? WEIR_CONV_INPUT : kind;
		struct weir_conv what = same_size(pass, 32, 28, 256);
		what.type = WEIR_BF16;
		what.stride_h = what.stride_w = kind > WEIR_CONV_FILTERS ? 2 : 1;
		const size_t n = conv_choose(&device, &what, choice);
		for (size_t i = 0; i < n; i += n - 1) {
			conv_program(&what, &choice[i], &program);
			check(choice[i].name, &program, choice[i].form.buffers);
		}
		conv_sum_program(&what, &name, &program);
		if (pass == WEIR_CONV_FILTERS)
			check(buf_text(&name), &program, true);
		name.n = program.n = 0;
	}
	conv_pack_program(&name, &program);
	check(buf_text(&name), &program, true);
	name.n = 0;
	gemm_split_program(&name, &program);
	check(buf_text(&name), &program, true);
	buf_free(&name);
	buf_free(&program);
}

int main(void)
{
	nvrtc = nvrtc_open(NULL);
	if (!nvrtc) {
		puts("there is no NVRTC");
		return 77;
	}
	kernel_device_init(&device, "H200", 90, 132);
	check_rows();
	check_control();
	check_products(4096, WEIR_BF16, 0);
	check_products(64, WEIR_F16, 0);
	check_products(16, WEIR_BF16, 1);
	check_products(4096, WEIR_TF32X3, 0);
	check_products(4096, WEIR_S8, 0);
	check_convolutions();
	printf("%u kernels wait, %u others do not, %u are wrong\n", waiting, others, bad);
	return bad || !waiting || !others;
}
