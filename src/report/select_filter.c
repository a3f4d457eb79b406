/* Parses the conditions of --filter and applies them to rows. */
#include "report/select_filter.h"

#include <fnmatch.h>

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

/* For a value that is not in quotation marks: what shows that more was meant.  A template's name
 * ends in > and an operator's may stand at the end of what is looked for, so some of it is
 * believed. */
static const char *half_written(int op, const char *value, size_t bytes)
{
	const bool contains = op == OP_LIKE || op == OP_NOT_LIKE;
	const char last = bytes ? value[bytes - 1] : 0;
	if (!bytes)
		return "its value is missing";
	if (strchr(contains ? "=~!" : "=~!<>", *value))
		return "its value begins with an operator";
	if (strchr("=~!", last) || (bytes > 1 && strchr("<>", last) && value[bytes - 2] == ' '))
		return "its value ends with an operator";
	return NULL;
}

static bool compares(const struct select_filter *f)
{
	return f->op == OP_LEAST || f->op == OP_MOST || f->op == OP_ABOVE || f->op == OP_BELOW;
}

static int take_value(
	struct select_filter *f, const char *text, const char *value, struct error *err)
{
	size_t bytes = strlen(value);
	while (bytes && value[bytes - 1] == ' ')
		bytes--;
	const bool quoted = bytes > 1 && strchr("\"'", *value) && value[bytes - 1] == *value;
	const char *half = quoted ? NULL : half_written(f->op, value, bytes);
	if (half)
		return error_set(err, -EINVAL,
			"'%s' is no condition: %s. Give a column, one of = != < <= > >= ~ !~, and a "
			"value. A value with an operator at an end needs quotation marks",
			text, half);
	f->text = xstrndup(value + quoted, bytes - 2 * quoted);
	f->value = quoted ? NAN : number_of(f->text);
	if (compares(f) && !isfinite(f->value))
		return error_set(err, -EINVAL,
			"%s: %s is no number. A number may have a unit of time (ns us ms s) or of size "
			"(K M G)",
			text, f->text);
	return 0;
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
			"'%s' is no condition: give a column, one of = != < <= > >= ~ !~, and a "
			"value",
			text);
	at += strlen(ops[op]);
	at += strspn(at, " ");
	snprintf(f->key, sizeof f->key, "%.*s", (int)key, text);
	f->op = op;
	return take_value(f, text, at, err);
}

int select_filters_parse(
	struct select_filters *f, const char *const *expressions, size_t count, struct error *err)
{
	int e = 0;
	f->v = xcalloc(count + 1, sizeof *f->v);
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

/* To the digits that JSON writes: whoever copies a number from there means that one. */
static double shown_number(const struct value *v)
{
	char text[40];
	if (v->kind != VALUE_REAL)
		return value_as_number(v);
	snprintf(text, sizeof text, "%.6g", v->real);
	return strtod(text, NULL);
}

bool select_filter_passes(const struct select_filter *f, const struct value *v)
{
	char room[ROW_TEXT];
	const bool known = v->kind != VALUE_ABSENT && v->kind != VALUE_NULL;
	if (!known || !strcmp(f->text, "null"))
		return !strcmp(f->text, "null") && (f->op == OP_IS) == !known;
	const bool contains = f->op == OP_LIKE || f->op == OP_NOT_LIKE;
	if ((v->kind == VALUE_U64 || v->kind == VALUE_REAL) && !isnan(f->value) && !contains)
		return number_passes(f->op, shown_number(v), f->value);
	return text_passes(f->op, value_as_text(v, room), f->text);
}

static int check_kind(const struct select_filter *f, bool number, bool text, struct error *err)
{
	const bool is = f->op == OP_IS || f->op == OP_NOT;
	if (number && is && strcmp(f->text, "null") != 0 && isnan(number_of(f->text)))
		return error_set(err, -EINVAL,
			"%s %s %s: %s has numbers, and %s is none. Give a number, with a unit of time "
			"(ns us ms s) or of size (K M G) if it has one, or null",
			f->key, ops[f->op], f->text, f->key, f->text);
	if (text && compares(f))
		return error_set(err, -EINVAL,
			"%s %s %s: %s has texts, which are neither more nor less. They take = != ~ !~",
			f->key, ops[f->op], f->text, f->key);
	return 0;
}

int select_filter_check(const struct select_filter *f, const struct column *c, struct error *err)
{
	const bool number = unit_is_number(c->unit);
	return check_kind(f, number, !number, err);
}

void select_filters_free(struct select_filters *f)
{
	for (size_t i = 0; f->v && i < f->count; i++)
		free(f->v[i].text);
	free(f->v);
}
