/* The frame of all exporters: see export.h. */
#include "export/export.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/expect.h"
#include "base/newfile.h"
#include "base/progress.h"
#include "base/sort.h"
#include "trace/activity.h"

const struct exporter *const exporters[] = { &export_perfetto, &export_chrome, &export_csv,
	&export_ndjson, &export_columns, &export_sqlite, &export_memory_viz, &export_dataset,
	&export_dataset_card, &export_otlp, NULL };

const struct exporter *exporter_find(const char *name)
{
	for (int i = 0; exporters[i]; i++)
		if (!strcmp(exporters[i]->name, name))
			return exporters[i];
	return NULL;
}

static bool has_suffix(const struct exporter *e, const char *suffix)
{
	const size_t bytes = strlen(suffix);
	const char *at = e->suffixes ? strstr(e->suffixes, suffix) : NULL;
	while (at && at[bytes] && at[bytes] != ' ')
		at = strstr(at + 1, suffix);
	return at;
}

const struct exporter *exporter_of_file(const char *path)
{
	const char *dot = strrchr(path, '.');
	for (int i = 0; dot && exporters[i]; i++)
		if (has_suffix(exporters[i], dot))
			return exporters[i];
	return NULL;
}

#define BUFFER_BYTES (1u << 20) /* a trace's text may be gigabytes */

struct run {
	const struct exporter *e;
	struct export x;
	struct decoder decoder;
	struct meta meta;
	struct map threads;
	struct chunk_buf buf;
	ARRAY(const struct record *) records;
	size_t link_hint;
};

const char *export_kernel_name(struct export *x, uint32_t kernel)
{
	return demangled_name(&x->names, kernel, "(unknown kernel)");
}

const char *export_string(struct export *x, uint32_t id)
{
	return demangled_name(&x->names, meta_find_string(x->meta, x->process, id), "(no name)");
}

uint64_t export_since(const struct export *x, uint64_t ns)
{
	const uint64_t start = x->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

static const char *name_for_decoder(
	void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes)
{
	struct export *x = context;
	const uint32_t name = meta_find_kernel(x->meta, x->process, handle, ticks);
	if (name == META_NONE)
		return NULL;
	const char *text = export_kernel_name(x, name);
	*ret_bytes = strlen(text);
	return text;
}

static int load_links(struct run *r)
{
	struct export *x = &r->x;
	const int e = r->e->activity ? links_load(x->trace, x->meta, &x->links) : 0;
	links_by_call(&x->links, &x->calls);
	return e;
}

const struct call_link *export_link_of(
	const struct export *x, uint32_t process, uint32_t tid, const struct record *r)
{
	const size_t at = links_from(&x->calls, process, tid, r->ticks);
	const struct call_link *l = links_until(&x->calls, at, process, tid, r->ticks);
	return l && l->fn == r->fn ? l : NULL;
}

uint32_t export_stack_of(const struct export *x, const struct export_call *c)
{
	return x->stacks.samples.n ? stacks_of_call(&x->stacks, c->chunk->process,
					     c->chunk->head.tid, c->record->ticks, c->record->fn)
				   : STACK_NONE;
}

/* Begin first, then the longer first: callers before callees.  Equal ones: the later in the
 * file is the caller. */
ORDERING(call_order, struct record *const, ORDER((*a)->ticks, (*b)->ticks),
	ORDER(record_dur(*b), record_dur(*a)), ORDER(*b, *a))

static void gather(struct run *r)
{
	struct records it = records_of(&r->buf);
	const struct record *record;
	r->records.n = 0;
	while ((record = records_next(&it)))
		*array_push(&r->records) = record;
	SORT(r->records, call_order);
	for (size_t i = 1; i < r->records.n; i++)
		expect_slow(call_order(&r->records.v[i - 1], &r->records.v[i]) < 0,
			"callers come before what they call");
}

static void hand_over(struct run *r, const struct chunk_ref *c, const struct record *record)
{
	char name[32];
	struct export_call call = { .record = record,
		.chunk = c,
		.kernel = META_NONE,
		.link = export_link_of(&r->x, c->process, c->head.tid, record),
		.fn = schema_find(&r->x.trace->schema, record->fn),
		.begin_ns = trace_ns(r->x.trace, record->ticks),
		.end_ns = trace_ns(r->x.trace, record_end(record)) };
	call.name = call.fn ? call.fn->name : name;
	if (!call.fn)
		snprintf(name, sizeof name, "function %u", record->fn);
	call.end_ns = MAX(call.begin_ns, call.end_ns);
	expect(!call.link || call.link->tid == c->head.tid, "a call's link is of its thread");
	call.launch = call.fn && call.fn->launch_layout && decode_shape(record, &call.shape);
	if (call.launch)
		call.kernel = meta_find_kernel(
			r->x.meta, c->process, record->arg[LAUNCH_FUNCTION], record_end(record));
	r->e->call(&r->x, &call);
}

static void announce(struct run *r, const struct chunk_ref *c)
{
	uint32_t *seen = map_get(&r->threads, MAP_KEY(c->process, c->head.tid));
	if (*seen == MAP_NONE && r->e->thread)
		r->e->thread(&r->x, c);
	*seen = 1;
}

static void export_calls(struct run *r)
{
	const struct chunk_ref *c = r->buf.ref;
	gather(r);
	announce(r, c);
	for (size_t k = 0; k < r->records.n && !r->x.failed; k++)
		hand_over(r, c, r->records.v[k]);
}

static void export_activities(struct run *r)
{
	const struct chunk_ref *c = r->buf.ref;
	struct gpu_activity w;
	size_t at = 0;
	while (!r->x.failed && activity_next(&r->buf, &at, &w))
		r->e->activity(&r->x, c, &w, links_of(&r->x.links, c->process, &w, &r->link_hint));
}

static void export_ranges(struct run *r)
{
	struct range g;
	size_t at = 0;
	while (!r->x.failed && range_next(&r->buf, &at, &g))
		r->e->range(&r->x, r->buf.ref, &g);
}

/* Of what was written so far: 0 or -errno. */
static int state_of(const struct export *x)
{
	return x->failed ? x->failed : x->out && ferror(x->out) ? errno ? -errno : -EIO : 0;
}

static int export_chunk(struct run *r)
{
	const struct chunk_ref *c = r->buf.ref;
	expect(c->process < r->x.trace->processes.n, "the process of a chunk is one of all");
	r->x.process = c->process;
	if (c->head.kind == CHUNK_EVENTS)
		export_calls(r);
	else if (c->head.kind == CHUNK_DEVICE)
		export_activities(r);
	else
		export_ranges(r);
	if (!r->x.failed && r->e->chunk_end)
		r->e->chunk_end(&r->x, c);
	return state_of(&r->x);
}

static int export_chunks(struct run *r)
{
	const struct trace *t = r->x.trace;
	const uint32_t kinds = r->e->kinds ? r->e->kinds(&r->x)
					   : 1u << CHUNK_EVENTS |
						     (r->e->activity ? 1u << CHUNK_DEVICE : 0) |
						     (r->e->range ? 1u << CHUNK_RANGES : 0);
	struct progress progress;
	size_t at = 0;
	int e;
	progress_init(&progress, "exporting");
	while ((e = trace_next_of(t, kinds, &at, &r->buf, NULL)) > 0 && !(e = export_chunk(r)))
		progress_show(&progress, at - 1, t->chunk_count);
	progress_fini(&progress);
	return e;
}

static int run_exporter(struct run *r)
{
	demangled_init(&r->x.names, &r->meta);
	int e = load_links(r);
	if (!e && r->e->call)
		e = stacks_load(r->x.trace, &r->x.stacks, r->x.err);
	if (!e && r->e->begin)
		e = r->e->begin(&r->x);
	if (!e)
		e = r->e->whole ? r->e->whole(&r->x) : export_chunks(r);
	if (!e && r->e->end)
		e = r->e->end(&r->x);
	if (r->e->cleanup)
		r->e->cleanup(&r->x);
	if (!e && r->x.out && (fflush(r->x.out) || ferror(r->x.out)))
		e = errno ? -errno : -EIO;
	return e;
}

/* Pipes and devices are written to as they are; a file is replaced when the new one is whole. */
static bool is_special(const char *path)
{
	struct stat st;
	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

static int run_to_stream(struct run *r, FILE *out)
{
	r->x.out = out;
	return run_exporter(r);
}

static int run_to_special(struct run *r, const char *path)
{
	FILE *out = fopen(path, "we");
	if (!out)
		return -errno;
	int e = run_to_stream(r, out);
	if (fclose(out) && !e)
		e = -errno;
	return e;
}

static int run_to_path(struct run *r, const char *path)
{
	struct newfile f;
	const bool by_name = r->e->wants_path;
	if (is_special(path))
		return by_name ? -EINVAL : run_to_special(r, path);
	int e = by_name ? newfile_open_named(&f, path) : newfile_open(&f, path);
	r->x.path = f.temp;
	if (!e && !by_name)
		setvbuf(f.out, NULL, _IOFBF, BUFFER_BYTES);
	if (!e)
		e = run_to_stream(r, by_name ? NULL : f.out);
	return newfile_close(&f, e);
}

static void run_fini(struct run *r)
{
	demangled_fini(&r->x.names);
	links_fini(&r->x.links);
	stacks_fini(&r->x.stacks);
	array_free(&r->x.calls.v);
	meta_fini(&r->meta);
	map_fini(&r->threads);
	chunk_buf_fini(&r->buf);
	array_free(&r->records);
}

int export_run(const struct exporter *exporter, const struct trace *t, const char *only,
	const char *path, FILE *out, struct error *err)
{
	struct run r = { .e = exporter };
	r.x = (struct export){
		.trace = t, .meta = &r.meta, .decoder = &r.decoder, .err = err, .only = only
	};
	if (only && !exporter->kinds)
		return error_set(
			err, -ENODATA, "%s is written whole: it takes no --only", exporter->name);
	r.decoder = (struct decoder){
		.schema = &t->schema, .kernel_name = name_for_decoder, .context = &r.x
	};
	int e = meta_load(t, &r.meta, err);
	if (e)
		return e;
	err->text[0] = '\0';
	e = path ? run_to_path(&r, path) : run_to_stream(&r, out);
	run_fini(&r);
	if (e && !err->text[0])
		error_set(err, e, "%s can't be written: %s", path ? path : "standard output",
			strerror(-e));
	return e;
}
