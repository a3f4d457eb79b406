/*
 * weir stat runs a program, perhaps several times, and counts its CUDA calls, perhaps once an
 * interval. There are no records: each thread has counters, and this process adds them up. The
 * counts go to a file, or to standard error when the program has ended.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/json.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/table.h"
#include "cmd/cli/child.h"
#include "cmd/cli/command.h"
#include "cmd/cli/output.h"
#include "cmd/cli/scratch.h"
#include "cmd/cli/values.h"
#include "event/level.h"
#include "event/schema.h"
#include "record/writer.h"
#include "trace/trace.h"

#define RUNS_MOST 100000u

/* The counts of one function, in one run or interval. */
struct value {
	uint64_t count, errors, ns, bytes;
};

/* Mean and sum of squared distances from it, run by run (Welford). */
struct spread {
	double mean, squares;
};

struct row {
	const struct schema_fn *fn;
	struct value now;    /* of this run, so far */
	struct value before; /* when the last interval ended */
	struct spread count, errors, ns, bytes;
};

struct totals {
	double calls, errors, launches, captured, allocated, copied;
};

struct stat_run {
	struct schema schema;
	void *schema_memory;
	struct row *rows;    /* by function of the schema */
	struct row **sorted; /* by time */
	uint64_t lost, runs_done, runs, interval_ns;
	struct spread wall;
	FILE *intervals; /* where they go; NULL: none are asked for */
	bool json;
	uint64_t begun_ns;
};

static void spread_add(struct spread *s, double x, uint64_t n)
{
	const double off = x - s->mean;
	s->mean += off / (double)n;
	s->squares += off * (x - s->mean);
}

static double deviation(const struct spread *s, uint64_t n)
{
	return n > 1 ? sqrt(s->squares / (double)(n - 1)) : 0;
}

static uint64_t time_ns(const struct trace *t, uint64_t ticks)
{
	return trace_ns(t, t->header.start.ticks + ticks) - trace_ns(t, t->header.start.ticks);
}

static void add_chunk(struct stat_run *s, const struct trace *t, const struct chunk_buf *buf)
{
	const struct counter *c = (const struct counter *)buf->payload;
	for (size_t id = 0; id < buf->bytes / sizeof *c; id++) {
		const struct schema_fn *fn = schema_find(&s->schema, (uint32_t)id);
		if (!fn)
			continue;
		struct value *v = &s->rows[fn - s->schema.fns].now;
		v->count += c[id].count;
		v->errors += c[id].errors;
		v->ns += time_ns(t, c[id].ticks);
		v->bytes += c[id].bytes;
	}
}

/* Reads the counts of all threads so far. */
static int read_counters(struct stat_run *s, const char *path)
{
	struct chunk_buf buf = { 0 };
	struct trace *t;
	struct error err;
	if (trace_open(path, &t, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	for (uint32_t i = 0; i < s->schema.fn_count; i++)
		s->rows[i].now = (struct value){ 0 };
	for (size_t at = 0; trace_next(t, CHUNK_COUNTERS, &at, &buf, NULL) > 0;)
		add_chunk(s, t, &buf);
	s->lost += load_relaxed(&t->header.lost);
	trace_close(t);
	return 0;
}

static void end_run(struct stat_run *s, double wall_ns)
{
	const uint64_t n = ++s->runs_done;
	spread_add(&s->wall, wall_ns, n);
	for (uint32_t i = 0; i < s->schema.fn_count; i++) {
		struct row *row = &s->rows[i];
		spread_add(&row->count, (double)row->now.count, n);
		spread_add(&row->errors, (double)row->now.errors, n);
		spread_add(&row->ns, (double)row->now.ns, n);
		spread_add(&row->bytes, (double)row->now.bytes, n);
		row->now = row->before = (struct value){ 0 };
	}
}

static bool launches(const struct schema_fn *fn)
{
	return fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH;
}

static bool is_shown(const struct row *row)
{
	return row->count.mean > 0;
}

static struct totals add_up(const struct stat_run *s)
{
	struct totals sum = { 0 };
	for (uint32_t i = 0; i < s->schema.fn_count; i++) {
		const struct row *row = &s->rows[i];
		const struct schema_fn *fn = row->fn;
		sum.calls += row->count.mean;
		sum.errors += fn->kind == CALL_STATUS ? 0 : row->errors.mean;
		if (fn->api != API_DRIVER)
			continue;
		const double not_run = row->errors.mean + row->bytes.mean; /* failed, captured */
		sum.captured += launches(fn) ? row->bytes.mean : 0;
		sum.launches += launches(fn) ? row->count.mean - not_run : 0;
		sum.allocated += fn->kind == CALL_ALLOC ? row->bytes.mean : 0;
		sum.copied += fn->kind == CALL_COPY ? row->bytes.mean : 0;
	}
	return sum;
}

ORDERING(by_time, struct row *const, ORDER((*b)->ns.mean, (*a)->ns.mean),
	ORDER((*b)->count.mean, (*a)->count.mean), ORDER((*a)->fn->id, (*b)->fn->id))

static void sort_rows(struct stat_run *s)
{
	for (uint32_t i = 0; i < s->schema.fn_count; i++)
		s->sorted[i] = &s->rows[i];
	qsort(s->sorted, s->schema.fn_count, sizeof *s->sorted, by_time);
}

static uint64_t whole(double x)
{
	return (uint64_t)(x + 0.5);
}

static void json_row(struct json *j, const struct stat_run *s, const struct row *row)
{
	json_begin_object(j, NULL);
	json_str(j, "name", row->fn->name);
	json_u64(j, "count", whole(row->count.mean));
	json_u64(j, "errors", whole(row->errors.mean));
	json_u64(j, "total_ns", whole(row->ns.mean));
	json_u64(j, "bytes", launches(row->fn) ? 0 : whole(row->bytes.mean));
	if (s->runs > 1) {
		json_put_real(j, "count_deviation", deviation(&row->count, s->runs_done));
		json_put_real(j, "total_ns_deviation", deviation(&row->ns, s->runs_done));
	}
	json_end_object(j);
}

static void json_totals(struct json *j, const struct stat_run *s)
{
	const struct totals sum = add_up(s);
	json_begin_object(j, "totals");
	json_u64(j, "calls", whole(sum.calls));
	json_u64(j, "launches", whole(sum.launches));
	json_u64(j, "errors", whole(sum.errors));
	json_u64(j, "lost", s->lost);
	json_u64(j, "alloc_bytes", whole(sum.allocated));
	json_u64(j, "copy_bytes", whole(sum.copied));
	json_u64(j, "wall_ns", whole(s->wall.mean));
	if (s->runs > 1) {
		json_u64(j, "runs", s->runs_done);
		json_put_real(j, "wall_ns_deviation", deviation(&s->wall, s->runs_done));
	}
	json_end_object(j);
}

static int print_json(void *context, FILE *out)
{
	const struct stat_run *s = context;
	struct json j;
	(s->interval_ns ? json_init_line : json_init)(&j, out); /* as the intervals before it */
	json_begin_object(&j, NULL);
	json_u64(&j, "schema_version", JSON_SCHEMA_VERSION);
	json_totals(&j, s);
	json_begin_array(&j, "calls");
	for (uint32_t i = 0; i < s->schema.fn_count && is_shown(s->sorted[i]); i++)
		json_row(&j, s, s->sorted[i]);
	json_end_array(&j);
	json_end_document(&j);
	return 0;
}

/* How far one of several runs is from the mean. */
static void cell_deviation(struct table *t, const struct stat_run *s, const struct spread *of)
{
	if (s->runs > 1 && of->mean > 0)
		table_cell(t, "± %.1f %%", 100 * deviation(of, s->runs_done) / of->mean);
	else if (s->runs > 1)
		table_none(t);
}

static void put_row(struct table *t, const struct stat_run *s, const struct row *row)
{
	struct number n;
	const bool sized = row->bytes.mean > 0 && !launches(row->fn);
	table_cell(t, "%s", number_count(&n, whole(row->count.mean)));
	cell_deviation(t, s, &row->count);
	table_cell(t, "%s", row->errors.mean > 0 ? number_count(&n, whole(row->errors.mean)) : "-");
	table_cell(t, "%s", number_ns(&n, whole(row->ns.mean)));
	cell_deviation(t, s, &row->ns);
	table_cell(t, "%s", sized ? number_bytes(&n, whole(row->bytes.mean)) : "-");
	table_cell(t, "%s", row->fn->name);
}

static void put_summary(const struct stat_run *s, FILE *out)
{
	const struct totals sum = add_up(s);
	struct number a, b, c, d;
	fprintf(out, "\n  %s, %s", number_of(&a, whole(sum.calls), "call"),
		number_of(&b, whole(sum.launches), "launch"));
	if (whole(sum.captured))
		fprintf(out, " (%s more were captured into graphs)",
			number_count(&a, whole(sum.captured)));
	fprintf(out, ", %s failing; %s allocated, ", number_count(&c, whole(sum.errors)),
		number_bytes(&d, whole(sum.allocated)));
	fprintf(out, "%s copied\n", number_bytes(&d, whole(sum.copied)));
	if (s->runs > 1)
		fprintf(out,
			"  wall time %s ± %.1f %%; means of %s runs, ± their standard deviation\n",
			number_ns(&a, whole(s->wall.mean)),
			s->wall.mean > 0 ? 100 * deviation(&s->wall, s->runs_done) / s->wall.mean
					 : 0,
			number_count(&b, s->runs_done));
}

static int print_text(void *context, FILE *out)
{
	const struct stat_run *s = context;
	struct table table = table_of(s->runs > 1 ? ">calls|>|>errors|>total|>|>bytes|<function"
						  : ">calls|>errors|>total|>bytes|<function");
	for (uint32_t i = 0; i < s->schema.fn_count && is_shown(s->sorted[i]); i++)
		put_row(&table, s, s->sorted[i]);
	fprintf(out, "\n");
	if (is_shown(s->sorted[0]))
		table_print(&table, out);
	table_fini(&table);
	put_summary(s, out);
	return 0;
}

/* The program's run can't be counted again: where the file can't be written, standard error has it.
 */
static int put_counts(struct stat_run *s, const struct options *o)
{
	int (*const put)(void *, FILE *) = s->json ? print_json : print_text;
	const char *path = output_path(o);
	sort_rows(s);
	if (s->intervals)
		return put(s, s->intervals);
	const int e = path ? output_write(path, put, s) : put(s, stderr);
	if (!e || !path)
		return 0;
	put(s, stderr);
	return complain(EXIT_ENVIRONMENT, "%s can't be written: %s. The counts are above", path,
		strerror(-e));
}

static struct value since(const struct value *now, const struct value *before)
{
	return (struct value){ now->count - before->count, now->errors - before->errors,
		now->ns > before->ns ? now->ns - before->ns : 0, now->bytes - before->bytes };
}

static void interval_json(struct stat_run *s, uint64_t at_ns)
{
	struct json j;
	json_init_line(&j, s->intervals);
	json_begin_object(&j, NULL);
	json_u64(&j, "at_ns", at_ns);
	json_begin_array(&j, "calls");
	for (uint32_t i = 0; i < s->schema.fn_count; i++) {
		const struct row *row = &s->rows[i];
		const struct value v = since(&row->now, &row->before);
		if (!v.count)
			continue;
		json_begin_object(&j, NULL);
		json_str(&j, "name", row->fn->name);
		json_u64(&j, "count", v.count);
		json_u64(&j, "errors", v.errors);
		json_u64(&j, "total_ns", v.ns);
		json_u64(&j, "bytes", launches(row->fn) ? 0 : v.bytes);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_document(&j);
}

static void interval_text(struct stat_run *s, uint64_t at_ns)
{
	struct number count, ns;
	for (uint32_t i = 0; i < s->schema.fn_count; i++) {
		const struct row *row = &s->rows[i];
		const struct value v = since(&row->now, &row->before);
		if (v.count)
			fprintf(s->intervals, "%12.6f %9s calls %9s  %s\n", (double)at_ns / 1e9,
				number_count(&count, v.count), number_ns(&ns, v.ns), row->fn->name);
	}
}

/* Ends an interval: counts since the last one. */
static void end_interval(struct stat_run *s, const struct child *c, const char *path)
{
	const struct clock_pair now = clock_pair_now((enum trace_clock)c->header->clock);
	const uint64_t lost = s->lost;
	c->header->end = now; /* so that ticks are known as nanoseconds */
	if (read_counters(s, path))
		return;
	s->lost = lost;
	(s->json ? interval_json : interval_text)(s, now.mono_ns - s->begun_ns);
	fflush(s->intervals);
	for (uint32_t i = 0; i < s->schema.fn_count; i++)
		s->rows[i].before = s->rows[i].now;
}

static void wait_for(struct stat_run *s, struct child *c, const char *path, int *ret_status)
{
	const uint64_t each_ms = s->interval_ns / 1000000;
	while (!child_wait(c, s->interval_ns ? (int)each_ms : -1, NULL, ret_status))
		end_interval(s, c, path);
}

static int run_once(struct stat_run *s, const struct options *o, int *ret_status)
{
	struct scratch scratch;
	uint32_t control;
	struct child c = { .argv = opt_argv(o), .sim = opt_flag(o, "sim"), .audit = true };
	control_of_level("stat", &control);
	int code = scratch_make(&scratch, &c, control);
	if (code)
		return code;
	const uint64_t begun = clock_pair_now(CLOCK_IS_MONOTONIC).mono_ns;
	s->begun_ns = begun;
	code = child_start(&c);
	if (!code) {
		wait_for(s, &c, scratch.path, ret_status);
		if (s->interval_ns)
			end_interval(s, &c, scratch.path);
		child_finish(&c, *ret_status);
		code = read_counters(s, scratch.path);
		end_run(s, (double)(c.header->end.mono_ns - begun));
		if (!load_relaxed(&c.header->processes))
			child_say_closed(&c);
	}
	scratch_remove(&scratch);
	child_close(&c);
	return code;
}

static bool was_interrupted(int status)
{
	const int signal = status & 0x7f;
	return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
}

static int run_all(struct stat_run *s, const struct options *o, int *ret_status)
{
	int code = 0;
	while (!code && s->runs_done < s->runs && !was_interrupted(*ret_status))
		code = run_once(s, o, ret_status);
	return code || !s->runs_done ? code : put_counts(s, o);
}

static int take_options(struct stat_run *s, const struct options *o)
{
	if (!opt_argc(o))
		return complain(EXIT_USAGE, "no program is given. Try: weir stat -- ./program");
	s->json = opt_flag(o, "json");
	const int code = take_number(o, "repeat", 1, RUNS_MOST, &s->runs);
	return code ? code : take_time(o, "interval", 1000000, 1000000000000, &s->interval_ns);
}

/* They are written as they end. */
static int open_intervals(struct stat_run *s, const struct options *o)
{
	const char *path = output_path(o);
	if (!s->interval_ns)
		return 0;
	s->intervals = path ? output_open(path) : stderr;
	return s->intervals ? 0
			    : complain(EXIT_ENVIRONMENT, "%s can't be written: %s", path,
				      strerror(errno));
}

static void prepare(struct stat_run *s)
{
	schema_load(&s->schema, schema_text, schema_text_bytes, &s->schema_memory);
	s->rows = xcalloc(s->schema.fn_count + 1, sizeof *s->rows);
	s->sorted = xcalloc(s->schema.fn_count + 1, sizeof *s->sorted);
	for (uint32_t i = 0; i < s->schema.fn_count; i++)
		s->rows[i].fn = &s->schema.fns[i];
}

int cmd_stat(const struct options *o)
{
	struct stat_run s = { 0 };
	int status = 0;
	int code = take_options(&s, o);
	if (!code)
		prepare(&s);
	code = code ? code : open_intervals(&s, o);
	code = code ? code : run_all(&s, o, &status);
	if (s.intervals && s.intervals != stderr && fclose(s.intervals) && !code)
		code = complain(EXIT_ENVIRONMENT, "%s can't be written", output_path(o));
	free_all(s.rows, s.sorted, s.schema_memory);
	return code ? code : child_exit(status);
}
