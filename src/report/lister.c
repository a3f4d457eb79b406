/* See lister.h. */
#include "report/lister.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

struct json *lister_begin_row(struct lister *l)
{
	rewind(l->out);
	json_init(&l->j, l->out);
	l->j.pretty = false;
	json_begin_object(&l->j, NULL);
	return &l->j;
}

int lister_end_row(struct lister *l)
{
	json_end_object(&l->j);
	if (fflush(l->out))
		return -ENOMEM;
	return l->to->row(l->to->context, l->text, l->bytes);
}

void values_add(struct values *v, uint64_t ns)
{
	hist_add(&v->hist, ns);
	spread_add(&v->spread, ns);
	v->total += ns;
}

void values_put(struct json *j, const char *prefix, const struct values *v)
{
	const uint64_t n = v->hist.count;
	char key[48];
	const struct {
		const char *name;
		bool known;
		uint64_t ns;
	} rows[] = { { "total", n, v->total },
		{ "mean", n, n ? (uint64_t)(v->spread.mean + 0.5) : 0 },
		{ "p50", n, hist_at(&v->hist, 0.5) }, { "p90", n, hist_at(&v->hist, 0.9) },
		{ "p99", n, hist_at(&v->hist, 0.99) }, { "min", n, v->hist.min },
		{ "max", n, v->hist.max },
		{ "stddev", n > 1, (uint64_t)(spread_deviation(&v->spread) + 0.5) } };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		snprintf(key, sizeof key, "%s_%s_ns", prefix, rows[i].name);
		json_u64_or_null(j, key, rows[i].known, rows[i].ns);
	}
}

uint64_t lister_since(const struct lister *l, uint64_t ns)
{
	const uint64_t start = l->r->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

const char *lister_name(struct lister *l, uint32_t name)
{
	return demangled_name(&l->names, name, "(no name)");
}

const char *lister_string(struct lister *l, uint32_t process, uint32_t id)
{
	return lister_name(l, meta_find_string(&l->r->meta, process, id));
}

void lister_put_triple(struct json *j, const char *key, bool known, const uint32_t *v)
{
	if (!known)
		return json_put_null(j, key);
	json_begin_array(j, key);
	for (int i = 0; i < 3; i++)
		json_u64(j, NULL, v[i]);
	json_end_array(j);
}
