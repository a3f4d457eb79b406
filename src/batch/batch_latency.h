/*
 * The time of a model's batch, by its rows, and how sure it is. Three numbers make a prediction:
 * the median of the last runs of the size at the usual speed; the present slowdown, which all sizes
 * share, so that a changed clock shows after a few batches; and a margin, which settles where 1
 * batch in 100 takes longer than predicted.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "batch/batch.h"

enum {
	LATENCY_RUNS = 7,   /* of a size, of which the median counts */
	LATENCY_RECENT = 9, /* of all sizes, of whose ratios the median is the slowdown */
};

struct latency_size {
	float ns[LATENCY_RUNS]; /* at slowdown 1 */
	uint32_t runs;
	float median; /* 0: never ran */
	float least;  /* the fastest run, as it was; 0: none was seen */
	uint32_t ran; /* the number of the last run, among all of the model */
};

struct latency_run {
	uint32_t rows;
	float ns, ratio;         /* to the median of its size; 0: it had none */
	float margin, deviation; /* before that run */
};

struct batch_latency {
	uint32_t max_rows;
	struct latency_size *size; /* [BATCH_MOST + 1], by the rows that the engine runs */
	/* For planning: by any number of rows, never falling, guessed for sizes that never ran. */
	float *ns;        /* [BATCH_MOST + 1], up to max_rows */
	uint16_t *bucket; /* the same */
	double slowdown, margin;
	double upper;        /* slowdown with the margin */
	uint64_t longest_ns; /* predicted of max_rows */
	uint64_t before_ns;  /* what is to be done before the next batch, of any rows */
	double deviation;    /* typical, of a run from its prediction, as a share of it */
	struct latency_run recent[LATENCY_RECENT];
	double worst;           /* of the last runs, which stayed far below the margin: */
	uint32_t calm;          /* so many */
	uint32_t runs, version; /* the version counts changes */
};

void latency_init(struct batch_latency *l);
void latency_fini(struct batch_latency *l);
void latency_configure(struct batch_latency *l, const struct batch_model_config *c);
void latency_learn(struct batch_latency *l, uint32_t rows, uint64_t ns);
/* The same of a batch for which so much was promised. */
void latency_judge(struct batch_latency *l, uint32_t rows, uint64_t ns, uint64_t promised_ns);
void latency_before(struct batch_latency *l, uint64_t ns);
void latency_put(const struct batch_latency *l, FILE *out);
int latency_read(struct batch_latency *l, FILE *in, struct error *err);

static inline uint32_t latency_size_of(const struct batch_latency *l, uint32_t rows)
{
	return l->bucket[rows < 1 ? 1 : rows < BATCH_MOST ? rows : BATCH_MOST];
}

static inline double latency_typical(const struct batch_latency *l, uint32_t rows)
{
	return l->ns[rows < l->max_rows ? rows : l->max_rows] * l->slowdown + (double)l->before_ns;
}

static inline uint64_t latency_predict(const struct batch_latency *l, uint32_t rows)
{
	const double ns = l->ns[rows < l->max_rows ? rows : l->max_rows] * l->upper;
	/* While nothing is known, that is what is said. */
	return ns > 0 ? (uint64_t)(int64_t)ns + l->before_ns : 0;
}

/* The most rows that take no longer than that: 0, if not even one does. */
uint32_t latency_fit(const struct batch_latency *l, uint64_t ns, uint32_t most);
