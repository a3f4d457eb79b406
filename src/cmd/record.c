/*
 * weir record runs a program under the injected library and leaves one packed trace. The library
 * writes the raw trace under that same name, so a trace exists whatever happens.
 */
#include "cmd/record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/shared_library.h"
#include "base/number.h"
#include "base/progress.h"
#include "cmd/cli/capture_options.h"
#include "cmd/cli/child.h"
#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/predict_options.h"
#include "cmd/cli/values.h"
#include "event/format.h"
#include "event/level.h"
#include "nvml/sampler.h"
#include "reconstruct/rewrite.h"
#include "record/control.h"
#include "stack/stacks.h"
#include "trace/activity.h"
#include "trace/drain.h"
#include "trace/pack.h"
#include "trace/part.h"
#include "trace/trace.h"

struct gpu_sampling {
	struct nvml *nvml; /* NULL: nothing is asked for */
	uint64_t interval_ns;
	struct sampler *sampler;
};

#define INTERVAL_DEFAULT  100000000u
#define INTERVAL_SHORTEST 1000000u

/* NVML, the driver's or the simulated one; 0, or an exit code after complaining. */
static int gpu_sampling_open(bool sim, struct nvml **ret_n)
{
	char path[PATH_MAX];
	struct error err;
	if (sim && library_path("sim/libnvidia-ml.so.1", path, sizeof path))
		return complain(EXIT_ENVIRONMENT,
			"the simulated driver is not in ../lib/weir/sim. Install Weir again");
	if (nvml_open(sim ? path : NULL, ret_n, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	return 0;
}

/* Prepares the sampling that the option asks for.  0, or an exit code after complaining. */
static int gpu_sampling_prepare(struct gpu_sampling *g, const struct options *o)
{
	const char *interval = opt_str(o, "nvml");
	if (!interval)
		return 0;
	g->interval_ns = INTERVAL_DEFAULT;
	const int code =
		*interval ? take_time(o, "nvml", INTERVAL_SHORTEST, UINT64_MAX, &g->interval_ns)
			  : 0;
	return code ? code : gpu_sampling_open(opt_flag(o, "sim"), &g->nvml);
}

/* Begins, once the program has begun to write to its trace at `path`; says what goes wrong. */
static void gpu_sampling_start(struct gpu_sampling *g, const struct child *c, const char *path)
{
	struct recorder to = { .header = c->header,
		.pid = (uint32_t)getpid(),
		.process_start = process_start_of(0),
		.device = c->device,
		.inode = c->inode };
	if (!g->nvml || snprintf(to.path, sizeof to.path, "%s", path) >= (int)sizeof to.path)
		return;
	const int e = sampler_start(g->nvml, &to, g->interval_ns, &g->sampler);
	if (e)
		remark("the state of the GPUs is not recorded: %s", strerror(-e));
}

/* Ends the samples, then NVML.  Also of one that was not prepared. */
static void gpu_sampling_done(const struct gpu_sampling *g)
{
	sampler_stop(g->sampler);
	nvml_close(g->nvml);
}

#define FLIGHT_SMALLEST (1u << 20)
#define FLIGHT_POLL_MS  20
#define DRAIN_BUSY_MS   2
#define DRAIN_IDLE_MS   20
#define SIZE_SMALLEST   (8u << 20)
#define FREE_LEAST      (64u << 20)
#define FLIGHT_DUMPS    16 /* for failing calls; then only the end is kept */

struct recording {
	struct predict_options predict;
	struct capture_options part;
	struct gpu_sampling gpus;
	struct stack_choice stacks;
	struct child child;
	char output[PATH_MAX];
	char raw[PATH_MAX]; /* where the hook writes: output, or beside it when it flies */
	uint64_t flight_bytes;
	uint64_t most_bytes; /* of the raw trace; 0: no limit */
	uint64_t least_free; /* on its disk */
	uint32_t failures_seen;
	int dumps;
	bool is_whole; /* nobody has cut the raw trace off: it has been drained to the end */
	const struct record_beside *beside; /* NULL: nothing */
};

struct totals {
	uint64_t calls, launches, lost;
	uint64_t requests; /* to a server of models */
	uint64_t bytes;    /* of the file */
	bool shut_in;      /* a process had a filter of system calls */
	bool part_alone;   /* of the run was to be recorded, and it came to CUDA */
	size_t parts;      /* that began; without calls alone */
};

static void add_chunk(const struct trace *t, const struct chunk_buf *buf, struct totals *sum)
{
	struct records it = records_of(buf);
	for (const struct record *r; (r = records_next(&it));) {
		const struct schema_fn *fn = schema_find(&t->schema, r->fn);
		sum->calls++;
		sum->launches += fn && !r->result && !(r->flags & RECORD_CAPTURED) &&
				 (fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH);
	}
}

static void add_counters(const struct chunk_buf *buf, struct totals *sum)
{
	const struct counter *c = (const struct counter *)buf->payload;
	for (size_t i = 0; i < buf->bytes / sizeof *c; i++)
		sum->calls += c[i].count;
}

static void add_requests(const struct chunk_buf *buf, struct totals *sum)
{
	struct served_request q;
	for (size_t at = 0; request_next(buf, &at, &q);)
		sum->requests++;
}

/* Sums for the closing line, read from the file that was kept. */
static int sum_up(const char *path, struct totals *sum)
{
	struct trace *t;
	struct chunk_buf buf = { 0 };
	struct error err;
	const int done = trace_open(path, &t, &err);
	if (done)
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	const uint64_t optional = load_relaxed(&t->header.optional);
	*sum = (struct totals){ .lost = load_relaxed(&t->header.lost),
		.bytes = t->size,
		.shut_in = optional & FEATURE_SANDBOXED,
		.part_alone = optional & FEATURE_CAPTURE };
	for (size_t i = 0; i < t->chunk_count; i++) {
		const uint16_t kind = t->chunks[i].head.kind;
		const bool counts =
			kind == CHUNK_EVENTS || kind == CHUNK_COUNTERS || kind == CHUNK_REQUESTS;
		if (!counts || trace_load(t, i, &buf, &err))
			continue;
		if (kind == CHUNK_EVENTS)
			add_chunk(t, &buf, sum);
		else if (kind == CHUNK_COUNTERS)
			add_counters(&buf, sum);
		else
			add_requests(&buf, sum);
	}
	chunk_buf_fini(&buf);
	if (sum->part_alone && !sum->calls && !trace_cut(t, &(struct trace_cut){ 0 }, &err))
		sum->parts = t->captures;
	trace_close(t);
	return 0;
}

/* Tells a recording with calls from an empty one without reading it all. */
static bool has_calls(const char *path)
{
	struct trace *t;
	if (trace_open(path, &t, NULL))
		return false;
	const bool has = trace_has(t, CHUNK_EVENTS);
	trace_close(t);
	return has;
}

static uint64_t free_bytes(const char *path)
{
	struct statvfs disk;
	return statvfs(path, &disk) ? UINT64_MAX : (uint64_t)disk.f_bavail * disk.f_frsize;
}

static uint64_t free_by_default(const char *path)
{
	struct statvfs disk;
	const uint64_t all = statvfs(path, &disk) ? 0 : (uint64_t)disk.f_blocks * disk.f_frsize;
	return MIN(all / 100, FREE_LEAST);
}

/* Stops recording when there is no more room for it.  True when it goes on. */
static bool has_room(struct recording *rec)
{
	struct trace_header *h = rec->child.header;
	const uint64_t taken = load_acquire(&h->next);
	if (load_relaxed(&h->stopped))
		return false;
	if (rec->most_bytes && taken + CONTROL_AHEAD > rec->most_bytes)
		control_stop(rec->child.header, STOP_SIZE);
	else if (rec->least_free && free_bytes(rec->raw) < rec->least_free)
		control_stop(rec->child.header, STOP_DISK);
	return !load_relaxed(&h->stopped);
}

static void say_stopped(const struct recording *rec)
{
	const struct trace_header *h = rec->child.header;
	struct number n;
	if (h->stopped == STOP_ASKED)
		remark("recording stopped before the program ended, as weir ctl asked");
	else if (h->stopped == STOP_SIZE)
		remark("recording stopped before the program ended: the trace had reached %s (--max-size)",
			number_bytes(&n, rec->most_bytes));
	else if (h->stopped == STOP_CUT)
		remark("recording stopped before the program ended: somebody cut %s off", rec->raw);
	else if (load_relaxed(&h->stopped))
		remark("recording stopped before the program ended: less than %s were free on the disk of %s (--min-free)",
			number_bytes(&n, rec->least_free), rec->raw);
}

/* Drained chunks are packed already: the packed trace may take as much as the raw one. */
static bool may_pack(const struct recording *rec, const char *from)
{
	struct stat st;
	struct number n;
	const uint64_t needs = stat(from, &st) ? 0 : (uint64_t)st.st_size;
	const uint64_t is_free = rec->least_free ? free_bytes(from) : UINT64_MAX;
	if (is_free > needs && is_free - needs >= rec->least_free)
		return true;
	remark("%s stays uncompressed: packing it could leave less than %s free on its disk (--min-free)",
		from, number_bytes(&n, rec->least_free));
	return false;
}

static int pack(const char *from, const char *to)
{
	struct progress bar;
	struct error err;
	struct number missing;
	struct pack_stats stats = {
		.stacks = stacks_pack, .progress = progress_show, .context = &bar
	};
	progress_init(&bar, "packing");
	const int done = trace_pack(from, to, &stats, &err);
	progress_fini(&bar);
	if (!done && stats.damage.what)
		remark("%s: %s; %s of what was recorded could not be read", from, stats.damage.what,
			stats.damage.bytes ? number_bytes(&missing, stats.damage.bytes) : "some");
	return done ? complain(EXIT_ENVIRONMENT, "%s. The trace stays as it was recorded, in %s",
			      err.text, from)
		    : 0;
}

/* Waits for the program's end, and does meanwhile what else is to be done. */
static bool wait_for(struct recording *rec, int wait_ms, int *asked, int *ret_status)
{
	if (rec->beside) {
		const int again = rec->beside->turn(rec->beside->data);
		wait_ms = MIN(again, wait_ms);
	}
	return child_wait(&rec->child, wait_ms, asked, ret_status);
}

/* FILE, then FILE.1, FILE.2 …: what the ring holds now. */
static void dump(struct recording *rec, const char *why)
{
	char name[PATH_MAX + 12];
	if (rec->dumps >= FLIGHT_DUMPS || !may_pack(rec, rec->raw))
		return;
	snprintf(name, sizeof name, "%s.%d", rec->output, ++rec->dumps);
	if (pack(rec->raw, name) == 0)
		remark("%s: saved %s", why, name);
}

static bool failed_since(struct recording *rec)
{
	const uint32_t now = load_acquire(&rec->child.header->failures);
	const bool more = now != rec->failures_seen;
	rec->failures_seen = now;
	return more;
}

static int fly(struct recording *rec)
{
	int status = 0, asked = 0;
	while (!wait_for(rec, FLIGHT_POLL_MS, &asked, &status)) {
		if (asked)
			dump(rec, "asked to");
		else if (failed_since(rec))
			dump(rec, "a call failed");
		asked = 0;
		has_room(rec);
	}
	if (failed_since(rec))
		dump(rec, "a call failed");
	return status;
}

static void stop_if_cut(struct recording *rec, struct drain *d)
{
	if (!load_relaxed(&rec->child.header->stopped) && drain_is_cut(d))
		control_stop(rec->child.header, STOP_CUT);
}

/* Drains the trace while the program runs: often while there is much, rarely while not. */
static int watch(struct recording *rec)
{
	struct drain *d = NULL;
	int status = 0, wait_ms = DRAIN_IDLE_MS;
	const int without = drain_open(rec->raw, &d); /* then it is packed at the end */
	while (!wait_for(rec, wait_ms, NULL, &status)) {
		const bool drains = has_room(rec) && !without;
		wait_ms = drains && drain_step(d) ? DRAIN_BUSY_MS : DRAIN_IDLE_MS;
		if (!without)
			stop_if_cut(rec, d);
	}
	if (!without)
		stop_if_cut(rec, d);
	rec->is_whole = !without && !drain_is_cut(d);
	drain_close(d);
	return status;
}

static void say(const struct recording *rec, const struct totals *sum, int status)
{
	struct number calls, launches, lost, size;
	if (sum->requests && !sum->calls)
		remark("%s; %s in %s", number_of(&calls, sum->requests, "request"),
			number_bytes(&size, sum->bytes), rec->output);
	else
		remark("%s, %s of them launches, %s lost; %s in %s",
			number_of(&calls, sum->calls, "call"),
			number_count(&launches, sum->launches), number_count(&lost, sum->lost),
			number_bytes(&size, sum->bytes), rec->output);
	if (sum->requests && sum->calls)
		remark("%s", number_of(&calls, sum->requests, "request"));
	if (WIFSIGNALED(status))
		remark("%s was killed by signal %d (%s)", rec->child.argv[0], WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	if (sum->shut_in)
		remark("a process installed a system-call filter (seccomp) and was left alone after that");
}

/* If a user expected calls and sees none, this says where to ask. */
static void say_where_to_ask(const struct recording *rec)
{
	const bool sim = rec->child.sim;
	if (child_say_closed(&rec->child))
		return;
	remark("no CUDA call was seen. `weir doctor %s-- %s` says why%s", sim ? "--sim " : "",
		rec->child.argv[0],
		sim ? "" : ". Without a GPU, `weir record --sim` simulates one");
}

/* Nothing is wrong with a program whose part alone did not come. */
static void say_no_part(const struct options *o, const struct totals *sum)
{
	const char *what = opt_str(o, "capture"), *delay = opt_str(o, "delay");
	remark("%s (%s%s%s%s%s). Calls outside of it are not recorded. Leave the option out to record all",
		sum->parts ? "no CUDA call was made in the part that was asked for"
			   : "the part that was asked for never began",
		what ? "--capture=" : "", what ? what : "", what && delay ? " " : "",
		delay ? "--delay=" : "", delay ? delay : "");
}

/* How many processes still write here.  One that comes while they are counted is counted too. */
static int count_others(const struct recording *rec)
{
	const _Atomic uint32_t *processes = &rec->child.header->processes;
	uint32_t before;
	int others;
	do {
		before = load_acquire(processes);
		others = child_others(&rec->child);
	} while (!others && before != load_acquire(processes));
	return others;
}

/* The trace under its name, packed or as it was recorded.  False when it stays elsewhere. */
static bool put_in_place(const struct recording *rec, bool packed)
{
	const bool there = !strcmp(rec->raw, rec->output);
	if (packed && may_pack(rec, rec->raw)) {
		const bool done = !pack(rec->raw, rec->output);
		if (done && !there)
			unlink(rec->raw);
		return done;
	}
	if (there || !rename(rec->raw, rec->output))
		return true;
	complain(0, "%s can't be renamed: %s", rec->raw, strerror(errno));
	return false;
}

/* The whole timeline, from what was timed.  Without it the file is one of samples. */
static void reconstruct(const struct recording *rec, bool packed, bool quiet)
{
	struct rewritten r = { 0 };
	struct error err;
	struct number all, measured, guessed, off;
	if (!packed) {
		remark("%s has samples alone: the timeline is reconstructed when the trace is packed",
			rec->output);
	} else if (reconstruct_file(rec->output, &r, &err)) {
		complain(0, "%s; %s has samples alone", err.text, rec->output);
	} else if (!r.activities) {
		remark("no launch was timed: there is nothing to reconstruct a timeline of");
	} else if (!quiet) {
		remark("device timeline reconstructed: %s launches, memcpys and memsets, %s of them "
		       "timed, %s guessed. Times are off by %s in the median",
			number_count(&all, r.measured + r.like + r.guessed),
			number_count(&measured, r.measured), number_count(&guessed, r.guessed),
			number_ns(&off, r.uncertainty_ns));
	}
}

/* A thread that is killed when it has taken room, and has had none allocated yet, leaves `next`
 * behind the end of the file.  Nobody records any more, so nothing was lost there. */
static void forget_room(struct recording *rec)
{
	struct trace_header *h = rec->child.header;
	struct stat st;
	if (rec->is_whole && !stat(rec->raw, &st) && st.st_size % TRACE_GRAIN == 0 &&
		(uint64_t)st.st_size < load_relaxed(&h->next))
		store_relaxed(&h->next, (uint64_t)st.st_size);
}

/* Finishes the file and says what is in it.  Whatever fails here, the program's end is its own. */
static void finish(struct recording *rec, const struct options *o, int status)
{
	struct totals sum = { 0 };
	const bool quiet = opt_flag(o, "quiet");
	const int others = count_others(rec);
	if (others)
		remark("%d process%s of the program still run%s and record%s on. %s stays uncompressed",
			others, others == 1 ? "" : "es", others == 1 ? "s" : "",
			others == 1 ? "s" : "", rec->raw);
	else {
		forget_room(rec);
		child_finish(&rec->child, status);
	}
	say_stopped(rec);
	if (!child_trace_is_there(&rec->child))
		return;
	const bool packed = !others && !opt_flag(o, "no-pack");
	if (!put_in_place(rec, packed))
		return;
	if (rec->child.reconstruct)
		reconstruct(rec, packed, quiet);
	if ((quiet && has_calls(rec->output)) || sum_up(rec->output, &sum))
		return;
	if (!quiet)
		say(rec, &sum, status);
	if (!sum.calls && sum.part_alone && (opt_str(o, "capture") || opt_str(o, "delay")))
		say_no_part(o, &sum);
	else if (!sum.calls && !sum.requests && strcmp(opt_str(o, "level"), "off") != 0)
		say_where_to_ask(rec);
}

/* N of "NAME" and "NAME:N". */
static bool rate_of(const char *how, const char *name, uint64_t usual, uint32_t *ret_rate)
{
	const size_t n = strlen(name);
	uint64_t rate = usual;
	if (strncmp(how, name, n) ||
		(how[n] && (how[n] != ':' || !size_parse(how + n + 1, &rate))) || !rate ||
		rate > SAMPLE_MOST)
		return false;
	*ret_rate = (uint32_t)rate;
	return true;
}

/* Whether these are ways of timing devices: of one launch in so many, 0 for all. */
static bool gpu_words(const char *how, struct child *c)
{
	c->sample_rate = 0;
	c->reconstruct = false;
	if (!how || !*how || rate_of(how, "sample", SAMPLE_DEFAULT, &c->sample_rate))
		return true;
	c->reconstruct = rate_of(how, "predict", RECONSTRUCT_DEFAULT, &c->sample_rate);
	return c->reconstruct;
}

/* --gpu: 0, or an exit code. */
static int take_gpu(struct recording *rec, const struct options *o)
{
	const char *how = opt_str(o, "gpu");
	if (!gpu_words(how, &rec->child))
		return complain(EXIT_USAGE,
			"--gpu=%s: give --gpu for all activities, --gpu=sample:N for one launch in N, "
			"or --gpu=predict:N to reconstruct the others. N is from 1 to %u",
			how, SAMPLE_MOST);
	if (rec->child.reconstruct && opt_str(o, "flight"))
		return complain(EXIT_USAGE,
			"--gpu=predict needs the whole run, and --flight keeps its end. Give one of "
			"them, or --gpu=sample");
	return 0;
}

static bool python_words(const char *words)
{
	while (words && *words) {
		const size_t n = strcspn(words, ",");
		const bool five =
			n == 5 && (!memcmp(words, "lines", n) || !memcmp(words, "names", n));
		if (!five && (n != 6 || memcmp(words, "shapes", n) != 0))
			return false;
		words += n + (words[n] == ',');
	}
	return true;
}

/* --flight, --max-size and --min-free: 0, or an exit code. */
static int take_sizes(struct recording *rec, const struct options *o)
{
	if (opt_str(o, "max-size") && opt_str(o, "flight"))
		return complain(EXIT_USAGE,
			"--flight keeps the newest calls and --max-size the oldest. Give one of them");
	int code = take_size(o, "flight", FLIGHT_SMALLEST, UINT64_MAX, &rec->flight_bytes);
	code = code ? code : take_size(o, "max-size", SIZE_SMALLEST, UINT64_MAX, &rec->most_bytes);
	return code ? code : take_size(o, "min-free", 0, UINT64_MAX, &rec->least_free);
}

static int prepare(struct recording *rec, const struct options *o)
{
	const char *level = opt_str(o, "level"), *flight = opt_str(o, "flight");
	uint32_t control;
	struct error err;
	if (!opt_argc(o))
		return complain(EXIT_USAGE, "no program is given. Try: weir record -- ./program");
	if (!control_of_level(level, &control))
		return complain(EXIT_USAGE,
			"'%s' is no level. The levels are off, stat, work, full and all", level);
	if (opt_flag(o, "args"))
		control |= CONTROL_ARGS;
	int code = take_sizes(rec, o);
	if (code)
		return code;
	if (!python_words(opt_str(o, "python")))
		return complain(EXIT_USAGE,
			"--python=%s: give lines, names or shapes, with commas between",
			opt_str(o, "python"));
	code = take_gpu(rec, o);
	if (code)
		return code;
	code = stack_choice_take(o, &rec->stacks, &control);
	if (!code)
		code = capture_options_take(&rec->part, o);
	if (!code)
		code = output_expand(opt_str(o, "output"), rec->output, sizeof rec->output);
	if (code)
		return code;
	if (snprintf(rec->raw, sizeof rec->raw, "%s%s", rec->output, flight ? ".ring" : "") >=
		(int)sizeof rec->raw)
		return complain(EXIT_USAGE, "the name of the output is too long");
	rec->child = (struct child){
		.argv = opt_argv(o),
		.sim = opt_flag(o, "sim"),
		.audit = !opt_flag(o, "no-audit"),
		.gpu = opt_flag(o, "gpu"),
		.sample_rate = rec->child.sample_rate,
		.reconstruct = rec->child.reconstruct,
		.predict = rec->predict.config,
		.sched = rec->beside ? rec->beside->sched : NULL,
		.part = rec->part.config,
		.python = opt_str(o, "python"),
		.stacks = rec->stacks.asked ? rec->stacks.text : NULL,
	};
	code = child_check(&rec->child);
	if (!code)
		code = gpu_sampling_prepare(&rec->gpus, o);
	if (!code)
		code = predict_options_prepare(&rec->predict, o);
	if (code)
		return code;
	if (rec->child.reconstruct && rec->predict.wanted)
		return complain(EXIT_USAGE,
			"--predict learns from times that were measured, and --gpu=predict reconstructs "
			"them. Give one of the two");
	if (rec->child.reconstruct)
		control |= CONTROL_ARGS; /* what takes equally long has equal arguments */
	if (rec->predict.wanted) {
		rec->child.gpu = true;                     /* to learn from */
		control |= CONTROL_PREDICT | CONTROL_ARGS; /* for later runs to learn from */
	}
	if (child_clear(rec->output, &err) || child_clear(rec->raw, &err) ||
		child_trace(&rec->child, rec->raw, control, rec->flight_bytes, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (rec->most_bytes) {
		rec->child.header->limit = rec->most_bytes;
		atomic_fetch_or_explicit(
			&rec->child.header->optional, FEATURE_ENDS, memory_order_relaxed);
	}
	if (!opt_str(o, "min-free"))
		rec->least_free = free_by_default(rec->raw);
	return 0;
}

/* Nobody takes a recording of before for that of a program which could not be started. */
static void clear_older(const struct recording *rec)
{
	if (!access(rec->output, F_OK) && !child_clear(rec->output, NULL))
		remark("the older recording %s was removed", rec->output);
}

int record_program(const struct options *o, const struct record_beside *beside)
{
	struct recording rec = { .beside = beside };
	int status;
	int code = prepare(&rec, o);
	if (!code && (code = child_start(&rec.child)))
		unlink(rec.raw);
	if (code) {
		if (code != EXIT_USAGE)
			clear_older(&rec);
		gpu_sampling_done(&rec.gpus);
		predict_options_done(&rec.predict);
		return code;
	}
	gpu_sampling_start(&rec.gpus, &rec.child, rec.raw);
	status = rec.flight_bytes ? fly(&rec) : watch(&rec);
	gpu_sampling_done(&rec.gpus);
	finish(&rec, o, status);
	child_close(&rec.child);
	predict_options_done(&rec.predict);
	return child_exit(status);
}

int cmd_record(const struct options *o)
{
	return record_program(o, NULL);
}
