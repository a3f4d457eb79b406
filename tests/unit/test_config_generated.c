/* Model configurations made at random from the table of fields, read in each form that they have.
 */
#include "unit.h"

#include <stdio.h>

#include "store/config_reader.h"
#include "store/model_config.h"

static struct error err;
static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static json_t *random_text(void)
{
	static const char *const parts[] = { "a", "Z", "0", " ", "\"", "'", "\\", "\n", "\t", "#",
		"{", "é", "😀", "\x01", "\x7f", "weir", ":" };
	char text[64] = "";
	size_t n = 0;
	for (unsigned i = below(8); i > 0; i--) {
		const char *part = parts[below(COUNT_OF(parts))];
		memcpy(text + n, part, strlen(part) + 1);
		n += strlen(part);
	}
	return json_string(text);
}

static json_t *random_message(const struct config_message *m);

static json_t *random_value(const struct config_field *f)
{
	unsigned values = 0;
	switch (f->kind) {
	case KIND_MESSAGE:
		return random_message(f->message);
	case KIND_STRING:
		return random_text();
	case KIND_BOOL:
		return json_boolean(below(2));
	case KIND_DOUBLE:
		return json_real((below(2000) - 1000.0) / 8);
	case KIND_DTYPE:
		return json_string(dtype_rows[below(DTYPES)].config);
	case KIND_ENUM:
		while (f->values[values])
			values++;
		return json_string(f->values[below(values)]);
	case KIND_SHAPE:
		return json_integer(below(4) ? 1 + (int)below(9) : -1);
	case KIND_INT32:
	case KIND_UINT32:
		return json_integer(below(8) ? below(5) : INT32_MAX);
	default:
		return json_integer(below(4) ? below(9) : INT64_MAX);
	}
}

static json_t *random_field(const struct config_field *f)
{
	const unsigned n = f->label == LABEL_ONE || f->label == LABEL_ONEOF ? 0 : 1 + below(3);
	if (!n)
		return random_value(f);
	json_t *list = f->label == LABEL_MANY ? json_array() : json_object();
	for (unsigned i = 0; i < n; i++) {
		json_t *v = random_value(f);
		char key[12];
		snprintf(key, sizeof key, f->label == LABEL_LEVELS ? "%u" : "k%u", i + 1);
		/* Names of inputs differ, nearly always. */
		if (json_is_object(v) &&
			(!strcmp(f->name, "input") || !strcmp(f->name, "output")) && below(20) &&
			f->label == LABEL_MANY)
			json_object_set_new(v, "name", json_string(key));
		if (f->label == LABEL_MANY)
			json_array_append_new(list, v);
		else
			json_object_set_new(list, key, v);
	}
	return list;
}

static json_t *random_message(const struct config_message *m)
{
	json_t *tree = json_object();
	bool one = false;
	for (const struct config_field *f = m->fields; f->name; f++) {
		/* A field that is mostly wrong at random is seldom there. */
		const bool often_wrong = !strcmp(f->name, "model_warmup") ||
					 !strcmp(f->name, "reshape") ||
					 !strcmp(f->name, "priority_queue_policy");
		if (f->use == USE_REFUSED || (f->label == LABEL_ONEOF && one) ||
			below(often_wrong ? 12 : 3))
			continue;
		one |= f->label == LABEL_ONEOF;
		json_object_set_new(tree, f->name, random_field(f));
	}
	return tree;
}

static void put_blank(struct buf *b)
{
	static const char *const blanks[] = { " ", "\n", "\t", " # comment } ' \"\n", "\r\n  " };
	buf_put_text(b, blanks[below(COUNT_OF(blanks))]);
}

static void put_bytes(struct buf *b, const char *text)
{
	char quote = below(2) ? '"' : '\'';
	buf_printf(b, "%c", quote);
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;
		if (c == (unsigned char)quote || c == '\\' || c == '\n' || c < ' ' || !below(6))
			buf_printf(b, below(2) ? "\\%03o" : "\\x%02x", c);
		else
			buf_put(b, text, 1);
		if (!below(8) && (text[1] & 0xc0) != 0x80) {
			buf_printf(b, "%c", quote);
			put_blank(b);
			quote = below(2) ? '"' : '\'';
			buf_printf(b, "%c", quote);
		}
	}
	buf_printf(b, "%c", quote);
}

static void put_message(struct buf *b, const struct config_message *m, const json_t *tree);

static void put_braces(struct buf *b, const struct config_message *m, const json_t *tree)
{
	const bool angles = !below(4);
	buf_put_text(b, angles ? "<" : "{");
	put_blank(b);
	put_message(b, m, tree);
	buf_put_text(b, angles ? ">" : "}");
}

static void put_value(struct buf *b, const struct config_field *f, const json_t *v)
{
	static const char *const forms[] = { "%lld", "0x%llx", "0%llo", "0X%llX" };
	static const char *const bools[2][4] = { { "false", "False", "f", "0" },
		{ "true", "True", "t", "1" } };
	const json_int_t n = json_integer_value(v);
	unsigned i = 0;
	if (f->kind == KIND_MESSAGE)
		put_braces(b, f->message, v);
	else if (f->kind == KIND_STRING)
		put_bytes(b, json_string_value(v));
	else if (f->kind == KIND_BOOL)
		buf_put_text(b, bools[json_is_true(v)][below(4)]);
	else if (f->kind == KIND_DOUBLE)
		buf_printf(b, below(2) ? "%.17g" : "%.9ef", json_real_value(v));
	else if (json_is_integer(v) && n < 0)
		buf_printf(b, below(2) ? "-%lld" : "- %lld", -n);
	else if (json_is_integer(v))
		buf_printf(b, forms[below(4)], n);
	else if (f->kind == KIND_DTYPE && !below(3))
		buf_printf(b, "%u", dtype_of_config(slice_of(json_string_value(v))));
	else if (f->kind == KIND_ENUM && !below(3)) {
		while (strcmp(f->values[i], json_string_value(v)) != 0)
			i++;
		buf_printf(b, "%u", i);
	} else
		buf_put_text(b, json_string_value(v));
}

static void put_entry(struct buf *b, const struct config_field *f, const char *key, const json_t *v)
{
	const bool colon = f->kind != KIND_MESSAGE || below(2), value_first = below(2);
	buf_put_text(b, "{ ");
	for (unsigned i = 0; i < 2; i++) {
		if ((i == 0) == value_first) {
			buf_printf(b, colon ? "value: " : "value ");
			put_value(b, f, v);
		} else {
			buf_put_text(b, "key: ");
			if (f->label == LABEL_LEVELS)
				buf_put_text(b, key);
			else
				put_bytes(b, key);
		}
		buf_put_text(b, below(3) ? " " : "; ");
	}
	buf_put_text(b, "}");
}

static void put_name(struct buf *b, const struct config_field *f)
{
	const bool map = f->label == LABEL_MAP || f->label == LABEL_LEVELS;
	buf_printf(b, "%s%s", f->name, (f->kind != KIND_MESSAGE && !map) || below(2) ? ":" : "");
	put_blank(b);
}

/* A list in brackets, or the field once for each value. */
static void put_list(struct buf *b, const struct config_field *f, const json_t *list)
{
	const bool brackets = below(2);
	const size_t n = json_array_size(list) + json_object_size(list);
	void *at = json_object_iter((json_t *)list);
	for (size_t i = 0; i < n; i++) {
		if (!brackets || !i)
			put_name(b, f);
		buf_put_text(b, !brackets ? "" : i ? ", " : "[ ");
		if (at)
			put_entry(b, f, json_object_iter_key(at), json_object_iter_value(at));
		else
			put_value(b, f, json_array_get(list, i));
		at = at ? json_object_iter_next((json_t *)list, at) : NULL;
		put_blank(b);
	}
	buf_put_text(b, brackets ? "]" : "");
}

static void put_message(struct buf *b, const struct config_message *m, const json_t *tree)
{
	static const char *const separators[] = { "", ",", ";", "" };
	for (const struct config_field *f = m->fields; f->name; f++) {
		const json_t *v = json_object_get(tree, f->name);
		if (!v)
			continue;
		if (f->label == LABEL_ONE || f->label == LABEL_ONEOF) {
			put_name(b, f);
			put_value(b, f, v);
		} else {
			put_list(b, f, v);
		}
		buf_put_text(b, separators[below(4)]);
		put_blank(b);
	}
}

/* name_of_it as nameOfIt, all the way down; keys of maps stay. */
static json_t *rename_all(const struct config_message *m, const json_t *tree)
{
	json_t *out = json_object();
	for (const struct config_field *f = m->fields; f->name; f++) {
		json_t *v = json_object_get(tree, f->name), *element;
		char name[64];
		const char *key;
		size_t n = 0, i;
		if (!v)
			continue;
		for (const char *c = f->name; *c; c++)
			name[n++] = (char)(*c == '_' ? *++c - 'a' + 'A' : *c);
		name[n] = '\0';
		json_t *copy = json_is_array(v) ? json_array() : json_object();
		if (f->kind != KIND_MESSAGE) {
			json_decref(copy);
			copy = json_incref(v);
		} else if (json_is_array(v)) {
			json_array_foreach(v, i, element)
				json_array_append_new(copy, rename_all(f->message, element));
		} else if (f->label == LABEL_MAP || f->label == LABEL_LEVELS) {
			json_object_foreach(v, key, element)
				json_object_set_new(copy, key, rename_all(f->message, element));
		} else {
			json_decref(copy);
			copy = rename_all(f->message, v);
		}
		json_object_set_new(out, name, copy);
	}
	return out;
}

static struct model_config *read_object(const json_t *object)
{
	struct model_config *c = NULL;
	struct buf b = { 0 };
	err.text[0] = '\0';
	config_from_json(object, "config.pbtxt", &c, &b, &err);
	buf_free(&b);
	return c;
}

static struct model_config *read_text(const struct buf *text)
{
	struct model_config *c = NULL;
	struct buf b = { 0 };
	err.text[0] = '\0';
	config_read(text->v ? text->v : "", text->n, "config.pbtxt", &c, &b, &err);
	buf_free(&b);
	return c;
}

static void check_equal(const struct model_config *a, const struct model_config *b)
{
	json_t *x = config_json(a), *y = config_json(b);
	assert_true(json_equal(x, y));
	json_decref(x);
	json_decref(y);
}

/* Text, JSON and JSON in the other spelling say the same, or are wrong for the same reason. */
static void generated_configurations_are_read_as_they_are_printed(void **state)
{
	unsigned good_ones = 0;
	for (unsigned i = 0; i < 3000; i++) {
		json_t *tree = random_message(&config_ModelConfig);
		json_t *renamed = rename_all(&config_ModelConfig, tree);
		struct model_config *by_json = read_object(tree);
		char why[sizeof err.text];
		snprintf(why, sizeof why, "%s", err.text + strcspn(err.text, " "));
		struct model_config *by_name = read_object(renamed);
		struct buf text = { 0 };
		put_message(&text, &config_ModelConfig, tree);
		struct model_config *by_text = read_text(&text);
		const char *behind = err.text + strcspn(err.text, " ");
		if (!by_json != !by_text || strcmp(why, behind) != 0)
			print_error("json:%s\ntext: %s\n%s\n", why, err.text, buf_text(&text));
		assert_string_equal(why, behind);
		assert_true(!by_json == !by_text && !by_json == !by_name);
		if (by_json) {
			check_equal(by_json, by_text);
			check_equal(by_json, by_name);
			json_t *printed = config_json(by_text);
			struct model_config *again = read_object(printed);
			check_equal(by_text, again);
			config_free(again);
			json_decref(printed);
			good_ones++;
		}
		config_free(by_json);
		config_free(by_name);
		config_free(by_text);
		buf_free(&text);
		json_decref(tree);
		json_decref(renamed);
	}
	assert_true(good_ones >= 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_configurations_are_read_as_they_are_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
