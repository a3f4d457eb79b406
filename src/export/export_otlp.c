/*
 * Writes requests to a server of models as spans of OpenTelemetry, in OTLP's JSON
 * (opentelemetry.io, trace.proto): a span for each request, in the trace of its client if that sent
 * a traceparent, and a span inside for each of its times in order.  The GPUs' work for it is in
 * attributes.
 */
#include "export/export.h"

#include <string.h>

#include "base/hash.h"
#include "model/request_times.h"
#include "trace/activity.h"

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };
enum span_status { STATUS_UNSET = 0, STATUS_ERROR = 2 };

struct otlp {
	struct export *x;
	struct requests all;
	struct json j;
};

static void put_hex(struct json *j, const char *key, const uint8_t *v, size_t n)
{
	char text[33];
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", v[i]);
	json_str(j, key, text);
}

static void put_number(struct json *j, const char *key, uint64_t value)
{
	char text[24]; /* JSON of protobuf has 64 bits as text */
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	json_str(j, key, text);
}

static void attribute(struct json *j, const char *key)
{
	json_begin_object(j, NULL);
	json_str(j, "key", key);
	json_begin_object(j, "value");
}

static void end_attribute(struct json *j)
{
	json_end_object(j);
	json_end_object(j);
}

static void put_int(struct json *j, const char *key, uint64_t value)
{
	attribute(j, key);
	put_number(j, "intValue", value);
	end_attribute(j);
}

static void put_text(struct json *j, const char *key, const char *value)
{
	attribute(j, key);
	json_str(j, "stringValue", value);
	end_attribute(j);
}

/* Numbers that the server did not draw follow from what tells the request from all others. */
static void make_id(const struct otlp *o, const struct request_row *q, unsigned which, uint8_t *to)
{
	const struct trace_process *p = &o->x->trace->processes.v[q->process];
	const uint64_t h = hash_mix(
		hash_mix(o->x->trace->header.start.real_ns ^ p->pid) + q->q.id * 64 + which + 1);
	memcpy(to, &h, sizeof h);
}

static bool has_parent(const struct request_row *q)
{
	static const uint8_t none[sizeof q->q.trace_id];
	return memcmp(q->q.trace_id, none, sizeof none) != 0;
}

static void begin_span(struct otlp *o, const struct request_row *q, const uint8_t *parent,
	unsigned which, const char *name)
{
	uint8_t trace[16], span[8];
	if (has_parent(q)) {
		memcpy(trace, q->q.trace_id, sizeof trace);
	} else {
		make_id(o, q, 62, trace);
		make_id(o, q, 63, trace + 8);
	}
	make_id(o, q, which, span);
	json_begin_object(&o->j, NULL);
	put_hex(&o->j, "traceId", trace, sizeof trace);
	put_hex(&o->j, "spanId", span, sizeof span);
	if (parent)
		put_hex(&o->j, "parentSpanId", parent, 8);
	json_str(&o->j, "name", name);
	json_u64(&o->j, "kind", which ? SPAN_INTERNAL : SPAN_SERVER);
}

static void put_times(struct otlp *o, uint64_t from, uint64_t to)
{
	const struct clock_pair *start = &o->x->trace->header.start;
	put_number(&o->j, "startTimeUnixNano", from - start->mono_ns + start->real_ns);
	put_number(&o->j, "endTimeUnixNano", to - start->mono_ns + start->real_ns);
}

static const char *model_of(struct otlp *o, const struct request_row *q)
{
	return demangled_name(&o->x->names, q->model, "unknown model");
}

static void put_attributes(struct otlp *o, const struct request_row *q)
{
	struct json *j = &o->j;
	char key[40];
	json_begin_array(j, "attributes");
	put_int(j, "weir.request", q->q.id);
	put_text(j, "weir.outcome", request_outcome_name(q->q.outcome));
	put_text(j, "weir.cause", request_part_name(request_cause(q)));
	if (q->model != META_NONE)
		put_text(j, "weir.model", model_of(o, q));
	put_int(j, "weir.rows", q->q.rows);
	if (q->q.batch) {
		put_int(j, "weir.batch", q->q.batch);
		put_int(j, "weir.batch_rows", q->q.batch_rows);
	}
	for (int i = 0; i < REQUEST_PARTS; i++) {
		if (!requests_tell(&o->all, (enum request_part)i))
			continue;
		snprintf(key, sizeof key, "weir.%s_ns", request_part_name((enum request_part)i));
		put_int(j, key, q->part[i]);
	}
	json_end_array(j);
}

static void put_stages(struct otlp *o, const struct request_row *q, const uint8_t *parent)
{
	static const char *const names[REQUEST_STAMPS] = { NULL, "socket", "parse", "queue",
		"gather", "device", "answer" };
	uint64_t last = q->q.ns[0];
	for (unsigned i = 1; i < REQUEST_STAMPS; i++) {
		const uint64_t ns = q->q.ns[i];
		if (ns < last)
			continue;
		begin_span(o, q, parent, i, names[i]);
		put_times(o, last, ns);
		json_end_object(&o->j);
		last = ns;
	}
}

static void put_request(struct otlp *o, const struct request_row *q)
{
	uint8_t span[8];
	const bool failed = q->q.outcome == REQUEST_FAILED || q->q.outcome == REQUEST_SHED ||
			    q->q.outcome == REQUEST_REFUSED;
	make_id(o, q, 0, span);
	begin_span(o, q, has_parent(q) ? q->q.span_id : NULL, 0, model_of(o, q));
	put_times(o, q->q.ns[REQUEST_BEGAN], q->q.ns[REQUEST_BEGAN] + request_total(q));
	put_attributes(o, q);
	json_begin_object(&o->j, "status");
	json_u64(&o->j, "code", failed ? STATUS_ERROR : STATUS_UNSET);
	json_end_object(&o->j);
	json_end_object(&o->j);
	put_stages(o, q, span);
}

static void put_server(struct otlp *o, uint32_t process)
{
	struct json *j = &o->j;
	json_begin_object(j, NULL);
	json_begin_object(j, "resource");
	json_begin_array(j, "attributes");
	put_text(j, "service.name", "weir serve");
	put_text(j, "host.name", o->x->trace->header.host);
	put_int(j, "process.pid", o->x->trace->processes.v[process].pid);
	json_end_array(j);
	json_end_object(j);
	json_begin_array(j, "scopeSpans");
	json_begin_object(j, NULL);
	json_begin_object(j, "scope");
	json_str(j, "name", "weir");
	json_end_object(j);
	json_begin_array(j, "spans");
	for (size_t i = 0; i < o->all.v.n; i++)
		if (o->all.v.v[i].process == process)
			put_request(o, &o->all.v.v[i]);
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
}

static bool is_server(const struct requests *all, uint32_t process)
{
	for (size_t i = 0; i < all->v.n; i++)
		if (all->v.v[i].process == process)
			return true;
	return false;
}

static int whole(struct export *x)
{
	struct otlp o = { .x = x };
	struct links links = { 0 };
	int e = links_load(x->trace, x->meta, &links);
	if (!e)
		e = requests_load(x->trace, x->meta, &links, &o.all);
	if (!e && !o.all.v.n)
		e = error_set(x->err, -ENODATA,
			"there is no request in the recording. `weir serve -o FILE` records them");
	if (!e) {
		json_init(&o.j, x->out);
		o.j.pretty_depth = 6; /* a line a span */
		json_begin_object(&o.j, NULL);
		json_begin_array(&o.j, "resourceSpans");
		for (uint32_t i = 0; i < x->trace->processes.n; i++)
			if (is_server(&o.all, i))
				put_server(&o, i);
		json_end_array(&o.j);
		json_end_object(&o.j);
	}
	requests_fini(&o.all);
	links_fini(&links);
	return e;
}

const struct exporter export_otlp = {
	.name = "otlp",
	.suffixes = ".otlp",
	.whole = whole,
};
