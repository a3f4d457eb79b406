/* See select_filter.h. */
#include "report/select_filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum op { OP_NOT_LIKE, OP_NOT, OP_LEAST, OP_MOST, OP_IS, OP_ABOVE, OP_BELOW, OP_LIKE, OPS };

/* The longer ones first. */
static const char *const ops[OPS] = {
	[OP_NOT_LIKE] = "!~",
	[OP_NOT] = "!=",
	[OP_LEAST] = ">=",
	[OP_MOST] = "<=",
	[OP_IS] = "=",
	[OP_ABOVE] = ">",
	[OP_BELOW] = "<",
	[OP_LIKE] = "~",
};

static const struct {
	const char *name;
	double factor;
} units[] = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "K", 1024 },
	{ "M", 1048576 }, { "G", 1073741824 }, { "KiB", 1024 }, { "MiB", 1048576 },
	{ "GiB", 1073741824 } };

/* NAN: no number. */
static double number_of(const char *text)
{
	char *end;
	const double value = strtod(text, &end);
	if (end == text)
		return NAN;
	end += strspn(end, " ");
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (!strcmp(units[i].name, end))
			return value * units[i].factor;
	return NAN;
}

static int parse(struct select_filter *f, const char *text, struct error *err)
{
	text += strspn(text, " ");
	const size_t key = strcspn(text, " !=<>~");
	const char *at = text + key + strspn(text + key, " ");
	int op = 0;
	while (op < OPS && strncmp(at, ops[op], strlen(ops[op])) != 0)
		op++;
	if (!key || key >= sizeof f->key || op == OPS)
		return error_set(err, -EINVAL,
			"%s is no condition: it wants a column, one of = != < <= > >= ~ !~, and a "
			"value",
			text);
	at += strlen(ops[op]);
	at += strspn(at, " ");
	snprintf(f->key, sizeof f->key, "%.*s", (int)key, text);
	f->op = op;
	f->text = strdup(at);
	f->value = number_of(at);
	const bool compares = op == OP_LEAST || op == OP_MOST || op == OP_ABOVE || op == OP_BELOW;
	if (compares && isnan(f->value))
		return error_set(err, -EINVAL, "%s: %s is no number", text, at);
	return f->text ? 0 : -ENOMEM;
}

int select_filters_parse(
	struct select_filters *f, const char *const *expressions, size_t count, struct error *err)
{
	int e = 0;
	f->v = calloc(count + 1, sizeof *f->v);
	if (!f->v)
		return -ENOMEM;
	for (; f->count < count && !e; f->count++)
		e = parse(&f->v[f->count], expressions[f->count], err);
	return e;
}

static bool number_passes(int op, double value, double than)
{
	switch (op) {
	case OP_LEAST:
		return value >= than;
	case OP_MOST:
		return value <= than;
	case OP_ABOVE:
		return value > than;
	case OP_BELOW:
		return value < than;
	case OP_NOT:
		return value != than;
	default:
		return value == than;
	}
}

static bool text_passes(int op, const char *value, const char *like)
{
	const bool pattern = strchr(like, '*') != NULL;
	switch (op) {
	case OP_IS:
		return !strcmp(value, like);
	case OP_NOT:
		return strcmp(value, like) != 0;
	case OP_LIKE:
		return pattern ? !fnmatch(like, value, 0) : strstr(value, like) != NULL;
	case OP_NOT_LIKE:
		return pattern ? fnmatch(like, value, 0) != 0 : !strstr(value, like);
	default:
		return false;
	}
}

static bool passes(const struct select_filter *f, const struct field *field)
{
	const bool known = field && field->kind != FIELD_NULL;
	if (!known || !strcmp(f->text, "null"))
		return !strcmp(f->text, "null") && (f->op == OP_IS) == !known;
	if (field->kind == FIELD_NUMBER && !isnan(f->value))
		return number_passes(f->op, field_number(field), f->value);
	char *text = field_text(field);
	const bool passed = text && text_passes(f->op, text, f->text);
	free(text);
	return passed;
}

bool select_filters_pass(const struct select_filters *f, const struct fields *row)
{
	for (size_t i = 0; i < f->count; i++)
		if (!passes(&f->v[i], fields_find(row, f->v[i].key)))
			return false;
	return true;
}

void select_filters_free(struct select_filters *f)
{
	for (size_t i = 0; f->v && i < f->count; i++)
		free(f->v[i].text);
	free(f->v);
}
