/* Makes rows of sections, takes values of columns, and writes them as JSON and CSV. */
#include "section/section.h"

#include <inttypes.h>

#include "base/expect.h"
#include "base/text.h"

struct value value_text(const char *text)
{
	return text ? (struct value){ .kind = VALUE_TEXT, .text = text, .n = strlen(text) }
		    : value_null();
}

SHARED_GETTER(get_u64, uint64_t, it, value_u64(*it))
SHARED_GETTER(get_u32, uint32_t, it, value_u64(*it))
SHARED_GETTER(get_nonzero, uint64_t, u64, value_u64_if(*u64, *u64))
SHARED_GETTER(get_nonzero_u32, uint32_t, u32, value_u64_if(*u32, *u32))
SHARED_GETTER(get_u16, uint16_t, it, value_u64(*it))

struct value get_text(const struct row *row, const void *of)
{
	return value_text(*(const char *const *)of);
}

SHARED_GETTER(get_chars, void, of, value_text(of))
SHARED_GETTER(get_real, double, it, value_real(*it))
SHARED_GETTER(get_bool, bool, it, value_bool(*it))
SHARED_GETTER(get_dim3, void, of, value_dim3(of))
SHARED_GETTER(get_span, uint64_t, it, value_u64(trace_span_ns(row->r->trace, *it)))
SHARED_GETTER(get_since, uint64_t, it, value_u64(trace_since_ns(row->r->trace, *it)))
SHARED_GETTER(get_since_start, uint64_t, it, value_u64(rows_since(row->rows, *it)))

struct value get_pid(const struct row *row, const void *of)
{
	const uint32_t process = *(const uint32_t *)of;
	if (!expect(process < row->r->trace->processes.n, "a row's process is one of all"))
		return value_null();
	return value_u64(row->r->trace->processes.v[process].pid);
}

struct value function_name(const struct row *row, uint32_t id)
{
	struct fn_name room;
	const char *name = report_fn_name(row->r, id, &room);
	if (name != room.text)
		return value_text(name);
	snprintf(row->text, ROW_TEXT, "%s", name);
	return value_text(row->text);
}

SHARED_GETTER(get_function, uint32_t, it, function_name(row, *it))

const void *row_recorded(const struct row *row)
{
	return report_is_off(row->r) ? NULL : row->at;
}

struct value column_get(const struct column *c, const struct row *row)
{
	const char *of = c->find ? c->find(row) : row->at;
	if (!of)
		return c->absent ? value_absent() : value_null();
	return c->get(row, of + c->offset);
}

double value_as_number(const struct value *v)
{
	return v->kind == VALUE_U64 ? (double)v->u64 : v->kind == VALUE_REAL ? v->real : NAN;
}

const char *value_as_text(const struct value *v, char *room)
{
	const uint32_t *d = v->dim3;
	switch (v->kind) {
	case VALUE_TEXT:
		return v->text;
	case VALUE_BOOL:
		return v->yes ? "true" : "false";
	case VALUE_U64:
		snprintf(room, ROW_TEXT, "%" PRIu64, v->u64);
		return room;
	case VALUE_REAL:
		snprintf(room, ROW_TEXT, "%.6g", v->real);
		return room;
	case VALUE_DIM3:
		snprintf(room, ROW_TEXT, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, d[0], d[1], d[2]);
		return room;
	default:
		return "";
	}
}

void section_put_csv(FILE *out, const struct value *v)
{
	char room[ROW_TEXT];
	if (v->kind == VALUE_TEXT || v->kind == VALUE_DIM3)
		text_put_csv(out, value_as_text(v, room));
	else
		fputs(value_as_text(v, room), out);
}

void rows_take(struct rows *rows, const void *v, size_t n, size_t each)
{
	rows->v = v;
	rows->n = n;
	rows->each = each;
}

void rows_own(struct rows *rows, void *v, size_t n, size_t each)
{
	rows_take(rows, v, n, each);
	rows->own = v;
}

uint64_t rows_since(const struct rows *rows, uint64_t ns)
{
	const uint64_t start = rows->r->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

const char *rows_name(struct rows *rows, uint32_t name)
{
	return demangled_name(&rows->names, name, "(no name)");
}

const char *rows_string(struct rows *rows, uint32_t process, uint32_t id)
{
	return rows_name(rows, meta_find_string(&rows->r->meta, process, id));
}

static void take_array(struct rows *rows)
{
	const struct section *s = rows->section;
	const char *in = (const char *)rows->r;
	if (s->pointer)
		in = *(const char *const *)(in + s->pointer);
	const ARRAY(char) *array = (const void *)(in + s->array);
	rows->v = array->v;
	rows->n = array->n;
	rows->each = s->each;
}

uint32_t section_facets(const struct section *s)
{
	uint32_t facets = s->facets;
	for (const struct column *c = s->columns; c->key; c++)
		if (c->inner)
			facets |= section_facets(c->inner);
	return facets;
}

int section_open(const struct section *s, const struct report *r, struct rows *ret_rows)
{
	*ret_rows = (struct rows){ .section = s, .r = r, .v = r, .n = 1, .all = NAN };
	expect(!(s->facets & ~r->facets), "the facets of a section are made before it");
	demangled_init(&ret_rows->names, &r->meta);
	if (s->array || s->pointer)
		take_array(ret_rows);
	if (s->make)
		s->make(ret_rows);
	return ret_rows->error;
}

void section_close(struct rows *rows)
{
	if (rows->section->fini)
		rows->section->fini(rows);
	else
		free(rows->own);
	demangled_fini(&rows->names);
}

const struct column *section_column(const struct section *s, const char *key, size_t bytes)
{
	for (const struct column *c = s->columns; c->key; c++)
		if (!strncmp(c->key, key, bytes) && !c->key[bytes])
			return c;
	return NULL;
}

/* The objects that are open for keys with dots: "device" for device.peak_bytes. */
struct nesting {
	char path[64];
	int depth;
};

static void leave(struct json *j, struct nesting *n, size_t keep)
{
	while (strlen(n->path) > keep) {
		char *dot = strrchr(n->path, '.');
		*(dot ? dot : n->path) = '\0';
		json_end_object(j);
	}
}

/* How much of the path both have: whole names only. */
static size_t common(const char *path, const char *key)
{
	size_t same = 0;
	for (size_t i = 0;; i++) {
		if ((!path[i] || path[i] == '.') && key[i] == '.')
			same = i;
		if (!path[i] || path[i] != key[i])
			return same;
	}
}

/* Opens and closes objects as the key's dots say, and returns its last name. */
static const char *enter(struct json *j, struct nesting *n, const char *key)
{
	const size_t keep = common(n->path, key);
	leave(j, n, keep);
	const char *at = key + keep + (keep && key[keep] == '.');
	const char *dot;
	while ((dot = strchr(at, '.'))) {
		char name[sizeof n->path];
		snprintf(name, sizeof name, "%.*s", (int)(dot - at), at);
		snprintf(n->path, sizeof n->path, "%.*s", (int)(dot - key), key);
		json_begin_object(j, name);
		at = dot + 1;
	}
	return at;
}

static void put_value(struct json *j, const char *key, const struct value *v)
{
	switch (v->kind) {
	case VALUE_U64:
		return json_u64(j, key, v->u64);
	case VALUE_REAL:
		return json_put_real(j, key, v->real);
	case VALUE_BOOL:
		return json_bool(j, key, v->yes);
	case VALUE_TEXT:
		return json_strn(j, key, v->text, v->n);
	case VALUE_DIM3:
		return json_dim3(j, key, v->dim3);
	default:
		return json_put_null(j, key);
	}
}

static void put_row(struct json *j, const char *key, const struct row *row)
{
	json_begin_object(j, key);
	section_put_row(j, row);
	json_end_object(j);
}

static void put_object(struct json *j, const char *key, struct rows *rows)
{
	const struct row row = row_at(rows, 0);
	if (rows->n)
		put_row(j, key, &row);
	else
		json_put_null(j, key);
}

static void put_keyed(struct json *j, const char *key, struct rows *rows)
{
	json_begin_object(j, key);
	for (size_t i = 0; i < rows->n; i++) {
		const struct row row = row_at(rows, i);
		put_row(j, column_get(rows->section->columns, &row).text, &row);
	}
	json_end_object(j);
}

static void put_rows(struct json *j, const char *key, struct rows *rows)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < rows->n; i++) {
		const struct row row = row_at(rows, i);
		const struct value v = column_get(rows->section->columns, &row);
		if (rows->section->texts)
			put_value(j, NULL, &v);
		else
			put_row(j, NULL, &row);
	}
	json_end_array(j);
}

static void put_list(struct json *j, const char *key, const struct column *c, const struct row *row,
	const struct value *v)
{
	struct rows inner = { .section = c->inner, .r = row->r, .each = c->inner->each };
	if (!c->get) {
		if (!section_open(c->inner, row->r, &inner))
			put_rows(j, key, &inner);
		return section_close(&inner);
	}
	inner.v = v->list;
	inner.n = v->n;
	if (c->inner->form == SECTION_OBJECT)
		put_object(j, key, &inner);
	else if (c->inner->form == SECTION_KEYED)
		put_keyed(j, key, &inner);
	else
		put_rows(j, key, &inner);
}

static void put_column(struct json *j, struct nesting *n, const struct column *c,
	const struct row *row, bool always)
{
	const bool makes = c->unit == UNIT_LIST && !c->get;
	const struct value v = makes ? (struct value){ .kind = VALUE_LIST } : column_get(c, row);
	if (!always && (c->text_only || v.kind == VALUE_ABSENT))
		return;
	const char *key = enter(j, n, c->key);
	if (v.kind == VALUE_LIST)
		put_list(j, key, c, row, &v);
	else
		put_value(j, key, &v);
}

void section_put_row(struct json *j, const struct row *row)
{
	struct nesting n = { .depth = 0 };
	for (const struct column *c = row->rows->section->columns; c->key; c++)
		put_column(j, &n, c, row, false);
	leave(j, &n, 0);
}

void section_put_columns(
	struct json *j, const struct row *row, const struct column *const *columns, size_t count)
{
	struct nesting n = { .depth = 0 };
	for (size_t i = 0; i < count; i++)
		put_column(j, &n, columns[i], row, true);
	leave(j, &n, 0);
}

int section_put_json(struct json *j, const struct section *s, const struct report *r)
{
	struct rows rows;
	const int e = section_open(s, r, &rows);
	const struct row row = row_at(&rows, 0);
	if (!e && !rows.absent && s->form == SECTION_LIST)
		put_rows(j, s->name, &rows);
	else if (!e && !rows.absent && s->form == SECTION_OBJECT)
		put_object(j, s->name, &rows);
	else if (!e && !rows.absent)
		section_put_row(j, &row);
	section_close(&rows);
	return e;
}
