/* Both forms of a configuration share this: see config_reader.h. */
#include "store/config_reader.h"

#include <errno.h>

#include "base/text.h"

#define VALUES 1024 /* of one list; checks look through them */

#define PLACE_BYTES 16

static const char *line_text(char to[PLACE_BYTES], unsigned line)
{
	snprintf(to, PLACE_BYTES, line ? "%u:" : "", line);
	return to;
}

int config_fail(struct config_reader *r, unsigned line, const char *format, ...)
{
	char text[sizeof r->err->text], where[PLACE_BYTES];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	text_make_safe(text);
	return error_set(r->err, -EINVAL, "%s:%s %s", r->file, line_text(where, line), text);
}

unsigned config_line_of(const struct config_reader *r, const json_t *value)
{
	for (size_t i = r->places.n; i > 0; i--)
		if (r->places.v[i - 1].value == value)
			return r->places.v[i - 1].line;
	return 0;
}

/* JSON may also have a name in lowerCamelCase. */
static bool is_name(const char *name, struct slice text)
{
	size_t i = 0;
	for (; *name; name++) {
		char c = *name;
		if (c == '_' && i < text.n && text.at[i] != '_' && name[1] >= 'a')
			c = (char)(*++name - 'a' + 'A');
		if (i == text.n || text.at[i++] != c)
			return false;
	}
	return i == text.n;
}

int config_find_field(struct config_reader *r, const struct config_message *m, struct slice name,
	const struct config_field **ret)
{
	for (const struct config_field *f = m->fields; f->name; f++)
		if (slice_is(name, f->name) || (!r->at && is_name(f->name, name))) {
			*ret = f;
			return 0;
		}
	char text[40];
	snprintf(text, sizeof text, "%.*s", (int)(name.n < 39 ? name.n : 39), name.at);
	const char *near = NULL;
	unsigned best = name.n < 12 ? 2 + (unsigned)name.n / 4 : 5;
	for (const struct config_field *f = m->fields; f->name; f++) {
		const unsigned d = text_distance(text, f->name, best);
		near = d < best ? f->name : near;
		best = d;
	}
	return config_fail(r, r->line, "%s has no field %s%s%s%s", m->name, text,
		near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

json_t *config_default(const struct config_field *f)
{
	switch (f->kind) {
	case KIND_STRING:
		return json_string("");
	case KIND_BOOL:
		return json_false();
	case KIND_DOUBLE:
		return json_real(0);
	case KIND_ENUM:
		return json_string(f->values[0]);
	case KIND_DTYPE:
		return json_string(dtype_rows[DTYPE_NONE].config);
	case KIND_MESSAGE:
		return json_object();
	default:
		return json_integer(0);
	}
}

json_t *config_whole(
	struct config_reader *r, const struct config_field *f, bool negative, uint64_t magnitude)
{
	if (f->kind == KIND_DOUBLE)
		return json_real(negative ? -(double)magnitude : (double)magnitude);
	if (f->kind == KIND_BOOL && magnitude <= 1 && !negative)
		return json_boolean(magnitude);
	if (f->kind == KIND_ENUM || f->kind == KIND_DTYPE) {
		for (uint64_t i = 0; f->kind == KIND_ENUM && f->values[i] && !negative; i++)
			if (i == magnitude)
				return json_string(f->values[i]);
		if (f->kind == KIND_DTYPE && magnitude < DTYPES && !negative)
			return json_string(dtype_rows[magnitude].config);
		config_fail(r, r->line, "%s has no value %s%llu", f->name, negative ? "-" : "",
			(unsigned long long)magnitude);
		return NULL;
	}
	const uint64_t most = f->kind == KIND_INT32    ? INT32_MAX
			      : f->kind == KIND_UINT32 ? UINT32_MAX
						       : INT64_MAX;
	const bool is_unsigned = f->kind == KIND_UINT32 || f->kind == KIND_UINT64;
	if (f->kind < KIND_INT32 || f->kind > KIND_SHAPE)
		config_fail(r, r->line, "%s takes no number", f->name);
	else if (negative && is_unsigned && magnitude)
		config_fail(r, r->line, "%s takes no number below 0", f->name);
	else if (magnitude > most + (negative && !is_unsigned))
		config_fail(r, r->line, "the number of %s is too large", f->name);
	else
		return json_integer(negative ? (json_int_t)(-magnitude) : (json_int_t)magnitude);
	return NULL;
}

json_t *config_word(struct config_reader *r, const struct config_field *f, struct slice word)
{
	static const char *const words[] = { "false", "true", "False", "True", "f", "t" };
	for (size_t i = 0; f->kind == KIND_BOOL && i < sizeof words / sizeof words[0]; i++)
		if (slice_is(word, words[i]))
			return json_boolean(i & 1);
	if (f->kind == KIND_DTYPE) {
		const enum dtype type = dtype_of_config(word);
		if (type != DTYPE_NONE || slice_is(word, dtype_rows[DTYPE_NONE].config))
			return json_stringn(word.at, word.n);
	}
	for (size_t i = 0; f->kind == KIND_ENUM && f->values[i]; i++)
		if (slice_is(word, f->values[i]))
			return json_string(f->values[i]);
	const char *wants = f->kind == KIND_BOOL     ? "true or false"
			    : f->kind == KIND_DTYPE  ? "a type such as TYPE_FP32"
			    : f->kind == KIND_ENUM   ? f->values[0]
			    : f->kind == KIND_STRING ? "a string in quotes"
						     : "a number";
	config_fail(r, r->line, "%s takes %s%s, not %.*s", f->name, wants,
		f->kind == KIND_ENUM && f->values[1] ? " or another of its values" : "",
		(int)(word.n < 40 ? word.n : 40), word.at);
	return NULL;
}

json_t *config_string(
	struct config_reader *r, const struct config_field *f, const char *bytes, size_t n)
{
	json_t *v = f->kind == KIND_STRING && !memchr(bytes, 0, n) ? json_stringn(bytes, n) : NULL;
	if (!v && f->kind != KIND_STRING)
		config_fail(r, r->line, "%s takes no string", f->name);
	else if (!v)
		config_fail(r, r->line, "the string of %s is not UTF-8, or it has a zero byte",
			f->name);
	return v;
}

/* A list or a message that is there is not empty, so it is no default. */
static bool is_default(const struct config_field *f, const json_t *value)
{
	if (f->label == LABEL_MANY || f->label == LABEL_MAP || f->kind == KIND_MESSAGE)
		return false;
	json_t *usual = config_default(f);
	const bool is = json_equal(usual, value);
	json_decref(usual);
	return is;
}

static int check_use(struct config_reader *r, const struct config_field *f, const json_t *value)
{
	if (f->use == USE_REFUSED && !is_default(f, value))
		return config_fail(r, r->line, "%s is not possible: %s", f->name, f->why);
	if (f->use == USE_IGNORED && !is_default(f, value) && r->warnings) {
		char where[PLACE_BYTES];
		buf_printf(r->warnings, "%s:%s Weir ignores %s: %s\n", r->file,
			line_text(where, r->line), f->name, f->why);
	}
	return 0;
}

static int add_one(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree, json_t *value)
{
	if (json_object_get(tree, f->name))
		return config_fail(r, r->line, "%s stands there twice", f->name);
	for (const struct config_field *o = m->fields; f->label == LABEL_ONEOF && o->name; o++)
		if (o->label == LABEL_ONEOF && json_object_get(tree, o->name))
			return config_fail(r, r->line, "%s has either %s or %s, not both", m->name,
				o->name, f->name);
	json_object_set(tree, f->name, value);
	return 0;
}

int config_add(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree, const char *key, json_t *value)
{
	int e = check_use(r, f, value);
	json_t *list = json_object_get(tree, f->name);
	if (!e && (f->label == LABEL_ONE || f->label == LABEL_ONEOF)) {
		e = add_one(r, m, f, tree, value);
	} else if (!e) {
		if (!list) {
			list = f->label == LABEL_MANY ? json_array() : json_object();
			json_object_set_new(tree, f->name, list);
		}
		if (json_array_size(list) + json_object_size(list) >= VALUES)
			e = config_fail(r, r->line, "%s has more than %d values", f->name, VALUES);
		else if (f->label == LABEL_MANY)
			json_array_append(list, value);
		else
			json_object_set(list, key, value);
	}
	if (!e && r->line)
		*array_push(&r->places) = (struct config_place){ value, r->line };
	json_decref(value);
	return e;
}
