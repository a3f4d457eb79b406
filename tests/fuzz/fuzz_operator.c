/*
 * Fuzzes what the hook reads out of an NVTX message: its first byte says whether a module is
 * around it.  The written arguments must be JSON in as far as brackets and quotes go.
 */
#include "hook/range/operator.h"

#include <stdlib.h>
#include <string.h>

#include "hook/core/metadata.h"
#include "hook/core/strings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text that was written first: arguments are, before the name. */
static char written[STRING_MOST];
static uint32_t written_bytes, writes;

bool meta_has_room(void)
{
	return true;
}

void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	if (id != META_STRING || count != 1 || !args[0] || bytes > STRING_MOST)
		abort();
	if (writes++)
		return;
	memcpy(written, text, bytes);
	written_bytes = bytes;
}

static void check_arguments(void)
{
	int depth = 0;
	bool quoted = false;
	for (uint32_t i = 0; i < written_bytes; i++) {
		quoted ^= written[i] == '"';
		depth += written[i] == '{' || written[i] == '[';
		depth -= written[i] == '}' || written[i] == ']';
		if (depth < 1 && i + 1 < written_bytes)
			abort();
	}
	if (depth || quoted)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct range_text r = { 0 };
	char *text = malloc(size + 1); /* its end is where a sanitizer looks */
	if (!text || !size) {
		free(text);
		return 0;
	}
	memcpy(text, data, size);
	strings_forget();
	operator_forget();
	operator_set_args(1, "{\"dtype\":\"float16\"}", 19);
	operator_set_args(2, text, size);
	writes = 0;
	const bool taken = operator_parse(text + 1, size - 1, text[0] & 3, &r);
	if (taken ? !r.name || !r.kind || writes != 1 + (r.args != 0) : r.name || r.kind)
		abort();
	if (r.args)
		check_arguments();
	free(text);
	return 0;
}
