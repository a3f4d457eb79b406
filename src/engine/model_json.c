/* Models that are files of JSON. */
#include <errno.h>
#include <string.h>

#include "engine/model_base.h"

static int read_spec(const json_t *row, struct tensor_spec *spec)
{
	const char *name, *type;
	int optional = 0;
	json_t *dims, *dim;
	size_t i;
	if (json_unpack((json_t *)row, "{s:s, s:s, s:o, s?b !}", "name", &name, "datatype", &type,
		    "shape", &dims, "optional", &optional))
		return -EINVAL;
	spec->type = dtype_find(slice_of(type));
	spec->optional = optional;
	if (!spec->type || !json_is_array(dims) || json_array_size(dims) > SHAPE_DIMS)
		return -EINVAL;
	json_array_foreach(dims, i, dim)
	{
		if (!json_is_integer(dim) || json_integer_value(dim) < -1)
			return -EINVAL;
		spec->shape.dims[spec->shape.n++] = json_integer_value(dim);
	}
	spec->name = xstrdup(name);
	return 0;
}

static int read_specs(const json_t *list, struct tensor_spec *spec, unsigned *n, const char *model,
	const char *what, struct error *err)
{
	if (!json_is_array(list) || json_array_size(list) > ENGINE_TENSORS ||
		!json_array_size(list))
		return error_set(err, -EINVAL, "model %s: '%s' is not a list of 1 to %d tensors",
			model, what, ENGINE_TENSORS);
	for (; *n < json_array_size(list); ++*n)
		if (read_spec(json_array_get(list, *n), &spec[*n]))
			return error_set(err, -EINVAL,
				"model %s: number %u of '%s' needs a name, a datatype and a shape",
				model, *n + 1, what);
	return 0;
}

int engine_read_specs(
	struct engine_model *m, const json_t *in, const json_t *out, struct error *err)
{
	const int e = read_specs(in, m->in, &m->ins, m->name, "inputs", err);
	return e ? e : read_specs(out, m->out, &m->outs, m->name, "outputs", err);
}

int engine_read_json(int fd, const char *path, const char *name, json_t **ret, struct error *err)
{
	struct buf file = { 0 };
	const int e = engine_read(fd, path, &file, err);
	if (e)
		return e;
	json_error_t why;
	*ret = json_loadb(file.v, file.n, 0, &why);
	buf_free(&file);
	return *ret ? 0
		    : error_set(
			      err, -EINVAL, "model %s: %s:%d: %s", name, path, why.line, why.text);
}
