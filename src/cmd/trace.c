/*
 * weir trace: runs a program and prints each CUDA call as a line when it returns, like strace.
 * The hook records as ever; this process follows the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/map.h"
#include "base/number.h"
#include "base/text.h"
#include "cmd/cli/command.h"
#include "event/decode.h"
#include "event/level.h"
#include "event/schema_text.h"
#include "record/writer.h"
#include "cmd/cli/child.h"
#include "cmd/cli/scratch.h"
#include "trace/clock.h"
#include "trace/tail.h"
#include "trace/trace.h"

#include "base/banned.h"

#define POLL_MS    10
#define NOT_READY  600
#define LINE_BYTES 8192

/* One word of -e: calls, a class of calls, or failing calls; to show or to leave out. */
struct filter {
	char *word;
	bool exclude;
};

struct tracing {
	struct child child;
	struct scratch scratch;
	struct schema schema;
	void *schema_memory;
	ARRAY(struct filter) filters;
	bool any_include;
	struct map names_by_handle; /* (pid, handle) to an index of names */
	ARRAY(char *) names;
	struct clock_fit clock;
	FILE *out;
	uint32_t pid; /* of the record at hand */
};

/* ---- filters ---- */

static bool word_fits(const char *word, const struct schema_fn *fn, const struct record *r)
{
	if (!strcmp(word, "error"))
		return r && r->result && r->result != NOT_READY && fn->kind != CALL_STATUS;
	return !strcmp(word, fn->class) || !fnmatch(word, fn->name, 0);
}

static bool word_is_known(const struct schema *s, const char *word)
{
	if (!strcmp(word, "error"))
		return true;
	for (uint32_t i = 0; i < s->fn_count; i++)
		if (word_fits(word, &s->fns[i], NULL))
			return true;
	return false;
}

static bool shown(const struct tracing *t, const struct schema_fn *fn, const struct record *r)
{
	bool yes = !t->any_include;
	for (size_t i = 0; i < t->filters.n; i++)
		if (word_fits(t->filters.v[i].word, fn, r)) {
			if (t->filters.v[i].exclude)
				return false;
			yes = true;
		}
	return yes;
}

static int add_filter(struct tracing *t, const char *word)
{
	const bool exclude = *word == '!';
	word += exclude;
	if (!word_is_known(&t->schema, word))
		return complain(EXIT_USAGE,
			"-e '%s' fits no CUDA call; give names (cuMem*), classes (launch, memory, copy …) or error",
			word);
	struct filter *f = array_push(&t->filters);
	char *copy = strdup(word);
	if (!f || !copy)
		return complain(EXIT_ENVIRONMENT, "no memory");
	*f = (struct filter){ .word = copy, .exclude = exclude };
	t->any_include |= !exclude;
	return 0;
}

static int add_filters(struct tracing *t, const struct options *o)
{
	int code = 0;
	for (int i = 0; !code && opt_nth(o, "expression", i); i++) {
		char *list = strdup(opt_nth(o, "expression", i)), *rest = list;
		for (char *word; !code && (word = strsep(&rest, ","));)
			code = add_filter(t, word);
		free(list);
	}
	return code;
}

/* ---- names ---- */

static void learn_name(struct tracing *t, const struct record *r)
{
	const uint64_t room = (uint64_t)(r->words - RECORD_WORDS) * 8;
	uint32_t *index =
		room >= 16 ? map_get(&t->names_by_handle, MAP_KEY(t->pid, r->arg[0])) : NULL;
	if (!index)
		return;
	if (r->fn == META_ALIAS) {
		const uint32_t name = map_find(&t->names_by_handle, MAP_KEY(t->pid, r->arg[1]));
		*index = name;
		return;
	}
	char **name = r->aux <= room - 16 ? array_push(&t->names) : NULL;
	if (!name)
		return;
	*name = strndup((const char *)(r->arg + 2), r->aux);
	*index = (uint32_t)(t->names.n - 1);
}

static const char *find_name(void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes)
{
	struct tracing *t = context;
	const uint32_t index = map_find(&t->names_by_handle, MAP_KEY(t->pid, handle));
	const char *name = index != MAP_NONE ? t->names.v[index] : NULL;
	*ret_bytes = name ? strlen(name) : 0;
	return name;
}

/* ---- lines ---- */

/* Since the recording began. */
static double begin_s(const struct tracing *t, const struct record *r)
{
	const uint64_t begin = clock_fit_ns(&t->clock, r->ticks),
		       start = clock_fit_ns(&t->clock, t->child.header->start.ticks);
	return begin > start ? (double)(begin - start) / 1e9 : 0;
}

static uint64_t duration_ns(const struct tracing *t, const struct record *r)
{
	return clock_fit_ns(&t->clock, record_end(r)) - clock_fit_ns(&t->clock, r->ticks);
}

static void print_call(void *context, const struct chunk_header *chunk, const struct record *r)
{
	struct tracing *t = context;
	char line[LINE_BYTES];
	struct number took;
	t->pid = chunk->pid;
	if (r->fn == META_KERNEL || r->fn == META_ALIAS)
		learn_name(t, r);
	const struct schema_fn *fn = schema_find(&t->schema, r->fn);
	if (!fn || !shown(t, fn, r))
		return;
	const struct decoder d = {
		.schema = &t->schema,
		.enums = enum_names,
		.enum_count = enum_names_count,
		.kernel_name = find_name,
		.context = t,
	};
	decode_record(&d, r, line, sizeof line);
	fprintf(t->out, "%10.6f [%u.%u] ", begin_s(t, r), chunk->pid, chunk->tid);
	text_put_safe(t->out, line);
	fprintf(t->out, " <%s>\n", number_ns(&took, duration_ns(t, r)));
}

static void fit_clock(struct tracing *t)
{
	const struct trace_header *h = t->child.header;
	const struct clock_pair now = clock_pair_now((enum trace_clock)h->clock);
	t->clock = (struct clock_fit){ 0 };
	clock_fit_add(&t->clock, &h->start);
	clock_fit_add(&t->clock, &now);
	clock_fit_finish(&t->clock, (enum trace_clock)h->clock, &h->start);
}

/* Prints all there is; returns whether there was anything. */
static bool drain_lines(struct tracing *t, struct tail *tail)
{
	bool any = false;
	fit_clock(t);
	while (tail_poll(tail, print_call, t) > 0)
		any = true;
	fflush(t->out);
	return any;
}

static int follow(struct tracing *t, int *ret_status)
{
	struct tail *tail;
	struct error err;
	if (tail_open(t->scratch.path, &tail, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	tail_consume(tail, t->scratch.path);
	while (!child_wait(&t->child, POLL_MS, NULL, ret_status))
		drain_lines(t, tail);
	child_finish(&t->child, *ret_status);
	drain_lines(t, tail);
	if (!t->child.header->processes)
		child_say_static(&t->child);
	const uint64_t lost = t->child.header->lost;
	if (lost)
		fprintf(t->out, "weir: %llu calls are missing: there was no room for them\n",
			(unsigned long long)lost);
	tail_close(tail);
	return 0;
}

/* ---- the command ---- */

static int read_schema(struct tracing *t)
{
	const size_t need = schema_need(schema_text, schema_text_bytes);
	t->schema_memory = malloc(need);
	struct arena arena = { .base = t->schema_memory, .size = need };
	if (!t->schema_memory || schema_parse(&t->schema, &arena, schema_text, schema_text_bytes))
		return complain(EXIT_ENVIRONMENT, "no memory");
	return 0;
}

/* For its owner alone, and no link to a file of somebody else's; a pipe or a device may be one. */
static FILE *open_output(const char *path)
{
	struct stat st;
	const bool special = !stat(path, &st) && !S_ISREG(st.st_mode);
	const int fd = open(
		path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (special ? 0 : O_NOFOLLOW), 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static int prepare(struct tracing *t, const struct options *o)
{
	const char *output = opt_str(o, "output");
	uint32_t control;
	if (!opt_argc(o))
		return complain(EXIT_USAGE, "no program is given; try: weir trace -- ./program");
	int code = read_schema(t);
	if (!code)
		code = add_filters(t, o);
	if (code)
		return code;
	t->out = output ? open_output(output) : stderr;
	if (!t->out)
		return complain(
			EXIT_ENVIRONMENT, "%s can't be written: %s", output, strerror(errno));
	t->child = (struct child){ .argv = opt_argv(o), .sim = opt_flag(o, "sim"), .audit = true };
	control_of_level("all", &control);
	return scratch_make(&t->scratch, &t->child, control);
}

static void tracing_fini(struct tracing *t)
{
	for (size_t i = 0; i < t->filters.n; i++)
		free(t->filters.v[i].word);
	for (size_t i = 0; i < t->names.n; i++)
		free(t->names.v[i]);
	array_free(&t->filters);
	array_free(&t->names);
	map_fini(&t->names_by_handle);
	free(t->schema_memory);
	if (t->out && t->out != stderr)
		fclose(t->out);
}

int cmd_trace(const struct options *o)
{
	struct tracing t = { 0 };
	int status = 0;
	int code = prepare(&t, o);
	if (!code) {
		code = child_start(&t.child);
		if (!code)
			code = follow(&t, &status);
		scratch_remove(&t.scratch);
		child_close(&t.child);
	}
	tracing_fini(&t);
	return code ? code : child_exit(status);
}
