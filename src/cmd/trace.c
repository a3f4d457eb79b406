/*
 * weir trace runs a program, or follows a running recording, and prints each CUDA call when it
 * returns, like strace. The injected library records, and this process follows the file. With call
 * stacks it prints at the end, when it is known where code was mapped.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/atomic.h"
#include "base/json.h"
#include "base/map.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/text.h"
#include "cmd/cli/capture_options.h"
#include "cmd/cli/child.h"
#include "cmd/cli/command.h"
#include "cmd/cli/output.h"
#include "cmd/cli/running.h"
#include "cmd/cli/scratch.h"
#include "cmd/cli/values.h"
#include "event/decode.h"
#include "event/format.h"
#include "event/level.h"
#include "event/schema.h"
#include "export/export.h"
#include "model/demangle.h"
#include "record/writer.h"
#include "stack/stacks.h"
#include "trace/clock.h"
#include "trace/tail.h"
#include "trace/trace.h"

/*
 * Which calls weir trace shows: by function (-e), kernel, time in the call and process.  A call is
 * shown when it passes all kinds that are given.
 */

/* One word of -e: calls, a class of calls, or failing calls; to show or to leave out. */
struct filter_word {
	char *word;
	bool exclude;
};

struct call_filter {
	ARRAY(struct filter_word) words;
	bool any_include;
	const struct options *options; /* the kernels and processes of the command line */
	uint64_t least_ns;
};

#define NOT_READY 600

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

static int add_word(struct call_filter *f, const struct schema *schema, const char *word)
{
	const bool exclude = *word == '!';
	word += exclude;
	if (!word_is_known(schema, word))
		return complain(EXIT_USAGE,
			"-e '%s' fits no CUDA call. Give names (cuMem*), classes (launch, memory, copy …) or error",
			word);
	*array_push(&f->words) = (struct filter_word){ .word = xstrdup(word), .exclude = exclude };
	f->any_include |= !exclude;
	return 0;
}

static int take_words(struct call_filter *f, const struct schema *schema, const struct options *o)
{
	int code = 0;
	for (int i = 0; !code && opt_nth(o, "expression", i); i++) {
		char *list = xstrdup(opt_nth(o, "expression", i)), *rest = list;
		for (char *word; !code && (word = strsep(&rest, ","));)
			code = add_word(f, schema, word);
		free(list);
	}
	return code;
}

/* From the options.  0, or an exit code after complaining; call_filter_fini() in either case. */
static int call_filter_take(
	struct call_filter *f, const struct schema *schema, const struct options *o)
{
	f->options = o;
	const int code = take_time(o, "longer", 1, UINT64_MAX, &f->least_ns);
	return code ? code : take_words(f, schema, o);
}

static void call_filter_fini(struct call_filter *f)
{
	for (size_t i = 0; i < f->words.n; i++)
		free(f->words.v[i].word);
	array_free(&f->words);
}

static bool call_filter_function(
	const struct call_filter *f, const struct schema_fn *fn, const struct record *r)
{
	bool yes = !f->any_include;
	for (size_t i = 0; i < f->words.n; i++)
		if (word_fits(f->words.v[i].word, fn, r)) {
			if (f->words.v[i].exclude)
				return false;
			yes = true;
		}
	return yes;
}

static bool name_fits(const char *pattern, const char *name)
{
	return name && (strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0)
						: strstr(name, pattern) != NULL);
}

/* A kernel's name, as the program has it and demangled; NULL: the call launches none. */
static bool call_filter_kernel(
	const struct call_filter *f, const char *mangled, const char *demangled)
{
	const char *name;
	for (int i = 0; (name = opt_nth(f->options, "kernel", i)); i++)
		if (name_fits(name, mangled) || name_fits(name, demangled))
			return true;
	return !opt_nth(f->options, "kernel", 0);
}

/* program: the path of its program, NULL: not known. */
static bool call_filter_process(const struct call_filter *f, uint32_t pid, const char *program)
{
	char number[16];
	snprintf(number, sizeof number, "%u", pid);
	const char *process;
	for (int i = 0; (process = opt_nth(f->options, "process", i)); i++)
		if (!strcmp(process, number) || (program && !strcmp(process, basename(program))))
			return true;
	return !opt_nth(f->options, "process", 0);
}

#define POLL_MS    10
#define NOT_READY  600
#define LINE_BYTES 8192

enum stamp { STAMP_SINCE_BEGIN, STAMP_TIME_OF_DAY, STAMP_SINCE_LAST };

struct kernel_name {
	char *mangled, *demangled; /* demangled: NULL unless it is looked for by name */
};

/* The counts for -c. */
struct counted {
	uint64_t calls, errors, total_ns, most_ns;
};

struct tracing {
	struct child child;
	struct scratch scratch;
	struct schema schema;
	void *schema_memory;
	struct call_filter filter;
	struct map names_by_handle; /* (pid, handle) to an index of names */
	ARRAY(struct kernel_name) names;
	struct map programs_by_pid;
	ARRAY(char *) programs;
	const struct trace_header *header; /* of the recording */
	struct clock_fit clock;
	FILE *out;
	enum stamp stamp;
	bool in_seconds, json, counts;
	bool silent;             /* names are learnt, and calls passed over */
	struct counted *counted; /* by function of the schema */
	struct stack_choice stack_choice;
	struct trace *whole; /* of the recording that has ended, with its stacks; or NULL */
	struct stacks stacks;
	uint64_t last_ns; /* when the call of the last line began */
	uint32_t pid;     /* of the record at hand */
};

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
	struct kernel_name *name = r->aux <= room - 16 ? array_push(&t->names) : NULL;
	if (!name)
		return;
	name->mangled = xstrndup((const char *)(r->arg + 2), r->aux);
	name->demangled = opt_nth(t->filter.options, "kernel", 0) ? demangle(name->mangled) : NULL;
	*index = (uint32_t)(t->names.n - 1);
}

static void learn_program(struct tracing *t, const struct record *r)
{
	size_t bytes;
	const char *text = record_text(r, 1, &bytes);
	uint32_t *index = map_get(&t->programs_by_pid, MAP_KEY(t->pid));
	*array_push(&t->programs) = xstrndup(text, bytes);
	*index = (uint32_t)(t->programs.n - 1);
}

static const char *program_of(const struct tracing *t)
{
	const uint32_t index = map_find(&t->programs_by_pid, MAP_KEY(t->pid));
	return index == MAP_NONE ? NULL : t->programs.v[index];
}

static const struct kernel_name *kernel_of(const struct tracing *t, uint64_t handle)
{
	const uint32_t index = map_find(&t->names_by_handle, MAP_KEY(t->pid, handle));
	return index == MAP_NONE ? NULL : &t->names.v[index];
}

static const char *find_name(void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes)
{
	const struct kernel_name *name = kernel_of(context, handle);
	const char *text = name ? name->mangled : NULL;
	*ret_bytes = text ? strlen(text) : 0;
	return text;
}

struct shown {
	const struct chunk_header *chunk;
	const struct record *r;
	const struct schema_fn *fn;
	uint64_t begin_ns, duration_ns; /* begin: since the recording began */
};

static bool passes_kernel(const struct tracing *t, const struct shown *s)
{
	if (!opt_nth(t->filter.options, "kernel", 0))
		return true;
	if (!s->fn->launch_layout || s->r->words < RECORD_WORDS + LAUNCH_WORDS)
		return false;
	const struct kernel_name *name = kernel_of(t, s->r->arg[LAUNCH_FUNCTION]);
	return name && call_filter_kernel(&t->filter, name->mangled, name->demangled);
}

static bool passes(const struct tracing *t, const struct shown *s)
{
	return s->duration_ns >= t->filter.least_ns &&
	       call_filter_function(&t->filter, s->fn, s->r) && passes_kernel(t, s) &&
	       call_filter_process(&t->filter, t->pid, program_of(t));
}

static bool failed(const struct shown *s)
{
	return s->r->result && s->r->result != NOT_READY && s->fn->kind != CALL_STATUS;
}

static void count(struct tracing *t, const struct shown *s)
{
	struct counted *c = &t->counted[s->fn - t->schema.fns];
	c->calls++;
	c->errors += failed(s);
	c->total_ns += s->duration_ns;
	c->most_ns = s->duration_ns > c->most_ns ? s->duration_ns : c->most_ns;
}

static void put_stamp(struct tracing *t, const struct shown *s)
{
	const uint64_t since = s->begin_ns > t->last_ns ? s->begin_ns - t->last_ns : 0;
	const uint64_t real = t->header->start.real_ns + s->begin_ns;
	const time_t seconds = (time_t)(real / 1000000000u);
	struct tm day;
	char text[16];
	t->last_ns = s->begin_ns;
	if (t->stamp != STAMP_TIME_OF_DAY) {
		fprintf(t->out, "%10.6f ",
			(double)(t->stamp == STAMP_SINCE_LAST ? since : s->begin_ns) / 1e9);
		return;
	}
	localtime_r(&seconds, &day);
	strftime(text, sizeof text, "%H:%M:%S", &day);
	fprintf(t->out, "%s.%06u ", text, (unsigned)(real % 1000000000u / 1000));
}

#define FRAMES_SHOWN 64u

static uint32_t stack_of(const struct tracing *t, const struct shown *s)
{
	for (uint32_t i = 0; t->whole && i < t->whole->processes.n; i++) {
		const uint32_t stack = t->whole->processes.v[i].pid != s->chunk->pid
					       ? STACK_NONE
					       : stacks_of_call(&t->stacks, i, s->chunk->tid,
							 s->r->ticks, s->r->fn);
		if (stack != STACK_NONE)
			return stack;
	}
	return STACK_NONE;
}

static uint32_t frames_of(const struct tracing *t, const struct shown *s,
	const struct stack_frame *ret_frames[FRAMES_SHOWN])
{
	const uint32_t stack = stack_of(t, s);
	return stack == STACK_NONE ? 0 : stacks_pick(&t->stacks, stack, ret_frames, FRAMES_SHOWN);
}

static void put_stack(struct tracing *t, const struct shown *s)
{
	const struct stack_frame *frames[FRAMES_SHOWN];
	const uint32_t n = frames_of(t, s, frames);
	char text[512];
	for (uint32_t i = 0; i < n; i++) {
		stacks_frame_text(frames[i], text, sizeof text);
		fputs("           > ", t->out);
		text_put_safe(t->out, text);
		putc('\n', t->out);
	}
}

static void json_stack(const struct tracing *t, struct json *j, const struct shown *s)
{
	const struct stack_frame *frames[FRAMES_SHOWN];
	const uint32_t n = frames_of(t, s, frames);
	stacks_put_json(j, frames, n);
}

/* Reads the stacks of what was recorded. */
static int load_stacks(struct tracing *t)
{
	struct error err;
	if (trace_open(t->scratch.path, &t->whole, &err) || stacks_load(t->whole, &t->stacks, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (t->stacks.waiting)
		remark("call stacks can't be unwound: %s", t->stacks.without);
	return 0;
}

static void put_line(struct tracing *t, const struct shown *s)
{
	const struct decoder d = { .schema = &t->schema, .kernel_name = find_name, .context = t };
	char line[LINE_BYTES];
	struct number took;
	decode_record(&d, s->r, line, sizeof line);
	put_stamp(t, s);
	fprintf(t->out, "[%u.%u] ", s->chunk->pid, s->chunk->tid);
	text_put_safe(t->out, line);
	if (t->in_seconds)
		fprintf(t->out, " <%.9f>\n", (double)s->duration_ns / 1e9);
	else
		fprintf(t->out, " <%s>\n", number_ns(&took, s->duration_ns));
	put_stack(t, s);
}

static void json_launch(const struct tracing *t, struct json *j, const struct shown *s)
{
	struct launch_shape shape;
	if (!decode_shape(s->r, &shape))
		return;
	const struct kernel_name *name = kernel_of(t, s->r->arg[LAUNCH_FUNCTION]);
	export_put_launch(j, name ? name->mangled : NULL, &shape, s->r);
}

/* As weir export -f ndjson has it. */
static void put_json(struct tracing *t, const struct shown *s)
{
	struct json j;
	json_init_line(&j, t->out);
	json_begin_object(&j, NULL);
	json_u64(&j, "begin_ns", s->begin_ns);
	json_u64(&j, "duration_ns", s->duration_ns);
	json_u64(&j, "pid", s->chunk->pid);
	json_u64(&j, "tid", s->chunk->tid);
	json_str(&j, "api", schema_api_name(s->fn));
	json_str(&j, "class", s->fn->class);
	json_str(&j, "name", s->fn->name);
	json_begin_object(&j, "args");
	if (s->fn->launch_layout)
		json_launch(t, &j, s);
	for (unsigned i = 0; !s->fn->launch_layout && i < s->fn->arg_count; i++)
		export_put_arg(&j, s->fn, i, s->r);
	if (stack_of(t, s) != STACK_NONE)
		json_stack(t, &j, s);
	json_end_object(&j);
	json_u64(&j, "result", s->r->result);
	if (s->r->result)
		json_str_or_null(&j, "error", decode_result(s->fn, s->r->result));
	json_end_document(&j);
}

static bool learn(struct tracing *t, const struct record *r)
{
	if (r->fn == META_KERNEL || r->fn == META_ALIAS)
		learn_name(t, r);
	if (r->fn == META_PROCESS)
		learn_program(t, r);
	return r->fn >= META_PROCESS;
}

static void take_call(void *context, const struct chunk_header *chunk, const struct record *r)
{
	struct tracing *t = context;
	t->pid = chunk->pid;
	if (learn(t, r) || t->silent)
		return;
	const uint64_t begin = clock_fit_ns(&t->clock, r->ticks),
		       start = clock_fit_ns(&t->clock, t->header->start.ticks);
	const struct shown s = { .chunk = chunk,
		.r = r,
		.fn = schema_find(&t->schema, r->fn),
		.begin_ns = begin > start ? begin - start : 0,
		.duration_ns = clock_fit_ns(&t->clock, record_end(r)) - begin };
	if (!s.fn || !passes(t, &s))
		return;
	if (t->counts)
		count(t, &s);
	else if (t->json)
		put_json(t, &s);
	else
		put_line(t, &s);
}

static void fit_clock(struct tracing *t)
{
	const struct trace_header *h = t->header;
	const struct clock_pair now = clock_pair_now((enum trace_clock)h->clock);
	t->clock = (struct clock_fit){ 0 };
	clock_fit_add(&t->clock, &h->start);
	clock_fit_add(&t->clock, &now);
	clock_fit_finish(&t->clock, (enum trace_clock)h->clock, &h->start);
}

/* Prints all there is. */
static void drain_lines(struct tracing *t, struct tail *tail)
{
	fit_clock(t);
	while (tail_poll(tail, take_call, t) > 0)
		;
	fflush(t->out);
}

static const struct tracing *sorted;

static int by_time(const void *one, const void *two)
{
	const struct counted *a = &sorted->counted[*(const uint32_t *)one],
			     *b = &sorted->counted[*(const uint32_t *)two];
	return ORDER(b->total_ns, a->total_ns) ?: ORDER(b->calls, a->calls);
}

static void put_counts_json(const struct tracing *t, const uint32_t *order, uint32_t n)
{
	struct json j;
	json_begin_document(&j, t->out);
	json_begin_array(&j, "calls");
	for (uint32_t i = 0; i < n; i++) {
		const struct counted *c = &t->counted[order[i]];
		json_begin_object(&j, NULL);
		json_str(&j, "name", t->schema.fns[order[i]].name);
		json_u64(&j, "count", c->calls);
		json_u64(&j, "errors", c->errors);
		json_u64(&j, "total_ns", c->total_ns);
		json_u64(&j, "max_ns", c->most_ns);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_document(&j);
}

static void put_counts_text(const struct tracing *t, const uint32_t *order, uint32_t n)
{
	struct number calls, errors, total, mean, most;
	struct table table = table_of(">calls|>errors|>total|>mean|>max|<function");
	for (uint32_t i = 0; i < n; i++) {
		const struct counted *c = &t->counted[order[i]];
		table_cell(&table, "%s", number_count(&calls, c->calls));
		table_cell(&table, "%s", c->errors ? number_count(&errors, c->errors) : "-");
		table_cell(&table, "%s", number_ns(&total, c->total_ns));
		table_cell(&table, "%s", number_ns(&mean, c->total_ns / c->calls));
		table_cell(&table, "%s", number_ns(&most, c->most_ns));
		table_cell(&table, "%s", t->schema.fns[order[i]].name);
	}
	table_print(&table, t->out);
}

static void put_counts(const struct tracing *t)
{
	uint32_t *order = xcalloc(t->schema.fn_count + 1, sizeof *order), n = 0;
	for (uint32_t i = 0; i < t->schema.fn_count; i++)
		if (t->counted[i].calls)
			order[n++] = i;
	sorted = t;
	qsort(order, n, sizeof *order, by_time);
	(t->json ? put_counts_json : put_counts_text)(t, order, n);
	free(order);
}

static void end_lines(struct tracing *t, struct tail *tail)
{
	drain_lines(t, tail);
	if (t->counts)
		put_counts(t);
	const uint64_t lost = load_relaxed(&t->header->lost);
	if (lost)
		remark("%" PRIu64 " calls are missing: there was no room for them", lost);
	tail_close(tail);
}

static int follow(struct tracing *t, int *ret_status)
{
	struct tail *tail;
	struct error err;
	t->header = t->child.header;
	if (tail_open(t->scratch.path, &tail, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (!t->stack_choice.asked)
		tail_consume(tail, t->scratch.path);
	while (!child_wait(&t->child, POLL_MS, NULL, ret_status))
		if (!t->stack_choice.asked)
			drain_lines(t, tail);
	child_finish(&t->child, *ret_status);
	if (!load_relaxed(&t->child.header->processes))
		child_say_closed(&t->child);
	const int code = t->stack_choice.asked ? load_stacks(t) : 0;
	end_lines(t, tail);
	return code;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	interrupted = signal;
}

/* From now on, until the process ends or its recording does, or we are interrupted. */
static int follow_process(struct tracing *t, const char *pid)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };
	const struct sigaction end = { .sa_handler = interrupt };
	const pid_t process = (pid_t)strtol(pid, NULL, 10);
	char path[PATH_MAX];
	struct tail *tail;
	struct error err;
	const int code = running_trace_of(pid, path, sizeof path);
	if (code)
		return code;
	if (tail_open(path, &tail, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	t->header = tail_header(tail);
	t->silent = true;
	drain_lines(t, tail);
	t->silent = false;
	remark("process %s is followed from now on, in %s", pid, path);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	while (!interrupted && !kill(process, 0) && t->header->state == TRACE_RECORDING) {
		nanosleep(&pause, NULL);
		drain_lines(t, tail);
	}
	end_lines(t, tail);
	return 0;
}

static void read_schema(struct tracing *t)
{
	schema_load(&t->schema, schema_text, schema_text_bytes, &t->schema_memory);
	t->counted = xcalloc(t->schema.fn_count + 1, sizeof *t->counted);
}

static int take_looks(struct tracing *t, const struct options *o)
{
	t->in_seconds = opt_flag(o, "seconds");
	t->json = opt_flag(o, "json");
	t->counts = opt_flag(o, "count");
	if (opt_flag(o, "time-of-day") && opt_flag(o, "relative"))
		return complain(
			EXIT_USAGE, "-t and -r both say when a call began. Give one of them");
	t->stamp = opt_flag(o, "time-of-day") ? STAMP_TIME_OF_DAY
		   : opt_flag(o, "relative")  ? STAMP_SINCE_LAST
					      : STAMP_SINCE_BEGIN;
	return 0;
}

static int check_target(const struct options *o)
{
	const char *pid = opt_str(o, "pid");
	if (!pid && !opt_argc(o))
		return complain(EXIT_USAGE,
			"no program is given. Try: weir trace -- ./program, or -p PID for one that is being recorded");
	if (pid && opt_argc(o))
		return complain(
			EXIT_USAGE, "give a program or the process of one that runs, not both");
	if (opt_str(o, "stacks") && (pid || opt_flag(o, "count")))
		return complain(EXIT_USAGE,
			"--stacks prints call stacks below the lines of a program that is started: it "
			"does not go with -p and -c");
	if (pid && (!*pid || pid[strspn(pid, "0123456789")]))
		return complain(EXIT_USAGE, "--pid=%s is no number of a process", pid);
	return 0;
}

static int prepare(struct tracing *t, const struct options *o)
{
	const char *output = opt_str(o, "output");
	int code = check_target(o);
	if (!code)
		read_schema(t);
	code = code ? code : call_filter_take(&t->filter, &t->schema, o);
	code = code ? code : take_looks(t, o);
	if (code)
		return code;
	t->out = output ? output_open(output) : stderr;
	return t->out ? 0
		      : complain(EXIT_ENVIRONMENT, "%s can't be written: %s", output,
				strerror(errno));
}

static int run(struct tracing *t, const struct options *o, int *ret_status)
{
	uint32_t control;
	t->child = (struct child){ .argv = opt_argv(o), .sim = opt_flag(o, "sim"), .audit = true };
	control_of_level("all", &control);
	int code = stack_choice_take(o, &t->stack_choice, &control);
	if (code)
		return code;
	t->child.stacks = t->stack_choice.asked ? t->stack_choice.text : NULL;
	code = scratch_make(&t->scratch, &t->child, control);
	if (code)
		return code;
	code = child_start(&t->child);
	if (!code)
		code = follow(t, ret_status);
	scratch_remove(&t->scratch);
	child_close(&t->child);
	return code;
}

static void tracing_fini(struct tracing *t)
{
	call_filter_fini(&t->filter);
	for (size_t i = 0; i < t->names.n; i++) {
		free(t->names.v[i].mangled);
		free(t->names.v[i].demangled);
	}
	for (size_t i = 0; i < t->programs.n; i++)
		free(t->programs.v[i]);
	array_free(&t->names, &t->programs);
	map_fini(&t->names_by_handle, &t->programs_by_pid);
	stacks_fini(&t->stacks);
	if (t->whole)
		trace_close(t->whole);
	free(t->counted);
	free(t->schema_memory);
	if (t->out && t->out != stderr)
		fclose(t->out);
}

int cmd_trace(const struct options *o)
{
	struct tracing t = { 0 };
	const char *pid = opt_str(o, "pid");
	int status = 0;
	int code = prepare(&t, o);
	if (!code)
		code = pid ? follow_process(&t, pid) : run(&t, o, &status);
	tracing_fini(&t);
	return code || pid ? code : child_exit(status);
}
