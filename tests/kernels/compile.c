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

/* One type of three before 9.0. On 9.0 FP32, and one of FP16 and BF16, which differ in two
 * instructions: one for the first of two operations that differ in their last step, the other for
 * the second. */
static bool is_in_turn(unsigned cc, unsigned turn, unsigned operation, unsigned type)
{
	if (cc < 90)
		return operation % 2 == (turn + (cc >= 80)) % 2 &&
		       type == (turn / 2 + operation + (cc >= 80)) % 3;
	return (operation + turn) % 2 ? type == 1 + turn / 2 % 2 : !type;
}

/* The kinds of a family share its tiles: each takes some that none has yet, and kind 0, the last,
 * which can have each, takes the rest. */
struct tiles {
	struct gemm_form v[GEMM_FORMS_MOST];
	size_t n;
};

static bool has_tile(const struct tiles *t, const struct gemm_form *f)
{
	for (size_t i = 0; i < t->n; i++)
		if (memcmp(&t->v[i], f, sizeof *f) == 0)
			return true;
	return false;
}

/* Moves what this kind of so many takes of n choices to the front. The number of them. */
static size_t take_tiles(
	struct tiles *t, struct gemm_choice *choice, size_t n, size_t kind, size_t kinds)
{
	const size_t most = kind ? n / kinds : n;
	size_t taken = 0;
	for (size_t i = 0; i < n && taken < most && t->n < GEMM_FORMS_MOST; i++)
		if (!has_tile(t, &choice[i].form)) {
			t->v[t->n++] = choice[i].form;
			choice[taken++] = choice[i];
		}
	return taken;
}

/* Compiles the plans of some widths, for some operations and types. Wide norms have all that may be
 * fused, which takes the most registers. builtin.c compiles the plain kernels for 7.5. */
static void compile_rows(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct rows_choice choice[ROWS_FORMS_MOST];
	struct kernel_device device;
	struct buf text = { 0 };
	unsigned step = 0;
	kernel_device_init(&device, "any", cc, 132);
	for (int64_t width = 32; width <= 1 << 18; width *= width < 8192 ? 4 : 2, step++)
		for (uint32_t kind = 0; kind < 12; kind++) {
			if (!is_in_turn(cc, step, kind / 3, kind % 3))
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
			/* The plan's kernel, for wide rows also the next. */
			const size_t n = rows_choose(&device, &what, choice),
				     most = width > 8192 ? 2 : 1;
			for (size_t i = 0; i < n; i++) {
				if (i + 1 == n ? cc < 90 : i >= most)
					continue;
				text.n = 0;
				rows_program(&what, &choice[i], &text);
				compile(nvrtc, choice[i].name, buf_text(&text), arch);
			}
		}
	buf_free(&text);
}

static void compile_product(const struct nvrtc *nvrtc, const struct weir_gemm *what,
	const struct gemm_choice *choice, const char *arch)
{
	struct buf text = { 0 };
	gemm_program(what, choice, &text);
	compile(nvrtc, choice->name, buf_text(&text), arch);
	buf_free(&text);
}

/* Every tile with one of `kinds` epilogues. Types of operands and of results alternate. */
static void compile_tiles(const struct nvrtc *nvrtc, const struct kernel_device *device,
	const uint32_t types[2], const uint32_t d_types[2], size_t kinds, const char *arch)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct tiles tiles = { 0 };
	for (size_t kind = kinds; kind-- > 0;) {
		const struct weir_gemm what = { .type = types[kind % 2],
			.d_type = d_types[kind % 2],
			.epilogue = (uint32_t)kind,
			.m = 4096,
			.n = 4096,
			.k = 4096,
			.batch = types[0] == WEIR_F16 ? 1 + kind / 4 % 2 : 0 };
		size_t n = gemm_choose(device, &what, choice);
		n = take_tiles(&tiles, choice, n - 1, kind, kinds);
		for (size_t i = 0; i < n; i++)
			compile_product(nvrtc, &what, &choice[i], arch);
	}
}

/* Every tile with one type, and every epilogue of the other layouts with one tile. */
static void compile_products(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	static const uint32_t types[][2] = { { WEIR_F16, WEIR_BF16 }, { WEIR_S8, WEIR_S8 },
		{ WEIR_E4M3, WEIR_E4M3 }, { WEIR_TF32, WEIR_TF32X3 } },
			      d_types[][2] = { { 0, 0 }, { WEIR_S8, WEIR_BF16 },
				      { WEIR_F16, WEIR_F16 }, { 0, 0 } };
	static const size_t kinds[] = { 7, 5, 5, 7 };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	struct buf name = { 0 }, text = { 0 };
	kernel_device_init(&device, "any", cc, 132);
	for (size_t i = 0; i < 4; i++)
		compile_tiles(nvrtc, &device, types[i], d_types[i], kinds[i], arch);
	for (uint32_t kind = 7; kind < 4 * 7; kind++) {
		const struct weir_gemm what = { .type = WEIR_F16 + kind % 2,
			.epilogue = kind % 7,
			.a_transposed = kind / 7 % 2,
			.b_transposed = kind / 14,
			.m = 4096,
			.n = 4096,
			.k = 4096,
			.batch = 1 + kind / 4 % 2 };
		const size_t n = gemm_choose(&device, &what, choice);
		compile_product(nvrtc, &what, &choice[kind % n], arch);
	}
	gemm_split_program(&name, &text);
	compile(nvrtc, buf_text(&name), buf_text(&text), arch);
	buf_free(&name);
	buf_free(&text);
}

/* Few rows: every width of A, both types, every epilogue. */
static void compile_few(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	struct gemm_choice choice[FEW_FORMS];
	struct kernel_device device;
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
		for (size_t i = kind % 3; i < n; i += 3)
			compile_product(nvrtc, &what, &choice[i], arch);
	}
}

/* By mma.sync: the last but one of what can run each type. 8.9 adds FP8 to what 8.0 has, and FP16
 * and BF16 differ in one instruction. */
static void compile_mma(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	static const uint32_t d_types[] = { [WEIR_S8] = WEIR_S8, [WEIR_TF32X3] = 0 };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	kernel_device_init(&device, "any", cc, 132);
	for (uint32_t type = WEIR_F16; type <= WEIR_TF32X3; type++) {
		const struct weir_gemm what = {
			.type = type, .d_type = d_types[type], .m = 4096, .n = 4096, .k = 4096
		};
		const size_t n = gemm_choose(&device, &what, choice);
		if (cc < 90 && (type == WEIR_E4M3) != (cc == 89))
			continue;
		if (type == (cc < 90 ? WEIR_BF16 : WEIR_F16))
			continue;
		compile_product(nvrtc, &what, &choice[n - 2], arch);
	}
}

static void compile_conv(const struct nvrtc *nvrtc, const struct weir_conv *what,
	const struct gemm_choice *choice, const char *arch)
{
	struct buf text = { 0 };
	conv_program(what, choice, &text);
	compile(nvrtc, choice->name, buf_text(&text), arch);
	buf_free(&text);
}

static void compile_sum(const struct nvrtc *nvrtc, const struct weir_conv *what, const char *arch)
{
	struct buf name = { 0 }, text = { 0 };
	conv_sum_program(what, &name, &text);
	compile(nvrtc, buf_text(&name), buf_text(&text), arch);
	buf_free(&name);
	buf_free(&text);
}

/* Every tile of each pass with one of its epilogues, also of INT8 and of phases, and the plain
 * kernels. The types of 16 bits alternate. */
static void compile_convolutions(const struct nvrtc *nvrtc, unsigned cc, const char *arch)
{
	static const struct {
		uint32_t pass, kinds;
		bool scaled;
		int64_t stride;
	} families[] = { { WEIR_CONV_FORWARD, 6, false, 1 }, { WEIR_CONV_INPUT, 6, false, 1 },
		{ WEIR_CONV_INPUT, 6, false, 2 }, { WEIR_CONV_FILTERS, 2, false, 1 },
		{ WEIR_CONV_FORWARD, 5, true, 1 } };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device device;
	kernel_device_init(&device, "any", cc, 132);
	for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
		struct tiles tiles = { 0 };
		for (uint32_t kind = families[f].kinds; kind-- > 0;) {
			struct weir_conv what = same_size(families[f].pass, 32, 28, 256);
			what.type = families[f].scaled ? WEIR_S8 : WEIR_F16 + kind % 2;
			what.d_type = families[f].scaled ? WEIR_F16 + kind % 3 : 0;
			what.epilogue = what.pass == WEIR_CONV_FILTERS ? 0 : kind;
			what.k = kind == 1 ? 8 : 256;
			what.stride_h = what.stride_w = families[f].stride;
			size_t n = conv_choose(&device, &what, choice);
			compile_conv(nvrtc, &what, &choice[n - 1], arch);
			n = take_tiles(&tiles, choice, n - 1, kind, families[f].kinds);
			for (size_t i = 0; i < n; i++)
				compile_conv(nvrtc, &what, &choice[i], arch);
			if (what.pass == WEIR_CONV_FILTERS)
				compile_sum(nvrtc, &what, arch);
		}
	}
}

/* With an argument: rows, few, products, mma or convolutions alone. */
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
	if (argc == 1 || strcmp(argv[1], "few") == 0)
		compile_few(nvrtc, 90, "sm_90a");
	if (argc == 1 || strcmp(argv[1], "mma") == 0) {
		compile_mma(nvrtc, 80, "sm_80");
		compile_mma(nvrtc, 89, "sm_89");
		compile_mma(nvrtc, 120, "sm_120");
	}
	if (argc == 1 || strcmp(argv[1], "convolutions") == 0)
		compile_convolutions(nvrtc, 90, "sm_90a");
	compile_unit(nvrtc);
	printf("NVRTC %s compiled %d kernels, and refused %d\n", nvrtc_version(nvrtc), compiled,
		bad);
	return bad != 0;
}
