/*
 * Identifies a kernel by its name: identity, siblings, family, and the key of a launch.
 *
 * Siblings are instances of one source. Template arguments and numbers distinguish them, such as a
 * tile of 128x64 or 64x64, so their common hash leaves both out.
 */
#include "base/digit.h"
#include "base/hash.h"
#include "predict/key.h"
#include "predict/launch.h"

#include <string.h>

#include "predict_family.h"

#define TILE_LEAST     8 /* shorter sides are those of warps, clusters and instructions */
#define SIDE_MOST      10000
#define NAME_MAX_BYTES 1024 /* longer names are looked at only so far for their family */

/* The begin of the parameter list: the last "(" outside template arguments that is not part of
 * "(anonymous namespace)" or "operator()"; or the end. */
static const char *parameters_of(const char *name)
{
	const char *at = NULL;
	int depth = 0;
	for (const char *p = name; *p; p++) {
		depth += (*p == '<') - (*p == '>' && depth > 0);
		if (*p == '(' && !depth && strncmp(p, "(anonymous", 10) && strncmp(p, "()", 2))
			at = p;
		if (at)
			break;
	}
	return at ? at : name + strlen(name);
}

/* A name in lower case, and where words of it begin; one more begins at its end. */
struct name {
	size_t bytes;
	char text[NAME_MAX_BYTES];
	bool begins[NAME_MAX_BYTES];
};

enum letter { LETTER_NONE, LETTER_DIGIT, LETTER_SMALL, LETTER_CAPITAL };

static enum letter letter_of(char c)
{
	if (is_digit(c) || c == '#')
		return LETTER_DIGIT;
	if (c >= 'a' && c <= 'z')
		return LETTER_SMALL;
	return c >= 'A' && c <= 'Z' ? LETTER_CAPITAL : LETTER_NONE;
}

/* From the name as it was: GammaBeta and CUDAKernel are two words, fp16 and a_b as well. */
static bool word_begins(const char *text, size_t at)
{
	const enum letter before = at ? letter_of(text[at - 1]) : LETTER_NONE;
	const enum letter here = letter_of(text[at]);
	if (before == LETTER_CAPITAL && here == LETTER_CAPITAL)
		return letter_of(text[at + 1]) == LETTER_SMALL;
	if (before == LETTER_CAPITAL && here == LETTER_SMALL)
		return false;
	return before != here || here == LETTER_NONE;
}

static void find_words(struct name *n)
{
	for (size_t i = 0; i <= n->bytes; i++)
		n->begins[i] = word_begins(n->text, i);
	for (size_t i = 0; i < n->bytes; i++)
		n->text[i] = ascii_lower(n->text[i]);
}

/* The name without return type, parameters and template arguments; every run of digits is one '#'.
 */
static void plain_name(const char *name, struct name *ret_plain)
{
	const char *end = parameters_of(name);
	char *text = ret_plain->text;
	size_t n = 0;
	int depth = 0;
	if (!strncmp(name, "void ", 5))
		name += 5;
	for (const char *p = name; p < end && n + 1 < NAME_MAX_BYTES; p++) {
		const bool closes = *p == '>' && depth > 0;
		depth += (*p == '<') - closes;
		if (depth || closes)
			continue;
		const bool digit = is_digit(*p);
		if (digit && n && text[n - 1] == '#')
			continue;
		text[n++] = digit ? '#' : *p;
	}
	text[n] = 0;
	ret_plain->bytes = n;
	find_words(ret_plain);
}

static void whole_name(const char *name, struct name *ret_whole)
{
	size_t n = 0;
	for (; name[n] && n + 1 < NAME_MAX_BYTES; n++)
		ret_whole->text[n] = name[n];
	ret_whole->text[n] = 0;
	ret_whole->bytes = n;
	find_words(ret_whole);
}

static bool has_word(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}
#define HAS_WORD(text, words) has_word(text, words, sizeof words / sizeof((words)[0]))

static bool has_family_word(const struct name *n, size_t row)
{
	const char *word = family_words[row].word;
	const size_t bytes = strlen(word);
	for (const char *p = strstr(n->text, word); p; p = strstr(p + 1, word)) {
		const size_t at = (size_t)(p - n->text);
		if ((family_words[row].open_begin || n->begins[at]) &&
			(family_words[row].open_end || n->begins[at + bytes]))
			return true;
	}
	return false;
}

static enum predict_family family_in(
	const struct name *n, const struct name *whole, bool weak, bool fused)
{
	for (size_t i = 0; i < sizeof family_words / sizeof family_words[0]; i++) {
		const enum predict_family family = family_words[i].family;
		if (family_words[i].weak == weak && !(fused && family_multiplies[family]) &&
			has_family_word(family_words[i].inside ? whole : n, i))
			return family;
	}
	return FAMILY_UNKNOWN;
}

static enum predict_family family_of(const struct name *plain, const struct name *whole)
{
	const bool fused = HAS_WORD(plain->text, fused_words);
	enum predict_family family = family_in(plain, whole, false, fused);
	if (!family)
		family = family_in(whole, whole, false, fused);
	return family ? family : family_in(whole, whole, true, fused);
}

static const char *take_side(const char *p, uint16_t *ret_side)
{
	unsigned side = 0;
	for (; is_digit(*p); p++)
		side = side < SIDE_MOST ? 10 * side + (unsigned)(*p - '0') : side;
	*ret_side = (uint16_t)(side < SIDE_MOST ? side : SIDE_MOST);
	return p;
}

/* The first "128x64" behind the word "tile", else the first of all that can be one. */
static void take_tile(const char *name, uint16_t ret_tile[static 2])
{
	const char *word = strstr(name, "tile");
	ret_tile[0] = ret_tile[1] = 0;
	for (const char *p = word ? word : name; *p;) {
		uint16_t tile[2] = { 0, 0 };
		if (!is_digit(*p)) {
			p++;
			continue;
		}
		p = take_side(p, &tile[0]);
		if (*p == 'x' && is_digit(p[1]))
			p = take_side(p + 1, &tile[1]);
		if (tile[0] >= TILE_LEAST && tile[1] >= TILE_LEAST) {
			memcpy(ret_tile, tile, sizeof tile);
			return;
		}
	}
}

static uint8_t element_of(const char *name)
{
	static const struct {
		const char *word;
		uint8_t bytes;
	} words[] = { { "e4m3", 1 }, { "e5m2", 1 }, { "int8", 1 }, { "half", 2 }, { "bf16", 2 },
		{ "bfloat16", 2 }, { "fp16", 2 }, { "f16", 2 }, { "double", 8 }, { "f64", 8 },
		{ "dgemm", 8 }, { "float", 4 }, { "f32", 4 }, { "sgemm", 4 } };
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strstr(name, words[i].word))
			return words[i].bytes;
	return 0;
}

void predict_kernel_name(struct predict_kernel *k, const char *name, uint64_t binary)
{
	struct name plain, whole;
	plain_name(name, &plain);
	whole_name(name, &whole);
	k->id = predict_kernel_id(name, strlen(name), binary);
	k->group = hash_bytes(plain.text, plain.bytes);
	k->family = family_of(&plain, &whole);
	k->element_bytes = element_of(whole.text);
	take_tile(whole.text, k->tile);
}

struct predict_product predict_product_of(const char *name)
{
	struct name plain, whole;
	plain_name(name, &plain);
	whole_name(name, &whole);
	const enum predict_family family = family_of(&plain, &whole);
	struct predict_product p = { .helps = HAS_WORD(plain.text, helper_words) ||
					      HAS_WORD(whole.text, sum_words) ||
					      !family_multiplies[family],
		.copies = family == FAMILY_COPY,
		.weight = HAS_WORD(whole.text, weight_words),
		.input = HAS_WORD(whole.text, input_words),
		.fewer = HAS_WORD(whole.text, fewer_words) };
	for (size_t i = 0; i < sizeof unit_words / sizeof unit_words[0] && !p.has_unit; i++) {
		p.has_unit = strstr(whole.text, unit_words[i].word);
		p.unit = unit_words[i].unit;
	}
	return p;
}

const char *predict_family_word(enum predict_family family)
{
	return family < FAMILIES ? family_names[family] : family_names[FAMILY_UNKNOWN];
}

enum predict_family predict_family_find(const char *word)
{
	for (int i = 0; i < FAMILIES; i++)
		if (!strcmp(family_names[i], word))
			return (enum predict_family)i;
	return FAMILY_UNKNOWN;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

__attribute__((hot)) uint64_t predict_key(const struct predict_launch *l)
{
	/* digits of pi, for want of better noise */
	static const uint64_t salt[] = { 0x243f6a8885a308d3u, 0x13198a2e03707344u,
		0xa4093822299f31d0u, 0x082efa98ec4e6c89u };
	const uint32_t args = l->args < PREDICT_ARGS ? l->args : PREDICT_ARGS;
	uint64_t h =
		hash_fold(l->kernel->id ^ salt[0], pair(l->smem_dynamic_bytes, args) ^ salt[1]);
	h = hash_fold(h ^ pair(l->grid[0], l->grid[1]), pair(l->grid[2], l->block[0]) ^ salt[2]);
	h = hash_fold(h ^ pair(l->block[1], l->block[2]), salt[3]);
	for (uint32_t i = 0; i + 1 < args; i += 2)
		h = hash_fold(h ^ l->arg[i] ^ salt[1], l->arg[i + 1] ^ salt[2]);
	if (args % 2)
		h = hash_fold(h ^ l->arg[args - 1] ^ salt[1], salt[2]);
	return h + !h;
}
