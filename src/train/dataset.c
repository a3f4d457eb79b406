/* Reads launches from CSV files, and keeps each kernel and name once. */
#include "train/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "predict/key.h"

/* Each column, and whether a table needs it. The columns of args, grid and block stand side by
 * side. */
#define COLUMN_LIST(X)                                                                             \
	X(trace, false)                                                                            \
	X(app, false)                                                                              \
	X(order, false)                                                                            \
	X(kernel, true)                                                                            \
	X(family, false)                                                                           \
	X(device, false)                                                                           \
	X(cc, false)                                                                               \
	X(sms, false)                                                                              \
	X(grid_x, true)                                                                            \
	X(grid_y, false)                                                                           \
	X(grid_z, false)                                                                           \
	X(block_x, true)                                                                           \
	X(block_y, false)                                                                          \
	X(block_z, false)                                                                          \
	X(smem_static, false)                                                                      \
	X(smem_dynamic, false)                                                                     \
	X(regs, false)                                                                             \
	X(local, false)                                                                            \
	X(key, false)                                                                              \
	X(args0, false)                                                                            \
	X(args1, false)                                                                            \
	X(args2, false)                                                                            \
	X(args3, false)                                                                            \
	X(args4, false)                                                                            \
	X(args5, false)                                                                            \
	X(args6, false)                                                                            \
	X(args7, false)                                                                            \
	X(flops, false)                                                                            \
	X(unit, false)                                                                             \
	X(bytes, false)                                                                            \
	X(contended, false)                                                                        \
	X(ns, false)

#define ENUMERATOR(name, needed) C_##name,
enum column { COLUMN_LIST(ENUMERATOR) COLUMNS };
#undef ENUMERATOR

#define ROW(name, needed) { #name, needed },
static const struct {
	const char *name;
	bool needed;
} columns[COLUMNS] = { COLUMN_LIST(ROW) };
#undef ROW

/* A file being read: where, and which column stands where. */
struct reader {
	const char *file;
	char *at, *end;
	unsigned line;
	int place[COLUMNS]; /* -1: no such column */
	struct csv_row row;
	struct error *err;
};

static int bad(const struct reader *r, const char *what)
{
	return error_set(r->err, -EINVAL, "%s, line %u: %s", r->file, r->line, what);
}

/* The next line that is not blank; 0: there is none, 1: there is. */
static int next_line(struct reader *r)
{
	while (r->at < r->end) {
		char *line = r->at, *newline = memchr(line, '\n', (size_t)(r->end - line));
		r->at = newline ? newline + 1 : r->end;
		r->line++;
		if (newline)
			*newline = '\0';
		const char *wrong = csv_split(line, &r->row);
		if (wrong)
			return bad(r, wrong);
		if (r->row.n > 1 || *r->row.field[0])
			return 1;
	}
	return 0;
}

static int take_header(struct reader *r)
{
	const int ret = next_line(r);
	if (ret <= 0)
		return ret ? ret : bad(r, "there is no line that names the columns");
	for (int c = 0; c < COLUMNS; c++) {
		r->place[c] = -1;
		for (int i = 0; i < r->row.n; i++)
			if (!strcmp(r->row.field[i], columns[c].name))
				r->place[c] = i;
		if (columns[c].needed && r->place[c] < 0)
			return error_set(r->err, -EINVAL,
				"%s, line %u: there is no column '%s', and kernel, grid_x and block_x "
				"are needed",
				r->file, r->line, columns[c].name);
	}
	return 0;
}

/* The field of a column, or NULL when it is empty or not there. */
static const char *field_of(const struct reader *r, enum column c)
{
	const int at = r->place[c];
	return at >= 0 && at < r->row.n && *r->row.field[at] ? r->row.field[at] : NULL;
}

static int bad_number(const struct reader *r, enum column c)
{
	return error_set(r->err, -EINVAL, "%s, line %u: %s '%.40s' is not a number that can be",
		r->file, r->line, columns[c].name, field_of(r, c));
}

/* A whole number; what is not there stays as it is. */
static int take_whole(
	const struct reader *r, enum column c, uint64_t most, uint64_t *io_value, bool *ret_has)
{
	const char *text = field_of(r, c);
	if (ret_has)
		*ret_has = text != NULL;
	if (!text)
		return 0;
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, 0);
	if (errno || *end || text[0] == '-' || value > most)
		return bad_number(r, c);
	*io_value = value;
	return 0;
}

static int take_u32(const struct reader *r, enum column c, uint32_t *io_value, bool *ret_has)
{
	uint64_t value = *io_value;
	const int ret = take_whole(r, c, UINT32_MAX, &value, ret_has);
	*io_value = (uint32_t)value;
	return ret;
}

static int take_real(const struct reader *r, enum column c, double *ret_value, bool *ret_has)
{
	const char *text = field_of(r, c);
	*ret_has = text != NULL;
	if (!text)
		return 0;
	char *end;
	const double value = strtod(text, &end);
	if (*end || !isfinite(value) || value < 0)
		return bad_number(r, c);
	/* a kernel of integers does 0 FLOPs, which bounds nothing; 0 ns is no time */
	*ret_has = value > 0;
	*ret_value = value;
	return 0;
}

/* "9.0", or 90 */
static int take_device(const struct reader *r, struct dataset *d)
{
	const char *cc = field_of(r, C_cc), *name = field_of(r, C_device);
	uint32_t sms = d->sms;
	int ret = take_u32(r, C_sms, &sms, NULL);
	if (ret)
		return ret;
	const struct occupancy_device *o = cc ? occupancy_device_named(cc, strlen(cc)) : NULL;
	if (cc && !o)
		return error_set(r->err, -EINVAL,
			"%s, line %u: compute capability '%.20s' is not known", r->file, r->line,
			cc);
	const unsigned number = o ? o->major * 10u + o->minor : d->cc;
	if (name && !d->device[0] && strlen(name) < sizeof d->device)
		memcpy(d->device, name, strlen(name) + 1);
	if ((d->cc && number != d->cc) || (d->sms && sms != d->sms) ||
		(name && strcmp(name, d->device)))
		return bad(r, "this launch ran on another device than those before: a model is for "
			      "one kind of device");
	d->cc = number;
	d->sms = sms;
	return 0;
}

static int take_dims(const struct reader *r, struct predict_launch *l)
{
	int ret = 0;
	for (int i = 0; i < 3 && !ret; i++) {
		l->grid[i] = l->block[i] = 1;
		ret = take_u32(r, C_grid_x + i, &l->grid[i], NULL);
		ret = ret ? ret : take_u32(r, C_block_x + i, &l->block[i], NULL);
	}
	return ret;
}

/* Arguments up to the first that is empty. */
static int take_args(const struct reader *r, struct predict_launch *l)
{
	for (; l->args < PREDICT_ARGS; l->args++) {
		bool has;
		const int ret =
			take_whole(r, C_args0 + l->args, UINT64_MAX, &l->arg[l->args], &has);
		if (ret || !has)
			return ret;
	}
	return 0;
}

static enum gpu_unit unit_of(const char *text)
{
	for (int unit = 0; text && unit < GPU_UNITS; unit++)
		if (!strcmp(text, gpu_unit_word((enum gpu_unit)unit)))
			return (enum gpu_unit)unit;
	return GPU_FP32;
}

static int take_kernel(const struct reader *r, struct dataset *d, struct predict_sample *s)
{
	const char *name = field_of(r, C_kernel), *family = field_of(r, C_family);
	struct predict_kernel k = { 0 };
	if (!name)
		return bad(r, "the kernel has no name");
	int ret = take_u32(r, C_regs, &k.regs, &k.has_regs);
	ret = ret ? ret : take_u32(r, C_smem_static, &k.smem_static_bytes, NULL);
	ret = ret ? ret : take_u32(r, C_local, &k.local_bytes, &k.has_local);
	if (ret)
		return ret;
	predict_kernel_name(&k, name, 0);
	if (family && predict_family_find(family))
		k.family = predict_family_find(family);
	s->name = dataset_name(d, name);
	s->launch.kernel = dataset_kernel(d, &k);
	return 0;
}

static int take_row(const struct reader *r, struct dataset *d)
{
	struct predict_sample s = { .order = d->samples.n };
	struct predict_launch *l = &s.launch;
	const char *app = field_of(r, C_app);
	uint64_t contended = 0, key = 0;
	bool has_time, has_key = false;
	int ret = take_device(r, d);
	ret = ret ? ret : take_kernel(r, d, &s);
	ret = ret ? ret : take_dims(r, l);
	ret = ret ? ret : take_args(r, l);
	ret = ret ? ret : take_u32(r, C_smem_dynamic, &l->smem_dynamic_bytes, NULL);
	ret = ret ? ret : take_real(r, C_flops, &l->flops, &l->has_flops);
	ret = ret ? ret : take_real(r, C_bytes, &l->bytes, &l->has_bytes);
	ret = ret ? ret : take_whole(r, C_contended, 1, &contended, NULL);
	ret = ret ? ret : take_whole(r, C_key, UINT64_MAX, &key, &has_key);
	ret = ret ? ret : take_whole(r, C_order, UINT64_MAX, &s.order, NULL);
	ret = ret ? ret : take_real(r, C_ns, &s.measured_ns, &has_time);
	if (ret)
		return ret;
	if (!has_time) {
		d->without_time++;
		return 0;
	}
	app = app ? app : field_of(r, C_trace);
	s.app = dataset_app(d, app ? app : "");
	l->unit = unit_of(field_of(r, C_unit));
	l->contended = contended;
	l->key = predict_key(l);
	if (has_key)
		l->key = predict_key_of_args(l->key, key);
	*array_push(&d->samples) = s;
	return 0;
}

int dataset_csv(
	struct dataset *d, const char *text, size_t bytes, const char *file, struct error *err)
{
	struct reader r = { .file = file, .at = xmalloc(bytes + 1), .err = err };
	char *copy = r.at;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	r.end = copy + bytes;
	int ret = take_header(&r);
	while (!ret && (ret = next_line(&r)) > 0)
		ret = take_row(&r, d);
	free(copy);
	return ret;
}

uint32_t dataset_name(struct dataset *d, const char *name)
{
	return (uint32_t)(MAP_ROW(&d->name_map, map_text_key(name, strlen(name), 0), &d->names,
				  xstrdup(name)) -
			  d->names.v);
}

uint32_t dataset_app(struct dataset *d, const char *name)
{
	return map_number(&d->app_map, map_text_key(name, strlen(name), 0));
}

const struct predict_kernel *dataset_kernel(struct dataset *d, const struct predict_kernel *k)
{
	const struct map_key key = MAP_KEY(k->id, (uint64_t)k->regs << 32 | k->smem_static_bytes,
		k->local_bytes, k->has_regs | k->has_local << 1 | (uint64_t)k->family << 2);
	struct predict_kernel **own =
		MAP_ROW(&d->kernel_map, key, &d->kernels, xcalloc(1, sizeof *k));
	**own = *k;
	return *own;
}

void dataset_fini(struct dataset *d)
{
	for (size_t i = 0; i < d->kernels.n; i++)
		free(d->kernels.v[i]);
	for (size_t i = 0; i < d->names.n; i++)
		free(d->names.v[i]);
	array_free(&d->kernels, &d->names, &d->samples);
	map_fini(&d->name_map, &d->app_map, &d->kernel_map);
}
