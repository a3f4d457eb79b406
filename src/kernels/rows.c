/* Chooses the kernel of an operation on rows. */
#include "kernels/rows.h"

#include <math.h>
#include <stdio.h>

#include "predict/gpu.h"

/* For a device whose table row says what programs reach when they only read; a copy reaches less,
 * since the memory turns between reading and writing. */
#define COPY_SHARE .90
/* A share of the peak: large products of random numbers on an H100 and an H200. */
#define POWER_SHARE .69
#define LAUNCH_NS   2000.   /* from one launch's end to the next one's end where it does nothing */
#define ROW_NS      1500.   /* a row's way through a block: reading, barrier, writing */
#define WAIT_BYTES  49152.  /* that must be on their way to an SM for the memory to be busy */
#define REGISTERS   65536u  /* of an SM */
#define RING_BYTES  212992u /* that an SM's blocks of rows_ring.cu read ahead */
/* Threads of these blocks of an SM, and vectors of a row that each of them holds at most. */
enum { RING_THREADS = 512, RING_VECTORS = 8, CLUSTER_MOST = 8 };

static const char *const type_words[] = { [WEIR_F32] = "f32",
	[WEIR_F16] = "f16",
	[WEIR_BF16] = "bf16",
	[WEIR_S8] = "s8",
	[WEIR_E4M3] = "e4m3",
	[WEIR_TF32] = "tf32",
	[WEIR_TF32X3] = "tf32x3" };
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
	return type == WEIR_F32 || type >= WEIR_TF32 ? 4 : type >= WEIR_S8 ? 1 : 2;
}

const char *kernel_type_word(uint32_t type)
{
	return type_words[type];
}

const char *rows_operation_word(uint32_t operation)
{
	return operation_words[operation];
}

bool kernel_find_type(const char *word, uint32_t *ret)
{
	for (*ret = WEIR_F32; *ret <= WEIR_TF32X3; ++*ret)
		if (strcmp(word, type_words[*ret]) == 0)
			return true;
	return false;
}

bool rows_find_operation(const char *word, uint32_t *ret)
{
	for (*ret = WEIR_SOFTMAX; *ret <= WEIR_RMS_NORM; ++*ret)
		if (strcmp(word, operation_words[*ret]) == 0)
			return true;
	return false;
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

/* Threads of a row, rows of a thread, threads of a block, blocks of a cluster. Each with 1, 2, 4
 * and 8 vectors of a thread. */
static const struct rows_form forms[] = {
	{ 0, 8, 4, 128, 1, 0, false },
	{ 0, 8, 1, 128, 1, 0, false },
	{ 0, 16, 2, 128, 1, 0, false },
	{ 0, 32, 2, 128, 1, 0, false },
	{ 0, 32, 1, 128, 1, 0, false },
	{ 0, 64, 1, 64, 1, 0, false },
	{ 0, 128, 1, 128, 1, 0, false },
	{ 0, 256, 1, 256, 1, 0, false },
	{ 0, 512, 1, 512, 1, 0, false },
	{ 0, 1024, 1, 1024, 1, 0, false },
	{ 0, 512, 1, 512, 2, 0, false },
	{ 0, 512, 1, 512, 4, 0, false },
	{ 0, 1024, 1, 1024, 4, 0, false },
	{ 0, 512, 1, 512, 8, 0, false },
	{ 0, 1024, 1, 1024, 8, 0, false },
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Registers of a thread: vectors as they are loaded and as FP32, and what addresses and sums need.
 * The compiler gets by with 128 for 64 elements. */
static unsigned registers(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned bytes = kernel_type_bytes(w->type), vectors = f->vectors * f->rows;
	if (vectors * 16 / bytes == 64 && !w->has_residual)
		return 128;
	return vectors * (16 / bytes + 4 + 4 * w->has_residual) + 36;
}

static unsigned blocks_of_sm(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned by_registers = REGISTERS / (registers(w, f) * f->block);
	const unsigned by_threads = 2048 / f->block;
	return by_registers < by_threads ? by_registers : by_threads;
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
	const unsigned bytes = kernel_type_bytes(w->type);
	/* A thread of 64 elements spills in large blocks, and with FP32 before Hopper. */
	if (f->vectors * 16 / bytes > 32 && (f->block > 256 || (bytes == 4 && d->cc < 90)))
		return false;
	return vectors <= room && vectors * 2 > room - (f->threads_per_row == 8 ? room : 0) &&
	       (f->cluster == 1 || d->cc >= 90) && (f->rows == 1 || f->vectors * f->rows <= 4) &&
	       registers(w, f) * f->block <= REGISTERS &&
	       (w->rows + per_block - 1) / per_block * f->cluster <= INT32_MAX;
}

/* A form of rows_ring.cu. false: its warps have no part each, or too many vectors of a row: FP32
 * has room for twice as many, which only the widest rows need. */
static bool make_ring(const struct kernel_device *d, const struct weir_rows *w, unsigned threads,
	unsigned cluster, struct rows_form *ret)
{
	const int64_t all = w->width / (16 / kernel_type_bytes(w->type)), pieces = (all + 31) / 32;
	const unsigned warps = threads / 32 * cluster, inputs = 1 + w->has_residual;
	const int64_t vectors = (pieces + warps - 1) / warps;
	const bool is_widest = threads == RING_THREADS && cluster == CLUSTER_MOST;
	const unsigned most = w->type == WEIR_F32 && is_widest ? 2 * RING_VECTORS : RING_VECTORS;
	if (d->cc != 90 || d->sms < cluster || pieces < warps || vectors > most / inputs)
		return false;
	const unsigned slabs = RING_BYTES / RING_THREADS * 32 / ((unsigned)vectors * 512);
	const unsigned kept = w->has_weight + w->has_bias;
	*ret = (struct rows_form){ (unsigned)vectors, threads, 1, threads, cluster, slabs / inputs,
		false };
	if (kept && slabs >= kept + 2 * inputs) {
		ret->stages = (slabs - kept) / inputs;
		ret->keeps = true;
	}
	return true;
}

static unsigned ring_bytes(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned kept = f->keeps ? w->has_weight + w->has_bias : 0;
	const unsigned slabs = f->stages * (1 + w->has_residual) + kept;
	return f->block / 32 * (slabs * f->vectors * 512 + 8 * f->stages) + 16;
}

/* Bytes that an SM's blocks ask for at a time. A block that is alone there asks for nothing while
 * it reduces and writes. */
static double bytes_in_flight(const struct weir_rows *w, const struct rows_form *f)
{
	if (f->stages)
		return RING_BYTES;
	const unsigned blocks = blocks_of_sm(w, f);
	const double row = (double)w->width * kernel_type_bytes(w->type);
	const double all =
		blocks * (double)(f->block / f->threads_per_row) * f->rows * row / f->cluster;
	return blocks > 1 ? all : all / 2;
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
	const double at_a_time = floor((double)d->sms * RING_THREADS / (f->block * f->cluster));
	const double turns = f->stages ? ceil((double)w->rows / at_a_time) * at_a_time : 0;
	return LAUNCH_NS + ROW_NS +
	       moved * fmax(fmax(1, WAIT_BYTES / flight), turns / (double)w->rows);
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
		snprintf(c->name, sizeof c->name, "weir_%s_%s%s%s%s%s%s_v%u_t%u_%c%u_b%u_c%u",
			operation, type, has_bits(w) ? "_" : "", w->has_residual ? "r" : "",
			w->has_sum ? "s" : "", w->has_weight ? "w" : "", w->has_bias ? "b" : "",
			f->vectors, f->threads_per_row, f->stages ? 's' : 'r',
			f->stages ? f->stages : f->rows, f->block, f->cluster);
}

static struct rows_choice choose_form(
	const struct kernel_device *d, const struct weir_rows *w, const struct rows_form *f)
{
	const int64_t per_block = f->block / f->threads_per_row * f->rows;
	struct rows_choice c = { .form = *f, .block = f->block, .cluster = f->cluster };
	int64_t clusters = (w->rows + per_block - 1) / per_block;
	if (f->stages) { /* its blocks stay for all rows */
		const int64_t at_a_time = d->sms * RING_THREADS / (f->block * f->cluster);
		clusters = clusters < at_a_time ? clusters : at_a_time;
		c.shared_bytes = ring_bytes(w, f);
	}
	c.grid = (unsigned)(clusters * f->cluster);
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

/* Blocks of 256 threads were fastest on an H200, and clusters of 3, 5 and 7 slower than the next
 * larger ones; then fewer threads that wait for each other. */
static bool is_better_ring(const struct rows_form *a, const struct rows_form *b)
{
	const bool half_a = a->block == RING_THREADS / 2, half_b = b->block == RING_THREADS / 2,
		   odd_a = a->cluster > 1 && a->cluster % 2,
		   odd_b = b->cluster > 1 && b->cluster % 2;
	if (a->keeps != b->keeps)
		return a->keeps;
	if (half_a != half_b)
		return half_a;
	if (odd_a != odd_b)
		return odd_b;
	return a->block * a->cluster < b->block * b->cluster;
}

/* More than 32 elements of a thread. */
static bool holds_much(const struct weir_rows *w, const struct rows_form *f)
{
	return !f->stages && f->vectors * f->rows * 16 / kernel_type_bytes(w->type) > 32;
}

/* Layer norms of 16 bits gain by that in blocks of 128. */
static bool holds_too_much(const struct weir_rows *w, const struct rows_form *f)
{
	return holds_much(w, f) && !(w->operation == WEIR_LAYER_NORM && f->block == 128 &&
					   kernel_type_bytes(w->type) == 2);
}

/* Two blocks of 256 whose threads each hold 64 elements of 16 bits compute longer than a ring. */
static bool needs_no_ring(const struct weir_rows *w, const struct rows_form *f)
{
	return !f->stages && f->cluster == 1 && blocks_of_sm(w, f) > 1 &&
	       !(holds_much(w, f) && f->block > 128 && kernel_type_bytes(w->type) == 2);
}

/* More bytes on their way first, as far as that helps, then several blocks of an SM that need no
 * ring, then a thread that holds at most 32 elements, then fewer threads that wait for each other,
 * then more of a thread's vectors. */
static bool is_better(
	const struct weir_rows *w, const struct rows_form *a, const struct rows_form *b)
{
	const double fa = fmin(bytes_in_flight(w, a), WAIT_BYTES);
	const double fb = fmin(bytes_in_flight(w, b), WAIT_BYTES);
	const unsigned ta = a->threads_per_row * a->cluster, tb = b->threads_per_row * b->cluster;
	const bool much_a = holds_too_much(w, a), much_b = holds_too_much(w, b);
	const bool two_a = needs_no_ring(w, a), two_b = needs_no_ring(w, b);
	if (fa != fb)
		return fa > fb;
	if (two_a != two_b)
		return two_a;
	if (much_a != much_b)
		return much_b;
	if (a->stages && b->stages)
		return is_better_ring(a, b);
	if (ta != tb)
		return ta < tb;
	return a->vectors * a->rows > b->vectors * b->rows;
}

/* Inserts the form at its place by is_better(). The number of choices then. */
static size_t insert_form(const struct kernel_device *d, const struct weir_rows *w,
	const struct rows_form *f, struct rows_choice *ret, size_t n)
{
	size_t at = n;
	if (n + 1 == ROWS_FORMS_MOST)
		return n;
	for (; at > 0 && is_better(w, f, &ret[at - 1].form); at--)
		ret[at] = ret[at - 1];
	ret[at] = choose_form(d, w, f);
	return n + 1;
}

size_t rows_choose(const struct kernel_device *d, const struct weir_rows *w,
	struct rows_choice ret[static ROWS_FORMS_MOST])
{
	struct rows_form f;
	size_t n = 0;
	const unsigned each = 16 / kernel_type_bytes(w->type);
	const bool holds = holds_rows(d, w);
	for (unsigned cluster = 1; cluster <= CLUSTER_MOST && holds; cluster++)
		for (unsigned threads = RING_THREADS; threads >= RING_THREADS / 4; threads /= 2)
			if (make_ring(d, w, threads, cluster, &f))
				n = insert_form(d, w, &f, ret, n);
	for (size_t i = 0; i < FORMS && holds; i++)
		for (unsigned vectors = 1; vectors <= 64 / each; vectors *= 2) {
			f = forms[i];
			f.vectors = vectors;
			if (form_fits(d, w, &f))
				n = insert_form(d, w, &f, ret, n);
		}
	ret[n++] = choose_plain(d, w);
	return n;
}

/* The blocks on an SM that the compiler must leave registers for. */
static unsigned count_together(const struct weir_rows *w, const struct rows_form *f)
{
	const unsigned each = 16 / kernel_type_bytes(w->type);
	if (f->stages)
		return RING_THREADS / f->block;
	return f->vectors * f->rows * each > 32 && f->block <= 256 && blocks_of_sm(w, f) > 1 ? 2
											     : 1;
}

void rows_program(const struct weir_rows *w, const struct rows_choice *c, struct buf *ret)
{
	const struct rows_form *f = &c->form;
	const char *type = type_words[w->type];
	const unsigned operation = w->operation - WEIR_SOFTMAX;
	buf_printf(ret,
		"#include \"%s\"\nextern \"C\" __global__ void __launch_bounds__(%u, %u) %s(const rows_args a)\n",
		f->stages    ? "rows_ring.cu"
		: f->vectors ? "rows_held.cu"
			     : "rows.cu",
		c->block, count_together(w, f), c->name);
	if (f->stages)
		buf_printf(ret,
			"{ DYNAMIC_SHARED(shared);\nlaunch_next();\nlaunch_wait();\n"
			"rows_ring<%s, %u, %u, %u, %u, %u, %u, %s>(a, shared_address(shared)).run(); }\n",
			type, operation, has_bits(w), f->vectors, f->threads_per_row, f->stages,
			f->cluster, f->keeps ? "true" : "false");
	else if (f->vectors)
		buf_printf(ret,
			"{ launch_next(); launch_wait(); rows_held<%s, %u, %u, %u, %u, %u, %u, %u>(a); }\n",
			type, operation, has_bits(w), f->vectors, f->threads_per_row, f->rows,
			f->block, f->cluster);
	else if (w->operation <= WEIR_LOG_SOFTMAX)
		buf_printf(ret, "{ softmax<%s, %s>(a); }\n", type,
			w->operation == WEIR_LOG_SOFTMAX ? "true" : "false");
	else
		buf_printf(ret, "{ norm<%s, %s>(a); }\n", type,
			w->operation == WEIR_LAYER_NORM ? "true" : "false");
}
