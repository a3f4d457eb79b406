/* Prints the conditions of a recording. */
#include "report/provenance.h"

#include <inttypes.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/number.h"
#include "base/text.h"

#define VALUES_MOST 200u

bool provenance_fact(const struct report *r, const char *key, char *text, size_t size)
{
	struct bounded b = { .to = text, .size = size };
	const size_t n = strlen(key);
	for (size_t i = 0; i < r->meta.facts.n; i++) {
		const char *fact = r->meta.names.v[r->meta.facts.v[i].text].text;
		if (strncmp(fact, key, n) == 0 && fact[n] == ' ')
			bounded_printf(&b, "%s%s", b.used ? ", " : "", fact + n + 1);
	}
	bounded_end(&b);
	return b.used;
}

/* If another tool or an old Weir recorded it, the chunks tell. */
bool provenance_asked_gpu(const struct report *r)
{
	char text[VALUES_MOST];
	return provenance_fact(r, "gpu", text, sizeof text) ||
	       (!provenance_fact(r, "weir", text, sizeof text) &&
		       load_relaxed(&r->trace->header.optional) & FEATURE_DEVICE);
}

bool provenance_is_said(const struct report *r, size_t i)
{
	const struct meta_device *d = &r->meta.devices.v[i];
	for (size_t k = 0; k < i; k++) {
		const struct meta_device *e = &r->meta.devices.v[k];
		if (e->device == d->device && e->name == d->name &&
			!memcmp(e->uuid, d->uuid, sizeof d->uuid))
			return true;
	}
	return false;
}

double provenance_tick_rate(const struct trace *t)
{
	const uint64_t second = 1000000000u, ns = trace_span_ns(t, second);
	return t->clock.known && t->header.clock == CLOCK_IS_TSC && ns
		       ? (double)second / (double)ns * 1e9
		       : 0;
}

bool provenance_part(const struct report *r, char *text, size_t size)
{
	struct bounded b = { .to = text, .size = size };
	char value[VALUES_MOST];
	struct number delay;
	if (provenance_fact(r, "capture", value, sizeof value))
		bounded_printf(&b, "--capture=%s", value);
	if (provenance_fact(r, "delay", value, sizeof value))
		bounded_printf(&b, "%s--delay of %s", b.used ? ", " : "",
			number_ns(&delay, strtoull(value, NULL, 10)));
	bounded_end(&b);
	return b.used;
}

static void put_line(const struct text_page *p, const char *text)
{
	fprintf(p->out, "%s  ", p->dim);
	text_put_safe(p->out, text);
	fprintf(p->out, "%s\n", p->plain);
}

static void put_device(const struct report *r, const struct text_page *p, size_t i)
{
	const struct meta_device *d = &r->meta.devices.v[i];
	struct number bytes;
	char text[400];
	struct bounded b = BOUNDED(text);
	bounded_printf(&b, "device %" PRIu32 ": %.100s", d->device, r->meta.names.v[d->name].text);
	if (d->multiprocessors)
		bounded_printf(&b, ", %" PRIu32 " SMs", d->multiprocessors);
	if (d->multiprocessors && d->clock_khz)
		bounded_printf(&b, " at up to %" PRIu64 " MHz", d->clock_khz / 1000);
	if (d->memory_bytes)
		bounded_printf(&b, ", %s", number_bytes(&bytes, d->memory_bytes));
	if (d->memory_clock_khz)
		bounded_printf(&b, " at %" PRIu64 " MHz", d->memory_clock_khz / 1000);
	bounded_end(&b);
	put_line(p, text);
}

void provenance_put_text(const struct report *r, const struct text_page *p)
{
	static const struct {
		const char *key, *name;
	} facts[] = { { "driver", "driver " }, { "cuda", "CUDA " }, { "torch", "PyTorch " },
		{ "python", "Python " }, { "weir", "Weir " }, { "level", "level " } };
	const double hz = provenance_tick_rate(r->trace);
	char line[1400], value[VALUES_MOST];
	struct bounded b = BOUNDED(line);
	for (size_t i = 0; i < r->meta.devices.n; i++)
		if (!provenance_is_said(r, i))
			put_device(r, p, i);
	for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
		if (provenance_fact(r, facts[i].key, value, sizeof value))
			bounded_printf(&b, "%s%s%s", b.used ? ", " : "", facts[i].name, value);
	if (b.used && hz > 0)
		bounded_printf(&b, ", clock TSC at %.3f GHz", hz / 1e9);
	bounded_end(&b);
	if (b.used)
		put_line(p, line);
}

static const struct probe {
	const char *function, *error, *why;
} probes[] = {
#include "probe_rows.h"
};

/* "cuCtxGetDevice" is cuCtxGetDevice_v2, too. */
static bool is_function(const char *name, const char *function)
{
	const size_t n = strlen(function);
	return !strcmp(function, "*") ||
	       (!strncmp(name, function, n) && (!name[n] || name[n] == '_'));
}

const char *failure_probe(const struct report *r, const struct failure_row *f)
{
	struct fn_name room;
	const char *name = report_fn_name(r, f->fn_id, &room);
	const char *error = decode_result(schema_find(&r->trace->schema, f->fn_id), f->code);
	for (size_t i = 0; error && i < sizeof probes / sizeof *probes; i++)
		if (!strcmp(probes[i].error, error) && is_function(name, probes[i].function))
			return probes[i].why;
	return NULL;
}

uint64_t failures_probed(const struct report *r)
{
	uint64_t n = 0;
	for (size_t i = 0; i < r->failure_rows.n; i++)
		if (failure_probe(r, &r->failure_rows.v[i]))
			n += r->failure_rows.v[i].count;
	return n;
}
