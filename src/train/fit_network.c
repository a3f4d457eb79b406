/*
 * Trains the network of predict/network.h with its 316 weights, in plain C. Inputs and target are
 * first scaled to mean 0 and variance 1. At the end the last layer takes the target's scale, so the
 * network answers in log2.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "train/fit.h"
#include "base/xmalloc.h"

#define STEPS     4800
#define BATCH     64
#define RATE      4e-3f
#define SOFT      0.02f /* the corner of the loss is round over so much */
#define WEIGHTS   (sizeof(struct network) / sizeof(float))
#define FIRST_OWN (2 * NETWORK_INPUTS) /* before it stand mean and scale, which are not learnt */

static const float levels[NETWORK_OUTPUTS] = {
	[NETWORK_P10] = 0.1f,
	[NETWORK_P50] = 0.5f,
	[NETWORK_P90] = 0.9f,
	[NETWORK_P99] = 0.99f,
};

struct training {
	struct network net, gradient, moment, square;
	float mean, scale; /* of the target */
	float heaviest;    /* weight of a row */
	uint64_t random;
};

static float uniform(struct training *t)
{
	t->random = hash_mix(t->random + 0x9e3779b97f4a7c15u);
	return (float)(t->random >> 40) / (float)(1 << 24);
}

static void scale_inputs(struct network *net, const struct fit_row *rows, size_t n)
{
	for (int k = 0; k < NETWORK_INPUTS; k++) {
		double sum = 0, squares = 0;
		for (size_t i = 0; i < n; i++)
			sum += (double)rows[i].x[k];
		const double mean = sum / (double)n;
		for (size_t i = 0; i < n; i++)
			squares += ((double)rows[i].x[k] - mean) * ((double)rows[i].x[k] - mean);
		const double deviation = sqrt(squares / (double)n);
		net->mean[k] = (float)mean;
		net->scale[k] = deviation > 1e-6 ? (float)(1 / deviation) : 0;
	}
}

static void scale_target(struct training *t, const struct fit_row *rows, size_t n)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)rows[i].y;
	const double mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)rows[i].y - mean) * ((double)rows[i].y - mean);
	t->mean = (float)mean;
	t->scale = (float)sqrt(squares / (double)n);
	t->scale = t->scale > 1e-3f ? t->scale : 1e-3f;
}

/* Weights as He et al. 2015 choose them for rectifiers. */
static void begin(struct training *t)
{
	struct network *net = &t->net;
	float *const blocks[] = { net->weight1[0], net->weight2[0], net->weight3[0] };
	static const int ins[] = { NETWORK_INPUTS, NETWORK_FIRST, NETWORK_SECOND };
	static const int outs[] = { NETWORK_FIRST, NETWORK_SECOND, NETWORK_OUTPUTS };
	for (int l = 0; l < 3; l++) {
		const float size = sqrtf(6.0f / (float)ins[l]);
		for (int i = 0; i < ins[l] * outs[l]; i++)
			blocks[l][i] = size * (2 * uniform(t) - 1);
	}
}

static void forward(const float *weights, const float *bias, const float *in, int ins,
	float *restrict out, int outs, bool rectify)
{
	for (int o = 0; o < outs; o++)
		out[o] = bias[o];
	for (int i = 0; i < ins; i++)
		for (int o = 0; in[i] != 0 && o < outs; o++)
			out[o] += in[i] * weights[i * outs + o];
	for (int o = 0; rectify && o < outs; o++)
		out[o] = out[o] > 0 ? out[o] : 0;
}

/* Adds to the gradients of weights and biases, gives that of the inputs, if it is asked for. */
static void backward(const float *weights, float *restrict d_weights, float *restrict d_bias,
	const float *in, float *d_in, int ins, const float *d_out, int outs)
{
	for (int o = 0; o < outs; o++)
		d_bias[o] += d_out[o];
	for (int i = 0; i < ins; i++) {
		float sum = 0;
		for (int o = 0; in[i] != 0 && o < outs; o++)
			d_weights[i * outs + o] += in[i] * d_out[o];
		/* a rectifier that is shut passes nothing back */
		for (int o = 0; d_in && in[i] > 0 && o < outs; o++)
			sum += weights[i * outs + o] * d_out[o];
		if (d_in)
			d_in[i] = sum;
	}
}

static void one_row(struct training *t, const struct fit_row *row)
{
	const struct network *net = &t->net;
	struct network *g = &t->gradient;
	float in[NETWORK_INPUTS], first[NETWORK_FIRST], second[NETWORK_SECOND];
	float out[NETWORK_OUTPUTS], d_out[NETWORK_OUTPUTS], d_second[NETWORK_SECOND];
	float d_first[NETWORK_FIRST];
	for (int i = 0; i < NETWORK_INPUTS; i++)
		in[i] = (row->x[i] - net->mean[i]) * net->scale[i];
	forward(net->weight1[0], net->bias1, in, NETWORK_INPUTS, first, NETWORK_FIRST, true);
	forward(net->weight2[0], net->bias2, first, NETWORK_FIRST, second, NETWORK_SECOND, true);
	forward(net->weight3[0], net->bias3, second, NETWORK_SECOND, out, NETWORK_OUTPUTS, false);
	const float target = (row->y - t->mean) / t->scale;
	for (int o = 0; o < NETWORK_OUTPUTS; o++) {
		/* above the target the loss rises by 1 - level, below it by level */
		const float off = (out[o] - target) / SOFT;
		const float side = off > 1 ? 1 : off < -1 ? -1 : off;
		d_out[o] = 0.5f * side + 0.5f - levels[o];
	}
	backward(net->weight3[0], g->weight3[0], g->bias3, second, d_second, NETWORK_SECOND, d_out,
		NETWORK_OUTPUTS);
	backward(net->weight2[0], g->weight2[0], g->bias2, first, d_first, NETWORK_FIRST, d_second,
		NETWORK_SECOND);
	backward(net->weight1[0], g->weight1[0], g->bias1, in, NULL, NETWORK_INPUTS, d_first,
		NETWORK_FIRST);
}

static void adam(struct training *t, int step)
{
	float *w = t->net.mean, *m = t->moment.mean, *v = t->square.mean;
	const float *g = t->gradient.mean;
	const float done = (float)step / STEPS;
	const float rate = RATE * (0.02f + 0.98f * (1 - done) * (1 - done));
	const float grown1 = 1 - powf(0.9f, (float)step), grown2 = 1 - powf(0.999f, (float)step);
	for (size_t i = FIRST_OWN; i < WEIGHTS; i++) {
		const float slope = g[i] / BATCH;
		m[i] += 0.1f * (slope - m[i]);
		v[i] += 0.001f * (slope * slope - v[i]);
		w[i] -= rate * (m[i] / grown1) / (sqrtf(v[i] / grown2) + 1e-8f);
	}
}

/* Into the last layer: the target as it was. */
static void unscale(struct training *t)
{
	for (int o = 0; o < NETWORK_OUTPUTS; o++) {
		for (int i = 0; i < NETWORK_SECOND; i++)
			t->net.weight3[i][o] *= t->scale;
		t->net.bias3[o] = t->net.bias3[o] * t->scale + t->mean;
	}
}

/* A row by chance, as often as it weighs. */
static size_t draw(struct training *t, const struct fit_row *rows, size_t n)
{
	for (;;) {
		const size_t at = (size_t)(uniform(t) * (float)n) % n;
		if (uniform(t) * t->heaviest < rows[at].weight)
			return at;
	}
}

void fit_network(const struct fit_row *rows, size_t n, uint64_t seed, struct fit_progress *progress,
	struct network *ret_network)
{
	struct training *t = xcalloc(1, sizeof *t);
	t->random = seed;
	scale_inputs(&t->net, rows, n);
	scale_target(t, rows, n);
	begin(t);
	for (size_t i = 0; i < n; i++)
		t->heaviest = rows[i].weight > t->heaviest ? rows[i].weight : t->heaviest;
	for (int step = 1; step <= STEPS; step++) {
		memset(&t->gradient, 0, sizeof t->gradient);
		for (int i = 0; i < BATCH; i++)
			one_row(t, &rows[draw(t, rows, n)]);
		adam(t, step);
		if (step % (STEPS / FIT_NETWORK_STEPS) == 0)
			fit_step(progress);
	}
	unscale(t);
	*ret_network = t->net;
	free(t);
}

void fit_step(struct fit_progress *p)
{
	if (p && p->show)
		p->show(p->data, ++p->done, p->all);
}
