/* Parses the shapes and types of an operator's inputs. */
#include "model/cost_inputs.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

const char *cost_find_key(const char *args, const char *key)
{
	const size_t n = strlen(key);
	for (const char *p = args; (p = strchr(p, '"')); p++) {
		if (strncmp(p + 1, key, n) != 0 || p[n + 1] != '"')
			continue;
		p += n + 1;
		const char *behind = skip_blanks(p + 1);
		if (*behind == ':')
			return skip_blanks(behind + 1);
	}
	return NULL;
}

double cost_elements(const struct shape *s)
{
	double all = 1;
	for (unsigned i = 0; i < s->dims; i++)
		all *= s->dim[i];
	return all;
}

const char *cost_read_value(const char *p, double *ret_value)
{
	static const struct {
		const char *word;
		double value;
	} truths[] = { { "True", 1 }, { "true", 1 }, { "False", 0 }, { "false", 0 } };
	for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
		const size_t n = strlen(truths[i].word);
		if (strncmp(p, truths[i].word, n) != 0)
			continue;
		*ret_value = truths[i].value;
		return p + n;
	}
	char *end;
	*ret_value = strtod(p, &end);
	return end > p && *ret_value >= 0 && *ret_value < 1e15 ? end : NULL;
}

const char *cost_read_numbers(const char *p, struct shape *to)
{
	*to = (struct shape){ 0 };
	for (p = skip_blanks(p); *p != ']'; p = skip_blanks(p)) {
		double value;
		const char *end = cost_read_value(p, &value);
		if (!end || to->dims == DIMS)
			return NULL;
		to->dim[to->dims++] = value;
		p = skip_blanks(end);
		if (*p == ',')
			p++;
		else if (*p != ']')
			return NULL;
	}
	return p + 1;
}

/* [[1], [8, 64]] after its first bracket: the elements of all. */
static const char *read_list(const char *p, struct shape *to)
{
	double all = 0;
	for (p = skip_blanks(p); *p == '['; p = skip_blanks(p)) {
		p = cost_read_numbers(p + 1, to);
		if (!p)
			return NULL;
		all += cost_elements(to);
		p = skip_blanks(p);
		p += *p == ',';
	}
	*to = (struct shape){ .dims = 1, .dim = { all }, .list = true };
	return *p == ']' ? p + 1 : NULL;
}

/* [[8, 256], [], [[1], [8, 64]]], at most INPUTS: how many; 0 when it is something else. */
static unsigned read_shapes(const char *p, struct shape *shapes)
{
	unsigned count = 0;
	if (!p || *p != '[')
		return 0;
	for (p = skip_blanks(p + 1); *p == '[' && count < INPUTS; p = skip_blanks(p)) {
		const char *inner = skip_blanks(p + 1);
		struct shape *to = &shapes[count];
		p = *inner == '[' ? read_list(inner, to) : cost_read_numbers(inner, to);
		if (!p)
			return 0;
		count++;
		p = skip_blanks(p);
		p += *p == ',';
	}
	return count;
}

struct element cost_element_of(const char *word, size_t n)
{
	static const struct {
		const char *word;
		struct element element;
	} known[] = {
		{ "float", { 4, true, GPU_FP32 } },
		{ "double", { 8, true, GPU_FP64 } },
		{ "c10::Half", { 2, true, GPU_FP16 } },
		{ "c10::BFloat16", { 2, true, GPU_FP16 } },
		{ "c10::Float8_e4m3fn", { 1, true, GPU_FP8 } },
		{ "c10::Float8_e5m2", { 1, true, GPU_FP8 } },
		{ "float16", { 2, true, GPU_FP16 } },
		{ "bfloat16", { 2, true, GPU_FP16 } },
		{ "float32", { 4, true, GPU_FP32 } },
		{ "float64", { 8, true, GPU_FP64 } },
		{ "complex64", { 8, true, GPU_FP32 } },
		{ "complex128", { 16, true, GPU_FP64 } },
		{ "float8_e4m3", { 1, true, GPU_FP8 } },
		{ "float8_e5m2", { 1, true, GPU_FP8 } },
		{ "int8", { 1, false, 0 } },
		{ "uint8", { 1, false, 0 } },
		{ "int32", { 4, false, 0 } },
		{ "int", { 4, false, 0 } },
		{ "long int", { 8, false, 0 } },
		{ "short int", { 2, false, 0 } },
		{ "short", { 2, false, 0 } },
		{ "signed char", { 1, false, 0 } },
		{ "unsigned char", { 1, false, 0 } },
		{ "bool", { 1, false, 0 } },
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strlen(known[i].word) == n && !memcmp(known[i].word, word, n))
			return known[i].element;
	return (struct element){ 0 };
}

/* The strings of an array, one call each; escapes stand as they are. */
static void each_string(const char *p, struct inputs *in,
	void (*take)(struct inputs *in, unsigned i, const char *text, size_t n))
{
	if (!p || *p != '[')
		return;
	p = skip_blanks(p + 1);
	for (unsigned i = 0; *p == '"' && i < INPUTS; i++) {
		const char *end = p + 1;
		while (*end && *end != '"')
			end += *end == '\\' && end[1] ? 2 : 1;
		if (!*end)
			return;
		take(in, i, p + 1, (size_t)(end - p - 1));
		p = skip_blanks(end + 1);
		p = skip_blanks(p + (*p == ','));
	}
}

static void take_type(struct inputs *in, unsigned i, const char *text, size_t n)
{
	in->element[i] = cost_element_of(text, n);
}

static void take_concrete(struct inputs *in, unsigned i, const char *text, size_t n)
{
	struct shape *to = &in->concrete[i];
	if (n && *text == '[' && !cost_read_numbers(text + 1, to))
		to->dims = 0;
	if (n && *text != '[' && cost_read_value(text, &to->dim[0]) == text + n)
		to->dims = 1;
}

/*
 * If types are not known: tensors are of the type of the module that the operator runs in, or under
 * autocast, which leaves FP64 as it is, of the type that autocast gives products.
 */
static void take_module_type(struct inputs *in, const char *args)
{
	const char *own = cost_find_key(args, "module dtype");
	const char *cast = cost_find_key(args, "module autocast");
	in->cast = cast && (!own || strncmp(own, "\"float64\"", 9) != 0);
	const char *p = in->cast ? cast : own;
	const char *end = p && *p == '"' ? strchr(p + 1, '"') : NULL;
	for (unsigned i = 0; end && i < in->count; i++)
		if (in->shape[i].dims)
			take_type(in, i, p + 1, (size_t)(end - p - 1));
}

bool cost_read_inputs(const char *args, struct inputs *in)
{
	in->count = read_shapes(cost_find_key(args, "Input Dims"), in->shape);
	if (!in->count)
		return false;
	if (read_shapes(cost_find_key(args, "Input Strides"), in->stride) != in->count)
		memset(in->stride, 0, sizeof in->stride);
	const char *types = cost_find_key(args, "Input type");
	if (types)
		each_string(types, in, take_type);
	else
		take_module_type(in, args);
	in->shapes_only = !types;
	each_string(cost_find_key(args, "Concrete Inputs"), in, take_concrete);
	return true;
}
