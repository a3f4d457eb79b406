/* The two directions of message.h. read_scalar() and put_scalar() hold the differences by type. */
#include "wire/message.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/xmalloc.h"
#include "wire/pb.h"

enum message_kind {
	TYPE_BOOL,
	TYPE_INT32,
	TYPE_INT64,
	TYPE_UINT32,
	TYPE_UINT64,
	TYPE_FLOAT,
	TYPE_DOUBLE,
	TYPE_STRING,
	TYPE_BYTES,
	TYPE_ENUM,
	TYPE_MESSAGE
};

struct message_field {
	const char *name;
	uint32_t number;
	enum message_kind type;
	enum { LABEL_ONE, LABEL_REPEATED, LABEL_MAP, LABEL_ONEOF } label;
	enum message_kind key; /* of a map */
	unsigned group;        /* fields of one oneof have one number */
	unsigned of;           /* which message or enum */
};

struct message_type {
	const char *name;
	bool plain;
	const struct message_field *field;
	unsigned fields;
};

struct enum_value {
	unsigned of;
	const char *name;
	int32_t value;
};

#include "message_rows.h"

#define COUNT(a) (sizeof a / sizeof((a)[0]))

static const struct message_type *find_message(const char *name)
{
	for (size_t i = 0; i < COUNT(messages); i++)
		if (!strcmp(messages[i].name, name))
			return &messages[i];
	abort(); /* a name that the table lacks is a mistake of the program */
}

static const struct message_field *find_field(const struct message_type *m, const char *name)
{
	for (unsigned i = 0; i < m->fields; i++)
		if (!strcmp(m->field[i].name, name))
			return &m->field[i];
	return NULL;
}

bool message_has(const char *message_name, const char *field)
{
	return find_field(find_message(message_name), field) != NULL;
}

static enum pb_form form_of(enum message_kind type)
{
	switch (type) {
	case TYPE_FLOAT:
		return PB_32;
	case TYPE_DOUBLE:
		return PB_64;
	case TYPE_STRING:
	case TYPE_BYTES:
	case TYPE_MESSAGE:
		return PB_BYTES;
	default:
		return PB_VARINT;
	}
}

struct place { /* where a reader or writer is, for its sentences */
	const struct message_type *message;
	const struct message_field *field;
	struct error *err;
};

static int refuse(const struct place *at, const char *what)
{
	return error_set(at->err, -EINVAL, "%s of %s %s", at->field ? at->field->name : "a field",
		at->message->name, what);
}

static int read_message(
	const struct message_type *m, struct slice s, struct error *err, json_t **ret);

static json_t *read_enum(unsigned of, uint64_t value)
{
	for (size_t i = 0; i < COUNT(enum_values); i++)
		if (enum_values[i].of == of && enum_values[i].value == (int32_t)value)
			return json_string(enum_values[i].name);
	return json_integer((int32_t)value); /* a later version's */
}

static json_t *read_real(enum message_kind type, uint64_t bits)
{
	float narrow;
	double wide;
	if (type == TYPE_DOUBLE) {
		memcpy(&wide, &bits, sizeof wide);
		return json_real(wide);
	}
	memcpy(&narrow, &bits, sizeof narrow);
	return json_real(narrow);
}

static json_t *read_base64(struct slice bytes)
{
	struct buf text = { 0 };
	json_t *value;
	base64_put(&text, bytes.at, bytes.n);
	value = json_stringn_nocheck(text.n ? text.v : "", text.n);
	buf_free(&text);
	return value;
}

/* The value of one element. -EINVAL: it has no JSON. */
static int read_scalar(const struct place *at, uint64_t number, struct slice bytes, json_t **ret)
{
	const struct message_field *f = at->field;
	switch (f->type) {
	case TYPE_MESSAGE:
		return read_message(&messages[f->of], bytes, at->err, ret);
	case TYPE_STRING:
		*ret = json_stringn(bytes.at, bytes.n);
		return *ret ? 0 : refuse(at, "is not UTF-8");
	case TYPE_BYTES:
		*ret = read_base64(bytes);
		break;
	case TYPE_BOOL:
		*ret = json_boolean(number != 0);
		break;
	case TYPE_ENUM:
		*ret = read_enum(f->of, number);
		break;
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		*ret = read_real(f->type, number);
		return *ret ? 0 : refuse(at, "is no number");
	case TYPE_INT32:
		*ret = json_integer((int32_t)number);
		break;
	case TYPE_UINT32:
		*ret = json_integer((uint32_t)number);
		break;
	case TYPE_UINT64:
		if (number > INT64_MAX)
			return refuse(at, "is 2^63 or more");
		*ret = json_integer((json_int_t)number);
		break;
	case TYPE_INT64:
		*ret = json_integer((json_int_t)number);
		break;
	}
	xcheck(*ret);
	return 0;
}

static json_t *container(json_t *object, const struct message_field *f)
{
	json_t *c = json_object_get(object, f->name);
	if (!c) {
		c = xcheck(f->label == LABEL_MAP ? json_object() : json_array());
		json_object_set_new(object, f->name, c);
	}
	return c;
}

/* An element of a repeated field, or several that are packed. */
static int read_repeated(const struct place *at, const struct pb_field *field, json_t *array)
{
	const enum pb_form form = form_of(at->field->type);
	struct slice packed = field->bytes;
	uint64_t number = field->value;
	json_t *value;
	int rc;
	if (form == PB_BYTES || field->form != PB_BYTES) {
		rc = read_scalar(at, number, field->bytes, &value);
		return rc ? rc : json_array_append_new(array, value);
	}
	while (packed.n) {
		if (pb_value(&packed, form, &number))
			return refuse(at, "is cut off");
		rc = read_scalar(at, number, (struct slice){ 0 }, &value);
		if (rc)
			return rc;
		json_array_append_new(array, value);
	}
	return 0;
}

static int read_key(const struct place *at, const struct pb_field *field, char **ret)
{
	json_t *check;
	free(*ret);
	*ret = NULL;
	if (at->field->key != TYPE_STRING) {
		*ret = xasprintf("%" PRIu64, field->value);
		return 0;
	}
	check = json_stringn(field->bytes.at, field->bytes.n);
	if (!check || memchr(field->bytes.at, 0, field->bytes.n)) {
		json_decref(check);
		return refuse(at, "has a key that is not UTF-8");
	}
	*ret = xstrdup(json_string_value(check));
	json_decref(check);
	return 0;
}

static int read_entry(const struct place *at, struct slice s, json_t *map)
{
	char *key = xstrdup(at->field->key == TYPE_STRING ? "" : "0");
	uint64_t number = 0;
	struct slice bytes = SLICE("");
	json_t *value;
	struct pb_field f;
	int rc;
	while ((rc = pb_next(&s, &f)) > 0) {
		if (f.number == 1 && f.form == form_of(at->field->key))
			rc = read_key(at, &f, &key);
		if (f.number == 2 && f.form == form_of(at->field->type)) {
			number = f.value;
			bytes = f.bytes;
		}
		if (rc < 0)
			break;
	}
	if (rc)
		rc = rc < 0 && !key ? rc : refuse(at, "is cut off");
	if (!rc)
		rc = read_scalar(at, number, bytes, &value);
	if (!rc)
		json_object_set_new(map, key, value);
	free(key);
	return rc;
}

/* The last member of a oneof counts. */
static void forget_group(const struct place *at, json_t *object)
{
	for (unsigned i = 0; i < at->message->fields; i++)
		if (at->message->field[i].group == at->field->group)
			json_object_del(object, at->message->field[i].name);
}

static int read_field(const struct place *at, const struct pb_field *field, json_t *object)
{
	const struct message_field *f = at->field;
	json_t *value;
	int rc;
	if (f->label == LABEL_MAP)
		return field->form == PB_BYTES ? read_entry(at, field->bytes, container(object, f))
					       : 0;
	if (f->label == LABEL_REPEATED &&
		(field->form == PB_BYTES || field->form == form_of(f->type)))
		return read_repeated(at, field, container(object, f));
	if (field->form != form_of(f->type))
		return 0; /* another version's field */
	rc = read_scalar(at, field->value, field->bytes, &value);
	if (rc)
		return rc;
	if (f->group)
		forget_group(at, object);
	return json_object_set_new(object, f->name, value);
}

/* The value of the one field that is set; null where none is. */
static json_t *unwrap(const struct message_type *m, json_t *object)
{
	json_t *value = NULL;
	for (unsigned i = 0; i < m->fields && !value; i++)
		value = json_object_get(object, m->field[i].name);
	value = value ? json_incref(value) : json_null();
	json_decref(object);
	return value;
}

static int read_message(
	const struct message_type *m, struct slice s, struct error *err, json_t **ret)
{
	struct place at = { m, NULL, err };
	struct pb_field field;
	json_t *object;
	int rc;
	object = xcheck(json_object());
	while ((rc = pb_next(&s, &field)) > 0) {
		at.field = NULL;
		for (unsigned i = 0; i < m->fields && !at.field; i++)
			if (m->field[i].number == field.number)
				at.field = &m->field[i];
		rc = at.field ? read_field(&at, &field, object) : 0;
		if (rc)
			goto out;
	}
	at.field = NULL;
	if (rc)
		rc = refuse(&at, "is cut off or is no protobuf");
out:
	if (rc)
		json_decref(object);
	else
		*ret = m->plain ? unwrap(m, object) : object;
	return rc;
}

int message_read(
	const char *message_name, const char *bytes, size_t n, json_t **ret, struct error *err)
{
	return read_message(find_message(message_name), (struct slice){ bytes, n }, err, ret);
}

static int put_message(
	const struct message_type *m, const json_t *value, struct error *err, struct buf *b);

static bool in_range(enum message_kind type, json_int_t v)
{
	switch (type) {
	case TYPE_INT32:
	case TYPE_ENUM:
		return v >= INT32_MIN && v <= INT32_MAX;
	case TYPE_UINT32:
		return v >= 0 && v <= UINT32_MAX;
	case TYPE_UINT64:
		return v >= 0;
	default:
		return true;
	}
}

static int number_of(const struct place *at, const json_t *value, uint64_t *ret)
{
	const struct message_field *f = at->field;
	if (f->type == TYPE_BOOL) {
		*ret = json_is_true(value);
		return json_is_boolean(value) ? 0 : refuse(at, "is neither true nor false");
	}
	if (f->type == TYPE_ENUM && json_is_string(value)) {
		for (size_t i = 0; i < COUNT(enum_values); i++)
			if (enum_values[i].of == f->of &&
				!strcmp(enum_values[i].name, json_string_value(value))) {
				*ret = (uint64_t)enum_values[i].value;
				return 0;
			}
		return refuse(at, "is none of its names");
	}
	*ret = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && in_range(f->type, json_integer_value(value))
		       ? 0
		       : refuse(at, "is no integer of its range");
}

static int put_real(const struct place *at, const json_t *value, struct buf *b)
{
	const double wide = json_number_value(value);
	const float narrow = (float)wide;
	if (!json_is_number(value))
		return refuse(at, "is no number");
	if (at->field->type == TYPE_DOUBLE)
		buf_put(b, &wide, sizeof wide);
	else
		buf_put(b, &narrow, sizeof narrow);
	return 0;
}

static int put_base64(const struct place *at, const json_t *value, struct buf *b)
{
	const struct slice text = { json_string_value(value), json_string_length(value) };
	size_t n;
	if (!text.at || base64_read(text, buf_more(b, BASE64_BYTES(text.n)), &n))
		return refuse(at, "is no base64");
	b->n += n;
	return 0;
}

/* A value without its tag. */
static int put_scalar(const struct place *at, const json_t *value, struct buf *b)
{
	const size_t begin = b->n;
	uint64_t number = 0;
	int rc = 0;
	switch (at->field->type) {
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return put_real(at, value, b);
	case TYPE_MESSAGE:
		rc = put_message(&messages[at->field->of], value, at->err, b);
		break;
	case TYPE_STRING:
		if (!json_is_string(value))
			return refuse(at, "is no text");
		buf_put(b, json_string_value(value), json_string_length(value));
		break;
	case TYPE_BYTES:
		rc = put_base64(at, value, b);
		break;
	default:
		rc = number_of(at, value, &number);
		if (!rc)
			pb_put_varint(b, number);
		return rc;
	}
	if (!rc)
		pb_end(b, begin, 0);
	return rc;
}

static int put_one(const struct place *at, uint32_t number, const json_t *value, struct buf *b)
{
	pb_put_tag(b, number, form_of(at->field->type));
	return put_scalar(at, value, b);
}

static int put_repeated(const struct place *at, const json_t *array, struct buf *b)
{
	const bool packed = form_of(at->field->type) != PB_BYTES;
	size_t begin = 0;
	int rc = 0;
	if (!json_is_array(array))
		return refuse(at, "is no array");
	if (!json_array_size(array))
		return 0;
	if (packed)
		begin = pb_begin(b, at->field->number);
	for (size_t i = 0; !rc && i < json_array_size(array); i++)
		rc = packed ? put_scalar(at, json_array_get(array, i), b)
			    : put_one(at, at->field->number, json_array_get(array, i), b);
	if (packed && !rc)
		pb_end(b, begin, 0);
	return rc;
}

static int put_map(const struct place *at, json_t *map, struct buf *b)
{
	const char *key;
	json_t *value;
	if (!json_is_object(map))
		return refuse(at, "is no object");
	json_object_foreach(map, key, value)
	{
		const size_t begin = pb_begin(b, at->field->number);
		char *end = NULL;
		if (at->field->key == TYPE_STRING) {
			pb_put_bytes(b, 1, (struct slice){ key, strlen(key) });
		} else {
			pb_put_number(b, 1, strtoull(key, &end, 10));
			if (!*key || *end)
				return refuse(at, "has a key that is no number");
		}
		const int rc = put_one(at, 2, value, b);
		if (rc)
			return rc;
		pb_end(b, begin, 0);
	}
	return 0;
}

/* Left out on the wire, unless one of a oneof says by being there which it is. */
static bool is_default(const struct message_field *f, const json_t *value)
{
	if (f->label == LABEL_ONEOF || f->type == TYPE_MESSAGE)
		return false;
	if (f->type == TYPE_ENUM && json_is_string(value)) {
		for (size_t i = 0; i < COUNT(enum_values); i++)
			if (enum_values[i].of == f->of && !enum_values[i].value)
				return !strcmp(enum_values[i].name, json_string_value(value));
	}
	return json_is_false(value) || (json_is_string(value) && !json_string_length(value)) ||
	       (json_is_integer(value) && !json_integer_value(value)) ||
	       (json_is_real(value) && json_real_value(value) == 0);
}

static int put_field(const struct place *at, json_t *value, struct buf *b)
{
	switch (at->field->label) {
	case LABEL_REPEATED:
		return put_repeated(at, value, b);
	case LABEL_MAP:
		return put_map(at, value, b);
	default:
		return is_default(at->field, value) ? 0 : put_one(at, at->field->number, value, b);
	}
}

/* Which field of a plain message a value belongs to. */
static const struct message_field *plain_field(const struct message_type *m, const json_t *value)
{
	for (unsigned i = 0; i < m->fields; i++) {
		const struct message_field *f = &m->field[i];
		if (f->label == LABEL_REPEATED ||
			(json_is_boolean(value) && f->type == TYPE_BOOL) ||
			(json_is_string(value) && f->type == TYPE_STRING) ||
			(json_is_integer(value) &&
				(f->type == TYPE_INT64 || f->type == TYPE_UINT32)) ||
			(json_is_real(value) && f->type == TYPE_DOUBLE))
			return f;
	}
	return NULL;
}

static int put_plain(struct place *at, const json_t *value, struct buf *b)
{
	json_t *array;
	int rc;
	if (json_is_null(value))
		return 0;
	at->field = plain_field(at->message, value);
	if (!at->field)
		return refuse(at, "has a value of a type that it can't have");
	if (at->field->label != LABEL_REPEATED || json_is_array(value))
		return put_field(at, (json_t *)value, b);
	array = xcheck(json_array()); /* one value alone */
	json_array_append(array, (json_t *)value);
	rc = put_repeated(at, array, b);
	json_decref(array);
	return rc;
}

static int put_message(
	const struct message_type *m, const json_t *value, struct error *err, struct buf *b)
{
	struct place at = { m, NULL, err };
	if (m->plain)
		return put_plain(&at, value, b);
	if (!json_is_object(value))
		return error_set(at.err, -EINVAL, "%s is no object", m->name);
	for (unsigned i = 0; i < m->fields; i++) {
		json_t *of = json_object_get(value, m->field[i].name);
		int rc;
		at.field = &m->field[i];
		rc = !of || json_is_null(of) ? 0 : put_field(&at, of, b);
		if (rc)
			return rc;
	}
	return 0;
}

int message_put(const char *message_name, const json_t *value, struct buf *b, struct error *err)
{
	const size_t begin = b->n;
	const int rc = put_message(find_message(message_name), value, err, b);
	if (rc)
		b->n = begin;
	return rc;
}
