/*
 * Writes docs/reference/json-report.md from the report's tables of columns, json-memory.md with the
 * argument `memory` and json-diff.md with `diff`: columns.sh compares the pages with it.  Ends with
 * 1 where a table is not what it must be: a column without a heading or a meaning, a key that is
 * there twice, or a key of a text's columns that the section lacks.
 */
#include "diff/diff.h"
#include "report/memory_sections.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 100

static int wrong;

static void complain(const struct section *s, const char *key, const char *what)
{
	fprintf(stderr, "%s: %s %s\n", s->name, key, what);
	wrong = 1;
}

static void check_column(const struct section *s, const struct column *c)
{
	if (!c->heading || (!*c->heading && !c->text_only) || !c->meaning || !*c->meaning)
		complain(s, c->key, "has no heading or no meaning");
	if (section_column(s, c->key, strlen(c->key)) != c)
		complain(s, c->key, "is there twice");
	if (!c->get && !(c->unit == UNIT_LIST && c->inner))
		complain(s, c->key, "has nothing that takes its value");
}

static void check_shown(const struct section *s)
{
	for (const char *key = s->shown; key && *key;) {
		const size_t bytes = strcspn(key, ",");
		if (!section_column(s, key, bytes))
			complain(s, key, "is no column");
		key += bytes + (key[bytes] == ',');
	}
}

static void check_section(const struct section *s)
{
	for (const struct column *c = s->columns; c->key; c++)
		check_column(s, c);
	check_shown(s);
	if (s->name && section_find(s->name, strlen(s->name)) == s && !s->heading)
		complain(s, s->name, "has no heading");
}

/* A paragraph, or an element of a list, whose other lines are indented. */
static void put_wrapped(const char *text, size_t bytes)
{
	const int indent = *text >= '1' && *text <= '9' && text[1] == '.' ? 3 : 0;
	size_t column = 0;
	while (bytes) {
		const size_t blanks = strspn(text, " ");
		size_t n = blanks;
		while (n < bytes && text[n] != ' ')
			n++;
		const size_t word = n - blanks;
		if (column && column + 1 + word > WIDTH)
			column = (size_t)printf("\n%*s", indent, "") - 1;
		else if (column)
			column += (size_t)printf(" ");
		column += (size_t)printf("%.*s", (int)word, text + blanks);
		text += n;
		bytes -= n;
	}
	putchar('\n');
}

static void put_about(const char *text)
{
	putchar('\n');
	while (text && *text) {
		const size_t bytes = strcspn(text, "\n");
		put_wrapped(text, bytes);
		text += bytes + (text[bytes] == '\n');
	}
}

static bool is_never_null(const struct column *c)
{
	column_getter *const plain[] = { get_u64, get_u32, get_u16, get_bool, get_dim3, get_span,
		get_since, get_since_start, get_pid, get_function, get_chars };
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if (c->get == plain[i])
			return !c->find || c->absent;
	return c->inner && c->inner->form != SECTION_OBJECT && !c->absent;
}

static const char *type_of(const struct column *c)
{
	switch (c->unit) {
	case UNIT_FLOPS:
	case UNIT_FLOPS_PER_S:
	case UNIT_BYTES_PER_S:
	case UNIT_SHARE:
	case UNIT_CHANGE:
	case UNIT_CHANCE:
	case UNIT_REAL:
		return "number";
	case UNIT_BOOL:
		return "boolean";
	case UNIT_TEXT:
	case UNIT_KERNEL:
	case UNIT_STACK:
		return "string";
	case UNIT_DIM3:
		return "array of integer";
	case UNIT_LIST:
		return !c->inner || c->inner->form != SECTION_LIST ? "object"
		       : c->inner->texts                           ? "array of string"
								   : "array";
	default:
		return "integer";
	}
}

static const char *unit_of(enum unit unit)
{
	static const char *const words[UNIT_LIST + 1] = { [UNIT_NS] = "ns",
		[UNIT_MOMENT] = "ns, a moment",
		[UNIT_DATE] = "ns since 1970",
		[UNIT_BYTES] = "bytes",
		[UNIT_BYTES_PER_S] = "bytes/s",
		[UNIT_FLOPS] = "FLOP",
		[UNIT_FLOPS_PER_S] = "FLOP/s",
		[UNIT_SHARE] = "share",
		[UNIT_CHANGE] = "%",
		[UNIT_KHZ] = "kHz" };
	return words[unit] ? words[unit] : "";
}

static void put_columns(const struct section *s)
{
	for (const struct column *c = s->columns; c->key; c++)
		if (!c->text_only)
			printf("| `%s` | %s%s | %s | %s | %s |\n", c->key, type_of(c),
				is_never_null(c) ? "" : " or null", unit_of(c->unit), c->heading,
				c->meaning);
}

static void put_head(void)
{
	printf("\n| key | type | unit | in text | meaning |\n|---|---|---|---|---|\n");
}

/* The places of one table's rows. */
struct paths {
	char v[8][100];
	size_t n;
};

static void add_path(struct paths *to, const char *at, const char *key, enum section_form form)
{
	static const char *const ends[] = { [SECTION_LIST] = "[]", [SECTION_KEYED] = ".<name>" };
	snprintf(to->v[to->n++], sizeof to->v[0], "%s%s%s%s", at, *at ? "." : "", key,
		ends[form] ? ends[form] : "");
}

static void put_section(const struct section *s, const struct paths *paths);

static bool is_first(const struct section *s, const struct column *c)
{
	const struct column *first = s->columns;
	while (first->inner != c->inner)
		first++;
	return first == c;
}

/* The lists inside it, but for those that are sections of their own. */
static void put_inner(const struct section *s, const struct paths *at, bool nested)
{
	for (const struct column *c = s->columns; c->key; c++) {
		struct paths inner = { .n = 0 };
		if (!c->inner || c->inner->texts || (c->inner->nested && !nested) ||
			!is_first(s, c))
			continue;
		for (size_t i = 0; i < at->n; i++)
			for (const struct column *same = c; same->key; same++)
				if (same->inner == c->inner)
					add_path(&inner, at->v[i], same->key, c->inner->form);
		put_section(c->inner, &inner);
	}
}

static void put_section(const struct section *s, const struct paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		printf("%s`%s`", i ? ", " : "\n## ", paths->v[i]);
	putchar('\n');
	if (s->about)
		put_about(s->about);
	put_head();
	put_columns(s);
	put_inner(s, paths, false);
}

/* A list that the report's JSON has in part is there already. */
static bool is_said(const struct section *s)
{
	for (size_t i = 0; section_at(i) && section_at(i) != s; i++)
		if (!strcmp(section_at(i)->name, s->name))
			return true;
	return false;
}

static void put_named(const struct section *s)
{
	struct paths paths = { .n = 0 };
	if (s->form == SECTION_MEMBERS || s->texts || is_said(s))
		return;
	add_path(&paths, "", s->name, s->form);
	put_section(s, &paths);
}

static void put_top(const char *command, const struct section *(*at)(size_t i))
{
	printf("\n## Top level of `weir %s --json`\n", command);
	put_head();
	printf("| `schema_version` | integer | | | of this page: %d; it grows when a key goes or changes "
	       "its meaning, not when one is added |\n",
		JSON_SCHEMA_VERSION);
	for (size_t i = 0; at(i); i++) {
		const struct section *s = at(i);
		if (s->form == SECTION_MEMBERS)
			put_columns(s);
		else if (!s->nested && !s->asked)
			printf("| `%s` | %s | | %s | %s |\n", s->name,
				s->texts                  ? "array of string"
				: s->form == SECTION_LIST ? "array"
							  : "object or null",
				s->heading, s->texts ? s->columns->meaning : "");
	}
}

static int put_memory(void)
{
	for (size_t i = 0; memory_section_at(i); i++)
		check_section(memory_section_at(i));
	put_top("memory", memory_section_at);
	printf("| `summary` | array of string | | | how much memory, who has it, what to do first |\n");
	for (size_t i = 0; memory_section_at(i); i++) {
		const struct section *s = memory_section_at(i);
		if (s->form == SECTION_MEMBERS)
			put_inner(s, &(struct paths){ .n = 1 }, true);
		else
			put_named(s);
	}
	return wrong;
}

static const struct section *diff_section_at(size_t i)
{
	return i ? NULL : &section_diff;
}

static int put_diff(void)
{
	check_section(&section_diff);
	put_top("diff", diff_section_at);
	put_inner(&section_diff, &(struct paths){ .n = 1 }, false);
	return wrong;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return !strcmp(argv[1], "diff") ? put_diff() : put_memory();
	for (size_t i = 0; section_at(i); i++)
		check_section(section_at(i));
	put_top("report", section_at);
	for (size_t i = 0; section_at(i); i++)
		if (!section_at(i)->asked)
			put_named(section_at(i));
	printf("\n# Lists of `--only`\n");
	put_about(
		"`weir report --only NAME` makes these lists. `weir report --json` does not have them.");
	for (size_t i = 0; section_at(i); i++)
		if (section_at(i)->asked)
			put_named(section_at(i));
	return wrong;
}
