/* Computes an operator's FLOPs and bytes. */
#include "model/cost.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "model/cost_inputs.h"

enum rule {
	RULE_PRODUCT,
	RULE_LINEAR,
	RULE_CONV,
	RULE_ATTENTION,
	RULE_MAP,
	RULE_REDUCE,
	RULE_ROWS,
	RULE_COPY,
	RULE_PICK,
	RULE_LOOKUP,
	RULE_JOIN,
	RULE_WRITE,
	RULE_GEMM,
	RULE_PACKED,
	RULE_FILTER,
	RULE_BACKWARD,
};

#define ALWAYS 255

/* Which of an operator's arguments is what; 0: none is. */
struct places {
	uint8_t stride, padding, dilation, output_padding, groups, transposed, mask;
	uint8_t length; /* the dimension of queries and keys that is one */
	uint8_t causal, causal_end, window, offsets, longest;
};

struct operator_rule {
	const char *name;
	enum rule rule;
	unsigned a, b;
	unsigned flops;
	struct places at;
};

static const struct operator_rule rules[] = {
#include "operator_rules.h"
};

/* Elements that are in memory: those of a dimension without a stride are one. */
static double stored(const struct inputs *in, unsigned i)
{
	const struct shape *s = &in->shape[i], *stride = &in->stride[i];
	double all = cost_elements(s);
	for (unsigned d = 0; stride->dims == s->dims && d < s->dims; d++)
		if (!(stride->dim[d] > 0) && s->dim[d] > 0)
			all /= s->dim[d];
	return all;
}

static bool is_tensor(const struct inputs *in, unsigned i)
{
	return i < in->count && in->shape[i].dims;
}

static double last(const struct shape *s, unsigned from_end)
{
	return s->dims >= from_end ? s->dim[s->dims - from_end] : 1;
}

/* Bytes of this many elements like those of input i; the sum is not known when one is not. */
static void add_bytes(struct cost *c, const struct inputs *in, unsigned i, double count)
{
	c->has_bytes &= in->element[i].bytes != 0;
	c->bytes += count * in->element[i].bytes;
}

static void cost_product(const struct operator_rule *r, const struct inputs *in, struct cost *c)
{
	const struct shape *a = &in->shape[r->a], *b = &in->shape[r->b];
	const double k = last(a, 1), n = b->dims > 1 ? last(b, 1) : 1;
	const double rows = cost_elements(a) / fmax(k, 1);
	const double batches = b->dims > 2 ? cost_elements(b) / fmax(k * n, 1) : 1;
	const double rows_each = a->dims > 2 && b->dims > 2 ? last(a, 2) : rows;
	const double all = b->dims > 2 ? fmax(rows, rows_each * batches) : rows;
	c->flops = 2 * all * n * k;
	add_bytes(c, in, r->a, stored(in, r->a) + all * n);
	add_bytes(c, in, r->b, stored(in, r->b));
	c->matrix = true;
}

static void cost_linear(const struct operator_rule *r, const struct inputs *in, struct cost *c)
{
	const struct shape *a = &in->shape[r->a], *b = &in->shape[r->b];
	const double k = last(a, 1), n = last(b, 2), rows = cost_elements(a) / fmax(k, 1);
	c->flops = 2 * rows * n * k;
	add_bytes(c, in, r->a, stored(in, r->a) + rows * n);
	add_bytes(c, in, r->b, stored(in, r->b));
	c->matrix = true;
}

/* How a convolution goes, one number a dimension or one for all; without dims: not known. */
struct conv {
	struct shape stride, padding, dilation, output_padding;
	double groups; /* 0: not known */
	bool same;     /* as much padding as keeps the size */
	bool transposed;
};

static struct shape argument(const struct inputs *in, uint8_t place)
{
	return place && place < INPUTS ? in->concrete[place] : (struct shape){ 0 };
}

static void conv_of_arguments(
	const struct operator_rule *r, const struct inputs *in, struct conv *to)
{
	const struct shape groups = argument(in, r->at.groups);
	const struct shape transposed = argument(in, r->at.transposed);
	*to = (struct conv){ .stride = argument(in, r->at.stride),
		.padding = argument(in, r->at.padding),
		.dilation = argument(in, r->at.dilation),
		.output_padding = argument(in, r->at.output_padding),
		.groups = groups.dims ? groups.dim[0] : 0,
		.transposed =
			r->at.transposed == ALWAYS || (transposed.dims && transposed.dim[0] > 0) };
}

static struct shape module_list(const char *module, const char *key)
{
	struct shape s;
	const char *p = cost_find_key(module, key);
	return p && *p == '[' && cost_read_numbers(p + 1, &s) ? s : (struct shape){ 0 };
}

/*
 * The last dimensions are those that the list is of.  A convolution of one dimension is run as one
 * of two, whose first is 1 long, and stays so.
 */
static void put_in_front(struct shape *list, unsigned dims, double value)
{
	if (!list->dims || list->dims >= dims)
		return;
	const unsigned front = dims - list->dims;
	memmove(&list->dim[front], list->dim, list->dims * sizeof list->dim[0]);
	for (unsigned i = 0; i < front; i++)
		list->dim[i] = value;
	list->dims = dims;
}

static void fit_module(struct conv *v, unsigned dims)
{
	put_in_front(&v->stride, dims, 1);
	put_in_front(&v->padding, dims, 0);
	put_in_front(&v->dilation, dims, 1);
	put_in_front(&v->output_padding, dims, 0);
}

/* Live recordings tell shapes; the rest is the module's, if it is one for convolutions. */
static bool conv_of_module(const struct operator_rule *r, const char *args, struct conv *to)
{
	const char *module = cost_find_key(args, "module conv");
	const char *same = module ? cost_find_key(module, "padding") : NULL;
	const char *transposed = module ? cost_find_key(module, "transposed") : NULL;
	const char *groups = module ? cost_find_key(module, "groups") : NULL;
	double value;
	if (!module || *module != '{')
		return false;
	*to = (struct conv){ .stride = module_list(module, "stride"),
		.padding = module_list(module, "padding"),
		.dilation = module_list(module, "dilation"),
		.output_padding = module_list(module, "output_padding"),
		.same = same && !strncmp(same, "\"same\"", 6),
		.transposed = transposed && cost_read_value(transposed, &value) && value > 0 };
	if (groups && cost_read_value(groups, &value))
		to->groups = value;
	return r->at.transposed != ALWAYS || to->transposed;
}

static double along(const struct shape *list, unsigned i)
{
	return list->dim[i < list->dims ? i : 0];
}

/* The output's length in one dimension; 0 for none. */
static double out_length(const struct conv *v, double in, double kernel, unsigned i)
{
	const double reach = along(&v->dilation, i) * (kernel - 1) + 1;
	const double step = fmax(along(&v->stride, i), 1), pad = along(&v->padding, i);
	if (v->transposed)
		return fmax((in - 1) * step - 2 * pad + reach + along(&v->output_padding, i), 0);
	if (v->same)
		return in;
	const double room = in + 2 * pad - reach;
	return room < 0 ? 0 : (double)(uint64_t)(room / step) + 1;
}

static double places_of(const struct shape *s)
{
	double all = s->dims ? s->dim[0] : 0;
	for (unsigned i = 2; i < s->dims; i++)
		all *= s->dim[i];
	return all;
}

static bool cost_conv(
	const struct operator_rule *r, const char *args, const struct inputs *in, struct cost *c)
{
	const struct shape *image = &in->shape[r->a], *weight = &in->shape[r->b];
	struct conv v;
	if (image->dims < 3 || image->dims != weight->dims)
		return false;
	if (!in->shapes_only)
		conv_of_arguments(r, in, &v);
	else if (!conv_of_module(r, args, &v))
		return false;
	if (!v.stride.dims || !v.dilation.dims || (!v.padding.dims && !v.same))
		return false;
	if (in->shapes_only)
		fit_module(&v, image->dims - 2);
	double out = image->dim[0];
	for (unsigned i = 0; i + 2 < image->dims; i++)
		out *= out_length(&v, image->dim[i + 2], weight->dim[i + 2], i);
	c->flops = 2 * (v.transposed ? places_of(image) : out) * cost_elements(weight);
	const double channels = v.transposed ? weight->dim[1] * v.groups : weight->dim[0];
	c->has_bytes &= channels > 0;
	add_bytes(c, in, r->a, cost_elements(image) + out * channels);
	add_bytes(c, in, r->b, cost_elements(weight));
	c->matrix = true;
	return true;
}

/*
 * Whether the weight's first dimension is the image's channels, not the output's.  If both are as
 * many, the larger of image and output tells: a convolution does not grow it but for its padding.
 */
static bool looks_transposed(
	const struct shape *gradient, const struct shape *image, const struct shape *weight)
{
	const bool as_image = image->dim[1] == weight->dim[0];
	const bool as_output = gradient->dim[1] == weight->dim[0];
	return as_image && as_output ? places_of(gradient) > places_of(image) : as_image;
}

/* A product for each gradient that is asked for. */
static bool cost_backward(const struct operator_rule *r, const struct inputs *in, struct cost *c)
{
	const struct shape *gradient = &in->shape[0], *image = &in->shape[r->a];
	const struct shape *weight = &in->shape[r->b], mask = argument(in, r->at.mask);
	const struct shape given = argument(in, r->at.transposed);
	if (image->dims < 3 || image->dims != weight->dims || gradient->dims != image->dims)
		return false;
	if (!in->shapes_only && (mask.dims != 3 || !given.dims))
		return false;
	const bool transposed =
		in->shapes_only ? looks_transposed(gradient, image, weight) : given.dim[0] > 0;
	const bool of_image = in->shapes_only || mask.dim[0] > 0;
	const bool of_weight = in->shapes_only || mask.dim[1] > 0;
	c->flops = 2 * places_of(transposed ? image : gradient) * cost_elements(weight) *
		   (of_image + of_weight);
	add_bytes(c, in, 0, cost_elements(gradient));
	add_bytes(c, in, r->a, cost_elements(image) * (of_image + of_weight));
	add_bytes(c, in, r->b, cost_elements(weight) * (of_image + of_weight));
	c->matrix = true;
	c->several = of_image && of_weight;
	return true;
}

/* How many keys a query looks at: all, or those up to its own place from the first or from the
 * last. */
enum causal { CAUSAL_NO, CAUSAL_FIRST, CAUSAL_LAST, CAUSAL_UNKNOWN };

static enum causal causal_of(const struct operator_rule *r, const struct inputs *in)
{
	const bool last = r->at.causal_end != 0;
	const struct shape given = argument(in, last ? r->at.causal_end : r->at.causal);
	if (!given.dims)
		return CAUSAL_UNKNOWN;
	if (given.dim[0] <= 0)
		return CAUSAL_NO;
	return last || given.dim[0] > 1 ? CAUSAL_LAST : CAUSAL_FIRST;
}

/* The pairs that may see each other, of `queries` queries and as many places in keys. */
static double pairs_of(enum causal causal, double queries, double keys)
{
	const double both = MIN(queries, keys), triangle = both * (both + 1) / 2;
	if (causal == CAUSAL_FIRST)
		return triangle + (queries - both) * keys;
	if (causal == CAUSAL_LAST)
		return triangle + both * (keys - both);
	return queries * keys;
}

/* Sequences of several lengths, one behind the other. */
struct ragged {
	double count, longest_query, longest_key;
};

static bool is_ragged(const struct operator_rule *r, const struct inputs *in)
{
	const uint8_t at = r->at.offsets;
	return at && is_tensor(in, at) && in->shape[at].dim[0] >= 2;
}

static struct ragged ragged_of(const struct operator_rule *r, const struct inputs *in)
{
	const struct shape queries = argument(in, r->at.longest);
	const struct shape keys = argument(in, (uint8_t)(r->at.longest + 1));
	return (struct ragged){ .count = in->shape[r->at.offsets].dim[0] - 1,
		.longest_query = queries.dims ? queries.dim[0] : 0,
		.longest_key = keys.dims ? keys.dim[0] : 0 };
}

/*
 * Pairs of all sequences together.  The lengths of each are in the memory of the device, and only
 * their sum and the longest are told: enough when the queries of all, or the keys of all, are as
 * many.  0: not known.
 */
static double ragged_pairs(const struct ragged *g, enum causal causal, double queries, double keys)
{
	const bool same_queries = g->count * g->longest_query == queries;
	const bool same_keys = g->count * g->longest_key == keys;
	if (same_queries && same_keys)
		return g->count * pairs_of(causal, g->longest_query, g->longest_key);
	if (causal == CAUSAL_FIRST || (causal == CAUSAL_LAST && g->longest_query != 1))
		return 0;
	return same_queries ? g->longest_query * keys : same_keys ? g->longest_key * queries : 0;
}

/* `at`: the dimension of lengths. */
static double pairs_in(
	const struct operator_rule *r, const struct inputs *in, enum causal causal, unsigned at)
{
	const double queries = in->shape[r->a].dim[at], keys = in->shape[r->b].dim[at];
	if (argument(in, r->at.window).dims)
		return 0;
	if (!is_ragged(r, in))
		return pairs_of(causal, queries, keys);
	const struct ragged g = ragged_of(r, in);
	return ragged_pairs(&g, causal, queries, keys);
}

static bool cost_attention(const struct operator_rule *r, const struct inputs *in, struct cost *c)
{
	const struct shape *q = &in->shape[r->a], *k = &in->shape[r->b];
	const bool ragged = is_ragged(r, in);
	const enum causal causal = causal_of(r, in);
	const double times = r->flops > 2 ? 2 : 1; /* backward: each has a gradient, as large */
	if (q->dims < 3 || k->dims != q->dims || !is_tensor(in, r->b + 1))
		return false;
	if (!ragged && q->dims != 4)
		return false;
	const unsigned at = ragged ? q->dims - 3 : r->at.length;
	const double depth = fmax(last(q, 1), 1), value = last(&in->shape[r->b + 1], 1);
	const double pairs = pairs_in(r, in, causal, at);
	c->flops =
		r->flops * pairs * cost_elements(q) / fmax(q->dim[at] * depth, 1) * (depth + value);
	c->at_most = causal == CAUSAL_UNKNOWN;
	add_bytes(c, in, r->a, times * (stored(in, r->a) + cost_elements(q) / depth * value));
	add_bytes(c, in, r->b, times * stored(in, r->b));
	add_bytes(c, in, r->b + 1, times * stored(in, r->b + 1));
	c->matrix = true;
	return true;
}

/* Broadcasting aligns the last dimensions; the larger of each counts. */
static void cost_map(const struct operator_rule *r, const struct inputs *in, struct cost *c)
{
	struct shape out = { 0 };
	unsigned like = r->a;
	for (unsigned i = 0; i <= r->b && i < in->count; i++) {
		const struct shape *s = &in->shape[i];
		if (!in->element[i].bytes && !s->dims)
			continue; /* a number, not a tensor */
		if (cost_elements(s) > cost_elements(&in->shape[like]))
			like = i;
		for (unsigned d = 1; d <= s->dims; d++)
			out.dim[DIMS - d] = fmax(out.dim[DIMS - d], last(s, d));
		out.dims = MAX(s->dims, out.dims);
		add_bytes(c, in, i, stored(in, i));
	}
	double all = 1;
	for (unsigned d = 1; d <= out.dims; d++)
		all *= out.dim[DIMS - d];
	c->flops = all * r->flops;
	add_bytes(c, in, like, all);
}

static void cost_pick(
	const struct operator_rule *r, const struct inputs *in, double each, struct cost *c)
{
	const double indices = cost_elements(&in->shape[r->b]);
	add_bytes(c, in, r->a, 2 * indices * each);
	add_bytes(c, in, r->b, stored(in, r->b));
	c->has_bytes &= !in->shapes_only; /* indices are not of the module's type */
	c->at_most = true;
}

static void cost_join(const struct inputs *in, struct cost *c)
{
	for (unsigned i = 0; i < in->count; i++)
		if (in->shape[i].dims)
			add_bytes(c, in, i, 2 * cost_elements(&in->shape[i]));
}

static bool apply(
	const struct operator_rule *r, const char *args, const struct inputs *in, struct cost *c)
{
	const double count = cost_elements(&in->shape[r->a]);
	switch (r->rule) {
	case RULE_PRODUCT:
		cost_product(r, in, c);
		return true;
	case RULE_LINEAR:
		cost_linear(r, in, c);
		return true;
	case RULE_CONV:
		return cost_conv(r, args, in, c);
	case RULE_BACKWARD:
		return cost_backward(r, in, c);
	case RULE_ATTENTION:
		return cost_attention(r, in, c);
	case RULE_MAP:
		cost_map(r, in, c);
		return true;
	case RULE_PICK:
		cost_pick(r, in, 1, c);
		return true;
	case RULE_LOOKUP:
		cost_pick(r, in, count / fmax(in->shape[r->a].dim[0], 1), c);
		return true;
	case RULE_JOIN:
		cost_join(in, c);
		return true;
	case RULE_COPY:
		add_bytes(c, in, r->b, stored(in, r->b));
		add_bytes(c, in, r->a, count);
		return true;
	case RULE_GEMM:
	case RULE_PACKED:
	case RULE_FILTER:
		return false; /* find_cost() */
	case RULE_REDUCE:
	case RULE_WRITE:
		add_bytes(c, in, r->a, count);
		break;
	case RULE_ROWS:
		add_bytes(c, in, r->a, 2 * count);
		break;
	}
	c->flops = count * r->flops;
	return true;
}

static bool read_count(const char *args, const char *key, double *ret_value)
{
	const char *p = cost_find_key(args, key);
	char *end;
	const double value = p ? strtod(p, &end) : -1;
	if (!p || end == p || !(value >= 0 && value < 1e15))
		return false;
	*ret_value = value;
	return true;
}

/* The text of a string, and its length; NULL when there is none. */
static const char *find_word(const char *args, const char *key, size_t *ret_n)
{
	const char *p = cost_find_key(args, key);
	const char *end = p && *p == '"' ? strchr(p + 1, '"') : NULL;
	if (!end)
		return NULL;
	*ret_n = (size_t)(end - p - 1);
	return p + 1;
}

static struct element find_element(const char *args, const char *key, struct element otherwise)
{
	size_t n;
	const char *word = find_word(args, key, &n);
	return word ? cost_element_of(word, n) : otherwise;
}

static bool is_complex(const char *args)
{
	size_t n = 0;
	const char *word = find_word(args, "type", &n);
	return word && n > 7 && !memcmp(word, "complex", 7);
}

/* The unit of products in single precision, if the call says it. */
static void find_unit(const char *args, struct element *e)
{
	static const char by[] = "float32_by_";
	size_t n = 0;
	const char *word = find_word(args, "compute", &n);
	if (!word || !e->has_unit || e->unit != GPU_FP32 || strncmp(word, by, sizeof by - 1) != 0)
		return;
	e->unit = strncmp(word + sizeof by - 1, "tf32", 4) ? GPU_FP16 : GPU_TF32;
}

static bool cost_gemm(
	const struct operator_rule *r, const char *args, struct inputs *in, struct cost *c)
{
	double m, n, k, batch = 1;
	if (!read_count(args, "m", &m) || !read_count(args, "n", &n) || !read_count(args, "k", &k))
		return false;
	if (cost_find_key(args, "batch") && !read_count(args, "batch", &batch))
		return false;
	in->element[0] = find_element(args, "type", (struct element){ 0 });
	in->element[1] = find_element(args, "type_b", in->element[0]);
	in->element[2] = find_element(args, "type_c", in->element[0]);
	c->flops = r->flops * m * n * k * batch * (is_complex(args) ? 4 : 1);
	add_bytes(c, in, 0, batch * m * k);
	add_bytes(c, in, 1, batch * k * n);
	add_bytes(c, in, 2, batch * m * n);
	c->has_bytes &= r->rule == RULE_GEMM;
	find_unit(args, &in->element[0]);
	c->matrix = true;
	return true;
}

static bool find_dims(const char *args, const char *key, struct shape *ret_shape)
{
	const char *p = cost_find_key(args, key);
	return p && *p == '[' && cost_read_numbers(p + 1, ret_shape) && ret_shape->dims;
}

static bool cost_filter(
	const struct operator_rule *r, const char *args, struct inputs *in, struct cost *c)
{
	struct shape *s = in->shape;
	if (!find_dims(args, "input", &s[0]) || !find_dims(args, "filter", &s[1]) ||
		!find_dims(args, "output", &s[2]))
		return false;
	in->element[0] = find_element(args, "type", (struct element){ 0 });
	c->flops = r->flops * cost_elements(&s[2]) * cost_elements(&s[1]) / fmax(s[1].dim[0], 1);
	add_bytes(c, in, 0, cost_elements(&s[0]) + cost_elements(&s[1]) + cost_elements(&s[2]));
	c->matrix = true;
	return true;
}

static bool is_product(enum rule rule)
{
	return rule == RULE_PRODUCT || rule == RULE_LINEAR || rule == RULE_CONV ||
	       rule == RULE_BACKWARD || rule == RULE_ATTENTION;
}

/* Under autocast what is no product has the type that its inputs happen to have; it is computed in
 * FP32, whichever that is. */
static void leave_types_open(struct inputs *in)
{
	for (unsigned i = 0; i < in->count; i++)
		in->element[i] =
			(struct element){ .has_unit = in->element[i].has_unit, .unit = GPU_FP32 };
}

static bool find_cost(
	const struct operator_rule *r, const char *args, struct inputs *in, struct cost *c)
{
	if (r->rule == RULE_GEMM || r->rule == RULE_PACKED)
		return cost_gemm(r, args, in, c);
	if (r->rule == RULE_FILTER)
		return cost_filter(r, args, in, c);
	if (!cost_read_inputs(args, in) || r->a >= in->count || r->b >= in->count)
		return false;
	if (in->cast && !is_product(r->rule))
		leave_types_open(in);
	return apply(r, args, in, c);
}

static int rule_order(const void *name, const void *rule)
{
	return strcmp(name, ((const struct operator_rule *)rule)->name);
}

bool cost_of(const char *operator, const char * args, struct cost *ret_cost)
{
	const struct operator_rule *r = bsearch(operator, rules, sizeof rules / sizeof rules[0],
		sizeof rules[0], rule_order);
	struct inputs in = { 0 };
	struct cost c = { .has_bytes = true };
	if (!r || !find_cost(r, args, &in, &c))
		return false;
	c.has_flops = c.flops > 0;
	c.has_bytes &= c.bytes > 0;
	c.has_unit = in.element[r->a].has_unit;
	c.unit = c.matrix || in.element[r->a].unit == GPU_FP64 ? in.element[r->a].unit : GPU_FP32;
	expect(c.unit < GPU_UNITS, "a unit is one of all");
	*ret_cost = c;
	return c.has_flops || c.has_bytes;
}

/* GPU_UNITS: by integers of 8 bits. */
static unsigned unit_bytes(enum gpu_unit unit)
{
	return unit == GPU_FP64                       ? 8
	       : unit == GPU_FP32 || unit == GPU_TF32 ? 4
	       : unit == GPU_FP16                     ? 2
						      : 1;
}

void cost_put_unit(struct cost *c, enum gpu_unit unit)
{
	expect(unit <= GPU_UNITS, "a unit is one of all, or of none whose peak is known");
	if (c->has_unit && unit_bytes(unit) < unit_bytes(c->unit))
		c->has_bytes = false;
	c->has_unit = unit < GPU_UNITS;
	c->unit = c->has_unit ? unit : GPU_FP32;
}

void cost_set_unit(struct cost *c, const struct predict_product *by)
{
	if (!by->has_unit || (by->unit == GPU_TF32 && c->has_unit && c->unit != GPU_FP32))
		return;
	cost_put_unit(c, by->unit);
	c->unit_by_name = true;
}

#define NOT_KNOWN (UINT32_MAX - 1) /* MAP_NONE is what was not asked yet */

uint32_t cost_table_find(struct cost_table *t, const char *name, const char *args)
{
	uint32_t *index = map_get(&t->map, MAP_KEY((uintptr_t)name, (uintptr_t)args));
	struct cost cost;
	if (*index == MAP_NONE) {
		const bool known = name && args && cost_of(name, args, &cost);
		if (known)
			*array_push(&t->v) = cost;
		*index = known ? (uint32_t)(t->v.n - 1) : NOT_KNOWN;
	}
	return *index == NOT_KNOWN ? COST_NONE : *index;
}

void cost_table_fini(struct cost_table *t)
{
	map_fini(&t->map);
	array_free(&t->v);
}
