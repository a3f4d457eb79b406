/*
 * Reads the SQLite database that Nsight Systems exports. Tables and columns vary by version and
 * recording, so each table is read by the columns that it has. Times are nanoseconds since the
 * session began.
 *
 * A globalTid is machine << 48 | pid << 24 | tid, and a globalPid the same with tid 0.
 */
#include "base/bounded.h"
#include "base/expect.h"
#include "import/import_source.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/activity.h"

struct nsys {
	sqlite3 *db;
	struct store *s;
	struct import_stats *st;
	struct map texts;         /* id in StringIds: id of the store */
	uint8_t memory_kinds[16]; /* the export's kinds of memory as enum activity_memory_kind */
	unsigned tables;          /* that were read */
};

/* One row, while it is read. */
struct row {
	sqlite3_stmt *st;
};

static void fail(struct nsys *n, const char *table)
{
	xcheck(sqlite3_errcode(n->db) == SQLITE_NOMEM ? NULL : n);
	if (!*n->st->partial)
		snprintf(n->st->partial, sizeof n->st->partial, "table %s: %s", table,
			sqlite3_errmsg(n->db));
}

/* Only real tables: a view could be anything. */
static bool has_table(struct nsys *n, const char *table)
{
	sqlite3_stmt *st = NULL;
	bool found = false;
	if (sqlite3_prepare_v2(n->db,
		    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", -1, &st,
		    NULL) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
		found = sqlite3_step(st) == SQLITE_ROW;
	}
	sqlite3_finalize(st);
	return found;
}

static bool has_column(struct nsys *n, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(
		       n->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/* SELECT of the columns, NULL for those that are not there. */
static int prepare(struct nsys *n, const char *table, const char *const *columns, sqlite3_stmt **st)
{
	char sql[1024];
	struct bounded b = BOUNDED(sql);
	bounded_put(&b, "SELECT ");
	for (size_t i = 0; columns[i]; i++)
		bounded_printf(&b, has_column(n, table, columns[i]) ? "%s\"%s\"" : "%sNULL%.0s",
			i ? ", " : "", columns[i]);
	bounded_printf(&b, " FROM \"%s\"", table);
	if (b.cut)
		return -EINVAL;
	return sqlite3_prepare_v2(n->db, bounded_end(&b), -1, st, NULL) == SQLITE_OK ? 0 : -EBADMSG;
}

/* Calls `take` with each row of a table, if there is one. */
static void each_row(struct nsys *n, const char *table, const char *const *columns,
	void (*take)(struct nsys *n, struct row *r))
{
	struct row r = { 0 };
	int step = SQLITE_DONE;
	if (!has_table(n, table))
		return;
	if (prepare(n, table, columns, &r.st)) {
		fail(n, table);
	} else {
		n->tables++;
		while ((step = sqlite3_step(r.st)) == SQLITE_ROW)
			take(n, &r);
		if (step != SQLITE_DONE)
			fail(n, table);
	}
	sqlite3_finalize(r.st);
}

static bool cell(const struct row *r, int i, uint64_t most, uint64_t *ret)
{
	expect(i < sqlite3_column_count(r->st), "a column that is read was asked for");
	if (sqlite3_column_type(r->st, i) != SQLITE_INTEGER)
		return false;
	const sqlite3_int64 value = sqlite3_column_int64(r->st, i);
	if (value < 0 || (uint64_t)value > most)
		return false;
	*ret = (uint64_t)value;
	return true;
}

static uint32_t cell32(const struct row *r, int i)
{
	uint64_t value = 0;
	cell(r, i, UINT32_MAX, &value);
	return (uint32_t)value;
}

/* Columns 0 and 1 are start and end everywhere. */
static bool take_times(struct nsys *n, const struct row *r, uint64_t *ret_start, uint64_t *ret_end)
{
	if (cell(r, 0, IMPORT_TIME_MOST, ret_start) && cell(r, 1, IMPORT_TIME_MOST, ret_end) &&
		*ret_end >= *ret_start)
		return true;
	n->st->left_out++;
	return false;
}

/* A text of the store for an id of StringIds; 0 when there is none. */
static uint32_t text_of(const struct nsys *n, const struct row *r, int i)
{
	uint64_t id;
	const uint32_t text =
		cell(r, i, INT64_MAX, &id) ? map_find(&n->texts, MAP_KEY(id)) : MAP_NONE;
	return text == MAP_NONE ? 0 : text;
}

static uint32_t process_of(struct nsys *n, const struct row *r, int i)
{
	uint64_t global = 0;
	cell(r, i, INT64_MAX, &global);
	return store_process(n->s, global >> 24, global >> 24 & 0xffffff);
}

static uint32_t thread_of(struct nsys *n, const struct row *r, int i)
{
	uint64_t global = 0;
	cell(r, i, INT64_MAX, &global);
	const uint32_t process = process_of(n, r, i);
	return store_thread(n->s, process, global & 0xffffff, global & 0xffffff);
}

static void take_text(struct nsys *n, struct row *r)
{
	uint64_t id;
	const char *s = (const char *)sqlite3_column_text(r->st, 1);
	if (!s || !cell(r, 0, INT64_MAX, &id))
		return;
	const uint32_t text = store_string(n->s, s, (size_t)sqlite3_column_bytes(r->st, 1));
	uint32_t *slot = map_get(&n->texts, MAP_KEY(id));
	*slot = text;
}

static void take_memory_kind(struct nsys *n, struct row *r)
{
	static const char *const labels[] = { "", "Pageable", "Pinned", "Device", "Array",
		"Managed", "Device Static", "Managed Static" };
	uint64_t id;
	const char *s = (const char *)sqlite3_column_text(r->st, 1);
	if (!s || !cell(r, 0, sizeof n->memory_kinds - 1, &id))
		return;
	n->memory_kinds[id] = 0;
	for (uint8_t i = 1; i < ACTIVITY_MEMORY_KINDS; i++)
		if (!strcmp(labels[i], s))
			n->memory_kinds[id] = i;
}

static uint8_t memory_kind_of(const struct nsys *n, const struct row *r, int i)
{
	uint64_t id;
	return cell(r, i, sizeof n->memory_kinds - 1, &id) ? n->memory_kinds[id] : 0;
}

/* Columns that all tables of activities begin with. */
#define ACTIVITY_COLUMNS                                                                           \
	"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId",         \
		"graphId", "graphNodeId"
enum {
	COL_PID = 2,
	COL_DEVICE,
	COL_CONTEXT,
	COL_STREAM,
	COL_CORRELATION,
	COL_GRAPH,
	COL_NODE,
	COL_OWN
};

static void take_number(
	const struct row *r, int i, struct gpu_activity *w, uint32_t *to, uint32_t bit)
{
	uint64_t value;
	if (!cell(r, i, UINT32_MAX, &value))
		return;
	*to = (uint32_t)value;
	w->valid |= bit;
}

/* False: not to be had. */
static bool begin_activity(struct nsys *n, struct row *r, uint16_t kind, struct gpu_activity *w)
{
	*w = (struct gpu_activity){ .kind = kind };
	if (!take_times(n, r, &w->start_ns, &w->end_ns))
		return false;
	take_number(r, COL_DEVICE, w, &w->device, GPU_HAS_DEVICE);
	take_number(r, COL_CONTEXT, w, &w->context, GPU_HAS_CONTEXT);
	take_number(r, COL_STREAM, w, &w->stream, GPU_HAS_STREAM);
	if (cell(r, COL_CORRELATION, INT64_MAX, &w->correlation) && w->correlation)
		w->valid |= GPU_HAS_CORRELATION;
	if (cell(r, COL_NODE, INT64_MAX, &w->graph_node) && w->graph_node) {
		w->graph = cell32(r, COL_GRAPH);
		w->valid |= GPU_HAS_GRAPH;
	}
	if (sqlite3_column_type(r->st, COL_PID) != SQLITE_INTEGER)
		return true; /* whose it is, its call will tell */
	const uint32_t process = process_of(n, r, COL_PID);
	w->host_ns = process + 1ull;
	return true;
}

static void end_activity(struct nsys *n, const struct gpu_activity *w)
{
	expect(w->end_ns >= w->start_ns, "an activity ends after it began");
	expect(w->host_ns <= n->s->processes.n, "the process of an activity is one of all");
	*array_push(&n->s->activities) = *w;
	n->st->activities++;
}

static const char *const kernel_columns[] = { ACTIVITY_COLUMNS, "demangledName", "shortName",
	"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
	"dynamicSharedMemory", "registersPerThread", NULL };

static void take_kernel(struct nsys *n, struct row *r)
{
	struct gpu_activity w;
	uint64_t value;
	if (!begin_activity(n, r, GPU_KERNEL, &w))
		return;
	w.name = text_of(n, r, COL_OWN);
	if (!w.name)
		w.name = text_of(n, r, COL_OWN + 1);
	if (cell(r, COL_OWN + 2, UINT32_MAX, &value))
		w.valid |= GPU_HAS_SHAPE;
	for (int i = 0; i < 3; i++) {
		w.grid[i] = cell32(r, COL_OWN + 2 + i);
		w.block[i] = cell32(r, COL_OWN + 5 + i);
	}
	take_number(r, COL_OWN + 8, &w, &w.shared_static, GPU_HAS_SHARED);
	take_number(r, COL_OWN + 9, &w, &w.shared_dynamic, GPU_HAS_SHARED);
	if (cell(r, COL_OWN + 10, UINT16_MAX, &value)) {
		w.registers = (uint16_t)value;
		w.valid |= GPU_HAS_REGISTERS;
	}
	end_activity(n, &w);
}

/* A name as Kineto would give it, so that reports of both look alike. */
static void name_activity(struct nsys *n, struct gpu_activity *w, const char *what)
{
	const char *direction = copy_direction_name(w->what);
	const char *from = activity_memory_kind_name(w->from),
		   *to = activity_memory_kind_name(w->to);
	char name[96];
	int bytes = snprintf(name, sizeof name, "%s", what);
	if (w->kind == GPU_MEMCPY && direction)
		bytes = snprintf(name, sizeof name, "%s %s", what, direction);
	if (w->kind == GPU_MEMCPY && from && to)
		bytes += snprintf(
			name + bytes, sizeof name - (size_t)bytes, " (%s to %s)", from, to);
	else if (w->kind == GPU_MEMSET && from)
		bytes += snprintf(name + bytes, sizeof name - (size_t)bytes, " (%s)", from);
	w->name = store_string(n->s, name, (size_t)bytes);
}

static const char *const memcpy_columns[] = { ACTIVITY_COLUMNS, "bytes", "copyKind", "srcKind",
	"dstKind", NULL };

static void take_memcpy(struct nsys *n, struct row *r)
{
	struct gpu_activity w;
	uint64_t kind;
	if (!begin_activity(n, r, GPU_MEMCPY, &w))
		return;
	if (cell(r, COL_OWN, INT64_MAX, &w.bytes))
		w.valid |= GPU_HAS_BYTES;
	if (cell(r, COL_OWN + 1, COPY_DIRECTIONS - 1, &kind)) {
		w.what = (uint8_t)kind;
		w.valid |= GPU_HAS_WHAT;
	}
	w.from = memory_kind_of(n, r, COL_OWN + 2);
	w.to = memory_kind_of(n, r, COL_OWN + 3);
	w.valid |= w.from || w.to ? GPU_HAS_MEMORY_KINDS : 0;
	name_activity(n, &w, "Memcpy");
	end_activity(n, &w);
}

static const char *const memset_columns[] = { ACTIVITY_COLUMNS, "bytes", "memKind", NULL };

static void take_memset(struct nsys *n, struct row *r)
{
	struct gpu_activity w;
	if (!begin_activity(n, r, GPU_MEMSET, &w))
		return;
	if (cell(r, COL_OWN, INT64_MAX, &w.bytes))
		w.valid |= GPU_HAS_BYTES;
	w.from = memory_kind_of(n, r, COL_OWN + 1);
	w.valid |= w.from ? GPU_HAS_MEMORY_KINDS : 0;
	name_activity(n, &w, "Memset");
	end_activity(n, &w);
}

static const char *const sync_columns[] = { ACTIVITY_COLUMNS, "syncType", NULL };

static void take_sync(struct nsys *n, struct row *r)
{
	struct gpu_activity w;
	uint64_t kind;
	if (!begin_activity(n, r, GPU_SYNC, &w))
		return;
	if (cell(r, COL_OWN, 4, &kind) && kind) {
		w.what = (uint8_t)kind;
		w.valid |= GPU_HAS_WHAT;
	}
	name_activity(n, &w, "Synchronize");
	end_activity(n, &w);
}

static const char *const graph_columns[] = { ACTIVITY_COLUMNS, NULL };

static void take_graph(struct nsys *n, struct row *r)
{
	struct gpu_activity w;
	if (!begin_activity(n, r, GPU_GRAPH, &w))
		return;
	take_number(r, COL_GRAPH, &w, &w.graph, GPU_HAS_GRAPH);
	name_activity(n, &w, "Graph");
	end_activity(n, &w);
}

static const char *const call_columns[] = { "start", "end", "globalTid", "correlationId", "nameId",
	"returnValue", NULL };

static void take_call(struct nsys *n, struct row *r)
{
	struct store_call c = { 0 };
	uint64_t end, result;
	if (!take_times(n, r, &c.start_ns, &end))
		return;
	c.dur_ns = end - c.start_ns;
	cell(r, 3, INT64_MAX, &c.correlation);
	if (cell(r, 5, UINT16_MAX, &result))
		c.result = (uint16_t)result;
	const uint32_t name = text_of(n, r, 4);
	expect(name <= n->s->strings.n, "the number of a text is one of all");
	const struct store_string *text = name ? &n->s->strings.v[name - 1] : NULL;
	c.thread = thread_of(n, r, 2);
	c.fn = store_function(n->s, text ? text->text : "?", text ? text->bytes : 1);
	*array_push(&n->s->calls) = c;
	n->st->calls++;
}

static const char *const nvtx_columns[] = { "start", "end", "globalTid", "eventType", "textId",
	"text", "domainId", NULL };

enum { NVTX_PUSH_POP = 59, NVTX_START_END = 60 };

static uint32_t nvtx_name(struct nsys *n, const struct row *r)
{
	const char *s = (const char *)sqlite3_column_text(r->st, 5);
	const uint32_t name = text_of(n, r, 4);
	if (name || !s)
		return name;
	return store_string(n->s, s, (size_t)sqlite3_column_bytes(r->st, 5));
}

static void take_nvtx(struct nsys *n, struct row *r)
{
	struct range g = { .kind = RANGE_NVTX };
	uint64_t end, type = NVTX_PUSH_POP;
	cell(r, 3, UINT32_MAX, &type);
	if (type != NVTX_PUSH_POP && type != NVTX_START_END)
		return; /* marks, names of threads and domains */
	if (!take_times(n, r, &g.ticks, &end))
		return;
	g.dur = end - g.ticks;
	if (type == NVTX_START_END)
		g.kind = RANGE_NVTX_SPAN;
	g.name = nvtx_name(n, r);
	g.tid = thread_of(n, r, 2);
	*array_push(&n->s->ranges) = g;
	n->st->ranges++;
}

static void take_thread_name(struct nsys *n, struct row *r)
{
	uint64_t global;
	const uint32_t name = text_of(n, r, 1);
	if (!name || !cell(r, 0, INT64_MAX, &global))
		return;
	const uint32_t process = map_find(&n->s->process_map, MAP_KEY(global >> 24));
	const uint32_t thread = process == MAP_NONE ? MAP_NONE
						    : map_find(&n->s->thread_map,
							      MAP_KEY(process, global & 0xffffff));
	if (thread != MAP_NONE)
		snprintf(n->s->threads.v[thread].name, sizeof n->s->threads.v[thread].name, "%.15s",
			n->s->strings.v[name - 1].text);
}

static void take_process_name(struct nsys *n, struct row *r)
{
	uint64_t global;
	const char *s = (const char *)sqlite3_column_text(r->st, 1);
	if (!s || !cell(r, 0, INT64_MAX, &global))
		return;
	const uint32_t process = map_find(&n->s->process_map, MAP_KEY(global >> 24));
	if (process == MAP_NONE)
		return;
	n->s->processes.v[process].name =
		store_string(n->s, s, (size_t)sqlite3_column_bytes(r->st, 1));
}

static void take_device(struct nsys *n, struct row *r)
{
	struct store_device d = { 0 };
	const char *s = (const char *)sqlite3_column_text(r->st, 1);
	if (!s)
		return;
	for (int i = 0; i < 3; i++)
		cell(r, i ? i + 1 : 0, INT64_MAX, &d.args[i]);
	d.args[3] = (uint64_t)(cell32(r, 4) & 0xffff) << 16 | (cell32(r, 5) & 0xffff);
	d.name = store_string(n->s, s, (size_t)sqlite3_column_bytes(r->st, 1));
	*array_push(&n->s->devices) = d;
}

static void take_start(struct nsys *n, struct row *r)
{
	cell(r, 0, IMPORT_TIME_MOST, &n->s->real_ns);
}

static const struct {
	const char *table;
	const char *const *columns;
	void (*take)(struct nsys *n, struct row *r);
	bool needed; /* one of these at least */
} tables[] = {
	{ "StringIds", (const char *const[]){ "id", "value", NULL }, take_text, false },
	{ "ENUM_CUDA_MEM_KIND", (const char *const[]){ "id", "label", NULL }, take_memory_kind,
		false },
	{ "TARGET_INFO_SESSION_START_TIME", (const char *const[]){ "utcEpochNs", NULL }, take_start,
		false },
	{ "CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, take_kernel, true },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY", memcpy_columns, take_memcpy, true },
	{ "CUPTI_ACTIVITY_KIND_MEMSET", memset_columns, take_memset, true },
	{ "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_columns, take_sync, true },
	{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, take_graph, true },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, take_call, true },
	{ "NVTX_EVENTS", nvtx_columns, take_nvtx, true },
	{ "ThreadNames", (const char *const[]){ "globalTid", "nameId", NULL }, take_thread_name,
		false },
	{ "PROCESSES", (const char *const[]){ "globalPid", "name", NULL }, take_process_name,
		false },
	{ "TARGET_INFO_GPU",
		(const char *const[]){ "id", "name", "totalMemory", "smCount", "computeMajor",
			"computeMinor", NULL },
		take_device, false },
};

static int read_tables(struct nsys *n, const char *path, struct error *err)
{
	unsigned needed = 0;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		const unsigned before = n->tables;
		each_row(n, tables[i].table, tables[i].columns, tables[i].take);
		needed += tables[i].needed && n->tables > before;
	}
	if (!needed && *n->st->partial)
		return error_set(err, -EINVAL, "%s can't be read: %s", path, n->st->partial);
	if (!needed && has_table(n, "call_ranges"))
		return error_set(
			err, -EINVAL, "%s is an export of a trace. Give the trace itself", path);
	if (!needed)
		return error_set(err, -EINVAL,
			"%s is an SQLite file without the tables of Nsight Systems for "
			"CUDA or NVTX",
			path);
	return 0;
}

struct mapped {
	void *at; /* NULL: nothing is mapped */
	size_t bytes;
};

static bool map_file(const char *path, struct mapped *ret_map)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool any = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
	void *at = any ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return false;
	*ret_map = (struct mapped){ at, (size_t)st.st_size };
	return true;
}

/* SQLite opens files by their names; one that came through a pipe has none, and is read where it is
 * mapped. */
static int open_database(struct nsys *n, const char *path, struct mapped *ret_map)
{
	int code = sqlite3_open_v2(path, &n->db, SQLITE_OPEN_READONLY, NULL);
	if (code != SQLITE_CANTOPEN || !map_file(path, ret_map))
		return code;
	sqlite3_close(n->db);
	code = sqlite3_open_v2(":memory:", &n->db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_deserialize(n->db, "main", ret_map->at,
			(sqlite3_int64)ret_map->bytes, (sqlite3_int64)ret_map->bytes,
			SQLITE_DESERIALIZE_READONLY);
	return code;
}

int import_nsys(const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	struct nsys n = { .s = s, .st = st };
	struct mapped map = { 0 };
	int e;
	st->format = "SQLite of Nsight Systems";
	for (uint8_t i = 0; i + 1 < ACTIVITY_MEMORY_KINDS; i++)
		n.memory_kinds[i] = i + 1; /* unless the file has a table that says so */
	if (open_database(&n, path, &map) != SQLITE_OK) {
		e = error_set(err, -EINVAL, "%s can't be read: %s", path,
			n.db ? sqlite3_errmsg(n.db) : "no memory");
	} else {
		sqlite3_db_config(n.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_db_config(n.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		e = read_tables(&n, path, err);
	}
	sqlite3_close(n.db);
	if (map.at)
		munmap(map.at, map.bytes);
	map_fini(&n.texts);
	return e;
}
