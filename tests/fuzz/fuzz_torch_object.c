/* Fuzzes shared objects of models: what is renamed is not called any more. */
#include "engine/torch_package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };
	struct torch_calls calls = { .name = { 0 } };
	struct error err = { .text = "" };
	buf_put(&b, data, size);
	const int e = torch_object_calls(&b, &calls, &err);
	must(!e == !*err.text);
	for (size_t i = 0; i < calls.name.n; i++)
		must(strlen(calls.name.v[i]) >= 4);
	array_free(&calls.name);
	must(torch_object_rename(&b, NULL) == e);
	must(b.n == size);
	buf_free(&b);
	return 0;
}
