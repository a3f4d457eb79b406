/* What Prometheus reads of a server: api/serve_metric.tbl for each version of a model, histograms,
 * and the server itself. */
#include <inttypes.h>
#include <stddef.h>

#include "serve/internal.h"

struct metric {
	const char *name, *type, *labels, *meaning;
	size_t at;       /* of an _Atomic uint64_t in struct version */
	uint64_t divide; /* from ns to the unit of the name */
};

static const struct metric metrics[] = {
#include "serve_metrics.h"
};
#define METRICS (sizeof metrics / sizeof *metrics)

static uint64_t get(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void put_labels(struct buf *b, const struct version *v, const char *more)
{
	buf_printf(b, "{model=\"%s\",version=\"%" PRIu64 "\"%s%s} ", v->model->name, v->number,
		*more ? "," : "", more);
}

static void put_head(struct buf *b, const char *name, const char *type, const char *meaning)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, meaning, name, type);
}

/* With the lock for reading. */
typedef void (*put_version)(struct buf *b, const struct version *v, const void *what);

static void for_each(const struct models *m, put_version put, struct buf *b, const void *what)
{
	for (size_t i = 0; i < m->list.n; i++)
		for (size_t k = 0; k < m->list.v[i]->versions.n; k++)
			put(b, m->list.v[i]->versions.v[k], what);
}

static void put_value(struct buf *b, const struct version *v, const void *what)
{
	const struct metric *m = what;
	const uint64_t n = get((const _Atomic uint64_t *)((const char *)v + m->at));
	buf_put_text(b, m->name);
	put_labels(b, v, m->labels);
	if (m->divide == 1000000000u)
		buf_printf(b, "%.9g\n", (double)n / 1e9);
	else
		buf_printf(b, "%" PRIu64 "\n", n / m->divide);
}

static void put_pending(struct buf *b, const struct version *v, const void *what)
{
	pthread_mutex_lock(&v->device->lock);
	const uint32_t n = batch_queued(v->queue);
	pthread_mutex_unlock(&v->device->lock);
	buf_put_text(b, "nv_inference_pending_request_count");
	put_labels(b, v, "");
	buf_printf(b, "%u\n", n);
}

static void put_rows(struct buf *b, const struct version *v, const void *what)
{
	uint64_t count = 0, rows = 0;
	char label[32];
	for (uint32_t size = 1, most = 1; most <= BATCH_MOST; most *= 2) {
		for (; size <= most; size++) {
			const uint64_t n = get(&v->stats.sizes[size].count);
			count += n;
			rows += n * size;
		}
		snprintf(label, sizeof label, "le=\"%u\"", most);
		buf_put_text(b, "weir_serve_batch_rows_bucket");
		put_labels(b, v, label);
		buf_printf(b, "%" PRIu64 "\n", count);
	}
	buf_put_text(b, "weir_serve_batch_rows_bucket");
	put_labels(b, v, "le=\"+Inf\"");
	buf_printf(b, "%" PRIu64 "\nweir_serve_batch_rows_sum", count);
	put_labels(b, v, "");
	buf_printf(b, "%" PRIu64 "\nweir_serve_batch_rows_count", rows);
	put_labels(b, v, "");
	buf_printf(b, "%" PRIu64 "\n", count);
}

const double error_ratios[ERROR_RATIOS] = { .5, .8, .9, 1, 1.1, 1.25, 2 };

static void put_errors(struct buf *b, const struct version *v, const void *what)
{
	uint64_t count = 0;
	char label[32] = "le=\"+Inf\"";
	for (unsigned i = 0; i <= ERROR_RATIOS; i++) {
		count += get(&v->stats.error_buckets[i]);
		if (i < ERROR_RATIOS)
			snprintf(label, sizeof label, "le=\"%g\"", error_ratios[i]);
		else
			snprintf(label, sizeof label, "le=\"+Inf\"");
		buf_put_text(b, "weir_serve_prediction_error_ratio_bucket");
		put_labels(b, v, label);
		buf_printf(b, "%" PRIu64 "\n", count);
	}
	buf_put_text(b, "weir_serve_prediction_error_ratio_sum");
	put_labels(b, v, "");
	buf_printf(b, "%.6g\nweir_serve_prediction_error_ratio_count",
		(double)get(&v->stats.error_sum_ppm) / 1e6);
	put_labels(b, v, "");
	buf_printf(b, "%" PRIu64 "\n", count);
}

static void put_server(struct server *s, struct buf *b)
{
	uint64_t busy = 0, connections = 0;
	for (unsigned i = 0; i < s->nloops; i++) {
		busy += get(&s->loops[i].busy_ns);
		connections += atomic_load_explicit(&s->loops[i].connections, memory_order_relaxed);
	}
	put_head(b, "weir_serve_loop_busy_seconds_total", "counter",
		"Time that loops worked, not waiting for sockets");
	buf_printf(b, "weir_serve_loop_busy_seconds_total %.9g\n", (double)busy / 1e9);
	put_head(b, "weir_serve_connections", "gauge", "Connections that are open");
	buf_printf(b, "weir_serve_connections %" PRIu64 "\n", connections);
	put_head(b, "weir_serve_request_bytes", "gauge",
		"Memory of the requests that are being received or answered");
	buf_printf(b, "weir_serve_request_bytes %" PRIu64 "\n", get(&s->held_bytes));
	put_head(b, "weir_serve_memory_refused_total", "counter",
		"Requests refused because all together had too many bytes");
	buf_printf(b, "weir_serve_memory_refused_total %" PRIu64 "\n", get(&s->refused_bytes));
	put_head(b, "weir_serve_log_lost_total", "counter", "Writes to the log that failed");
	buf_printf(b, "weir_serve_log_lost_total %" PRIu64 "\n", get(&s->log_lost));
	put_head(b, "weir_serve_up_seconds", "gauge", "Time since the server started");
	buf_printf(b, "weir_serve_up_seconds %.3f\n", (double)(now_ns() - s->began_ns) / 1e9);
}

void metrics_put(struct server *s, struct buf *b)
{
	struct models *m = &s->models;
	pthread_rwlock_rdlock(&m->lock);
	for (size_t i = 0; i < METRICS; i++) {
		if (!i || strcmp(metrics[i].name, metrics[i - 1].name) != 0)
			put_head(b, metrics[i].name, metrics[i].type, metrics[i].meaning);
		for_each(m, put_value, b, &metrics[i]);
	}
	put_head(b, "nv_inference_pending_request_count", "gauge", "Requests that are queued");
	for_each(m, put_pending, b, NULL);
	put_head(b, "weir_serve_batch_rows", "histogram", "Rows of the batches that ran");
	for_each(m, put_rows, b, NULL);
	put_head(b, "weir_serve_prediction_error_ratio", "histogram",
		"Time of a batch by what was predicted for it");
	for_each(m, put_errors, b, NULL);
	pthread_rwlock_unlock(&m->lock);
	put_server(s, b);
}
