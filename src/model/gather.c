/* Counting a trace's calls: workers take chunk after chunk from a shared number, then their tallies
 * are merged. */
#include "model/gather.h"

#include <pthread.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/progress.h"
#include "trace/thread_calls.h"

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

static int count_chunk(struct worker *w, size_t i)
{
	const int e = trace_load(w->work->trace, i, &w->buf, NULL);
	if (trace_lost(e)) {
		w->tally.damaged_chunks++;
		return 0;
	}
	if (!e)
		tally_chunk(&w->tally, i, &w->buf);
	return e;
}

static void *run_worker(void *argument)
{
	struct worker *w = argument;
	struct work *k = w->work;
	size_t i;
	while ((i = add_relaxed(&k->next, 1)) < k->trace->chunk_count) {
		const int e = chunk_has_calls(&k->trace->chunks[i]) ? count_chunk(w, i) : 0;
		if (e)
			store_relaxed(&k->failed, e);
		if (load_relaxed(&k->failed))
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
	n = MIN(n, TALLIES_MOST);
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
	return load_relaxed(&work->failed);
}

static int gather(
	struct tallies *t, const struct trace *trace, const struct meta *meta, uint32_t facets)
{
	struct worker *workers = t->workers;
	const unsigned count = t->count;
	struct work work = { .trace = trace };
	for (unsigned i = 0; i < count; i++) {
		workers[i].work = &work;
		workers[i].buf.history = true;
		tally_init(&workers[i].tally, trace, meta, t->thread_numbers, facets);
	}
	int e = run_workers(workers, count, &work);
	for (unsigned i = 1; i < count && !e; i++)
		tally_merge(&workers[0].tally, &workers[i].tally);
	expect(e || atomic_load_explicit(&work.next, memory_order_seq_cst) >= trace->chunk_count,
		"each chunk was somebody's");
	return e;
}

int tallies_gather(struct tallies *t, const struct trace *trace, const struct meta *meta,
	uint32_t facets, unsigned threads)
{
	t->count = worker_count(trace, threads);
	t->workers = xcalloc(t->count, sizeof *t->workers);
	trace_number_threads(trace, &t->thread_numbers);
	return gather(t, trace, meta, facets);
}

struct tally *tallies_sum(const struct tallies *t)
{
	return &t->workers[0].tally;
}

unsigned tallies_memory(const struct tallies *t, struct memory_list lists[static MEMORY_LISTS])
{
	static_assert(TALLIES_MOST + 1 <= MEMORY_LISTS, "one a worker, and one more");
	for (unsigned i = 0; i < t->count; i++) {
		const struct tally *w = &t->workers[i].tally;
		lists[i] = (struct memory_list){ .ops = w->memory.v,
			.count = w->memory.n,
			.spans = w->memory_spans.v,
			.span_count = w->memory_spans.n,
			.reserved = w->reserved.v,
			.reserved_count = w->reserved.n,
			.sources = w->sources.v,
			.source_count = w->sources.n,
			.vmm = w->vmm.v,
			.vmm_count = w->vmm.n,
			.times = w->times.v,
			.times_count = w->times.n };
	}
	return t->count;
}

void tallies_fini(struct tallies *t)
{
	for (unsigned i = 0; t->workers && i < t->count; i++) {
		tally_fini(&t->workers[i].tally);
		chunk_buf_fini(&t->workers[i].buf);
	}
	free(t->workers);
	free(t->thread_numbers);
}
