/* See operator.h. */
#include "hook/operator.h"

#include <string.h>

#include "hook/strings.h"

#define SIZES_MOST 2048u

struct cursor {
	const char *at, *end;
};

static bool skip(struct cursor *c, const char *word, size_t n)
{
	if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
		return false;
	c->at += n;
	return true;
}

#define SKIP(c, word) skip(c, word, sizeof(word) - 1)

static bool take_number(struct cursor *c, uint64_t *ret_value)
{
	const char *const begin = c->at;
	uint64_t value = 0;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
		value = value * 10 + (uint64_t)(*c->at - '0');
	*ret_value = value;
	return c->at > begin;
}

/* "[[8, 512], []]": JSON as it is. */
static bool take_sizes(struct cursor *c, const char **ret_sizes, size_t *ret_bytes)
{
	const char *const begin = c->at;
	int depth = 0;
	for (; c->at < c->end; c->at++) {
		const char ch = *c->at;
		depth += ch == '[' ? 1 : ch == ']' ? -1 : 0;
		if (depth < 0 || depth > 2 || !memchr("[]0123456789, -", ch, 15))
			return false;
		if (!depth)
			break;
	}
	if (c->at == c->end || c->at == begin)
		return false;
	*ret_sizes = begin;
	*ret_bytes = (size_t)(++c->at - begin);
	return true;
}

static uint32_t args_of(const char *sizes, size_t bytes)
{
	static const char head[] = "{\"Input Dims\":", tail[] = "}";
	char text[sizeof head + SIZES_MOST + sizeof tail];
	uint32_t id;
	if (bytes > SIZES_MOST)
		return 0;
	if (!string_claim(string_hash(sizes, bytes, 1), &id))
		return id;
	memcpy(text, head, sizeof head - 1);
	memcpy(text + sizeof head - 1, sizes, bytes);
	memcpy(text + sizeof head - 1 + bytes, tail, sizeof tail - 1);
	string_write(id, text, sizeof head - 1 + bytes + sizeof tail - 1);
	return id;
}

/* Behind the name.  Everything must be understood, up to the ids of inputs. */
static bool parse_rest(struct cursor *c, struct range_text *r)
{
	const char *sizes = NULL;
	size_t bytes = 0;
	if (SKIP(c, ", seq = ")) {
		if (!take_number(c, &r->sequence))
			return false;
		r->valid |= RANGE_HAS_SEQUENCE;
	}
	if (!SKIP(c, ", op_id = ") || !take_number(c, &r->external))
		return false;
	r->valid |= RANGE_HAS_EXTERNAL;
	if (SKIP(c, ", sizes = ") && !take_sizes(c, &sizes, &bytes))
		return false;
	if (c->at < c->end && !SKIP(c, ", input_op_ids = ["))
		return false;
	r->args = sizes ? args_of(sizes, bytes) : 0;
	return true;
}

/* Ranges of the program's own are RecordFunctions too, without a sequence or a namespace. */
static uint16_t kind_of(const char *name, size_t bytes, uint16_t valid)
{
	const char *colon = memchr(name, ':', bytes);
	const bool scoped = colon && colon + 1 < name + bytes && colon[1] == ':';
	static const char params[] = "record_param_comms";
	const bool comms = bytes == sizeof params - 1 && !memcmp(name, params, bytes);
	return scoped || comms || valid & RANGE_HAS_SEQUENCE ? RANGE_OPERATOR : RANGE_ANNOTATION;
}

bool operator_parse(const char *text, size_t bytes, struct range_text *ret_range)
{
	const char *const end = text + bytes;
	const char *comma = text;
	while ((comma = memchr(comma, ',', (size_t)(end - comma)))) {
		struct cursor c = { comma, end };
		struct range_text r = { 0 };
		if (end - comma > 8 && (comma[2] == 's' || comma[2] == 'o') && parse_rest(&c, &r)) {
			r.name = string_id(text, (uint64_t)(comma - text));
			r.kind = kind_of(text, (size_t)(comma - text), r.valid);
			*ret_range = r;
			return true;
		}
		comma++;
	}
	return false;
}
