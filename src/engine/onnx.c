/*
 * ONNX Runtime on the CPU.  A run gives it the caller's memory where an input is one aligned piece,
 * and a gathered copy elsewhere.  Outputs are ONNX Runtime's own values until engine_run_end().
 * Strings have another form there and are converted both ways.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/onnx_runtime.h"

struct onnx_model {
	struct engine_model base;
	struct ort_session *session;
	struct buf gathered[ENGINE_TENSORS];
};

/* The memory of one run's outputs. */
struct onnx_run {
	struct ort_value *value[ENGINE_TENSORS];
	struct buf text[ENGINE_TENSORS];
	unsigned n;
};

static void unload(struct engine_model *base)
{
	struct onnx_model *m = (struct onnx_model *)base;
	if (m->session)
		ort.ReleaseSession(m->session);
	for (unsigned i = 0; i < ENGINE_TENSORS; i++)
		buf_free(&m->gathered[i]);
	engine_model_fini(base);
	free(m);
}

static int load_on_cpu(const struct engine_options *o, const struct engine_config *c,
	const struct buf *file, const char *path, struct engine_model **ret, struct error *err)
{
	struct onnx_model *m = xcalloc(1, sizeof *m);
	engine_model_init(&m->base, &engine_onnx, c);
	m->base.bytes = file->n;
	struct ort_options *options;
	int e = onnx_options(o, c, path, &options, err);
	if (!e) {
		e = onnx_session(&m->base, file, path, options, true, &m->session, err);
		ort.ReleaseSessionOptions(options);
	}
	if (e)
		unload(&m->base);
	else
		*ret = &m->base;
	return e;
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	struct buf file = { 0 };
	int e = onnx_open(o, err);
	e = e ? e : engine_read(fd, path, &file, err);
	if (e)
		return e;
	const bool gpu =
		c->place == ENGINE_ON_GPU || (c->place == ENGINE_ANYWHERE && onnx_cuda_is_there(o));
	e = (gpu ? onnx_cuda_load : load_on_cpu)(o, c, &file, path, ret, err);
	buf_free(&file);
	return e;
}

/* Elements of BYTES, in pieces, as strings. */
static int fill_strings(const struct tensor_spec *spec, const struct engine_input *in,
	struct ort_value *value, const char *name, struct error *err)
{
	uint64_t want = 0;
	size_t n = 0;
	shape_elements(&in->shape, &want);
	for (unsigned p = 0; p < in->pieces; p++) {
		const char *at = in->piece[p].data, *end = at + in->piece[p].bytes;
		for (uint32_t length; at < end; at += length, n++) {
			if (n == want || end - at < (ptrdiff_t)sizeof length)
				goto wrong;
			memcpy(&length, at, sizeof length);
			at += sizeof length;
			if (length > (size_t)(end - at))
				goto wrong;
			char *text = NULL;
			const int e = ort_check(
				ort.GetResizedStringTensorElementBuffer(value, n, length, &text),
				name, spec->name, err);
			if (e)
				return e;
			if (length)
				memcpy(text, at, length);
		}
	}
	if (n == want)
		return 0;
wrong:
	return error_set(err, -EINVAL,
		"model %s: the bytes of input %s are not %llu elements with a length before each",
		name, spec->name, (unsigned long long)want);
}

/* Puts all rows of an input behind each other, as their type must be. */
static void *gather(struct buf *b, const struct engine_input *in)
{
	static char nothing[16];
	const size_t each = dtype_rows[in->type].bytes;
	if (in->pieces == 1 && in->piece->bytes && (uintptr_t)in->piece->data % each == 0)
		return (void *)in->piece->data; /* which ONNX Runtime only reads */
	b->n = 0;
	for (unsigned i = 0; i < in->pieces; i++)
		buf_put(b, in->piece[i].data, in->piece[i].bytes);
	return b->n ? b->v : nothing;
}

static int bind_input(struct onnx_model *m, unsigned i, const struct engine_input *in,
	struct ort_value **ret, struct error *err)
{
	const struct tensor_spec *spec = &m->base.in[i];
	const char *name = m->base.name;
	const int type = dtype_rows[in->type].onnx;
	uint64_t bytes = 0;
	if (in->type == DTYPE_BYTES) {
		const int e = ort_check(ort.CreateTensorAsOrtValue(runtime.allocator,
						in->shape.dims, in->shape.n, type, ret),
			name, spec->name, err);
		return e ? e : fill_strings(spec, in, *ret, name, err);
	}
	shape_bytes(&in->shape, in->type, &bytes);
	return ort_check(
		ort.CreateTensorWithDataAsOrtValue(runtime.memory, gather(&m->gathered[i], in),
			bytes, in->shape.dims, in->shape.n, type, ret),
		name, spec->name, err);
}

static int read_strings(struct ort_value *value, struct engine_output *out, size_t n, struct buf *b,
	const char *name, const char *what, struct error *err)
{
	size_t bytes = 0;
	int e = ort_check(ort.GetStringTensorDataLength(value, &bytes), name, what, err);
	if (e)
		return e;
	char *text = xmalloc(bytes + 1);
	size_t *offset = xcalloc(n + 1, sizeof *offset);
	if (n)
		e = ort_check(
			ort.GetStringTensorContent(value, text, bytes, offset, n), name, what, err);
	offset[n] = bytes;
	for (size_t i = 0; i < n && !e; i++) {
		const uint32_t length = (uint32_t)(offset[i + 1] - offset[i]);
		buf_put(b, &length, sizeof length);
		buf_put(b, text + offset[i], length);
	}
	free_all(offset, text);
	out->data = b->v;
	out->bytes = b->n;
	return e;
}

static int read_output(struct ort_value *value, const struct tensor_spec *spec,
	struct engine_output *out, struct buf *b, const char *name, struct error *err)
{
	struct ort_tensor *tensor = NULL;
	uint64_t n = 0;
	void *data = NULL;
	int e = ort_check(ort.GetTensorTypeAndShape(value, &tensor), name, spec->name, err);
	if (e)
		return e;
	e = onnx_read_shape(tensor, &out->shape, name, spec->name, err);
	ort.ReleaseTensorTypeAndShapeInfo(tensor);
	e = e ? e : shape_elements(&out->shape, &n);
	if (e)
		return e;
	out->type = spec->type;
	if (spec->type == DTYPE_BYTES)
		return read_strings(value, out, n, b, name, spec->name, err);
	e = ort_check(ort.GetTensorMutableData(value, &data), name, spec->name, err);
	out->data = data;
	out->bytes = n * dtype_rows[spec->type].bytes;
	return e;
}

static void end(struct engine_model *m, struct engine_run *run)
{
	struct onnx_run *own = run->own;
	for (unsigned i = 0; i < own->n; i++) {
		if (own->value[i])
			ort.ReleaseValue(own->value[i]);
		buf_free(&own->text[i]);
	}
	free(own);
	run->own = NULL;
}

static int run_bound(struct onnx_model *m, struct engine_run *run, const char *const *in_name,
	struct ort_value *const *in, unsigned ins, struct error *err)
{
	struct onnx_run *own = xcalloc(1, sizeof *own);
	const char *out_name[ENGINE_TENSORS];
	for (unsigned i = 0; i < m->base.outs; i++)
		if (run->out[i].wanted)
			out_name[own->n++] = m->base.out[i].name;
	int e = ort_check(ort.Run(m->session, NULL, in_name, (const struct ort_value *const *)in,
				  ins, out_name, own->n, own->value),
		m->base.name, "the run failed", err);
	for (unsigned i = 0, k = 0; i < m->base.outs && !e; i++) {
		if (!run->out[i].wanted)
			continue;
		e = read_output(own->value[k], &m->base.out[i], &run->out[i], &own->text[k],
			m->base.name, err);
		k++;
	}
	run->own = own;
	if (e)
		end(&m->base, run);
	return e;
}

static int run(struct engine_model *base, struct engine_run *r, struct error *err)
{
	struct onnx_model *m = (struct onnx_model *)base;
	const char *in_name[ENGINE_TENSORS];
	struct ort_value *in[ENGINE_TENSORS];
	unsigned ins = 0;
	int e = 0;
	for (unsigned i = 0; i < base->ins && !e; i++) {
		if (!r->in[i].given)
			continue;
		in[ins] = NULL;
		in_name[ins] = base->in[i].name;
		e = bind_input(m, i, &r->in[i], &in[ins], err);
		ins++;
	}
	e = e ? e : run_bound(m, r, in_name, in, ins, err);
	while (ins--)
		if (in[ins])
			ort.ReleaseValue(in[ins]);
	return e;
}

const struct engine engine_onnx = {
	.name = "onnx",
	.platforms = " onnxruntime onnxruntime_onnx ",
	.file = "model.onnx",
	.put_version = onnx_put_version,
	.load = load,
	.run = run,
	.end = end,
	.unload = unload,
};
