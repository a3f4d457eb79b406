/*
 * weir kernels lists Weir's own kernels, says which one a plan takes and why, and measures them on
 * the GPU. src/kernels chooses and measures.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "kernels/kernel_times.h"
#include "kernels/tuned.h"

#define GEMM      "gemm"
#define CONV      "conv"
#define MOST_SIZE (1 << 30) /* of m, n and k, by gemm_check() */
#define MOST      4         /* choices that plan prints and tune measures, beside the plain one */

struct question {
	const char *operation; /* a word of rows_operation_word(), GEMM or CONV */
	bool product;          /* GEMM and CONV: what counts is operations, not bytes */
	bool conv;
	struct weir_rows rows;
	struct weir_gemm gemm;
	struct weir_conv convolution;
};

/* One kernel that may answer it. */
struct answer {
	const char *name;
	unsigned block, cluster;
	uint64_t blocks;
	double predicted_ns, measured_ns; /* 0: not known */
	bool plain;
};

/* Numbers with commas between them: how many, or 0 if the text is something else. */
static size_t take_numbers(const char *text, int64_t *ret, size_t most)
{
	for (size_t n = 0; n < most; n++) {
		char *end;
		ret[n] = strtoll(text, &end, 10);
		if (end == text || ret[n] < 0)
			return 0;
		if (!*end)
			return n + 1;
		if (*end != ',')
			return 0;
		text = end + 1;
	}
	return 0;
}

static bool parse_number(const char *text, int64_t *ret)
{
	return take_numbers(text, ret, 1) && *ret > 0;
}

static bool parse_size(const char *text, struct weir_gemm *g)
{
	int64_t v[4];
	const size_t n = text ? take_numbers(text, v, 4) : 0;
	if (n < 3)
		return false;
	g->batch = n == 4 ? v[0] : 1;
	g->m = v[n - 3];
	g->n = v[n - 2];
	g->k = v[n - 1];
	return g->batch > 0 && g->m > 0 && g->n > 0 && g->k > 0;
}

static int take_type(const struct options *o, uint32_t *ret)
{
	const char *word = opt_str(o, "type");
	if (kernel_find_type(word, ret))
		return 0;
	return complain(
		EXIT_USAGE, "--type is f32, f16, bf16, s8, e4m3, tf32 or tf32x3, not '%s'", word);
}

/* Words with commas between them: a bit for each that the list has. */
static bool take_words(const char *text, const char *const *words, size_t n, uint32_t *ret)
{
	*ret = 0;
	while (text && *text) {
		const size_t length = strcspn(text, ",");
		size_t i = 0;
		while (i < n && (strlen(words[i]) != length || memcmp(words[i], text, length) != 0))
			i++;
		if (i == n)
			return false;
		*ret |= 1u << i;
		text += length + (text[length] == ',');
	}
	return true;
}

static int take_rows(const struct options *o, struct question *q)
{
	static const char *const with[] = { "residual", "sum", "weight", "bias" };
	struct error err;
	uint32_t has;
	struct weir_rows *w = &q->rows;
	w->size = sizeof *w;
	w->type = q->gemm.type;
	w->epsilon = 1e-5f;
	const char *rows = opt_str(o, "rows"), *width = opt_str(o, "width");
	if (!rows || !width || !parse_number(rows, &w->rows) || !parse_number(width, &w->width))
		return complain(
			EXIT_USAGE, "%s needs --rows and --width, both from 1 on", q->operation);
	if (!take_words(opt_str(o, "with"), with, 4, &has))
		return complain(EXIT_USAGE, "--with is a list of residual, sum, weight and bias");
	w->has_residual = has & 1;
	w->has_sum = has >> 1 & 1;
	w->has_weight = has >> 2 & 1;
	w->has_bias = has >> 3 & 1;
	return rows_check(w, w, &err) ? complain(EXIT_USAGE, "%s", err.text) : 0;
}

static int take_epilogue(const struct options *o, uint32_t *ret)
{
	if (gemm_find_epilogue(opt_str(o, "epilogue"), ret))
		return 0;
	return complain(EXIT_USAGE,
		"--epilogue is none, bias, bias-relu, bias-gelu, bias-silu, residual or swiglu");
}

/* Takes a number of rows and one of columns, or one for both. */
static int take_pair(const struct options *o, const char *option, int64_t *ret_y, int64_t *ret_x)
{
	int64_t number[2];
	const char *text = opt_str(o, option);
	const size_t n = text ? take_numbers(text, number, 2) : 0;
	if (text && !n)
		return complain(EXIT_USAGE, "--%s is a number, or two with a comma", option);
	*ret_y = n ? number[0] : 0;
	*ret_x = n ? number[n - 1] : 0;
	return 0;
}

static int take_convolution(const struct options *o, struct question *q)
{
	static const char *const passes[] = { "forward", "input", "filters" };
	struct error err;
	uint32_t pass;
	int64_t size[7];
	const char *groups = opt_str(o, "groups");
	struct weir_conv *w = &q->convolution;
	*w = (struct weir_conv){ .size = sizeof *w, .type = q->gemm.type };
	if (!opt_str(o, "size") || take_numbers(opt_str(o, "size"), size, 7) != 7)
		return complain(EXIT_USAGE, "conv needs --size N,H,W,C,K,R,S");
	w->n = size[0];
	w->h = size[1];
	w->w = size[2];
	w->c = size[3];
	w->k = size[4];
	w->r = size[5];
	w->s = size[6];
	if (groups && !parse_number(groups, &w->groups))
		return complain(EXIT_USAGE, "--groups is a number from 1 on");
	if (!take_words(opt_str(o, "pass"), passes, 3, &pass) || !pass || pass & (pass - 1))
		return complain(EXIT_USAGE, "--pass is forward, input or filters");
	w->pass = (uint32_t)__builtin_ctz(pass);
	int e = take_epilogue(o, &w->epilogue);
	e = e ? e : take_pair(o, "stride", &w->stride_h, &w->stride_w);
	e = e ? e : take_pair(o, "padding", &w->pad_h, &w->pad_w);
	e = e ? e : take_pair(o, "dilation", &w->dilation_h, &w->dilation_w);
	return e ? e : conv_check(w, w, &err) ? complain(EXIT_USAGE, "%s", err.text) : 0;
}

static int take_product(const struct options *o, struct question *q)
{
	static const char *const operands[] = { "a", "b" };
	struct error err;
	uint32_t which;
	struct weir_gemm *w = &q->gemm;
	w->size = sizeof *w;
	const char *size = opt_str(o, "size");
	if (!size || !parse_size(size, w))
		return complain(EXIT_USAGE, "gemm needs --size M,N,K or B,M,N,K, each from 1 on");
	const int e = take_epilogue(o, &w->epilogue);
	if (e)
		return e;
	if (!take_words(opt_str(o, "transposed"), operands, 2, &which))
		return complain(EXIT_USAGE, "--transposed is a, b or a,b");
	w->a_transposed = which & 1;
	w->b_transposed = which >> 1;
	if (w->batch > 1 && w->m <= MOST_SIZE && w->n <= MOST_SIZE && w->k <= MOST_SIZE) {
		w->a_batch = w->m * w->k;
		w->b_batch = w->n * w->k;
		w->d_batch = w->m * w->n / (w->epilogue == WEIR_EPILOGUE_SWIGLU ? 2 : 1);
		w->residual_batch = w->epilogue == WEIR_EPILOGUE_RESIDUAL ? w->m * w->n : 0;
	}
	return gemm_check(w, w, &err) ? complain(EXIT_USAGE, "%s", err.text) : 0;
}

static int take_question(const struct options *o, struct question *q)
{
	const int e = take_type(o, &q->gemm.type);
	if (e)
		return e;
	q->operation = opt_argv(o)[1];
	if (opt_argc(o) != 2)
		return complain(EXIT_USAGE,
			"%s needs one operation: softmax, log-softmax, layer-norm, "
			"rms-norm, gemm or conv",
			opt_argv(o)[0]);
	q->conv = strcmp(q->operation, CONV) == 0;
	q->product = q->conv || strcmp(q->operation, GEMM) == 0;
	if (q->product)
		return q->conv ? take_convolution(o, q) : take_product(o, q);
	for (uint32_t operation = WEIR_SOFTMAX; operation <= WEIR_RMS_NORM; operation++)
		if (strcmp(q->operation, rows_operation_word(operation)) == 0) {
			q->rows.operation = operation;
			return take_rows(o, q);
		}
	return complain(EXIT_USAGE,
		"there is no operation '%s': softmax, log-softmax, layer-norm, rms-norm, gemm and conv are known",
		q->operation);
}

struct choices {
	struct rows_choice rows[ROWS_FORMS_MOST];
	struct gemm_choice gemm[GEMM_FORMS_MOST];
	struct answer answer[MOST + 1]; /* the best, and the plain one */
	size_t n;
};

static struct answer answer_of(const struct choices *c, bool product, size_t i, size_t last)
{
	const struct rows_choice *r = &c->rows[i];
	const struct gemm_choice *g = &c->gemm[i];
	if (product)
		return (struct answer){ g->name, g->block, g->cluster, g->clusters * g->cluster,
			g->predicted_ns, 0, i == last };
	return (struct answer){ r->name, r->block, r->cluster, r->grid, r->predicted_ns, 0,
		i == last };
}

static void choose(const struct kernel_device *d, const struct question *q, struct choices *c)
{
	const size_t all = q->conv      ? conv_choose(d, &q->convolution, c->gemm)
			   : q->product ? gemm_choose(d, &q->gemm, c->gemm)
					: rows_choose(d, &q->rows, c->rows);
	c->n = 0;
	for (size_t i = 0; i < all; i++)
		if (c->n < MOST || i + 1 == all)
			c->answer[c->n++] = answer_of(c, q->product, i, all - 1);
}

/* Operations of a product, bytes of an operation on rows. */
static double amount_of(const struct question *q)
{
	return q->conv      ? conv_flops(&q->convolution)
	       : q->product ? gemm_flops(&q->gemm)
			    : rows_bytes(&q->rows);
}

/* The bytes or FLOPs of a run, in words. */
static void put_amount(const struct question *q, double ns, char *to, size_t size)
{
	const double amount = amount_of(q);
	if (ns)
		snprintf(to, size, "%.*f %s", q->product, amount / ns / (q->product ? 1e3 : 1),
			q->product ? "TFLOPS" : "GB/s");
	else
		snprintf(to, size, "-");
}

static void put_us(struct table *t, double ns)
{
	table_cell_if(t, ns, "%.2f us", ns / 1e3);
}

static void print_answers(const struct question *q, const struct choices *c, bool measured)
{
	struct table t = table_of(">predicted|>measured|>rate|>blocks|>threads|>cluster|<kernel");
	for (size_t i = 0; i < c->n; i++) {
		const struct answer *a = &c->answer[i];
		char rate[40];
		put_amount(q, measured ? a->measured_ns : a->predicted_ns, rate, sizeof rate);
		put_us(&t, a->predicted_ns);
		put_us(&t, a->measured_ns);
		table_cell(&t, "%s", rate);
		table_cell(&t, "%" PRIu64, a->blocks);
		table_cell(&t, "%u", a->block);
		table_cell(&t, "%u", a->cluster);
		table_cell(&t, "%s", a->name);
	}
	table_print(&t, stdout);
}

static void json_answers(
	const struct kernel_device *d, const struct question *q, const struct choices *c)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_str(&j, "device", d->name);
	json_str(&j, "operation", q->operation);
	json_str(&j, "type", kernel_type_word(q->gemm.type));
	json_put_real(&j, q->product ? "flops" : "bytes", amount_of(q));
	json_begin_array(&j, "kernels");
	for (size_t i = 0; i < c->n; i++) {
		const struct answer *a = &c->answer[i];
		json_begin_object(&j, NULL);
		json_str(&j, "name", a->name);
		json_put_real(&j, "predicted_ns", a->predicted_ns ? a->predicted_ns : NAN);
		json_put_real(&j, "measured_ns", a->measured_ns ? a->measured_ns : NAN);
		json_u64(&j, "blocks", a->blocks);
		json_u64(&j, "threads_per_block", a->block);
		json_u64(&j, "cluster", a->cluster);
		json_bool(&j, "plain", a->plain);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_document(&j);
}

static int take_device(const struct options *o, struct kernel_device *d)
{
	const char *name = opt_str(o, "device");
	if (kernel_device_init(d, name, 0, 0))
		return 0;
	return complain(EXIT_USAGE, "api/gpu.tbl has no device '%s'", name);
}

static void print_reason(
	const struct kernel_device *d, const struct question *q, const struct choices *c)
{
	const struct answer *a = &c->answer[0];
	char rate[40];
	put_amount(q, a->predicted_ns, rate, sizeof rate);
	printf("%s on %s: ", a->name, d->name);
	if (a->plain)
		printf("only the plain kernel runs it there.\n\n");
	else if (q->product && !a->predicted_ns)
		printf("the tensor cores run it, by mma.sync. How long it takes was never measured.\n\n");
	else if (q->product)
		printf("its tiles keep the %u SMs busy for the fewest cycles, and it reads the least "
		       "for each element of the result. %s are predicted.\n\n",
			d->sms, rate);
	else
		printf("a row stays in registers, so each element is read once and written once. "
		       "%s are predicted.\n\n",
			rate);
}

static int run_plan(const struct options *o)
{
	struct kernel_device device;
	struct choices c;
	struct question q = { 0 };
	int e = take_question(o, &q);
	e = e ? e : take_device(o, &device);
	if (e)
		return e;
	choose(&device, &q, &c);
	if (opt_flag(o, "json")) {
		json_answers(&device, &q, &c);
		return EXIT_YES;
	}
	print_reason(&device, &q, &c);
	print_answers(&q, &c, false);
	return EXIT_YES;
}

static const struct listed {
	const char *operation, *types, *kernel, *when;
} listed[] = {
	{ "softmax", "f32 f16 bf16", "rows_held",
		"rows of 16-byte vectors that fit into registers" },
	{ "log-softmax", "f32 f16 bf16", "rows_held", "as softmax" },
	{ "layer-norm", "f32 f16 bf16", "rows_held",
		"as softmax. Residual, weight and bias are fused" },
	{ "rms-norm", "f32 f16 bf16", "rows_held",
		"as softmax. Residual, weight and bias are fused" },
	{ "softmax and norms", "f32 f16 bf16", "rows_ring",
		"capability 9.0, rows of 16-byte vectors that fill an SM: the next rows are read ahead" },
	{ "gemm", "f16 bf16", "gemm_sm90",
		"capability 9.0, pitches of 16 bytes. Bias, activation, residual, SwiGLU are fused" },
	{ "gemm", "tf32 tf32x3", "gemm_sm90",
		"as above. Operands with K as rows, and all of tf32x3, are copied first" },
	{ "gemm", "f16 bf16 tf32 tf32x3 s8 e4m3", "gemm_sm80",
		"capability 8.0 and later (e4m3: 8.9), pitches of 16 bytes of A and B, K as columns" },
	{ "gemm", "s8 e4m3", "gemm_sm90",
		"as for f16, K as columns. Scales of rows and columns, bias and activation are fused" },
	{ "conv", "f16 bf16 s8", "conv_sm90",
		"capability 9.0, multiples of 8 channels (s8: 16, and the forward pass alone), no groups. The input's gradient at stride 1 only" },
	{ "softmax and norms", "f32 f16 bf16", "rows", "any width, stride and alignment" },
	{ "gemm", "f32 f16 bf16 s8 e4m3 tf32 tf32x3", "gemm", "any shape, pitch and alignment" },
	{ "conv", "f32 f16 bf16 s8", "conv", "any shape, group, pass and alignment" },
};

static int run_list(const struct options *o)
{
	struct json j;
	const size_t n = sizeof listed / sizeof *listed;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "list takes no more arguments");
	if (opt_flag(o, "json")) {
		json_begin_document(&j, stdout);
		json_begin_array(&j, "kernels");
		for (size_t i = 0; i < n; i++) {
			json_begin_object(&j, NULL);
			json_str(&j, "operation", listed[i].operation);
			json_str(&j, "types", listed[i].types);
			json_str(&j, "source", listed[i].kernel);
			json_str(&j, "when", listed[i].when);
			json_end_object(&j);
		}
		json_end_array(&j);
		json_end_document(&j);
		return EXIT_YES;
	}
	struct table t = table_of("<operation|<types|<source|<when");
	for (size_t i = 0; i < n; i++) {
		table_cell(&t, "%s", listed[i].operation);
		table_cell(&t, "%s", listed[i].types);
		table_cell(&t, "%s", listed[i].kernel);
		table_cell(&t, "%s", listed[i].when);
	}
	table_print(&t, stdout);
	return EXIT_YES;
}

static int plan_choice(struct weir_kernels *k, const struct question *q, size_t choice,
	struct weir_plan **ret, struct error *err)
{
	struct weir_rows rows = q->rows;
	struct weir_gemm gemm = q->gemm;
	struct weir_conv conv = q->convolution;
	rows.choice = gemm.choice = conv.choice = (uint32_t)choice;
	const int e = q->conv      ? weir_conv_plan(k, &conv, ret)
		      : q->product ? weir_gemm_plan(k, &gemm, ret)
				   : weir_rows_plan(k, &rows, ret);
	return e ? error_set(err, e, "%s", weir_kernels_error()) : 0;
}

/* The answers of what the plans run. */
static size_t make_plans(struct weir_kernels *k, const struct question *q, size_t wanted,
	struct weir_plan **plans, struct choices *c, struct error *err)
{
	size_t n = 0;
	for (c->n = 0; n < wanted && !plan_choice(k, q, n, &plans[n], err); n++) {
		struct answer *a = &c->answer[c->n++];
		const struct weir_plan *p = plans[n];
		const struct launch *l = p->fast.function ? &p->fast : &p->plain;
		*a = (struct answer){ p->name, l->block, l->cluster, l->grid, p->predicted_ns, 0,
			!p->fast.function };
		if (a->plain) /* the last of the choices */
			return n + 1;
	}
	return n;
}

static void keep_fastest(
	const struct weir_kernels *k, const struct question *q, const struct choices *c)
{
	struct buf what = { 0 };
	const struct answer *best = &c->answer[0];
	for (size_t i = 1; i < c->n; i++)
		if (c->answer[i].measured_ns < best->measured_ns)
			best = &c->answer[i];
	if (q->conv)
		conv_describe(&q->convolution, &what);
	else if (q->product)
		gemm_describe(&q->gemm, &what);
	else
		rows_describe(&q->rows, &what);
	tuned_put(k, buf_text(&what), best->name);
	buf_free(&what);
}

/* tune: measures several, and keeps which was the fastest. */
static int measure(const struct question *q, bool tune, struct kernel_device *ret_device,
	struct choices *c, struct error *err)
{
	struct measure *m = NULL;
	struct weir_kernels *k = NULL;
	struct weir_plan *plans[MOST] = { 0 };
	double ns[MOST];
	size_t n = 0;
	int e = measure_open(&m, err);
	if (!e && weir_kernels_open(NULL, &k))
		e = error_set(err, -1, "%s", weir_kernels_error());
	if (!e) {
		*ret_device = k->device;
		n = make_plans(k, q, tune ? MOST : 1, plans, c, err);
		e = n ? measure_plans(m, plans, n, ns, err) : -1;
	}
	for (size_t i = 0; i < n && !e; i++)
		c->answer[i].measured_ns = ns[i];
	if (!e && tune)
		keep_fastest(k, q, c);
	/* Names of the answers are those of the plans. */
	for (size_t i = 0; i < n; i++) {
		c->answer[i].name = xstrdup(c->answer[i].name);
		weir_plan_close(plans[i]);
	}
	weir_kernels_close(k);
	measure_close(m);
	return e;
}

static int run_measured(const struct options *o, bool tune)
{
	struct kernel_device device;
	struct choices c;
	struct error err;
	struct question q = { 0 };
	const int e = take_question(o, &q);
	if (e)
		return e;
	if (measure(&q, tune, &device, &c, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (opt_flag(o, "json"))
		json_answers(&device, &q, &c);
	else
		print_answers(&q, &c, true);
	for (size_t i = 0; i < c.n; i++)
		free((char *)c.answer[i].name);
	return EXIT_YES;
}

int cmd_kernels(const struct options *o)
{
	const char *verb = opt_argc(o) > 0 ? opt_argv(o)[0] : "";
	if (strcmp(verb, "list") == 0)
		return run_list(o);
	if (strcmp(verb, "plan") == 0)
		return run_plan(o);
	if (strcmp(verb, "bench") == 0 || strcmp(verb, "tune") == 0)
		return run_measured(o, *verb == 't');
	return complain(EXIT_USAGE, "say list, plan, tune or bench");
}
