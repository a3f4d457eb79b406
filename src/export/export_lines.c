/*
 * The formats of lines: csv (RFC 4180) and ndjson (one JSON object a line).  Times are nanoseconds
 * since the trace began.
 */
#include "export/export.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "event/args.h"
#include "trace/activity.h"

#define FRAMES_MOST 64u /* of a stack */

/* Whole numbers of 64 bits don't survive most readers of JSON: large ones are text. */
static void json_scalars(struct json *j, const struct record *r)
{
	struct launch_args a;
	if (!args_get(r, &a))
		return;
	json_hex(j, "key", a.key);
	json_u64(j, "scalar_count", a.scalars);
	json_begin_array(j, "scalars");
	for (uint32_t i = 0; i < a.kept; i++) {
		if (a.value[i] >> 53)
			json_hex(j, NULL, a.value[i]);
		else
			json_u64(j, NULL, a.value[i]);
	}
	json_end_array(j);
}

void export_put_launch(struct json *j, const char *kernel, const struct launch_shape *shape,
	const struct record *r)
{
	if (kernel)
		json_str(j, "kernel", kernel);
	json_hex(j, "function", r->arg[LAUNCH_FUNCTION]);
	json_dim3(j, "grid", shape->grid);
	json_dim3(j, "block", shape->block);
	json_u64(j, "shared", r->aux);
	json_hex(j, "stream", r->arg[LAUNCH_STREAM]);
}

void export_put_arg(struct json *j, const struct schema_fn *fn, unsigned i, const struct record *r)
{
	const struct schema_arg *a = &fn->args[i];
	char text[2100]; /* the longest string, each byte escaped */
	if (a->kind != ARG_STR && a->first + a->words > r->words - RECORD_WORDS)
		return;
	const size_t n = decode_arg(fn, i, r, text, sizeof text);
	const bool number = (a->kind == ARG_UINT || a->kind == ARG_INT) && n && n < 17 &&
			    strspn(text, "-0123456789") == n;
	if (number)
		json_i64(j, a->name, strtoll(text, NULL, 10));
	else
		json_strn(j, a->name, text, n);
}

/* Innermost first; who looks at it sees what the program did, not what libraries of CUDA did. */
static void json_stack(struct export *x, struct json *j, uint32_t stack)
{
	const struct stack_frame *frames[FRAMES_MOST];
	const uint32_t n = stacks_pick(&x->stacks, stack, frames, FRAMES_MOST);
	stacks_put_json(j, frames, n);
}

void export_put_args(struct export *x, struct json *j, const struct export_call *c)
{
	if (c->launch) {
		const bool named = c->kernel != META_NONE;
		const char *kernel = named ? export_kernel_name(x, c->kernel) : NULL;
		export_put_launch(j, kernel, &c->shape, c->record);
		json_scalars(j, c->record);
	}
	for (unsigned i = 0; !c->launch && c->fn && i < c->fn->arg_count; i++)
		export_put_arg(j, c->fn, i, c->record);
	if (c->record->result) {
		const char *error = decode_result(c->fn, c->record->result);
		json_u64(j, "result", c->record->result);
		if (error)
			json_str(j, "error", error);
	}
	if (c->record->flags & RECORD_CAPTURED)
		json_bool(j, "captured", true);
	const uint32_t stack = export_stack_of(x, c);
	if (stack != STACK_NONE)
		json_stack(x, j, stack);
}

static void begin_line(struct export *x, struct json *j, uint64_t begin_ns, uint64_t end_ns)
{
	json_init_line(j, x->out);
	json_begin_object(j, NULL);
	json_u64(j, "begin_ns", export_since(x, begin_ns));
	json_u64(j, "duration_ns", end_ns - begin_ns);
}

static void call_ndjson(struct export *x, const struct export_call *c)
{
	struct json j;
	begin_line(x, &j, c->begin_ns, c->end_ns);
	json_u64(&j, "pid", c->chunk->head.pid);
	json_u64(&j, "tid", c->chunk->head.tid);
	json_str(&j, "api", schema_api_name(c->fn));
	json_str(&j, "class", c->fn ? c->fn->class : "");
	json_str(&j, "name", c->name);
	if (c->link)
		json_u64(&j, "correlation", c->link->correlation);
	json_begin_object(&j, "args");
	export_put_args(x, &j, c);
	json_end_object(&j);
	json_end_document(&j);
}

static void json_activity(const struct export *x, struct json *j, const struct gpu_activity *w)
{
	const char *direction = activity_direction(w);
	if (w->valid & GPU_HAS_DEVICE)
		json_u64(j, "device", w->device);
	if (w->valid & GPU_HAS_CONTEXT)
		json_u64(j, "context", w->context);
	if (w->valid & GPU_HAS_STREAM)
		json_u64(j, "stream", w->stream);
	if (w->valid & GPU_HAS_SHAPE) {
		json_dim3(j, "grid", w->grid);
		json_dim3(j, "block", w->block);
	}
	if (w->valid & GPU_HAS_REGISTERS)
		json_u64(j, "registers", w->registers);
	if (w->valid & GPU_HAS_SHARED)
		json_u64(j, "shared", (uint64_t)w->shared_static + w->shared_dynamic);
	if (w->valid & GPU_HAS_BYTES)
		json_u64(j, "bytes", w->bytes);
	if (direction)
		json_str(j, "direction", direction);
	if (w->valid & GPU_HAS_GRAPH)
		json_u64(j, "graph", w->graph);
	if (x->trace->header.sampled)
		json_u64(j, "sampled", x->trace->header.sampled);
	if (w->valid & GPU_RECONSTRUCTED) {
		json_bool(j, "reconstructed", true);
		json_u64(j, "uncertainty_ns", w->uncertainty_ns);
	}
}

/* A device activity as a call of the api "device"; the thread is that of who asked for it. */
static void activity_ndjson(struct export *x, const struct chunk_ref *c,
	const struct gpu_activity *w, const struct call_link *link)
{
	const char *kind = activity_kind_name(w->kind);
	struct json j;
	begin_line(x, &j, w->start_ns, w->end_ns);
	json_u64(&j, "pid", c->head.pid);
	if (link)
		json_u64(&j, "tid", link->tid);
	json_str(&j, "api", "device");
	json_str(&j, "class", kind ? kind : "");
	json_str(&j, "name", w->name ? export_string(x, w->name) : "");
	if (w->valid & GPU_HAS_CORRELATION)
		json_u64(&j, "correlation", w->correlation);
	json_begin_object(&j, "args");
	json_activity(x, &j, w);
	json_end_object(&j);
	json_end_document(&j);
}

/* A damaged clock may run backwards. */
static uint64_t range_end_ns(const struct export *x, const struct range *g)
{
	const uint64_t begin = trace_ns(x->trace, g->ticks);
	const uint64_t end = trace_ns(x->trace, range_end(g));
	return MAX(end, begin);
}

/* A domain of NVTX, or the category that another profiler had for it. */
static const char *scope_key(const struct range *g)
{
	return g->kind == RANGE_NVTX || g->kind == RANGE_NVTX_SPAN ? "domain" : "category";
}

static void json_range(struct export *x, struct json *j, const struct range *g)
{
	if (g->scope)
		json_str(j, scope_key(g), export_string(x, g->scope));
	if (g->valid & RANGE_HAS_EXTERNAL)
		json_u64(j, "external_id", g->external);
	if (g->valid & RANGE_HAS_SEQUENCE)
		json_u64(j, "sequence", g->sequence);
	if (g->args)
		json_str(j, "arguments", export_string(x, g->args));
}

/* A range of any kind, as a call of the api "range"; a mark has no length. */
static void range_ndjson(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	const char *kind = range_kind_name(g->kind);
	struct json j;
	begin_line(x, &j, trace_ns(x->trace, g->ticks), range_end_ns(x, g));
	json_u64(&j, "pid", c->head.pid);
	json_u64(&j, "tid", g->tid);
	json_str(&j, "api", "range");
	json_str(&j, "class", kind ? kind : "");
	json_str(&j, "name", g->name ? export_string(x, g->name) : "");
	json_begin_object(&j, "args");
	json_range(x, &j, g);
	json_end_object(&j);
	json_end_document(&j);
}

const struct exporter export_ndjson = {
	.name = "ndjson",
	.suffixes = ".ndjson .jsonl",
	.call = call_ndjson,
	.activity = activity_ndjson,
	.range = range_ndjson,
};

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:<>()*& "

/* A name as it is, unless the format needs it quoted. */
static void put_field(FILE *out, const char *s)
{
	if (s[strspn(s, PLAIN)] || *s == '-')
		text_put_csv(out, s);
	else
		fputs(s, out);
	putc(',', out);
}

/* A comma, and the number where there is one. */
static void put_if(FILE *out, bool known, uint64_t value)
{
	putc(',', out);
	if (known)
		fprintf(out, "%" PRIu64, value);
}

static int begin_csv(struct export *x)
{
	fputs("begin_ns,duration_ns,pid,tid,api,class,function,result,error,captured,kernel,"
	      "grid_x,grid_y,grid_z,block_x,block_y,block_z,shared_bytes,stream,call,"
	      "correlation,device,context,device_stream,registers,bytes,direction\r\n",
		x->out);
	return 0;
}

static void put_csv_launch(struct export *x, const struct export_call *c)
{
	const uint32_t *g = c->shape.grid, *b = c->shape.block;
	if (!c->launch) {
		fputs(",,,,,,,,,", x->out);
		return;
	}
	if (c->kernel != META_NONE)
		text_put_csv(x->out, export_kernel_name(x, c->kernel));
	fprintf(x->out, ",%u,%u,%u,%u,%u,%u,%u,0x%" PRIx64 ",", g[0], g[1], g[2], b[0], b[1], b[2],
		c->record->aux, c->record->arg[LAUNCH_STREAM]);
}

static void call_csv(struct export *x, const struct export_call *c)
{
	char line[8192];
	const struct record *r = c->record;
	const char *error = r->result ? decode_result(c->fn, r->result) : NULL;
	fprintf(x->out, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",",
		export_since(x, c->begin_ns), c->end_ns - c->begin_ns, c->chunk->head.pid,
		c->chunk->head.tid);
	put_field(x->out, schema_api_name(c->fn));
	put_field(x->out, c->fn ? c->fn->class : "");
	put_field(x->out, c->name);
	fprintf(x->out, "%u,%s,%d,", r->result, error ? error : "",
		(r->flags & RECORD_CAPTURED) != 0);
	put_csv_launch(x, c);
	decode_record(x->decoder, r, line, sizeof line);
	text_put_csv(x->out, line);
	put_if(x->out, c->link != NULL, c->link ? c->link->correlation : 0);
	fputs(",,,,,,\r\n", x->out);
}

/* A device activity as a call of the api "device" that did not fail. */
static void activity_csv(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	const char *kind = activity_kind_name(w->kind), *direction = activity_direction(w);
	const char *name = w->name ? export_string(x, w->name) : "";
	fprintf(x->out, "%" PRIu64 ",%" PRIu64 ",%" PRIu32, export_since(x, w->start_ns),
		w->end_ns - w->start_ns, c->head.pid);
	put_if(x->out, link != NULL, link ? link->tid : 0);
	fputs(",device,", x->out);
	put_field(x->out, kind ? kind : "");
	put_field(x->out, name);
	fputs(",,,", x->out); /* the result, the error and the capture of a call */
	if (w->kind == GPU_KERNEL)
		text_put_csv(x->out, name);
	for (int i = 0; i < 6; i++)
		put_if(x->out, w->valid & GPU_HAS_SHAPE, i < 3 ? w->grid[i] : w->block[i - 3]);
	put_if(x->out, w->valid & GPU_HAS_SHARED, (uint64_t)w->shared_static + w->shared_dynamic);
	fputs(",,", x->out); /* a stream's handle, a call */
	put_if(x->out, w->valid & GPU_HAS_CORRELATION, w->correlation);
	put_if(x->out, w->valid & GPU_HAS_DEVICE, w->device);
	put_if(x->out, w->valid & GPU_HAS_CONTEXT, w->context);
	put_if(x->out, w->valid & GPU_HAS_STREAM, w->stream);
	put_if(x->out, w->valid & GPU_HAS_REGISTERS, w->registers);
	put_if(x->out, w->valid & GPU_HAS_BYTES, w->bytes);
	fprintf(x->out, ",%s\r\n", direction ? direction : "");
}

/* A range, as a call of the api "range". */
static void range_csv(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	const char *kind = range_kind_name(g->kind);
	const uint64_t begin = trace_ns(x->trace, g->ticks);
	fprintf(x->out, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",range,",
		export_since(x, begin), range_end_ns(x, g) - begin, c->head.pid, g->tid);
	put_field(x->out, kind ? kind : "");
	put_field(x->out, g->name ? export_string(x, g->name) : "");
	fputs(",,,,,,,,,,,,,,,,,,,\r\n", x->out);
}

const struct exporter export_csv = {
	.name = "csv",
	.suffixes = ".csv",
	.begin = begin_csv,
	.call = call_csv,
	.activity = activity_csv,
	.range = range_csv,
};
