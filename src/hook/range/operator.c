/* Parses the messages of PyTorch's NVTX observer. */
#include "hook/range/operator.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/core/pages.h"
#include "hook/core/strings.h"

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

#define SKIP(c, word) skip(c, word, sizeof word - 1)

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
		const bool digit = ch >= '0' && ch <= '9';
		if (depth < 0 || depth > 2 || (!digit && !memchr("[], -", ch, 5)))
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

/*
 * Facts of a module for the operators inside: {"dtype":"float32"}, under autocast
 * {"dtype":"float32","autocast":"bfloat16"} and, one for convolutions, behind it
 * ,"conv":{"stride":[2, 2],…}}.  Few programs have modules of more than a few kinds; what finds no
 * room is not known.
 */
#define TYPES     64u
#define TYPE_MOST 240u /* with the rest of it 256 bytes: all are whole pages */
enum part { DTYPE, AUTOCAST, CONV, PARTS };
struct type {
	_Atomic uint32_t id; /* 0 free, TAKEN being filled */
	uint32_t bytes[PARTS];
	char text[TYPE_MOST]; /* "float32", "bfloat16" and the object of conv */
};
static struct type types[TYPES] OWN_PAGES;
#define TAKEN UINT32_MAX

static bool all_of(const char *text, size_t bytes, const char *letters, size_t count)
{
	for (size_t i = 0; i < bytes; i++)
		if (!memchr(letters, text[i], count))
			return false;
	return true;
}

#define ALL_OF(text, bytes, letters) all_of(text, bytes, letters, sizeof letters - 1)

struct piece {
	const char *at;
	size_t bytes;
};

/* A word with its quotes, whose first is behind. */
static bool take_word(struct cursor *c, struct piece *ret_word)
{
	const char *const quote = memchr(c->at, '"', (size_t)(c->end - c->at));
	if (!quote || quote == c->at ||
		!ALL_OF(c->at, (size_t)(quote - c->at), "abcdefghijklmnopqrstuvwxyz0123456789_"))
		return false;
	*ret_word = (struct piece){ c->at - 1, (size_t)(quote + 2 - c->at) };
	c->at = quote + 1;
	return true;
}

/* An object of numbers, words and lists, whose bracket is behind. */
static bool take_object(struct cursor *c, struct piece *ret_object)
{
	const char *const close = memchr(c->at, '}', (size_t)(c->end - c->at));
	if (!close || !ALL_OF(c->at, (size_t)(close - c->at),
			      "abcdefghijklmnopqrstuvwxyz0123456789_\":,[] "))
		return false;
	*ret_object = (struct piece){ c->at - 1, (size_t)(close + 2 - c->at) };
	c->at = close + 1;
	return true;
}

static bool split_type(const char *text, size_t bytes, struct piece pieces[PARTS])
{
	struct cursor c = { text, text + bytes };
	if (bytes > TYPE_MOST || !SKIP(&c, "{\"dtype\":\"") || !take_word(&c, &pieces[DTYPE]))
		return false;
	if (SKIP(&c, ",\"autocast\":\"") && !take_word(&c, &pieces[AUTOCAST]))
		return false;
	if (SKIP(&c, ",\"conv\":{") && !take_object(&c, &pieces[CONV]))
		return false;
	return c.end - c.at == 1 && *c.at == '}';
}

static char *append(char *to, const char *text, size_t bytes)
{
	memcpy(to, text, bytes);
	return to + bytes;
}

#define APPEND(to, word) append(to, word, sizeof word - 1)

static void fill_type(struct type *t, const struct piece pieces[PARTS])
{
	char *to = t->text;
	for (int i = 0; i < PARTS; i++) {
		t->bytes[i] = (uint32_t)pieces[i].bytes;
		if (pieces[i].bytes)
			to = append(to, pieces[i].at, pieces[i].bytes);
	}
}

void operator_set_args(uint32_t id, const char *text, size_t bytes)
{
	struct piece pieces[PARTS] = { { 0 } };
	if (!split_type(text, bytes, pieces))
		return;
	for (uint32_t i = 0; i < TYPES; i++) {
		uint32_t seen = 0;
		if (replace_if(&types[i].id, &seen, TAKEN, acquire, acquire)) {
			fill_type(&types[i], pieces);
			store_release(&types[i].id, id);
			return;
		}
		if (seen == id)
			return;
	}
}

/* Names that came with a sequence: operators, though a name alone does not say it.  By number; the
 * last one of those that share a place. */
#define SEQUENCED 1024u
static _Atomic uint32_t sequenced[SEQUENCED] OWN_PAGES;

void operator_forget(void)
{
	DROP(types);
	DROP(sequenced);
}

/* The module's place, or TYPES. */
static uint32_t find_type(uint32_t module)
{
	uint32_t i = module ? 0 : TYPES;
	while (i < TYPES && load_acquire(&types[i].id) != module)
		i++;
	return i;
}

/* The key in front of each part. */
static const char *const key_of_part[PARTS] = {
	",\"module dtype\":", ",\"module autocast\":", ",\"module conv\":"
};
#define KEYS_MOST 64u /* together */

static char *append_type(char *to, const struct type *t)
{
	const char *text = t->text;
	for (int i = 0; i < PARTS; i++) {
		if (!t->bytes[i])
			continue;
		to = append(to, key_of_part[i], strlen(key_of_part[i]));
		to = append(to, text, t->bytes[i]);
		text += t->bytes[i];
	}
	return to;
}

static uint32_t args_of(const char *sizes, size_t bytes, uint32_t module)
{
	static const char head[] = "{\"Input Dims\":", tail[] = "}";
	char text[sizeof head + SIZES_MOST + KEYS_MOST + TYPE_MOST + sizeof tail];
	char *to = text;
	uint32_t id;
	if (bytes > SIZES_MOST)
		return 0;
	const uint32_t type = find_type(module);
	const bool typed = type < TYPES;
	if (!string_claim(string_hash(sizes, bytes, 1 + ((uint64_t)typed * module << 8)), &id))
		return id;
	to = APPEND(to, head);
	to = append(to, sizes, bytes);
	if (typed)
		to = append_type(to, &types[type]);
	to = APPEND(to, tail);
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
	       (id && load_relaxed(&sequenced[id % SEQUENCED]) == id);
}

static uint16_t kind_of(const char *name, size_t bytes, const struct range_text *r)
{
	if (is_scoped(name, bytes))
		return RANGE_OPERATOR;
	if (!(r->valid & RANGE_HAS_SEQUENCE))
		return RANGE_ANNOTATION;
	store_relaxed(&sequenced[r->name % SEQUENCED], r->name);
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
