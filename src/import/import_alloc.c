/*
 * Reads tables of allocations, plain or gzipped: a line of column names, then an event a row.
 *
 *	Thread,Time,Action,Pointer,Size,Stream     the log of RAPIDS Memory Manager
 *	action,addr,size,stream                    the events of PyTorch's allocator, as a table
 *
 * Columns may stand in any order, and unknown ones are skipped. Events become calls of functions
 * that the schema declares: allocate, free, segment_alloc and segment_free. The order of rows
 * counts, so a row whose time does not rise comes a nanosecond after the one before. Without times
 * a row is a microsecond.
 */
#include "import/import_source.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/csv.h"
#include "base/digit.h"
#include "base/expect.h"
#include "base/text.h"
#include "base/unpack.h"

#define LINE_MOST 4096
#define DAY_NS    86400000000000ull
#define NO_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

enum column { COL_ACTION, COL_POINTER, COL_SIZE, COL_STREAM, COL_THREAD, COL_TIME, COLUMNS };

static const struct column_name {
	const char *name;
	uint8_t column;
	bool hex; /* digits are hexadecimal also without 0x, as %p of some libraries has it */
	uint64_t unit_ns;
} column_names[] = {
	{ "action", COL_ACTION, false, 0 },
	{ "event", COL_ACTION, false, 0 },
	{ "pointer", COL_POINTER, true, 0 },
	{ "addr", COL_POINTER, false, 0 },
	{ "address", COL_POINTER, false, 0 },
	{ "ptr", COL_POINTER, false, 0 },
	{ "size", COL_SIZE, false, 0 },
	{ "bytes", COL_SIZE, false, 0 },
	{ "stream", COL_STREAM, false, 0 },
	{ "thread", COL_THREAD, false, 0 },
	{ "tid", COL_THREAD, false, 0 },
	{ "time", COL_TIME, false, 1000000000 },
	{ "time_s", COL_TIME, false, 1000000000 },
	{ "time_ms", COL_TIME, false, 1000000 },
	{ "time_us", COL_TIME, false, 1000 },
	{ "time_ns", COL_TIME, false, 1 },
};

enum action { ACT_ALLOC, ACT_FREE, ACT_SEGMENT, ACT_SEGMENT_FREE, ACT_FAIL, ACT_NOTHING, ACTIONS };

static const struct {
	const char *name;
	enum action action;
} action_names[] = {
	{ "alloc", ACT_ALLOC },
	{ "allocate", ACT_ALLOC },
	{ "malloc", ACT_ALLOC },
	{ "free", ACT_FREE },
	{ "free_completed", ACT_FREE },
	{ "deallocate", ACT_FREE },
	{ "segment_alloc", ACT_SEGMENT },
	{ "segment_map", ACT_SEGMENT },
	{ "segment_free", ACT_SEGMENT_FREE },
	{ "segment_unmap", ACT_SEGMENT_FREE },
	{ "allocate failure", ACT_FAIL },
	{ "oom", ACT_FAIL },
	{ "free_requested", ACT_NOTHING }, /* free_completed follows */
	{ "snapshot", ACT_NOTHING },
};

struct alloc_reader {
	gzFile file;
	const char *path;
	struct store *s;
	struct import_stats *st;
	struct error *err;
	uint64_t line;
	uint64_t most; /* that the file may unpack to */
	char text[LINE_MOST];
	bool whole;         /* the line ends with a newline */
	int place[COLUMNS]; /* of the column in a row, or -1 */
	bool hex;
	uint64_t unit_ns;
	int field_count;
	struct csv_row row;
	uint16_t fn[ACTIONS];
	uint32_t process;
	uint64_t last_ns;  /* of the event before */
	uint64_t clock_ns; /* as the row before had it */
	uint64_t days_ns;  /* added since the clock passed midnight */
};

/* 1, 0 at the end, or -errno. */
static int next_line(struct alloc_reader *a)
{
	const z_off_t from = gztell(a->file);
	if ((uint64_t)from > a->most && !gzdirect(a->file)) {
		snprintf(a->st->partial, sizeof a->st->partial,
			"it unpacks to more than a file of its size may hold, from line %" PRIu64
			" on",
			a->line + 1);
		return 0;
	}
	if (!gzgets(a->file, a->text, sizeof a->text)) {
		int code;
		const char *why = gzerror(a->file, &code);
		if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR)
			return 0;
		return error_set(
			a->err, -EINVAL, "%s: after line %" PRIu64 ": %s", a->path, a->line, why);
	}
	a->line++;
	size_t n = strlen(a->text);
	if ((z_off_t)n != gztell(a->file) - from)
		return error_set(a->err, -EINVAL, "%s: line %" PRIu64 " has a byte that is zero",
			a->path, a->line);
	a->whole = n && a->text[n - 1] == '\n';
	if (n == sizeof a->text - 1 && !a->whole)
		return error_set(a->err, -EINVAL, "%s: line %" PRIu64 " is longer than %d bytes",
			a->path, a->line, LINE_MOST - 2);
	return 1;
}

static int split(struct alloc_reader *a)
{
	const char *bad = csv_split(a->text, &a->row);
	return bad ? error_set(a->err, -EINVAL, "%s: line %" PRIu64 ": %s", a->path, a->line, bad)
		   : 0;
}

static int wrong(struct alloc_reader *a, const char *what, const char *text)
{
	error_set(a->err, -EINVAL, "%s: line %" PRIu64 ": \"%.47s\" is no %s", a->path, a->line,
		text, what);
	text_make_safe(a->err->text);
	return -EINVAL;
}

static void take_column(struct alloc_reader *a, int place)
{
	for (size_t i = 0; i < sizeof column_names / sizeof column_names[0]; i++) {
		const struct column_name *c = &column_names[i];
		if (strcasecmp(a->row.field[place], c->name) != 0 || a->place[c->column] >= 0)
			continue;
		a->place[c->column] = place;
		if (c->column == COL_POINTER)
			a->hex = c->hex;
		if (c->column == COL_TIME)
			a->unit_ns = c->unit_ns;
	}
}

/* 0, or -EINVAL without a sentence: this is no such table. */
static int read_header(struct alloc_reader *a)
{
	for (int i = 0; i < COLUMNS; i++)
		a->place[i] = -1;
	if (next_line(a) != 1 || split(a))
		return -EINVAL;
	a->field_count = a->row.n;
	for (int i = 0; i < a->row.n; i++)
		take_column(a, i);
	return a->place[COL_ACTION] < 0 || a->place[COL_POINTER] < 0 || a->place[COL_SIZE] < 0
		       ? -EINVAL
		       : 0;
}

bool import_is_alloc(const char *path)
{
	struct error err;
	struct alloc_reader *a = xcalloc(1, sizeof *a);
	*a = (struct alloc_reader){ .path = path, .err = &err, .file = gzopen(path, "rbe") };
	const bool is = a->file && !read_header(a);
	if (a->file)
		gzclose(a->file);
	free(a);
	return is;
}

static bool has(const struct alloc_reader *a, enum column c)
{
	expect(a->place[c] < a->row.n, "a column that is known is in each row");
	return a->place[c] >= 0 && *a->row.field[a->place[c]];
}

/* 0x1f, 31, and what %p makes of NULL. */
static int number(struct alloc_reader *a, enum column c, bool hex, const char *what, uint64_t *ret)
{
	const char *text = a->row.field[a->place[c]];
	char *end;
	if (!strcmp(text, "(nil)")) {
		*ret = 0;
		return 0;
	}
	const bool prefix = text[0] == '0' && (text[1] | 32) == 'x';
	errno = 0;
	const unsigned long long v = strtoull(text, &end, hex || prefix ? 16 : 10);
	if (errno || end == text || *end || !isxdigit((unsigned char)*text))
		return wrong(a, what, text);
	*ret = v;
	return 0;
}

static const char *digits(const char *p, uint64_t *ret_value)
{
	*ret_value = 0;
	for (; is_digit(*p); p++)
		*ret_value = *ret_value < UINT64_MAX / 16 ? *ret_value * 10 + (uint64_t)(*p - '0')
							  : UINT64_MAX / 16;
	return p;
}

/* Behind a point, or the last colon of older logs: parts of a second. */
static const char *fraction(const char *p, uint64_t unit_ns, uint64_t *ret_ns)
{
	*ret_ns = 0;
	for (; is_digit(*p); p++) {
		unit_ns /= 10;
		*ret_ns += unit_ns * (uint64_t)(*p - '0');
	}
	return p;
}

/* HH:MM:SS.us, HH:MM:SS:us, or a number with a point. */
static int read_time(struct alloc_reader *a, uint64_t *ret_ns)
{
	const char *text = a->row.field[a->place[COL_TIME]], *p;
	uint64_t part[3] = { 0 }, parts = 0, ns = 0;
	p = digits(text, &part[parts++]);
	while (*p == ':' && parts < 3 && is_digit(p[1]))
		p = digits(p + 1, &part[parts++]);
	if ((*p == '.' || (*p == ':' && parts == 3)) && is_digit(p[1]))
		p = fraction(p + 1, parts == 3 ? 1000000000 : a->unit_ns, &ns);
	if (*p || !is_digit(*text) || parts == 2 || part[1] > 59 || part[2] > 60)
		return wrong(a, "time", text);
	const uint64_t most =
		(uint64_t)IMPORT_TIME_MOST / (parts == 3 ? 3600000000000 : a->unit_ns);
	if (part[0] >= most)
		return wrong(a, "time", text);
	*ret_ns = ns + (parts == 3 ? part[0] * 3600000000000 + part[1] * 60000000000 +
					       part[2] * 1000000000
				   : part[0] * a->unit_ns);
	return 0;
}

/* Strictly after the event before; a time of day that falls far passed midnight. */
static int event_time(struct alloc_reader *a, uint64_t *ret_ns)
{
	uint64_t ns = (a->line - 2) * 1000;
	if (has(a, COL_TIME)) {
		const int e = read_time(a, &ns);
		if (e)
			return e;
		const bool of_day = strchr(a->row.field[a->place[COL_TIME]], ':') != NULL;
		if (of_day && ns + DAY_NS / 2 < a->clock_ns)
			a->days_ns += DAY_NS;
		a->clock_ns = ns;
		ns += a->days_ns;
	}
	expect(a->last_ns < (uint64_t)IMPORT_TIME_MOST, "there is a time after the last");
	a->last_ns = ns > a->last_ns ? ns : a->last_ns + 1;
	*ret_ns = a->last_ns;
	return a->last_ns < (uint64_t)IMPORT_TIME_MOST ? 0 : wrong(a, "time", "that");
}

static int read_action(struct alloc_reader *a, enum action *ret_action)
{
	const char *text = a->row.field[a->place[COL_ACTION]];
	for (size_t i = 0; i < sizeof action_names / sizeof action_names[0]; i++)
		if (!strcasecmp(text, action_names[i].name)) {
			*ret_action = action_names[i].action;
			return 0;
		}
	return wrong(a, "action", text);
}

static int put_call(struct alloc_reader *a, enum action act, uint64_t pointer, uint64_t bytes)
{
	struct store *s = a->s;
	uint64_t stream = 0, tid = 0, ns;
	uint32_t thread;
	int e = event_time(a, &ns);
	if (!e && has(a, COL_STREAM))
		e = number(a, COL_STREAM, false, "stream", &stream);
	if (!e && has(a, COL_THREAD))
		e = number(a, COL_THREAD, false, "thread", &tid);
	if (e)
		return e;
	const bool is_free = act == ACT_FREE || act == ACT_SEGMENT_FREE, failed = act == ACT_FAIL;
	expect(failed || a->fn[act], "an action has its function");
	thread = store_thread(s, a->process, tid, (uint32_t)tid);
	const struct store_call call = { .start_ns = ns,
		.thread = thread,
		.fn = a->fn[failed ? ACT_ALLOC : act],
		.result = failed ? NO_MEMORY : 0,
		.aux = failed };
	const uint64_t args[] = { failed ? 0 : pointer, is_free ? stream : bytes, stream };
	store_call_with(s, &call, args, is_free ? 2 : 3);
	a->st->allocator_events++;
	return 0;
}

static int read_row(struct alloc_reader *a)
{
	uint64_t pointer = 0, bytes = 0;
	enum action act = ACT_NOTHING;
	if (split(a))
		return -EINVAL;
	if (a->row.n == 1 && !*a->row.field[0])
		return 0;
	if (a->row.n != a->field_count)
		return error_set(a->err, -EINVAL,
			"%s: line %" PRIu64 " has %d fields, and the first line %d", a->path,
			a->line, a->row.n, a->field_count);
	int e = read_action(a, &act);
	if (e || act == ACT_NOTHING)
		return e;
	if (act != ACT_FAIL)
		e = number(a, COL_POINTER, a->hex, "address", &pointer);
	if (!e && (act != ACT_FREE || has(a, COL_SIZE)))
		e = number(a, COL_SIZE, false, "size", &bytes);
	return e ? e : put_call(a, act, pointer, bytes);
}

static int read_rows(struct alloc_reader *a)
{
	int e;
	while ((e = next_line(a)) == 1) {
		e = read_row(a);
		if (e == -EINVAL && !a->whole) {
			/* The writer was ended in the middle of it. */
			snprintf(a->st->partial, sizeof a->st->partial, "%.300s", a->err->text);
			a->err->text[0] = '\0';
			return 0;
		}
		if (e)
			return e;
	}
	return e;
}

static void declare(struct alloc_reader *a)
{
	static const char *const lines[ACTIONS] = {
		[ACT_ALLOC] =
			"allocator memory alloc:p=0:n=1:m=device allocate(out CUdeviceptr pointer, "
			"size_t bytes, CUstream stream)",
		[ACT_FREE] = "allocator memory free:p=0:m=device free(CUdeviceptr pointer, "
			     "CUstream stream)",
		[ACT_SEGMENT] = "allocator memory alloc:p=0:n=1:m=segment segment_alloc("
				"out CUdeviceptr pointer, size_t bytes, CUstream stream)",
		[ACT_SEGMENT_FREE] = "allocator memory free:p=0:m=segment segment_free("
				     "CUdeviceptr pointer, CUstream stream)",
	};
	for (int i = 0; i < ACTIONS; i++)
		if (lines[i])
			a->fn[i] = store_declare(a->s, lines[i]);
}

static int read_all(struct alloc_reader *a)
{
	int e = read_header(a);
	if (e)
		return error_set(a->err, e, "%s is no table of allocations", a->path);
	a->process = store_process(a->s, 0, 1);
	declare(a);
	e = read_rows(a);
	if (!e && a->place[COL_TIME] < 0)
		snprintf(a->s->message, sizeof a->s->message,
			"the imported table has no times: a row counts as a microsecond");
	return e;
}

int import_alloc(const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	struct alloc_reader *a = xcalloc(1, sizeof *a);
	*a = (struct alloc_reader){
		.path = path, .s = s, .st = st, .err = err, .most = unpack_most(st->bytes)
	};
	st->format = "table of allocations";
	err->text[0] = '\0';
	a->file = gzopen(path, "rbe");
	int e = a->file ? read_all(a) : -EIO;
	if (a->file)
		gzclose(a->file);
	free(a);
	if (e && !err->text[0])
		error_set(err, e, "%s can't be read: %s", path, strerror(-e));
	return e;
}
