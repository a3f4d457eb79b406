/*
 * From chunks to a report: workers take chunk after chunk from a shared number, then their
 * tallies are merged and the rows made and sorted.
 */
#include "report/model.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/progress.h"
#include "report/device.h"
#include "report/hint.h"
#include "report/tally.h"
#include "report/prediction.h"

#include "base/banned.h"

#define WORKERS_MOST 64u

struct work {
	const struct trace *trace;
	atomic_size_t next; /* chunk to take; only counted, so relaxed */
	atomic_int failed;  /* -errno of the first worker that failed */
	struct progress progress;
};

struct worker {
	struct work *work;
	struct tally tally;
	struct chunk_buf buf;
	pthread_t thread;
	bool started;
	bool shows_progress;
};

/* ---- workers ---- */

static bool has_calls(const struct chunk_ref *c)
{
	return c->head.kind == CHUNK_EVENTS || c->head.kind == CHUNK_COUNTERS;
}

static int count_chunk(struct worker *w, size_t i)
{
	const int e = trace_load(w->work->trace, i, &w->buf, NULL);
	if (e == -EBADMSG || e == -ENODATA) {
		w->tally.damaged_chunks++;
		return 0;
	}
	return e ? e : tally_chunk(&w->tally, &w->buf);
}

static void *run_worker(void *argument)
{
	struct worker *w = argument;
	struct work *k = w->work;
	size_t i;
	while ((i = atomic_fetch_add_explicit(&k->next, 1, memory_order_relaxed)) <
		k->trace->chunk_count) {
		const int e = has_calls(&k->trace->chunks[i]) ? count_chunk(w, i) : 0;
		if (e)
			atomic_store_explicit(&k->failed, e, memory_order_relaxed);
		if (atomic_load_explicit(&k->failed, memory_order_relaxed))
			break;
		if (w->shows_progress)
			progress_show(&k->progress, i, k->trace->chunk_count);
	}
	return NULL;
}

static unsigned worker_count(const struct trace *t, unsigned asked)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = asked ? asked : cores > 0 ? (size_t)cores : 1;
	n = n < WORKERS_MOST ? n : WORKERS_MOST;
	return (unsigned)(n < t->chunk_count ? n : t->chunk_count ? t->chunk_count : 1);
}

static int run_workers(struct worker *workers, unsigned count, struct work *work)
{
	progress_init(&work->progress, "reading");
	workers[0].shows_progress = true;
	for (unsigned i = 1; i < count; i++)
		workers[i].started =
			!pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
	run_worker(&workers[0]);
	for (unsigned i = 1; i < count; i++)
		if (workers[i].started)
			pthread_join(workers[i].thread, NULL);
	progress_fini(&work->progress);
	return atomic_load_explicit(&work->failed, memory_order_relaxed);
}

static int gather(struct report *r, struct worker *workers, unsigned count)
{
	struct work work = { .trace = r->trace };
	int e = 0;
	for (unsigned i = 0; i < count && !e; i++) {
		workers[i].work = &work;
		e = tally_init(&workers[i].tally, r->trace, &r->meta);
	}
	if (!e)
		e = run_workers(workers, count, &work);
	for (unsigned i = 1; i < count && !e; i++)
		e = tally_merge(&workers[0].tally, &workers[i].tally);
	return e;
}

static void workers_fini(struct worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		tally_fini(&workers[i].tally);
		chunk_buf_fini(&workers[i].buf);
	}
	free(workers);
}

/* ---- rows ---- */

const char *report_fn_name(const struct report *r, uint32_t id, struct fn_name *room)
{
	const struct schema_fn *fn = schema_find(&r->trace->schema, id);
	if (fn)
		return fn->name;
	snprintf(room->text, sizeof(room->text), "function %" PRIu32, id);
	return room->text;
}

#define DOWN(a, b) ((a) > (b) ? -1 : (a) < (b))

static int call_order(const void *one, const void *two)
{
	const struct call_row *a = one, *b = two;
	if (a->total_ticks != b->total_ticks)
		return DOWN(a->total_ticks, b->total_ticks);
	if (a->count != b->count)
		return DOWN(a->count, b->count);
	return -DOWN(a->id, b->id);
}

static int failure_order(const void *one, const void *two)
{
	const struct failure_row *a = one, *b = two;
	if (a->count != b->count)
		return DOWN(a->count, b->count);
	if (a->first_ticks != b->first_ticks)
		return -DOWN(a->first_ticks, b->first_ticks);
	return a->fn_id != b->fn_id ? -DOWN(a->fn_id, b->fn_id) : -DOWN(a->tid, b->tid);
}

static int kernel_row_order(const void *one, const void *two)
{
	const struct kernel_row *a = one, *b = two;
	if (a->count != b->count)
		return DOWN(a->count, b->count);
	if (a->host_ticks != b->host_ticks)
		return DOWN(a->host_ticks, b->host_ticks);
	return strcmp(a->name, b->name);
}

static int moved_order(const void *one, const void *two)
{
	const struct moved_row *a = one, *b = two;
	return a->bytes != b->bytes ? DOWN(a->bytes, b->bytes) : strcmp(a->direction, b->direction);
}

static void total_call(struct report *r, const struct call_row *c)
{
	r->errors = sat_add(r->errors, c->errors);
	if (c->fn && c->fn->api == API_ALLOCATOR) {
		if (strcmp(c->fn->class, MEMORY_UNSEEN) != 0)
			r->allocator_events = sat_add(r->allocator_events, c->count);
		return;
	}
	r->calls = sat_add(r->calls, c->count);
	if (c->fn && c->fn->api == API_RUNTIME && strstr(c->fn->name, "GraphLaunch"))
		r->runtime_graph_launches =
			sat_add(r->runtime_graph_launches, c->count - c->errors);
	if (!c->fn || c->fn->api != API_DRIVER)
		return;
	if (c->fn->kind == CALL_LAUNCH) {
		r->launches = sat_add(r->launches, c->ok_plain);
		r->counted_launches = sat_add(r->counted_launches, c->ok_counted);
	} else if (c->fn->kind == CALL_GRAPHLAUNCH) {
		r->graph_launches = sat_add(r->graph_launches, c->ok_plain);
		r->unnamed_graphs = sat_add(r->unnamed_graphs, c->ok_counted);
	}
}

/* Allocations that were only counted are in no replay. */
static void total_memory(struct report *r, const struct call_row *c)
{
	if (!c->fn || !c->ok_counted || c->fn->api != API_DRIVER)
		return;
	int k = MEMORY_KINDS - 1;
	while (k > 0 && strcmp(memory_kind_name[k], c->fn->memory) != 0)
		k--;
	struct memory_use *both[] = { &r->memory[k], k == MEMORY_HOST ? NULL : &r->gpu_memory };
	for (int i = 0; i < 2; i++) {
		if (both[i] && c->fn->kind == CALL_ALLOC)
			both[i]->allocs = sat_add(both[i]->allocs, c->ok_counted);
		else if (both[i] && c->fn->kind == CALL_FREE)
			both[i]->frees = sat_add(both[i]->frees, c->ok_counted);
	}
}

static int total_moved(struct report *r, const struct call_row *c)
{
	if (!c->fn || !c->ok_plain || (c->fn->kind != CALL_COPY && c->fn->kind != CALL_SET))
		return 0;
	struct moved_row *to = &r->sets;
	if (c->fn->kind == CALL_COPY) {
		size_t i = 0;
		while (i < r->copies.n && strcmp(r->copies.v[i].direction, c->fn->memory) != 0)
			i++;
		if (i == r->copies.n) {
			struct moved_row *new = array_push(&r->copies);
			if (!new)
				return -ENOMEM;
			*new = (struct moved_row){ .direction = c->fn->memory };
		}
		to = &r->copies.v[i];
	}
	to->count = sat_add(to->count, c->ok_plain);
	to->bytes = sat_add(to->bytes, c->bytes);
	return 0;
}

/* What is no call has no row among the calls. */
static void drop_allocators(struct report *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->call_rows.n; i++) {
		struct call_row *c = &r->call_rows.v[i];
		if (c->fn && c->fn->api == API_ALLOCATOR)
			hist_fini(&c->hist);
		else
			r->call_rows.v[n++] = *c;
	}
	r->call_rows.n = n;
}

/* The rows move from the tally to the report, histograms with them. */
static int take_calls(struct report *r, struct tally *t)
{
	int e = 0;
	memcpy(&r->call_rows, &t->calls, sizeof(r->call_rows));
	memset(&t->calls, 0, sizeof(t->calls));
	for (size_t i = 0; i < r->call_rows.n && !e; i++) {
		const struct call_row *c = &r->call_rows.v[i];
		total_call(r, c);
		total_memory(r, c);
		e = total_moved(r, c);
		r->counted_errors += c->errors;
	}
	drop_allocators(r);
	for (size_t i = 0; i < t->failures.n; i++)
		r->counted_errors -= t->failures.v[i].count;
	if (r->call_rows.n)
		qsort(r->call_rows.v, r->call_rows.n, sizeof(*r->call_rows.v), call_order);
	if (r->copies.n)
		qsort(r->copies.v, r->copies.n, sizeof(*r->copies.v), moved_order);
	memcpy(&r->failure_rows, &t->failures, sizeof(r->failure_rows));
	memset(&t->failures, 0, sizeof(t->failures));
	if (r->failure_rows.n)
		qsort(r->failure_rows.v, r->failure_rows.n, sizeof(*r->failure_rows.v),
			failure_order);
	return e;
}

/* ---- kernels ---- */

struct graph_sum {
	struct report *r;
	struct tally *t;
	int failed;
};

static void add_graph_node(void *context, uint32_t process, uint32_t name,
	const struct graph_node *n, uint64_t launches)
{
	struct graph_sum *s = context;
	struct launch_shape shape;
	memcpy(shape.grid, n->grid, sizeof(shape.grid));
	memcpy(shape.block, n->block, sizeof(shape.block));
	const uint64_t kernel = name == META_NONE ? KERNEL_UNNAMED | n->function : name;
	s->r->launches = sat_add(s->r->launches, launches);
	const int e = tally_shape(s->t, kernel, &shape, launches, 0, true);
	if (e)
		s->failed = e;
}

static char *kernel_name(const struct report *r, uint64_t kernel)
{
	char *name = NULL;
	if (!(kernel & KERNEL_UNNAMED))
		return demangle(r->meta.names.v[kernel].text);
	if (asprintf(&name, "(unknown kernel 0x%" PRIx64 ")",
		    (uint64_t)(kernel & ~KERNEL_UNNAMED)) < 0)
		return NULL;
	return name;
}

static int kernel_row_of(struct report *r, struct map *rows, uint64_t kernel, uint32_t *ret_row)
{
	uint32_t *index = map_get(rows, MAP_KEY(kernel));
	if (!index)
		return -ENOMEM;
	if (*index == MAP_NONE) {
		char *name = kernel_name(r, kernel);
		struct kernel_row *k = name ? array_push(&r->kernel_rows) : NULL;
		if (!k) {
			free(name);
			return -ENOMEM;
		}
		*k = (struct kernel_row){ .name = name, .work = WORK_NONE };
		if (!(kernel & KERNEL_UNNAMED))
			k->mangled = r->meta.names.v[kernel].text;
		*index = (uint32_t)(r->kernel_rows.n - 1);
	}
	*ret_row = *index;
	return 0;
}

static void add_shape(struct kernel_row *k, const struct shape_row *s)
{
	k->count = sat_add(k->count, s->count);
	k->graph_count = sat_add(k->graph_count, s->graph_count);
	k->host_ticks = sat_add(k->host_ticks, s->host_ticks);
	k->shapes++;
	tally_common(&k->shape, &k->common, &s->shape, s->count);
}

static int make_kernels(struct report *r, struct tally *t)
{
	struct graph_sum sum = { .r = r, .t = t };
	struct map rows = { 0 };
	int e = meta_expand_graphs(&r->meta, t->graph_launches, add_graph_node, &sum);
	if (!e)
		e = sum.failed;
	for (size_t i = 0; i < t->shapes.n && !e; i++) {
		uint32_t row;
		e = kernel_row_of(r, &rows, t->shapes.v[i].kernel, &row);
		if (!e)
			add_shape(&r->kernel_rows.v[row], &t->shapes.v[i]);
	}
	for (size_t i = 0; i < t->times.n && !e; i++) {
		uint32_t row;
		e = kernel_row_of(r, &rows, t->times.v[i].kernel, &row);
		if (!e)
			hist_merge(&r->kernel_rows.v[row].hist, &t->times.v[i].hist);
	}
	map_fini(&rows);
	if (r->kernel_rows.n)
		qsort(r->kernel_rows.v, r->kernel_rows.n, sizeof(*r->kernel_rows.v),
			kernel_row_order);
	return e;
}

/* ---- threads ---- */

static struct thread_row *thread_of(struct report *r, struct map *index, const struct chunk_ref *c)
{
	uint32_t *i = map_get(index, MAP_KEY(c->process, c->head.tid));
	if (!i)
		return NULL;
	if (*i != MAP_NONE)
		return &r->threads.v[*i];
	struct thread_row *t = array_push(&r->threads);
	if (!t)
		return NULL;
	*t = (struct thread_row){ .process = c->process, .tid = c->head.tid };
	*i = (uint32_t)(r->threads.n - 1);
	return t;
}

/* What each thread was in, as its account says. */
static int find_inflight(struct report *r, const struct map *index)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int found;
	while ((found = trace_next(r->trace, CHUNK_ACCOUNTS, &at, &buf, NULL)) == 1) {
		const struct thread_account *a = (const struct thread_account *)buf.payload;
		for (size_t n = buf.bytes / sizeof(*a); n; n--, a++) {
			if (!a->inflight_fn)
				continue;
			const uint32_t i = map_find(index, MAP_KEY(buf.ref->process, a->tid));
			if (i == MAP_NONE)
				continue;
			r->threads.v[i].inflight_fn = a->inflight_fn;
			r->threads.v[i].inflight_ticks = a->inflight_ticks;
		}
	}
	chunk_buf_fini(&buf);
	return found;
}

static int find_threads(struct report *r)
{
	struct map index = { 0 };
	int e = 0;
	for (size_t i = 0; i < r->trace->chunk_count && !e; i++) {
		const struct chunk_ref *c = &r->trace->chunks[i];
		if (!has_calls(c) && (c->head.kind != CHUNK_RANGES || !c->head.tid))
			continue;
		struct thread_row *t = thread_of(r, &index, c);
		if (!t)
			e = -ENOMEM;
		else if (c->head.kind == CHUNK_EVENTS && c->head.seq >= t->last_seq) {
			t->last_seq = c->head.seq;
			if (!(r->trace->header.optional & FEATURE_ACCOUNTS)) {
				t->inflight_fn = c->head.next_free;
				t->inflight_ticks = c->head.identity;
			}
			memcpy(t->name, c->head.thread, sizeof(t->name));
		} else if (!*t->name) {
			memcpy(t->name, c->head.thread, sizeof(t->name));
		}
	}
	if (!e)
		e = find_inflight(r, &index);
	map_fini(&index);
	return e;
}

/* ---- warnings ---- */

static void warn(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct report *r, const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, format);
	const int n = vasprintf(&text, format, ap);
	va_end(ap);
	char **w = n < 0 ? NULL : array_push(&r->warnings);
	if (w)
		*w = text;
	else if (n >= 0)
		free(text);
}

/* What was entered must be here, counted, or said to be lost. */
static void warn_unbalanced(struct report *r)
{
	const struct accounts *a = &r->accounts;
	if (a->missing)
		warn(r,
			"%" PRIu64 " calls are missing: %" PRIu64 " were entered and %" PRIu64
			" returned, but only %" PRIu64 " are here or said to be lost",
			a->missing, a->entered, a->returned, a->kept);
	if (a->surplus)
		warn(r,
			"%" PRIu64 " calls are here twice: %" PRIu64 " were entered, and %" PRIu64
			" are here or said to be lost",
			a->surplus, a->entered, a->kept);
}

static void warn_missing(struct report *r)
{
	warn_unbalanced(r);
	if (r->lost)
		warn(r, "%" PRIu64 " calls were lost: no room for them in the trace", r->lost);
	if (r->trace->header.lost_ranges)
		warn(r, "%" PRIu64 " ranges were lost: no room for them in the trace",
			r->trace->header.lost_ranges);
	if (r->lost_work && r->sampled)
		warn(r,
			"%" PRIu64 " samples were lost: work had not ended when its context or the "
			"program did, or there was no room for them in the trace",
			r->lost_work);
	else if (r->lost_work)
		warn(r, "%" PRIu64 " pieces of device work were lost: CUPTI had no buffer for them",
			r->lost_work);
	if (r->trace->header.unnamed)
		warn(r, "%" PRIu32 " names and graphs are missing: no room for them in the trace",
			r->trace->header.unnamed);
	if (r->trace->header.optional & FEATURE_SANDBOXED)
		warn(r, "a process put itself behind a system-call filter (seccomp): from then on "
			"its calls were kept only where room was mapped already");
	if (r->torn)
		warn(r, "%" PRIu64 " records were begun and never finished", r->torn);
	if (r->trace->header.reused)
		warn(r, "only the newest calls are here: %" PRIu64 " older chunks were overwritten",
			r->trace->header.reused);
	if (r->counted_errors)
		warn(r, "%" PRIu64 " failing calls were counted without their error code",
			r->counted_errors);
	if (r->counted_launches)
		warn(r, "%" PRIu64 " kernel launches were counted without the kernel's name",
			r->counted_launches);
	if (r->unnamed_graphs)
		warn(r, "%" PRIu64 " graph launches ran kernels that are not known",
			r->unnamed_graphs);
}

static void warn_inflight(struct report *r)
{
	const bool over = r->trace->header.state == TRACE_FINISHED;
	struct fn_name room;
	for (size_t i = 0; i < r->threads.n; i++) {
		const struct thread_row *t = &r->threads.v[i];
		if (t->inflight_fn)
			warn(r, "%s %s in thread %u", report_fn_name(r, t->inflight_fn, &room),
				over ? "had not returned at the end" : "has not returned yet",
				t->tid);
	}
}

static void warn_names(struct report *r)
{
	const struct meta *m = &r->meta;
	for (size_t i = 0; i < m->notes.n; i++)
		warn(r, "process %u: %s", r->trace->processes.v[m->notes.v[i].process].pid,
			m->names.v[m->notes.v[i].name].text);
	for (size_t i = 0; i < m->unknown.n; i++)
		if (m->unknown.v[i].count)
			warn(r, "%s was called %" PRIu64 " times; this Weir does not know it",
				m->names.v[m->unknown.v[i].name].text, m->unknown.v[i].count);
}

static void warn_stopped(struct report *r)
{
	const struct trace *t = r->trace;
	const struct trace_header *h = &t->header;
	struct number after;
	if (h->stopped)
		warn(r, "recording stopped after %s, before the program ended: %s",
			number_ns(&after, trace_since_ns(t, h->stopped_ticks)),
			h->stopped == STOP_SIZE
				? "the trace had reached the size that was asked for"
				: "its disk was nearly full");
}

static void warn_damage(struct report *r)
{
	const struct trace *t = r->trace;
	const uint64_t chunks = r->damaged_chunks + r->meta.damaged;
	for (size_t i = 0; i < t->damage.n; i++)
		warn(r, "damage at byte %" PRIu64 ": %s (%" PRIu64 " bytes left out)",
			t->damage.v[i].offset, t->damage.v[i].what, t->damage.v[i].bytes);
	if (t->damage_count > t->damage.n)
		warn(r, "damage at %" PRIu64 " more places", t->damage_count - t->damage.n);
	if (chunks)
		warn(r, "%" PRIu64 " chunks are damaged and were left out, in part or whole",
			chunks);
	if (!t->schema.fn_count && t->chunk_count)
		warn(r, "the trace says nothing about its functions: they are shown as numbers");
	if (t->schema.bad_lines)
		warn(r, "%u lines of the trace's schema make no sense", t->schema.bad_lines);
	if (!t->clock.known && (r->calls || r->allocator_events))
		warn(r, "the clock's speed is not known: times are ticks, taken as nanoseconds");
}

/* ---- the whole ---- */

static uint64_t wall_ns(const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	if (h->end.mono_ns > h->start.mono_ns)
		return h->end.mono_ns - h->start.mono_ns;
	return r->last_ticks ? trace_since_ns(r->trace, r->last_ticks) : 0;
}

static uint64_t off_ns(const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	const uint64_t end = h->start.mono_ns + r->wall_ns;
	const uint64_t last = h->off_since_ns && h->off_since_ns < end ? end - h->off_since_ns : 0;
	const uint64_t ns = sat_add(h->off_ns, last);
	return ns < r->wall_ns ? ns : r->wall_ns;
}

static int replay(struct report *r, struct worker *workers, unsigned count)
{
	struct memory_list lists[WORKERS_MOST + 1];
	static_assert(WORKERS_MOST + 1 <= MEMORY_LISTS, "one a worker, and one more");
	for (unsigned i = 0; i < count; i++) {
		const struct tally *t = &workers[i].tally;
		lists[i] = (struct memory_list){ .ops = t->memory.v,
			.count = t->memory.n,
			.sources = t->sources.v,
			.source_count = t->sources.n,
			.vmm = t->vmm.v,
			.vmm_count = t->vmm.n };
	}
	return memory_fill(r, lists, count, &workers[0].tally);
}

static uint64_t clock_residual(const struct trace *t)
{
	uint64_t most = 0;
	const struct clock_pair *ends[] = { &t->header.start, &t->header.end };
	for (size_t i = 0; i < t->chunk_count * 2 + 2; i++) {
		const struct chunk_header *c = i < 2 ? NULL : &t->chunks[i / 2 - 1].head;
		const struct clock_pair *p = i < 2 ? ends[i] : i % 2 ? &c->last : &c->open;
		const uint64_t off = clock_fit_error_ns(&t->clock, p);
		most = off > most ? off : most;
	}
	return most;
}

static int fill(struct report *r, struct tally *t)
{
	r->torn = t->torn + r->meta.torn;
	r->damaged_chunks = t->damaged_chunks;
	r->lost = sat_add(r->trace->header.lost, t->torn);
	r->first_ticks = t->first_ticks;
	r->last_ticks = t->last_ticks;
	r->unnamed_graphs = t->unnamed_graphs;
	r->foretold = t->foretold;
	r->untold = t->untold;
	r->streams = t->streams.taken;
	r->contexts = t->contexts.taken;
	r->wall_ns = wall_ns(r);
	r->off_ns = off_ns(r);
	r->clock_residual_ns = clock_residual(r->trace);
	int e = take_calls(r, t);
	if (!e)
		e = make_kernels(r, t);
	if (!e)
		e = find_threads(r);
	if (!e)
		e = accounts_balance(r->trace, r->calls, r->lost, &r->accounts);
	return e;
}

static int make(struct report *r, unsigned threads, struct error *err)
{
	const unsigned count = worker_count(r->trace, threads);
	int e = meta_load(r->trace, &r->meta, err);
	if (e)
		return e;
	struct worker *workers = calloc(count, sizeof(*workers));
	if (!workers)
		return error_set(err, -ENOMEM, "no memory for a report");
	e = gather(r, workers, count);
	if (!e)
		e = fill(r, &workers[0].tally);
	if (!e)
		e = replay(r, workers, count);
	if (!e)
		e = device_fill(r);
	if (!e)
		e = prediction_fill(r);
	workers_fini(workers, count);
	return e ? error_set(err, e, "the trace can't be read to its end: %s", strerror(-e)) : 0;
}

int report_make(const struct trace *trace, const struct decoder *decoder, unsigned threads,
	struct report **ret_report, struct error *err)
{
	struct report *r = calloc(1, sizeof(*r));
	if (!r)
		return error_set(err, -ENOMEM, "no memory for a report");
	r->trace = trace;
	r->decoder = decoder;
	const int e = make(r, threads, err);
	if (e) {
		report_free(r);
		return e;
	}
	warn_missing(r);
	warn_inflight(r);
	warn_names(r);
	warn_stopped(r);
	warn_damage(r);
	*ret_report = r;
	return 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->call_rows.n; i++)
		hist_fini(&r->call_rows.v[i].hist);
	for (size_t i = 0; i < r->kernel_rows.n; i++) {
		free(r->kernel_rows.v[i].name);
		hist_fini(&r->kernel_rows.v[i].hist);
	}
	for (size_t i = 0; i < r->warnings.n; i++)
		free(r->warnings.v[i]);
	device_fini(r);
	array_free(&r->call_rows);
	array_free(&r->failure_rows);
	array_free(&r->kernel_rows);
	array_free(&r->copies);
	array_free(&r->live);
	memory_free(r->memory_detail);
	hints_free(r->hints);
	prediction_free(r->prediction);
	array_free(&r->threads);
	array_free(&r->warnings);
	meta_fini(&r->meta);
	free(r);
}
