/*
 * The schema's text, parsed: two passes over the lines, types first, because the lines of
 * functions name types that stand below them.
 */
#include "event/schema.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "event/format.h"

struct span {
	const char *s;
	const char *end;
};

struct type {
	struct span name;
	uint8_t kind;
	uint8_t bytes;
};

struct parser {
	struct arena *arena;
	struct schema *schema;
	struct type *types; /* open addressing */
	size_t type_slots;  /* a power of two */
	struct schema_fn *fns;
	uint32_t *by_id, ids;
};

#define ID_COUNT 0xff00u /* ids from here on are meta records */

static bool span_is(struct span s, const char *word)
{
	const size_t n = strlen(word);
	return (size_t)(s.end - s.s) == n && memcmp(s.s, word, n) == 0;
}

static bool span_same(struct span a, struct span b)
{
	return a.end - a.s == b.end - b.s && memcmp(a.s, b.s, (size_t)(a.end - a.s)) == 0;
}

static bool next_line(struct span *text, struct span *line)
{
	if (text->s == text->end)
		return false;
	const char *nl = memchr(text->s, '\n', (size_t)(text->end - text->s));
	*line = (struct span){ text->s, nl ? nl : text->end };
	text->s = nl ? nl + 1 : text->end;
	return true;
}

static void skip_blanks(struct span *s)
{
	while (s->s < s->end && (*s->s == ' ' || *s->s == '\t'))
		s->s++;
}

static void drop_blanks(struct span *s)
{
	skip_blanks(s);
	while (s->end > s->s && (s->end[-1] == ' ' || s->end[-1] == '\t'))
		s->end--;
}

/* Cuts the text up to `stop` off; all of it when there is none.  True if stop was there. */
static bool cut_at(struct span *s, char stop, struct span *part)
{
	const char *at = s->s == s->end ? NULL : memchr(s->s, stop, (size_t)(s->end - s->s));
	*part = (struct span){ s->s, at ? at : s->end };
	s->s = at ? at + 1 : s->end;
	return at != NULL;
}

static struct span next_word(struct span *s)
{
	struct span word;
	skip_blanks(s);
	cut_at(s, ' ', &word);
	return word;
}

static bool cut_number(struct span *s, uint32_t *ret_value)
{
	uint32_t value = 0;
	const char *start = s->s;
	while (s->s < s->end && *s->s >= '0' && *s->s <= '9' && value < 100000000)
		value = value * 10 + (uint32_t)(*s->s++ - '0');
	*ret_value = value;
	return s->s > start;
}

static const char *keep(struct parser *p, struct span s)
{
	const size_t n = (size_t)(s.end - s.s);
	char *copy = arena_take(p->arena, n + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s.s, n);
	copy[n] = '\0';
	return copy;
}

static bool kind_of(struct span word, uint8_t *ret_kind)
{
	static const char *const names[] = {
		[ARG_PTR] = "ptr",
		[ARG_INT] = "int",
		[ARG_UINT] = "uint",
		[ARG_FLOAT] = "float",
		[ARG_STR] = "str",
		[ARG_DIM3] = "dim3",
		[ARG_EXTENT] = "extent",
		[ARG_LOC] = "loc",
		[ARG_IPC] = "ipc",
		[ARG_ENUM] = "enum",
	};
	for (uint8_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (span_is(word, names[i])) {
			*ret_kind = i;
			return true;
		}
	}
	return false;
}

static uint8_t words_of(uint8_t kind)
{
	return kind == ARG_DIM3 ? 2 : kind == ARG_EXTENT ? 3 : kind == ARG_IPC ? 0 : 1;
}

static struct type *type_slot(struct parser *p, struct span name)
{
	size_t i = hash_fnv32(name.s, (size_t)(name.end - name.s)) & (p->type_slots - 1);
	while (p->types[i].name.s && !span_same(p->types[i].name, name))
		i = (i + 1) & (p->type_slots - 1);
	return &p->types[i];
}

static bool is_type_line(struct span line)
{
	return line.end - line.s > 5 && memcmp(line.s, "type ", 5) == 0;
}

/* type NAME KIND BYTES */
static bool parse_type(struct parser *p, struct span line)
{
	uint8_t kind;
	uint32_t bytes;
	next_word(&line);
	const struct span name = next_word(&line);
	if (name.s == name.end || !kind_of(next_word(&line), &kind))
		return false;
	skip_blanks(&line);
	if (!cut_number(&line, &bytes) || bytes > 255)
		bytes = 0;
	struct type *t = type_slot(p, name);
	if (!t->name.s)
		*t = (struct type){ .name = name, .kind = kind, .bytes = (uint8_t)bytes };
	return true;
}

static void resolve_type(struct parser *p, struct schema_arg *a, struct span type)
{
	const struct type *t = type_slot(p, type);
	if (t->name.s) {
		a->kind = t->kind;
		a->bytes = t->bytes;
	} else {
		a->kind = type.end > type.s && type.end[-1] == '*' ? ARG_PTR : ARG_UINT;
		a->bytes = 8;
	}
	a->words = words_of(a->kind);
}

/* [out] TYPE NAME[=f(y)]: the name is the last word before '='. */
static bool parse_arg(struct parser *p, struct schema_arg *a, struct span text)
{
	struct span name;
	*a = (struct schema_arg){ 0 };
	a->derived = cut_at(&text, '=', &name);
	drop_blanks(&name);
	struct span type = name;
	while (name.end > name.s && type.end > type.s && type.end[-1] != ' ')
		type.end--;
	name.s = type.end;
	drop_blanks(&type);
	if (type.end - type.s > 4 && memcmp(type.s, "out ", 4) == 0) {
		a->out = true;
		type.s += 4;
		skip_blanks(&type);
	}
	if (type.s == type.end || name.s == name.end)
		return false;
	resolve_type(p, a, type);
	a->type = keep(p, type);
	a->name = keep(p, name);
	return a->type && a->name;
}

static size_t count_args(struct span list)
{
	size_t n = 1;
	drop_blanks(&list);
	if (list.s == list.end)
		return 0;
	for (const char *c = list.s; c < list.end; c++)
		n += *c == ',';
	return n;
}

static bool parse_args(struct parser *p, struct schema_fn *fn, struct span list)
{
	const size_t count = count_args(list);
	if (count > 64)
		return false;
	struct schema_arg *args = arena_take(p->arena, count * sizeof *args);
	if (!args)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct span one;
		cut_at(&list, ',', &one);
		if (!parse_arg(p, &args[i], one))
			return false;
		args[i].first = fn->arg_words;
		fn->arg_words = (uint16_t)(fn->arg_words + args[i].words);
	}
	fn->arg_count = (uint16_t)count;
	fn->args = args;
	return true;
}

/* n=A*B…xK, after the '=' */
static bool parse_factors(struct schema_fn *fn, struct span s)
{
	do {
		uint32_t index;
		if (fn->factor_count == SCHEMA_FACTORS || !cut_number(&s, &index) || index > 63)
			return false;
		fn->factor[fn->factor_count++] = (uint8_t)index;
	} while (s.s < s.end && *s.s == '*' && s.s++);
	if (s.s < s.end && *s.s == 'x') {
		s.s++;
		return cut_number(&s, &fn->scale);
	}
	return s.s == s.end;
}

static bool parse_parameter(struct parser *p, struct schema_fn *fn, struct span s)
{
	struct span key;
	uint32_t index;
	cut_at(&s, '=', &key);
	if (span_is(key, "p")) {
		if (!cut_number(&s, &index) || index > 63)
			return false;
		fn->pointer = (int8_t)index;
	} else if (span_is(key, "n")) {
		return parse_factors(fn, s);
	} else if (span_is(key, "m") || span_is(key, "d")) {
		fn->memory = keep(p, s);
	}
	return fn->memory != NULL; /* parameters of a later version say nothing to this one */
}

static void kind_of_call(struct schema_fn *fn, struct span word)
{
	static const struct {
		const char *word;
		uint8_t kind;
		bool layout;
	} rows[] = {
		{ "status", CALL_STATUS, false },
		{ "launch", CALL_LAUNCH, true },
		{ "launchex", CALL_LAUNCH, true },
		{ "launchold", CALL_LAUNCH, true },
		{ "rtlaunch", CALL_RTLAUNCH, true },
		{ "graphlaunch", CALL_GRAPHLAUNCH, false },
		{ "alloc", CALL_ALLOC, false },
		{ "free", CALL_FREE, false },
		{ "copy", CALL_COPY, false },
		{ "set", CALL_SET, false },
	};
	fn->kind = CALL_PLAIN;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (span_is(word, rows[i].word)) {
			fn->kind = rows[i].kind;
			fn->launch_layout = rows[i].layout;
		}
	}
}

static bool parse_call(struct parser *p, struct schema_fn *fn, struct span s)
{
	struct span word;
	if (s.s < s.end && *s.s == '!')
		s.s++;
	if (s.s == s.end)
		return false;
	cut_at(&s, ':', &word);
	kind_of_call(fn, word);
	while (s.s < s.end) {
		cut_at(&s, ':', &word);
		if (!parse_parameter(p, fn, word))
			return false;
	}
	return true;
}

static bool factors_exist(const struct schema_fn *fn)
{
	for (int i = 0; i < fn->factor_count; i++)
		if (fn->factor[i] >= fn->arg_count || fn->args[fn->factor[i]].words != 1)
			return false;
	return fn->pointer < 0 || (fn->pointer < fn->arg_count && fn->args[fn->pointer].words == 1);
}

static const char *const api_names[] = { "driver", "runtime", "allocator" };

static uint8_t api_of(struct span word)
{
	for (uint8_t i = API_RUNTIME; i <= API_ALLOCATOR; i++)
		if (span_is(word, api_names[i]))
			return i;
	return API_DRIVER;
}

const char *schema_api_name(const struct schema_fn *fn)
{
	return api_names[fn ? fn->api : API_DRIVER];
}

/* ID API CLASS RECORD NAME(ARGUMENTS) */
static bool parse_fn(struct parser *p, struct schema_fn *fn, struct span line)
{
	uint32_t id;
	struct span name, list;
	*fn = (struct schema_fn){ .pointer = -1, .scale = 1, .memory = "" };
	if (!cut_number(&line, &id) || id == 0 || id >= p->ids || p->by_id[id])
		return false;
	fn->id = (uint16_t)id;
	fn->api = api_of(next_word(&line));
	fn->class = keep(p, next_word(&line));
	if (!fn->class || !parse_call(p, fn, next_word(&line)))
		return false;
	skip_blanks(&line);
	if (!cut_at(&line, '(', &name) || name.s == name.end)
		return false;
	list = line;
	while (list.end > list.s && list.end[-1] != ')')
		list.end--;
	if (list.end == list.s)
		return false;
	list.end--;
	fn->name = keep(p, name);
	return fn->name && parse_args(p, fn, list) && factors_exist(fn);
}

struct counts {
	size_t lines, type_lines, commas, slots;
	uint32_t ids; /* the highest and one */
};

static void count_id(struct counts *c, struct span line)
{
	uint32_t id;
	drop_blanks(&line);
	if (cut_number(&line, &id) && id < ID_COUNT && id >= c->ids)
		c->ids = id + 1;
}

static struct counts count(const char *text, size_t bytes)
{
	struct counts c = { .slots = 16 };
	struct span all = { text, text + bytes }, line;
	while (next_line(&all, &line)) {
		c.lines++;
		c.type_lines += is_type_line(line);
		count_id(&c, line);
		for (const char *s = line.s; s < line.end; s++)
			c.commas += *s == ',';
	}
	while (c.slots < c.type_lines * 2)
		c.slots *= 2;
	return c;
}

/* Every string kept is part of the text, plus a NUL and up to 7 bytes to align it: at most
 * four a line (name, class, memory or direction twice) and two an argument. */
size_t schema_need(const char *text, size_t bytes)
{
	const struct counts c = count(text, bytes);
	return 64 + bytes + c.ids * sizeof(uint32_t) + c.slots * sizeof(struct type) +
	       c.lines * (sizeof(struct schema_fn) + sizeof(struct schema_arg) + 8 * 16) +
	       c.commas * (sizeof(struct schema_arg) + 2 * 16) + bytes * 4;
}

static int prepare(struct parser *p, const char *text, size_t bytes)
{
	const struct counts c = count(text, bytes);
	p->type_slots = c.slots;
	p->ids = c.ids;
	p->types = arena_take(p->arena, c.slots * sizeof *p->types);
	p->by_id = arena_take(p->arena, c.ids * sizeof *p->by_id);
	p->fns = arena_take(p->arena, c.lines * sizeof *p->fns);
	if (!p->types || !p->by_id || !p->fns)
		return -ENOMEM;
	memset(p->types, 0, c.slots * sizeof *p->types);
	memset(p->by_id, 0, c.ids * sizeof *p->by_id);
	return 0;
}

static void parse_types(struct parser *p, struct span text)
{
	struct span line;
	while (next_line(&text, &line))
		if (is_type_line(line) && !parse_type(p, line))
			p->schema->bad_lines++;
}

static void parse_fns(struct parser *p, struct span text)
{
	struct schema *s = p->schema;
	struct span line;
	while (next_line(&text, &line)) {
		drop_blanks(&line);
		if (line.s == line.end || is_type_line(line) || *line.s == '#')
			continue;
		struct schema_fn *fn = &p->fns[s->fn_count];
		if (parse_fn(p, fn, line))
			p->by_id[fn->id] = ++s->fn_count;
		else
			s->bad_lines++;
	}
}

int schema_parse(struct schema *s, struct arena *arena, const char *text, size_t bytes)
{
	struct parser p = { .arena = arena, .schema = s };
	*s = (struct schema){ 0 };
	if (prepare(&p, text, bytes))
		return -ENOMEM;
	parse_types(&p, (struct span){ text, text + bytes });
	parse_fns(&p, (struct span){ text, text + bytes });
	s->fns = p.fns;
	s->by_id = p.by_id;
	s->id_count = p.ids;
	return 0;
}

bool schema_launches(const struct schema_fn *fn)
{
	return fn->api == API_DRIVER && (fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH);
}

bool schema_waits(const struct schema_fn *fn)
{
	return fn->api == API_DRIVER && schema_blocks(fn);
}

bool schema_blocks(const struct schema_fn *fn)
{
	if (fn->kind == CALL_COPY || !strcmp(fn->class, "copy"))
		return !strstr(fn->name, "Async");
	return !strcmp(fn->class, "sync") && !strstr(fn->name, "WaitEvent");
}

static bool arg_word(const struct schema_fn *fn, const struct record *r, unsigned i, uint64_t *ret)
{
	const struct schema_arg *a = &fn->args[i];
	if (fn->launch_layout || r->words < RECORD_WORDS || a->first >= r->words - RECORD_WORDS)
		return false;
	if (a->out && i < 32 && (r->aux >> i & 1))
		return false;
	*ret = r->arg[a->first];
	return true;
}

bool schema_call_bytes(const struct schema_fn *fn, const struct record *r, uint64_t *ret_bytes)
{
	uint64_t bytes = fn->scale;
	if (!fn->factor_count)
		return false;
	for (int i = 0; i < fn->factor_count; i++) {
		uint64_t word;
		if (!arg_word(fn, r, fn->factor[i], &word))
			return false;
		bytes = sat_mul(bytes, word);
	}
	*ret_bytes = bytes;
	return true;
}

bool schema_call_pointer(const struct schema_fn *fn, const struct record *r, uint64_t *ret_pointer)
{
	return fn->pointer >= 0 && arg_word(fn, r, (unsigned)fn->pointer, ret_pointer);
}
