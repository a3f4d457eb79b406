/* Chooses the kernel of a convolution: the product's tiles where the copy engine can gather the
 * pixels, and otherwise a plain kernel. */
#include "kernels/conv.h"

#include <math.h>
#include <stdio.h>

enum {
	FEW_COLUMNS = 16, /* of a group: fewer leave most of a plain kernel's tile empty */
	MOST = INT32_MAX / 2,
	/* Limits of the copy engine. */
	STEP_MOST = 8,
	CORNER_MOST = 127,
	OFFSET_MOST = 255,
	PARTS_MOST = 64,       /* of the pixels of a gradient of filters */
	SUMS_MOST = 256 << 20, /* bytes */
	HELD_MOST = 128 << 10  /* bytes */
};

/* Measured on an H200: the share that gradients of filters get of what products get from the L2,
 * and the bytes that an SM gets from memory in a nanosecond. */
#define GRADIENT_L2 .85
#define SM_BYTES_NS 30
/* Fitted to an H200's times of 490 plans of 27 layers.  Cycles: until the first products and behind
 * the last; of a gathered pixel of a block of K, beside one for each filter; of a row of a product,
 * whose rows come as they are; in which a warpgroup finishes a tile, and each of its elements. */
#define START_CYCLES  3800
#define PIXEL_CYCLES  3.5
#define ROW_CYCLES    2.06
#define FINISH_CYCLES 600
#define HALF_CYCLES   .125
#define BYTE_CYCLES   .32
/* The same for phases, fitted to 80 plans of 8 layers: cycles of a pixel's 64 channels, which the
 * copy engine stores, and of a block of K. */
#define STORE_CYCLES 7
#define BLOCK_CYCLES 160
/* The share of the shorter one of multiplying and memory's time. */
#define NOT_HIDDEN .43

int64_t conv_outputs(int64_t inputs, int64_t taps, int64_t stride, int64_t pad, int64_t dilation)
{
	return (inputs + 2 * pad - dilation * (taps - 1) - 1) / stride + 1;
}

static int64_t out_h(const struct weir_conv *w)
{
	return conv_outputs(w->h, w->r, w->stride_h, w->pad_h, w->dilation_h);
}

static int64_t out_w(const struct weir_conv *w)
{
	return conv_outputs(w->w, w->s, w->stride_w, w->pad_w, w->dilation_w);
}

double conv_flops(const struct weir_conv *w)
{
	return 2. * (double)w->n * (double)(out_h(w) * out_w(w)) * (double)w->k *
	       (double)(w->r * w->s) * (double)(w->c / w->groups);
}

uint32_t conv_d_type(const struct weir_conv *w)
{
	return w->d_type ? w->d_type : w->type == WEIR_S8 ? WEIR_BF16 : w->type;
}

static void take_one(int64_t *n)
{
	if (!*n)
		*n = 1;
}

/* A dimension whose pixels are counted in 32 bits. */
static bool is_axis(int64_t inputs, int64_t taps, int64_t stride, int64_t pad, int64_t dilation)
{
	const int64_t most = MOST / 4;
	return inputs > 0 && inputs <= most && taps > 0 && taps <= most && stride > 0 &&
	       stride <= most && pad >= 0 && pad <= most && dilation > 0 && dilation <= most &&
	       dilation * (taps - 1) < inputs + 2 * pad;
}

static bool is_volume(int64_t a, int64_t b, int64_t c)
{
	int64_t all;
	return !__builtin_mul_overflow(a, b, &all) && !__builtin_mul_overflow(all, c, &all) &&
	       all <= MOST;
}

static const char *find_wrong(const struct weir_conv *w)
{
	if (w->type < WEIR_F32 || w->type > WEIR_S8)
		return "type is FP32, FP16, BF16 or INT8";
	if (w->type == WEIR_S8 && (w->pass || w->epilogue > WEIR_EPILOGUE_BIAS_SILU))
		return "INT8 has the forward pass alone, and no residual";
	if (w->d_type != w->type &&
		(w->type != WEIR_S8 || w->d_type < WEIR_F16 || w->d_type > WEIR_BF16))
		return "d_type is the type, or FP16 or BF16 for INT8";
	if (w->pass > WEIR_CONV_FILTERS)
		return "pass is none of enum weir_conv_pass";
	if (w->epilogue >= WEIR_EPILOGUE_SWIGLU)
		return "epilogue is none of enum weir_epilogue, or SwiGLU, which only products have";
	if (w->epilogue && w->pass == WEIR_CONV_FILTERS)
		return "the gradient of filters has no epilogue";
	if (!is_axis(w->h, w->r, w->stride_h, w->pad_h, w->dilation_h))
		return "h, r, stride_h, pad_h or dilation_h is out of range, or the filter is higher than the "
		       "padded image";
	if (!is_axis(w->w, w->s, w->stride_w, w->pad_w, w->dilation_w))
		return "w, s, stride_w, pad_w or dilation_w is out of range, or the filter is wider than the "
		       "padded image";
	if (w->c < 1 || w->k < 1 || w->groups < 1 || w->c % w->groups || w->k % w->groups)
		return "c and k are multiples of groups, from 1 on";
	if (w->n < 0 || !is_volume(w->n, w->h, w->w) || !is_volume(w->n, out_h(w), out_w(w)) ||
		!is_volume(w->c, 1, 1) ||
		!is_volume(w->r, w->s, (w->c / w->groups + 63) / 64 * 64) ||
		!is_volume(w->r, w->s, (w->k / w->groups + 63) / 64 * 64))
		return "the images or the filters have more than 2^30 pixels or taps";
	return NULL;
}

int conv_check(const struct weir_conv *what, struct weir_conv *ret, struct error *err)
{
	if (what->size != sizeof *what)
		return error_set(err, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_conv has %zu bytes, and this library knows %zu", what->size,
			sizeof *what);
	struct weir_conv w = *what;
	take_one(&w.stride_h);
	take_one(&w.stride_w);
	take_one(&w.dilation_h);
	take_one(&w.dilation_w);
	take_one(&w.groups);
	w.d_type = conv_d_type(&w);
	const char *wrong = find_wrong(&w);
	if (wrong)
		return error_set(err, WEIR_KERNELS_ERROR_ARGUMENT, "weir_conv: %s", wrong);
	*ret = w;
	return 0;
}

static struct conv_axis axis_of(const struct weir_conv *w, int64_t inputs, int64_t taps,
	int64_t stride, int64_t pad, int64_t dilation)
{
	const int out = (int)conv_outputs(inputs, taps, stride, pad, dilation);
	struct conv_axis a = { .step = (int)dilation, .taps = (int)taps };
	if (w->pass == WEIR_CONV_INPUT) {
		a.times = 1;
		a.first = (int)(pad - (taps - 1) * dilation);
		a.over = (int)stride;
		a.d = (int)inputs;
		a.a = out;
	} else {
		a.times = (int)stride;
		a.first = (int)-pad;
		a.over = 1;
		a.d = out;
		a.a = (int)inputs;
	}
	return a;
}

struct conv_args conv_geometry(const struct weir_conv *w)
{
	const int64_t c = w->c / w->groups, k = w->k / w->groups, taps = w->r * w->s;
	const bool back = w->pass == WEIR_CONV_INPUT;
	struct conv_args g = { .groups = (int)w->groups, .epilogue = (int)w->epilogue };
	g.y = axis_of(w, w->h, w->r, w->stride_h, w->pad_h, w->dilation_h);
	g.x = axis_of(w, w->w, w->s, w->stride_w, w->pad_w, w->dilation_w);
	g.rows = w->n * g.y.d * g.x.d;
	g.columns = (int)(back ? c : k);
	g.channels = (int)(back ? k : c);
	g.b_column = back ? 1 : taps * c;
	g.b_channel = back ? taps * c : 1;
	g.b_tap = back ? -c : c;
	g.b_group = k * taps * c;
	return g;
}

struct conv_tiled_args conv_tile(const struct weir_conv *w)
{
	const struct conv_args g = conv_geometry(w);
	const bool back = w->pass == WEIR_CONV_INPUT;
	struct conv_tiled_args t = { .y = g.y, .x = g.x, .channels = g.channels };
	t.first_tap = back ? g.y.taps * g.x.taps - 1 : 0;
	t.tap_step = back ? -1 : 1;
	t.row_step = t.tap_step * g.x.taps;
	return t;
}

bool conv_is_phased(const struct weir_conv *w)
{
	return w->pass == WEIR_CONV_INPUT && (w->stride_h > 1 || w->stride_w > 1);
}

static int phases_of(const struct weir_conv *w, struct conv_phase *ret)
{
	struct conv_tiled_args t = conv_tile(w);
	return conv_phases(&t, ret);
}

/* Whether a block of K is 64 bytes, which all channels of a pixel fit into. */
static bool is_narrow(const struct weir_conv *w)
{
	return w->pass == WEIR_CONV_FORWARD && w->c * kernel_type_bytes(w->type) <= 64;
}

bool conv_is_product(const struct weir_conv *w)
{
	return w->pass != WEIR_CONV_FILTERS && w->groups == 1 && w->r * w->s == 1 &&
	       w->stride_h * w->stride_w == 1 && w->pad_h + w->pad_w == 0;
}

/* Phases take about as long as those that all have the mean of their blocks. */
static void take_phases(const struct weir_conv *w, struct weir_gemm *p)
{
	struct conv_phase phase[CONV_PHASES];
	const int n = phases_of(w, phase);
	int64_t blocks = 0;
	if (!n)
		return;
	for (int i = 0; i < n; i++)
		blocks += phase[i].blocks;
	p->k = (blocks + n - 1) / n * 64;
}

struct weir_gemm conv_product(const struct weir_conv *w)
{
	const struct conv_args g = conv_geometry(w);
	const int64_t block = (is_narrow(w) ? 64 : 128) / kernel_type_bytes(w->type);
	const int64_t each = conv_is_product(w) ? 1 : block; /* the copy engine fills up blocks */
	struct weir_gemm p = {
		.size = sizeof p, .type = w->type, .d_type = conv_d_type(w), .epilogue = w->epilogue
	};
	if (w->pass == WEIR_CONV_FILTERS) {
		p.m = w->k;
		p.n = w->r * w->s * ((g.channels + 63) / 64 * 64);
		p.k = (g.rows + 63) / 64 * 64;
		p.a_transposed = p.b_transposed = 1;
		p.a_pitch = p.m;
		p.b_pitch = p.d_pitch = p.residual_pitch = p.n;
		return p;
	}
	p.m = g.rows;
	p.n = (int64_t)g.columns * g.groups;
	p.k = w->r * w->s * ((g.channels + each - 1) / each * each);
	p.b_transposed = w->pass == WEIR_CONV_INPUT;
	if (conv_is_phased(w))
		take_phases(w, &p);
	p.a_pitch = p.k;
	p.b_pitch = p.b_transposed ? p.n : p.k;
	p.d_pitch = p.residual_pitch = p.n;
	return p;
}

/* The copy engine counts a tap's place in 8 bits. */
static bool is_gathered(const struct conv_axis *a)
{
	const int last = (a->d - 1) * a->times + a->first + 1 - a->a;
	return a->times <= STEP_MOST && a->first >= -CORNER_MOST - 1 && a->first <= CORNER_MOST &&
	       last >= -CORNER_MOST - 1 && last <= CORNER_MOST &&
	       (a->taps - 1) * a->step <= OFFSET_MOST;
}

static bool is_tiled(const struct weir_conv *w)
{
	const int64_t each = w->type == WEIR_S8 ? 16 : 8;
	struct conv_phase phase[CONV_PHASES];
	const int n = phases_of(w, phase);
	for (int i = 0; i < n; i++)
		if (!is_gathered(&phase[i].y) || !is_gathered(&phase[i].x))
			return false;
	return n && w->n > 0 && w->groups == 1 && w->c % each == 0 && w->k % each == 0;
}

/* Pixels of 8 channels are 16 bytes, and the copy engine begins a window of 8 pixels at any of
 * them. */
bool conv_pack(const struct weir_conv *w, struct conv_packed *ret)
{
	const int64_t p = out_h(w), q = out_w(w);
	const int64_t high = (p - 1) * w->stride_h + (w->r - 1) * w->dilation_h + 1;
	const int64_t wide = (q - 1) * w->stride_w + 8;
	const bool fits = w->pass == WEIR_CONV_FORWARD && w->groups == 1 && w->c < 8 &&
			  w->k % 8 == 0 && w->s <= 8 && (w->dilation_w == 1 || w->s == 1) &&
			  kernel_type_bytes(w->type) == 2 && w->stride_w <= MOST / 16 &&
			  is_volume(w->n, high, wide);
	if (!fits)
		return false;
	*ret = (struct conv_packed){ .conv = *w };
	struct weir_conv *c = &ret->conv;
	c->h = high;
	c->w = q;
	c->c = 64;
	c->s = c->stride_w = c->dilation_w = 1;
	c->pad_h = c->pad_w = 0;
	ret->pack = (struct conv_pack_args){ .c = (int)w->c,
		.h = (int)w->h,
		.w = (int)w->w,
		.pad_h = (int)w->pad_h,
		.pad_w = (int)w->pad_w,
		.high = (int)high,
		.wide = (int)wide,
		.taps = (int)w->s,
		.pixels = w->n * high * wide,
		.rows = w->k * w->r };
	return true;
}

size_t conv_packed_images(const struct conv_packed *p)
{
	return (size_t)p->pack.pixels * 16;
}

size_t conv_packed_filters(const struct conv_packed *p)
{
	return (size_t)p->pack.rows * 128;
}

static double bytes_of(const struct weir_conv *w)
{
	/* A stride may leave out pixels, which a gradient writes nevertheless. */
	const double taps = (double)(out_h(w) * out_w(w)) * (double)(w->r * w->s);
	const double pixels = (double)(w->h * w->w);
	return (double)kernel_type_bytes(w->type) *
	       ((double)w->n * (w->pass == WEIR_CONV_INPUT ? pixels : fmin(pixels, taps)) *
			       (double)w->c +
		       (double)w->n * (double)(out_h(w) * out_w(w)) * (double)w->k);
}

static struct gemm_choice choose_plain(
	const struct kernel_device *d, const struct weir_conv *w, const struct conv_args *g)
{
	struct gemm_choice c = { .block = 256, .cluster = 1 };
	const char *form = "plain";
	const uint64_t groups = (uint64_t)g->groups;
	const uint64_t columns = (uint64_t)g->columns, rows = (uint64_t)g->rows;
	if (w->pass == WEIR_CONV_FILTERS) {
		const uint64_t all = (uint64_t)(w->r * w->s * g->channels);
		form = "filters";
		c.clusters = (columns + 63) / 64 * ((all + 63) / 64) * groups;
	} else if (columns < FEW_COLUMNS) {
		form = "direct";
		c.clusters = (rows * columns * groups + 255) / 256;
	} else {
		c.clusters = (rows + 63) / 64 * ((columns + 63) / 64) * groups;
	}
	const double copy = d->copy_gb_per_s ? bytes_of(w) / d->copy_gb_per_s : 0;
	c.predicted_ns = gemm_plain_ns(d, fmax(conv_flops(w), 1));
	if (c.predicted_ns)
		c.predicted_ns += copy;
	const bool other = conv_d_type(w) != w->type;
	snprintf(c.name, sizeof c.name, "weir_conv_%s%s%s_%s", kernel_type_word(w->type),
		other ? "_to_" : "", other ? kernel_type_word(conv_d_type(w)) : "", form);
	return c;
}

size_t conv_sums_bytes(const struct weir_conv *w)
{
	return (size_t)(w->k * w->r * w->s * w->c) * sizeof(float);
}

static void name_own(struct gemm_choice *c)
{
	static const char product[] = "weir_gemm", own[] = "weir_conv";
	memcpy(c->name, own, sizeof product - 1);
}

/* Puts a choice among n others by its time.  For one kernel only the best number of parts stays. */
static size_t put_in_order(struct gemm_choice *all, size_t n, const struct gemm_choice *c)
{
	size_t at = 0, end;
	while (at < n && all[at].predicted_ns <= c->predicted_ns)
		if (strcmp(all[at++].name, c->name) == 0)
			return n;
	for (end = at; end < n && strcmp(all[end].name, c->name) != 0; end++)
		;
	memmove(&all[at + 1], &all[at], (end - at) * sizeof *all);
	all[at] = *c;
	return end < n ? n : n + 1;
}

/* Few blocks do not keep the memory busy, and of tiles that are as fast the one of less waste is.
 */
static double gradient_ns(const struct kernel_device *d, const struct weir_conv *w,
	const struct weir_gemm *p, const struct gemm_choice *c)
{
	const double busy = fmin((double)c->clusters, d->sms),
		     across = ceil((double)p->n / c->form.bn);
	const double waste = across * c->form.bn / (double)p->n - 1;
	return fmax(c->predicted_ns, bytes_of(w) / (busy * SM_BYTES_NS)) * (1 + waste / 20);
}

/* The gradient of filters, whose few tiles sum over all pixels.  `parts` blocks share a tile's
 * pixels, so they take as long as that many products of fewer pixels.  Their sums are then added.
 */
static size_t choose_gradient(
	const struct kernel_device *d, const struct weir_conv *w, struct gemm_choice *ret)
{
	struct gemm_choice some[GEMM_FORMS_MOST];
	const struct weir_gemm whole = conv_product(w);
	const int64_t blocks = whole.k / 64, rows = (whole.m + 63) / 64 * 64;
	size_t n = 0;
	for (unsigned parts = 1; parts <= PARTS_MOST && parts <= blocks; parts++) {
		const double sums = (double)conv_sums_bytes(w) * parts;
		struct weir_gemm p = whole;
		p.m = rows * parts;
		p.k = (blocks + parts - 1) / parts * 64;
		const size_t all = tiles_choose(d, &p, bytes_of(w), GRADIENT_L2, some);
		for (size_t i = 0; i + 1 < all && (parts == 1 || sums <= SUMS_MOST); i++) {
			struct gemm_choice *c = &some[i];
			/* Sums of 192 columns of 128 rows leave no registers for where they go. */
			if (c->cluster > 1 || c->form.bm > rows || c->form.bm == 192 ||
				(c->form.ping_pong && c->form.bm == 128 && c->form.bn > 160))
				continue;
			c->parts = parts;
			c->clusters = (uint64_t)((whole.m + c->form.bm - 1) / c->form.bm *
						 ((whole.n + c->form.bn - 1) / c->form.bn)) *
				      parts;
			if (c->predicted_ns)
				c->predicted_ns = gradient_ns(d, w, &whole, c) +
						  gemm_plain_ns(d, 0) + 2 * sums / d->copy_gb_per_s;
			name_own(c);
			n = put_in_order(ret, n, c);
		}
	}
	return n;
}

/* Nanoseconds, or 0 where the device is not known.  Blocks of K come one after the other, while
 * the ones before are multiplied.  One warpgroup of a ping-pong finishes a tile while the other
 * multiplies, and all warpgroups of a shared tile finish it together.  The first SM has a tile of
 * each turn, and no other SM's is longer. */
static double predict(const struct kernel_device *d, const struct weir_conv *w,
	const struct weir_gemm *p, const struct gemm_choice *c, double bytes)
{
	const struct gemm_form *f = &c->form;
	const double row = f->narrow ? 64 : 128, element = kernel_type_bytes(w->type);
	const double area = (double)f->bm * f->bn;
	const double finish = area * (element > 1 ? HALF_CYCLES : BYTE_CYCLES) /
				      (f->ping_pong ? 1 : c->block / 128 - 1) +
			      FINISH_CYCLES;
	const double load = conv_is_product(w) ? ROW_CYCLES * (f->bm + f->bn)
					       : PIXEL_CYCLES * f->bm + (f->held ? 0 : f->bn);
	const double wait = f->phased ? BLOCK_CYCLES : 0,
		     store = f->phased ? STORE_CYCLES * area / 64 : 0;
	struct conv_phase phase[CONV_PHASES];
	const int n = phases_of(w, phase);
	const int64_t sms = d->sms, across = tile_count((int)p->n, (int)f->bn);
	conv_phase_tiles(phase, n, (int)w->n, (int)f->bm);
	double own = f->ping_pong ? finish : 0, loads = 0, all = 0;
	for (int64_t i = 0, from = 0, to; i < n; i++, from = to) {
		to = f->phased ? from + phase[i].tiles * across : (int64_t)c->clusters;
		const double turns = (double)((to + sms - 1) / sms - (from + sms - 1) / sms);
		const double blocks =
			f->phased ? phase[i].blocks : ceil((double)p->k * element / row);
		const double multiply = blocks * (area * row / 4096 + wait);
		own += turns *
		       (f->ping_pong ? fmax(multiply, (multiply + finish) / 2) : multiply + finish);
		loads += turns * (blocks * load + store);
		all += (double)(to - from) * blocks;
	}
	if (!d->boost_mhz || !d->product_tflops || !d->copy_gb_per_s)
		return 0;
	const double parts[] = { (START_CYCLES + fmax(own, loads)) / d->boost_mhz * 1e3,
		all * area * row / d->product_tflops / 1e3 };
	const double busy = gemm_longest(parts, 2), memory = bytes / d->copy_gb_per_s;
	return fmax(busy, memory) + NOT_HIDDEN * fmin(busy, memory);
}

/* Filters of several taps that one tile has all of stay in shared memory, if that leaves room for
 * four stages. */
static void hold_filters(
	const struct weir_conv *w, const struct weir_gemm *p, struct gemm_choice *c)
{
	struct gemm_form *const f = &c->form;
	const int64_t filter = p->k * kernel_type_bytes(w->type);
	if (f->phased || p->n > f->bn || w->r * w->s == 1 || filter * f->bn > HELD_MOST)
		return;
	f->held = (unsigned)filter / (f->narrow ? 64 : 128);
	gemm_fill_choice(p, c);
	if (f->stages < 4)
		f->held = 0;
}

/* Tiles of pixels, which move so many bytes, and begin `later` where images are packed. */
static size_t choose_tiles(const struct kernel_device *d, const struct weir_conv *w, double bytes,
	double later, struct gemm_choice *ret)
{
	struct gemm_choice some[GEMM_FORMS_MOST];
	struct conv_phase phase[CONV_PHASES];
	const struct weir_gemm p = conv_product(w);
	const int phases = phases_of(w, phase);
	const size_t all = tiles_choose(d, &p, 0, 1, some) - 1;
	size_t n = 0;
	for (size_t i = 0; i < all; i++) {
		struct gemm_choice *const c = &some[i];
		/* gemm_sm80.cu gathers no pixels, and clusters were slower on an H200 each time. */
		if (!c->form.buffers || c->cluster > 1)
			continue;
		if (!conv_is_product(w)) {
			c->form.narrow = is_narrow(w);
			c->form.phased = conv_is_phased(w);
			if (c->form.phased)
				c->clusters = (uint64_t)conv_phase_tiles(
						      phase, phases, (int)w->n, (int)c->form.bm) *
					      (uint64_t)tile_count((int)p.n, (int)c->form.bn);
			hold_filters(w, &p, c);
			gemm_fill_choice(&p, c);
			name_own(c);
		}
		c->predicted_ns = predict(d, w, &p, c, bytes);
		c->predicted_ns += c->predicted_ns ? later : 0;
		n = put_in_order(ret, n, c);
	}
	return n;
}

size_t conv_choose(const struct kernel_device *d, const struct weir_conv *w,
	struct gemm_choice ret[static GEMM_FORMS_MOST])
{
	const struct conv_args g = conv_geometry(w);
	struct conv_packed packed;
	size_t n = 0;
	if (conv_pack(w, &packed)) {
		const double more = (double)conv_packed_images(&packed),
			     later = gemm_plain_ns(d, 0) + more / d->copy_gb_per_s;
		if (is_tiled(&packed.conv))
			n = choose_tiles(d, &packed.conv, bytes_of(w) + more, later, ret);
	} else if (is_tiled(w)) {
		n = w->pass == WEIR_CONV_FILTERS ? choose_gradient(d, w, ret)
						 : choose_tiles(d, w, bytes_of(w), 0, ret);
	}
	ret[n++] = choose_plain(d, w, &g);
	return n;
}

void conv_program(const struct weir_conv *w, const struct gemm_choice *c, struct buf *ret)
{
	const struct gemm_form *f = &c->form;
	const struct weir_gemm p = conv_product(w);
	const char *type = kernel_type_word(w->type), *d_type = kernel_type_word(conv_d_type(w));
	if (!f->bm) {
		const bool other = conv_d_type(w) != w->type;
		buf_printf(ret,
			"#include \"conv.cu\"\nextern \"C\" __global__ void __launch_bounds__(256) "
			"%s(const conv_args a)\n{ conv_%s<%s%s%s>(a); }\n",
			c->name, strrchr(c->name, '_') + 1, type, other ? ", " : "",
			other ? d_type : "");
		return;
	}
	if (conv_is_product(w)) {
		gemm_program(&p, c, ret);
		return;
	}
	const char *schedule = f->ping_pong ? "PING_PONG" : "SHARED_TILE";
	buf_put_text(ret, "#include \"conv_sm90.cu\"\n");
	gemm_put_wgmma(&p, f->bn, ret);
	buf_printf(ret,
		"extern \"C\" __global__ void __launch_bounds__(%u, 1) %s(const __grid_constant__ "
		"conv_%s_args p)\n"
		"{\nDYNAMIC_SHARED(shared);\n",
		c->block, c->name, f->phased ? "phased" : "tiled");
	if (w->pass == WEIR_CONV_FILTERS)
		buf_printf(ret,
			"conv_gradient<%s, wgmma, %u, %u, %u, %u, %s>(p, shared_address(shared)).run();\n}\n",
			type, f->bm, f->bn, f->stages, f->buffers, schedule);
	else if (f->phased)
		buf_printf(ret,
			"conv_phased<%s, wgmma, %u, %u, %u, %u, %s, %u>(p, "
			"shared_address(shared)).run();\n}\n",
			type, f->bm, f->bn, f->stages, f->buffers, schedule, w->epilogue);
	else
		buf_printf(ret,
			"conv<%s, wgmma, %u, %u, %u, %u, %s, %u, %u, %s, %u, %u>(p, "
			"shared_address(shared)).run();\n}\n",
			type, f->bm, f->bn, f->stages, f->buffers, schedule, p.b_transposed,
			w->epilogue, d_type, f->narrow ? 64 : 128, f->held);
}

void conv_pack_program(struct buf *ret_name, struct buf *ret)
{
	buf_put_text(ret_name, "weir_conv_pack");
	buf_put_text(ret,
		"#include \"conv.cu\"\n#include \"sm90.cuh\"\n"
		"extern \"C\" __global__ void __launch_bounds__(256) "
		"weir_conv_pack(const conv_pack_args a)\n{ launch_next(); launch_wait(); conv_pack(a); }\n");
}

void conv_sum_program(const struct weir_conv *w, struct buf *ret_name, struct buf *ret)
{
	const char *type = kernel_type_word(w->type);
	buf_printf(ret_name, "weir_conv_%s_sum", type);
	buf_printf(ret,
		"#include \"conv.cu\"\n#include \"sm90.cuh\"\n"
		"extern \"C\" __global__ void __launch_bounds__(256) "
		"%s(const conv_sum_args a)\n{ launch_wait(); conv_sum<%s>(a); }\n",
		buf_text(ret_name), type);
}
