/* Reads the facts that the rules look at from the trace. */
#include "hint/hint_facts.h"

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/demangle.h"

/* The most of each list, so that a trace of any length can be looked at. */
#define MOST (8u << 20)

struct reader {
	struct hint_facts *f;
	const struct trace *t;
	struct chunk_buf buf;
	struct map shapes, kernels, streams, threads, made;
	ARRAY(uint64_t) correlations; /* by activity */
	ARRAY(uint32_t) processes;    /* by activity */
};

static uint32_t stream_of(struct reader *d, const struct gpu_activity *w)
{
	const uint32_t process = d->buf.ref->process;
	const struct hint_stream *s =
		MAP_ROW(&d->streams, MAP_KEY(process, w->device, w->context, w->stream),
			&d->f->streams, (struct hint_stream){ .process = process });
	return (uint32_t)(s - d->f->streams.v);
}

static struct hint_kernel new_kernel(struct reader *d, const struct gpu_activity *w, uint32_t name)
{
	struct hint_kernel k = { .name_id = name,
		.device = w->device,
		.registers = w->registers,
		.shared_static = w->shared_static,
		.shared_dynamic = w->shared_dynamic,
		.has_resources = w->valid & GPU_HAS_REGISTERS && w->valid & GPU_HAS_SHARED };
	k.name = demangle(name == META_NONE ? "(no name)" : d->f->report->meta.names.v[name].text);
	memcpy(k.shape.grid, w->grid, sizeof w->grid);
	memcpy(k.shape.block, w->block, sizeof w->block);
	k.names = hint_names_of(k.name);
	return k;
}

/* The first device of the same kind: a kernel gains there what it gains here. */
static uint32_t like(const struct hint_facts *f, uint32_t device)
{
	const struct hint_device *of = facts_device(f, device);
	array_each(const struct hint_device, first, f->devices)
		if (of && first->multiprocessors == of->multiprocessors && first->name &&
			of->name && !strcmp(first->name, of->name))
			return first->device;
	return device;
}

static void kernel_of(struct reader *d, const struct gpu_activity *w, uint32_t *ret_kernel)
{
	const uint32_t name = meta_find_string(&d->f->report->meta, d->buf.ref->process, w->name);
	const uint64_t shared = (uint64_t)w->shared_static << 32 | w->shared_dynamic;
	if (!(w->valid & GPU_HAS_SHAPE))
		return;
	const uint32_t shape = map_number(&d->shapes,
		MAP_KEY((uint64_t)w->grid[0] << 32 | w->grid[1],
			(uint64_t)w->grid[2] << 32 | w->block[0],
			(uint64_t)w->block[1] << 32 | w->block[2], like(d->f, w->device)));
	const struct hint_kernel *k = MAP_ROW(&d->kernels,
		MAP_KEY(name, shape, w->registers, shared), &d->f->kernels, new_kernel(d, w, name));
	*ret_kernel = (uint32_t)(k - d->f->kernels.v);
}

static void keep_activity(struct reader *d, const struct gpu_activity *w)
{
	struct hint_activity new = { .start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.bytes = w->valid & GPU_HAS_BYTES ? w->bytes : 0,
		.kernel = HINT_NONE,
		.call = HINT_NONE,
		.device = w->device,
		.kind = (uint8_t)w->kind,
		.what = w->valid & GPU_HAS_WHAT ? w->what : 0,
		.from = w->valid & GPU_HAS_MEMORY_KINDS ? w->from : 0,
		.to = w->valid & GPU_HAS_MEMORY_KINDS ? w->to : 0,
		.in_graph = w->valid & GPU_HAS_GRAPH };
	new.stream = stream_of(d, w);
	if (w->kind == GPU_KERNEL)
		kernel_of(d, w, &new.kernel);
	struct hint_activity *to = array_push(&d->f->activities);
	uint64_t *correlation = array_push(&d->correlations);
	uint32_t *process = array_push(&d->processes);
	*to = new;
	to->call = (uint32_t)(d->f->activities.n -
			      1); /* until it is known: where its correlation is */
	expect(d->correlations.n == d->f->activities.n && d->processes.n == d->f->activities.n,
		"each activity has a correlation and a process beside it");
	*correlation = w->valid & GPU_HAS_CORRELATION ? w->correlation : 0;
	*process = d->buf.ref->process;
}

static int take_activity(struct reader *d)
{
	struct cursor at = { .t = d->t, .buf = &d->buf };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		if (!(w.valid & GPU_HAS_DEVICE))
			w.device = 0;
		if (d->f->activities.n >= MOST)
			d->f->cut = true;
		else if (activity_is_work(w.kind))
			keep_activity(d, &w);
	}
	return at.error;
}

ORDERING(activity_order, struct hint_activity, ORDER(a->start_ns, b->start_ns),
	ORDER(a->end_ns, b->end_ns))

static uint32_t thread_of(struct reader *d, uint32_t process, uint32_t tid)
{
	const struct hint_thread *t = MAP_ROW(&d->threads, MAP_KEY(process, tid), &d->f->threads,
		(struct hint_thread){ process, tid });
	return (uint32_t)(t - d->f->threads.v);
}

/* HINT_CALLS: of no interest. */
static uint8_t kind_of(const struct schema_fn *fn)
{
	static const struct {
		const char *class;
		uint8_t kind;
	} classes[] = { { "launch", HINT_LAUNCH }, { "sync", HINT_SYNC }, { "copy", HINT_COPY },
		{ "set", HINT_COPY }, { "memory", HINT_MEMORY }, { "module", HINT_LOAD },
		{ "context", HINT_LOAD } };
	if (fn->kind == CALL_GRAPHLAUNCH || !strncmp(fn->name, "cudaGraphLaunch", 15))
		return HINT_LAUNCH;
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (!strcmp(fn->class, classes[i].class))
			return classes[i].kind;
	return HINT_CALLS;
}

/* On the stream that waits for all others, unless they were made not to care. */
static bool is_legacy(const struct schema_fn *fn, uint64_t stream)
{
	return stream <= 1 && !strstr(fn->name, "_ptsz") && !strstr(fn->name, "_ptds");
}

static void add_arguments(
	const struct schema_fn *fn, const struct record *r, struct hint_call *call)
{
	if (fn->launch_layout && r->words > RECORD_WORDS + LAUNCH_STREAM) {
		call->stream = r->arg[LAUNCH_STREAM];
		call->legacy = is_legacy(fn, call->stream);
	}
	if (call->kind == HINT_COPY && !strcmp(fn->memory, "HtoD") && r->words > RECORD_WORDS + 1)
		call->from = r->arg[1];
}

/* Which streams wait for the default stream: those that were made without the flag. */
static void see_stream(struct reader *d, const struct schema_fn *fn, const struct record *r)
{
	if (strncmp(fn->name, "cuStreamCreate", 14) != 0 || r->result ||
		r->words < RECORD_WORDS + 2 || r->aux & 1)
		return;
	uint32_t *flags = map_get(&d->made, MAP_KEY(d->buf.ref->process, r->arg[0]));
	*flags = (uint32_t)r->arg[1] & 1;
}

/* Queries are in a trace of level all only. */
static void see_occupancy(struct reader *d, const struct schema_fn *fn, const struct record *r)
{
	static const char name[] = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
	if (strncmp(fn->name, name, sizeof name - 1) != 0 || r->words < RECORD_WORDS + 4 ||
		r->aux & 1 || d->f->answers.n >= 4096)
		return;
	*array_push(&d->f->answers) =
		(struct hint_answer){ .name_id = meta_find_kernel(&d->f->report->meta,
					      d->buf.ref->process, r->arg[1], record_end(r)),
			.threads = (uint32_t)r->arg[2],
			.dynamic_bytes = r->arg[3],
			.blocks = (uint32_t)r->arg[0] };
}

static void see_other(struct reader *d, const struct schema_fn *fn, const struct record *r)
{
	see_stream(d, fn, r);
	see_occupancy(d, fn, r);
}

static void take_call(struct reader *d, uint32_t thread, const struct record *r)
{
	const struct schema_fn *fn = schema_find(&d->t->schema, r->fn);
	struct hint_call call = { .thread = thread, .fn = r->fn, .ticks = r->ticks };
	if (!fn || r->result || fn->api == API_ALLOCATOR)
		return;
	call.kind = kind_of(fn);
	if (call.kind == HINT_CALLS) {
		see_other(d, fn, r);
		return;
	}
	call.begin_ns = trace_ns(d->t, r->ticks);
	call.end_ns = trace_ns(d->t, record_end(r));
	add_arguments(fn, r, &call);
	*array_push(&d->f->calls) = call;
}

static int take_calls(struct reader *d)
{
	struct cursor at = { .t = d->t, .buf = &d->buf };
	const struct chunk_ref *of = NULL;
	uint32_t thread = 0;
	for (const struct record *r; (r = trace_next_call(&at)); of = at.ref) {
		if (at.ref != of)
			thread = thread_of(d, at.ref->process, at.ref->head.tid);
		if (d->f->calls.n < MOST)
			take_call(d, thread, r);
		else
			d->f->cut = true;
	}
	return at.error;
}

ORDERING(call_order, struct hint_call, ORDER(a->thread, b->thread), ORDER(a->begin_ns, b->begin_ns),
	ORDER(b->end_ns, a->end_ns))

/* Only the outermost of nested calls stays, with what the inner one knows better. */
static void drop_inner(struct hint_facts *f)
{
	size_t n = 0;
	array_each(const struct hint_call, c, f->calls) {
		struct hint_call *last = n ? &f->calls.v[n - 1] : NULL;
		if (last && last->thread == c->thread && c->begin_ns < last->end_ns) {
			last->from = c->from ? c->from : last->from;
			last->legacy &= !(c->kind == HINT_LAUNCH && !c->legacy);
			continue;
		}
		expect(!last || last->thread < c->thread || last->begin_ns <= c->begin_ns,
			"the calls of a thread come in the order of time");
		f->calls.v[n++] = *c;
	}
	f->calls.n = n;
}

/* The call of the thread that was running at that time. */
static uint32_t call_at(const struct hint_facts *f, uint32_t thread, uint64_t ns)
{
	const struct hint_call *v = f->calls.v;
	const size_t low = SEARCH(i, 0, f->calls.n,
		v[i].thread < thread || (v[i].thread == thread && v[i].begin_ns <= ns));
	if (!low)
		return HINT_NONE;
	const struct hint_call *c = &v[low - 1];
	return c->thread == thread && ns <= c->end_ns ? (uint32_t)(low - 1) : HINT_NONE;
}

static void join_activity(struct reader *d)
{
	struct hint_facts *f = d->f;
	size_t hint = 0;
	array_each(struct hint_activity, w, f->activities) {
		if (!expect(w->call < d->correlations.n, "an activity knows its correlation")) {
			w->call = HINT_NONE;
			continue;
		}
		const uint64_t correlation = d->correlations.v[w->call];
		const struct call_link *l =
			correlation ? links_find(&d->f->report->links, d->processes.v[w->call],
					      correlation, &hint)
				    : NULL;
		const uint32_t thread =
			l ? map_find(&d->threads, MAP_KEY(l->process, l->tid)) : MAP_NONE;
		w->call = thread == MAP_NONE ? HINT_NONE
					     : call_at(f, thread, trace_ns(d->t, l->ticks));
	}
}

static void join_streams(struct reader *d)
{
	struct hint_facts *f = d->f;
	array_each(const struct hint_activity, w, f->activities) {
		const struct hint_call *c = w->call == HINT_NONE ? NULL : &f->calls.v[w->call];
		expect(w->stream < f->streams.n, "the stream of an activity is one of all");
		expect(!c || c->kind < HINT_CALLS,
			"the call of an activity is of a kind that counts");
		struct hint_stream *s = &f->streams.v[w->stream];
		if (!c || w->kind != GPU_KERNEL)
			continue;
		s->legacy += c->legacy;
		s->other += !c->legacy;
		if (!c->legacy && map_find(&d->made, MAP_KEY(s->process, c->stream)) == 0)
			s->blocking = true;
	}
}

static void add_device(struct hint_facts *f, const struct meta_device *m)
{
	for (size_t i = 0; i < f->devices.n; i++)
		if (f->devices.v[i].device == m->device)
			return;
	struct hint_device *new = array_push(&f->devices);
	const unsigned major = m->capability >> 16, minor = m->capability & 0xffff;
	expect(m->name < f->report->meta.names.n, "the name of a device is one of all");
	*new = (struct hint_device){ .device = m->device,
		.name = f->report->meta.names.v[m->name].text,
		.multiprocessors = m->multiprocessors,
		.limits = occupancy_device_find(major, minor) };
	new->gpu = gpu_find(new->name, major < 100 && minor < 10 ? major * 10 + minor : 0);
}

static void add_devices(struct hint_facts *f)
{
	const struct meta *m = &f->report->meta;
	for (size_t i = 0; i < m->devices.n; i++)
		add_device(f, &m->devices.v[i]);
}

const struct hint_device *facts_device(const struct hint_facts *f, uint32_t device)
{
	for (size_t i = 0; i < f->devices.n; i++)
		if (f->devices.v[i].device == device)
			return &f->devices.v[i];
	return NULL;
}

static int read_all(struct reader *d)
{
	add_devices(d->f);
	int e = d->f->report->sampled ? 0 : take_activity(d);
	if (e || !d->f->activities.n)
		return e; /* without device times no rule asks for calls */
	e = take_calls(d);
	SORT(d->f->activities, activity_order);
	SORT(d->f->calls, call_order);
	drop_inner(d->f);
	join_activity(d);
	join_streams(d);
	if (!e)
		e = facts_window(d->f);
	if (!e)
		facts_idle_gaps(d->f);
	return e;
}

int facts_make(const struct report *r, struct hint_facts *ret_facts)
{
	*ret_facts = (struct hint_facts){ .report = r };
	struct reader d = { .f = ret_facts, .t = r->trace };
	const int e = read_all(&d);
	map_fini(&d.shapes, &d.kernels, &d.streams, &d.threads, &d.made);
	array_free(&d.correlations, &d.processes);
	if (e)
		facts_fini(ret_facts);
	return e;
}

void facts_fini(struct hint_facts *f)
{
	for (size_t i = 0; i < f->kernels.n; i++)
		free(f->kernels.v[i].name);
	array_free(&f->activities, &f->calls, &f->kernels, &f->streams, &f->devices, &f->answers,
		&f->threads);
}

uint64_t facts_kernels(const struct hint_facts *f, uint32_t names)
{
	uint64_t n = 0;
	for (size_t i = 0; i < f->kernels.n; i++)
		if (!names || f->kernels.v[i].names & names)
			n += f->kernels.v[i].count;
	return n;
}

bool facts_compiled(const struct hint_facts *f)
{
	static const char *const regions[] = { "Torch-Compiled Region", "CompiledFxGraph" };
	const struct report *r = f->report;
	if (facts_kernels(f, NAME_COMPILED) * 20 > facts_kernels(f, 0))
		return true;
	for (size_t i = 0; i < r->operators.n; i++)
		for (size_t k = 0; k < sizeof regions / sizeof regions[0]; k++)
			if (r->operators.v[i].device_total_ns &&
				strstr(r->operators.v[i].name, regions[k]))
				return true;
	return false;
}

double facts_share(const struct hint_facts *f, double ns)
{
	if (!f->counted_ns || ns <= 0)
		return 0;
	return ns < (double)f->counted_ns ? ns / (double)f->counted_ns : 1;
}

double facts_most(const struct hint_facts *f, const char *kernel)
{
	const struct report *r = f->report;
	double ns = 0;
	if (!r->analysis.known)
		return 1;
	if (!kernel)
		return facts_share(f, (double)r->analysis.path_ns[PATH_COMPUTING]);
	for (size_t i = 0; i < r->activities.n; i++)
		if (r->activities.v[i].kind == GPU_KERNEL &&
			!strcmp(r->activities.v[i].name, kernel))
			ns += (double)r->activities.v[i].path_ns;
	return facts_share(f, ns);
}

/* Only PyTorch's operators, "aten::mm", slow the host; a call of a library is an operator as well,
 * and a cheap one. */
const char *facts_slowed(const struct hint_facts *f)
{
	array_each(const struct operator_row, o, f->report->operators)
		if (o->kind == RANGE_OPERATOR && strstr(o->name, "::"))
			return ". Recording operators slowed the host, so it is less without recording";
	return "";
}
