/*
 * NVRTC compiles every kernel that a plan may choose, without a word and without spilled registers.
 * Exits 77, which is "skipped", where there is no NVRTC.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/nvrtc.h"
#include "kernels/conv.h"
#include "kernels/rows.h"

#include "same_size.h"

enum { AT_ONCE = 16 };

static int bad, compiled;

/* Kernels that are compiled together, since NVRTC reads the sources again for each program. */
static struct {
	struct buf text, seen; /* seen: the names of all of this capability */
	const char *arch;
	int n;
} unit;

static void compile_unit(const struct nvrtc *nvrtc)
{
	struct error err;
	struct buf image = { 0 };
	if (unit.n && (nvrtc_compile(nvrtc, buf_text(&unit.text), unit.arch, &image, &err) ||
			      *err.text)) {
		printf("for %s: %s\n", unit.arch, err.text); /* it says of which kernel */
		bad++;
	}
	buf_free(&image);
	compiled += unit.n;
	unit.n = 0;
	unit.text.n = 0;
}

static void compile(const struct nvrtc *nvrtc, const char *name, const char *text, const char *arch)
{
	struct buf word = { 0 };
	const char *rest = text;
	if (unit.n == AT_ONCE || !unit.arch || strcmp(unit.arch, arch) != 0)
		compile_unit(nvrtc);
	if (!unit.arch || strcmp(unit.arch, arch) != 0)
		unit.seen.n = 0;
	unit.arch = arch;
	buf_printf(&word, " %s ", name);
	if (!strstr(buf_text(&unit.seen), buf_text(&word))) {
		while (strncmp(rest, "#include", 8) == 0)
			rest = strchr(rest, '\n') + 1;
		buf_printf(&unit.text, "%.*snamespace program_%d {\n%s}\n", (int)(rest - text),
			text, unit.n++, rest);
		buf_put_text(&unit.seen, buf_text(&word));
	}
	buf_free(&word);
}

/* On 9.0 FP32 and one of FP16 and BF16, which differ in two instructions. Before 9.0 one type.
 * Every two of width, operation and type come together. */
static bool is_in_turn(unsigned cc, unsigned turn, unsigned type)
{
	return cc >= 90 ? !type || type == 1 + turn % 2 : type == (turn + (cc >= 80)) % 3;
}

/* Of two types that differ in a few instructions, the one whose turn it is with this tile. */
static bool is_tile_in_turn(const struct gemm_form *f, unsigned turn)
{
	return (f->bn / 16 + f->clm + f->ping_pong) % 2 == turn % 2;
}

/* Compiles the plans of some widths, for each operation and some types. Wide norms have all that
 * may be fused, which takes the most registers. */
static void compile_rows(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct rows_choice choice[ROWS_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	unsigned step = 0;
	kernel_device_init(&device, "any", cc, 132);
	for (int64_t width = 32; width <= 1 << 18; width *= width < 8192 ? 4 : 2, step++)
		for (uint32_t kind = 0; kind < 12; kind++) {
			if (!is_in_turn(cc, step + kind / 3, kind % 3))
				continue;
			const bool fused =
				width > 8192 && kind / 3 + WEIR_SOFTMAX >= WEIR_LAYER_NORM;
			const struct weir_rows what = { .operation = WEIR_SOFTMAX + kind / 3,
				.type = WEIR_F32 + kind % 3,
				.rows = 64,
				.width = width,
				.has_residual = fused,
				.has_sum = fused,
				.has_weight = fused,
				.has_bias = fused,
				.residual_row = width,
				.residual_column = 1,
				.x_row = width,
				.x_column = 1,
				.y_row = width,
				.y_column = 1 };
			/* Compiles the plan's kernel, for wide rows also the next, and the plain
			 * one. */
			const size_t n = rows_choose(&device, &what, choice),
				     most = width > 8192 ? 2 : 1;
			for (size_t i = 0; i < n; i = i + 1 < most || i + 1 == n ? i + 1 : n - 1) {
				text.n = 0;
				rows_program(&what, &choice[i], &text);
				compile(nvrtc, choice[i].name, buf_text(&text), arch);
			}
		}
	buf_free(&text);
}

/* Every tile with one type, and every epilogue of every layout and type with one tile. */
static void compile_products(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t kind = 0; kind < 4 * 7 * 2; kind++) {
		const struct weir_gemm what = { .type = WEIR_F16 + kind % 2,
			.epilogue = kind / 2 % 7,
			.a_transposed = kind / 14 % 2,
			.b_transposed = kind / 28,
			.m = 4096,
			.n = 4096,
			.k = 4096,
			.batch = 1 + kind / 4 % 2 };
		const size_t n = gemm_choose(&device, &what, choice);
		for (size_t i = kind < 2 ? 0 : kind % n; i < n; i += kind < 2 ? 1 : n) {
			if (kind < 2 && !is_tile_in_turn(&choice[i].form, kind))
				continue;
			text.n = 0;
			gemm_program(&what, &choice[i], &text);
			compile(nvrtc, choice[i].name, buf_text(&text), arch);
		}
	}
	buf_free(&text);
}

/* Few rows: every width of A, both types, every epilogue. */
static void compile_few(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct gemm_choice choice[FEW_FORMS];
	struct kernel_device device;
	struct buf text = { 0 };
	kernel_device_init(&device, "H200", cc, 132);
	for (uint32_t kind = 0; kind < 7 * 4; kind++) {
		const struct weir_gemm what = { .type = WEIR_F16 + kind / 4 % 2,
			.epilogue = kind / 4,
			.m = 16 << kind % 4,
			.n = kind % 2 ? 4096 : 14336,
			.k = 4096,
			.b_stays = kind / 4 % 3 == 0 };
		const size_t n = few_choose(&device, &what, choice);
		bad += !n;
		for (size_t i = kind % 3; i < n; i += 3) {
			text.n = 0;
			gemm_program(&what, &choice[i], &text);
			compile(nvrtc, choice[i].name, buf_text(&text), arch);
		}
	}
	buf_free(&text);
}

/* Every tile with the epilogues in turn: INT8 to itself and to BF16, FP8 to FP16. */
static void compile_scaled(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	static const uint32_t types[][2] = { { WEIR_S8, WEIR_S8 }, { WEIR_S8, WEIR_BF16 },
		{ WEIR_E4M3, WEIR_F16 } };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t kind = 0; kind < 3 * 5; kind++) {
		const struct weir_gemm what = { .type = types[kind / 5][0],
			.d_type = types[kind / 5][1],
			.epilogue = kind % 5,
			.m = 4096,
			.n = 4096,
			.k = 4096 };
		const size_t n = gemm_choose(&device, &what, choice);
		for (size_t i = kind % 5; i + 1 < n; i += 5) {
			text.n = 0;
			gemm_program(&what, &choice[i], &text);
			compile(nvrtc, choice[i].name, buf_text(&text), arch);
		}
	}
	buf_free(&text);
}

/* Every tile with the epilogues in turn, also in two parts. */
static void compile_tf32(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf name = { 0 }, text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t kind = 0; kind < 14; kind++) {
		const struct weir_gemm what = { .type = WEIR_TF32 + kind / 7,
			.epilogue = kind % 7,
			.m = 4096,
			.n = 4096,
			.k = 4096 };
		const size_t n = gemm_choose(&device, &what, choice);
		for (size_t i = kind % 7; i + 1 < n; i += 7) {
			text.n = 0;
			gemm_program(&what, &choice[i], &text);
			compile(nvrtc, choice[i].name, buf_text(&text), arch);
		}
	}
	text.n = 0;
	gemm_split_program(&name, &text);
	compile(nvrtc, buf_text(&name), buf_text(&text), arch);
	buf_free(&name);
	buf_free(&text);
}

/* By mma.sync: the last but one of what can run each type. */
static void compile_mma(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	static const uint32_t d_types[] = { [WEIR_S8] = WEIR_S8, [WEIR_TF32X3] = 0 };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t type = WEIR_F16; type <= WEIR_TF32X3; type++) {
		const struct weir_gemm what = {
			.type = type, .d_type = d_types[type], .m = 4096, .n = 4096, .k = 4096
		};
		const size_t n = gemm_choose(&device, &what, choice);
		if (type == WEIR_E4M3 && cc < 89)
			continue;
		text.n = 0;
		gemm_program(&what, &choice[n - 2], &text);
		compile(nvrtc, choice[n - 2].name, buf_text(&text), arch);
	}
	buf_free(&text);
}

/* Every tile of each pass with its epilogues in turn, every epilogue with one tile, and the plain
 * kernels. */
static void compile_convolutions(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t kind = 0; kind < 2 * 6 * 2 + 2 + 5; kind++) {
		const bool scaled = kind >= 26;
		struct weir_conv what = same_size(scaled ? 0 : kind / 12, 32, 28, 256);
		what.type = scaled ? WEIR_S8 : WEIR_F16 + kind % 2;
		what.d_type = scaled ? WEIR_F16 + kind % 3 : 0;
		what.epilogue = kind < 24 ? kind / 2 % 6 : scaled ? kind - 26 : 0;
		what.k = kind % 3 ? 256 : 8;
		const size_t n = conv_choose(&device, &what, choice);
		for (size_t i = kind % 6 && kind < 24 ? kind % n : 0; i < n;
			i += kind % 6 && kind < 24 ? n : 1) {
			if (kind >= 24 && !is_tile_in_turn(&choice[i].form, kind))
				continue;
			text.n = 0;
			conv_program(&what, &choice[i], &text);
			compile(nvrtc, choice[i].name, buf_text(&text), arch);
		}
		if (what.pass == WEIR_CONV_FILTERS) {
			struct buf name = { 0 };
			text.n = 0;
			conv_sum_program(&what, &name, &text);
			compile(nvrtc, buf_text(&name), buf_text(&text), arch);
			buf_free(&name);
		}
	}
	buf_free(&text);
}

/* With an argument: rows, few, products, mma, tf32 or convolutions alone. */
int main(int argc, char **argv)
{
	const struct nvrtc *nvrtc = nvrtc_open(NULL);
	if (!nvrtc) {
		puts("there is no NVRTC");
		return 77;
	}
	if (argc == 1 || strcmp(argv[1], "rows") == 0) {
		compile_rows(nvrtc, 75, "sm_75");
		compile_rows(nvrtc, 80, "sm_80");
		compile_rows(nvrtc, 90, "sm_90a");
	}
	if (argc == 1 || strcmp(argv[1], "products") == 0)
		compile_products(nvrtc, 90, "sm_90a");
	if (argc == 1 || strcmp(argv[1], "products") == 0)
		compile_scaled(nvrtc, 90, "sm_90a");
	if (argc == 1 || strcmp(argv[1], "few") == 0)
		compile_few(nvrtc, 90, "sm_90a");
	if (argc == 1 || strcmp(argv[1], "mma") == 0) {
		compile_mma(nvrtc, 80, "sm_80");
		compile_mma(nvrtc, 89, "sm_89");
		compile_mma(nvrtc, 90, "sm_90a");
		compile_mma(nvrtc, 120, "sm_120");
	}
	if (argc == 1 || strcmp(argv[1], "tf32") == 0)
		compile_tf32(nvrtc, 90, "sm_90a");
	if (argc == 1 || strcmp(argv[1], "convolutions") == 0)
		compile_convolutions(nvrtc, 90, "sm_90a");
	compile_unit(nvrtc);
	printf("NVRTC %s compiled %d kernels, and refused %d\n", nvrtc_version(nvrtc), compiled,
		bad);
	return bad != 0;
}
