/* Prometheus reads this of a server: each row of api/serve_metric.tbl. */
#include <inttypes.h>
#include <stddef.h>

#include "serve/internal.h"

struct metric {
	const char *name, *type, *labels, *meaning;
	/* Writes its lines of one version, with the lock for reading; or NULL. */
	void (*put)(struct buf *b, const struct version *v, const struct metric *m);
	double (*server)(const struct server *s);
	size_t at;       /* of an _Atomic uint64_t in struct version */
	uint64_t divide; /* from ns to the unit of the name */
};

/* A line up to its value. */
static void put_sample(struct buf *b, const struct version *v, const struct metric *m,
	const char *suffix, const char *labels)
{
	buf_printf(b, "%s%s{model=\"%s\",version=\"%s\"%s%s} ", m->name, suffix, v->model->name,
		v->text, *labels ? "," : "", labels);
}

static void put_head(struct buf *b, const char *name, const char *type, const char *meaning)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, meaning, name, type);
}

static void put_value(struct buf *b, const struct version *v, const struct metric *m)
{
	const uint64_t n = get((const _Atomic uint64_t *)((const char *)v + m->at));
	put_sample(b, v, m, "", m->labels);
	if (m->divide == 1000000000u)
		buf_printf(b, "%.9g\n", (double)n / 1e9);
	else
		buf_printf(b, "%" PRIu64 "\n", n / m->divide);
}

static void put_pending(struct buf *b, const struct version *v, const struct metric *m)
{
	pthread_mutex_lock(&v->device->lock);
	const uint32_t n = batch_queued(v->queue);
	pthread_mutex_unlock(&v->device->lock);
	put_sample(b, v, m, "", "");
	buf_printf(b, "%u\n", n);
}

static void put_gpu_bytes(struct buf *b, const struct version *v, const struct metric *m)
{
	if (!v->loaded->engine->memory)
		return;
	put_sample(b, v, m, "", "");
	buf_printf(b, "%" PRIu64 "\n", engine_memory(v->loaded).there);
}

/* Buckets that end at a number which `le` says. */
static void put_bucket(struct buf *b, const struct version *v, const struct metric *m,
	const char *le, uint64_t count)
{
	char label[32];
	snprintf(label, sizeof label, "le=\"%s\"", le);
	put_sample(b, v, m, "_bucket", label);
	buf_printf(b, "%" PRIu64 "\n", count);
}

static void put_bucket_to(
	struct buf *b, const struct version *v, const struct metric *m, double le, uint64_t count)
{
	char text[16];
	snprintf(text, sizeof text, "%g", le);
	put_bucket(b, v, m, text, count);
}

static void put_end(
	struct buf *b, const struct version *v, const struct metric *m, double sum, uint64_t count)
{
	put_bucket(b, v, m, "+Inf", count);
	put_sample(b, v, m, "_sum", "");
	buf_printf(b, "%.12g\n", sum);
	put_sample(b, v, m, "_count", "");
	buf_printf(b, "%" PRIu64 "\n", count);
}

static void put_rows(struct buf *b, const struct version *v, const struct metric *m)
{
	uint64_t count = 0, rows = 0;
	for (uint32_t size = 1, most = 1; most <= BATCH_MOST; most *= 2) {
		for (; size <= most; size++) {
			const uint64_t n = get(&v->stats.sizes[size].count);
			count += n;
			rows += n * size;
		}
		put_bucket_to(b, v, m, most, count);
	}
	put_end(b, v, m, (double)rows, count);
}

const double error_ratios[ERROR_RATIOS] = { .5, .8, .9, 1, 1.1, 1.25, 2 };

static void put_errors(struct buf *b, const struct version *v, const struct metric *m)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < ERROR_RATIOS; i++)
		put_bucket_to(b, v, m, error_ratios[i], count += get(&v->stats.error_buckets[i]));
	put_end(b, v, m, (double)get(&v->stats.error_sum_ppm) / 1e6,
		count + get(&v->stats.error_buckets[ERROR_RATIOS]));
}

static const double latency_bounds[LATENCY_BOUNDS] = { 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
	.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100 };

unsigned latency_bound(uint64_t ns)
{
	unsigned i = 0;
	while (i < LATENCY_BOUNDS && (double)ns > latency_bounds[i] * 1e9)
		i++;
	return i;
}

static void put_latency(struct buf *b, const struct version *v, const struct metric *m)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < LATENCY_BOUNDS; i++)
		put_bucket_to(b, v, m, latency_bounds[i], count += get(&v->stats.bounds[i]));
	put_end(b, v, m, (double)get(&v->stats.success.ns) / 1e9,
		count + get(&v->stats.bounds[LATENCY_BOUNDS]));
}

/* Triton's buckets end where some of ours do. */
static void put_first_response(struct buf *b, const struct version *v, const struct metric *m)
{
	static const double ends[] = { .1, .5, 2, 5 };
	uint64_t count = 0;
	unsigned end = 0;
	for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
		count += get(&v->stats.bounds[i]);
		if (end < 4 && latency_bounds[i] == ends[end])
			put_bucket_to(b, v, m, ends[end++] * 1e3, count);
	}
	put_end(b, v, m, (double)get(&v->stats.success.ns) / 1e6,
		count + get(&v->stats.bounds[LATENCY_BOUNDS]));
}

/* A number of the whole server that is one expression of it. */
#define SERVER(name, value)                                                                        \
	static double server_##name(const struct server *s)                                        \
	{                                                                                          \
		return (double)(value);                                                            \
	}
SERVER(ready, server_is_ready(s))
SERVER(request_bytes, get(&s->held_bytes))
SERVER(memory_refused, get(&s->refused_bytes))
SERVER(rate_refused, get(&s->refused_rate))
SERVER(log_lost, log_lost(s->log))
SERVER(up_seconds, (double)(monotonic_ns() - s->began_ns) / 1e9)

static double server_busy_seconds(const struct server *s)
{
	uint64_t busy = 0;
	for (unsigned i = 0; i < s->nloops; i++)
		busy += get(&s->loops[i].busy_ns);
	return (double)busy / 1e9;
}

static double server_connections(const struct server *s)
{
	unsigned n = 0;
	for (unsigned i = 0; i < s->nloops; i++)
		n += load_relaxed(&s->loops[i].connections);
	return n;
}

static const struct metric metrics[] = {
#include "serve_metrics.h"
};
#define METRICS (sizeof metrics / sizeof *metrics)

void metrics_put(struct server *s, struct buf *b)
{
	struct models *all = &s->models;
	pthread_rwlock_rdlock(&all->lock);
	for (const struct metric *m = metrics; m < metrics + METRICS; m++) {
		if (m == metrics || strcmp(m->name, m[-1].name) != 0)
			put_head(b, m->name, m->type, m->meaning);
		if (m->server)
			buf_printf(b, "%s %.12g\n", m->name, m->server(s));
		for (size_t i = 0; m->put && i < all->list.n; i++)
			for (size_t k = 0; k < all->list.v[i]->versions.n; k++)
				m->put(b, all->list.v[i]->versions.v[k], m);
	}
	pthread_rwlock_unlock(&all->lock);
}
