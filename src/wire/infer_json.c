/*
 * Reads an inference request as Triton's REST speaks it: see infer.h.
 *
 * A pull scanner over the body. Numbers go straight into the tensor, and strings lose their escapes
 * where they stand, as no escape is shorter than what it means. `data` in front of `shape` or
 * `datatype` is skipped and read when the input's object has ended. Differences from Triton:
 * integers out of range and keys that stand twice are refused, and so is text that is not UTF-8.
 */
#include "wire/infer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/digit.h"
#include "base/text.h"
#include "wire/infer_param.h"
#include "wire/plain.h"
#include "wire/real.h"

#define DEPTH_MOST 16

struct scan {
	char *start, *at, *end;
	struct infer_request *r;
	struct error *err;
	int depth;
	size_t place[INFER_TENSORS]; /* + 1: where an input's values are in the memory */
	uint64_t binary;             /* bit i: input i lies behind the JSON */
	uint64_t chosen;             /* bit i: output i says how it comes */
};

static int wrong(const struct scan *s, const char *what)
{
	return error_set(s->err, -EINVAL, "the request's JSON is wrong at byte %zu: %s",
		(size_t)(s->at - s->start), what);
}

static int wrong_for(const struct scan *s, struct slice name, const char *what)
{
	return error_set(s->err, -EINVAL, "the request's `%.*s` %s", name.n < 64 ? (int)name.n : 64,
		name.at ? name.at : "", what);
}

/* The next byte that is no blank; 0 at the end, and where a NUL stands. */
static char peek(struct scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
		s->at++;
	return s->at < s->end ? *s->at : 0;
}

static bool skip_word(struct scan *s, const char *word, size_t n)
{
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}
#define SKIP(s, word) skip_word(s, word, sizeof word - 1)

static bool hex4(const struct scan *s, const char *at, unsigned *ret)
{
	unsigned value = 0;
	if (s->end - at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const int digit = hex_digit(at[i]);
		if (digit < 0)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	*ret = value;
	return true;
}

/* At a backslash: the character goes to out (4 bytes), its bytes are returned, 0: malformed. */
static size_t unescape(struct scan *s, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *plain = s->end - s->at > 1 && s->at[1] ? strchr(from, s->at[1]) : NULL;
	unsigned c, low;
	if (plain) {
		s->at += 2;
		*out = to[plain - from];
		return 1;
	}
	if (s->end - s->at < 2 || s->at[1] != 'u' || !hex4(s, s->at + 2, &c))
		return 0;
	s->at += 6;
	if (c >> 11 != 0x1b)
		return utf8_put(out, c);
	if (c >= 0xdc00 || s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u' ||
		!hex4(s, s->at + 2, &low) || low >> 10 != 0x37)
		return 0; /* half of a pair */
	s->at += 6;
	return utf8_put(out, 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff));
}

/* The rest of a string, from its first character on that is not plain. */
static int string_rest(struct scan *s, char *from, struct slice *ret)
{
	char *out = s->at;
	while (s->at < s->end && *s->at != '"') {
		const unsigned char c = (unsigned char)*s->at;
		char text[4];
		size_t n = 1;
		const char *source = s->at;
		if (c == '\\') {
			n = unescape(s, text);
			source = text;
		} else {
			if (c >= 0x80)
				n = utf8_length(
					(const unsigned char *)s->at, (size_t)(s->end - s->at));
			s->at += n;
		}
		if (!n || c < 0x20)
			return wrong(s,
				"this does not belong into a string: it has to be UTF-8, with "
				"control characters as escapes");
		if (ret && source != out)
			memmove(out, source, n);
		out += n;
	}
	if (s->at == s->end)
		return wrong(s, "a string does not end");
	s->at++;
	if (ret)
		*ret = (struct slice){ from, (size_t)(out - from) };
	return 0;
}

/* A string; ret NULL: it is checked, but keeps its escapes. */
static int string(struct scan *s, struct slice *ret)
{
	if (peek(s) != '"')
		return wrong(s, "a string belongs here");
	char *const from = s->at + 1, *const at = (char *)plain_end(from, s->end);
	s->at = at;
	if (at == s->end || *at != '"')
		return string_rest(s, from, ret);
	s->at++;
	if (ret)
		*ret = (struct slice){ from, (size_t)(at - from) };
	return 0;
}

/* Goes into an array or object at the first call, then from member to member. 1: at a member;
 * 0: it has ended. */
static int next(struct scan *s, bool *inside, char open, char close)
{
	const char c = peek(s);
	if (!*inside) {
		if (c != open)
			return wrong(s,
				open == '{' ? "an object belongs here" : "an array belongs here");
		if (++s->depth > DEPTH_MOST)
			return wrong(s, "it is nested too deeply");
		*inside = true;
		s->at++;
		if (peek(s) != close)
			return 1;
	} else if (c == ',') {
		s->at++;
		return 1;
	} else if (c != close) {
		return wrong(s, "a comma or the end of the array or object belongs here");
	}
	s->at++;
	s->depth--;
	return 0;
}

static int next_element(struct scan *s, bool *inside)
{
	return next(s, inside, '[', ']');
}

/* The key of the next member; its value follows. */
static int next_key(struct scan *s, bool *inside, struct slice *ret)
{
	int rc = next(s, inside, '{', '}');
	if (rc <= 0)
		return rc;
	rc = string(s, ret);
	if (rc)
		return rc;
	if (peek(s) != ':')
		return wrong(s, "a colon belongs here");
	s->at++;
	return 1;
}

/* The place of a key among those that are known, -1: it is another, or its value is null, which
 * some clients send for what they leave out; or -EINVAL: it stands twice. */
static int known_key(
	struct scan *s, struct slice key, const struct slice *keys, int n, unsigned *seen, int *ret)
{
	*ret = -1;
	for (int i = 0; i < n && *ret < 0; i++)
		if (slice_equal(key, keys[i]))
			*ret = i;
	if (peek(s) == 'n')
		*ret = -1;
	if (*ret >= 0 && *seen & 1u << *ret)
		return wrong_for(s, key, "stands twice in one object");
	if (*ret >= 0)
		*seen |= 1u << *ret;
	return 0;
}

#define KEYS(table) table, (int)(sizeof table / sizeof *table)

static int number(struct scan *s, struct decimal *ret)
{
	char *after = (char *)decimal_read((peek(s), s->at), s->end, ret);
	if (!after)
		return wrong(s, "a number belongs here");
	s->at = after;
	return 0;
}

static int skip_value(struct scan *s)
{
	bool inside = false;
	struct decimal d;
	int rc;
	switch (peek(s)) {
	case '"':
		return string(s, NULL);
	case '[':
		while ((rc = next_element(s, &inside)) > 0)
			if ((rc = skip_value(s)))
				break;
		return rc;
	case '{':
		while ((rc = next(s, &inside, '{', '}')) > 0) {
			if ((rc = string(s, NULL)))
				break;
			if (peek(s) != ':')
				return wrong(s, "a colon belongs here");
			s->at++;
			if ((rc = skip_value(s)))
				break;
		}
		return rc;
	default:
		if (SKIP(s, "true") || SKIP(s, "false") || SKIP(s, "null") || SKIP(s, "NaN") ||
			SKIP(s, "Infinity") || SKIP(s, "-Infinity") || SKIP(s, "Inf") ||
			SKIP(s, "-Inf"))
			return 0;
		return number(s, &d);
	}
}

static int integer(struct scan *s, uint64_t below_zero, uint64_t most, uint64_t *ret)
{
	const char *at = (peek(s), s->at), *end = s->end;
	const bool negative = at < end && *at == '-';
	const char *from = at += negative;
	uint64_t value = 0;
	bool fits = true;
	for (; at < end && (unsigned char)(*at - '0') < 10; at++)
		fits &= !__builtin_mul_overflow(value, 10, &value) &&
			!__builtin_add_overflow(value, (unsigned)(*at - '0'), &value);
	if (at == from || at == end || (*from == '0' && at - from > 1) || *at == '.' ||
		(*at | 32) == 'e')
		return wrong(s, "an integer belongs here");
	if (!fits || value > (negative ? below_zero : most))
		return wrong(s, "the integer is out of the range of its type");
	s->at += at - s->at;
	*ret = negative ? -value : value;
	return 0;
}

/* Triton reads the words that it prints, and Inf. */
static int real(struct scan *s, bool single, double *ret)
{
	struct decimal d;
	const char c = peek(s);
	if (c != '-' && (unsigned char)(c - '0') > 9) {
		*ret = SKIP(s, "NaN")                          ? (double)NAN
		       : SKIP(s, "Infinity") || SKIP(s, "Inf") ? (double)INFINITY
							       : 0;
		return *ret == 0 ? wrong(s, "a number belongs here") : 0;
	}
	if (SKIP(s, "-Inf")) {
		SKIP(s, "inity");
		*ret = -(double)INFINITY;
		return 0;
	}
	const int rc = number(s, &d);
	if (rc)
		return rc;
	*ret = decimal_value(&d, single);
	return isinf(*ret) ? wrong(s, "the number is too large for its type") : 0;
}

/* The place for values. */
struct values {
	enum dtype type;
	unsigned bytes; /* of an element */
	uint64_t left;  /* elements */
	char *out;
	struct buf *memory; /* BYTES */
};

static int value_read(struct scan *s, struct values *v)
{
	uint64_t value;
	double number = 0;
	float single;
	struct slice text;
	int rc = 0;
	if (!v->left--)
		return wrong(s, "the data has more elements than the shape");
	switch (v->type) {
	case DTYPE_BOOL:
		*v->out = (char)(peek(s) == 't');
		if (!SKIP(s, "true") && !SKIP(s, "false"))
			return wrong(s, "true or false belongs here");
		break;
	case DTYPE_FP32:
		rc = real(s, true, &number);
		single = (float)number;
		memcpy(v->out, &single, sizeof single);
		break;
	case DTYPE_FP64:
		rc = real(s, false, &number);
		memcpy(v->out, &number, sizeof number);
		break;
	case DTYPE_BYTES:
		rc = string(s, &text);
		if (rc)
			return rc;
		if (text.n > UINT32_MAX)
			return wrong(s, "an element of BYTES has 4 GiB and more");
		buf_put(v->memory, &(uint32_t){ (uint32_t)text.n }, 4);
		buf_put_slice(v->memory, text);
		break;
	case DTYPE_UINT8:
	case DTYPE_UINT16:
	case DTYPE_UINT32:
	case DTYPE_UINT64:
		rc = integer(s, 0, UINT64_MAX >> (64 - 8 * v->bytes), &value);
		memcpy(v->out, &value, v->bytes);
		break;
	default: {
		const uint64_t most = UINT64_MAX >> (65 - 8 * v->bytes);
		rc = integer(s, most + 1, most, &value);
		memcpy(v->out, &value, v->bytes);
	}
	}
	v->out += v->bytes;
	return rc;
}

/* Nested as the shape, flat, or in between. */
static int values_read(struct scan *s, struct values *v)
{
	bool inside = false;
	int rc;
	while ((rc = next_element(s, &inside)) > 0) {
		rc = peek(s) == '[' ? values_read(s, v) : value_read(s, v);
		if (rc)
			return rc;
	}
	return rc;
}

static int data_read(struct scan *s, struct tensor *t, size_t *ret_place)
{
	struct buf *memory = &s->r->memory;
	struct values v = { t->type, dtype_rows[t->type].bytes, .memory = memory };
	if (t->type == DTYPE_FP16 || t->type == DTYPE_BF16)
		return wrong_for(s, t->name,
			"is FP16 or BF16, which JSON can't hold: send it as "
			"binary data");
	if (shape_elements(&t->shape, &v.left) || v.left > (uint64_t)(s->end - s->at))
		return wrong(s, "the shape has more elements than the data");
	memset(buf_more(memory, 8), 0, 8);
	memory->n = (memory->n + 7) & ~(size_t)7;
	const size_t place = memory->n;
	v.out = buf_more(memory, v.left * v.bytes);
	memory->n += v.left * v.bytes;
	const int rc = values_read(s, &v);
	if (rc)
		return rc;
	if (v.left)
		return wrong(s, "the data has fewer elements than the shape");
	t->bytes = memory->n - place;
	*ret_place = place + 1;
	return 0;
}

static int shape_read(struct scan *s, struct shape *ret)
{
	bool inside = false;
	uint64_t size;
	int rc;
	while ((rc = next_element(s, &inside)) > 0) {
		if (ret->n == SHAPE_DIMS)
			return wrong(s, "a shape has more than 8 dimensions");
		if ((rc = integer(s, 0, INT64_MAX, &size)))
			return rc;
		ret->dims[ret->n++] = (int64_t)size;
	}
	return rc;
}

static int param_value(struct scan *s, struct param *p)
{
	struct decimal d;
	const char c = peek(s);
	if (c == '"') {
		p->kind = PARAM_TEXT;
		return string(s, &p->s);
	}
	if (c == 't' || c == 'f') {
		p->kind = PARAM_BOOL;
		p->b = c == 't';
		return SKIP(s, "true") || SKIP(s, "false") ? 0
							   : wrong(s, "true or false belongs here");
	}
	if (c == '{' || c == '[' || c == 'n')
		return wrong_for(s, p->name, "is neither a string nor a number nor true or false");
	char *from = s->at;
	const int rc = number(s, &d);
	if (rc)
		return rc;
	if (d.integer) {
		s->at = from;
		p->kind = d.negative ? PARAM_INT : PARAM_UINT;
		const int e = integer(s, 1ull << 63, UINT64_MAX, &p->u);
		if (!e && p->u <= INT64_MAX)
			p->kind = PARAM_INT;
		return e;
	}
	p->kind = PARAM_REAL;
	p->d = decimal_value(&d, false);
	return isinf(p->d) ? wrong_for(s, p->name, "is too large a number") : 0;
}

/* The members of `parameters`, each taken for the request, or the input or output that is read. */
static int params_read(struct scan *s, int (*take)(struct scan *, const struct param *))
{
	struct slice seen[INFER_PARAMS];
	bool inside = false;
	struct param p;
	int n = 0, rc;
	while ((rc = next_key(s, &inside, &p.name)) > 0) {
		for (int i = 0; i < n; i++)
			if (slice_equal(p.name, seen[i]))
				return wrong_for(s, p.name, "is a parameter that stands twice");
		if (n == INFER_PARAMS)
			return wrong(s, "there are more than 32 parameters");
		seen[n++] = p.name;
		if ((rc = param_value(s, &p)) || (rc = take(s, &p)))
			return rc;
	}
	return rc;
}

static int take_request_param(struct scan *s, const struct param *p)
{
	return infer_request_param(s->r, p, s->err);
}

static int take_input_param(struct scan *s, const struct param *p)
{
	struct infer_input *in = &s->r->input[s->r->inputs];
	if (!slice_is(p->name, "binary_data_size"))
		return infer_input_param(in, p, s->err);
	if (p->kind != PARAM_UINT && (p->kind != PARAM_INT || p->i < 0))
		return wrong_for(s, p->name, "is not a number of bytes");
	s->binary |= 1ull << s->r->inputs;
	in->tensor.bytes = (size_t)p->u;
	return 0;
}

static int take_output_param(struct scan *s, const struct param *p)
{
	if (slice_is(p->name, "binary_data"))
		s->chosen |= 1ull << s->r->outputs;
	return infer_output_param(&s->r->output[s->r->outputs], p, s->err);
}

/* Values, their place behind the JSON, or shared memory: one of them. */
static int input_check(
	struct scan *s, const struct tensor *t, unsigned seen, bool data, bool binary, bool region)
{
	if (!t->name.at)
		return wrong(s, "an input has no `name`");
	if (!t->type || !(seen & 2))
		return wrong_for(s, t->name, "is an input without `datatype` or `shape`");
	if (data + binary + region != 1)
		return wrong_for(s, t->name,
			"is an input with none or several of `data`, `binary_data_size` and "
			"`shared_memory_region`: send one");
	for (unsigned i = 0; i < s->r->inputs; i++)
		if (slice_equal(t->name, s->r->input[i].tensor.name))
			return wrong_for(s, t->name, "is an input that stands twice");
	return 0;
}

static int input_read(struct scan *s)
{
	static const struct slice keys[] = { SLICE("name"), SLICE("shape"), SLICE("datatype"),
		SLICE("data"), SLICE("parameters") };
	struct infer_request *r = s->r;
	unsigned seen = 0;
	bool inside = false;
	char *later = NULL;
	struct slice key, type;
	int which, rc;
	if (r->inputs == INFER_TENSORS)
		return wrong(s, "the request has more than 64 inputs");
	struct infer_input *in = &r->input[r->inputs];
	struct tensor *t = &in->tensor;
	*in = (struct infer_input){ 0 };
	while ((rc = next_key(s, &inside, &key)) > 0) {
		if ((rc = known_key(s, key, KEYS(keys), &seen, &which)))
			return rc;
		switch (which) {
		case 0:
			rc = string(s, &t->name);
			break;
		case 1:
			rc = shape_read(s, &t->shape);
			break;
		case 2:
			rc = string(s, &type);
			if (!rc && !(t->type = dtype_find(type)))
				return wrong_for(s, type, "is no datatype");
			break;
		case 3:
			if (t->type && seen & 2) {
				rc = data_read(s, t, &s->place[r->inputs]);
				break;
			}
			peek(s);
			later = s->at;
			rc = skip_value(s);
			break;
		case 4:
			rc = params_read(s, take_input_param);
			break;
		default:
			rc = skip_value(s);
		}
		if (rc)
			return rc;
	}
	const bool binary = s->binary >> r->inputs & 1;
	if (rc || (rc = input_check(s, t, seen, seen & 8, binary, in->region.at)))
		return rc;
	if (later) {
		char *after = s->at;
		s->at = later;
		if ((rc = data_read(s, t, &s->place[r->inputs])))
			return rc;
		s->at = after;
	}
	r->inputs++;
	return 0;
}

static int output_read(struct scan *s)
{
	static const struct slice keys[] = { SLICE("name"), SLICE("parameters") };
	struct infer_request *r = s->r;
	unsigned seen = 0;
	bool inside = false;
	struct slice key;
	int which, rc;
	if (r->outputs == INFER_TENSORS)
		return wrong(s, "the request has more than 64 outputs");
	struct infer_output *out = &r->output[r->outputs];
	*out = (struct infer_output){ 0 };
	while ((rc = next_key(s, &inside, &key)) > 0) {
		if (!(rc = known_key(s, key, KEYS(keys), &seen, &which)))
			rc = which == 0   ? string(s, &out->name)
			     : which == 1 ? params_read(s, take_output_param)
					  : skip_value(s);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	if (!out->name.at)
		return wrong(s, "an output has no `name`");
	if (out->region.at && (out->classes || out->binary))
		return wrong_for(s, out->name,
			"is an output in shared memory, which goes neither with "
			"`classification` nor with `binary_data`");
	for (unsigned i = 0; i < r->outputs; i++)
		if (slice_equal(out->name, r->output[i].name))
			return wrong_for(s, out->name, "is an output that stands twice");
	r->outputs++;
	return 0;
}

static int list_read(struct scan *s, int (*read)(struct scan *))
{
	bool inside = false;
	int rc;
	while ((rc = next_element(s, &inside)) > 0)
		if ((rc = read(s)))
			break;
	return rc;
}

static int request_read(struct scan *s)
{
	static const struct slice keys[] = { SLICE("id"), SLICE("inputs"), SLICE("outputs"),
		SLICE("parameters") };
	unsigned seen = 0;
	bool inside = false;
	struct slice key;
	int which, rc;
	while ((rc = next_key(s, &inside, &key)) > 0) {
		if (!(rc = known_key(s, key, KEYS(keys), &seen, &which)))
			rc = which == 0   ? string(s, &s->r->id)
			     : which == 1 ? list_read(s, input_read)
			     : which == 2 ? list_read(s, output_read)
			     : which == 3 ? params_read(s, take_request_param)
					  : skip_value(s);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	peek(s);
	if (s->at < s->end)
		return wrong(s,
			"something follows the request's object. Binary tensors need the header Inference-Header-Content-Length");
	return seen & 2 ? 0 : wrong(s, "the request has no `inputs`");
}

/* Values that were JSON are in the memory, which does not move any more; others behind the JSON. */
static int data_place(struct scan *s, char *at, size_t left)
{
	struct infer_request *r = s->r;
	for (unsigned i = 0; i < r->inputs; i++) {
		struct tensor *t = &r->input[i].tensor;
		if (s->place[i])
			t->data = r->memory.v + s->place[i] - 1;
		if (!(s->binary >> i & 1))
			continue;
		if (t->bytes > left)
			return error_set(s->err, -EINVAL,
				"the input `%.*s` has a binary_data_size of %zu, and only %zu bytes "
				"are left behind the JSON",
				SLICE_ARG(t->name), t->bytes, left);
		t->data = at;
		at += t->bytes;
		left -= t->bytes;
		const int rc = tensor_check(t, s->err);
		if (rc)
			return rc;
	}
	for (unsigned i = 0; i < r->outputs; i++)
		if (!(s->chosen >> i & 1) && !r->output[i].region.at)
			r->output[i].binary = r->binary_output;
	return left ? error_set(s->err, -EINVAL,
			      "the request's body has %zu bytes more than its JSON and its "
			      "binary_data_size say",
			      left)
		    : 0;
}

int infer_json_read(
	struct infer_request *r, char *body, size_t n, size_t infer_length, struct error *err)
{
	if (infer_length > n)
		return error_set(err, -EINVAL,
			"the request's Inference-Header-Content-Length is %zu, and its body has %zu "
			"bytes",
			infer_length, n);
	if (!infer_length) {
		r->raw = r->binary_output = true;
		r->inputs = 1;
		r->input[0] = (struct infer_input){ .tensor = { .data = body, .bytes = n } };
		return 0;
	}
	struct scan s = {
		.start = body, .at = body, .end = body + infer_length, .r = r, .err = err
	};
	const int rc = request_read(&s);
	return rc ? rc : data_place(&s, body + infer_length, n - infer_length);
}
