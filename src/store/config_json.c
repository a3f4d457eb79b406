/* The JSON form of a configuration: read into a tree, and printed with all defaults. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/config_reader.h"

static json_t *read_message(
	struct config_reader *r, const struct config_field *f, const json_t *value)
{
	json_t *v = json_object();
	if (!config_read_json(r, f->message, value, v))
		return v;
	json_decref(v);
	return NULL;
}

/* Protobuf writes numbers of 64 bits as strings, and reads any number from one. */
static json_t *read_number_text(
	struct config_reader *r, const struct config_field *f, const json_t *value)
{
	const char *text = json_string_value(value);
	const bool negative = *text == '-';
	uint64_t n;
	if (slice_u64(slice_of(text + negative), &n))
		return config_whole(r, f, negative, n);
	return config_word(r, f, slice_of(text));
}

static json_t *read_value(
	struct config_reader *r, const struct config_field *f, const json_t *value)
{
	const bool is_number = f->kind >= KIND_INT32 && f->kind <= KIND_DOUBLE;
	if (f->kind == KIND_MESSAGE && f->message)
		return read_message(r, f, value);
	if (f->kind == KIND_STRING && json_is_string(value))
		return config_string(r, f, json_string_value(value), json_string_length(value));
	if (json_is_boolean(value) && f->kind == KIND_BOOL)
		return json_boolean(json_is_true(value));
	if (json_is_string(value) && f->kind != KIND_BOOL)
		return is_number ? read_number_text(r, f, value)
				 : config_word(r, f, slice_of(json_string_value(value)));
	const double real = json_number_value(value);
	if (json_is_real(value) && f->kind == KIND_DOUBLE)
		return json_real(real);
	const json_int_t n = json_is_integer(value) ? json_integer_value(value)
			     : json_is_real(value) && real == trunc(real) && fabs(real) < 0x1p62
				     ? (json_int_t)real
				     : -1;
	if (f->kind != KIND_BOOL && json_is_number(value) &&
		(n != -1 || json_is_integer(value) || real == -1))
		return config_whole(r, f, n < 0, n < 0 ? -(uint64_t)n : (uint64_t)n);
	return config_word(r, f, SLICE("a value of another kind"));
}

static int read_list(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, const json_t *list, json_t *tree)
{
	size_t i;
	json_t *element;
	if (!json_is_array(list))
		return config_fail(r, 0, "%s takes a list", f->name);
	json_array_foreach(list, i, element)
	{
		json_t *v = read_value(r, f, element);
		const int e = v ? config_add(r, m, f, tree, NULL, v) : -EINVAL;
		if (e)
			return e;
	}
	return 0;
}

static int read_map(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, const json_t *map, json_t *tree)
{
	const char *key;
	json_t *element;
	if (!json_is_object(map))
		return config_fail(r, 0, "%s takes an object", f->name);
	json_object_foreach((json_t *)map, key, element)
	{
		uint64_t level;
		if (f->label == LABEL_LEVELS &&
			(!slice_u64(slice_of(key), &level) || level > UINT32_MAX))
			return config_fail(
				r, 0, "a key of %s is a whole number, not %s", f->name, key);
		json_t *v = read_value(r, f, element);
		const int e = v ? config_add(r, m, f, tree, key, v) : -EINVAL;
		if (e)
			return e;
	}
	return 0;
}

static int read_field(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, const json_t *value, json_t *tree)
{
	if (f->label == LABEL_MANY && json_array_size(value) + !json_is_array(value) == 0)
		return 0; /* an empty list is none */
	if (f->kind == KIND_MESSAGE && f->use == USE_REFUSED)
		return config_add(r, m, f, tree, NULL, json_object());
	if (f->label == LABEL_MANY)
		return read_list(r, m, f, value, tree);
	if (f->label == LABEL_MAP || f->label == LABEL_LEVELS)
		return read_map(r, m, f, value, tree);
	json_t *v = read_value(r, f, value);
	return v ? config_add(r, m, f, tree, NULL, v) : -EINVAL;
}

int config_read_json(
	struct config_reader *r, const struct config_message *m, const json_t *object, json_t *tree)
{
	const char *name;
	json_t *value;
	if (!json_is_object(object))
		return config_fail(r, 0, "%s is an object", m->name);
	json_object_foreach((json_t *)object, name, value)
	{
		const struct config_field *f = NULL;
		int e = config_find_field(r, m, slice_of(name), &f);
		if (!e && !json_is_null(value))
			e = read_field(r, m, f, value, tree);
		if (e)
			return e;
	}
	return 0;
}

static json_t *full(const struct config_message *m, const json_t *tree);

static json_t *full_value(const struct config_field *f, const json_t *value)
{
	return f->kind == KIND_MESSAGE ? full(f->message, value) : json_deep_copy(value);
}

static json_t *full_list(const struct config_field *f, const json_t *list)
{
	json_t *v = json_array(), *element;
	size_t i;
	json_array_foreach(list, i, element) json_array_append_new(v, full_value(f, element));
	return v;
}

static json_t *full_map(const struct config_field *f, const json_t *map)
{
	json_t *v = json_object(), *element;
	const char *key;
	json_object_foreach((json_t *)map, key, element)
		json_object_set_new(v, key, full_value(f, element));
	return v;
}

/* As protobuf prints with defaults: a message only where it is set, everything else always. */
static json_t *full(const struct config_message *m, const json_t *tree)
{
	json_t *v = json_object();
	for (const struct config_field *f = m->fields; f->name; f++) {
		const json_t *value = json_object_get(tree, f->name);
		const bool set_only = f->label == LABEL_ONEOF || f->kind == KIND_MESSAGE;
		if (f->label == LABEL_MANY)
			json_object_set_new(v, f->name, full_list(f, value));
		else if (f->label == LABEL_MAP || f->label == LABEL_LEVELS)
			json_object_set_new(v, f->name, full_map(f, value));
		else if (value)
			json_object_set_new(v, f->name, full_value(f, value));
		else if (!set_only)
			json_object_set_new(v, f->name, config_default(f));
	}
	return v;
}

/* Triton fills these in where a configuration does not say them. */
static void set_usual(json_t *tree, const char *name, const char *json)
{
	if (!json_array_size(json_object_get(tree, name)) &&
		!json_object_size(json_object_get(tree, name)))
		json_object_set_new(tree, name, json_loads(json, 0, NULL));
}

json_t *config_json(const struct model_config *c)
{
	json_t *tree = json_deep_copy(c->tree);
	set_usual(tree, "version_policy", "{\"latest\":{\"num_versions\":1}}");
	set_usual(tree, "optimization", "{}");
	json_t *optimization = json_object_get(tree, "optimization");
	set_usual(optimization, "input_pinned_memory", "{\"enable\":true}");
	set_usual(optimization, "output_pinned_memory", "{\"enable\":true}");
	set_usual(tree, "instance_group", "[{\"count\":1}]");
	json_t *group = json_array_get(json_object_get(tree, "instance_group"), 0);
	if (!json_object_get(group, "name"))
		json_object_set_new(group, "name", json_string(c->name));
	json_t *all = full(&config_ModelConfig, tree);
	json_decref(tree);
	return all;
}
