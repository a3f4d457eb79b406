/*
 * weir stat: runs a program and counts its CUDA calls.  No record is kept: each thread adds to
 * counters of its own, which this process sums up at the end.
 *
 * The program has standard output for itself.  The counts go to a file, or to standard error
 * when it has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "event/level.h"
#include "cmd/cli/child.h"
#include "cmd/cli/output.h"
#include "cmd/cli/scratch.h"
#include "trace/trace.h"

#include "base/banned.h"

struct row {
	const struct schema_fn *fn;
	struct counter sum;
};

struct totals {
	uint64_t calls, errors, launches, allocated, copied, lost;
};

struct counts {
	const struct trace *trace;
	const struct row *rows; /* by time; the first without calls ends them */
	size_t n;
	struct totals sum;
};

static void add_chunk(const struct trace *t, const struct chunk_buf *buf, struct row *rows)
{
	const struct counter *c = (const struct counter *)buf->payload;
	for (size_t id = 0; id < buf->bytes / sizeof *c; id++) {
		const struct schema_fn *fn = schema_find(&t->schema, (uint32_t)id);
		if (!fn)
			continue;
		struct row *row = &rows[fn - t->schema.fns];
		row->fn = fn;
		row->sum.count += c[id].count;
		row->sum.errors += c[id].errors;
		row->sum.ticks += c[id].ticks;
		row->sum.bytes += c[id].bytes;
	}
}

static int by_ticks(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->sum.ticks != y->sum.ticks)
		return x->sum.ticks > y->sum.ticks ? -1 : 1;
	return x->sum.count > y->sum.count ? -1 : x->sum.count < y->sum.count;
}

static bool launches(const struct schema_fn *fn)
{
	return fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH;
}

static struct totals add_up(const struct row *rows, size_t n)
{
	struct totals sum = { 0 };
	for (size_t i = 0; i < n && rows[i].sum.count; i++) {
		const struct schema_fn *fn = rows[i].fn;
		sum.calls += rows[i].sum.count;
		sum.errors += fn->kind == CALL_STATUS ? 0 : rows[i].sum.errors;
		if (fn->api != API_DRIVER)
			continue;
		const uint64_t not_run =
			rows[i].sum.errors + rows[i].sum.bytes; /* failed, captured */
		sum.launches += launches(fn) ? rows[i].sum.count - not_run : 0;
		sum.allocated += fn->kind == CALL_ALLOC ? rows[i].sum.bytes : 0;
		sum.copied += fn->kind == CALL_COPY ? rows[i].sum.bytes : 0;
	}
	return sum;
}

static uint64_t time_ns(const struct trace *t, uint64_t ticks)
{
	return trace_ns(t, t->header.start.ticks + ticks) - trace_ns(t, t->header.start.ticks);
}

static int print_json(void *context, FILE *out)
{
	const struct counts *c = context;
	const struct totals *sum = &c->sum;
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_begin_object(&j, "totals");
	json_u64(&j, "calls", sum->calls);
	json_u64(&j, "launches", sum->launches);
	json_u64(&j, "errors", sum->errors);
	json_u64(&j, "lost", sum->lost);
	json_u64(&j, "alloc_bytes", sum->allocated);
	json_u64(&j, "copy_bytes", sum->copied);
	json_end_object(&j);
	json_begin_array(&j, "calls");
	for (size_t i = 0; i < c->n && c->rows[i].sum.count; i++) {
		const struct row *row = &c->rows[i];
		json_begin_object(&j, NULL);
		json_str(&j, "name", row->fn->name);
		json_u64(&j, "count", row->sum.count);
		json_u64(&j, "errors", row->sum.errors);
		json_u64(&j, "total_ns", time_ns(c->trace, row->sum.ticks));
		json_u64(&j, "bytes", launches(row->fn) ? 0 : row->sum.bytes);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	putc('\n', out);
	return 0;
}

static int print_text(void *context, FILE *out)
{
	static const char *const headings[] = { "calls", "errors", "total", "bytes", "function" };
	const struct counts *counts = context;
	const struct totals *sum = &counts->sum;
	struct number a, b, c, d;
	struct table table;
	table_init(&table, ">>>><", headings);
	for (size_t i = 0; i < counts->n && counts->rows[i].sum.count; i++) {
		const struct row *row = &counts->rows[i];
		const struct counter *s = &row->sum;
		table_cell(&table, "%s", number_count(&a, s->count));
		table_cell(&table, "%s", s->errors ? number_count(&b, s->errors) : "-");
		table_cell(&table, "%s", number_ns(&c, time_ns(counts->trace, s->ticks)));
		const bool sized = s->bytes && !launches(row->fn);
		table_cell(&table, "%s", sized ? number_bytes(&d, s->bytes) : "-");
		table_cell(&table, "%s", row->fn->name);
	}
	fprintf(out, "\n");
	if (sum->calls)
		table_print(&table, out, "", "");
	fprintf(out, "\n  %s calls, %s launches, %s failing; %s allocated, ",
		number_count(&a, sum->calls), number_count(&b, sum->launches),
		number_count(&c, sum->errors), number_bytes(&d, sum->allocated));
	fprintf(out, "%s copied\n", number_bytes(&d, sum->copied));
	table_fini(&table);
	return 0;
}

/* What the program did can't be counted again: where the file can't be written, standard error
 * has it. */
static int put_counts(struct counts *c, const struct options *o)
{
	int (*const put)(void *, FILE *) = opt_flag(o, "json") ? print_json : print_text;
	const char *path = output_path(o);
	const int e = path ? output_write(path, put, c) : put(c, stderr);
	if (!e || !path)
		return 0;
	put(c, stderr);
	return complain(EXIT_ENVIRONMENT, "%s can't be written: %s; so the counts are above", path,
		strerror(-e));
}

static int sum_up(const struct trace *t, const struct options *o)
{
	struct chunk_buf buf = { 0 };
	struct counts counts = { .trace = t, .n = t->schema.fn_count };
	struct row *rows = calloc(counts.n + 1, sizeof *rows);
	if (!rows)
		return complain(EXIT_ENVIRONMENT, "no memory");
	for (size_t at = 0; trace_next(t, CHUNK_COUNTERS, &at, &buf, NULL) > 0;)
		add_chunk(t, &buf, rows);
	qsort(rows, counts.n, sizeof *rows, by_ticks);
	counts.rows = rows;
	counts.sum = add_up(rows, counts.n);
	counts.sum.lost = t->header.lost;
	const int code = put_counts(&counts, o);
	chunk_buf_fini(&buf);
	free(rows);
	return code;
}

static int read_counters(const char *path, const struct options *o)
{
	struct trace *t;
	struct error err;
	if (trace_open(path, &t, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	const int code = sum_up(t, o);
	trace_close(t);
	return code;
}

int cmd_stat(const struct options *o)
{
	struct scratch scratch;
	uint32_t control;
	int status = 0;
	if (!opt_argc(o))
		return complain(EXIT_USAGE, "no program is given; try: weir stat -- ./program");
	struct child l = { .argv = opt_argv(o), .sim = opt_flag(o, "sim"), .audit = true };
	control_of_level("stat", &control);
	int code = scratch_make(&scratch, &l, control);
	if (code)
		return code;
	code = child_start(&l);
	if (!code) {
		child_wait(&l, -1, NULL, &status);
		child_finish(&l, status);
		code = read_counters(scratch.path, o);
		if (!l.header->processes)
			child_say_static(&l);
	}
	scratch_remove(&scratch);
	child_close(&l);
	return code ? code : child_exit(status);
}
