/*
 * Writes a SQLite database, close to those of other GPU profilers so that their queries need few
 * changes. docs/reference/tables.md lists its tables, columns and views. Times are nanoseconds
 * since the trace began, and sqlite_nsight.c adds views with the tables of Nsight Systems.
 */
#include "base/atomic.h"
#include "export/export_sqlite.h"

#include <inttypes.h>
#include <string.h>

#include "base/expect.h"
#include "trace/activity.h"

static const struct {
	const char *create;
	const char *insert;
} tables[TABLES] = {
	[STRINGS] = { "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)",
		"INSERT INTO StringIds VALUES (?,?)" },
	[META] = { "CREATE TABLE meta (name TEXT PRIMARY KEY, value)",
		"INSERT INTO meta VALUES (?,?)" },
	[PROCESSES] = { "CREATE TABLE processes (pid INTEGER, parent INTEGER, executable TEXT, "
			"arguments TEXT, globalPid INTEGER, name TEXT)",
		"INSERT INTO processes VALUES (?1,?2,?3,?4,?1 * 16777216,?5)" },
	[THREADS] = { "CREATE TABLE threads (pid INTEGER, tid INTEGER, name TEXT, "
		      "nameId INTEGER REFERENCES StringIds)",
		"INSERT INTO threads VALUES (?,?,?,?)" },
	[DEVICES] = { "CREATE TABLE devices (pid INTEGER, deviceId INTEGER, name TEXT, "
		      "memory INTEGER, multiprocessors INTEGER, computeMajor INTEGER, "
		      "computeMinor INTEGER, uuid TEXT)",
		"INSERT INTO devices VALUES (?,?,?,?,?,?,?,?)" },
	[CALLS] = { "CREATE TABLE calls (id INTEGER PRIMARY KEY, start INTEGER NOT NULL, "
		    "end INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, "
		    "nameId INTEGER NOT NULL REFERENCES StringIds, apiId INTEGER NOT NULL "
		    "REFERENCES StringIds, classId INTEGER NOT NULL REFERENCES StringIds, "
		    "returnValue INTEGER NOT NULL, captured INTEGER NOT NULL, arguments TEXT, "
		    "correlationId INTEGER, outerId INTEGER REFERENCES calls, "
		    "outerCorrelationId INTEGER)",
		"INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)" },
	[KERNELS] = { "CREATE TABLE kernels (callId INTEGER NOT NULL REFERENCES calls, "
		      "start INTEGER NOT NULL, end INTEGER NOT NULL, pid INTEGER NOT NULL, "
		      "tid INTEGER NOT NULL, demangledName INTEGER REFERENCES StringIds, "
		      "mangledName INTEGER REFERENCES StringIds, gridX INTEGER, gridY INTEGER, "
		      "gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, "
		      "dynamicSharedMemory INTEGER, stream INTEGER, captured INTEGER)",
		"INSERT INTO kernels VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)" },
	[MEMORY] = { "CREATE TABLE memory (callId INTEGER NOT NULL REFERENCES calls, "
		     "start INTEGER NOT NULL, pid INTEGER NOT NULL, operation TEXT NOT NULL, "
		     "kind TEXT NOT NULL, address INTEGER, bytes INTEGER)",
		"INSERT INTO memory VALUES (?,?,?,?,?,?,?)" },
	[COPIES] = { "CREATE TABLE copies (callId INTEGER NOT NULL REFERENCES calls, "
		     "start INTEGER NOT NULL, end INTEGER NOT NULL, pid INTEGER NOT NULL, "
		     "direction TEXT NOT NULL, bytes INTEGER)",
		"INSERT INTO copies VALUES (?,?,?,?,?,?)" },
	[WORK] = { "CREATE TABLE work (start INTEGER NOT NULL, end INTEGER NOT NULL, "
		   "pid INTEGER NOT NULL, correlationId INTEGER, kind TEXT, nameId INTEGER "
		   "REFERENCES StringIds, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
		   "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
		   "blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, "
		   "dynamicSharedMemory INTEGER, bytes INTEGER, direction TEXT, graphId INTEGER, "
		   "graphNodeId INTEGER, externalId INTEGER, what INTEGER, fromKind INTEGER, "
		   "toKind INTEGER)",
		"INSERT INTO work VALUES "
		"(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)" },
	[RANGES] = { "CREATE TABLE ranges (id INTEGER PRIMARY KEY, parentId INTEGER "
		     "REFERENCES ranges, start INTEGER NOT NULL, end INTEGER NOT NULL, "
		     "pid INTEGER NOT NULL, tid INTEGER NOT NULL, kind TEXT, "
		     "nameId INTEGER REFERENCES StringIds, arguments TEXT, externalId INTEGER, "
		     "sequenceNumber INTEGER, repeated INTEGER NOT NULL, "
		     "scopeId INTEGER REFERENCES StringIds)",
		"INSERT INTO ranges VALUES (?,NULL,?,?,?,?,?,?,?,?,?,0,?)" },
	[CALL_RANGES] = { "CREATE TABLE call_ranges (callId INTEGER PRIMARY KEY REFERENCES calls, "
			  "rangeId INTEGER NOT NULL REFERENCES ranges)",
		"INSERT INTO call_ranges VALUES (?,?)" },
	[KERNEL_NAMES] = { "CREATE TABLE kernel_names (nameId INTEGER PRIMARY KEY "
			   "REFERENCES StringIds, shortName INTEGER NOT NULL REFERENCES StringIds, "
			   "mangledName INTEGER REFERENCES StringIds)",
		"INSERT INTO kernel_names VALUES (?,?,?)" },
	[STACKS] = { "CREATE TABLE stacks (id INTEGER NOT NULL, depth INTEGER NOT NULL, "
		     "functionId INTEGER REFERENCES StringIds, file TEXT, line INTEGER, "
		     "moduleId INTEGER REFERENCES StringIds, language TEXT NOT NULL, "
		     "PRIMARY KEY (id, depth))",
		"INSERT INTO stacks VALUES (?,?,?,?,?,?,?)" },
	[CALL_STACKS] = { "CREATE TABLE call_stacks (callId INTEGER PRIMARY KEY REFERENCES calls, "
			  "stackId INTEGER NOT NULL, outermostId INTEGER REFERENCES calls)",
		"INSERT INTO call_stacks VALUES (?1,?2,?1)" },
};

/* Once all rows are there.  An activity whose call is not known may name its range itself. */
static const char views[] =
	"UPDATE call_stacks SET outermostId = (SELECT outerId FROM calls WHERE id = callId) "
	"WHERE (SELECT outerId FROM calls WHERE id = callId) IS NOT NULL;"
	"CREATE INDEX call_stacks_by_outermost ON call_stacks (outermostId);"
	"CREATE INDEX calls_by_correlation ON calls (correlationId, pid) "
	"WHERE correlationId IS NOT NULL;"
	"CREATE INDEX work_by_correlation ON work (correlationId, pid);"
	"CREATE INDEX ranges_by_external ON ranges (pid, externalId) "
	"WHERE externalId IS NOT NULL;"
	"CREATE VIEW activities AS "
	"SELECT w.rowid AS workId, w.start, w.end, w.end - w.start AS duration, w.kind, "
	"s.value AS name, w.pid, w.deviceId, w.contextId, w.streamId, w.bytes, w.direction, "
	"c.id AS callId, "
	"CASE WHEN c.id IS NOT NULL THEN (SELECT rangeId FROM call_ranges WHERE callId = c.id) "
	"ELSE (SELECT MIN(r.id) FROM ranges r WHERE r.pid = w.pid AND "
	"r.externalId = w.externalId AND r.externalId != 0 AND r.kind IN " NESTING ") "
	"END AS rangeId "
	"FROM work w LEFT JOIN StringIds s ON s.id = w.nameId LEFT JOIN calls c ON c.id = "
	"(SELECT MIN(id) FROM calls WHERE pid = w.pid AND correlationId = w.correlationId);"
	"CREATE VIEW kernel_times AS "
	"SELECT a.name, a.start, a.end, a.duration, a.pid, a.deviceId, a.streamId, "
	"w.gridX, w.gridY, w.gridZ, w.blockX, w.blockY, w.blockZ, w.registersPerThread, "
	"a.callId, c.start AS callStart, c.end AS callEnd, c.tid AS callTid, "
	"MAX(a.start - c.end, 0) AS queued, a.rangeId, s.value AS operator, a.workId, "
	"(WITH RECURSIVE up(kind, nameId, parentId) AS (SELECT kind, nameId, parentId FROM ranges "
	"WHERE id = a.rangeId UNION ALL SELECT o.kind, o.nameId, o.parentId FROM up "
	"JOIN ranges o ON o.id = up.parentId WHERE up.kind = 'operator') "
	"SELECT t.value FROM up JOIN StringIds t ON t.id = up.nameId "
	"WHERE up.kind != 'operator') AS range "
	"FROM activities a JOIN work w ON w.rowid = a.workId LEFT JOIN calls c ON c.id = a.callId "
	"LEFT JOIN ranges r ON r.id = a.rangeId LEFT JOIN StringIds s ON s.id = r.nameId "
	"WHERE a.kind = 'kernel';"
	"CREATE VIEW operators AS "
	"WITH host AS (SELECT s.value AS name, r.kind AS kind, COUNT(*) AS count, "
	"SUM((r.end - r.start) * NOT r.repeated) AS total FROM ranges r "
	"JOIN StringIds s ON s.id = r.nameId WHERE r.kind IN " NESTING " GROUP BY 1, 2), "
	"device AS (SELECT s.value AS name, r.kind AS kind, COUNT(*) AS count, "
	"SUM(a.duration) AS total FROM activities a JOIN ranges r ON r.id = a.rangeId "
	"JOIN StringIds s ON s.id = r.nameId "
	"WHERE a.kind IN ('kernel','memcpy','memset','graph') GROUP BY 1, 2) "
	"SELECT h.name, h.kind, h.count, h.total AS hostTotal, "
	"CASE WHEN timed.any THEN COALESCE(d.count, 0) END AS activities, "
	"CASE WHEN timed.any THEN COALESCE(d.total, 0) END AS deviceSelf "
	"FROM host h JOIN (SELECT EXISTS (SELECT 1 FROM work) AS any) timed LEFT JOIN device d ON d.name = h.name AND d.kind = h.kind "
	"ORDER BY deviceSelf DESC;";

void db_complain(struct export *x, int rc)
{
	struct database *d = x->state;
	if (!x->failed)
		x->failed = error_set(x->err, -EIO, "SQLite: %s",
			d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc));
}

static void run(struct export *x, const char *sql)
{
	struct database *d = x->state;
	const int rc = x->failed ? 0 : sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	if (rc)
		db_complain(x, rc);
}

sqlite3_stmt *db_prepare(struct export *x, const char *sql)
{
	struct database *d = x->state;
	sqlite3_stmt *s = NULL;
	if (!x->failed && sqlite3_prepare_v2(d->db, sql, -1, &s, NULL))
		db_complain(x, SQLITE_ERROR);
	return s;
}

struct row db_row(struct export *x, enum table table)
{
	struct database *d = x->state;
	return (struct row){ .s = d->insert[table] };
}

void db_put_int(struct row *r, uint64_t value)
{
	sqlite3_bind_int64(r->s, ++r->column, (sqlite3_int64)value);
}

void db_put_known(struct row *r, bool known, uint64_t value)
{
	if (known)
		db_put_int(r, value);
	else
		sqlite3_bind_null(r->s, ++r->column);
}

/* The text must live until db_put_row(). */
void db_put_text(struct row *r, const char *text)
{
	sqlite3_bind_text(r->s, ++r->column, text, -1, SQLITE_STATIC);
}

void db_put_row(struct export *x, struct row *r)
{
	if (x->failed)
		return;
	expect(r->column == sqlite3_bind_parameter_count(r->s),
		"a row has a value for each column");
	const int rc = sqlite3_step(r->s);
	sqlite3_reset(r->s);
	if (rc != SQLITE_DONE)
		db_complain(x, rc);
}

void db_run(struct export *x, sqlite3_stmt *s, const uint64_t *values, int count)
{
	struct row row = { .s = s };
	for (int i = 0; i < count; i++)
		db_put_int(&row, values[i]);
	db_put_row(x, &row);
}

enum string_kind { OF_FUNCTION, OF_CLASS, OF_API, OF_KERNEL, OF_MANGLED, OF_ACTIVITY, OF_RANGE };

/* Each text stands there once. */
static uint32_t text_id(struct export *x, const char *text, size_t bytes)
{
	struct database *d = x->state;
	uint32_t *id = map_get(&d->texts, map_text_key(text, bytes, 0));
	if (*id == MAP_NONE) {
		*id = ++d->string_count;
		struct row r = db_row(x, STRINGS);
		db_put_int(&r, *id);
		sqlite3_bind_text(r.s, ++r.column, text, (int)bytes, SQLITE_STATIC);
		db_put_row(x, &r);
	}
	return *id;
}

uint32_t db_id(struct export *x, const char *text)
{
	return *text ? text_id(x, text, strlen(text)) : 0;
}

static uint32_t string_id(
	struct export *x, enum string_kind kind, uint64_t number, const char *text)
{
	struct database *d = x->state;
	uint32_t *id = map_get(&d->strings, MAP_KEY(kind, number));
	if (*id == MAP_NONE)
		*id = text_id(x, text, strlen(text));
	expect(*id && *id <= d->string_count, "a text has a number");
	return *id;
}

static void create(struct export *x)
{
	struct database *d = x->state;
	run(x, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	for (int t = 0; t < TABLES; t++) {
		run(x, tables[t].create);
		d->insert[t] = db_prepare(x, tables[t].insert);
	}
	for (int i = 0; i < STATEMENTS; i++)
		d->statement[i] = db_prepare(x, db_statements[i]);
}

static void put_meta_text(struct export *x, const char *name, const char *value)
{
	struct row r = db_row(x, META);
	db_put_text(&r, name);
	db_put_text(&r, value);
	db_put_row(x, &r);
}

static void put_meta_int(struct export *x, const char *name, uint64_t value)
{
	struct row r = db_row(x, META);
	db_put_text(&r, name);
	db_put_int(&r, value);
	db_put_row(x, &r);
}

static void put_meta(struct export *x)
{
	const struct trace_header *h = &x->trace->header;
	put_meta_text(x, "program", h->program);
	put_meta_text(x, "host", h->host);
	put_meta_int(x, "start_realtime_ns", h->start.real_ns);
	put_meta_int(x, "exit_status", trace_exit_status(h));
	if (h->sampled)
		put_meta_int(x, "sampled", h->sampled);
	if (load_relaxed(&h->optional) & FEATURE_REBUILT)
		put_meta_int(x, "reconstructed", 1);
	put_meta_int(x, "lost", load_relaxed(&h->lost));
}

static void put_processes(struct export *x)
{
	for (size_t i = 0; i < x->meta->processes.n; i++) {
		const struct meta_process *m = &x->meta->processes.v[i];
		struct row r = db_row(x, PROCESSES);
		db_put_int(&r, x->trace->processes.v[i].pid);
		db_put_int(&r, m->parent);
		db_put_text(&r, m->executable);
		db_put_text(&r, m->arguments);
		db_put_text(&r, basename(m->executable));
		db_put_row(x, &r);
	}
}

/* As NVIDIA's tools write it. */
static const char *uuid_text(const uint8_t uuid[16], char to[40])
{
	size_t at = 0;
	unsigned any = 0;
	for (int i = 0; i < 16; i++) {
		any |= uuid[i];
		at += (size_t)snprintf(to + at, 40 - at, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	}
	return any ? to : NULL;
}

static void put_devices(struct export *x)
{
	array_each(const struct meta_device, m, x->meta->devices) {
		char uuid[40];
		struct row r = db_row(x, DEVICES);
		db_put_int(&r, x->trace->processes.v[m->process].pid);
		db_put_int(&r, m->device);
		db_put_text(&r, x->meta->names.v[m->name].text);
		db_put_known(&r, m->memory_bytes != 0, m->memory_bytes);
		db_put_known(&r, m->multiprocessors != 0, m->multiprocessors);
		db_put_known(&r, m->capability != 0, m->capability >> 16);
		db_put_known(&r, m->capability != 0, m->capability & 0xffff);
		db_put_text(&r, uuid_text(m->uuid, uuid));
		db_put_row(x, &r);
	}
}

static int begin(struct export *x)
{
	struct database *d = x->state = xcalloc(1, sizeof *d);
	const int rc = sqlite3_open_v2(x->path, &d->db, SQLITE_OPEN_READWRITE, NULL);
	if (rc)
		db_complain(x, rc);
	create(x);
	put_meta(x);
	put_processes(x);
	put_devices(x);
	db_put_stacks(x);
	return x->failed;
}

static void thread(struct export *x, const struct chunk_ref *c)
{
	const uint32_t name = db_id(x, c->head.thread);
	struct row r = db_row(x, THREADS);
	db_put_int(&r, c->head.pid);
	db_put_int(&r, c->head.tid);
	db_put_text(&r, c->head.thread);
	db_put_known(&r, name != 0, name);
	db_put_row(x, &r);
}

static void put_call(struct export *x, const struct export_call *c, uint64_t id, uint64_t outer)
{
	char line[8192];
	const struct record *r = c->record;
	const uint32_t name = string_id(x, OF_FUNCTION, r->fn, c->name);
	const uint32_t api =
		string_id(x, OF_API, c->fn ? c->fn->api : API_DRIVER, schema_api_name(c->fn));
	const uint32_t class = string_id(x, OF_CLASS, r->fn, c->fn ? c->fn->class : "");
	decode_record(x->decoder, r, line, sizeof line);
	const uint64_t values[] = { id, export_since(x, c->begin_ns), export_since(x, c->end_ns),
		c->chunk->head.pid, c->chunk->head.tid, name, api, class, r->result,
		(r->flags & RECORD_CAPTURED) != 0 };
	struct row row = db_row(x, CALLS);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		db_put_int(&row, values[i]);
	db_put_text(&row, line);
	db_put_known(&row, c->link != NULL, c->link ? c->link->correlation : 0);
	db_put_known(&row, outer != 0, outer);
	db_put_known(&row, c->link && !outer, c->link ? c->link->correlation : 0);
	db_put_row(x, &row);
}

static void put_kernel(struct export *x, const struct export_call *c, uint64_t id)
{
	const bool known = c->kernel != META_NONE;
	const uint32_t name =
		known ? string_id(x, OF_KERNEL, c->kernel, export_kernel_name(x, c->kernel)) : 0;
	const uint32_t mangled =
		known ? string_id(x, OF_MANGLED, c->kernel, x->meta->names.v[c->kernel].text) : 0;
	struct row row = db_row(x, KERNELS);
	db_put_int(&row, id);
	db_put_int(&row, export_since(x, c->begin_ns));
	db_put_int(&row, export_since(x, c->end_ns));
	db_put_int(&row, c->chunk->head.pid);
	db_put_int(&row, c->chunk->head.tid);
	db_put_known(&row, known, name);
	db_put_known(&row, known, mangled);
	for (int i = 0; i < 6; i++)
		db_put_int(&row, i < 3 ? c->shape.grid[i] : c->shape.block[i - 3]);
	db_put_int(&row, c->record->aux);
	db_put_int(&row, c->record->arg[LAUNCH_STREAM]);
	db_put_int(&row, (c->record->flags & RECORD_CAPTURED) != 0);
	db_put_row(x, &row);
}

static void put_memory(struct export *x, const struct export_call *c, uint64_t id)
{
	uint64_t address = 0, bytes = 0;
	struct row row = db_row(x, MEMORY);
	db_put_int(&row, id);
	db_put_int(&row, export_since(x, c->begin_ns));
	db_put_int(&row, c->chunk->head.pid);
	db_put_text(&row, c->fn->kind == CALL_ALLOC ? "alloc" : "free");
	db_put_text(&row, c->fn->memory);
	const bool has_address = schema_call_pointer(c->fn, c->record, &address);
	db_put_known(&row, has_address, address);
	const bool has_bytes = schema_call_bytes(c->fn, c->record, &bytes);
	db_put_known(&row, has_bytes, bytes);
	db_put_row(x, &row);
}

static void put_copy(struct export *x, const struct export_call *c, uint64_t id)
{
	uint64_t bytes = 0;
	struct row row = db_row(x, COPIES);
	schema_call_bytes(c->fn, c->record, &bytes);
	db_put_int(&row, id);
	db_put_int(&row, export_since(x, c->begin_ns));
	db_put_int(&row, export_since(x, c->end_ns));
	db_put_int(&row, c->chunk->head.pid);
	db_put_text(&row, c->fn->kind == CALL_SET ? "set" : c->fn->memory);
	db_put_int(&row, bytes);
	db_put_row(x, &row);
}

static void call(struct export *x, const struct export_call *c)
{
	struct database *d = x->state;
	const uint64_t id = ++d->calls;
	uint64_t outer;
	db_place_call(x, c, id, &outer);
	put_call(x, c, id, outer);
	db_inherit(x, c, outer);
	db_put_call_stack(x, c, id);
	if (c->record->result || !c->fn || c->fn->api == API_RUNTIME)
		return;
	const enum call_kind kind = c->fn->kind;
	if (kind == CALL_LAUNCH && c->launch)
		put_kernel(x, c, id);
	else if (kind == CALL_ALLOC || kind == CALL_FREE)
		put_memory(x, c, id);
	else if (kind == CALL_COPY || kind == CALL_SET)
		put_copy(x, c, id);
}

/* 0 for no name. */
static uint32_t name_id(struct export *x, enum string_kind kind, uint32_t name)
{
	return name ? string_id(x, kind, (uint64_t)x->process << 32 | name, export_string(x, name))
		    : 0;
}

static void put_shape(struct row *r, const struct gpu_activity *w)
{
	for (int i = 0; i < 6; i++)
		db_put_known(r, w->valid & GPU_HAS_SHAPE, i < 3 ? w->grid[i] : w->block[i - 3]);
	db_put_known(r, w->valid & GPU_HAS_REGISTERS, w->registers);
	db_put_known(r, w->valid & GPU_HAS_SHARED, w->shared_static);
	db_put_known(r, w->valid & GPU_HAS_SHARED, w->shared_dynamic);
}

/* A name that was written by people and not by a compiler has no mangled form that is known. */
static bool is_symbol(const char *name)
{
	return !strpbrk(name, " <(");
}

/* The short and the mangled form of a kernel's name, once. */
static void put_kernel_forms(struct export *x, uint32_t name, uint32_t id)
{
	struct database *d = x->state;
	uint32_t *known = map_get(&d->named, MAP_KEY(id));
	size_t bytes;
	if (*known != MAP_NONE)
		return;
	*known = id;
	const char *text = nsight_short_name(export_string(x, name), &bytes);
	const uint32_t short_id = text_id(x, text, bytes);
	const uint32_t raw = meta_find_string(x->meta, x->process, name);
	const char *mangled = raw == META_NONE ? "" : x->meta->names.v[raw].text;
	const uint32_t mangled_id = is_symbol(mangled) ? db_id(x, mangled) : 0;
	struct row row = db_row(x, KERNEL_NAMES);
	db_put_int(&row, id);
	db_put_int(&row, short_id);
	db_put_known(&row, mangled_id != 0, mangled_id);
	db_put_row(x, &row);
}

static void activity(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	const bool graph = w->valid & GPU_HAS_GRAPH;
	const uint32_t name = name_id(x, OF_ACTIVITY, w->name);
	if (name && w->kind == GPU_KERNEL)
		put_kernel_forms(x, w->name, name);
	struct row row = db_row(x, WORK);
	db_put_int(&row, export_since(x, w->start_ns));
	db_put_int(&row, export_since(x, w->end_ns));
	db_put_int(&row, c->head.pid);
	db_put_known(&row, w->valid & GPU_HAS_CORRELATION, w->correlation);
	db_put_text(&row, activity_kind_name(w->kind));
	db_put_known(&row, name != 0, name);
	db_put_known(&row, w->valid & GPU_HAS_DEVICE, w->device);
	db_put_known(&row, w->valid & GPU_HAS_CONTEXT, w->context);
	db_put_known(&row, w->valid & GPU_HAS_STREAM, w->stream);
	put_shape(&row, w);
	db_put_known(&row, w->valid & GPU_HAS_BYTES, w->bytes);
	db_put_text(&row, activity_direction(w));
	db_put_known(&row, graph, w->graph);
	db_put_known(&row, graph, w->graph_node);
	db_put_known(&row, w->valid & GPU_HAS_EXTERNAL, w->external);
	db_put_known(&row, w->valid & GPU_HAS_WHAT, w->what);
	db_put_known(&row, w->from != 0, w->from);
	db_put_known(&row, w->to != 0, w->to);
	db_put_row(x, &row);
}

static void range(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	struct database *d = x->state;
	const uint32_t name = name_id(x, OF_RANGE, g->name);
	const uint32_t scope = name_id(x, OF_RANGE, g->scope);
	struct row row = db_row(x, RANGES);
	db_put_int(&row, ++d->ranges);
	db_put_int(&row, export_since(x, trace_ns(x->trace, g->ticks)));
	db_put_int(&row, export_since(x, trace_ns(x->trace, range_end(g))));
	db_put_int(&row, c->head.pid);
	db_put_int(&row, g->tid);
	db_put_text(&row, range_kind_name(g->kind));
	db_put_known(&row, name != 0, name);
	db_put_text(&row, g->args ? export_string(x, g->args) : NULL);
	db_put_known(&row, g->valid & RANGE_HAS_EXTERNAL, g->external);
	db_put_known(&row, g->valid & RANGE_HAS_SEQUENCE, g->sequence);
	db_put_known(&row, scope != 0, scope);
	db_put_row(x, &row);
}

static void make_nsight(struct export *x)
{
	const uint32_t runtime = db_id(x, "runtime");
	char *sql = nsight_sql(runtime, db_id(x, "driver"));
	run(x, xcheck(sql));
	sqlite3_free(sql);
}

static int end(struct export *x)
{
	db_nest(x);
	run(x, views);
	make_nsight(x);
	run(x, "COMMIT");
	return x->failed;
}

static void cleanup(struct export *x)
{
	struct database *d = x->state;
	if (!d)
		return;
	for (int t = 0; t < TABLES; t++)
		sqlite3_finalize(d->insert[t]);
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(d->statement[i]);
	sqlite3_close(d->db);
	map_fini(&d->strings, &d->texts, &d->named);
	array_free(&d->chunks);
	free(d);
}

const struct exporter export_sqlite = {
	.name = "sqlite",
	.suffixes = ".sqlite .sqlite3 .db",
	.wants_path = true,
	.begin = begin,
	.thread = thread,
	.call = call,
	.activity = activity,
	.range = range,
	.end = end,
	.cleanup = cleanup,
};
