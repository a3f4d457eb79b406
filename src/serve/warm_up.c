/*
 * Runs a version before it is ready: the samples that its configuration names (model_warmup), then
 * batches of each size, which teach the batcher what they take.  If a dimension varies, the first
 * sample says its size, and without one it is 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/hash.h"
#include "serve/internal.h"

/* The time for all sizes but the first; longer if the first run of a size prepares the others. */
#define WARM_NS         150000000u
#define WARM_PREPARE_NS 10000000000u
#define WARM_TIMES      2
#define INPUT_MOST      ((uint64_t)1 << 30) /* bytes of an input */

struct sample {
	struct engine_run run;
	struct engine_piece pieces[ENGINE_TENSORS];
	size_t at[ENGINE_TENSORS]; /* of each input in data */
	struct buf data;
	uint64_t random;
};

static const struct config_warmup_input *given(const struct config_warmup *w, const char *name)
{
	for (unsigned i = 0; w && i < w->inputs; i++)
		if (strcmp(w->input[i].key, name) == 0)
			return &w->input[i];
	return NULL;
}

/* The input's shape for so many rows. */
static struct shape shape_of(const struct version *v, const struct version_tensor *t,
	const struct config_warmup_input *from, uint32_t rows)
{
	struct shape s = t->has_reshape ? t->reshape : t->spec.shape;
	const unsigned lead = v->batched ? 1 : 0;
	const bool fits = from && from->dims.n + lead == s.n;
	for (unsigned d = 0; d < s.n; d++)
		if (s.dims[d] < 0)
			s.dims[d] = d < lead ? rows : fits ? from->dims.dims[d - lead] : 1;
	return s;
}

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return hash_mix(*state);
}

/* Floats from 0 to 1, integers that have no bit but those of mask; zeros for the other types. */
static void fill_random(struct sample *s, enum dtype type, uint64_t mask, char *to, uint64_t bytes)
{
	const unsigned each = dtype_rows[type].bytes;
	const bool whole = type >= DTYPE_UINT8 && type <= DTYPE_INT64;
	for (uint64_t i = 0; each && i + each <= bytes; i += each) {
		const uint64_t r = next_random(&s->random), number = r & mask;
		const float f = (float)(r >> 40) * 0x1p-24f;
		const double d = (double)(r >> 11) * 0x1p-53;
		const uint16_t half = (uint16_t)(0x3400 | (r >> 54)); /* 1/4 to 1/2 */
		const uint16_t upper = (uint16_t)(0x3e80 | (r >> 57));
		if (type == DTYPE_FP32)
			memcpy(to + i, &f, sizeof f);
		else if (type == DTYPE_FP64)
			memcpy(to + i, &d, sizeof d);
		else if (type == DTYPE_FP16)
			memcpy(to + i, &half, sizeof half);
		else if (type == DTYPE_BF16)
			memcpy(to + i, &upper, sizeof upper);
		else if (whole)
			memcpy(to + i, &number, each);
	}
}

static int read_file(struct server *s, const char *model, const char *name, char *to,
	uint64_t bytes, struct error *err)
{
	char *file = xasprintf("warmup/%s", name), *path;
	int fd;
	const int e = store_side_file(s->models.store, model, file, &fd, &path, err);
	free(file);
	if (e)
		return e;
	uint64_t got = 0;
	for (ssize_t n; got < bytes && (n = read(fd, to + got, bytes - got)) > 0;)
		got += (uint64_t)n;
	char more;
	const bool exact = got == bytes && read(fd, &more, 1) == 0;
	close(fd);
	const int code = exact ? 0
			       : error_set(err, -EINVAL,
					 "%s: model_warmup needs a file of %" PRIu64
					 " bytes, by the input's type and shape",
					 path, bytes);
	free(path);
	return code;
}

/* Bytes of the input, behind those of the others; -EOVERFLOW: it is too large to try. */
static int add_input(struct server *s, const char *model, const struct version *v,
	const struct config_warmup *w, unsigned i, uint32_t rows, struct sample *sample,
	struct error *err)
{
	const struct version_tensor *t = &v->in[i];
	const struct config_warmup_input *from = given(w, t->spec.name);
	struct engine_input *in = &sample->run.in[i];
	uint64_t elements = 0, bytes = 0;
	*in = (struct engine_input){ .given = from || !t->spec.optional,
		.type = t->spec.type,
		.shape = shape_of(v, t, from, rows),
		.piece = &sample->pieces[i],
		.pieces = 1 };
	if (shape_elements(&in->shape, &elements) || shape_bytes(&in->shape, in->type, &bytes) ||
		bytes > INPUT_MOST || elements > INPUT_MOST / 4)
		return error_set(err, -EOVERFLOW,
			"input '%s' of model '%s' is too large to warm up with", t->spec.name,
			model);
	/* An element of BYTES is empty: four bytes of length. */
	bytes = in->type == DTYPE_BYTES ? elements * 4 : bytes;
	buf_fill(&sample->data, -sample->data.n & 63);
	sample->at[i] = sample->data.n;
	sample->pieces[i] = (struct engine_piece){ .bytes = bytes, .rows = rows };
	buf_fill(&sample->data, bytes);
	char *to = sample->data.v + sample->at[i];
	/* Integers are 0 or 1: any other number may be one too many in a list, and words that are
	 * all alike would hide what a graph gets wrong. */
	if (!from || from->random)
		fill_random(sample, in->type, from ? UINT64_MAX : 1, to, bytes);
	return from && *from->file ? read_file(s, model, from->file, to, bytes, err) : 0;
}

static int fill(struct server *s, const char *model, const struct version *v,
	const struct config_warmup *w, uint32_t rows, struct sample *sample, struct error *err)
{
	sample->data.n = 0;
	buf_fill(&sample->data, 64);
	for (unsigned i = 0; i < v->loaded->ins; i++) {
		const int e = add_input(s, model, v, w, i, rows, sample, err);
		if (e)
			return e;
	}
	for (unsigned i = 0; i < v->loaded->ins; i++)
		sample->pieces[i].data = sample->data.v + sample->at[i];
	for (unsigned i = 0; i < v->loaded->outs; i++)
		sample->run.out[i].wanted = true;
	return 0;
}

/* Runs of a size that take longer: the first one allocates, and the second one may become a
 * graph. */
static unsigned untypical(const struct version *v)
{
	return v->loaded->engine->settle ? 2 : 1;
}

/* Learns the shortest: one that the system held up for a second says nothing of the model. */
static int run(
	struct version *v, uint32_t rows, unsigned times, struct sample *sample, struct error *err)
{
	uint64_t least = 0;
	for (unsigned i = 0; i < times; i++) {
		const uint64_t began = monotonic_ns();
		const int e = engine_run(v->loaded, &sample->run, err);
		const uint64_t ns = monotonic_ns() - began - sample->run.returned_ns;
		if (e)
			return e;
		engine_run_end(v->loaded, &sample->run);
		if ((i >= untypical(v) || times == 1) && (!least || ns < least))
			least = ns;
	}
	if (least) {
		pthread_mutex_lock(&v->device->lock);
		batch_learn(v->queue, rows, least);
		pthread_mutex_unlock(&v->device->lock);
	}
	return 0;
}

static int run_samples(struct server *s, const char *model, struct version *v,
	struct sample *sample, struct error *err)
{
	int e = 0;
	for (unsigned i = 0; !e && i < v->config->warmups; i++) {
		const struct config_warmup *w = &v->config->warmup[i];
		const uint32_t rows = v->batched && w->batch_size ? w->batch_size : 1;
		e = fill(s, model, v, w, rows, sample, err);
		e = e ? e : run(v, rows, w->count ? w->count : 1, sample, err);
	}
	return e;
}

/* A model for which zeros are nothing learns from its requests. */
static void run_sizes(struct server *s, const char *model, struct version *v, struct sample *sample)
{
	const struct config_warmup *w = v->config->warmups ? v->config->warmup : NULL;
	const uint32_t most = v->batched ? v->config->max_batch_size : 1;
	const uint64_t began = monotonic_ns();
	const uint64_t most_ns = v->loaded->engine->pads ? WARM_PREPARE_NS : WARM_NS;
	struct error err;
	/* Its files have the rows of its own batch size. */
	struct config_warmup_input shapes[ENGINE_TENSORS];
	struct config_warmup only_shapes = { .input = shapes };
	for (unsigned i = 0; w && i < w->inputs && i < ENGINE_TENSORS; i++) {
		shapes[i] = w->input[i];
		shapes[i].random |= *shapes[i].file != 0;
		shapes[i].file = "";
		only_shapes.inputs++;
	}
	for (uint32_t rows = 1; rows / 2 < most; rows *= 2) {
		const uint32_t n = MIN(rows, most);
		if ((rows > 1 && monotonic_ns() - began > most_ns) ||
			fill(s, model, v, &only_shapes, n, sample, &err) ||
			run(v, n, untypical(v) + WARM_TIMES, sample, &err))
			return;
	}
}

int warm_up(struct server *s, const char *model, struct version *v, struct error *err)
{
	struct sample *sample = xcalloc(1, sizeof *sample);
	int e = run_samples(s, model, v, sample, err);
	if (!e) {
		run_sizes(s, model, v, sample);
		e = engine_settle(v->loaded, err);
	}
	buf_free(&sample->data);
	free(sample);
	return e;
}
