/* Chooses the kernel of a product. */
#include "kernels/gemm.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "kernels/gemm.cuh"

#define BLOCK_BYTES  232448u /* shared memory of a block on capability 9.0 */
#define SLICE_BYTES  8192u
#define FMAS         2048. /* of a tensor core's SM in a cycle, FP16 and BF16 */
#define START_CYCLES 4000. /* barriers, the first loads, the last epilogue */
#define LAUNCH_NS    2000.
#define PLAIN_SHARE  .4 /* of the peak of FP32 */
#define MEMORY_SHARE .8 /* of a copy's rate, where tiles wait for memory */
/* Fitted to an H200's times of those tiles of 35 products that are at most 15 % slower than the
 * fastest: what is left of the boost clock, power in shares of what the table of GPUs says. */
#define BUSY_CLOCK .768
#define POWER      1.063
#define TILED_NS   900.

static const char *const epilogue_words[] = { "", "_bias", "_bias_relu", "_bias_gelu", "_bias_silu",
	"_residual", "_swiglu" };

static_assert(sizeof epilogue_words / sizeof *epilogue_words == GEMM_EPILOGUES, "all have a word");
static_assert((int)WEIR_EPILOGUE_SWIGLU == GEMM_SWIGLU, "the device has the same numbers");

bool gemm_find_epilogue(const char *word, uint32_t *ret)
{
	static const char *const words[] = { "none", "bias", "bias-relu", "bias-gelu", "bias-silu",
		"residual", "swiglu" };
	for (*ret = 0; *ret < GEMM_EPILOGUES; ++*ret)
		if (strcmp(word, words[*ret]) == 0)
			return true;
	return false;
}

double gemm_flops(const struct weir_gemm *w)
{
	return 2. * (double)w->m * (double)w->n * (double)w->k * (double)gemm_batch(w);
}

double gemm_bytes(const struct weir_gemm *w)
{
	const double m = (double)w->m, n = (double)w->n, k = (double)w->k;
	const double batch = (double)gemm_batch(w), a = w->a_batch ? batch : 1,
		     b = w->b_batch ? batch : 1;
	const double columns = w->epilogue == WEIR_EPILOGUE_SWIGLU ? n / 2 : n;
	return (a * m * k + b * n * k) * kernel_type_bytes(w->type) +
	       batch * m * columns * kernel_type_bytes(gemm_d_type(w));
}

const char *gemm_epilogue_word(uint32_t epilogue)
{
	return epilogue_words[epilogue];
}

int64_t gemm_batch(const struct weir_gemm *w)
{
	return w->batch ? w->batch : 1;
}

static bool is_pitch(int64_t rows, int64_t columns, int64_t *pitch)
{
	int64_t all;
	if (!*pitch)
		*pitch = columns > 0 ? columns : 1;
	return *pitch >= columns && !__builtin_mul_overflow(rows, *pitch, &all) &&
	       all < INT64_MAX / 8;
}

static bool is_byte(uint32_t type)
{
	return kernel_type_bytes(type) == 1;
}

uint32_t gemm_d_type(const struct weir_gemm *w)
{
	if (w->d_type)
		return w->d_type;
	return is_byte(w->type) ? WEIR_BF16 : gemm_is_tf32(w) ? WEIR_F32 : w->type;
}

static bool is_result(const struct weir_gemm *w)
{
	if (!is_byte(w->type))
		return w->d_type == (gemm_is_tf32(w) ? WEIR_F32 : w->type);
	return w->d_type == WEIR_BF16 || w->d_type == WEIR_F16 ||
	       (w->d_type == WEIR_S8 && w->type == WEIR_S8);
}

/* Matrices of a batch, or one that all share. */
static bool is_apart(const struct weir_gemm *w, int64_t rows, int64_t pitch, int64_t apart)
{
	int64_t all;
	return apart >= 0 && !__builtin_mul_overflow(w->batch, apart, &all) &&
	       !__builtin_add_overflow(rows * pitch, all, &all) && all < INT64_MAX / 8;
}

static const char *check_batch(const struct weir_gemm *w)
{
	if (w->batch < 1 || w->batch > INT32_MAX / 2)
		return "batch is from 0 to 2^30";
	if (w->batch > 1 && is_byte(w->type))
		return "operands of 8 bits have no batch";
	if (!is_apart(w, w->a_transposed ? w->k : w->m, w->a_pitch, w->a_batch) ||
		!is_apart(w, w->b_transposed ? w->k : w->n, w->b_pitch, w->b_batch) ||
		!is_apart(w, w->m, w->d_pitch, w->d_batch) ||
		!is_apart(w, w->m, w->residual_pitch, w->residual_batch))
		return "a_batch, b_batch, d_batch or residual_batch is negative, or too long";
	return w->batch > 1 && !w->d_batch
		       ? "d_batch is 0, and the products of a batch cannot share D"
		       : NULL;
}

int gemm_check(const struct weir_gemm *what, struct weir_gemm *ret, struct error *err)
{
	if (what->size != sizeof *what)
		return error_set(err, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_gemm has %zu bytes, and this library knows %zu", what->size,
			sizeof *what);
	struct weir_gemm w = *what;
	const bool pairs = w.epilogue == WEIR_EPILOGUE_SWIGLU;
	const int64_t most = INT32_MAX / 2;
	const char *wrong = NULL;
	if (w.type < WEIR_F32 || w.type > WEIR_TF32X3)
		wrong = "type is none of enum weir_kernels_type";
	else if (w.d_type && !is_result(&w))
		wrong = "d_type is the type, FP32 for TF32, or BF16, FP16 or INT8 for operands of 8 bits";
	else if (is_byte(w.type) && w.epilogue > WEIR_EPILOGUE_BIAS_SILU)
		wrong = "operands of 8 bits have no residual and no SwiGLU";
	else if (w.epilogue > WEIR_EPILOGUE_SWIGLU)
		wrong = "epilogue is none of enum weir_epilogue";
	else if (w.a_transposed > 1 || w.b_transposed > 1 || w.b_stays > 1)
		wrong = "a_transposed, b_transposed and b_stays are 0 or 1";
	else if (w.m < 0 || w.n < 0 || w.k < 0 || w.m > most || w.n > most || w.k > most)
		wrong = "m, n and k are from 0 to 2^30";
	else if (pairs && w.n % 2)
		wrong = "n must be even for SwiGLU, whose columns are pairs of gate and up";
	else if (!is_pitch(w.a_transposed ? w.k : w.m, w.a_transposed ? w.m : w.k, &w.a_pitch))
		wrong = "a_pitch is shorter than a row of A, or too long";
	else if (!is_pitch(w.b_transposed ? w.k : w.n, w.b_transposed ? w.n : w.k, &w.b_pitch))
		wrong = "b_pitch is shorter than a row of B, or too long";
	else if (!is_pitch(w.m, pairs ? w.n / 2 : w.n, &w.d_pitch))
		wrong = "d_pitch is shorter than a row of D, or too long";
	else if (!is_pitch(w.m, w.n, &w.residual_pitch))
		wrong = "residual_pitch is shorter than a row of D, or too long";
	w.batch = gemm_batch(&w);
	wrong = wrong ? wrong : check_batch(&w);
	if (wrong)
		return error_set(err, WEIR_KERNELS_ERROR_ARGUMENT, "weir_gemm: %s", wrong);
	*ret = w;
	return 0;
}

static const struct {
	unsigned bm, bn, clm;
	bool ping_pong;
} forms[] = {
	{ 128, 96, 2, true },
	{ 128, 112, 2, true },
	{ 128, 128, 2, true },
	{ 128, 128, 1, true },
	{ 128, 144, 2, true },
	{ 128, 160, 2, true },
	{ 128, 160, 1, true },
	{ 128, 176, 1, true },
	{ 128, 192, 2, true },
	{ 128, 192, 1, true },
	{ 64, 192, 1, true },
	{ 64, 128, 1, true },
	{ 128, 64, 1, true },
	{ 128, 256, 2, false },
	{ 128, 256, 1, false },
	{ 128, 192, 1, false },
	{ 128, 128, 1, false },
	{ 128, 64, 1, false },
	{ 192, 128, 1, false },
	{ 192, 160, 1, false },
};
enum { FORMS = sizeof forms / sizeof *forms };
static_assert((int)FORMS + (int)FEW_FORMS + 2 <= (int)GEMM_FORMS_MOST,
	"mma.sync and the plain kernel come last");

/* That multiply. */
static unsigned warpgroups(const struct gemm_form *f)
{
	return f->bm == 192 ? 3 : 2;
}

static unsigned form_bytes(const struct gemm_form *f)
{
	const unsigned row = f->narrow ? 64 : 128, buffers = warpgroups(f) * f->buffers;
	const unsigned stage = (f->bm + (f->held ? 0 : f->bn)) * row;
	return f->stages * stage + f->held * f->bn * row + buffers * SLICE_BYTES +
	       8 * (2 * f->stages + buffers + (f->held > 0));
}

/* As many stages as fit, beside two buffers of each warpgroup where that leaves enough stages. */
static void fill_form(struct gemm_form *f)
{
	for (f->buffers = 2;; f->buffers--) {
		f->stages = 8;
		while (f->stages && form_bytes(f) > BLOCK_BYTES)
			f->stages--;
		if (f->stages > 4 || f->bn + f->bm > 320 || f->buffers == 1)
			return;
	}
}

static bool form_fits(const struct weir_gemm *w, const struct gemm_form *f)
{
	const unsigned columns = w->epilogue == WEIR_EPILOGUE_SWIGLU ? f->bn / 2 : f->bn;
	/* Sums of 176 columns leave no registers for a bias, and those of 160 none for scales or
	 * for a bias of FP32. */
	const bool has_bias =
		w->epilogue >= WEIR_EPILOGUE_BIAS && w->epilogue <= WEIR_EPILOGUE_BIAS_SILU;
	const unsigned biased = is_byte(w->type) ? 128 : gemm_is_tf32(w) ? 144 : 160;
	const unsigned most = has_bias ? biased : is_byte(w->type) ? 144 : f->bn;
	return !(f->ping_pong && f->bm == 128 && f->bn > most) && columns % 64 % 16 == 0 &&
	       (!w->a_transposed || f->bm / f->cln % 64 == 0) &&
	       (!w->b_transposed || (f->bn % 64 == 0 && f->bn / f->clm % 64 == 0));
}

/* The copy engine writes 16 bytes at a time, also where a row of D ends before. */
static bool is_tiled(const struct kernel_device *d, const struct weir_gemm *w)
{
	const int64_t columns = w->epilogue == WEIR_EPILOGUE_SWIGLU ? w->n / 2 : w->n;
	const int64_t each = 16 / kernel_type_bytes(w->type);
	const int64_t d_each = 16 / kernel_type_bytes(gemm_d_type(w));
	const bool in_batches =
		gemm_batch(w) == 1 ||
		(w->a_batch % each == 0 && w->b_batch % each == 0 && w->d_batch % d_each == 0 &&
			w->residual_batch % d_each == 0);
	return in_batches && d->cc == 90 && w->type != WEIR_F32 && w->m && w->n && w->k &&
	       columns % d_each == 0 && w->a_pitch % each == 0 && w->b_pitch % each == 0 &&
	       w->d_pitch % d_each == 0 &&
	       (kernel_type_bytes(w->type) == 2 || (!w->a_transposed && !w->b_transposed)) &&
	       (w->epilogue != WEIR_EPILOGUE_RESIDUAL || w->residual_pitch % d_each == 0);
}

/* The ring of gemm_sm80.cu takes 96 KiB of shared memory. */
#define MMA_STAGES 3u
#define MMA_BYTES  32768u /* of a stage */
#define MMA_GROUP  8u

static bool has_mma(const struct kernel_device *d, const struct weir_gemm *w)
{
	const int64_t each = 16 / kernel_type_bytes(w->type);
	const unsigned least = w->type == WEIR_E4M3 ? 89 : 80;
	return d->cc >= least && w->type != WEIR_F32 && w->m && w->n && w->k && !w->a_transposed &&
	       !w->b_transposed && w->a_pitch % each == 0 && w->b_pitch % each == 0 &&
	       w->a_batch % each == 0 && w->b_batch % each == 0;
}

static uint64_t over(int64_t n, unsigned by)
{
	return ((uint64_t)n + by - 1) / by;
}

static uint64_t count_clusters(const struct weir_gemm *w, const struct gemm_form *f)
{
	return over(w->m, f->bm * f->clm) * over(w->n, f->bn * f->cln) * (uint64_t)gemm_batch(w);
}

/* Tiles of the SM that has most of them. */
static double count_turns(
	const struct kernel_device *d, const struct weir_gemm *w, const struct gemm_form *f)
{
	const uint64_t at_a_time = d->sms / (f->clm * f->cln);
	return (double)((count_clusters(w, f) + at_a_time - 1) / at_a_time);
}

/* The cycles of that SM. */
static double count_cycles(
	const struct kernel_device *d, const struct weir_gemm *w, const struct gemm_form *f)
{
	const unsigned bk = 128 / kernel_type_bytes(w->type); /* in as many cycles for each type */
	const double products = (double)f->bm * f->bn * (double)over(w->k, bk) * 64 / FMAS;
	return START_CYCLES + count_turns(d, w, f) * (products + (f->ping_pong ? 500 : 1000));
}

/* The bytes that it reads from the L2. */
static double count_l2(const struct kernel_device *d, const struct weir_gemm *w,
	const struct gemm_form *f, bool shares)
{
	const double rows =
		shares ? (double)f->bm / f->cln + (double)f->bn / f->clm : (double)f->bm + f->bn;
	return count_turns(d, w, f) * rows * (double)w->k * kernel_type_bytes(w->type);
}

/* Rows that begin within a line of the L2 are read in more lines, and those that begin within a
 * sector in more sectors. */
enum lines { WHOLE, LINES, SECTORS };

static enum lines find_lines(const struct weir_gemm *w)
{
	const int64_t pitches = (w->a_pitch | w->b_pitch) * kernel_type_bytes(w->type);
	return pitches % 32 ? SECTORS : pitches % 128 ? LINES : WHOLE;
}

/* Fitted to the same times, and to those of 34 convolutions.  Large products take as long as the
 * power allows, but of two tiles that one is faster whose SMs have less to do.  Ping-pongs that
 * share loads wait for each other, and gain by it where the L2 takes the time alone. */
static double order(
	const struct kernel_device *d, const struct weir_gemm *w, const struct gemm_form *f)
{
	static const double weights[] = { [WHOLE] = .7, [LINES] = 1, [SECTORS] = 1.6 };
	const enum lines lines = find_lines(w);
	const bool pairs = f->clm * f->cln > 1, waits = f->ping_pong && lines < SECTORS;
	const double shared = is_byte(w->type) ? 1.05 : 1.02, pair = f->ping_pong ? 1.02 : 1.002;
	const double cycles =
		count_cycles(d, w, f) * (f->ping_pong ? 1 : shared) * (pairs ? pair : 1);
	const double l2 = count_l2(d, w, f, !waits) / (pairs && waits ? 41 : 49);
	return fmax(cycles, l2 * weights[lines]);
}

/* The root of the sum of eighth powers. */
double gemm_longest(const double *parts, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		const double square = parts[i] * parts[i];
		sum += square * square * square * square;
	}
	return sqrt(sqrt(sqrt(sum)));
}

/* Nanoseconds. 0: not known. */
static double estimate(const struct kernel_device *d, const struct weir_gemm *w,
	const struct gemm_form *f, double bytes, double l2_share)
{
	static const double weights[] = { [WHOLE] = 1, [LINES] = 1.28, [SECTORS] = 1.9 };
	if (!d->boost_mhz || !d->product_tflops || !d->copy_gb_per_s)
		return 0;
	const double mhz = BUSY_CLOCK * d->boost_mhz;
	const double rate = f->clm * f->cln == 1 ? 81 : f->ping_pong ? 53 : 57; /* of the L2 */
	const double tflops = POWER * d->product_tflops * 2 / kernel_type_bytes(w->type);
	const double parts[] = { count_cycles(d, w, f) / mhz * 1e3,
		count_l2(d, w, f, true) * weights[find_lines(w)] / (l2_share * rate * mhz) * 1e3,
		gemm_flops(w) / tflops / 1e3, bytes / (MEMORY_SHARE * d->copy_gb_per_s) };
	return TILED_NS + gemm_longest(parts, sizeof parts / sizeof *parts);
}

/* The plain kernel multiplies what is stored. */
static const char *plain_type(const struct weir_gemm *w)
{
	return kernel_type_word(gemm_is_tf32(w) ? WEIR_F32 : w->type);
}

static void name_choice(const struct weir_gemm *w, struct gemm_choice *c)
{
	const struct gemm_form *f = &c->form;
	const char *to = is_byte(w->type) ? "_to_" : "";
	const char *d_type = is_byte(w->type) ? kernel_type_word(gemm_d_type(w)) : "";
	if (!f->bm)
		snprintf(c->name, sizeof c->name, "weir_gemm_%s%s%s_plain", plain_type(w), to,
			d_type);
	else if (!f->buffers)
		snprintf(c->name, sizeof c->name, "weir_gemm_%s%s%s_mma_%ux%u_s%u",
			kernel_type_word(w->type), to, d_type, f->bm, f->bn, f->stages);
	else
		snprintf(c->name, sizeof c->name,
			"weir_gemm_%s%s%s%s%s_%c%c_%ux%u_%s_s%u_b%u_c%ux%u",
			kernel_type_word(w->type), to, d_type, epilogue_words[w->epilogue],
			gemm_batch(w) > 1 ? "_batch" : "", w->a_transposed ? 't' : 'n',
			w->b_transposed ? 't' : 'n', f->bm, f->bn, f->ping_pong ? "pp" : "co",
			f->stages, f->buffers, f->clm, f->cln);
}

void gemm_fill_choice(const struct weir_gemm *w, struct gemm_choice *c)
{
	struct gemm_form *const f = &c->form;
	fill_form(f);
	c->shared_bytes = form_bytes(f);
	name_choice(w, c);
	const size_t n = strlen(c->name);
	if (f->phased)
		snprintf(c->name + n, sizeof c->name - n, "_phased");
	else if (f->narrow || f->held)
		snprintf(c->name + n, sizeof c->name - n, "%s_h%u", f->narrow ? "_n" : "", f->held);
}

static struct gemm_choice choose_form(const struct kernel_device *d, const struct weir_gemm *w,
	const struct gemm_form *f, double bytes, double l2_share)
{
	struct gemm_choice c = { .form = *f, .cluster = f->clm * f->cln };
	c.block = 128 * (1 + warpgroups(f));
	c.clusters = count_clusters(w, f);
	const double square = (double)d->sms / c.cluster * f->bm * f->clm / (f->bn * f->cln);
	c.group = (unsigned)fmax(1, round(sqrt(square)));
	c.predicted_ns = estimate(d, w, f, bytes, l2_share);
	gemm_fill_choice(w, &c);
	return c;
}

double gemm_plain_ns(const struct kernel_device *d, double flops)
{
	return d->fp32_tflops ? LAUNCH_NS + flops / (PLAIN_SHARE * d->fp32_tflops) / 1e3 : 0;
}

static struct gemm_choice choose_plain(const struct kernel_device *d, const struct weir_gemm *w)
{
	struct gemm_choice c = { .block = 256, .cluster = 1 };
	c.clusters = over(w->m, 64) * over(w->n, 64) * (uint64_t)gemm_batch(w);
	c.predicted_ns = gemm_plain_ns(d, gemm_flops(w));
	name_choice(w, &c);
	return c;
}

/* How long it takes was never measured. */
static struct gemm_choice choose_mma(const struct weir_gemm *w)
{
	struct gemm_choice c = {
		.form = { .bm = 128, .bn = 128, .stages = MMA_STAGES, .clm = 1, .cln = 1 },
		.block = 256,
		.cluster = 1,
		.shared_bytes = MMA_STAGES * MMA_BYTES,
		.group = MMA_GROUP
	};
	c.clusters = count_clusters(w, &c.form);
	name_choice(w, &c);
	return c;
}

/* The copies of operands. */
static double split_ns(const struct kernel_device *d, const struct weir_gemm *w)
{
	struct split_operand operand[2];
	double ns = 0;
	gemm_split(w, operand);
	for (size_t i = 0; i < 2; i++) {
		const struct split_operand *o = &operand[i];
		const double moved = o->low > o->high ? 3 : 2; /* times its bytes */
		if (o->copied && d->copy_gb_per_s)
			ns += LAUNCH_NS +
			      moved * 4 * (double)(o->batch * o->rows * w->k) / d->copy_gb_per_s;
	}
	return ns;
}

size_t tiles_choose(const struct kernel_device *d, const struct weir_gemm *w, double bytes,
	double l2_share, struct gemm_choice ret[static GEMM_FORMS_MOST])
{
	double cost[GEMM_FORMS_MOST];
	size_t n = 0;
	struct split_operand operand[2];
	struct weir_gemm read = gemm_as_read(w);
	const bool tiled = is_tiled(d, &read) && gemm_split(w, operand) != SIZE_MAX;
	read.k *=
		w->type == WEIR_TF32X3 ? 3 : 1; /* as many products take as long as a longer one */
	for (size_t i = 0; i < FORMS && tiled; i++) {
		const struct gemm_form f = { .bm = forms[i].bm,
			.bn = forms[i].bn,
			.clm = forms[i].clm,
			.cln = 1,
			.ping_pong = forms[i].ping_pong };
		if (!form_fits(&read, &f) || count_clusters(&read, &f) > INT32_MAX)
			continue;
		const double own = order(d, &read, &f);
		size_t at = n++;
		for (; at > 0 && own < cost[at - 1]; at--) {
			ret[at] = ret[at - 1];
			cost[at] = cost[at - 1];
		}
		ret[at] = choose_form(d, &read, &f, bytes, l2_share);
		if (ret[at].predicted_ns)
			ret[at].predicted_ns += split_ns(d, w);
		cost[at] = own;
	}
	if (has_mma(d, w))
		ret[n++] = choose_mma(w);
	ret[n++] = choose_plain(d, w);
	return n;
}

size_t gemm_choose(const struct kernel_device *d, const struct weir_gemm *w,
	struct gemm_choice ret[static GEMM_FORMS_MOST])
{
	struct gemm_choice few[FEW_FORMS];
	const size_t tiles = tiles_choose(d, w, gemm_bytes(w), 1, ret), n = few_choose(d, w, few);
	size_t before = 0; /* tiles that are clearly predicted to be faster */
	while (before + 1 < tiles && n && ret[before].predicted_ns &&
		ret[before].predicted_ns * 1.05 < few[0].predicted_ns)
		before++;
	memmove(&ret[before + n], &ret[before], (tiles - before) * sizeof *ret);
	memcpy(&ret[before], few, n * sizeof *few);
	return tiles + n;
}

void gemm_put_wgmma(const struct weir_gemm *w, unsigned bn, struct buf *b)
{
	const char *type = kernel_type_word(gemm_is_tf32(w) ? WEIR_TF32 : w->type);
	const bool is_int = w->type == WEIR_S8;
	buf_printf(b,
		"struct wgmma {\n"
		"static __device__ __forceinline__ void multiply(%s (&d)[%u], u64 a, u64 b, int keep)\n"
		"{\n"
		"asm volatile(\"{.reg .pred p; setp.ne.b32 p, %%%u, 0; "
		"wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {",
		is_int ? "int" : "float", bn / 2, bn / 2 + 2, bn, 32 / kernel_type_bytes(w->type),
		is_int ? "s32" : "f32", type, type);
	for (unsigned i = 0; i < bn / 2; i++)
		buf_printf(b, "%s%%%u", i ? ", " : "", i);
	buf_printf(b, "}, %%%u, %%%u, p", bn / 2, bn / 2 + 1);
	if (!is_int)
		buf_put_text(b, ", 1, 1");
	if (kernel_type_bytes(w->type) == 2)
		buf_printf(b, ", %u, %u", w->a_transposed, w->b_transposed);
	buf_put_text(b, ";}\" : ");
	for (unsigned i = 0; i < bn / 2; i++)
		buf_printf(b, "%s\"+%c\"(d[%u])", i ? ", " : "", is_int ? 'r' : 'f', i);
	buf_put_text(b, " : \"l\"(a), \"l\"(b), \"r\"(keep));\n}\n};\n");
}

/* The nearest TF32, and with two parts the nearest to what is left. */
static const char tf32_text[] =
	"static __device__ __forceinline__ u32 ready(u32 v)\n{\n"
	"asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(v) : \"f\"(__uint_as_float(v)));\nreturn v;\n}\n"
	"static __device__ __forceinline__ u32 rest(u32 v)\n{\n"
	"return ready(__float_as_uint(__uint_as_float(v) - __uint_as_float(ready(v))));\n}\n";

/* One mma.sync, whose operands are f of a and g of b. */
static void put_instruction(
	const struct weir_gemm *w, const char *type, const char *f, const char *g, struct buf *b)
{
	const bool is_int = w->type == WEIR_S8;
	buf_printf(b,
		"asm volatile(\"mma.sync.aligned.m16n8k%u.row.col.%s.%s.%s.%s "
		"{%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};\" : ",
		32 / kernel_type_bytes(w->type), is_int ? "s32" : "f32", type, type,
		is_int ? "s32" : "f32");
	for (unsigned i = 0; i < 4; i++)
		buf_printf(b, "%s\"+%c\"(d[%u])", i ? ", " : "", is_int ? 'r' : 'f', i);
	buf_put_text(b, " : ");
	for (unsigned i = 0; i < 6; i++)
		buf_printf(b, "%s\"r\"(%s(%c[%u]))", i ? ", " : "", i < 4 ? f : g,
			i < 4 ? 'a' : 'b', i % 4);
	buf_put_text(b, ");\n");
}

/* struct mma of a program: mma.sync of 16 x 8 over 32 bytes of K. */
static void put_mma(const struct weir_gemm *w, struct buf *b)
{
	const bool tf32 = gemm_is_tf32(w);
	const char *type = kernel_type_word(tf32 ? WEIR_TF32 : w->type),
		   *whole = tf32 ? "ready" : "";
	buf_printf(b,
		"struct mma {\n%sstatic __device__ __forceinline__ void multiply(%s (&d)[4], const u32 *a, "
		"const u32 *b)\n{\n",
		tf32 ? tf32_text : "", w->type == WEIR_S8 ? "int" : "float");
	if (w->type == WEIR_TF32X3) {
		put_instruction(w, type, "rest", "ready", b);
		put_instruction(w, type, "ready", "rest", b);
	}
	put_instruction(w, type, whole, whole, b);
	buf_put_text(b, "}\n};\n");
}

/* The program reads what memory has, which is FP32 for TF32. */
static void put_mma_program(const struct weir_gemm *w, const struct gemm_choice *c, struct buf *ret)
{
	buf_put_text(ret, "#include \"gemm_sm80.cu\"\n");
	put_mma(w, ret);
	buf_printf(ret,
		"extern \"C\" __global__ void __launch_bounds__(256) %s(const __grid_constant__ gemm_args a)\n"
		"{\nDYNAMIC_SHARED(shared);\n"
		"gemm_mma<%s, mma, %u, %s>(a, shared_address(shared)).run();\n}\n",
		c->name, plain_type(w), c->form.stages, kernel_type_word(gemm_d_type(w)));
}

void gemm_program(const struct weir_gemm *w, const struct gemm_choice *c, struct buf *ret)
{
	const struct gemm_form *f = &c->form;
	const char *type = kernel_type_word(w->type), *d_type = kernel_type_word(gemm_d_type(w));
	if (!f->bm) {
		buf_printf(ret,
			"#include \"gemm.cu\"\nextern \"C\" __global__ void __launch_bounds__(256) "
			"%s(const __grid_constant__ gemm_args a)\n{ gemm_plain<%s, %s>(a); }\n",
			c->name, plain_type(w), d_type);
		return;
	}
	if (!f->buffers) {
		(f->few ? few_program : put_mma_program)(w, c, ret);
		return;
	}
	const struct weir_gemm read = gemm_as_read(w);
	buf_put_text(ret, "#include \"gemm_sm90.cu\"\n");
	gemm_put_wgmma(w, f->bn, ret);
	buf_printf(ret,
		"extern \"C\" __global__ void __launch_bounds__(%u, 1) %s(const __grid_constant__ tiled_args p)\n"
		"{\nDYNAMIC_SHARED(shared);\n"
		"gemm<%s, wgmma, %u, %u, %u, %u, %u, %u, %s, %u, %u, %u, %s, %s>(p, "
		"shared_address(shared)).run();\n}\n",
		c->block, c->name, type, f->bm, f->bn, f->stages, f->buffers, f->clm, f->cln,
		f->ping_pong ? "PING_PONG" : "SHARED_TILE", read.a_transposed, read.b_transposed,
		w->epilogue, d_type, gemm_batch(w) > 1 ? "true" : "false");
}
