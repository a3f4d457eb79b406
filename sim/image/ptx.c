/*
 * PTX text: only its declarations are read.  Kernels (.entry) with their parameters and
 * launch bounds, the shared and local arrays that they declare, and the variables of the
 * module.  Instructions are skipped, so a register count is not known: kernels from PTX
 * have PTX_REGISTERS.
 */
#include "image/image.h"
#include "sim_enums.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PTX_REGISTERS = 32, MAX_VARIABLE = 1 << 30 };

struct scanner {
	const char *p, *end;
	const char *word; /* the current token: a word, or one other character */
	size_t length;    /* 0 at the end */
};

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static bool starts(const struct scanner *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

static void skip_past(struct scanner *s, const char *text)
{
	while (s->p < s->end && !starts(s, text))
		s->p++;
	s->p += s->p < s->end ? strlen(text) : 0;
}

static void skip_blanks(struct scanner *s)
{
	for (;;) {
		if (starts(s, "//"))
			skip_past(s, "\n");
		else if (starts(s, "/*"))
			skip_past(s, "*/");
		else if (s->p < s->end && isspace((unsigned char)*s->p))
			s->p++;
		else
			return;
	}
}

static void skip_string(struct scanner *s)
{
	while (s->p < s->end && *s->p != '"')
		s->p++;
	s->p += s->p < s->end;
}

/* Moves to the next token; a string counts as one quote. */
static void next(struct scanner *s)
{
	skip_blanks(s);
	s->word = s->p;
	while (s->p < s->end && word_char(*s->p))
		s->p++;
	if (s->p == s->word && s->p < s->end && *s->p++ == '"')
		skip_string(s);
	s->length = s->p == s->word ? 0 : word_char(*s->word) ? (size_t)(s->p - s->word) : 1;
}

static bool is(const struct scanner *s, const char *text)
{
	return s->length == strlen(text) && memcmp(s->word, text, s->length) == 0;
}

static uint64_t number(const struct scanner *s)
{
	char text[24];

	if (!s->length || s->length >= sizeof text || !isdigit((unsigned char)*s->word))
		return 0;
	memcpy(text, s->word, s->length);
	text[s->length] = '\0';
	return strtoull(text, NULL, 0);
}

/* Bytes of a type directive, or 0 where the token is none. */
static uint32_t type_bytes(const struct scanner *s)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} types[] = {
		{ ".b8", 1 },
		{ ".u8", 1 },
		{ ".s8", 1 },
		{ ".b16", 2 },
		{ ".u16", 2 },
		{ ".s16", 2 },
		{ ".f16", 2 },
		{ ".bf16", 2 },
		{ ".b32", 4 },
		{ ".u32", 4 },
		{ ".s32", 4 },
		{ ".f32", 4 },
		{ ".f16x2", 4 },
		{ ".bf16x2", 4 },
		{ ".b64", 8 },
		{ ".u64", 8 },
		{ ".s64", 8 },
		{ ".f64", 8 },
		{ ".b128", 16 },
		{ ".texref", 8 },
		{ ".samplerref", 8 },
		{ ".surfref", 8 },
	};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (is(s, types[i].name))
			return types[i].bytes;
	return 0;
}

struct declaration {
	const char *name;
	size_t name_length;
	uint64_t size;
	uint32_t align;
	bool managed;
};

static void read_dimensions(struct scanner *s, struct declaration *d)
{
	while (is(s, "[")) {
		next(s);
		uint64_t n = is(s, "]") ? 0 : number(s);
		if (!is(s, "]"))
			next(s);
		if (is(s, "]"))
			next(s);
		if (__builtin_mul_overflow(d->size, n, &d->size) || d->size > MAX_VARIABLE)
			d->size = 0;
	}
}

/*
 * A declaration after its state space: directives, a type, a name, dimensions.  Stops at
 * the token behind it.  False: this is no declaration.
 */
static bool read_declaration(struct scanner *s, struct declaration *ret_d)
{
	struct declaration d = { .align = 1 };
	uint64_t align = 0;
	uint32_t lanes = 1;

	for (; s->length && *s->word == '.'; next(s)) {
		if (type_bytes(s))
			d.size = type_bytes(s);
		else if (is(s, ".v2") || is(s, ".v4"))
			lanes = is(s, ".v2") ? 2 : 4;
		else if (is(s, ".attribute"))
			for (; s->length && !is(s, ")"); next(s))
				d.managed |= is(s, ".managed");
		else if (is(s, ".align")) {
			next(s);
			if (!d.size) /* behind the type it is the pointee's */
				align = number(s);
		}
	}
	if (!d.size || !s->length || !word_char(*s->word))
		return false;
	d.size *= lanes;
	d.align = (uint32_t)d.size;
	if (align && align <= 4096 && !(align & (align - 1)))
		d.align = (uint32_t)align;
	d.name = s->word;
	d.name_length = s->length;
	next(s);
	read_dimensions(s, &d);
	*ret_d = d;
	return true;
}

static uint64_t round_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) / align * align;
}

static bool read_params(struct scanner *s, struct image_kernel *k)
{
	struct declaration d;
	uint64_t offset = 0;

	for (size_t i = 0; s->length && !is(s, ")"); next(s)) {
		if (!is(s, ".param"))
			continue;
		next(s);
		if (!read_declaration(s, &d))
			return false;
		offset = round_up(offset, d.align);
		if (d.size > IMAGE_MAX_PARAM_BYTES || offset > IMAGE_MAX_PARAM_BYTES ||
			!image_set_param(k, i++, (uint32_t)offset, (uint32_t)d.size))
			return false;
		offset += d.size;
		if (is(s, ")"))
			break;
	}
	return true;
}

/* .maxntid and .reqntid: up to three numbers with commas. */
static void read_bounds(struct scanner *s, struct image_kernel *k)
{
	uint64_t threads = 1;

	do {
		next(s);
		uint64_t n = number(s);
		threads *= n >= 1 && n <= 1024 ? n : 1;
		next(s);
	} while (is(s, ",") && threads <= 1024);
	if (threads <= 1024)
		k->max_threads = (int)threads;
}

static void add_space(int *total, const struct declaration *d)
{
	uint64_t sum = round_up((uint64_t)*total, d->align) + d->size;

	if (sum <= MAX_VARIABLE)
		*total = (int)sum;
}

/* The body between braces: only what it declares. */
static void read_body(struct scanner *s, struct image_kernel *k)
{
	struct declaration d;
	int depth = 0;

	do {
		bool shared = is(s, ".shared");

		depth += is(s, "{");
		depth -= is(s, "}");
		if (depth && (shared || is(s, ".local"))) {
			next(s);
			if (read_declaration(s, &d))
				add_space(shared ? &k->shared_bytes : &k->local_bytes, &d);
			continue;
		}
		next(s);
	} while (s->length && depth > 0);
}

static int read_kernel(struct scanner *s, int capability, struct image *image)
{
	next(s);
	if (!s->length || !word_char(*s->word))
		return CUDA_ERROR_INVALID_PTX;
	struct image_kernel *k = image_add_kernel(image, s->word, s->length);
	if (!k)
		return CUDA_ERROR_OUT_OF_MEMORY;
	k->registers = PTX_REGISTERS;
	k->binary_version = capability;
	next(s);
	if (is(s, "(")) {
		if (!read_params(s, k))
			return CUDA_ERROR_INVALID_PTX;
		next(s);
	}
	while (s->length && !is(s, "{") && !is(s, ";")) {
		if (is(s, ".maxntid") || is(s, ".reqntid"))
			read_bounds(s, k);
		else
			next(s);
	}
	if (is(s, "{"))
		read_body(s, k);
	return 0;
}

static int read_global(struct scanner *s, struct image *image)
{
	struct declaration d;

	next(s);
	if (!read_declaration(s, &d) || !d.size)
		return 0;
	struct image_global *g = image_add_global(image, d.name, d.name_length);
	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->size = d.size;
	g->managed = d.managed;
	while (s->length && !is(s, ";"))
		next(s);
	return 0;
}

/* Skips a .func: its parameters and its body, or its declaration. */
static void skip_function(struct scanner *s)
{
	int depth = 0;

	while (s->length && !is(s, "{") && !is(s, ";"))
		next(s);
	if (is(s, ";"))
		return;
	do {
		depth += is(s, "{");
		depth -= is(s, "}");
		next(s);
	} while (s->length && depth > 0);
}

static int sm_of(const struct scanner *s)
{
	if (s->length < 5 || memcmp(s->word, "sm_", 3) != 0)
		return 0;
	struct scanner digits = { .word = s->word + 3, .length = s->length - 3 };
	while (digits.length && !isdigit((unsigned char)digits.word[digits.length - 1]))
		digits.length--; /* sm_90a */
	return (int)(number(&digits) % 1000);
}

struct directives {
	bool version;
	int target, ptx_version;
};

static int read_directive(
	struct scanner *s, struct directives *d, int capability, struct image *image)
{
	if (is(s, ".entry"))
		return read_kernel(s, capability, image);
	if (is(s, ".global") || is(s, ".const"))
		return read_global(s, image);
	if (is(s, ".func"))
		skip_function(s);
	else if (is(s, ".version"))
		d->version = true;
	else if (is(s, ".target")) {
		next(s);
		d->target = sm_of(s);
	}
	return 0;
}

int ptx_parse(const char *text, size_t size, int capability, struct image *ret_image)
{
	const char *nul = memchr(text, '\0', size);
	struct scanner s = { .p = text, .end = nul ? nul : text + size };
	struct directives d = { 0 };

	for (next(&s); s.length; next(&s)) {
		int r = read_directive(&s, &d, capability, ret_image);
		if (r)
			return r;
	}
	if (!d.version || !d.target)
		return CUDA_ERROR_INVALID_PTX;
	if (d.target > capability)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	for (size_t i = 0; i < ret_image->kernel_count; i++)
		ret_image->kernels[i].ptx_version = d.target;
	return 0;
}
