/* Rates decay with time, so that a burst counts as its average and silence as silence. */

#include <math.h>

#include "batch/batch_core.h"

#define MEMORY_NS 5e8

/* About e^-x. */
static double decay(double x)
{
	return 1 / (1 + x * (1 + x / 2));
}

static void grow_old(struct batch_traffic *t, uint64_t now)
{
	const double left = now > t->last_ns ? decay((double)(now - t->last_ns) / MEMORY_NS) : 1;
	t->rate *= left;
	t->load *= left;
	t->last_ns = now;
}

void traffic_note(struct batch_traffic *t, uint64_t now, double within_ns, double each_ns)
{
	grow_old(t, now);
	t->within_ns += (within_ns - t->within_ns) * (t->rate > 0 ? 1.0 / 16 : 1);
	t->rate += 1 / MEMORY_NS;
	t->load += each_ns / MEMORY_NS;
}

void traffic_age(struct batcher *b, uint64_t now)
{
	struct batch_traffic *t = &b->traffic.v[b->aged++ % b->models.n * BATCH_CLASSES];
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		grow_old(&t[c], now);
}

uint64_t traffic_expected(
	const struct batch_model *m, uint32_t class, uint64_t within_ns, double caution)
{
	const struct batcher *b = m->batcher;
	const double within = (double)within_ns;
	double due = 0, load = 0;
	for (size_t i = 0; i < b->models.n; i++) {
		const struct batch_traffic *t = &b->traffic.v[i * BATCH_CLASSES];
		for (uint32_t c = 0; c <= class; c++) {
			load += t[c].load;
			if (t[c].within_ns < within)
				due += t[c].load * (within - t[c].within_ns);
		}
	}
	if (!(load > 0))
		return 0;
	const double own = b->traffic.v[m->index * BATCH_CLASSES + class].load / load;
	return (uint64_t)fmin(caution * due / fmax(load, 1), within * (1 - own / 2));
}

/* Requests that can wait so long for a batch to end, and as many come in a nanosecond. */
struct impatient {
	double wait_ns, rate;
};

static uint32_t find_impatient(const struct batcher *b, uint32_t class, double length_ns,
	struct impatient *v, uint32_t most, double *load)
{
	uint32_t n = 0;
	for (size_t i = 0; i < b->models.n; i++) {
		const struct batch_model *m = b->models.v[i];
		const struct batch_traffic *t = &b->traffic.v[i * BATCH_CLASSES];
		for (uint32_t c = 0; c <= class; c++) {
			*load += t[c].load;
			if (!(t[c].rate > 0) || n == most || t[c].within_ns > 2 * length_ns)
				continue;
			const double own =
				(double)latency_predict(&m->latency, (uint32_t)m->reached + 1);
			if (t[c].within_ns > own && t[c].within_ns - own < length_ns)
				v[n++] = (struct impatient){ t[c].within_ns - own, t[c].rate };
		}
	}
	return n;
}

static uint32_t next_smaller(const struct batch_model_config *c, uint32_t rows)
{
	uint32_t smaller = 0;
	if (!c->nbuckets)
		return rows * 3 / 4;
	for (uint32_t i = 0; i < c->nbuckets && c->buckets[i] < rows; i++)
		smaller = c->buckets[i];
	return smaller;
}

uint32_t traffic_trim(
	const struct batcher *b, const struct batch_model *m, uint32_t class, uint32_t most)
{
	struct impatient v[32];
	double load = 0, best = -1e300;
	uint32_t best_rows = most;
	const uint32_t n = find_impatient(b, class, (double)latency_predict(&m->latency, most), v,
		sizeof v / sizeof *v, &load);
	for (uint32_t rows = most; n && rows; rows = next_smaller(&m->config, rows)) {
		const double length = (double)latency_predict(&m->latency, rows);
		double answers = 0;
		for (uint32_t i = 0; i < n; i++)
			if (v[i].wait_ns < length)
				answers -= v[i].rate * (length - v[i].wait_ns);
		answers = rows + answers / fmax(load, 1);
		if (answers / length > best) {
			best = answers / length;
			best_rows = rows;
		}
	}
	return best_rows;
}
