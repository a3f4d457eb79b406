/*
 * Fuzzes inference requests of gRPC: the input is a ModelInferRequest. One that is accepted lies in
 * the message or in the request's memory, every tensor has the bytes of its shape, and the generic
 * codec reads it too.
 */
#include <stdlib.h>

#include "wire/infer.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool inside(const void *p, size_t n, const void *memory, size_t bytes)
{
	const uintptr_t at = (uintptr_t)p, begin = (uintptr_t)memory;
	return p && memory && at >= begin && n <= bytes && at - begin <= bytes - n;
}

static void check(const struct infer_request *r, const uint8_t *data, size_t size)
{
	must(r->inputs <= INFER_TENSORS && r->outputs <= INFER_TENSORS &&
		r->params <= INFER_PARAMS);
	for (unsigned i = 0; i < r->inputs; i++) {
		const struct tensor *t = &r->input[i].tensor;
		if (r->input[i].region.at)
			continue;
		must(!tensor_check(t, NULL));
		must(!t->bytes || inside(t->data, t->bytes, data, size) ||
			inside(t->data, t->bytes, r->memory.v, r->memory.n));
	}
	for (unsigned i = 0; i < r->outputs; i++)
		must(!r->output[i].name.n ||
			inside(r->output[i].name.at, r->output[i].name.n, data, size));
}

/* Refusals of the generic codec alone: numbers without JSON, and keys that have a NUL. */
static bool without_json(const struct error *err)
{
	return strstr(err->text, "is no number") || strstr(err->text, "2^63") ||
	       strstr(err->text, "has a key") || strstr(err->text, "UTF-8") ||
	       strstr(err->text, "cut off");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct infer_request r;
	struct error err = { .text = "" };
	json_t *value;
	infer_request_reset(&r);
	if (infer_pb_read(&r, (const char *)data, size, &err)) {
		must(*err.text);
		return 0;
	}
	check(&r, data, size);
	if (message_read("ModelInferRequest", (const char *)data, size, &value, &err))
		must(without_json(&err));
	else
		json_decref(value);
	return 0;
}
