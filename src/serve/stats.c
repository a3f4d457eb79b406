/* A version's numbers, as the statistics extension has them. */
#include <inttypes.h>
#include <stdio.h>

#include "serve/internal.h"

static uint64_t get(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

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

json_t *stats_json(const struct version *v)
{
	const struct version_stats *s = &v->stats;
	const struct duration none = { 0 };
	char number[24];
	snprintf(number, sizeof number, "%" PRIu64, v->number);
	json_t *times = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "success",
		duration_json(&s->success), "fail", duration_json(&s->fail), "queue",
		duration_json(&s->queue), "compute_input", duration_json(&s->input),
		"compute_infer", duration_json(&s->infer), "compute_output",
		duration_json(&s->output), "cache_hit", duration_json(&none), "cache_miss",
		duration_json(&none));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:{}, s:o, s:[]}", "name", v->model->name,
		"version", number, "last_inference", (json_int_t)get(&s->last_ms),
		"inference_count", (json_int_t)get(&s->inferences), "execution_count",
		(json_int_t)get(&s->executions), "inference_stats", times, "response_stats",
		"batch_stats", sizes_json(s), "memory_usage");
}
