/*
 * Writes the JSON of torch.profiler (Kineto, in the Trace Event Format), so that its readers also
 * read Weir's. Categories, keys and names are Kineto's, and further facts about a call follow them.
 * Processes and devices are processes, and streams are threads of a device.
 *
 * Times are microseconds since baseTimeNanoseconds, the begin of the trace. Calls and activities
 * are written as they come. Ranges, allocations and flows follow from an index (export_chrome.h).
 */
#include "export/export_chrome.h"

#include <inttypes.h>
#include <string.h>

#include "base/atomic.h"
#include "predict/occupancy.h"
#include "trace/activity.h"

struct chrome {
	struct chrome_index index;
	struct map streams; /* device, stream: 1 when it has a name */
	struct map devices;
	uint64_t arrows;
	uint64_t event; /* counts ranges and allocations */
};

static struct chrome_index *index_of(struct export *x)
{
	return &((struct chrome *)x->state)->index;
}

static void put_us(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* An event up to its arguments. */
static struct json begin_event(struct export *x, const char *phase, const char *category,
	const char *name, uint32_t pid, uint32_t tid)
{
	struct json j = { .out = x->out, .depth = 1, .filled = { [1] = true } };
	fprintf(x->out, "{\"ph\":\"%s\"", phase);
	json_str(&j, "cat", category);
	json_str(&j, "name", name);
	json_u64(&j, "pid", pid);
	json_u64(&j, "tid", tid);
	return j;
}

static void put_span(struct export *x, uint64_t begin_ns, uint64_t end_ns)
{
	put_us(x->out, "ts", export_since(x, begin_ns));
	put_us(x->out, "dur", end_ns > begin_ns ? end_ns - begin_ns : 0);
}

/* Its arguments, too. */
static void end_event(struct json *j)
{
	json_end_object(j);
	fputs("},\n", j->out);
}

struct place {
	uint32_t pid, tid;
	uint64_t ns;
};

static void put_arrow_end(
	struct export *x, const char *category, char phase, uint64_t id, const struct place *at)
{
	fprintf(x->out, "{\"ph\":\"%c\",\"id\":%" PRIu64 ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
		phase, id, at->pid, at->tid);
	put_us(x->out, "ts", export_since(x, at->ns));
	fprintf(x->out, ",\"cat\":\"%s\",\"name\":\"%s\"%s},\n", category, category,
		phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Arrows have numbers of their own: correlations are of one process. */
static void put_arrow(
	struct export *x, const char *category, const struct place *from, const struct place *to)
{
	struct chrome *c = x->state;
	const uint64_t id = ++c->arrows;
	put_arrow_end(x, category, 's', id, from);
	put_arrow_end(x, category, 'f', id, to);
}

static void put_meta_text(struct export *x, const char *what, uint32_t pid, uint32_t tid,
	const char *key, const char *text)
{
	fprintf(x->out,
		"{\"name\":\"%s\",\"ph\":\"M\",\"ts\":0.000,\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"args\":{\"%s\":",
		what, pid, tid, key);
	json_quote(x->out, text, strlen(text));
	fputs("}},\n", x->out);
}

static void put_meta_number(
	struct export *x, const char *what, uint32_t pid, uint32_t tid, uint64_t number)
{
	fprintf(x->out,
		"{\"name\":\"%s\",\"ph\":\"M\",\"ts\":0.000,\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"args\":{\"sort_index\":%" PRIu64 "}},\n",
		what, pid, tid, number);
}

#define DEVICES_BEHIND 5000000u /* of a sort index: processes come first */

static void name_process(
	struct export *x, uint32_t pid, const char *name, const char *label, uint64_t sort)
{
	put_meta_text(x, "process_name", pid, 0, "name", name);
	put_meta_text(x, "process_labels", pid, 0, "labels", label);
	put_meta_number(x, "process_sort_index", pid, 0, sort);
}

static const char *program_of(const struct export *x, size_t process)
{
	const struct meta_process *m =
		process < x->meta->processes.n ? &x->meta->processes.v[process] : NULL;
	return !m ? x->trace->header.program : *m->arguments ? m->arguments : m->executable;
}

static void thread(struct export *x, const struct chunk_ref *c)
{
	char name[64];
	snprintf(name, sizeof name, "thread %" PRIu32 " (%.15s)", c->head.tid, c->head.thread);
	put_meta_text(x, "thread_name", c->head.pid, c->head.tid, "name", name);
	put_meta_number(x, "thread_sort_index", c->head.pid, c->head.tid, c->head.tid);
}

/* A device and its stream, when they are first seen. */
static void name_stream(struct export *x, uint32_t process, uint32_t device, uint32_t stream)
{
	struct chrome *c = x->state;
	char name[32];
	uint32_t *new = map_get(&c->devices, MAP_KEY(device));
	if (*new == MAP_NONE) {
		snprintf(name, sizeof name, "GPU %" PRIu32, device);
		name_process(x, device, program_of(x, process), name, DEVICES_BEHIND + device);
	}
	*new = 1;
	new = map_get(&c->streams, MAP_KEY(device, stream));
	if (*new == MAP_NONE) {
		snprintf(name, sizeof name, "stream %" PRIu32 " ", stream);
		put_meta_text(x, "thread_name", device, stream, "name", name);
		put_meta_number(x, "thread_sort_index", device, stream, stream);
	}
	*new = 1;
}

static const struct occupancy_device *limits_of(const struct meta_device *d)
{
	return occupancy_device_find(d->capability >> 16, d->capability & 0xffff);
}

/* Puts the recording's facts of the device, and those of its compute capability. */
static void put_device(struct export *x, struct json *j, const struct meta_device *d)
{
	const struct occupancy_device *limits = limits_of(d);
	json_begin_object(j, NULL);
	json_u64(j, "id", d->device);
	json_str(j, "name", x->meta->names.v[d->name].text);
	json_u64(j, "totalGlobalMem", d->memory_bytes);
	json_u64(j, "computeMajor", d->capability >> 16);
	json_u64(j, "computeMinor", d->capability & 0xffff);
	json_u64(j, "warpSize", OCCUPANCY_WARP);
	json_u64(j, "numSms", d->multiprocessors);
	if (limits) {
		const uint64_t threads = (uint64_t)limits->warps_per_sm * OCCUPANCY_WARP;
		json_u64(j, "maxThreadsPerBlock", OCCUPANCY_THREADS_PER_BLOCK);
		json_u64(j, "maxThreadsPerMultiprocessor", threads);
		json_u64(j, "regsPerBlock", limits->regs_per_sm);
		json_u64(j, "regsPerMultiprocessor", limits->regs_per_sm);
		json_u64(j, "sharedMemPerBlock", OCCUPANCY_SMEM_PORTABLE_BYTES);
		json_u64(j, "sharedMemPerBlockOptin", limits->smem_optin_bytes);
		json_u64(j, "sharedMemPerMultiprocessor", limits->smem_per_sm_bytes);
	}
	json_end_object(j);
}

/* Several processes may have said the same of a device. */
static bool is_new(const struct export *x, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (x->meta->devices.v[k].device == x->meta->devices.v[i].device)
			return false;
	return true;
}

static void put_head(struct export *x)
{
	struct json j = { .out = x->out };
	json_begin_object(&j, NULL);
	json_u64(&j, "schemaVersion", 1);
	json_begin_array(&j, "deviceProperties");
	for (size_t i = 0; i < x->meta->devices.n; i++)
		if (is_new(x, i))
			put_device(x, &j, &x->meta->devices.v[i]);
	json_end_array(&j);
	json_str(&j, "displayTimeUnit", "ms");
	if (x->trace->header.start.real_ns)
		json_u64(&j, "baseTimeNanoseconds", x->trace->header.start.real_ns);
	fputs(",\"traceEvents\":[\n", x->out);
}

static int begin(struct export *x)
{
	struct chrome *c = x->state = xcalloc(1, sizeof *c);
	const int e = chrome_index_make(&c->index, x);
	if (e)
		return e;
	put_head(x);
	for (size_t i = 0; i < x->trace->processes.n; i++) {
		const uint32_t pid = x->trace->processes.v[i].pid;
		name_process(x, pid, program_of(x, i), "CPU", pid);
	}
	return 0;
}

static void call(struct export *x, const struct export_call *c)
{
	struct chrome_index *n = index_of(x);
	chrome_memory_add(n, x, c);
	if (c->fn && c->fn->api == API_ALLOCATOR)
		return;
	const bool runtime = c->fn && c->fn->api == API_RUNTIME;
	struct json j = begin_event(x, "X", runtime ? "cuda_runtime" : "cuda_driver", c->name,
		c->chunk->head.pid, c->chunk->head.tid);
	const struct call_link *link = chrome_link_of(n, x, c);
	const struct chrome_range *around =
		chrome_range_at(n, c->chunk->process, c->chunk->head.tid, c->record->ticks);
	put_span(x, c->begin_ns, c->end_ns);
	json_begin_object(&j, "args");
	if (around)
		json_u64(&j, "External id", around->r.external);
	if (link)
		json_u64(&j, "correlation", link->correlation);
	if (c->fn)
		json_str(&j, "class", c->fn->class);
	export_put_args(x, &j, c);
	end_event(&j);
}

/* An import has these words back as the kinds that they were. */
static const char *category_of_activity(uint16_t kind)
{
	static const char *const names[] = { "unknown", "kernel", "gpu_memcpy", "gpu_memset",
		"cuda_sync", "gpu_user_annotation", "graph", "gpu_other" };
	return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static const struct meta_device *device_of(const struct export *x, uint32_t device)
{
	for (size_t i = 0; i < x->meta->devices.n; i++)
		if (x->meta->devices.v[i].device == device)
			return &x->meta->devices.v[i];
	return NULL;
}

/* The largest part of the warps of an SM that this launch can have filled. */
static void put_occupancy(struct json *j, const struct gpu_activity *w, const struct meta_device *d,
	double blocks_per_sm)
{
	const uint64_t threads = (uint64_t)w->block[0] * w->block[1] * w->block[2];
	const uint32_t known = GPU_HAS_REGISTERS | GPU_HAS_SHARED;
	const struct occupancy_device *limits = limits_of(d);
	if ((w->valid & known) != known || !limits || threads > OCCUPANCY_THREADS_PER_BLOCK)
		return;
	const struct occupancy o =
		occupancy_of(limits, &(struct occupancy_launch){ .threads = (uint32_t)threads,
					     .regs = w->registers,
					     .smem_static_bytes = w->shared_static,
					     .smem_dynamic_bytes = w->shared_dynamic });
	if (!o.blocks)
		return;
	const double blocks = MIN(blocks_per_sm, o.blocks);
	const double most = limits->warps_per_sm * (double)OCCUPANCY_WARP;
	json_u64(j, "est. achieved occupancy %",
		(uint64_t)(100 * blocks * (double)threads / most + 0.5));
}

static void put_shape(const struct export *x, struct json *j, const struct gpu_activity *w)
{
	const struct meta_device *d = w->valid & GPU_HAS_DEVICE ? device_of(x, w->device) : NULL;
	const double blocks = (double)w->grid[0] * w->grid[1] * w->grid[2];
	const double threads = (double)w->block[0] * w->block[1] * w->block[2];
	if (d && d->multiprocessors) {
		const double per_sm = blocks / d->multiprocessors;
		json_put_real(j, "blocks per SM", per_sm);
		json_put_real(j, "warps per SM", per_sm * threads / OCCUPANCY_WARP);
	}
	json_dim3(j, "grid", w->grid);
	json_dim3(j, "block", w->block);
	if (d && d->multiprocessors)
		put_occupancy(j, w, d, blocks / d->multiprocessors);
}

static void put_activity_args(struct export *x, struct json *j, const struct gpu_activity *w,
	const struct chrome_range *asked)
{
	const bool has_external = w->valid & GPU_HAS_EXTERNAL, placed = w->kind != GPU_SPAN;
	const struct {
		const char *key;
		bool there;
		uint64_t value;
	} numbers[] = {
		{ "External id", has_external || asked,
			has_external || !asked ? w->external : asked->r.external },
		{ "queued", w->kind == GPU_KERNEL, 0 },
		{ "device", placed && w->valid & GPU_HAS_DEVICE, w->device },
		{ "context", placed && w->valid & GPU_HAS_CONTEXT, w->context },
		{ "stream", placed && w->valid & GPU_HAS_STREAM, w->stream },
		{ "correlation", w->valid & GPU_HAS_CORRELATION, w->correlation },
		{ "bytes", w->valid & GPU_HAS_BYTES, w->bytes },
		{ "registers per thread", w->valid & GPU_HAS_REGISTERS, w->registers },
		{ "shared memory", w->valid & GPU_HAS_SHARED,
			(uint64_t)w->shared_static + w->shared_dynamic },
		{ "graph id", w->valid & GPU_HAS_GRAPH, w->graph },
		{ "graph node id", w->valid & GPU_HAS_GRAPH, w->graph_node },
		{ "sampled", x->trace->header.sampled, x->trace->header.sampled },
		{ "reconstructed, off by (ns)", w->valid & GPU_RECONSTRUCTED, w->uncertainty_ns },
	};
	json_begin_object(j, "args");
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (numbers[i].there)
			json_u64(j, numbers[i].key, numbers[i].value);
	if (w->valid & GPU_HAS_BYTES && w->end_ns > w->start_ns)
		json_put_real(j, "memory bandwidth (GB/s)",
			(double)w->bytes / (double)(w->end_ns - w->start_ns));
	if (w->valid & GPU_HAS_SHAPE)
		put_shape(x, j, w);
}

/* As Kineto calls what has no name of its own: "Memcpy HtoD (Pageable -> Device)". */
static const char *name_of_activity(
	struct export *x, const struct gpu_activity *w, char *room, size_t bytes)
{
	static const char *const memory_kinds[ACTIVITY_MEMORY_KINDS] = { "Unknown", "Pageable",
		"Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static" };
	static const char *const syncs[] = { "Sync", "Event Sync", "Stream Wait Event",
		"Stream Sync", "Context Sync" };
	const char *direction = copy_direction_name(w->what);
	const char *from = memory_kinds[w->from < ACTIVITY_MEMORY_KINDS ? w->from : 0];
	const char *to = memory_kinds[w->to < ACTIVITY_MEMORY_KINDS ? w->to : 0];
	if (w->name || (w->kind != GPU_MEMCPY && w->kind != GPU_MEMSET && w->kind != GPU_SYNC))
		return export_string(x, w->name);
	if (w->kind == GPU_SYNC)
		return syncs[w->what < sizeof syncs / sizeof syncs[0] ? w->what : 0];
	if (w->kind == GPU_MEMSET)
		snprintf(room, bytes, "Memset (%s)", from);
	else
		snprintf(room, bytes, "Memcpy %s (%s -> %s)", direction ? direction : "Unknown",
			from, to);
	return room;
}

static void activity(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	const struct chrome_index *n = index_of(x);
	const uint32_t device = w->valid & GPU_HAS_DEVICE ? w->device : 0;
	const uint32_t stream = w->valid & GPU_HAS_STREAM ? w->stream : 0;
	const uint64_t asked = link ? chrome_issued_at(n, x, link) : 0;
	name_stream(x, c->process, device, stream);
	char name[64];
	struct json j = begin_event(x, "X", category_of_activity(w->kind),
		name_of_activity(x, w, name, sizeof name), device, stream);
	put_span(x, w->start_ns, w->end_ns);
	put_activity_args(
		x, &j, w, link ? chrome_range_at(n, c->process, link->tid, link->ticks) : NULL);
	end_event(&j);
	if (link)
		put_arrow(x, "ac2g",
			&(struct place){ c->head.pid, link->tid, trace_ns(x->trace, asked) },
			&(struct place){ device, stream, w->start_ns });
}

#define DEEP 32

static const char *skip(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* Past a string that is JSON in ASCII; NULL for another. */
static const char *past_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		if (*p < ' ' || *p == 127 || (*p == '\\' && !strchr("\"\\/bfnrtu", *++p)) || !*p)
			return NULL;
		if (*p == 'u' && p[-1] == '\\' && strspn(p + 1, "0123456789abcdefABCDEF") < 4)
			return NULL;
	}
	return p + 1;
}

static const char *past_digits(const char *p)
{
	const size_t n = strspn(p, "0123456789");
	return n ? p + n : NULL;
}

static const char *past_number(const char *p)
{
	p += *p == '-';
	p = *p == '0' ? p + 1 : past_digits(p);
	if (p && *p == '.')
		p = past_digits(p + 1);
	if (p && (*p == 'e' || *p == 'E'))
		p = past_digits(p + 1 + (p[1] == '+' || p[1] == '-'));
	return p;
}

static const char *past_word(const char *p)
{
	static const char *const words[] = { "true", "false", "null" };
	for (int i = 0; i < 3; i++)
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	return past_number(p);
}

/* Past a value of JSON, or NULL: a recording is somebody else's text. */
static const char *past_value(const char *p, int depth)
{
	const char close = *p == '{' ? '}' : *p == '[' ? ']' : '\0';
	if (!close)
		return *p == '"' ? past_string(p) : past_word(p);
	if (depth == DEEP)
		return NULL;
	p = skip(p + 1);
	if (*p == close)
		return p + 1;
	for (;; p = skip(p + 1)) {
		if (close == '}') {
			p = past_string(p);
			if (!p || *(p = skip(p)) != ':')
				return NULL;
			p = skip(p + 1);
		}
		p = past_value(p, depth + 1);
		if (!p)
			return NULL;
		p = skip(p);
		if (*p != ',')
			return *p == close ? p + 1 : NULL;
	}
}

/* An operator's arguments are an object in JSON, whose members go in as they are. */
static void put_members(struct export *x, struct json *j, const char *text)
{
	const char *end = *text == '{' ? past_value(text, 0) : NULL;
	if (!end || *end) {
		json_str(j, "arguments", text);
		return;
	}
	if (text[1] == '}')
		return;
	if (j->filled[j->depth])
		putc(',', x->out);
	j->filled[j->depth] = true;
	fwrite(text + 1, 1, strlen(text) - 2, x->out);
}

static const char *category_of_range(struct export *x, const struct range *r)
{
	static const char *const categories[] = { "unknown", "cpu_op", "user_annotation",
		"python_function", "nvtx", "nvtx_span", "overhead", "unknown", "capture" };
	_Static_assert(sizeof categories / sizeof *categories == RANGE_KINDS, "one a kind");
	if (r->kind == RANGE_OTHER && r->scope)
		return export_string(x, r->scope);
	return categories[r->kind < RANGE_KINDS ? r->kind : 0];
}

/* The end of an event that may cross others: two events, as those of one thread may not cross. */
static void put_crossing_end(struct export *x, const struct chrome_range *g, uint64_t id)
{
	const struct range *r = &g->r;
	struct json j = begin_event(x, "e", category_of_range(x, r), export_string(x, r->name),
		x->trace->processes.v[g->process].pid, r->tid);
	json_u64(&j, "id", id);
	put_us(x->out, "ts", export_since(x, trace_ns(x->trace, range_end(r))));
	fputs("},\n", x->out);
}

static void put_range(struct export *x, const struct chrome_range *g)
{
	const struct range *r = &g->r;
	struct chrome *c = x->state;
	const bool numbered = r->kind == RANGE_OPERATOR || r->kind == RANGE_ANNOTATION;
	const bool crosses = r->kind == RANGE_NVTX_SPAN && r->dur;
	const uint64_t number = (uint64_t)(g - c->index.ranges.v) + 1;
	x->process = g->process;
	struct json j = begin_event(x, crosses ? "b" : "X", category_of_range(x, r),
		export_string(x, r->name), x->trace->processes.v[g->process].pid, r->tid);
	if (crosses) {
		json_u64(&j, "id", number);
		put_us(x->out, "ts", export_since(x, trace_ns(x->trace, r->ticks)));
	} else {
		put_span(x, trace_ns(x->trace, r->ticks), trace_ns(x->trace, range_end(r)));
	}
	json_begin_object(&j, "args");
	if (numbered || r->valid & RANGE_HAS_EXTERNAL)
		json_u64(&j, "External id", r->external);
	if (numbered)
		json_u64(&j, "Record function id", 0);
	if (r->valid & RANGE_HAS_SEQUENCE) {
		json_u64(&j, "Sequence number", r->sequence);
		if (!r->args || !strstr(export_string(x, r->args), "\"Fwd thread id\""))
			json_u64(&j, "Fwd thread id", chrome_is_backward(x, g));
	}
	if (r->kind == RANGE_PYTHON) {
		json_u64(&j, "Python id", number);
		if (g->caller == UINT32_MAX)
			json_put_null(&j, "Python parent id");
		else
			json_u64(&j, "Python parent id", (uint64_t)g->caller + 1);
	}
	if (r->kind == RANGE_ANNOTATION && !r->args)
		json_str(&j, "scope", "user_scope");
	if (r->args)
		put_members(x, &j, export_string(x, r->args));
	if (numbered || r->kind == RANGE_PYTHON)
		json_u64(&j, "Ev Idx", c->event++);
	end_event(&j);
	if (crosses)
		put_crossing_end(x, g, number);
}

static void put_pair(struct export *x, const struct chrome_pair *p)
{
	const struct chrome_range *v = index_of(x)->ranges.v;
	const struct chrome_range *from = &v[p->forward], *to = &v[p->backward];
	const uint32_t pid = x->trace->processes.v[from->process].pid;
	put_arrow(x, "fwdbwd",
		&(struct place){ pid, from->r.tid, trace_ns(x->trace, from->r.ticks) },
		&(struct place){ pid, to->r.tid, trace_ns(x->trace, to->r.ticks) });
}

#define TORCH_CUDA 1 /* a device type of PyTorch's */

static void put_memory(struct export *x, const struct chrome_memory *m)
{
	struct chrome *c = x->state;
	if (!m->seen || !m->bytes)
		return;
	struct json j = begin_event(x, "i", "cpu_instant_event", "[memory]", m->pid, m->tid);
	json_str(&j, "s", "t");
	put_us(x->out, "ts", export_since(x, trace_ns(x->trace, m->ticks)));
	json_begin_object(&j, "args");
	if (m->has_reserved)
		json_u64(&j, "Total Reserved", m->reserved);
	json_u64(&j, "Total Allocated", m->total);
	json_i64(&j, "Bytes", m->is_free ? -(int64_t)m->bytes : (int64_t)m->bytes);
	json_u64(&j, "Device Id", m->device);
	json_u64(&j, "Device Type", TORCH_CUDA);
	json_u64(&j, "Addr", m->pointer);
	json_bool(&j, "finished", false);
	json_u64(&j, "Ev Idx", c->event++);
	end_event(&j);
}

/* The last event has no comma behind it, so one more says that the trace ends. */
static void put_tail(struct export *x)
{
	const struct trace_header *h = &x->trace->header;
	fputs("{\"name\":\"weir\",\"ph\":\"M\",\"ts\":0.000,\"pid\":0,\"tid\":0,\"args\":{\"program\":",
		x->out);
	json_quote(x->out, h->program, strlen(h->program));
	if (h->sampled)
		fprintf(x->out, ",\"sampled\":%" PRIu32, h->sampled);
	if (load_relaxed(&h->optional) & FEATURE_REBUILT)
		fputs(",\"reconstructed\":true", x->out);
	fputs("}}\n],\"traceName\":", x->out);
	json_quote(x->out, h->program, strlen(h->program));
	fputs("}\n", x->out);
}

static int end(struct export *x)
{
	struct chrome_index *n = index_of(x);
	for (size_t i = 0; i < n->ranges.n; i++)
		put_range(x, &n->ranges.v[i]);
	for (size_t i = 0; i < n->pairs.n; i++)
		put_pair(x, &n->pairs.v[i]);
	chrome_memory_finish(n);
	for (size_t i = 0; i < n->memory.n; i++)
		put_memory(x, &n->memory.v[i]);
	put_tail(x);
	return 0;
}

static void cleanup(struct export *x)
{
	struct chrome *c = x->state;
	if (!c)
		return;
	chrome_index_fini(&c->index);
	map_fini(&c->streams, &c->devices);
	free(c);
}

const struct exporter export_chrome = {
	.name = "chrome",
	.suffixes = ".json",
	.begin = begin,
	.thread = thread,
	.call = call,
	.activity = activity,
	.end = end,
	.cleanup = cleanup,
};
