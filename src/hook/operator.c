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

/* Few programs have modules of more than a few types; what finds no room is not told. */
#define TYPES     16u
#define TYPE_MOST 48u
static struct {
	uint32_t id; /* 0 free, TAKEN being filled */
	uint32_t bytes;
	char text[TYPE_MOST]; /* "dtype":"float16" */
} types[TYPES];
#define TAKEN UINT32_MAX

static bool is_type(const char *text, size_t bytes)
{
	static const char form[] = "{\"dtype\":\"";
	const size_t head = sizeof form - 1;
	if (bytes < head + 2 || bytes - 2 > TYPE_MOST || memcmp(text, form, head) != 0)
		return false;
	for (size_t i = head; i < bytes - 2; i++)
		if (!memchr("abcdefghijklmnopqrstuvwxyz0123456789_", text[i], 37))
			return false;
	return text[bytes - 2] == '"' && text[bytes - 1] == '}';
}

void operator_note_args(uint32_t id, const char *text, size_t bytes)
{
	if (!is_type(text, bytes))
		return;
	for (uint32_t i = 0; i < TYPES; i++) {
		uint32_t seen = 0;
		if (__atomic_compare_exchange_n(&types[i].id, &seen, TAKEN, false, __ATOMIC_ACQUIRE,
			    __ATOMIC_ACQUIRE)) {
			types[i].bytes = (uint32_t)bytes - 2;
			memcpy(types[i].text, text + 1, bytes - 2);
			__atomic_store_n(&types[i].id, id, __ATOMIC_RELEASE);
			return;
		}
		if (seen == id)
			return;
	}
}

/* Names that came with a sequence: operators, though a name alone does not say it. */
#define SEQUENCED 1024u
static uint32_t sequenced[SEQUENCED]; /* by number; the last one of those that share a place */

void operator_forget(void)
{
	memset(types, 0, sizeof types);
	memset(sequenced, 0, sizeof sequenced);
}

static bool find_type(uint32_t module, const char **ret_text, size_t *ret_bytes)
{
	for (uint32_t i = 0; module && i < TYPES; i++) {
		if (__atomic_load_n(&types[i].id, __ATOMIC_ACQUIRE) != module)
			continue;
		*ret_text = types[i].text;
		*ret_bytes = types[i].bytes;
		return true;
	}
	return false;
}

static char *append(char *to, const char *text, size_t bytes)
{
	memcpy(to, text, bytes);
	return to + bytes;
}

static uint32_t args_of(const char *sizes, size_t bytes, uint32_t module)
{
	static const char head[] = "{\"Input Dims\":", middle[] = ",\"module \"", tail[] = "}";
	char text[sizeof head + SIZES_MOST + sizeof middle + TYPE_MOST + sizeof tail], *to = text;
	const char *type = NULL;
	size_t type_bytes = 0;
	uint32_t id;
	if (bytes > SIZES_MOST)
		return 0;
	const bool typed = find_type(module, &type, &type_bytes);
	if (!string_claim(string_hash(sizes, bytes, 1 + ((uint64_t)typed * module << 8)), &id))
		return id;
	to = append(to, head, sizeof head - 1);
	to = append(to, sizes, bytes);
	if (typed) { /* ,"module dtype":"float16" */
		to = append(to, middle, sizeof middle - 2);
		to = append(to, type + 1, type_bytes - 1);
	}
	to = append(to, tail, sizeof tail - 1);
	string_write(id, text, (uint64_t)(to - text));
	return id;
}

/* Behind the name.  Everything must be understood, up to the ids of inputs. */
static bool parse_rest(struct cursor *c, uint32_t module, struct range_text *r)
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
	r->args = sizes ? args_of(sizes, bytes, module) : 0;
	return true;
}

/* Ranges of the program's own are RecordFunctions too, without a sequence or a namespace. */
static bool is_scoped(const char *name, size_t bytes)
{
	const char *colon = memchr(name, ':', bytes);
	static const char params[] = "record_param_comms";
	return (colon && colon + 1 < name + bytes && colon[1] == ':') ||
	       (bytes == sizeof params - 1 && !memcmp(name, params, bytes));
}

/* AddmmBackward0: a step of a backward pass. */
static bool is_backward(const char *name, size_t bytes)
{
	static const char word[] = "Backward";
	const size_t n = sizeof word - 1;
	while (bytes && name[bytes - 1] >= '0' && name[bytes - 1] <= '9')
		bytes--;
	return bytes > n && !memcmp(name + bytes - n, word, n);
}

bool operator_is(const char *name, size_t bytes, uint32_t id)
{
	return is_scoped(name, bytes) || is_backward(name, bytes) ||
	       (id && __atomic_load_n(&sequenced[id % SEQUENCED], __ATOMIC_RELAXED) == id);
}

static uint16_t kind_of(const char *name, size_t bytes, const struct range_text *r)
{
	if (is_scoped(name, bytes))
		return RANGE_OPERATOR;
	if (!(r->valid & RANGE_HAS_SEQUENCE))
		return RANGE_ANNOTATION;
	__atomic_store_n(&sequenced[r->name % SEQUENCED], r->name, __ATOMIC_RELAXED);
	return RANGE_OPERATOR;
}

bool operator_parse(const char *text, size_t bytes, uint32_t module, struct range_text *ret_range)
{
	const char *const end = text + bytes;
	const char *comma = text;
	while ((comma = memchr(comma, ',', (size_t)(end - comma)))) {
		struct cursor c = { comma, end };
		struct range_text r = { 0 };
		if (end - comma > 8 && (comma[2] == 's' || comma[2] == 'o') &&
			parse_rest(&c, module, &r)) {
			r.name = string_id(text, (uint64_t)(comma - text));
			r.kind = kind_of(text, (size_t)(comma - text), &r);
			*ret_range = r;
			return true;
		}
		comma++;
	}
	return false;
}
