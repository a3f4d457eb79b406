/*
 * Fuzzes control messages of gRPC: the first byte says which message, the others are its bytes.
 * A message that is read is written without fields of default values, and that is read and written
 * as the same bytes.
 */
#include <stdlib.h>

#include "wire/message.h"
#include "wire/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The messages of all methods, requests first. */
static const char *name_of(uint8_t number)
{
	const struct route_row *row;
	do
		row = &route_rows[number++ / 2 % route_row_count];
	while (!row->request);
	return number % 2 ? row->request : row->answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = { .text = "" };
	struct buf again = { 0 }, third = { 0 };
	json_t *value, *same;
	if (!size)
		return 0;
	const char *name = name_of(*data);
	if (message_read(name, (const char *)data + 1, size - 1, &value, &err)) {
		must(*err.text);
		return 0;
	}
	must(!message_put(name, value, &again, &err));
	must(!message_read(name, again.v, again.n, &same, &err));
	must(!message_put(name, same, &third, &err));
	must(slice_equal(buf_slice(&again), buf_slice(&third)));
	json_decref(same);
	json_decref(value);
	buf_free(&again);
	buf_free(&third);
	return 0;
}
