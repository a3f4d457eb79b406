/*
 * Models that compute nothing and take a stated time, for tests and benchmarks of the server.
 * docs/reference/engines.md has the keys of model.json.  Answers depend on a row alone, so that a
 * test can hold what came from a batch against what came by itself.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/monotonic.h"
#include "engine/model_base.h"

/* A run takes no longer than a time can be. */
#define MOST_US     1e9
#define MOST_JITTER 100.0

struct synthetic {
	struct engine_model base;
	double us, us_per_row, jitter, hiccup, hiccup_us;
	uint64_t random, runs, fail_every;
	bool spin;
};

static const struct tensor_spec *source(const struct engine_model *m, unsigned out)
{
	return &m->in[out < m->ins ? out : 0];
}

static int read_model(struct synthetic *s, const json_t *root, const char *path, struct error *err)
{
	json_t *in, *out;
	json_error_t why;
	const char *how = "sleep";
	json_int_t seed = 1, fail_every = 0;
	struct engine_model *m = &s->base;
	if (json_unpack_ex((json_t *)root, &why, 0,
		    "{s:o, s:o, s?F, s?F, s?F, s?{s:F, s:F !}, s?I, s?s, s?I !}", "inputs", &in,
		    "outputs", &out, "us", &s->us, "us_per_row", &s->us_per_row, "jitter",
		    &s->jitter, "hiccups", "probability", &s->hiccup, "us", &s->hiccup_us, "seed",
		    &seed, "how", &how, "fail_every", &fail_every))
		return error_set(err, -EINVAL, "model %s: %s: %s", m->name, path, why.text);
	s->spin = strcmp(how, "spin") == 0;
	if (!s->spin && strcmp(how, "sleep") != 0)
		return error_set(err, -EINVAL, "model %s: how is '%s', and not 'sleep' or 'spin'",
			m->name, how);
	if (s->us < 0 || s->us_per_row < 0 || s->jitter < 0 || s->hiccup_us < 0 || fail_every < 0)
		return error_set(err, -EINVAL, "model %s: %s has a negative number", m->name, path);
	if (s->us > MOST_US || s->us_per_row > MOST_US || s->hiccup_us > MOST_US ||
		s->jitter > MOST_JITTER)
		return error_set(err, -EINVAL,
			"model %s: %s has a time above %.0f us or a jitter above %.0f", m->name,
			path, MOST_US, MOST_JITTER);
	s->random = (uint64_t)seed;
	s->fail_every = (uint64_t)fail_every;
	int e = engine_read_specs(m, in, out, err);
	for (unsigned i = 0; i < m->outs && !e; i++)
		if ((m->out[i].type == DTYPE_BYTES) != (source(m, i)->type == DTYPE_BYTES))
			e = error_set(err, -EINVAL,
				"model %s: %s and %s can't be made of each other", m->name,
				source(m, i)->name, m->out[i].name);
	return e;
}

static void unload(struct engine_model *m)
{
	engine_model_fini(m);
	free(m);
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	json_t *root;
	int e = engine_read_json(fd, path, c->name, &root, err);
	if (e)
		return e;
	struct synthetic *s = xcalloc(1, sizeof *s);
	engine_model_init(&s->base, &engine_synthetic, c);
	e = read_model(s, root, path, err);
	json_decref(root);
	if (e)
		unload(&s->base);
	else
		*ret = &s->base;
	return e;
}

/* From 0 to 1, by splitmix64. */
static double draw(struct synthetic *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static uint64_t duration_ns(struct synthetic *s, uint64_t rows)
{
	const double normal = sqrt(-2 * log(1 - draw(s))) * cos(2 * M_PI * draw(s));
	double us = (s->us + s->us_per_row * (double)rows) * (1 + s->jitter * normal);
	us = MAX(us, 0);
	return (uint64_t)((us + (draw(s) < s->hiccup ? s->hiccup_us : 0)) * 1000);
}

static void wait_until(uint64_t ns, bool spin)
{
	const struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	while (spin ? monotonic_ns() < ns
		    : clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* The shape that an output has in this run: what the model leaves open is the input's. */
static struct shape output_shape(const struct tensor_spec *spec, const struct engine_input *in)
{
	struct shape s = spec->shape;
	for (unsigned i = 0; i < s.n; i++)
		if (s.dims[i] < 0)
			s.dims[i] = in->given && i < in->shape.n ? in->shape.dims[i] : 1;
	return s;
}

static void fill_row(
	unsigned char *row, size_t bytes, enum dtype type, const unsigned char *in, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ in[i]) * 0x100000001b3;
	memset(row, (int)(hash % (type == DTYPE_BOOL ? 2 : 64)), bytes);
}

static int make_output(const struct engine_model *m, unsigned k, const struct engine_input *in,
	struct engine_output *out, uint64_t rows, struct error *err)
{
	size_t have = 0;
	uint64_t want = 0;
	for (unsigned i = 0; in->given && i < in->pieces; i++)
		have += in->piece[i].bytes;
	out->type = m->out[k].type;
	out->shape = output_shape(&m->out[k], in);
	if (out->type == DTYPE_BYTES)
		want = have;
	else if (shape_bytes(&out->shape, out->type, &want) || want > 1ull << 30)
		return error_set(err, -EINVAL, "model %s: output %s would be too large", m->name,
			m->out[k].name);
	unsigned char *gathered = xmalloc(have + 1), *to = gathered;
	for (unsigned i = 0; in->given && i < in->pieces; i++)
		if (in->piece[i].bytes)
			to = mempcpy(to, in->piece[i].data, in->piece[i].bytes);
	if (have != want) {
		unsigned char *made = xmalloc(want + 1);
		for (uint64_t r = 0; r < rows; r++)
			fill_row(made + want / rows * r, want / rows, out->type,
				gathered + have / rows * r, have / rows);
		free(gathered);
		gathered = made;
	}
	out->data = gathered;
	out->bytes = want;
	return 0;
}

static void end(struct engine_model *m, struct engine_run *run)
{
	for (unsigned i = 0; i < m->outs; i++)
		if (run->out[i].wanted)
			free((void *)run->out[i].data);
}

static int run(struct engine_model *m, struct engine_run *r, struct error *err)
{
	struct synthetic *s = (struct synthetic *)m;
	const uint64_t began = monotonic_ns(), rows = engine_rows(m, r);
	const bool fails = s->fail_every && ++s->runs % s->fail_every == 0;
	int e = 0;
	for (unsigned i = 0; i < m->outs && !e && !fails; i++)
		if (r->out[i].wanted)
			e = make_output(m, i, &r->in[source(m, i) - m->in], &r->out[i], rows, err);
	wait_until(began + duration_ns(s, rows), s->spin);
	if (fails)
		e = error_set(err, -EIO, "model %s: the run failed, as fail_every says", m->name);
	if (e)
		end(m, r);
	return e;
}

static bool put_version(const struct engine_options *o, struct buf *b)
{
	buf_put_text(b, "synthetic");
	return true;
}

const struct engine engine_synthetic = {
	.name = "synthetic",
	.platforms = " synthetic ",
	.file = "model.json",
	.put_version = put_version,
	.load = load,
	.run = run,
	.end = end,
	.unload = unload,
};
