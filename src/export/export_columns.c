/*
 * Writes tables as columns of binary numbers for programs that read millions of rows, such as
 * weir.open() of the Python package.
 *
 * The output is a stream of blocks, each a line of JSON and the bytes that it announces:
 *
 *	{"table":"activities","rows":N,"columns":[["start_ns","i64"],["name","text"],...]}
 *	    N values of the first column, N of the second, ...; a text is an i32, the number of one
 *	    of the texts
 *	{"texts":N,"bytes":B}
 *	    N texts, each ended by a NUL; their numbers continue those of the block before
 *	{"end":true}
 *
 * Numbers are little-endian, and -1 is unknown. A table's rows come in several blocks, each after
 * its texts.
 */
#include "export/export.h"

#include <inttypes.h>
#include <string.h>

#include "base/expect.h"
#include "join/nested.h"
#include "trace/activity.h"

#define BLOCK_ROWS   65536u
#define COLUMNS_MOST 27u

enum column_type { I32, I64, TEXT };

struct column_of {
	const char *name;
	enum column_type type;
};

static const struct column_of call_columns[] = { { "start_ns", I64 }, { "duration_ns", I64 },
	{ "pid", I32 }, { "tid", I32 }, { "name", TEXT }, { "result", I32 }, { "captured", I32 },
	{ "correlation", I64 } };

static const struct column_of launch_columns[] = { { "start_ns", I64 }, { "duration_ns", I64 },
	{ "pid", I32 }, { "tid", I32 }, { "name", TEXT }, { "function", TEXT }, { "grid_x", I64 },
	{ "grid_y", I64 }, { "grid_z", I64 }, { "block_x", I64 }, { "block_y", I64 },
	{ "block_z", I64 }, { "shared_bytes", I64 }, { "stream", I64 }, { "captured", I32 },
	{ "correlation", I64 } };

static const struct column_of allocation_columns[] = { { "start_ns", I64 }, { "pid", I32 },
	{ "tid", I32 }, { "operation", TEXT }, { "kind", TEXT }, { "address", I64 },
	{ "bytes", I64 } };

static const struct column_of activity_columns[] = { { "start_ns", I64 }, { "duration_ns", I64 },
	{ "pid", I32 }, { "tid", I32 }, { "kind", TEXT }, { "name", TEXT }, { "device", I32 },
	{ "context", I64 }, { "stream", I64 }, { "correlation", I64 }, { "grid_x", I64 },
	{ "grid_y", I64 }, { "grid_z", I64 }, { "block_x", I64 }, { "block_y", I64 },
	{ "block_z", I64 }, { "registers", I32 }, { "shared_static_bytes", I64 },
	{ "shared_dynamic_bytes", I64 }, { "bytes", I64 }, { "direction", TEXT }, { "graph", I64 },
	{ "graph_node", I64 }, { "call_start_ns", I64 }, { "call_duration_ns", I64 },
	{ "operator", TEXT }, { "range", TEXT } };

static const struct column_of range_columns[] = { { "start_ns", I64 }, { "duration_ns", I64 },
	{ "pid", I32 }, { "tid", I32 }, { "kind", TEXT }, { "name", TEXT }, { "arguments", TEXT },
	{ "external", I64 }, { "sequence", I64 } };

enum columns_table { CALLS, LAUNCHES, ALLOCATIONS, ACTIVITIES, RANGES, TABLES };

#define TABLE(n, c)                                                                                \
	{                                                                                          \
		.name = n, .columns = c, .count = sizeof c / sizeof c[0]                           \
	}
static const struct {
	const char *name;
	const struct column_of *columns;
	uint32_t count;
} tables[TABLES] = {
	[CALLS] = TABLE("calls", call_columns),
	[LAUNCHES] = TABLE("launches", launch_columns),
	[ALLOCATIONS] = TABLE("allocations", allocation_columns),
	[ACTIVITIES] = TABLE("activities", activity_columns),
	[RANGES] = TABLE("ranges", range_columns),
};

struct block {
	uint8_t *data[COLUMNS_MOST];
	uint32_t rows, at; /* at: the column that comes next */
	enum columns_table table;
};

struct columns {
	struct block blocks[TABLES];
	uint32_t wanted; /* bit i: table i */
	struct map by_number, by_text;
	uint32_t text_count, written; /* texts */
	ARRAY(char) texts;            /* that are not written */
	struct owners owners;         /* of activities */
};

enum text_kind { OF_LITERAL, OF_FUNCTION, OF_NAME, OF_STRING };

static uint32_t add_text(struct columns *c, const char *text)
{
	const size_t bytes = strlen(text);
	uint32_t *number = map_get(&c->by_text, map_text_key(text, bytes, 0));
	array_reserve(&c->texts, bytes + 1);
	if (*number == MAP_NONE) {
		*number = c->text_count++;
		memcpy(c->texts.v + c->texts.n, text, bytes + 1);
		c->texts.n += bytes + 1;
	}
	return *number;
}

/* Its number, from who it is where that has been asked for before. */
static uint32_t text_number(struct columns *c, enum text_kind kind, uint64_t who, const char *text)
{
	uint32_t *number = map_get(&c->by_number, MAP_KEY(kind, who));
	if (*number == MAP_NONE)
		*number = add_text(c, text);
	return *number;
}

static void write_texts(struct export *x)
{
	struct columns *c = x->state;
	if (c->written == c->text_count)
		return;
	fprintf(x->out, "{\"texts\":%" PRIu32 ",\"bytes\":%zu}\n", c->text_count - c->written,
		c->texts.n);
	fwrite(c->texts.v, 1, c->texts.n, x->out);
	c->written = c->text_count;
	c->texts.n = 0;
}

static size_t bytes_of(enum column_type type)
{
	return type == I64 ? 8 : 4;
}

static void write_block(struct export *x, struct block *b)
{
	static const char *const names[] = { [I32] = "i32", [I64] = "i64", [TEXT] = "text" };
	const struct column_of *columns = tables[b->table].columns;
	const uint32_t count = tables[b->table].count;
	write_texts(x);
	fprintf(x->out, "{\"table\":\"%s\",\"rows\":%" PRIu32 ",\"columns\":[",
		tables[b->table].name, b->rows);
	for (uint32_t i = 0; i < count; i++)
		fprintf(x->out, "%s[\"%s\",\"%s\"]", i ? "," : "", columns[i].name,
			names[columns[i].type]);
	fputs("]}\n", x->out);
	for (uint32_t i = 0; i < count; i++)
		fwrite(b->data[i], bytes_of(columns[i].type), b->rows, x->out);
	b->rows = 0;
}

static struct block *block_of(struct export *x, enum columns_table table)
{
	struct block *b = &((struct columns *)x->state)->blocks[table];
	b->at = 0;
	return b;
}

static void put(struct block *b, bool known, uint64_t value)
{
	const struct column_of *column = &tables[b->table].columns[b->at];
	const int64_t wide = known ? (int64_t)value : -1;
	const int32_t narrow = (int32_t)wide;
	uint8_t *to = b->data[b->at++] + (size_t)b->rows * bytes_of(column->type);
	if (column->type == I64)
		memcpy(to, &wide, sizeof wide);
	else
		memcpy(to, &narrow, sizeof narrow);
}

static void put_text(
	struct export *x, struct block *b, enum text_kind kind, uint64_t who, const char *text)
{
	uint32_t number = 0;
	expect(tables[b->table].columns[b->at].type == TEXT, "a text goes into a column of texts");
	if (text)
		number = text_number(x->state, kind, who, text);
	put(b, text != NULL, number);
}

/* One that is in the program, not in the trace. */
static void put_literal(struct export *x, struct block *b, const char *text)
{
	put_text(x, b, OF_LITERAL, (uintptr_t)text, text);
}

static void end_row(struct export *x, struct block *b)
{
	expect(b->at == tables[b->table].count, "a row has a value for each column");
	if (++b->rows == BLOCK_ROWS)
		write_block(x, b);
}

static void put_call_times(struct export *x, struct block *b, const struct export_call *c)
{
	put(b, true, export_since(x, c->begin_ns));
	put(b, true, c->end_ns - c->begin_ns);
	put(b, true, c->chunk->head.pid);
	put(b, true, c->chunk->head.tid);
}

static void call_row(struct export *x, const struct export_call *c)
{
	struct block *b = block_of(x, CALLS);
	put_call_times(x, b, c);
	put_text(x, b, OF_FUNCTION, c->record->fn, c->name);
	put(b, true, c->record->result);
	put(b, true, (c->record->flags & RECORD_CAPTURED) != 0);
	put(b, c->link != NULL, c->link ? c->link->correlation : 0);
	end_row(x, b);
}

static void launch_row(struct export *x, const struct export_call *c)
{
	struct block *b = block_of(x, LAUNCHES);
	put_call_times(x, b, c);
	put_text(x, b, OF_NAME, c->kernel,
		c->kernel == META_NONE ? NULL : export_kernel_name(x, c->kernel));
	put_text(x, b, OF_FUNCTION, c->record->fn, c->name);
	for (int i = 0; i < 6; i++)
		put(b, true, i < 3 ? c->shape.grid[i] : c->shape.block[i - 3]);
	put(b, true, c->record->aux);
	put(b, true, c->record->arg[LAUNCH_STREAM]);
	put(b, true, (c->record->flags & RECORD_CAPTURED) != 0);
	put(b, c->link != NULL, c->link ? c->link->correlation : 0);
	end_row(x, b);
}

static void allocation_row(struct export *x, const struct export_call *c)
{
	struct block *b = block_of(x, ALLOCATIONS);
	uint64_t address = 0, bytes = 0;
	put(b, true, export_since(x, c->begin_ns));
	put(b, true, c->chunk->head.pid);
	put(b, true, c->chunk->head.tid);
	put_literal(x, b, c->fn->kind == CALL_ALLOC ? "alloc" : "free");
	put_literal(x, b, c->fn->memory);
	const bool has_address = schema_call_pointer(c->fn, c->record, &address);
	put(b, has_address, address);
	const bool has_bytes = schema_call_bytes(c->fn, c->record, &bytes);
	put(b, has_bytes, bytes);
	end_row(x, b);
}

static bool wants(const struct export *x, enum columns_table table)
{
	return ((const struct columns *)x->state)->wanted & 1u << table;
}

static void call(struct export *x, const struct export_call *c)
{
	const struct schema_fn *fn = c->fn;
	const bool done = !c->record->result && fn && fn->api != API_RUNTIME;
	if (wants(x, CALLS) && (!fn || fn->api != API_ALLOCATOR))
		call_row(x, c);
	if (done && c->launch && wants(x, LAUNCHES))
		launch_row(x, c);
	if (done && (fn->kind == CALL_ALLOC || fn->kind == CALL_FREE) && wants(x, ALLOCATIONS))
		allocation_row(x, c);
}

/* 0: no text. */
static void put_string(struct export *x, struct block *b, uint32_t id)
{
	put_text(
		x, b, OF_STRING, (uint64_t)x->process << 32 | id, id ? export_string(x, id) : NULL);
}

static void put_shape(struct block *b, const struct gpu_activity *w)
{
	const bool shape = w->valid & GPU_HAS_SHAPE, shared = w->valid & GPU_HAS_SHARED;
	for (int i = 0; i < 6; i++)
		put(b, shape, i < 3 ? w->grid[i] : w->block[i - 3]);
	put(b, w->valid & GPU_HAS_REGISTERS, w->registers);
	put(b, shared, w->shared_static);
	put(b, shared, w->shared_dynamic);
}

/* Puts the range that an activity was asked for in; the name of a range is one of meta's. */
static void put_owner(struct export *x, struct block *b, const struct owners *o, uint32_t at)
{
	const uint32_t name = owners_name(o, at);
	put_text(x, b, OF_NAME, name,
		at == OWNER_NONE ? NULL : demangled_name(&x->names, name, "(no name)"));
}

static void put_owners(struct export *x, struct block *b, const struct gpu_activity *w,
	const struct call_link *link)
{
	struct owners *o = &((struct columns *)x->state)->owners;
	const uint32_t at = owners_of(o, x->process, w, link);
	put_owner(x, b, o, owners_operator(o, at));
	const uint32_t named = owners_named(o, at);
	put_owner(x, b, o, named == OWNER_NONE ? owners_waiting(o, at, link) : named);
}

static void activity(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	struct block *b = block_of(x, ACTIVITIES);
	const bool graph = w->valid & GPU_HAS_GRAPH;
	put(b, true, export_since(x, w->start_ns));
	put(b, true, w->end_ns - w->start_ns);
	put(b, true, c->head.pid);
	put(b, link != NULL, link ? link->tid : 0);
	put_literal(x, b, activity_kind_name(w->kind));
	put_string(x, b, w->name);
	put(b, w->valid & GPU_HAS_DEVICE, w->device);
	put(b, w->valid & GPU_HAS_CONTEXT, w->context);
	put(b, w->valid & GPU_HAS_STREAM, w->stream);
	put(b, w->valid & GPU_HAS_CORRELATION, w->correlation);
	put_shape(b, w);
	put(b, w->valid & GPU_HAS_BYTES, w->bytes);
	put_literal(x, b, activity_direction(w));
	put(b, graph, w->graph);
	put(b, graph, w->graph_node);
	put(b, link != NULL, link ? export_since(x, trace_ns(x->trace, link->ticks)) : 0);
	put(b, link && link->dur, link ? trace_span_ns(x->trace, link->dur) : 0);
	put_owners(x, b, w, link);
	end_row(x, b);
}

static void range(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	struct block *b = block_of(x, RANGES);
	const uint64_t begin = trace_ns(x->trace, g->ticks);
	put(b, true, export_since(x, begin));
	put(b, true, trace_ns(x->trace, range_end(g)) - begin);
	put(b, true, c->head.pid);
	put(b, true, g->tid);
	put_literal(x, b, range_kind_name(g->kind));
	put_string(x, b, g->name);
	put_string(x, b, g->args);
	put(b, g->valid & RANGE_HAS_EXTERNAL, g->external);
	put(b, g->valid & RANGE_HAS_SEQUENCE, g->sequence);
	end_row(x, b);
}

/* Tables with commas between. */
static int parse_wanted(struct export *x, uint32_t *ret_wanted)
{
	*ret_wanted = x->only ? 0 : (1u << TABLES) - 1;
	for (const char *at = x->only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		const size_t bytes = strcspn(at, ",");
		int i = 0;
		while (i < TABLES &&
			(strncmp(tables[i].name, at, bytes) != 0 || tables[i].name[bytes]))
			i++;
		if (i == TABLES)
			return error_set(x->err, -ENODATA,
				"%.*s is no table of columns: there are calls, launches, "
				"allocations, activities and ranges",
				(int)bytes, at);
		*ret_wanted |= 1u << i;
	}
	return 0;
}

static int begin(struct export *x)
{
	struct columns *c = x->state = xcalloc(1, sizeof *c);
	int e = parse_wanted(x, &c->wanted);
	if (!e && wants(x, ACTIVITIES))
		e = owners_load(x->trace, x->meta, &c->owners);
	if (e)
		return e;
	for (int t = 0; t < TABLES; t++) {
		expect(tables[t].count <= COLUMNS_MOST, "a table's columns have room");
		c->blocks[t].table = (enum columns_table)t;
		for (uint32_t i = 0; i < tables[t].count && wants(x, (enum columns_table)t); i++)
			c->blocks[t].data[i] =
				xmalloc(BLOCK_ROWS * bytes_of(tables[t].columns[i].type));
	}
	return 0;
}

static uint32_t kinds(const struct export *x)
{
	const bool calls = wants(x, CALLS) || wants(x, LAUNCHES) || wants(x, ALLOCATIONS);
	return (calls ? 1u << CHUNK_EVENTS : 0) | (wants(x, ACTIVITIES) ? 1u << CHUNK_DEVICE : 0) |
	       (wants(x, RANGES) ? 1u << CHUNK_RANGES : 0);
}

/* Each table is there, if without rows. */
static int end(struct export *x)
{
	struct columns *c = x->state;
	for (int t = 0; t < TABLES; t++)
		if (wants(x, (enum columns_table)t))
			write_block(x, &c->blocks[t]);
	fputs("{\"end\":true}\n", x->out);
	return 0;
}

static void cleanup(struct export *x)
{
	struct columns *c = x->state;
	if (!c)
		return;
	for (int t = 0; t < TABLES; t++)
		for (uint32_t i = 0; i < COLUMNS_MOST; i++)
			free(c->blocks[t].data[i]);
	owners_fini(&c->owners);
	map_fini(&c->by_number, &c->by_text);
	array_free(&c->texts);
	free(c);
}

const struct exporter export_columns = {
	.name = "columns",
	.suffixes = ".columns",
	.begin = begin,
	.kinds = kinds,
	.call = call,
	.activity = activity,
	.range = range,
	.end = end,
	.cleanup = cleanup,
};
