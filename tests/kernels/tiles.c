/*
 * Every element of a product belongs to exactly one tile: all tiles that a plan may take, every m
 * up to 2,000, and a sample of n. A control leaves the last group of columns as wide as the others,
 * and must be seen.  The same of the phases of a gradient of the input, and of what they read.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/gemm.cuh"
#include "kernels/conv.h"
#include "kernels/gemm.h"

#include "same_size.h"

enum { MOST = 2000, ACROSS = MOST / 32 };

static unsigned char seen[ACROSS][ACROSS];

/* As tile_at(), but for the width of the last group. */
static struct tile wrong_tile_at(int t, int cm, int cn, int group)
{
	const int per = group * cm, g = t / per, in = t - g * per;
	return (struct tile){ in / group, g * group + in % group };
}

/* Whether the tiles of all clusters are the squares of a board, each once. Tiles beyond the
 * rounding to whole clusters may lie outside. */
static bool is_partition(int m, int n, const struct gemm_form *f, int group,
	struct tile (*walk)(int t, int cm, int cn, int group))
{
	const int bm = (int)f->bm, bn = (int)f->bn, clm = (int)f->clm, cln = (int)f->cln;
	const int cm = tile_count(m, bm * clm), cn = tile_count(n, bn * cln);
	const int down = tile_count(m, bm), across = tile_count(n, bn);
	int inside = 0;
	for (int i = 0; i < down; i++)
		memset(seen[i], 0, (size_t)across);
	for (int t = 0; t < cm * cn; t++)
		for (int rank = 0; rank < clm * cln; rank++) {
			const struct tile c = tile_corner(
				walk(t, cm, cn, group), clm, cln, rank % clm, rank / clm, bm, bn);
			if (c.m < 0 || c.n < 0 || c.m % bm || c.n % bn)
				return false;
			if (c.m >= m || c.n >= n)
				continue;
			if (seen[c.m / bm][c.n / bn]++)
				return false;
			inside++;
		}
	return inside == down * across;
}

static int check(const struct kernel_device *d, int m, int n, bool *ret_control_seen)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	const struct weir_gemm what = { .type = WEIR_BF16,
		.m = m,
		.n = n,
		.k = 64,
		.a_pitch = 64,
		.b_pitch = 64,
		.d_pitch = 2048 };
	int bad = 0;
	const size_t plain = gemm_choose(d, &what, choice) - 1;
	for (size_t i = 0; i < plain; i++) {
		const struct gemm_form *f = &choice[i].form;
		const int group = (int)choice[i].group;
		if (f->few) /* it has all of M in a tile, and those of N one behind the other */
			continue;
		const uint64_t clusters = (uint64_t)tile_count(m, (int)(f->bm * f->clm)) *
					  (uint64_t)tile_count(n, (int)(f->bn * f->cln));
		if (!is_partition(m, n, f, group, tile_at) || choice[i].clusters != clusters) {
			printf("%d x %d by %s, groups of %d\n", m, n, choice[i].name, group);
			bad++;
		}
		if (!*ret_control_seen)
			*ret_control_seen = !is_partition(m, n, f, group, wrong_tile_at);
	}
	return bad + !plain;
}

/* On capability 8.6 the plain kernels alone convolve, and on 9.0 all others have buffers. */
static int check_convolutions(const struct kernel_device *h200)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct kernel_device a10;
	int bad = !kernel_device_init(&a10, "A10", 0, 0);
	for (uint32_t pass = 0; pass < 3; pass++) {
		const struct weir_conv what = same_size(pass, 64, 56, 64);
		bad += conv_choose(&a10, &what, choice) != 1 || choice[0].form.bm;
		const size_t n = conv_choose(h200, &what, choice);
		for (size_t i = 0; i + 1 < n; i++)
			bad += !choice[i].form.buffers;
		/* Wider tiles read and multiply columns that are not there. */
		bad += pass != WEIR_CONV_FILTERS && choice[0].form.bn != 64;
	}
	if (bad)
		puts("a convolution takes a kernel that has none, or a tile that is too wide");
	return bad;
}

enum { SIDE = 16, TAPS = 5 };

/* The pixel of A that each pixel of D reads with each tap of the filters.  Less than 0: none. */
static int reads[SIDE][SIDE][32];

/* By a phase.  How many of its reads are a second one of the same tap. */
static int read_phase(const struct conv_tiled_args *t, const struct conv_phase *f)
{
	int bad = 0;
	for (int i = 0; i < f->y.d * f->x.d * f->y.taps * f->x.taps; i++) {
		const int s = i % f->x.taps, r = i / f->x.taps % f->y.taps;
		const int pixel = i / f->x.taps / f->y.taps;
		const int x = f->left + pixel % f->x.d * t->x.over;
		const int y = f->top + pixel / f->x.d * t->y.over;
		const int ax = pixel % f->x.d + f->x.first + s * f->x.step;
		const int ay = pixel / f->x.d + f->y.first + r * f->y.step;
		const bool outside = x >= t->x.d || y >= t->y.d;
		bad += outside;
		if (f->channel || outside || ax < 0 || ax >= t->x.a || ay < 0 || ay >= t->y.a)
			continue;
		int *const at =
			&reads[y][x][(f->first_tap + r * t->row_step + s * t->tap_step) & 31];
		bad += *at >= 0;
		*at = ay * t->x.a + ax;
	}
	return bad;
}

/* Takes away what the definition reads.  How much it has beside, and how much is left. */
static int compare_reads(const struct weir_conv *w, const struct conv_tiled_args *t)
{
	const int taps = (int)(w->r * w->s);
	int bad = 0;
	for (int i = 0; i < t->y.a * t->x.a * taps; i++) {
		const int tap = i % taps, out = i / taps;
		const int y = out / t->x.a * (int)w->stride_h - (int)w->pad_h +
			      tap / (int)w->s * (int)w->dilation_h;
		const int x = out % t->x.a * (int)w->stride_w - (int)w->pad_w +
			      tap % (int)w->s * (int)w->dilation_w;
		if (y < 0 || y >= w->h || x < 0 || x >= w->w)
			continue;
		bad += reads[y][x][tap] != out;
		reads[y][x][tap] = -1;
	}
	for (size_t i = 0; i < sizeof reads / sizeof(int); i++)
		bad += (&reads[0][0][0])[i] >= 0;
	return bad;
}

/* A convolution whose sizes are drawn by a number. */
static struct weir_conv draw_conv(unsigned n)
{
	static const uint8_t strides[][2] = { { 2, 2 }, { 2, 1 }, { 1, 2 }, { 4, 1 }, { 1, 3 } };
	struct weir_conv w = same_size(WEIR_CONV_INPUT, 3, 0, 72);
	w.stride_h = strides[n % 5][0];
	w.stride_w = strides[n % 5][1];
	w.r = 1 + n / 5 % TAPS;
	w.s = 1 + n / 25 % TAPS;
	w.dilation_h = 1 + n / 125 % 3;
	w.dilation_w = 1 + n / 375 % 4;
	w.pad_h = n / 7 % 4;
	w.pad_w = n / 11 % 4;
	w.h = 1 + n / 13 % SIDE;
	w.w = 1 + n / 17 % SIDE;
	return w;
}

static bool fits(const struct weir_conv *w)
{
	return w->dilation_h * (w->r - 1) < w->h + 2 * w->pad_h &&
	       w->dilation_w * (w->s - 1) < w->w + 2 * w->pad_w;
}

/* Phases of a gradient of the input have each pixel of D once, and read with it what the definition
 * says.  The phases of most taps come first, and each has tiles for all of its pixels. */
static int count_wrong_phases(const struct kernel_device *d, const struct weir_conv *w, int wrong)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct conv_phase phase[CONV_PHASES];
	struct conv_tiled_args t = conv_tile(w);
	int bad = 0, pixels = 0;
	memset(reads, -1, sizeof reads);
	const int n = conv_phases(&t, phase);
	t.tap_step += wrong;
	for (int i = 0; i < n; i++) {
		bad += read_phase(&t, &phase[i]) + (i && phase[i].blocks > phase[i - 1].blocks);
		pixels += phase[i].y.d * phase[i].x.d;
	}
	const size_t plain = conv_choose(d, w, choice) - 1;
	for (size_t i = 0; i < plain; i++) {
		uint64_t tiles = 0;
		for (int j = 0; j < n; j++)
			tiles += (uint64_t)tile_count(
				(int)w->n * phase[j].y.d * phase[j].x.d, (int)choice[i].form.bm);
		bad += choice[i].clusters !=
		       tiles * (uint64_t)tile_count(72, (int)choice[i].form.bn);
	}
	return bad + compare_reads(w, &t) + !n + !plain + (pixels != t.y.d * t.x.d);
}

static int check_phases(const struct kernel_device *d)
{
	int bad = 0, caught = 0;
	for (unsigned n = 0; n < 20000; n++) {
		const struct weir_conv w = draw_conv(n);
		if (!fits(&w))
			continue;
		bad += count_wrong_phases(d, &w, 0) > 0;
		caught += w.s > 1 && n % 100 == 0 && count_wrong_phases(d, &w, 1) > 0;
	}
	if (bad || !caught)
		printf("%d gradients have wrong phases, and of the control's %d are seen\n", bad,
			caught);
	return bad + !caught;
}

/* Tiles of few rows cover N, one a cluster, and the parts of K are its blocks.  More rows than 128
 * have no such tile. */
static int check_few(const struct kernel_device *d)
{
	struct gemm_choice choice[FEW_FORMS];
	int bad = 0;
	for (int m = 1; m <= 200; m++)
		for (int n = 8; n <= MOST; n += 88) {
			const struct weir_gemm what = { .type = WEIR_BF16,
				.m = m,
				.n = n,
				.k = 4096,
				.a_pitch = 4096,
				.b_pitch = 4096,
				.d_pitch = 2048 };
			const size_t found = few_choose(d, &what, choice);
			bad += !found != (m > 128);
			for (size_t i = 0; i < found; i++) {
				const struct gemm_form *f = &choice[i].form;
				const int covered = (int)(choice[i].clusters * f->bm);
				bad += covered < n || covered - n >= (int)f->bm ||
				       f->bn < (unsigned)m ||
				       choice[i].cluster != choice[i].parts ||
				       choice[i].shared_bytes > 232448;
			}
		}
	if (bad)
		printf("%d products of few rows have no tile or a wrong one\n", bad);
	return bad;
}

int main(void)
{
	static const int sample[] = { 8, 64, 96, 104, 224, 256, 520, 1000, 1408, 1992 };
	struct kernel_device device;
	bool control_seen = false;
	int bad = 0;
	kernel_device_init(&device, "H200", 90, 132);
	for (int m = 1; m <= MOST; m++)
		for (size_t i = 0; i < sizeof sample / sizeof *sample; i++)
			bad += check(&device, m, sample[i], &control_seen);
	for (int n = 8; n <= MOST; n += 8)
		bad += check(&device, 1 + n * 7 % MOST, n, &control_seen);
	bad += check_convolutions(&device) + check_few(&device) + check_phases(&device);
	if (!control_seen)
		puts("a walk with a wrong last group is not seen");
	return bad || !control_seen;
}
