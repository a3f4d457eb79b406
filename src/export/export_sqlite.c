/*
 * A SQLite database, in the spirit of what other GPU profilers write, so that their queries
 * need few changes.  Times are nanoseconds since the trace began.
 *
 *	StringIds  id, value             every name; columns that end in Id refer to it
 *	meta       name, value           what the trace's header says
 *	processes  pid, parent, executable, arguments
 *	threads    pid, tid, name
 *	calls      id, start, end, pid, tid, nameId, apiId, classId, returnValue, captured,
 *	           arguments, correlationId
 *	                                 every call, arguments as text; the number of its
 *	                                 GPU activities, where it asked for some
 *	kernels    callId, start, end, pid, tid, demangledName, mangledName, gridX … blockZ,
 *	           dynamicSharedMemory, stream, captured
 *	           launches by driver calls that succeeded; start and end are the host's
 *	memory     callId, start, pid, operation ('alloc' or 'free'), kind, address, bytes
 *	copies     callId, start, end, pid, direction (or 'set'), bytes
 *	work       start, end, pid, correlationId, kind, nameId, deviceId, contextId, streamId,
 *	           gridX … blockZ, registersPerThread, staticSharedMemory,
 *	           dynamicSharedMemory, bytes, direction, graphId, graphNodeId, externalId
 *	           what ran on devices and when; (pid, correlationId) is the call's
 *	ranges     id, parentId, start, end, pid, tid, kind, nameId, arguments, externalId,
 *	           sequenceNumber, repeated
 *	           operators, annotations, NVTX and the rest that lies around calls; parentId
 *	           is the innermost range around, of those kinds that nest; repeated where one
 *	           around has the same name and kind, so that sums count its time once
 *	call_ranges callId, rangeId
 *	           the innermost range around each call that asked for GPU activities
 *
 * and, joined for those who ask:
 *
 *	activities     work with its name, its call and its range
 *	kernel_times   a row a kernel that ran: when on the device, which call launched it and
 *	               when, for which operator
 *	operators      a row a name of ranges: how many, the host's time, the device's
 */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/expect.h"
#include "base/map.h"
#include "trace/activity.h"

#include "base/banned.h"

enum table {
	STRINGS,
	META,
	PROCESSES,
	THREADS,
	CALLS,
	KERNELS,
	MEMORY,
	COPIES,
	WORK,
	RANGES,
	CALL_RANGES,
	TABLES
};

static const struct {
	const char *create;
	const char *insert;
} tables[TABLES] = {
	[STRINGS] = { "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)",
		"INSERT INTO StringIds VALUES (?,?)" },
	[META] = { "CREATE TABLE meta (name TEXT PRIMARY KEY, value)",
		"INSERT INTO meta VALUES (?,?)" },
	[PROCESSES] = { "CREATE TABLE processes (pid INTEGER, parent INTEGER, executable TEXT, "
			"arguments TEXT)",
		"INSERT INTO processes VALUES (?,?,?,?)" },
	[THREADS] = { "CREATE TABLE threads (pid INTEGER, tid INTEGER, name TEXT)",
		"INSERT INTO threads VALUES (?,?,?)" },
	[CALLS] = { "CREATE TABLE calls (id INTEGER PRIMARY KEY, start INTEGER NOT NULL, "
		    "end INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, "
		    "nameId INTEGER NOT NULL REFERENCES StringIds, apiId INTEGER NOT NULL "
		    "REFERENCES StringIds, classId INTEGER NOT NULL REFERENCES StringIds, "
		    "returnValue INTEGER NOT NULL, captured INTEGER NOT NULL, arguments TEXT, "
		    "correlationId INTEGER)",
		"INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?)" },
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
		   "graphNodeId INTEGER, externalId INTEGER)",
		"INSERT INTO work VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)" },
	[RANGES] = { "CREATE TABLE ranges (id INTEGER PRIMARY KEY, parentId INTEGER "
		     "REFERENCES ranges, start INTEGER NOT NULL, end INTEGER NOT NULL, "
		     "pid INTEGER NOT NULL, tid INTEGER NOT NULL, kind TEXT, "
		     "nameId INTEGER REFERENCES StringIds, arguments TEXT, externalId INTEGER, "
		     "sequenceNumber INTEGER, repeated INTEGER NOT NULL)",
		"INSERT INTO ranges VALUES (?,NULL,?,?,?,?,?,?,?,?,?,0)" },
	[CALL_RANGES] = { "CREATE TABLE call_ranges (callId INTEGER PRIMARY KEY REFERENCES calls, "
			  "rangeId INTEGER NOT NULL REFERENCES ranges)",
		"INSERT INTO call_ranges VALUES (?,?)" },
};

#define NESTING "('operator','annotation','nvtx')" /* range_nests() */

/* Once all rows are there.  An activity whose call is not known may name its range itself. */
static const char views[] =
	"CREATE INDEX calls_by_correlation ON calls (pid, correlationId) "
	"WHERE correlationId IS NOT NULL;"
	"CREATE INDEX work_by_correlation ON work (pid, correlationId);"
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
	"MAX(a.start - c.end, 0) AS queued, a.rangeId, s.value AS operator, a.workId "
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
	"WHERE a.kind IN ('kernel','copy','set','graph') GROUP BY 1, 2) "
	"SELECT h.name, h.kind, h.count, h.total AS hostTotal, "
	"COALESCE(d.count, 0) AS activities, COALESCE(d.total, 0) AS deviceSelf "
	"FROM host h LEFT JOIN device d ON d.name = h.name AND d.kind = h.kind "
	"ORDER BY deviceSelf DESC;";

struct database {
	sqlite3 *db;
	sqlite3_stmt *insert[TABLES];
	struct map strings; /* by kind and number: StringIds.id */
	uint32_t string_count;
	uint64_t calls, ranges;
};

static int complain(struct export *x, int rc)
{
	struct database *d = x->state;
	return error_set(x->err, -EIO, "SQLite: %s",
		d && d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc));
}

static int run(struct export *x, const char *sql)
{
	struct database *d = x->state;
	const int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	return rc ? complain(x, rc) : 0;
}

/* ---- rows ---- */

struct row {
	sqlite3_stmt *s;
	int column;
};

static struct row row_of(struct export *x, enum table table)
{
	struct database *d = x->state;
	return (struct row){ .s = d->insert[table] };
}

static void put_int(struct row *r, uint64_t value)
{
	sqlite3_bind_int64(r->s, ++r->column, (sqlite3_int64)value);
}

static void put_null(struct row *r)
{
	sqlite3_bind_null(r->s, ++r->column);
}

static void put_known(struct row *r, bool known, uint64_t value)
{
	if (known)
		put_int(r, value);
	else
		put_null(r);
}

/* The text must live until put_row(). */
static void put_text(struct row *r, const char *text)
{
	sqlite3_bind_text(r->s, ++r->column, text, -1, SQLITE_STATIC);
}

static int put_row(struct export *x, struct row *r)
{
	expect(r->column == sqlite3_bind_parameter_count(r->s),
		"a row has a value for each column");
	const int rc = sqlite3_step(r->s);
	sqlite3_reset(r->s);
	return rc == SQLITE_DONE ? 0 : complain(x, rc);
}

/* ---- strings ---- */

enum string_kind { OF_FUNCTION, OF_CLASS, OF_API, OF_KERNEL, OF_MANGLED, OF_ACTIVITY, OF_RANGE };

static int string_id(struct export *x, enum string_kind kind, uint64_t number, const char *text,
	uint32_t *ret_id)
{
	struct database *d = x->state;
	uint32_t *id = map_get(&d->strings, MAP_KEY(kind, number));
	if (!id)
		return -ENOMEM;
	if (*id == MAP_NONE) {
		*id = ++d->string_count;
		struct row r = row_of(x, STRINGS);
		put_int(&r, *id);
		put_text(&r, text);
		const int e = put_row(x, &r);
		if (e)
			return e;
	}
	expect(*id && *id <= d->string_count, "a text has a number");
	*ret_id = *id;
	return 0;
}

/* ---- beginning ---- */

static int create(struct export *x)
{
	struct database *d = x->state;
	int e = run(x, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	for (int t = 0; t < TABLES && !e; t++) {
		e = run(x, tables[t].create);
		if (!e && sqlite3_prepare_v2(d->db, tables[t].insert, -1, &d->insert[t], NULL))
			e = complain(x, SQLITE_ERROR);
	}
	return e;
}

static int put_meta_text(struct export *x, const char *name, const char *value)
{
	struct row r = row_of(x, META);
	put_text(&r, name);
	put_text(&r, value);
	return put_row(x, &r);
}

static int put_meta_int(struct export *x, const char *name, uint64_t value)
{
	struct row r = row_of(x, META);
	put_text(&r, name);
	put_int(&r, value);
	return put_row(x, &r);
}

static int put_meta(struct export *x)
{
	const struct trace_header *h = &x->trace->header;
	int e = put_meta_text(x, "program", h->program);
	if (!e)
		e = put_meta_text(x, "host", h->host);
	if (!e)
		e = put_meta_int(x, "start_realtime_ns", h->start.real_ns);
	if (!e)
		e = put_meta_int(x, "exit_status", trace_exit_status(h));
	if (!e && h->sampled)
		e = put_meta_int(x, "sampled", h->sampled);
	return e ? e : put_meta_int(x, "lost", h->lost);
}

static int put_processes(struct export *x)
{
	int e = 0;
	for (size_t i = 0; i < x->meta->processes.n && !e; i++) {
		const struct meta_process *m = &x->meta->processes.v[i];
		struct row r = row_of(x, PROCESSES);
		put_int(&r, x->trace->processes.v[i].pid);
		put_int(&r, m->parent);
		put_text(&r, m->executable);
		put_text(&r, m->arguments);
		e = put_row(x, &r);
	}
	return e;
}

static int begin(struct export *x)
{
	struct database *d = x->state = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	const int rc = sqlite3_open_v2(x->path, &d->db, SQLITE_OPEN_READWRITE, NULL);
	if (rc)
		return complain(x, rc);
	int e = create(x);
	if (!e)
		e = put_meta(x);
	return e ? e : put_processes(x);
}

static int thread(struct export *x, const struct chunk_ref *c)
{
	struct row r = row_of(x, THREADS);
	put_int(&r, c->head.pid);
	put_int(&r, c->head.tid);
	put_text(&r, c->head.thread);
	return put_row(x, &r);
}

/* ---- calls ---- */

static uint64_t since(const struct export *x, uint64_t ns)
{
	const uint64_t start = x->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

static int put_call(struct export *x, const struct export_call *c, uint64_t id)
{
	char line[8192];
	uint32_t name, api, class;
	const struct record *r = c->record;
	int e = string_id(x, OF_FUNCTION, r->fn, c->name, &name);
	if (!e)
		e = string_id(
			x, OF_API, c->fn ? c->fn->api : API_DRIVER, schema_api_name(c->fn), &api);
	if (!e)
		e = string_id(x, OF_CLASS, r->fn, c->fn ? c->fn->class : "", &class);
	if (e)
		return e;
	decode_record(x->decoder, r, line, sizeof line);
	const uint64_t values[] = { id, since(x, c->begin_ns), since(x, c->end_ns),
		c->chunk->head.pid, c->chunk->head.tid, name, api, class, r->result,
		(r->flags & RECORD_CAPTURED) != 0 };
	struct row row = row_of(x, CALLS);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		put_int(&row, values[i]);
	put_text(&row, line);
	put_known(&row, c->link != NULL, c->link ? c->link->correlation : 0);
	return put_row(x, &row);
}

static int put_kernel_names(struct export *x, const struct export_call *c, struct row *row)
{
	uint32_t name, mangled;
	if (c->kernel == META_NONE) {
		put_null(row);
		put_null(row);
		return 0;
	}
	int e = string_id(x, OF_KERNEL, c->kernel, export_kernel_name(x, c->kernel), &name);
	if (!e)
		e = string_id(x, OF_MANGLED, c->kernel, x->meta->names.v[c->kernel].text, &mangled);
	if (e)
		return e;
	put_int(row, name);
	put_int(row, mangled);
	return 0;
}

static int put_kernel(struct export *x, const struct export_call *c, uint64_t id)
{
	struct row row = row_of(x, KERNELS);
	put_int(&row, id);
	put_int(&row, since(x, c->begin_ns));
	put_int(&row, since(x, c->end_ns));
	put_int(&row, c->chunk->head.pid);
	put_int(&row, c->chunk->head.tid);
	const int e = put_kernel_names(x, c, &row);
	if (e)
		return e;
	for (int i = 0; i < 6; i++)
		put_int(&row, i < 3 ? c->shape.grid[i] : c->shape.block[i - 3]);
	put_int(&row, c->record->aux);
	put_int(&row, c->record->arg[LAUNCH_STREAM]);
	put_int(&row, (c->record->flags & RECORD_CAPTURED) != 0);
	return put_row(x, &row);
}

static int put_memory(struct export *x, const struct export_call *c, uint64_t id)
{
	uint64_t address, bytes;
	struct row row = row_of(x, MEMORY);
	put_int(&row, id);
	put_int(&row, since(x, c->begin_ns));
	put_int(&row, c->chunk->head.pid);
	put_text(&row, c->fn->kind == CALL_ALLOC ? "alloc" : "free");
	put_text(&row, c->fn->memory);
	if (schema_call_pointer(c->fn, c->record, &address))
		put_int(&row, address);
	else
		put_null(&row);
	if (schema_call_bytes(c->fn, c->record, &bytes))
		put_int(&row, bytes);
	else
		put_null(&row);
	return put_row(x, &row);
}

static int put_copy(struct export *x, const struct export_call *c, uint64_t id)
{
	uint64_t bytes = 0;
	struct row row = row_of(x, COPIES);
	schema_call_bytes(c->fn, c->record, &bytes);
	put_int(&row, id);
	put_int(&row, since(x, c->begin_ns));
	put_int(&row, since(x, c->end_ns));
	put_int(&row, c->chunk->head.pid);
	put_text(&row, c->fn->kind == CALL_SET ? "set" : c->fn->memory);
	put_int(&row, bytes);
	return put_row(x, &row);
}

static int call(struct export *x, const struct export_call *c)
{
	struct database *d = x->state;
	const uint64_t id = ++d->calls;
	const int e = put_call(x, c, id);
	if (e || c->record->result || !c->fn || c->fn->api == API_RUNTIME)
		return e;
	switch (c->fn->kind) {
	case CALL_LAUNCH:
		return c->launch ? put_kernel(x, c, id) : 0;
	case CALL_ALLOC:
	case CALL_FREE:
		return put_memory(x, c, id);
	case CALL_COPY:
	case CALL_SET:
		return put_copy(x, c, id);
	default:
		return 0;
	}
}

/* ---- GPU activities and ranges ---- */

/* 0 for no name. */
static int name_id(struct export *x, enum string_kind kind, uint32_t name, uint32_t *ret_id)
{
	*ret_id = 0;
	return name ? string_id(x, kind, (uint64_t)x->process << 32 | name, export_string(x, name),
			      ret_id)
		    : 0;
}

static void put_shape(struct row *r, const struct gpu_activity *w)
{
	for (int i = 0; i < 6; i++)
		put_known(r, w->valid & GPU_HAS_SHAPE, i < 3 ? w->grid[i] : w->block[i - 3]);
	put_known(r, w->valid & GPU_HAS_REGISTERS, w->registers);
	put_known(r, w->valid & GPU_HAS_SHARED, w->shared_static);
	put_known(r, w->valid & GPU_HAS_SHARED, w->shared_dynamic);
}

static int activity(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	uint32_t name;
	const bool graph = w->valid & GPU_HAS_GRAPH;
	const int e = name_id(x, OF_ACTIVITY, w->name, &name);
	if (e)
		return e;
	struct row row = row_of(x, WORK);
	put_int(&row, since(x, w->start_ns));
	put_int(&row, since(x, w->end_ns));
	put_int(&row, c->head.pid);
	put_known(&row, w->valid & GPU_HAS_CORRELATION, w->correlation);
	put_text(&row, activity_kind_name(w->kind));
	put_known(&row, name != 0, name);
	put_known(&row, w->valid & GPU_HAS_DEVICE, w->device);
	put_known(&row, w->valid & GPU_HAS_CONTEXT, w->context);
	put_known(&row, w->valid & GPU_HAS_STREAM, w->stream);
	put_shape(&row, w);
	put_known(&row, w->valid & GPU_HAS_BYTES, w->bytes);
	put_text(&row, activity_direction(w));
	put_known(&row, graph, w->graph);
	put_known(&row, graph, w->graph_node);
	put_known(&row, w->valid & GPU_HAS_EXTERNAL, w->external);
	return put_row(x, &row);
}

static int range(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	struct database *d = x->state;
	uint32_t name;
	const int e = name_id(x, OF_RANGE, g->name, &name);
	if (e)
		return e;
	struct row row = row_of(x, RANGES);
	put_int(&row, ++d->ranges);
	put_int(&row, since(x, trace_ns(x->trace, g->ticks)));
	put_int(&row, since(x, trace_ns(x->trace, range_end(g))));
	put_int(&row, c->head.pid);
	put_int(&row, g->tid);
	put_text(&row, range_kind_name(g->kind));
	put_known(&row, name != 0, name);
	put_text(&row, g->args ? export_string(x, g->args) : NULL);
	put_known(&row, g->valid & RANGE_HAS_EXTERNAL, g->external);
	put_known(&row, g->valid & RANGE_HAS_SEQUENCE, g->sequence);
	return put_row(x, &row);
}

/* ---- who is inside of whom ---- */

/* Ranges that nest and calls that launched activities, each thread's in the order of time, callers
 * first. */
static const char in_order[] =
	"SELECT 0 AS what, id, pid, tid, start, end, nameId, unicode(kind) FROM ranges "
	"WHERE kind IN " NESTING " UNION ALL "
	"SELECT 1, id, pid, tid, start, end, NULL, NULL FROM calls WHERE correlationId IS NOT NULL "
	"ORDER BY pid, tid, start, what, end DESC, id";

struct open_range {
	sqlite3_int64 id, pid, tid, end;
	sqlite3_int64 name;
	int kind; /* its first letter */
};

struct nesting {
	ARRAY(struct open_range) open; /* the innermost is the last */
	sqlite3_stmt *parent;          /* sets the parent of a range */
};

/* Leaves the ranges that have ended by then; the innermost that is left, or NULL. */
static const struct open_range *innermost(
	struct nesting *n, const struct open_range *at, sqlite3_int64 start)
{
	for (; n->open.n; n->open.n--) {
		const struct open_range *top = &n->open.v[n->open.n - 1];
		if (top->pid == at->pid && top->tid == at->tid && top->end > start)
			return top;
	}
	return NULL;
}

#define LOOK_UP_MOST 256 /* ranges around; recursion that is deeper counts several times */

static bool is_repeated(const struct nesting *n, const struct open_range *at)
{
	for (size_t i = 0; i < n->open.n && i < LOOK_UP_MOST; i++) {
		const struct open_range *up = &n->open.v[n->open.n - 1 - i];
		if (up->name == at->name && up->kind == at->kind)
			return true;
	}
	return false;
}

static int set_parent(
	struct export *x, struct nesting *n, const struct open_range *at, sqlite3_int64 parent)
{
	struct row row = { .s = n->parent };
	put_int(&row, (uint64_t)parent);
	put_int(&row, is_repeated(n, at));
	put_int(&row, (uint64_t)at->id);
	return put_row(x, &row);
}

static int place(struct export *x, struct nesting *n, sqlite3_stmt *s)
{
	const bool is_call = sqlite3_column_int(s, 0);
	const struct open_range at = { .id = sqlite3_column_int64(s, 1),
		.pid = sqlite3_column_int64(s, 2),
		.tid = sqlite3_column_int64(s, 3),
		.end = sqlite3_column_int64(s, 5),
		.name = sqlite3_column_int64(s, 6),
		.kind = sqlite3_column_int(s, 7) };
	const struct open_range *around = innermost(n, &at, sqlite3_column_int64(s, 4));
	int e = 0;
	if (around && is_call) {
		struct row row = row_of(x, CALL_RANGES);
		put_int(&row, (uint64_t)at.id);
		put_int(&row, (uint64_t)around->id);
		return put_row(x, &row);
	}
	if (is_call)
		return 0;
	if (around)
		e = set_parent(x, n, &at, around->id);
	expect(!n->open.n || (around && around->tid == at.tid && around->pid == at.pid),
		"the ranges that are open are of one thread");
	struct open_range *to = array_push(&n->open);
	if (!to)
		return -ENOMEM;
	*to = at;
	return e;
}

static int nest(struct export *x)
{
	static const char set[] = "UPDATE ranges SET parentId = ?, repeated = ? WHERE id = ?";
	struct database *d = x->state;
	struct nesting n = { 0 };
	sqlite3_stmt *s = NULL;
	int e = 0, rc;
	if (!d->ranges)
		return 0;
	if (sqlite3_prepare_v2(d->db, in_order, -1, &s, NULL) ||
		sqlite3_prepare_v2(d->db, set, -1, &n.parent, NULL))
		e = complain(x, SQLITE_ERROR);
	while (!e && (rc = sqlite3_step(s)) != SQLITE_DONE)
		e = rc == SQLITE_ROW ? place(x, &n, s) : complain(x, rc);
	sqlite3_finalize(s);
	sqlite3_finalize(n.parent);
	array_free(&n.open);
	return e;
}

static int end(struct export *x)
{
	int e = nest(x);
	if (!e)
		e = run(x, views);
	return e ? e : run(x, "COMMIT");
}

static void cleanup(struct export *x)
{
	struct database *d = x->state;
	if (!d)
		return;
	for (int t = 0; t < TABLES; t++)
		sqlite3_finalize(d->insert[t]);
	sqlite3_close(d->db);
	map_fini(&d->strings);
	free(d);
}

const struct exporter export_sqlite = {
	.name = "sqlite",
	.wants_path = true,
	.begin = begin,
	.thread = thread,
	.call = call,
	.activity = activity,
	.range = range,
	.end = end,
	.cleanup = cleanup,
};
