/* Plans of convolutions, and their runs. */
#include <stdlib.h>

#include "kernels/gemm_plan.h"
#include "kernels/tuned.h"

static void put_program(const struct weir_plan *p, const struct gemm_choice *c, struct buf *ret)
{
	conv_program(&p->what.conv, c, ret);
}

static void describe(const struct weir_plan *p, struct buf *ret)
{
	conv_describe(&p->what.conv, ret);
}

/* A tiled gradient of filters leaves sums in the workspace, which a second kernel adds up.
 * Gradients that began before the sums ahead of them had ended took up to 13 % longer on an H200.
 */
static int load_sum(struct weir_plan *p, struct weir_kernels *k, struct error *err)
{
	const struct weir_conv *w = &p->what.conv;
	struct buf name = { 0 }, program = { 0 };
	const char *from;
	const uint64_t blocks = (conv_sums_bytes(w) / sizeof(float) + 1023) / 1024,
		       most = 8 * k->device.sms;
	p->sum = (struct launch){ .block = 256, .cluster = 1, .ahead = true };
	p->sum.grid = (unsigned)(blocks < most ? blocks : most);
	p->fast.ahead = false;
	p->workspace_bytes = p->tile.parts * conv_sums_bytes(w);
	conv_sum_program(w, &name, &program);
	const int e = kernel_prepare(k, buf_text(&name), &program, &p->sum, &from, err);
	buf_free(&name);
	buf_free(&program);
	return e;
}

/* Channels of a block of K. */
static uint32_t block_channels(const struct weir_plan *p)
{
	return (p->tile.form.narrow ? 64 : 128) / kernel_type_bytes(p->what.gemm.type);
}

static int swizzle(const struct weir_plan *p)
{
	return p->tile.form.narrow ? MAP_SWIZZLE_64B : MAP_SWIZZLE_128B;
}

/* Pixels of A, from the one that the first tap of the first pixel of D reads to that of the last.
 * Pitches are of pixels, lines and images. */
static int encode_pixels(const struct weir_plan *p, const struct weir_kernels *k, const void *at,
	int channels, const struct conv_axis *x, const struct conv_axis *y, const uint64_t *pitches,
	unsigned pixels, struct tensor_map *ret, struct error *err)
{
	const uint64_t sizes[] = { (uint64_t)channels, (uint64_t)x->a, (uint64_t)y->a,
		(uint64_t)p->what.conv.n };
	const int first[] = { x->first, y->first };
	const int last[] = { (x->d - 1) * x->times + x->first + 1 - x->a,
		(y->d - 1) * y->times + y->first + 1 - y->a };
	const uint32_t steps[] = { 1, (uint32_t)x->times, (uint32_t)y->times, 1 };
	return KERNEL_CALL(k, err, cuTensorMapEncodeIm2col, ret, product_map_type(p), 4, at, sizes,
		pitches, first, last, block_channels(p), pixels, steps, 0, swizzle(p),
		MAP_PROMOTE_256B, 0);
}

/* Windows of 8 pixels overlap their neighbours. */
static int encode_windows(const struct weir_plan *p, const struct weir_kernels *k, const void *at,
	unsigned pixels, struct tensor_map *ret, struct error *err)
{
	const struct conv_args g = conv_geometry(&p->packed.conv);
	const uint64_t line = (uint64_t)p->packed.pack.wide * 16;
	const uint64_t pitches[] = { (uint64_t)p->what.conv.stride_w * 16, line,
		line * (uint64_t)p->packed.pack.high };
	return encode_pixels(p, k, at, g.channels, &g.x, &g.y, pitches, pixels, ret, err);
}

/* Whether the driver takes windows that overlap. */
static bool takes_windows(const struct weir_plan *p, const struct weir_kernels *k)
{
	struct error refused;
	struct tensor_map map;
	const void *any = (const void *)(uintptr_t)0x1000000;
	return !encode_windows(p, k, any, 64, &map, &refused);
}

/* A kernel packs images and filters into the workspace before the tiled one. */
static int load_pack(struct weir_plan *p, struct weir_kernels *k, struct error *err)
{
	struct buf name = { 0 }, program = { 0 };
	const char *from;
	const uint64_t blocks = (uint64_t)p->packed.pack.pixels / 256 + 1,
		       most = 32 * k->device.sms;
	p->pack = (struct launch){ .block = 256, .cluster = 1, .ahead = true };
	p->pack.grid = (unsigned)(blocks < most ? blocks : most);
	p->workspace_bytes = conv_packed_images(&p->packed) + conv_packed_filters(&p->packed);
	conv_pack_program(&name, &program);
	const int e = kernel_prepare(k, buf_text(&name), &program, &p->pack, &from, err);
	buf_free(&name);
	buf_free(&program);
	return e;
}

static int make_plan(struct weir_kernels *k, const struct weir_conv *what,
	struct weir_plan **ret_plan, struct error *err)
{
	static const struct product_kind kind = { put_program, describe };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct weir_plan *p = xcalloc(1, sizeof *p);
	struct weir_conv *w = &p->what.conv;
	p->kind = PLAN_CONV;
	int e = conv_check(what, w, err);
	if (!e) {
		const bool packs = conv_pack(w, &p->packed);
		p->what.gemm = conv_product(packs ? &p->packed.conv : w);
		p->what.gemm.aligned = w->aligned;
		const bool plain = packs && !takes_windows(p, k);
		e = product_load(p, k, &kind, choice, conv_choose(&k->device, w, choice),
			plain ? GEMM_FORMS_MOST : w->choice, err);
	}
	if (e) {
		free(p);
		return e;
	}
	if (p->fast.function && w->pass == WEIR_CONV_FILTERS)
		e = load_sum(p, k, err);
	else if (p->fast.function && p->packed.pack.pixels)
		e = load_pack(p, k, err);
	if (e)
		weir_plan_close(p);
	else
		*ret_plan = p;
	return e;
}

int weir_conv_plan(
	struct weir_kernels *kernels, const struct weir_conv *what, struct weir_plan **ret_plan)
{
	if (!kernels || !what || !ret_plan)
		return kernel_argument("weir_conv_plan() has an argument that is NULL");
	return make_plan(kernels, what, ret_plan, &kernel_error);
}

/* Images as they are given. */
static int encode_images(const struct weir_plan *p, const void *at, int channels,
	const struct conv_axis *x, const struct conv_axis *y, unsigned pixels,
	struct tensor_map *ret)
{
	const uint64_t pixel = (uint64_t)channels * kernel_type_bytes(p->what.conv.type),
		       line = pixel * (uint64_t)x->a;
	const uint64_t pitches[] = { pixel, line, line * (uint64_t)y->a };
	return encode_pixels(
		p, p->kernels, at, channels, x, y, pitches, pixels, ret, &kernel_error);
}

/* Pixels of D that lie apart, from the phase's first one on. */
static int encode_phase(const struct weir_plan *p, const void *at, const struct conv_tiled_args *t,
	const struct conv_phase *f, struct tensor_map *ret)
{
	const uint64_t pixel = (uint64_t)p->what.gemm.n * kernel_type_bytes(p->what.conv.type),
		       line = pixel * (uint64_t)t->x.d;
	const uint64_t pitches[] = { pixel * (uint64_t)t->x.over, line * (uint64_t)t->y.over,
		line * (uint64_t)t->y.d };
	/* The copy engine stores into no box that is larger than the image. */
	const struct conv_axis x = { .times = 1, .d = f->x.d, .a = f->x.d };
	const struct conv_axis y = { .times = 1, .d = f->y.d, .a = f->y.d };
	at = (const char *)at + (uint64_t)f->top * line + (uint64_t)f->left * pixel;
	return encode_pixels(
		p, p->kernels, at, (int)p->what.gemm.n, &x, &y, pitches, 64, ret, &kernel_error);
}

/* Filters: channels, taps, filters. */
static int encode_filters(const struct weir_plan *p, const struct weir_conv *w, const void *at,
	struct tensor_map *ret)
{
	const struct gemm_form *f = &p->tile.form;
	const uint64_t sizes[] = { (uint64_t)w->c, (uint64_t)(w->r * w->s), (uint64_t)w->k };
	const uint64_t bytes = kernel_type_bytes(w->type);
	const uint64_t pitches[] = { sizes[0] * bytes, sizes[0] * sizes[1] * bytes };
	const uint32_t box[] = { block_channels(p), 1, p->what.gemm.b_transposed ? 64 : f->bn };
	const uint32_t steps[] = { 1, 1, 1 };
	return KERNEL_CALL(p->kernels, &kernel_error, cuTensorMapEncodeTiled, ret,
		product_map_type(p), 3, at, sizes, pitches, box, steps, 0, swizzle(p),
		MAP_PROMOTE_256B, 0);
}

static int run_tiled(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	struct conv_tiled_args t = conv_tile(&p->what.conv);
	int e = product_tile(p, a, &t.product);
	e = e ? e : encode_images(p, a->a, t.channels, &t.x, &t.y, p->tile.form.bm, &t.product.a);
	e = e ? e : encode_filters(p, &p->what.conv, a->b, &t.product.b);
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

static int run_phased(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	struct conv_phased_args t = { .conv = conv_tile(&p->what.conv) };
	struct tiled_args *const product = &t.conv.product;
	t.phases = conv_phases(&t.conv, t.phase);
	int e = product_tile(p, a, product);
	e = e ? e : encode_filters(p, &p->what.conv, a->b, &product->b);
	for (int i = 0; i < t.phases; i++) {
		struct conv_phase *const f = &t.phase[i];
		e = e ? e
		      : encode_images(
				p, a->a, t.conv.channels, &f->x, &f->y, p->tile.form.bm, &f->a);
		e = e ? e : encode_phase(p, a->d, &t.conv, f, &f->d);
		if (a->residual)
			e = e ? e : encode_phase(p, a->residual, &t.conv, f, &f->residual);
	}
	conv_phase_tiles(t.phase, t.phases, (int)p->what.conv.n, (int)p->tile.form.bm);
	product->a = t.phase[0].a; /* the kernel fetches both */
	product->d = t.phase[0].d;
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

static int run_packed(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	struct conv_tiled_args t = conv_tile(&p->packed.conv);
	struct conv_pack_args pack = p->packed.pack;
	pack.a = a->a;
	pack.b = a->b;
	pack.images = a->workspace;
	pack.filters = (char *)a->workspace + conv_packed_images(&p->packed);
	int e = product_tile(p, a, &t.product);
	e = e ? e
	      : encode_windows(
			p, p->kernels, pack.images, p->tile.form.bm, &t.product.a, &kernel_error);
	e = e ? e : encode_filters(p, &p->packed.conv, pack.filters, &t.product.b);
	e = e ? e : kernel_launch(p->kernels, &p->pack, &pack, stream);
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

/* The gradient of the output: filters, pixels. */
static int encode_gradient(const struct weir_plan *p, const void *at, struct tensor_map *ret)
{
	const uint64_t sizes[] = { (uint64_t)p->what.conv.k,
		(uint64_t)conv_geometry(&p->what.conv).rows };
	const uint64_t pitches[] = { sizes[0] * 2 };
	const uint32_t box[] = { 64, 64 }, steps[] = { 1, 1 };
	return KERNEL_CALL(p->kernels, &kernel_error, cuTensorMapEncodeTiled, ret,
		product_map_type(p), 2, at, sizes, pitches, box, steps, 0, MAP_SWIZZLE_128B,
		MAP_PROMOTE_256B, 0);
}

static int run_gradient(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	const int64_t parts = p->tile.parts;
	struct conv_tiled_args t = conv_tile(&p->what.conv);
	struct conv_sum_args s = { a->workspace, a->d, 0, (int)parts };
	t.parts = (int)parts;
	t.sums = a->workspace;
	t.product.m = (int)w->m;
	t.product.n = (int)w->n;
	t.product.k = (int)((w->k / 64 + parts - 1) / parts * 64);
	t.product.group = (int)p->tile.group;
	s.elements = (long long)(conv_sums_bytes(&p->what.conv) / sizeof(float));
	int e = encode_gradient(p, a->a, &t.product.a);
	e = e ? e : encode_images(p, a->b, t.channels, &t.x, &t.y, 64, &t.product.b);
	t.product.d = t.product.a; /* the kernel fetches all three */
	e = e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
	return e ? e : kernel_launch(p->kernels, &p->sum, &s, stream);
}

static int run_plain(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	const struct weir_conv *w = &p->what.conv;
	struct conv_args g = conv_geometry(w);
	const bool filters = w->pass == WEIR_CONV_FILTERS;
	const int64_t last_tap = w->pass == WEIR_CONV_INPUT ? g.y.taps * g.x.taps - 1 : 0;
	g.a = filters ? a->b : a->a;
	g.b = filters ? a->a : (const char *)a->b - last_tap * g.b_tap * kernel_type_bytes(w->type);
	g.d = a->d;
	g.bias = a->bias;
	g.residual = a->residual;
	g.b_scale = a->b_scale;
	return kernel_launch(p->kernels, &p->plain, &g, stream);
}

int weir_conv_run(const struct weir_plan *plan, const struct weir_gemm_args *args, void *stream)
{
	if (!plan || !args || plan->kind != PLAN_CONV)
		return kernel_argument(
			"weir_conv_run() needs a plan of weir_conv_plan() and arguments");
	if (!plan->what.conv.n && plan->what.conv.pass != WEIR_CONV_FILTERS)
		return 0;
	const int e = product_check_args(&plan->what.gemm, args, false);
	if (e)
		return e;
	if (plan->workspace_bytes && (!args->workspace || (uintptr_t)args->workspace % 16))
		return kernel_argument("workspace is NULL, or no multiple of 16 bytes");
	if (!plan->fast.function || !product_is_aligned(args))
		return run_plain(plan, args, stream);
	if (plan->pack.function)
		return run_packed(plan, args, stream);
	if (conv_is_product(&plan->what.conv))
		return product_run(plan, args, stream);
	if (plan->what.conv.pass == WEIR_CONV_FILTERS)
		return run_gradient(plan, args, stream);
	return (plan->tile.form.phased ? run_phased : run_tiled)(plan, args, stream);
}
