/*
 * Fuzzes the rows of weir occupancy.  Whatever comes in, what goes out has as many lines, each with
 * the line that came as its beginning.
 */
#include "cmd/cli/command.h"
#include "cmd/cli/occupancy_csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int complain(int code, const char *format, ...)
{
	return code;
}

/* The length of the line at `at`, without its ending. */
static size_t line_bytes(const char *at, const char *end, const char **ret_next)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));
	const char *stop = newline ? newline : end;
	*ret_next = newline ? newline + 1 : end;
	if (stop > at && stop[-1] == '\r')
		stop--;
	return (size_t)(stop - at);
}

static void compare(const char *in, const char *in_end, const char *out, const char *out_end)
{
	while (in < in_end && out < out_end) {
		const char *next_in, *next_out;
		const size_t was = line_bytes(in, in_end, &next_in);
		const size_t is = line_bytes(out, out_end, &next_out);
		if (is < was || memcmp(in, out, was))
			abort();
		in = next_in;
		out = next_out;
	}
	if (in < in_end || out < out_end)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
	FILE *out = open_memstream(&text, &bytes);
	if (in && out) {
		const int code = occupancy_csv(in, out);
		fflush(out);
		/* without a header nothing comes out but blank lines */
		if (memchr(text, ',', bytes))
			compare((const char *)data, (const char *)data + size, text, text + bytes);
		else if (code != EXIT_USAGE)
			abort();
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	free(text);
	return 0;
}
