/*
 * Fuzzes inference requests as JSON: the first two bytes say how many of the others are binary
 * data. A request that is taken is one that jansson takes, its tensors have the bytes that their
 * shapes need, and as an answer they read back equal.
 */
#include "wire/infer.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct infer_request request, again;
static struct infer_answer answer;

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* NaN and infinities are as Triton prints them, which is no JSON. */
static bool has_words(const char *text, size_t n)
{
	return memmem(text, n, "NaN", 3) || memmem(text, n, "Inf", 3);
}

/* jansson has narrower numbers and no keys with NUL; all else it must take. */
static void must_be_json(const char *text, size_t n)
{
	json_error_t error;
	json_t *parsed = json_loadb(text, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
	must(parsed || has_words(text, n) ||
		json_error_code(&error) == json_error_numeric_overflow ||
		json_error_code(&error) == json_error_null_byte_in_key);
	json_decref(parsed);
}

static bool same_reals(const struct tensor *a, const struct tensor *b)
{
	const unsigned bytes = dtype_rows[a->type].bytes;
	for (size_t i = 0; i + bytes <= a->bytes; i += bytes) {
		float f = 0;
		double d = 0;
		memcpy(&f, (const char *)a->data + i, sizeof f);
		if (bytes == sizeof d)
			memcpy(&d, (const char *)a->data + i, sizeof d);
		/* The bits of NaN are not kept. */
		if (!(bytes == sizeof d ? isnan(d) : isnan(f)) &&
			memcmp((const char *)a->data + i, (const char *)b->data + i, bytes) != 0)
			return false;
	}
	return true;
}

/* The inputs, printed and read. */
static void check_echo(void)
{
	struct buf b = { 0 }, text = { 0 };
	size_t json;
	answer.id = request.id;
	answer.model = SLICE("m");
	answer.params = request.params;
	memcpy(answer.param, request.param, request.params * sizeof *request.param);
	answer.outputs = 0;
	for (unsigned i = 0; i < request.inputs; i++) {
		const struct tensor *t = &request.input[i].tensor;
		if (!t->data || request.raw)
			continue;
		answer.binary[answer.outputs] = t->type == DTYPE_FP16 || t->type == DTYPE_BF16;
		answer.output[answer.outputs++] = *t;
	}
	if (infer_json_put(&b, &answer, &json, NULL))
		goto out; /* BYTES of the binary data that are no UTF-8 */
	must_be_json(b.v, json ? json : b.n);
	const char *list = memmem(b.v, b.n, ",\"outputs\":[", 12);
	for (const char *next = list; next; list = next ? next : list)
		next = memmem(list + 1, (size_t)(b.v + b.n - list) - 1, ",\"outputs\":[", 12);
	must(list);
	buf_put_text(&text, "{\"inputs\"");
	buf_put(&text, list + 10, (size_t)(b.v + b.n - list) - 10);
	const size_t removed = b.n - text.n;
	infer_request_reset(&again);
	must(!infer_json_read(&again, text.v, text.n, json ? json - removed : text.n, NULL));
	must(again.inputs == answer.outputs);
	for (unsigned i = 0; i < again.inputs; i++) {
		const struct tensor *x = &answer.output[i], *y = &again.input[i].tensor;
		must(x->type == y->type && shape_equal(&x->shape, &y->shape) &&
			x->bytes == y->bytes);
		must(slice_equal(x->name, y->name));
		must(x->type == DTYPE_FP32 || x->type == DTYPE_FP64
				? same_reals(x, y)
				: x->type == DTYPE_BOOL || !memcmp(x->data, y->data, x->bytes));
	}
out:
	buf_free(&b);
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err;
	if (size < 2)
		return 0;
	const size_t n = size - 2, asked = data[0] | (size_t)data[1] << 8;
	const size_t json = n - (asked < n ? asked : n);
	/* A copy of their own, so that one byte too far is seen. */
	char *body = malloc(n ? n : 1);
	if (!body)
		return 0;
	memcpy(body, data + 2, n);
	infer_request_reset(&request);
	if (!infer_json_read(&request, body, n, json, &err)) {
		must_be_json(json ? (const char *)data + 2 : "[]", json ? json : 2);
		must(request.inputs <= INFER_TENSORS && request.outputs <= INFER_TENSORS);
		must(request.memory.n <= 8 * n + 16 * INFER_TENSORS);
		for (unsigned i = 0; i < request.inputs; i++)
			must(request.raw || !request.input[i].tensor.data ||
				!tensor_check(&request.input[i].tensor, NULL));
		check_echo();
	}
	free(body);
	return 0;
}
