/* Reads mappings and code objects from a trace. */
#include "stack/pieces.h"

#include <string.h>

#include "base/text.h"

static void take_mapping(struct pieces *p, const struct record *r, uint32_t process)
{
	size_t bytes;
	const char *text = record_text(r, 4, &bytes);
	const bool sane = r->words >= RECORD_WORDS + 4 && r->arg[3] <= BUILD_ID_MOST &&
			  r->arg[3] <= bytes && r->arg[0] < r->arg[1];
	if (!sane)
		return;
	struct code_mapping *m = array_push(&p->mappings);
	*m = (struct code_mapping){ .process = process,
		.from = r->arg[0],
		.end = r->arg[1],
		.offset = r->arg[2],
		.ticks = r->ticks,
		.build_id_bytes = (uint32_t)r->arg[3] };
	memcpy(m->build_id, text, m->build_id_bytes);
	m->path = xstrndup(text + m->build_id_bytes, bytes - m->build_id_bytes);
}

/* Characters of 1, 2 or 4 bytes as UTF-8. */
static char *decode_text(const char *from, size_t bytes, unsigned width)
{
	char *const text = xmalloc(bytes / width * 4 + 1);
	char *to = text;
	for (size_t at = 0; at + width <= bytes; at += width) {
		uint32_t c = 0;
		memcpy(&c, from + at, width);
		to += utf8_put(to, c > 0x10ffff ? '?' : c);
	}
	*to = 0;
	return text;
}

static bool is_width(uint64_t w)
{
	return w == 1 || w == 2 || w == 4;
}

static void take_code(struct pieces *p, const struct record *r, uint32_t process)
{
	size_t bytes;
	const char *text = record_text(r, 3, &bytes);
	if (r->words < RECORD_WORDS + 3)
		return;
	const uint64_t file = r->arg[2] & UINT32_MAX, name = r->arg[2] >> 32;
	const unsigned wide_file = r->arg[1] >> 32 & 0xff, wide_name = r->arg[1] >> 40 & 0xff;
	if (file + name > bytes || (file && !is_width(wide_file)) || (name && !is_width(wide_name)))
		return;
	struct python_code *c =
		MAP_ROW(&p->code_map, MAP_KEY(process, r->arg[0] & UINT32_MAX), &p->codes,
			(struct python_code){ .process = process, .number = (uint32_t)r->arg[0] });
	if (c->file)
		return;
	c->first_line = r->arg[1] & UINT32_MAX;
	c->file = decode_text(text, file, file ? wide_file : 1);
	c->name = decode_text(text + file, name, name ? wide_name : 1);
	c->table_bytes = (uint32_t)(bytes - file - name);
	c->table = memcpy(xmalloc(c->table_bytes + 1), text + file + name, c->table_bytes);
}

const struct python_code *pieces_code(const struct pieces *p, uint32_t process, uint32_t number)
{
	const uint32_t at = map_find(&p->code_map, MAP_KEY(process, number));
	return at == MAP_NONE || !p->codes.v[at].file || !p->codes.v[at].table ? NULL
									       : &p->codes.v[at];
}

/* A code object's co_linetable, as PEP 626 and InternalDocs/code_objects.md of CPython explain it.
 */
struct table {
	const uint8_t *at, *end;
};

static uint32_t read_varint(struct table *t)
{
	uint32_t value = 0;
	for (unsigned shift = 0; t->at < t->end && shift < 30; shift += 6) {
		const uint8_t byte = *t->at++;
		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t read_signed(struct table *t)
{
	const uint32_t value = read_varint(t);
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

enum { NO_LINE = 15, LONG = 14, NO_COLUMNS = 13, ONE_LINE_0 = 10, ONE_LINE_2 = 12 };

/* By how many lines an entry moves on; its columns are passed over. */
static int32_t read_entry(struct table *t, unsigned code)
{
	int32_t lines = 0;
	if (code == NO_LINE)
		return 0;
	if (code == LONG || code == NO_COLUMNS)
		lines = read_signed(t);
	else if (code >= ONE_LINE_0 && code <= ONE_LINE_2)
		lines = (int32_t)code - ONE_LINE_0;
	for (int i = 0; code == LONG && i < 3; i++)
		read_varint(t);
	/* An entry begins with a byte of which the highest bit is set. */
	while (t->at < t->end && !(*t->at & 128))
		t->at++;
	return lines;
}

uint32_t python_line(const struct python_code *c, uint32_t at)
{
	struct table t = { c->table, c->table + c->table_bytes };
	int64_t line = c->first_line;
	uint32_t from = 0;
	while (t.at < t.end) {
		const uint8_t head = *t.at++;
		const unsigned code = head >> 3 & 15;
		const uint32_t to = from + ((head & 7) + 1u) * 2;
		line += read_entry(&t, code);
		if (at >= from && at < to)
			return code == NO_LINE || line < 0 ? c->first_line : (uint32_t)line;
		from = to;
	}
	return c->first_line;
}

static void take_chunk(struct pieces *p, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	for (const struct record *r; (r = records_next(&it));) {
		if (r->fn == META_MAPPING)
			take_mapping(p, r, buf->ref->process);
		else if (r->fn == META_CODE)
			take_code(p, r, buf->ref->process);
	}
}

int pieces_load(const struct trace *t, struct pieces *p)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	*p = (struct pieces){ 0 };
	while ((e = trace_next(t, CHUNK_META, &at, &buf, NULL)) > 0)
		take_chunk(p, &buf);
	return e;
}

void pieces_fini(struct pieces *p)
{
	for (size_t i = 0; i < p->mappings.n; i++)
		free(p->mappings.v[i].path);
	for (size_t i = 0; i < p->codes.n; i++)
		free_all(p->codes.v[i].file, p->codes.v[i].name, p->codes.v[i].table);
	array_free(&p->mappings, &p->codes);
	map_fini(&p->code_map);
}
