/*
 * The report as JSON.  Keys are a promise: they are added to, not renamed.  All times are
 * nanoseconds, all sizes bytes; rows are never left out.
 */
#include "report/model.h"

#include <string.h>

#include "base/json.h"

#include "base/banned.h"

static uint64_t ns_of(const struct report *r, uint64_t ticks)
{
	return clock_fit_span_ns(&r->trace->clock, ticks);
}

static void put_trace(struct json *j, const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	json_begin_object(j, "trace");
	json_u64(j, "version", h->version);
	json_str(j, "form", h->form == TRACE_PACKED ? "packed" : "raw");
	json_str(j, "mode", h->mode == TRACE_FLIGHT ? "flight" : "file");
	json_str(j, "program", h->program);
	json_str(j, "host", h->host);
	json_u64(j, "start_realtime_ns", h->start.real_ns);
	json_bool(j, "finished", h->state == TRACE_FINISHED);
	json_u64(j, "exit_status", h->exit_status);
	json_bool(j, "clock_known", r->trace->clock.known);
	json_end_object(j);
}

static void put_totals(struct json *j, const struct report *r)
{
	json_begin_object(j, "totals");
	json_u64(j, "wall_ns", r->wall_ns);
	json_u64(j, "processes", r->trace->processes.n);
	json_u64(j, "threads", r->threads.n);
	json_u64(j, "calls", r->calls);
	json_u64(j, "launches", r->launches);
	json_u64(j, "graph_launches", r->graph_launches);
	json_u64(j, "lost", r->lost);
	json_u64(j, "errors", r->errors);
	json_u64(j, "streams", r->streams);
	json_u64(j, "contexts", r->contexts);
	json_end_object(j);
}

static void put_failures(struct json *j, const struct report *r)
{
	struct fn_name room;
	json_begin_array(j, "failures");
	for (size_t i = 0; i < r->failure_rows.n; i++) {
		const struct failure_row *f = &r->failure_rows.v[i];
		const struct schema_fn *fn = schema_find(&r->trace->schema, f->fn_id);
		const char *error = decode_result(r->decoder, fn, f->code);
		json_begin_object(j, NULL);
		json_str(j, "name", report_fn_name(r, f->fn_id, &room));
		json_u64(j, "code", f->code);
		if (error)
			json_str(j, "error", error);
		else
			json_put_null(j, "error");
		json_u64(j, "count", f->count);
		json_u64(j, "pid", r->trace->processes.v[f->process].pid);
		json_u64(j, "tid", f->tid);
		json_u64(j, "first_ns", trace_since_ns(r->trace, f->first_ticks));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_warnings(struct json *j, const struct report *r)
{
	json_begin_array(j, "warnings");
	for (size_t i = 0; i < r->warnings.n; i++)
		json_str(j, NULL, r->warnings.v[i]);
	json_end_array(j);
}

static void put_time(struct json *j, const char *key, bool there, uint64_t ns)
{
	if (there)
		json_u64(j, key, ns);
	else
		json_put_null(j, key);
}

static void put_call(struct json *j, const struct report *r, const struct call_row *c)
{
	struct fn_name room;
	json_begin_object(j, NULL);
	json_str(j, "name", report_fn_name(r, c->id, &room));
	json_str(j, "api", c->fn && c->fn->api == API_RUNTIME ? "runtime" : "driver");
	json_str(j, "class", c->fn ? c->fn->class : "");
	json_u64(j, "count", c->count);
	put_time(j, "total_ns", c->timed || c->total_ticks, ns_of(r, c->total_ticks));
	put_time(j, "p50_ns", c->timed, ns_of(r, hist_at(&c->hist, 0.5)));
	put_time(j, "p99_ns", c->timed, ns_of(r, hist_at(&c->hist, 0.99)));
	put_time(j, "max_ns", c->timed, ns_of(r, c->hist.max));
	json_u64(j, "errors", c->errors);
	json_end_object(j);
}

static void put_triple(struct json *j, const char *key, const uint32_t *v)
{
	json_begin_array(j, key);
	for (int i = 0; i < 3; i++)
		json_u64(j, NULL, v[i]);
	json_end_array(j);
}

static void put_kernel(struct json *j, const struct report *r, const struct kernel_row *k)
{
	json_begin_object(j, NULL);
	json_str(j, "name", k->name);
	if (k->mangled)
		json_str(j, "mangled", k->mangled);
	else
		json_put_null(j, "mangled");
	json_u64(j, "count", k->count);
	json_u64(j, "graph_count", k->graph_count);
	json_u64(j, "host_total_ns", ns_of(r, k->host_ticks));
	put_triple(j, "grid", k->shape.grid);
	put_triple(j, "block", k->shape.block);
	json_u64(j, "shapes", k->shapes);
	json_end_object(j);
}

static void put_use(struct json *j, const struct memory_use *u)
{
	json_u64(j, "alloc_count", u->allocs);
	json_u64(j, "free_count", u->frees);
	json_u64(j, "allocated_bytes", u->allocated_bytes);
	json_u64(j, "peak_bytes", u->peak_bytes);
	json_u64(j, "live_at_exit_bytes", u->live_bytes);
	json_u64(j, "live_at_exit_count", u->live);
}

static void put_live(struct json *j, const struct report *r)
{
	struct fn_name room;
	json_begin_array(j, "live");
	for (size_t i = 0; i < r->live.n; i++) {
		const struct live_block *b = &r->live.v[i];
		json_begin_object(j, NULL);
		json_u64(j, "address", b->pointer);
		json_u64(j, "bytes", b->bytes);
		json_str(j, "kind", memory_kind_name[b->kind]);
		json_str(j, "name", report_fn_name(r, b->fn_id, &room));
		json_u64(j, "pid", r->trace->processes.v[b->process].pid);
		json_u64(j, "at_ns", trace_since_ns(r->trace, b->ticks));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_memory(struct json *j, const struct report *r)
{
	json_begin_object(j, "memory");
	put_use(j, &r->gpu_memory);
	for (int k = 0; k < MEMORY_KINDS; k++) {
		json_begin_object(j, memory_kind_name[k]);
		put_use(j, &r->memory[k]);
		json_end_object(j);
	}
	put_live(j, r);
	json_end_object(j);
}

static void put_moved(struct json *j, const struct report *r)
{
	json_begin_array(j, "copies");
	for (size_t i = 0; i < r->copies.n; i++) {
		json_begin_object(j, NULL);
		json_str(j, "direction", r->copies.v[i].direction);
		json_u64(j, "count", r->copies.v[i].count);
		json_u64(j, "bytes", r->copies.v[i].bytes);
		json_end_object(j);
	}
	json_end_array(j);
	json_begin_object(j, "sets");
	json_u64(j, "count", r->sets.count);
	json_u64(j, "bytes", r->sets.bytes);
	json_end_object(j);
}

static void put_processes(struct json *j, const struct report *r)
{
	json_begin_array(j, "processes");
	for (size_t i = 0; i < r->meta.processes.n; i++) {
		const struct meta_process *m = &r->meta.processes.v[i];
		json_begin_object(j, NULL);
		json_u64(j, "pid", r->trace->processes.v[i].pid);
		json_u64(j, "parent", m->parent);
		json_str(j, "executable", m->executable);
		json_str(j, "arguments", m->arguments);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_threads(struct json *j, const struct report *r)
{
	json_begin_array(j, "threads");
	for (size_t i = 0; i < r->threads.n; i++) {
		const struct thread_row *t = &r->threads.v[i];
		json_begin_object(j, NULL);
		json_u64(j, "pid", r->trace->processes.v[t->process].pid);
		json_u64(j, "tid", t->tid);
		json_str(j, "name", t->name);
		json_end_object(j);
	}
	json_end_array(j);
}

void report_print_json(const struct report *r, FILE *out)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	put_trace(&j, r);
	put_failures(&j, r);
	put_warnings(&j, r);
	put_totals(&j, r);
	json_begin_array(&j, "calls");
	for (size_t i = 0; i < r->call_rows.n; i++)
		put_call(&j, r, &r->call_rows.v[i]);
	json_end_array(&j);
	json_begin_array(&j, "kernels");
	for (size_t i = 0; i < r->kernel_rows.n; i++)
		put_kernel(&j, r, &r->kernel_rows.v[i]);
	json_end_array(&j);
	put_memory(&j, r);
	put_moved(&j, r);
	put_processes(&j, r);
	put_threads(&j, r);
	json_end_object(&j);
}
