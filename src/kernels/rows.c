/* Chooses the kernel of an operation on rows. */
#include "kernels/rows.h"

#include <math.h>
#include <stdio.h>

#include "predict/gpu.h"

#include "base/banned.h"

/* Of a device whose table row says what programs reach when they only read; a copy reaches less,
 * since the memory turns between reading and writing. */
#define COPY_SHARE .90
/* Of the peak: large products of random numbers on an H100 and an H200. */
#define POWER_SHARE .69
#define LAUNCH_NS   2000.  /* from one launch's end to the next one's end where it does nothing */
#define ROW_NS      1500.  /* a row's way through a block: reading, barrier, writing */
#define WAIT_BYTES  49152. /* that must be on their way to an SM for the memory to be busy */
#define REGISTERS   65536u /* of an SM */

static const char *const type_words[] = {
	[WEIR_F32] = "f32", [WEIR_F16] = "f16", [WEIR_BF16] = "bf16"
};
static const char *const operation_words[] = { [WEIR_SOFTMAX] = "softmax",
	[WEIR_LOG_SOFTMAX] = "log-softmax",
	[WEIR_LAYER_NORM] = "layer-norm",
	[WEIR_RMS_NORM] = "rms-norm" };
static const char *const kernel_words[] = { [WEIR_SOFTMAX] = "softmax",
	[WEIR_LOG_SOFTMAX] = "log_softmax",
	[WEIR_LAYER_NORM] = "layer_norm",
	[WEIR_RMS_NORM] = "rms_norm" };

unsigned kernel_type_bytes(uint32_t type)
{
	return type == WEIR_F32 ? 4 : 2;
}

const char *kernel_type_word(uint32_t type)
{
	return type_words[type];
}

const char *rows_operation_word(uint32_t operation)
{
	return operation_words[operation];
}

static double peak(const struct gpu *g, enum gpu_unit unit)
{
	double flops_per_s;
	return gpu_peak(g, unit, &flops_per_s) ? flops_per_s / 1e12 : 0;
}

bool kernel_device_init(struct kernel_device *d, const char *name, unsigned cc, unsigned sms)
{
	const struct gpu *g = gpu_find(name, cc);
	*d = (struct kernel_device){ .cc = cc, .sms = sms };
	snprintf(d->name, sizeof d->name, "%s", name);
	if (g) {
		d->cc = cc ? cc : g->cc;
		d->sms = sms ? sms : g->sms;
		d->boost_mhz = g->boost_mhz;
		d->copy_gb_per_s = COPY_SHARE * gpu_bandwidth_ceiling(g);
		d->product_tflops = peak(g, GPU_FP16) * POWER_SHARE;
		d->fp32_tflops = peak(g, GPU_FP32);
	}
	return d->cc && d->sms;
}

/* ---- what is asked ---- */

/* Elements that a tensor spans stay countable in bytes. */
static bool is_span(const struct weir_rows *w, int64_t row, int64_t column)
{
	int64_t rows, columns, all;
	return !__builtin_mul_overflow(w->rows, row, &rows) &&
	       !__builtin_mul_overflow(w->width, column, &columns) &&
	       !__builtin_add_overflow(rows, columns, &all) && all < INT64_MAX / 8 &&
	       all > -(INT64_MAX / 8);
}

static void fill_strides(int64_t *row, int64_t *column, int64_t width)
{
	if (!*row && !*column) {
		*row = width;
		*column = 1;
	}
}

int rows_check(const struct weir_rows *what, struct weir_rows *ret, struct error *err)
{
	if (what->size != sizeof *what)
		return error_set(err, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_rows has %zu bytes, and this library knows %zu", what->size,
			sizeof *what);
	struct weir_rows w = *what;
	const bool norm = w.operation == WEIR_LAYER_NORM || w.operation == WEIR_RMS_NORM;
	const char *wrong = NULL;
	if (w.operation < WEIR_SOFTMAX || w.operation > WEIR_RMS_NORM)
		wrong = "operation is none of enum weir_rows_operation";
	else if (w.type < WEIR_F32 || w.type > WEIR_BF16)
		wrong = "type is none of enum weir_kernels_type";
	else if (w.rows < 0 || w.width < 0)
		wrong = "rows and width must not be negative";
	else if (norm && !(w.epsilon >= 0))
		wrong = "epsilon must not be negative";
	else if (w.has_residual > 1 || w.has_sum > 1 || w.has_weight > 1 || w.has_bias > 1)
		wrong = "has_residual, has_sum, has_weight and has_bias are 0 or 1";
	else if (!norm && (w.has_residual || w.has_sum || w.has_weight || w.has_bias))
		wrong = "softmax takes no residual, sum, weight or bias";
	else if (w.has_sum && !w.has_residual)
		wrong = "has_sum needs has_residual";
	if (wrong)
		return error_set(err, WEIR_KERNELS_ERROR_ARGUMENT, "weir_rows: %s", wrong);
	fill_strides(&w.x_row, &w.x_column, w.width);
	fill_strides(&w.y_row, &w.y_column, w.width);
	fill_strides(&w.residual_row, &w.residual_column, w.width);
	if (!is_span(&w, w.x_row, w.x_column) || !is_span(&w, w.y_row, w.y_column) ||
		!is_span(&w, w.residual_row, w.residual_column))
		return error_set(err, WEIR_KERNELS_ERROR_ARGUMENT,
			"weir_rows: a tensor of these strides has over 2^60 elements");
	*ret = w;
	return 0;
}

double rows_bytes(const struct weir_rows *w)
{
	const double tensors = 2 + w->has_residual + w->has_sum;
	return tensors * (double)w->rows * (double)w->width * kernel_type_bytes(w->type);
}

/* ---- the choice ---- */

/* Threads of a row, rows of a thread, threads of a block, blocks of a cluster.  Each with 1, 2, 4
 * and 8 vectors of a thread. */
static const struct rows_form forms[] = {
	{ 0, 8, 4, 128, 1 },
	{ 0, 8, 1, 128, 1 },
	{ 0, 16, 2, 128, 1 },
	{ 0, 32, 2, 128, 1 },
	{ 0, 32, 1, 128, 1 },
	{ 0, 64, 1, 64, 1 },
	{ 0, 128, 1, 128, 1 },
	{ 0, 256, 1, 256, 1 },
	{ 0, 512, 1, 512, 1 },
	{ 0, 1024, 1, 1024, 1 },
	{ 0, 512, 1, 512, 2 },
	{ 0, 512, 1, 512, 4 },
	{ 0, 1024, 1, 1024, 4 },
	{ 0, 512, 1, 512, 8 },
	{ 0, 1024, 1, 1024, 8 },
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Registers of a thread: vectors as they are loaded and as FP32, and what addresses and sums need.
 */
static unsigned registers(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned each = 16 / kernel_type_bytes(w->type) + 4 + 4 * w->has_residual;
	return f->vectors * f->rows * each + 36;
}

static bool holds_rows(const struct kernel_device *d, const struct weir_rows *w)
{
	const int64_t each = 16 / kernel_type_bytes(w->type); /* elements of a vector */
	return d->cc >= 75 && w->width % each == 0 && w->width > 0 && w->x_column == 1 &&
	       w->y_column == 1 && w->x_row % each == 0 && w->y_row % each == 0 &&
	       (!w->has_residual || (w->residual_column == 1 && w->residual_row % each == 0));
}

static bool form_fits(
	const struct kernel_device *d, const struct weir_rows *w, const struct rows_form *f)
{
	const int64_t vectors = w->width / (16 / kernel_type_bytes(w->type));
	const int64_t room = (int64_t)f->vectors * f->threads_per_row * f->cluster;
	const int64_t per_block = f->block / f->threads_per_row * f->rows;
	return vectors <= room && vectors * 2 > room - (f->threads_per_row == 8 ? room : 0) &&
	       (f->cluster == 1 || d->cc >= 90) && (f->rows == 1 || f->vectors * f->rows <= 4) &&
	       registers(w, f) * f->block <= REGISTERS &&
	       (w->rows + per_block - 1) / per_block * f->cluster <= INT32_MAX;
}

/* Bytes that an SM's blocks ask for at a time. */
static double bytes_in_flight(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned by_registers = REGISTERS / (registers(w, f) * f->block);
	const unsigned by_threads = 2048 / f->block;
	const unsigned blocks = by_registers < by_threads ? by_registers : by_threads;
	const double row = (double)w->width * kernel_type_bytes(w->type);
	return blocks * (double)(f->block / f->threads_per_row) * f->rows * row / f->cluster;
}

static double predict(
	const struct kernel_device *d, const struct weir_rows *w, const struct rows_form *f)
{
	if (!d->copy_gb_per_s)
		return 0;
	const double moved = rows_bytes(w) / d->copy_gb_per_s;
	if (!f->vectors) /* three passes, and the later ones mostly find their row in a cache */
		return LAUNCH_NS + 2 * moved + ROW_NS;
	const double flight = bytes_in_flight(w, f);
	return LAUNCH_NS + ROW_NS + moved * fmax(1, WAIT_BYTES / flight);
}

/* As rows_held.cu counts them. */
static unsigned has_bits(const struct weir_rows *w)
{
	return w->has_residual | w->has_sum << 1 | w->has_weight << 2 | w->has_bias << 3;
}

static void name_choice(const struct weir_rows *w, struct rows_choice *c)
{
	const struct rows_form *f = &c->form;
	const char *operation = kernel_words[w->operation], *type = type_words[w->type];
	if (!f->vectors)
		snprintf(c->name, sizeof c->name, "weir_%s_%s_plain", operation, type);
	else
		snprintf(c->name, sizeof c->name, "weir_%s_%s%s%s%s%s%s_v%u_t%u_r%u_b%u_c%u",
			operation, type, has_bits(w) ? "_" : "", w->has_residual ? "r" : "",
			w->has_sum ? "s" : "", w->has_weight ? "w" : "", w->has_bias ? "b" : "",
			f->vectors, f->threads_per_row, f->rows, f->block, f->cluster);
}

static struct rows_choice choose_form(
	const struct kernel_device *d, const struct weir_rows *w, const struct rows_form *f)
{
	const int64_t per_block = f->block / f->threads_per_row * f->rows;
	struct rows_choice c = { .form = *f, .block = f->block, .cluster = f->cluster };
	c.grid = (unsigned)((w->rows + per_block - 1) / per_block * f->cluster);
	c.predicted_ns = predict(d, w, f);
	name_choice(w, &c);
	return c;
}

static struct rows_choice choose_plain(const struct kernel_device *d, const struct weir_rows *w)
{
	const int64_t most = 8 * (int64_t)d->sms;
	struct rows_choice c = { .block = 256, .cluster = 1 };
	c.grid = (unsigned)(w->rows < most ? w->rows : most);
	c.predicted_ns = predict(d, w, &c.form);
	name_choice(w, &c);
	return c;
}

/* More bytes on their way first, as far as that helps, then a thread that holds at most 32
 * elements, then fewer threads that wait for each other, then more of a thread's vectors. */
static bool is_better(
	const struct weir_rows *w, const struct rows_form *a, const struct rows_form *b)
{
	const double fa = fmin(bytes_in_flight(w, a), WAIT_BYTES);
	const double fb = fmin(bytes_in_flight(w, b), WAIT_BYTES);
	const unsigned ta = a->threads_per_row * a->cluster, tb = b->threads_per_row * b->cluster;
	const unsigned each = 16 / kernel_type_bytes(w->type);
	const bool much_a = a->vectors * a->rows * each > 32,
		   much_b = b->vectors * b->rows * each > 32;
	if (fa != fb)
		return fa > fb;
	if (much_a != much_b)
		return much_b;
	return ta != tb ? ta < tb : a->vectors * a->rows > b->vectors * b->rows;
}

size_t rows_choose(const struct kernel_device *d, const struct weir_rows *w,
	struct rows_choice ret[static ROWS_FORMS_MOST])
{
	size_t n = 0;
	for (size_t i = 0; i < FORMS && holds_rows(d, w); i++)
		for (unsigned vectors = 1; vectors <= 8; vectors *= 2) {
			struct rows_form f = forms[i];
			f.vectors = vectors;
			if (n + 1 == ROWS_FORMS_MOST || !form_fits(d, w, &f))
				continue;
			size_t at = n++;
			for (; at > 0 && is_better(w, &f, &ret[at - 1].form); at--)
				ret[at] = ret[at - 1];
			ret[at] = choose_form(d, w, &f);
		}
	ret[n++] = choose_plain(d, w);
	return n;
}

void rows_program(const struct weir_rows *w, const struct rows_choice *c, struct buf *ret)
{
	const struct rows_form *f = &c->form;
	const char *type = type_words[w->type];
	buf_printf(ret,
		"#include \"%s\"\nextern \"C\" __global__ void __launch_bounds__(%u) %s(const rows_args a)\n",
		f->vectors ? "rows_held.cu" : "rows.cu", c->block, c->name);
	if (f->vectors)
		buf_printf(ret, "{ rows_held<%s, %u, %u, %u, %u, %u, %u, %u>(a); }\n", type,
			w->operation - WEIR_SOFTMAX, has_bits(w), f->vectors, f->threads_per_row,
			f->rows, f->block, f->cluster);
	else if (w->operation <= WEIR_LOG_SOFTMAX)
		buf_printf(ret, "{ softmax<%s, %s>(a); }\n", type,
			w->operation == WEIR_LOG_SOFTMAX ? "true" : "false");
	else
		buf_printf(ret, "{ norm<%s, %s>(a); }\n", type,
			w->operation == WEIR_LAYER_NORM ? "true" : "false");
}
