/* Rows of launches, from CSV: see dataset.h. */
#include "train/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
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

#define MOST_FIELDS 256
#define FIELD_BYTES 8192 /* of one line, quotes taken away */

struct field {
	const char *text; /* terminated */
	size_t bytes;
};

/* A file being read: where, and which column stands where. */
struct reader {
	const char *file, *at, *end;
	unsigned line;
	int place[COLUMNS]; /* -1: no such column */
	int fields;
	struct field field[MOST_FIELDS];
	char text[FIELD_BYTES];
	struct error *err;
};

static int bad(const struct reader *r, const char *what)
{
	return error_set(r->err, -EINVAL, "%s, line %u: %s", r->file, r->line, what);
}

/* One field into out, up to the comma or the end of the line behind it. */
static const char *take_field(
	const char *at, const char *end, char *out, char *out_end, size_t *ret_bytes)
{
	const bool quoted = at < end && *at == '"';
	char *to = out;
	at += quoted;
	while (at < end && (quoted || *at != ',')) {
		if (quoted && *at == '"' && (++at == end || *at != '"'))
			break;
		if (to == out_end)
			return NULL;
		*to++ = *at++;
	}
	if (to == out_end || (at < end && *at != ','))
		return NULL;
	*to = 0;
	*ret_bytes = (size_t)(to - out);
	return at;
}

static int split(struct reader *r, const char *at, const char *end)
{
	char *out = r->text;
	r->fields = 0;
	for (;;) {
		struct field *f = &r->field[r->fields];
		f->text = out;
		at = take_field(at, end, out, r->text + sizeof r->text, &f->bytes);
		if (!at)
			return bad(r, "a field has text behind its closing quote, or the line is "
				      "longer than 8192 bytes");
		out += f->bytes + 1;
		r->fields++;
		if (at == end)
			return 0;
		at++;
		if (r->fields == MOST_FIELDS || out == r->text + sizeof r->text)
			return bad(r, "the line has more than 256 fields or 8192 bytes");
	}
}

/* The next line that is not blank; 0: there is none, 1: there is. */
static int next_line(struct reader *r)
{
	while (r->at < r->end) {
		const char *start = r->at;
		const char *newline = memchr(start, '\n', (size_t)(r->end - start));
		const char *end = newline ? newline : r->end;
		r->at = newline ? newline + 1 : r->end;
		r->line++;
		if (end > start && end[-1] == '\r')
			end--;
		if (end == start)
			continue;
		const int ret = split(r, start, end);
		return ret ? ret : 1;
	}
	return 0;
}

static int take_header(struct reader *r)
{
	static const char mark[] = "\xef\xbb\xbf";
	if (r->end - r->at >= 3 && !memcmp(r->at, mark, 3))
		r->at += 3;
	const int ret = next_line(r);
	if (ret <= 0)
		return ret ? ret : bad(r, "there is no line that names the columns");
	for (int c = 0; c < COLUMNS; c++) {
		r->place[c] = -1;
		for (int i = 0; i < r->fields; i++)
			if (!strcmp(r->field[i].text, columns[c].name))
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
static const struct field *field_of(const struct reader *r, enum column c)
{
	const int at = r->place[c];
	return at >= 0 && at < r->fields && r->field[at].bytes ? &r->field[at] : NULL;
}

static int bad_number(const struct reader *r, enum column c)
{
	return error_set(r->err, -EINVAL, "%s, line %u: %s '%.40s' is not a number that can be",
		r->file, r->line, columns[c].name, field_of(r, c)->text);
}

/* A whole number; what is not there stays as it is. */
static int take_whole(
	const struct reader *r, enum column c, uint64_t most, uint64_t *io_value, bool *ret_has)
{
	const struct field *f = field_of(r, c);
	if (ret_has)
		*ret_has = f != NULL;
	if (!f)
		return 0;
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(f->text, &end, 0);
	if (errno || *end || f->text[0] == '-' || value > most)
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
	const struct field *f = field_of(r, c);
	*ret_has = f != NULL;
	if (!f)
		return 0;
	char *end;
	const double value = strtod(f->text, &end);
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
	const struct field *cc = field_of(r, C_cc), *name = field_of(r, C_device);
	uint32_t sms = d->sms;
	int ret = take_u32(r, C_sms, &sms, NULL);
	if (ret)
		return ret;
	const struct occupancy_device *o = cc ? occupancy_device_named(cc->text, cc->bytes) : NULL;
	if (cc && !o)
		return error_set(r->err, -EINVAL,
			"%s, line %u: compute capability '%.20s' is not known", r->file, r->line,
			cc->text);
	const unsigned number = o ? o->major * 10u + o->minor : d->cc;
	if (name && !d->device[0] && name->bytes < sizeof d->device)
		memcpy(d->device, name->text, name->bytes + 1);
	if ((d->cc && number != d->cc) || (d->sms && sms != d->sms) ||
		(name && strcmp(name->text, d->device)))
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
		if (!ret)
			ret = take_u32(r, C_block_x + i, &l->block[i], NULL);
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

static enum gpu_unit unit_of(const struct field *f)
{
	for (int unit = 0; f && unit < GPU_UNITS; unit++)
		if (!strcmp(f->text, gpu_unit_word((enum gpu_unit)unit)))
			return (enum gpu_unit)unit;
	return GPU_FP32;
}

static int take_kernel(const struct reader *r, struct dataset *d, struct predict_sample *s)
{
	const struct field *name = field_of(r, C_kernel), *family = field_of(r, C_family);
	struct predict_kernel k = { 0 };
	if (!name)
		return bad(r, "the kernel has no name");
	int ret = take_u32(r, C_regs, &k.regs, &k.has_regs);
	if (!ret)
		ret = take_u32(r, C_smem_static, &k.smem_static_bytes, NULL);
	if (!ret)
		ret = take_u32(r, C_local, &k.local_bytes, &k.has_local);
	if (ret)
		return ret;
	predict_kernel_name(&k, name->text, 0);
	if (family && predict_family_find(family->text))
		k.family = predict_family_find(family->text);
	s->name = dataset_name(d, name->text, name->bytes);
	s->launch.kernel = dataset_kernel(d, &k);
	return 0;
}

static int take_row(const struct reader *r, struct dataset *d)
{
	struct predict_sample s = { .order = d->samples.n };
	struct predict_launch *l = &s.launch;
	const struct field *app = field_of(r, C_app);
	uint64_t contended = 0, key = 0;
	bool has_time, has_key = false;
	int ret = take_device(r, d);
	if (!ret)
		ret = take_kernel(r, d, &s);
	if (!ret)
		ret = take_dims(r, l);
	if (!ret)
		ret = take_args(r, l);
	if (!ret)
		ret = take_u32(r, C_smem_dynamic, &l->smem_dynamic_bytes, NULL);
	if (!ret)
		ret = take_real(r, C_flops, &l->flops, &l->has_flops);
	if (!ret)
		ret = take_real(r, C_bytes, &l->bytes, &l->has_bytes);
	if (!ret)
		ret = take_whole(r, C_contended, 1, &contended, NULL);
	if (!ret)
		ret = take_whole(r, C_key, UINT64_MAX, &key, &has_key);
	if (!ret)
		ret = take_whole(r, C_order, UINT64_MAX, &s.order, NULL);
	if (!ret)
		ret = take_real(r, C_ns, &s.measured_ns, &has_time);
	if (ret)
		return ret;
	if (!has_time) {
		d->without_time++;
		return 0;
	}
	app = app ? app : field_of(r, C_trace);
	s.app = dataset_app(d, app ? app->text : "", app ? app->bytes : 0);
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
	struct reader *r = xcalloc(1, sizeof *r);
	*r = (struct reader){ .file = file, .at = text, .end = text + bytes, .err = err };
	int ret = take_header(r);
	while (!ret) {
		const int more = next_line(r);
		if (more <= 0) {
			ret = more;
			break;
		}
		ret = take_row(r, d);
	}
	free(r);
	return ret;
}

/* The number of a text in a list that grows. */
static uint32_t intern(
	struct map *map, char ***v, size_t *n, size_t *room, const char *text, size_t bytes)
{
	const uint64_t h = hash_bytes(text, bytes);
	uint32_t *at = map_get(map, MAP_KEY(h, bytes));
	if (*at != MAP_NONE)
		return *at;
	array_reserve_((void **)v, room, *n, 1, sizeof(char *));
	(*v)[*n] = xstrndup(text, bytes);
	return *at = (uint32_t)(*n)++;
}

uint32_t dataset_name(struct dataset *d, const char *name, size_t bytes)
{
	return intern(&d->name_map, &d->names.v, &d->names.n, &d->names.room, name, bytes);
}

uint32_t dataset_app(struct dataset *d, const char *name, size_t bytes)
{
	return intern(&d->app_map, &d->apps.v, &d->apps.n, &d->apps.room, name, bytes);
}

const struct predict_kernel *dataset_kernel(struct dataset *d, const struct predict_kernel *k)
{
	uint32_t *at = map_get(
		&d->kernel_map, MAP_KEY(k->id, (uint64_t)k->regs << 32 | k->smem_static_bytes,
					k->local_bytes, k->has_regs | k->has_local << 1));
	if (*at != MAP_NONE)
		return d->kernels.v[*at];
	struct predict_kernel *copy = xmalloc(sizeof *copy);
	struct predict_kernel **slot = array_push(&d->kernels);
	*copy = *k;
	*slot = copy;
	*at = (uint32_t)d->kernels.n - 1;
	return copy;
}

void dataset_fini(struct dataset *d)
{
	for (size_t i = 0; i < d->kernels.n; i++)
		free(d->kernels.v[i]);
	for (size_t i = 0; i < d->names.n; i++)
		free(d->names.v[i]);
	for (size_t i = 0; i < d->apps.n; i++)
		free(d->apps.v[i]);
	array_free(&d->kernels, &d->names, &d->apps, &d->samples);
	map_fini(&d->name_map, &d->app_map, &d->kernel_map);
}
