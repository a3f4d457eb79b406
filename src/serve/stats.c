/* A version's numbers, as the statistics extension has them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "serve/internal.h"

static json_t *duration_json(const struct duration *d)
{
	return json_pack(
		"{s:I, s:I}", "count", (json_int_t)get(&d->count), "ns", (json_int_t)get(&d->ns));
}

static json_t *sizes_json(const struct version_stats *s)
{
	json_t *all = json_array();
	for (uint32_t rows = 1; rows <= BATCH_MOST; rows++)
		if (get(&s->sizes[rows].count))
			json_array_append_new(all,
				json_pack("{s:I, s:{s:i, s:i}, s:o, s:{s:i, s:i}}", "batch_size",
					(json_int_t)rows, "compute_input", "count", 0, "ns", 0,
					"compute_infer", duration_json(&s->sizes[rows]),
					"compute_output", "count", 0, "ns", 0));
	return all;
}

static json_t *memory_json(const struct version *v)
{
	const uint64_t bytes = engine_memory(v->loaded).there;
	return bytes ? json_pack("[{s:s, s:i, s:I}]", "type", "GPU", "id", 0, "byte_size",
			       (json_int_t)bytes)
		     : json_array();
}

json_t *stats_json(const struct version *v)
{
	const struct version_stats *s = &v->stats;
	const struct duration none = { 0 };
	json_t *times = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "success",
		duration_json(&s->success), "fail", duration_json(&s->fail), "queue",
		duration_json(&s->queue), "compute_input", duration_json(&s->input),
		"compute_infer", duration_json(&s->infer), "compute_output",
		duration_json(&s->output), "cache_hit", duration_json(&none), "cache_miss",
		duration_json(&none));
	const char *no_graphs = load_acquire(&v->loaded->no_graphs);
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:{}, s:o, s:o, s:I, s:I, s:s*}", "name",
		v->model->name, "version", v->text, "last_inference", (json_int_t)get(&s->last_ms),
		"inference_count", (json_int_t)get(&s->inferences), "execution_count",
		(json_int_t)get(&s->executions), "inference_stats", times, "response_stats",
		"batch_stats", sizes_json(s), "memory_usage", memory_json(v), "weir_graph_replays",
		(json_int_t)get(&s->replays), "weir_cold_loads", (json_int_t)get(&s->cold_loads),
		"weir_no_graphs", no_graphs);
}

/* Eighths of an octave above 1,024 ns: three bits below the highest. */
static unsigned bucket_of(uint64_t ns)
{
	if (ns < 1024)
		return 0;
	const unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
	const unsigned k = (octave - 10) * 8 + (unsigned)(ns >> (octave - 3) & 7) + 1;
	return k < LATENCY_BUCKETS ? k : LATENCY_BUCKETS - 1;
}

/* The end of a bucket. */
static uint64_t bucket_end(unsigned k)
{
	return (8 + (uint64_t)k % 8) << (k / 8 + 7);
}

void stats_add_latency(struct version_stats *s, uint64_t ns)
{
	add_relaxed(&s->bounds[latency_bound(ns)], 1);
	add_relaxed(&s->latency[bucket_of(ns)], 1);
}

/* [value, how often], if it is there at all. */
static void add_count(json_t *all, uint64_t value, uint64_t n)
{
	if (n)
		json_array_append_new(all, json_pack("[I, I]", (json_int_t)value, (json_int_t)n));
}

/* By where a bucket ends, in ns. */
static json_t *latency_json(const struct version_stats *s)
{
	json_t *all = json_array();
	for (unsigned k = 0; k < LATENCY_BUCKETS; k++)
		add_count(all, bucket_end(k), get(&s->latency[k]));
	return all;
}

static json_t *rows_json(const struct version_stats *s)
{
	json_t *all = json_array();
	for (uint32_t rows = 1; rows <= BATCH_MOST; rows++)
		add_count(all, rows, get(&s->sizes[rows].count));
	return all;
}

/* An unknown prediction is left out. */
static void set_predicted(json_t *to, const char *key, uint64_t ns)
{
	if (ns)
		json_object_set_new(to, key, json_integer((json_int_t)ns));
}

json_t *watch_json(const struct version *v)
{
	const struct version_stats *s = &v->stats;
	const uint32_t most = v->batched ? v->config->max_batch_size : 1;
	pthread_mutex_lock(&v->device->lock);
	const uint32_t queued = batch_queued(v->queue);
	const uint64_t one = batch_predict(v->queue, 1), all = batch_predict(v->queue, most);
	pthread_mutex_unlock(&v->device->lock);
	json_t *j = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
		"name", v->model->name, "version", (json_int_t)v->number, "engine",
		v->loaded->engine->name, "success", (json_int_t)get(&s->success.count), "failed",
		(json_int_t)get(&s->rejected), "cancelled", (json_int_t)get(&s->cancelled), "met",
		(json_int_t)get(&s->met), "late", (json_int_t)get(&s->late), "shed",
		(json_int_t)get(&s->shed), "refused", (json_int_t)get(&s->refused), "queued",
		(json_int_t)queued, "latency_ns", latency_json(s), "batch_rows", rows_json(s));
	json_object_set_new(j, "max_rows", json_integer(most));
	set_predicted(j, "predicted_one_ns", one);
	set_predicted(j, "predicted_max_ns", all);
	return j;
}
