/* Counting records: see tally.h.  tally_record() is what a report's time is spent in. */
#include "model/tally.h"

#include "base/expect.h"
#include "event/predicted.h"
#include "model/host_time.h"

#define NOT_READY 600u /* CUDA_ERROR_NOT_READY, cudaErrorNotReady: an answer, no failure */

bool chunk_has_calls(const struct chunk_ref *c)
{
	return c->head.kind == CHUNK_EVENTS || c->head.kind == CHUNK_COUNTERS;
}

void tally_init(struct tally *t, const struct trace *trace, const struct meta *meta,
	const uint32_t *thread_numbers, uint32_t facets)
{
	*t = (struct tally){ .trace = trace,
		.meta = meta,
		.thread_numbers = thread_numbers,
		.facets = facets,
		.first_ticks = UINT64_MAX };
	t->row_of = xcalloc(FN_IDS, sizeof *t->row_of);
	t->graph_launches = xcalloc(meta->steps.n + 1, sizeof *t->graph_launches);
}

void tally_fini(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->calls.n; i++)
		hist_fini(&t->calls.v[i].hist);
	for (size_t i = 0; i < t->times.n; i++) {
		hist_fini(&t->times.v[i].hist);
		array_free(&t->times.v[i].ticks, &t->times.v[i].runs);
	}
	free(t->row_of);
	free(t->graph_launches);
	array_free(&t->calls, &t->failures, &t->shapes, &t->times, &t->waits, &t->memory, &t->vmm,
		&t->memory_spans);
	array_free(&t->reserved, &t->sources, &t->threads);
	map_fini(&t->thread_map, &t->source_map, &t->failure_map, &t->shape_map, &t->times_map,
		&t->streams, &t->contexts);
	*t = (struct tally){ 0 };
}

/* A stream that is only made and destroyed, as those of PyTorch's pool, is not used. */
static bool puts_work(const char *class)
{
	return !strcmp(class, "launch") || !strcmp(class, "copy") || !strcmp(class, "set");
}

static enum wait_kind wait_of(const struct schema_fn *fn)
{
	const bool copies = fn->kind == CALL_COPY || !strcmp(fn->class, "copy");
	if (schema_blocks(fn))
		return copies ? WAIT_COPY : WAIT_SYNC;
	if (memory_call_of(fn) == MEMORY_CALL_WAITS)
		return WAIT_FREE;
	return copies ? WAIT_LONG_COPY : WAIT_NONE;
}

static struct call_row *row_of(struct tally *t, uint32_t id)
{
	expect_slow(t->row_of[id] <= t->calls.n, "the row of a function is one of all");
	if (t->row_of[id])
		return &t->calls.v[t->row_of[id] - 1];
	struct call_row *c = array_push(&t->calls);
	*c = (struct call_row){ .id = id, .fn = schema_find(&t->trace->schema, id) };
	c->vmm = c->fn ? memory_vmm_role(c->fn) : VMM_NOTHING;
	c->memory_call = c->fn ? memory_call_of(c->fn) : MEMORY_CALL_NO;
	c->wait = c->fn ? wait_of(c->fn) : WAIT_NONE;
	c->waits = c->fn && !strcmp(c->fn->class, "sync") && schema_blocks(c->fn);
	c->uses_stream = c->fn && puts_work(c->fn->class);
	t->row_of[id] = (uint32_t)t->calls.n;
	return c;
}

static void add_failure(struct tally *t, const struct failure_row *f)
{
	const size_t before = t->failures.n;
	struct failure_row *to = MAP_ROW(&t->failure_map,
		MAP_KEY((uint64_t)f->fn_id << 32 | f->code, f->process, f->tid), &t->failures, *f);
	if (t->failures.n > before)
		return;
	to->count += f->count;
	to->first_ticks = MIN(f->first_ticks, to->first_ticks);
}

static bool counts(const struct tally *t, uint32_t facets)
{
	return (t->facets & facets) != 0;
}

static bool is_failure(const struct call_row *c, const struct record *r)
{
	return r->result && r->result != NOT_READY && !(c->fn && c->fn->kind == CALL_STATUS);
}

/* An asynchronous copy that returns late has waited. */
static void add_wait(struct tally *t, const struct call_row *c, const struct record *r)
{
	if (c->wait == WAIT_LONG_COPY && trace_span_ns(t->trace, r->dur) < HOST_GAP_NS)
		return;
	*array_push(&t->waits) = (struct wait_call){ .at = { .ticks = r->ticks,
							     .end = record_end(r),
							     .process = t->process,
							     .tid = t->tid },
		.fn = r->fn,
		.kind = c->wait };
}

static void merge_shape(struct tally *t, const struct shape_row *row)
{
	const struct launch_shape *s = &row->shape;
	const size_t before = t->shapes.n;
	struct shape_row *to = MAP_ROW(&t->shape_map,
		MAP_KEY(row->kernel, (uint64_t)s->grid[1] << 32 | s->grid[0],
			(uint64_t)s->block[0] << 32 | s->grid[2],
			(uint64_t)s->block[2] << 32 | s->block[1]),
		&t->shapes, *row);
	if (t->shapes.n > before)
		return;
	to->count += row->count;
	to->graph_count += row->graph_count;
	to->host_ticks += row->host_ticks;
}

void tally_shape(struct tally *t, uint64_t kernel, const struct launch_shape *shape, uint64_t count,
	uint64_t ticks, bool graph)
{
	merge_shape(t, &(struct shape_row){ .kernel = kernel,
			       .count = count,
			       .graph_count = graph ? count : 0,
			       .host_ticks = ticks,
			       .shape = *shape });
}

void tally_common(struct launch_shape *common, uint64_t *most, const struct launch_shape *shape,
	uint64_t count)
{
	if (count < *most || (count == *most && memcmp(shape, common, sizeof *shape) >= 0))
		return;
	*most = count;
	*common = *shape;
}

static struct kernel_times *times_of(struct tally *t, uint64_t kernel)
{
	return MAP_ROW(&t->times_map, MAP_KEY(kernel), &t->times,
		(struct kernel_times){ .kernel = kernel });
}

static void note_begin(struct kernel_times *k, uint32_t chunk, uint64_t ticks)
{
	if (!k->runs.n || k->runs.v[k->runs.n - 1].chunk != chunk)
		*array_push(&k->runs) = (struct launch_run){ chunk, k->ticks.n, 0 };
	k->runs.v[k->runs.n - 1].count++;
	*array_push(&k->ticks) = ticks;
}

static void add_launch(struct tally *t, const struct record *r)
{
	struct launch_shape shape = { 0 };
	if (!decode_shape(r, &shape))
		return;
	const uint64_t handle = r->arg[LAUNCH_FUNCTION];
	const uint32_t name = meta_find_kernel(t->meta, t->process, handle, record_end(r));
	const uint64_t kernel = name == META_NONE ? KERNEL_UNNAMED | handle : name;
	expect(name == META_NONE || name < t->meta->names.n, "a kernel's name is one of all");
	struct kernel_times *times = times_of(t, kernel);
	hist_add(&times->hist, record_dur(r));
	if (counts(t, FACET(MEMORY)))
		note_begin(times, t->chunk, r->ticks);
	tally_shape(t, kernel, &shape, 1, record_dur(r), false);
}

static void add_graph_launch(struct tally *t, const struct record *r)
{
	if (r->words <= RECORD_WORDS)
		return;
	const uint32_t step = meta_find_graph(t->meta, t->process, r->arg[0], record_end(r));
	expect(step == META_NONE || step < t->meta->steps.n, "a graph's last step is one of all");
	if (step == META_NONE)
		t->unnamed_graphs++;
	else
		t->graph_launches[step]++;
}

static uint8_t kind_of_memory(const char *name)
{
	for (uint8_t k = 0; k < MEMORY_KINDS; k++)
		if (!strcmp(name, memory_kind_name[k]))
			return k;
	return MEMORY_DEVICE;
}

/* The argument of that type, or 0 in *ret_value. */
static bool argument_of(
	const struct schema_fn *fn, const struct record *r, const char *type, uint64_t *ret_value)
{
	for (unsigned i = 0; i < fn->arg_count; i++) {
		const struct schema_arg *a = &fn->args[i];
		if (strcmp(a->type, type) != 0 || a->out || a->first >= r->words - RECORD_WORDS)
			continue;
		*ret_value = r->arg[a->first];
		return true;
	}
	return false;
}

static bool is_source(const struct memory_source *a, const struct memory_source *b)
{
	return a->stream == b->stream && a->pool == b->pool && a->process == b->process &&
	       a->tid == b->tid && a->has_stream == b->has_stream && a->unseen == b->unseen;
}

static uint32_t source_of(struct tally *t, const struct schema_fn *fn, const struct record *r)
{
	const bool unseen = !strcmp(fn->class, MEMORY_UNSEEN);
	struct memory_source s = {
		.process = t->process, .tid = unseen ? 0 : t->tid, .unseen = unseen
	};
	s.has_stream = argument_of(fn, r, "CUstream", &s.stream);
	argument_of(fn, r, "CUmemoryPool", &s.pool);
	if (t->sources.n && is_source(&s, &t->sources.v[t->last_source]))
		return t->last_source;
	const struct memory_source *row =
		MAP_ROW(&t->source_map, memory_source_key(&s), &t->sources, s);
	t->last_source = (uint32_t)(row - t->sources.v);
	expect(t->last_source < t->sources.n, "where memory came from is one of all sources");
	return t->last_source;
}

static void add_memory(struct tally *t, const struct call_row *c, const struct record *r)
{
	const bool is_free = c->fn->kind == CALL_FREE;
	struct memory_op op = { .process = t->process,
		.fn_id = r->fn,
		.free = is_free,
		.end = MEMORY_NEVER,
		.ticks = is_free ? r->ticks : record_end(r),
		.kind = kind_of_memory(c->fn->memory) };
	if (!schema_call_pointer(c->fn, r, &op.pointer) || !op.pointer)
		return;
	if (!is_free && !schema_call_bytes(c->fn, r, &op.bytes))
		return;
	if (!is_free)
		op.source = source_of(t, c->fn, r);
	*array_push(&t->memory) = op;
}

static void add_vmm(struct tally *t, const struct call_row *c, const struct record *r)
{
	struct vmm_op op;
	if (!memory_vmm_op(c->fn, c->vmm, r, &op))
		return;
	op.process = t->process;
	op.tid = t->tid;
	*array_push(&t->vmm) = op;
}

static void add_reserved(struct tally *t, const struct schema_fn *fn, const struct record *r)
{
	struct reserved_note note;
	if (!memory_reserved_note(fn, r, &note))
		return;
	note.process = t->process;
	*array_push(&t->reserved) = note;
}

static void add_span(struct tally *t, const struct record *r)
{
	*array_push(&t->memory_spans) = (struct call_span){ r->ticks, record_end(r), r->fn };
}

static void see(struct map *seen, uint64_t *last, uint32_t process, uint64_t handle)
{
	if (*last == handle + 1)
		return;
	uint32_t *value = map_get(seen, MAP_KEY(process, handle));
	*value = 1;
	*last = handle + 1;
}

/* Two characters of the type decide for nearly all arguments. */
static bool is_type(const char *type, const char *word)
{
	return type[2] == word[2] && !strcmp(type, word);
}

static void see_handles(struct tally *t, const struct call_row *c, const struct record *r)
{
	const struct schema_fn *fn = c->fn;
	if (!counts(t, FACET(STREAMS)))
		return;
	for (unsigned i = 0; i < fn->arg_count; i++) {
		const struct schema_arg *a = &fn->args[i];
		if (a->kind != ARG_PTR || a->first >= r->words - RECORD_WORDS)
			continue;
		if (a->out && i < 32 && (r->aux >> i & 1))
			continue;
		if (c->uses_stream && is_type(a->type, "CUstream"))
			see(&t->streams, &t->last_stream, t->process, r->arg[a->first]);
		else if (is_type(a->type, "CUcontext") && r->arg[a->first])
			see(&t->contexts, &t->last_context, t->process, r->arg[a->first]);
	}
}

static void add_live(struct tally *t, const struct call_row *c, const struct record *r)
{
	if (!counts(t, FACET(MEMORY)))
		return;
	if (c->vmm) {
		add_vmm(t, c, r);
		return;
	}
	if (c->fn->kind != CALL_ALLOC && c->fn->kind != CALL_FREE)
		return;
	add_memory(t, c, r);
	add_reserved(t, c->fn, r);
}

static struct thread_sums *thread_of(
	struct tally *t, uint32_t number, uint32_t process, uint32_t tid)
{
	return MAP_ROW(&t->thread_map, MAP_KEY(number), &t->threads,
		(struct thread_sums){ .number = number, .process = process, .tid = tid });
}

static bool is_launch(const struct call_row *c)
{
	return c->fn && c->fn->api == API_DRIVER &&
	       (c->fn->kind == CALL_LAUNCH || c->fn->kind == CALL_GRAPHLAUNCH);
}

static bool is_runtime_launch(const struct call_row *c)
{
	return !strcmp(c->fn->class, "launch") && !strstr(c->fn->name, "HostFunc");
}

/* Other tools record calls of the runtime, and of the driver only some: those that no call of the
 * runtime was around.  A call of the runtime without one of the driver inside stands for it.  *
 * Weir's own recordings have all calls of the driver. */
static void add_runtime_call(struct tally *t, const struct call_row *c, const struct record *r)
{
	const bool outer = t->inner_ticks >= r->ticks;
	if (t->trace->header.launched || outer || r->flags & RECORD_CAPTURED)
		return;
	t->thread->launches += !r->result && is_runtime_launch(c);
	if (!c->waits)
		return;
	t->thread->waits = sat_add(t->thread->waits, 1);
	t->thread->wait_ticks = sat_add(t->thread->wait_ticks, record_dur(r));
}

/* Records stand in the order in which calls ended. */
static void note_inner(struct tally *t, const struct call_row *c, const struct record *r)
{
	if (!c->fn)
		return;
	if (c->fn->api == API_RUNTIME)
		add_runtime_call(t, c, r);
	else if (c->waits || is_launch(c))
		t->inner_ticks = r->ticks;
}

/* So many calls, of which `timed` took so long. */
static void add_to_thread(struct thread_sums *s, const struct call_row *c, uint64_t count,
	uint64_t timed, uint64_t ticks)
{
	if (c->fn && c->fn->api == API_ALLOCATOR)
		return;
	s->calls = sat_add(s->calls, count);
	if (!c->fn || c->fn->api != API_DRIVER)
		return;
	s->timed = sat_add(s->timed, timed);
	s->timed_ticks = sat_add(s->timed_ticks, ticks);
	if (!c->waits)
		return;
	s->waits = sat_add(s->waits, count);
	s->wait_ticks = sat_add(s->wait_ticks, ticks);
}

static void merge_threads(struct tally *t, const struct tally *from)
{
	array_each(const struct thread_sums, f, from->threads)
		thread_sums_add(thread_of(t, f->number, f->process, f->tid), f);
}

/* Adds the GPU work that a successful driver call asked for. */
static void add_activity(struct tally *t, struct call_row *c, const struct record *r)
{
	uint64_t bytes = 0;
	if (c->fn->launch_layout) {
		if (counts(t, FACET(STREAMS)) && r->words > RECORD_WORDS + LAUNCH_STREAM)
			see(&t->streams, &t->last_stream, t->process, r->arg[LAUNCH_STREAM]);
		return;
	}
	if (schema_call_bytes(c->fn, r, &bytes)) {
		c->bytes = sat_add(c->bytes, bytes);
		c->sized++;
	}
	if (c->fn->kind == CALL_ALLOC && c->fn->api == API_DRIVER)
		t->thread->allocated_bytes = sat_add(t->thread->allocated_bytes, bytes);
	add_live(t, c, r);
	see_handles(t, c, r);
}

static void count_prediction(struct tally *t, const struct call_row *c, const struct record *r)
{
	struct predicted_time got;
	bool predicted = false;
	if (c->fn->kind == CALL_LAUNCH)
		predicted = predicted_get(r, &got);
	else if (c->fn->kind == CALL_GRAPHLAUNCH)
		predicted = predicted_get_behind(r, GRAPH_LAUNCH_WORDS, &got);
	else
		return;
	t->predicted += predicted;
	t->unpredicted += !predicted;
}

static void add_success(struct tally *t, struct call_row *c, const struct record *r)
{
	if (r->flags & RECORD_CAPTURED || !c->fn || c->fn->api == API_RUNTIME)
		return;
	c->ok_plain++;
	t->thread->launches += is_launch(c);
	if (counts(t, FACET(PREDICTION)) && r->flags & RECORD_PREDICTED)
		count_prediction(t, c, r);
	if (counts(t, FACET(KERNELS)) && c->fn->kind == CALL_LAUNCH)
		add_launch(t, r);
	else if (counts(t, FACET(KERNELS)) && c->fn->kind == CALL_GRAPHLAUNCH)
		add_graph_launch(t, r);
	add_activity(t, c, r);
}

/* Before what is read: only what is live counts. */
static void add_history(struct tally *t, const struct call_row *c, const struct record *r)
{
	if (r->result || r->flags & RECORD_CAPTURED || !c->fn || c->fn->api == API_RUNTIME)
		return;
	add_live(t, c, r);
}

static void tally_record(struct tally *t, const struct record *r)
{
	struct call_row *c = row_of(t, r->fn);
	if (r->flags & RECORD_OUTSIDE) {
		add_history(t, c, r);
		return;
	}
	const uint64_t dur = record_dur(r), end = r->ticks + dur;
	c->count++;
	c->timed++;
	c->summed++;
	c->total_ticks += dur;
	if (counts(t, FACET(CALL_TIMES)))
		hist_add(&c->hist, dur);
	if (counts(t, FACET(THREADS))) {
		add_to_thread(t->thread, c, 1, 1, dur);
		note_inner(t, c, r);
	}
	t->first_ticks = MIN(r->ticks, t->first_ticks);
	t->last_ticks = MAX(end, t->last_ticks);
	if (c->memory_call && counts(t, FACET(MEMORY)))
		add_span(t, r);
	if (c->wait && counts(t, FACET(WAITS)))
		add_wait(t, c, r);
	if (!r->result) {
		add_success(t, c, r);
		return;
	}
	if (!is_failure(c, r))
		return;
	c->errors++;
	add_failure(t, &(struct failure_row){ .fn_id = r->fn,
			       .code = r->result,
			       .process = t->process,
			       .tid = t->tid,
			       .count = 1,
			       .first_ticks = r->ticks });
}

static void tally_records(struct tally *t, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	const struct record *r;
	t->inner_ticks = 0;
	while ((r = records_next(&it)))
		tally_record(t, r);
	t->torn += it.torn;
	t->damaged_chunks += it.damaged != NULL;
}

static void tally_counter(struct tally *t, uint32_t id, const struct counter *k)
{
	struct call_row *c = row_of(t, id);
	c->count = sat_add(c->count, k->count);
	c->summed = sat_add(c->summed, k->ticks ? k->count : 0);
	c->total_ticks = sat_add(c->total_ticks, k->ticks);
	add_to_thread(t->thread, c, k->count, k->ticks ? k->count : 0, k->ticks);
	if (!c->fn || c->fn->kind != CALL_STATUS)
		c->errors = sat_add(c->errors, k->errors);
	if (!c->fn || c->fn->api != API_DRIVER)
		return;
	const uint64_t ok = k->count > k->errors ? k->count - k->errors : 0;
	c->ok_plain = sat_add(c->ok_plain, ok);
	c->ok_counted = sat_add(c->ok_counted, ok);
	c->bytes = sat_add(c->bytes, k->bytes);
	c->sized = sat_add(c->sized, c->fn && c->fn->factor_count ? ok : 0);
	t->thread->launches += is_launch(c) ? ok : 0;
	if (c->fn->kind == CALL_ALLOC)
		t->thread->allocated_bytes = sat_add(t->thread->allocated_bytes, k->bytes);
}

static void tally_counters(struct tally *t, const struct chunk_buf *buf)
{
	const size_t count = buf->bytes / sizeof(struct counter);
	for (size_t id = 1; id < count && id < META_PROCESS; id++) {
		struct counter k;
		memcpy(&k, buf->payload + id * sizeof k, sizeof k);
		if (k.count)
			tally_counter(t, (uint32_t)id, &k);
	}
}

void tally_chunk(struct tally *t, size_t i, const struct chunk_buf *buf)
{
	if (t->process != buf->ref->process)
		t->last_stream = t->last_context = 0;
	t->chunk = (uint32_t)i;
	t->process = buf->ref->process;
	t->tid = buf->ref->head.tid;
	t->thread = thread_of(t, t->thread_numbers[i], t->process, t->tid);
	if (buf->ref->head.kind == CHUNK_EVENTS) {
		tally_records(t, buf);
		return;
	}
	if (buf->ref->head.kind == CHUNK_COUNTERS)
		tally_counters(t, buf);
}

static void merge_calls(struct tally *t, const struct tally *from)
{
	array_each(const struct call_row, f, from->calls) {
		struct call_row *c = row_of(t, f->id);
		c->count = sat_add(c->count, f->count);
		c->timed += f->timed;
		c->summed = sat_add(c->summed, f->summed);
		c->total_ticks = sat_add(c->total_ticks, f->total_ticks);
		c->errors = sat_add(c->errors, f->errors);
		c->ok_plain = sat_add(c->ok_plain, f->ok_plain);
		c->ok_counted = sat_add(c->ok_counted, f->ok_counted);
		c->bytes = sat_add(c->bytes, f->bytes);
		c->sized = sat_add(c->sized, f->sized);
		hist_merge(&c->hist, &f->hist);
		expect(c->hist.count <= c->timed, "no more calls have a duration than were timed");
	}
}

static void merge_seen(struct map *to, const struct map *from)
{
	for (size_t i = 0; i < from->size; i++)
		if (from->slots[i].taken)
			map_get(to, from->slots[i].key);
}

static void merge_times(struct tally *t, const struct tally *from)
{
	for (size_t i = 0; i < from->times.n; i++) {
		struct kernel_times *to = times_of(t, from->times.v[i].kernel);
		hist_merge(&to->hist, &from->times.v[i].hist);
	}
}

static void merge_rows(struct tally *t, const struct tally *from)
{
	for (size_t i = 0; i < from->failures.n; i++)
		add_failure(t, &from->failures.v[i]);
	for (size_t i = 0; i < from->shapes.n; i++)
		merge_shape(t, &from->shapes.v[i]);
	merge_times(t, from);
	merge_threads(t, from);
	merge_seen(&t->streams, &from->streams);
	merge_seen(&t->contexts, &from->contexts);
}

void tally_merge(struct tally *t, const struct tally *from)
{
	for (size_t i = 0; i < t->meta->steps.n; i++)
		t->graph_launches[i] += from->graph_launches[i];
	t->unnamed_graphs += from->unnamed_graphs;
	t->torn += from->torn;
	t->predicted += from->predicted;
	t->unpredicted += from->unpredicted;
	t->damaged_chunks += from->damaged_chunks;
	t->first_ticks = MIN(from->first_ticks, t->first_ticks);
	t->last_ticks = MAX(from->last_ticks, t->last_ticks);
	for (size_t i = 0; i < from->waits.n; i++)
		*array_push(&t->waits) = from->waits.v[i];
	merge_calls(t, from);
	merge_rows(t, from);
}
