/* The levels of recording: see level.h. */
#include "event/level.h"

#include <string.h>

#include "event/format.h"
#include "fn_ids.h"

#define ALL ((1u << CLASS_COUNT) - 1)
#define WORK                                                                                       \
	(1u << CLASS_device | 1u << CLASS_context | 1u << CLASS_module | 1u << CLASS_memory |      \
		1u << CLASS_copy | 1u << CLASS_set | 1u << CLASS_launch | 1u << CLASS_sync |       \
		1u << CLASS_graph)

static const struct {
	const char *name;
	uint32_t control; /* as in struct trace_header */
} levels[] = {
	{ "off", 0 },
	{ "stat", CONTROL_COUNT },
	{ "work", WORK },
	{ "full", ALL | CONTROL_RUNTIME | CONTROL_QUERY_COUNT },
	{ "all", ALL | CONTROL_RUNTIME },
};
#define LEVELS (sizeof levels / sizeof *levels)

bool control_of_level(const char *name, uint32_t *ret_control)
{
	for (size_t i = 0; i < LEVELS; i++)
		if (!strcmp(levels[i].name, name)) {
			*ret_control = levels[i].control;
			return true;
		}
	return false;
}

const char *level_of_control(uint32_t control)
{
	for (size_t i = 0; i < LEVELS; i++)
		if (levels[i].control == (control & ~CONTROL_MORE))
			return levels[i].name;
	return "custom";
}

static const char *const stack_groups[STACK_GROUPS] = {
	[STACK_ALLOC] = "alloc",
	[STACK_FREE] = "free",
	[STACK_SYNC] = "sync",
	[STACK_LAUNCH] = "launch",
	[STACK_COPY] = "copy",
	[STACK_SET] = "set",
	[STACK_GRAPH] = "graph",
	[STACK_MODULE] = "module",
};

/* A number above 0, with K for 1024; 0 when it is none. */
static uint32_t number_of(const char *text, size_t n)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < n && text[i] >= '0' && text[i] <= '9' && value <= UINT32_MAX; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (i && i + 1 == n && text[i] == 'K') {
		value *= 1024;
		i++;
	}
	return i == n && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static bool is_setting(const char *word, size_t n, const char *name, uint32_t *ret_value)
{
	const size_t k = strlen(name);
	if (n <= k || memcmp(word, name, k) != 0)
		return false;
	*ret_value = number_of(word + k, n - k);
	return true;
}

static bool take_word(const char *word, size_t n, struct stack_options *o)
{
	if (is_setting(word, n, "sample:", &o->each))
		return o->each;
	if (is_setting(word, n, "bytes:", &o->bytes))
		return o->bytes >= STACK_BYTES_LEAST && o->bytes <= STACK_BYTES_MOST;
	for (int g = 0; g < STACK_GROUPS; g++)
		if (strlen(stack_groups[g]) == n && !memcmp(stack_groups[g], word, n)) {
			o->control |= CONTROL_STACK(g);
			return true;
		}
	return false;
}

bool stack_options_parse(const char *text, size_t n, struct stack_options *ret)
{
	struct stack_options o = { .each = 1, .bytes = STACK_BYTES_DEFAULT };
	for (size_t at = 0, end; at < n; at = end + 1) {
		end = at;
		while (end < n && text[end] != ',' && text[end] != '+')
			end++;
		if (!take_word(text + at, end - at, &o))
			return false;
	}
	o.bytes = o.bytes / 8 * 8;
	if (!o.control)
		o.control = CONTROL_STACK(STACK_ALLOC) | CONTROL_STACK(STACK_SYNC);
	*ret = o;
	return true;
}
