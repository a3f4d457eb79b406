/*
 * Fuzzes what NVTX hands over: attributes whose numbers and text are the input, and handles that
 * are anything.  The written arguments must be JSON in as far as brackets and quotes go; text must
 * be what came, cut to fit, and wide text UTF-8.
 */
#include "hook/range/nvtx.c"
#include "hook/core/hook_parts.h"

#include <stdlib.h>

#include "hook/core/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct recorder hook_recorder = { .pid = 1 };
static bool written_well;

bool meta_has_room(void)
{
	return true;
}

static bool is_utf8(const unsigned char *at, size_t n)
{
	while (n) {
		const size_t more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : 3;
		if ((more == 3 && *at >> 3 != 30) || more >= n)
			return false;
		for (size_t i = 1; i <= more; i++)
			if (at[i] >> 6 != 2)
				return false;
		at += more + 1;
		n -= more + 1;
	}
	return true;
}

static bool is_object(const char *text, uint32_t n)
{
	int depth = 0, quotes = 0;
	for (uint32_t i = 0; i < n; i++) {
		quotes += text[i] == '"';
		depth += text[i] == '{' || text[i] == '[';
		depth -= text[i] == '}' || text[i] == ']';
		if (depth < 1 && i + 1 < n)
			return false;
	}
	return n > 2 && !depth && quotes % 2 == 0;
}

static bool wide;

void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	if (id != META_STRING || count != 1 || !args[0] || bytes > STRING_MOST)
		abort();
	if (wide)
		written_well &= is_utf8((const unsigned char *)text, bytes);
}

const struct config *config_get(void)
{
	static const struct config records = {
		.records = true, .sched = true, .request_range = "a"
	};
	return &records;
}

void ranges_begin(void)
{
}

/* One is open at a time. */
static uint64_t request_begin(uint64_t deadline_ns)
{
	return 1;
}

static bool request_end(uint64_t name)
{
	return name == 1;
}

const struct hook_above hook_above = { .request_begin = request_begin, .request_end = request_end };

__thread struct writer hook_ranges = { .tid = 1 };
_Atomic uint32_t hook_idle = 1;
static struct trace_header header;
union hook_hot_page hook_hot_page = { .hot = { .state = PROCESS_READY } };

static uint32_t args_seen;

static int take(const struct range_text *r)
{
	if (!r || !r->kind)
		abort();
	args_seen += r->args != 0;
	return 0;
}

int range_push(const struct range_text *r)
{
	return take(r);
}

int range_pop(uint32_t scope)
{
	return (int)scope;
}

uint32_t range_args_around(void)
{
	return 0;
}

void range_mark(const struct range_text *r)
{
	take(r);
}

uint64_t range_start(const struct range_text *r)
{
	return (uint64_t)take(r);
}

void range_stop(uint64_t id)
{
}

static void use(const struct attributes *a, const void *handle, const void *text)
{
	struct attributes b = *a;
	char args[160];
	struct bounded o = BOUNDED(args);
	const bool payload = a->payload_type >= PAYLOAD_U64 && a->payload_type <= PAYLOAD_FLOAT;
	put_args(&o, a, payload);
	if (o.cut || ((payload || a->category) && !is_object(args, (uint32_t)o.used)))
		abort();
	for (b.message_type = 0; b.message_type < 5; b.message_type++) {
		b.message = b.message_type == MESSAGE_REGISTERED ? handle : text;
		wide = b.message_type == MESSAGE_UNICODE;
		written_well = true;
		if (wide)
			b.payload_type = b.category = (uint32_t)(b.color_type = 0);
		domain_push(handle, &b);
		domain_pop(handle);
		domain_mark(text, &b);
		if (wide && !written_well)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct attributes a = { 0 };
	uint32_t offset;
	if (size < sizeof a + 4)
		return 0;
	hook_recorder.header = &header;
	memcpy(&a, data, sizeof a);
	memcpy(&offset, data + sizeof a, sizeof offset);
	data += sizeof a + 4;
	size -= sizeof a + 4;
	/* Aligned, and with an end that fits both kinds of text. */
	wchar_t *text = calloc(size / sizeof(wchar_t) + 2, sizeof *text);
	if (!text)
		return 0;
	memcpy(text, data, size);
	strings_forget();
	operator_forget();
	wide = false;
	const void *handle = create_ascii((const char *)text);
	use(&a, handle, text);
	use(&a, (const void *)((uintptr_t)handle + offset), text);
	register_wide(handle, text);
	free(text);
	return 0;
}
