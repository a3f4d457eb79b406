/* Prints an inference answer as Triton's REST speaks it: see infer.h. */
#include "wire/infer.h"

#include <errno.h>

#include "base/digit.h"
#include "base/text.h"
#include "wire/plain.h"
#include "wire/real.h"

#define PUT(b, literal) buf_put(b, literal, sizeof literal - 1)

/* false: it is not UTF-8. */
static bool put_string(struct buf *b, struct slice s)
{
	static const char escapes[] = "btn_fr";
	PUT(b, "\"");
	for (const char *at = s.at, *end = s.at + s.n; at < end;) {
		const char *plain = plain_end(at, end);
		buf_put(b, at, (size_t)(plain - at));
		at = plain;
		if (at == end)
			break;
		const unsigned char c = (unsigned char)*at;
		const size_t n = utf8_length((const unsigned char *)at, (size_t)(end - at));
		if (!n)
			return false;
		if (c >= 0x80)
			buf_put(b, at, n);
		else if (c >= 0x20)
			buf_put(b, (char[]){ '\\', (char)c }, 2);
		else if (c >= 8 && c <= 13 && c != 11)
			buf_put(b, (char[]){ '\\', escapes[c - 8] }, 2);
		else
			buf_printf(b, "\\u%04x", c);
		at += n;
	}
	PUT(b, "\"");
	return true;
}

static bool put_key(struct buf *b, const char *key, size_t n, struct slice value)
{
	buf_put(b, key, n);
	return put_string(b, value);
}
#define PUT_KEY(b, key, value) put_key(b, key, sizeof key - 1, value)

static int put_strings(struct buf *b, const struct tensor *t, struct error *err)
{
	const char *at = t->data, *end = at + t->bytes;
	for (uint32_t n; at < end; at += 4 + n) {
		if (at != t->data)
			PUT(b, ",");
		memcpy(&n, at, 4);
		if (!put_string(b, (struct slice){ at + 4, n }))
			return error_set(err, -EINVAL,
				"the output `%.*s` has bytes that are not UTF-8, which JSON can't "
				"hold: ask for it with binary_data",
				SLICE_ARG(t->name));
	}
	return 0;
}

static size_t put_u64(char *out, uint64_t value)
{
	char digits[20], *const end = digits + sizeof digits;
	const char *at = digits_before(end, value, 10);
	const size_t n = (size_t)(end - at);
	memcpy(out, at, n);
	return n;
}

static size_t put_i64(char *out, int64_t value)
{
	*out = '-';
	return value < 0 ? 1 + put_u64(out + 1, -(uint64_t)value) : put_u64(out, (uint64_t)value);
}

static size_t put_value(char *out, enum dtype type, const char *from)
{
	uint64_t u = 0;
	int32_t i32;
	int16_t i16;
	float single;
	double real;
	memcpy(&u, from, dtype_rows[type].bytes);
	switch (type) {
	case DTYPE_BOOL:
		memcpy(out, u ? "true" : "false", 5);
		return u ? 4 : 5;
	case DTYPE_INT8:
		return put_i64(out, (int8_t)u);
	case DTYPE_INT16:
		memcpy(&i16, from, sizeof i16);
		return put_i64(out, i16);
	case DTYPE_INT32:
		memcpy(&i32, from, sizeof i32);
		return put_i64(out, i32);
	case DTYPE_INT64:
		return put_i64(out, (int64_t)u);
	case DTYPE_FP32:
		memcpy(&single, from, sizeof single);
		return real_put(out, (double)single, true);
	case DTYPE_FP64:
		memcpy(&real, from, sizeof real);
		return real_put(out, real, false);
	default:
		return put_u64(out, u);
	}
}

static void put_numbers(struct buf *b, const struct tensor *t)
{
	const unsigned bytes = dtype_rows[t->type].bytes;
	const char *from = t->data;
	for (size_t left = t->bytes / bytes; left;) {
		const size_t some = MIN(left, 64);
		char *out = buf_more(b, some * (REAL_MOST + 1)), *at = out;
		for (size_t i = 0; i < some; i++, from += bytes) {
			at += put_value(at, t->type, from);
			*at++ = ',';
		}
		b->n += (size_t)(at - out);
		left -= some;
	}
	b->n -= t->bytes > 0; /* the last comma */
}

static int put_data(struct buf *b, const struct tensor *t, struct error *err)
{
	if (t->type == DTYPE_FP16 || t->type == DTYPE_BF16)
		return error_set(err, -EINVAL,
			"the output `%.*s` is %s, which JSON can't hold: ask for it with "
			"binary_data",
			SLICE_ARG(t->name), dtype_rows[t->type].name);
	if (tensor_check(t, err))
		return -EIO;
	PUT(b, ",\"data\":[");
	const int rc = t->type == DTYPE_BYTES ? put_strings(b, t, err) : (put_numbers(b, t), 0);
	PUT(b, "]");
	return rc;
}

static int put_output(struct buf *b, const struct tensor *t, bool binary, struct error *err)
{
	int rc = 0;
	if (!PUT_KEY(b, "{\"name\":", t->name))
		return error_set(err, -EINVAL, "the name of an output is not UTF-8");
	PUT(b, ",\"datatype\":\"");
	buf_put_text(b, dtype_rows[t->type].name);
	PUT(b, "\",\"shape\":");
	shape_put(b, &t->shape);
	if (t->data || !t->bytes) {
		if (binary) {
			PUT(b, ",\"parameters\":{\"binary_data_size\":");
			buf_u64(b, t->bytes);
			PUT(b, "}");
		} else {
			rc = put_data(b, t, err);
		}
	}
	PUT(b, "}");
	return rc;
}

static bool put_param(struct buf *b, const struct param *p)
{
	if (!put_string(b, p->name))
		return false;
	PUT(b, ":");
	switch (p->kind) {
	case PARAM_BOOL:
		buf_put_text(b, p->b ? "true" : "false");
		break;
	case PARAM_INT:
		buf_i64(b, p->i);
		break;
	case PARAM_UINT:
		buf_u64(b, p->u);
		break;
	case PARAM_REAL:
		b->n += real_put(buf_more(b, REAL_MOST), p->d, false);
		break;
	default:
		return put_string(b, p->s);
	}
	return true;
}

static int put_json(struct buf *b, const struct infer_answer *a, struct error *err)
{
	bool utf8 = true;
	PUT(b, "{");
	if (a->id.n) {
		utf8 &= PUT_KEY(b, "\"id\":", a->id);
		PUT(b, ",");
	}
	utf8 &= PUT_KEY(b, "\"model_name\":", a->model);
	if (a->version.n)
		utf8 &= PUT_KEY(b, ",\"model_version\":", a->version);
	for (unsigned i = 0; i < a->params; i++) {
		buf_put_text(b, i ? "," : ",\"parameters\":{");
		utf8 &= put_param(b, &a->param[i]);
	}
	buf_put_text(b, a->params ? "},\"outputs\":[" : ",\"outputs\":[");
	if (!utf8)
		return error_set(err, -EINVAL, "the answer's id, model or parameter is not UTF-8");
	for (unsigned i = 0; i < a->outputs; i++) {
		if (i)
			PUT(b, ",");
		const int rc = put_output(b, &a->output[i], a->binary[i], err);
		if (rc)
			return rc;
	}
	PUT(b, "]}");
	return 0;
}

int infer_json_put(
	struct buf *b, const struct infer_answer *a, size_t *ret_json_bytes, struct error *err)
{
	const size_t from = b->n;
	const int rc = put_json(b, a, err);
	const size_t json_bytes = b->n - from;
	if (rc) {
		b->n = from;
		return rc;
	}
	bool binary = false;
	for (unsigned i = 0; i < a->outputs; i++) {
		if (!a->binary[i] || !a->output[i].data)
			continue;
		binary = true;
		buf_put(b, a->output[i].data, a->output[i].bytes);
	}
	*ret_json_bytes = binary ? json_bytes : 0;
	return 0;
}
