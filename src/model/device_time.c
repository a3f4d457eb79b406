/* Computes the parts of a report that come from GPU activities. */
#include "model/device_join.h"

#include "base/expect.h"
#include "base/hash.h"

#include "model/roofline.h"
#include "model/demangle.h"
#include "model/tally.h"

static struct cursor start(struct joiner *j)
{
	return (struct cursor){
		.t = j->r->trace, .buf = &j->buf, .damaged = &j->r->damaged_chunks
	};
}

static uint32_t thread_of(struct joiner *j, uint32_t process, uint32_t tid)
{
	const uint32_t *thread =
		MAP_ROW(&j->thread_map, MAP_KEY(process, tid), &j->thread_process, process);
	return (uint32_t)(thread - j->thread_process.v);
}

static const char *text_of(const struct joiner *j, uint32_t name)
{
	return name == META_NONE ? "(no name)" : j->r->meta.names.v[name].text;
}

/* The list behind "Input Dims" among the arguments of a range, or NULL. */
static const char *shape_of(struct joiner *j, const struct range *g, size_t *ret_bytes)
{
	static const char key[] = "\"Input Dims\":";
	const uint32_t args = meta_find_string(&j->r->meta, j->buf.ref->process, g->args);
	const char *at =
		!j->r->by_shape || args == META_NONE ? NULL : strstr(text_of(j, args), key);
	size_t depth = 0, n = 0;
	*ret_bytes = 0;
	if (!at)
		return NULL;
	at += sizeof key - 1;
	do {
		depth += at[n] == '[';
		depth -= at[n] == ']';
	} while (depth && at[++n]);
	*ret_bytes = depth ? 0 : n + 1;
	return at;
}

static uint32_t operator_of(struct joiner *j, const struct range *g)
{
	const uint32_t name = meta_find_string(&j->r->meta, j->buf.ref->process, g->name);
	size_t bytes;
	const char *shape = shape_of(j, g, &bytes);
	const struct operator_row *o = MAP_ROW(&j->row_map,
		MAP_KEY(name, g->kind, bytes ? hash_bytes(shape, bytes) : 0), &j->r->operators,
		(struct operator_row){ .name = text_of(j, name),
			.shape = shape,
			.shape_bytes = bytes,
			.kind = g->kind,
			.library = owner_is_library(g->kind, text_of(j, name)) });
	return (uint32_t)(o - j->r->operators.v);
}

static uint32_t cost_index(struct joiner *j, const struct range *g, uint32_t row)
{
	const uint32_t args = meta_find_string(&j->r->meta, j->buf.ref->process, g->args);
	return cost_table_find(&j->costs, j->r->operators.v[row].name,
		args == META_NONE ? NULL : text_of(j, args));
}

static void count_span(struct joiner *j, const struct range *g)
{
	const uint32_t name = meta_find_string(&j->r->meta, j->buf.ref->process, g->name);
	struct span_row *s = MAP_ROW(&j->row_map, MAP_KEY(name, g->kind), &j->r->span_rows,
		(struct span_row){ .name = text_of(j, name), .kind = g->kind });
	s->count++;
	s->host_ticks = sat_add(s->host_ticks, g->dur);
	if (g->dur)
		hist_add(&s->host_hist, g->dur);
}

static void keep_span(struct joiner *j, const struct range *g)
{
	struct span s = {
		.at = nested_of(g, j->buf.ref->process), .cost = NONE, .told = g->args != 0
	};
	s.row = operator_of(j, g);
	if (g->args && g->kind == RANGE_OPERATOR)
		s.cost = cost_index(j, g, s.row);
	*array_push(&j->spans) = s;
}

static int take_ranges(struct joiner *j)
{
	struct cursor at = start(j);
	for (struct range g; trace_next_range(&at, &g);) {
		if (range_nests(g.kind))
			keep_span(j, &g);
		else if (g.kind != RANGE_PYTHON)
			count_span(j, &g);
	}
	return at.error;
}

static bool launches_kernel(const struct trace *t, uint16_t id)
{
	const struct schema_fn *fn = schema_find(&t->schema, id);
	return fn && (fn->kind == CALL_LAUNCH || fn->kind == CALL_RTLAUNCH ||
			     !strncmp(fn->name, "cudaLaunchKernelEx", 18));
}

static void take_link(struct joiner *j, const struct call_link *l)
{
	struct launch n = { .span = NONE, .kernel = launches_kernel(j->r->trace, l->fn) };
	n.thread = thread_of(j, l->process, l->tid);
	*array_push(&j->launches) = n;
}

static void take_links(struct joiner *j)
{
	const struct links *l = &j->r->links;
	for (size_t i = 0; i < l->v.n; i++)
		take_link(j, &l->v.v[i]);
}

static bool is_repeated(const struct joiner *j, const struct span *s)
{
	uint32_t up = s->at.parent;
	for (int i = 0; up != NONE && i < LOOK_UP_MOST; i++) {
		if (j->spans.v[up].row == s->row)
			return true;
		up = j->spans.v[up].at.parent;
	}
	return false;
}

static void enter(struct joiner *j, struct span *s)
{
	if (s->at.parent == NONE)
		return;
	struct span *p = &j->spans.v[s->at.parent];
	p->inner_ticks = sat_add(p->inner_ticks, s->at.end - s->at.ticks);
	p->inner_count++;
}

/* An operator that does nothing but call itself, as an overload does: one, not two. */
static bool is_overload(const struct joiner *j, const struct span *s)
{
	const struct span *p = s->at.parent == NONE ? NULL : &j->spans.v[s->at.parent];
	return p && p->inner_count == 1 && is_namesake(j, s, p);
}

/* The shape of an overload is that which its caller was given. */
static void find_repeated(struct joiner *j, struct span *s)
{
	if (is_overload(j, s))
		s->row = j->spans.v[s->at.parent].row;
	s->repeated = is_repeated(j, s);
}

/* The range in which each launch was made. */
static void find_owners(struct joiner *j)
{
	size_t hint = 0;
	NESTED(j->spans);
	ALONES_MAKE(j->spans, &j->alones);
	for (size_t i = 0; i < j->spans.n; i++)
		enter(j, &j->spans.v[i]);
	for (size_t i = 0; i < j->spans.n; i++)
		find_repeated(j, &j->spans.v[i]);
	for (size_t i = 0; i < j->launches.n && j->spans.n; i++) {
		const struct call_link *l = &j->r->links.v.v[i];
		struct launch *n = &j->launches.v[i];
		n->span = NESTED_AT(j->spans, l->process, l->tid, l->ticks, &hint);
		if (n->span == NONE)
			n->span = ALONES_AT(&j->alones, j->spans, l->process, l->ticks);
	}
	EXTERNALS_MAKE(j->spans, &j->externals);
}

/* An activity without a name is called by its kind. */
static const char *kind_text(uint16_t kind)
{
	return kind == GPU_MEMCPY   ? "memcpy"
	       : kind == GPU_MEMSET ? "memset"
	       : kind == GPU_GRAPH  ? "graph"
				    : "(no name)";
}

/* The row of a name: two that are demangled to the same text share it. */
static uint32_t new_activity(struct joiner *j, uint32_t name, uint16_t kind)
{
	char *text = demangle(name == META_NONE ? kind_text(kind) : text_of(j, name));
	uint32_t *index = device_text_slot(&j->text_map, text, kind);
	if (*index != MAP_NONE) {
		free(text);
		return *index;
	}
	struct activity_row *new = array_push(&j->r->activities);
	struct predict_product *product = array_push(&j->products);
	*new = (struct activity_row){ .name = text,
		.mangled = name == META_NONE ? NULL : text_of(j, name),
		.kind = kind,
		.communicates = activity_communicates(text) };
	*product = predict_product_of(text);
	return *index = (uint32_t)(j->r->activities.n - 1);
}

static uint32_t activity_of(struct joiner *j, const struct gpu_activity *w)
{
	const uint32_t name = meta_find_string(&j->r->meta, j->buf.ref->process, w->name);
	uint32_t *index = map_get(&j->activity_map, MAP_KEY(name, w->kind));
	if (*index == MAP_NONE)
		*index = new_activity(j, name, w->kind);
	return *index;
}

static void count_shape(struct joiner *j, uint32_t index, const struct gpu_activity *w)
{
	struct activity_row *row = &j->r->activities.v[index];
	if (!(w->valid & GPU_HAS_SHAPE))
		return;
	uint64_t *count = MAP_ROW(&j->shape_map,
		MAP_KEY((uint64_t)index << 32 | w->grid[0], (uint64_t)w->grid[1] << 32 | w->grid[2],
			(uint64_t)w->block[0] << 32 | w->block[1], w->block[2]),
		&j->shape_counts, 0);
	row->shapes += !*count;
	struct launch_shape shape;
	memcpy(shape.grid, w->grid, sizeof w->grid);
	memcpy(shape.block, w->block, sizeof w->block);
	tally_common(&row->shape, &row->common, &shape, ++*count);
}

static void count_copy(struct joiner *j, const struct gpu_activity *w)
{
	const bool set = w->kind == GPU_MEMSET, kinds = w->valid & GPU_HAS_MEMORY_KINDS;
	const struct copy_row key = { .what = w->valid & GPU_HAS_WHAT && !set ? w->what : 0,
		.from = kinds ? w->from : 0,
		.to = kinds && !set ? w->to : 0,
		.is_memset = set };
	struct copy_row *c = MAP_ROW(&j->copy_map, MAP_KEY(w->kind, key.what, key.from, key.to),
		&j->r->device_copies, key);
	c->count++;
	c->total_ns = sat_add(c->total_ns, w->end_ns - w->start_ns);
	hist_add(&c->hist, w->end_ns - w->start_ns);
	if (!(w->valid & GPU_HAS_BYTES))
		return;
	c->min_bytes = !c->sized || w->bytes < c->min_bytes ? w->bytes : c->min_bytes;
	c->max_bytes = w->bytes > c->max_bytes ? w->bytes : c->max_bytes;
	c->sized++;
	c->bytes = sat_add(c->bytes, w->bytes);
	c->sized_ns = sat_add(c->sized_ns, w->end_ns - w->start_ns);
}

static uint32_t count_stream(struct joiner *j, const struct gpu_activity *w)
{
	const struct stream_row key = { .process = j->buf.ref->process,
		.device = w->valid & GPU_HAS_DEVICE ? w->device : 0,
		.context = w->valid & GPU_HAS_CONTEXT ? w->context : 0,
		.stream = w->stream,
		.first_ns = w->start_ns };
	if (!(w->valid & GPU_HAS_STREAM))
		return NO_STREAM;
	struct stream_row *s = MAP_ROW(&j->stream_map,
		MAP_KEY(key.process, key.device, key.context, key.stream), &j->r->stream_rows, key);
	s->count++;
	s->total_ns = sat_add(s->total_ns, w->end_ns - w->start_ns);
	s->first_ns = w->start_ns < s->first_ns ? w->start_ns : s->first_ns;
	s->last_ns = w->end_ns > s->last_ns ? w->end_ns : s->last_ns;
	return (uint32_t)(s - j->r->stream_rows.v);
}

static const char *device_name(const struct joiner *j, uint32_t device)
{
	const struct meta *m = &j->r->meta;
	for (size_t i = 0; i < m->devices.n; i++)
		if (m->devices.v[i].device == device)
			return m->names.v[m->devices.v[i].name].text;
	return NULL;
}

static uint32_t count_device(struct joiner *j, const struct gpu_activity *w)
{
	const uint64_t ns = w->end_ns - w->start_ns;
	const uint32_t device = w->valid & GPU_HAS_DEVICE ? w->device : 0;
	struct device_row *d = MAP_ROW(&j->device_map, MAP_KEY(device), &j->r->devices,
		(struct device_row){ .device = device, .name = device_name(j, device) });
	uint64_t *sum = w->kind == GPU_MEMCPY   ? &d->copy_ns
			: w->kind == GPU_MEMSET ? &d->set_ns
						: &d->kernel_ns;
	d->count++;
	*sum = sat_add(*sum, ns);
	return (uint32_t)(d - j->r->devices.v);
}

/* The call and the span that launched the activity, or NONE. */
static void owner_of(struct joiner *j, const struct gpu_activity *w, struct activity_row *row,
	uint32_t *ret_call, uint32_t *ret_span)
{
	const uint32_t process = j->buf.ref->process;
	const struct call_link *l = links_of(&j->r->links, process, w, &j->hint);
	const size_t i = l ? (size_t)(l - j->r->links.v.v) : 0;
	struct launch *n = l ? &j->launches.v[i] : NULL;
	expect(!l || i < j->launches.n, "there is a launch beside each link");
	*ret_call = l ? (uint32_t)i : NO_CALL;
	*ret_span = n ? n->span : NONE;
	if (n && n->kernel && !n->counted && w->kind == GPU_KERNEL) {
		row->host_ticks = sat_add(row->host_ticks, l->dur);
		n->counted = true;
	}
	if (n)
		return;
	j->r->unjoined_activities++;
	if (w->valid & GPU_HAS_EXTERNAL && w->external)
		*ret_span = externals_find(&j->externals, process, w->external);
}

static void keep_activity(struct joiner *j, const struct gpu_activity *w, struct activity *activity)
{
	struct activity *new = array_push(&j->timeline.activities);
	*new = *activity;
	new->start_ns = w->start_ns;
	new->end_ns = w->end_ns;
	new->kind = w->kind;
	new->bytes = w->valid &GPU_HAS_BYTES ? w->bytes : 0;
	new->communicates = j->r->activities.v[activity->row].communicates;
}

/* Widens what the activities of a span covers. */
static void cover(struct span *s, uint64_t first_ns, uint64_t last_ns)
{
	if (!last_ns)
		return;
	s->first_ns = s->last_ns && s->first_ns < first_ns ? s->first_ns : first_ns;
	s->last_ns = MAX(s->last_ns, last_ns);
}

/* Counts the time that an event pair measured besides the work. */
static void count_events(struct report *r, struct activity_row *row, const struct gpu_activity *w)
{
	struct event_pairs *pairs = &r->event_pairs;
	row->waited_ns = sat_add(row->waited_ns, activity_waited_ns(w));
	row->idle_count += (w->valid & GPU_STREAM_IDLE) != 0;
	row->late_ns = sat_add(row->late_ns, w->host_ns >> 32);
	row->waited_unknown |= !(w->valid & (GPU_STREAM_BUSY | GPU_STREAM_IDLE));
	if (!(w->valid & GPU_HAS_PAIR))
		return;
	if (!pairs->count++ || w->pair_ns < pairs->least_ns)
		pairs->least_ns = w->pair_ns;
	pairs->total_ns += w->pair_ns;
}

static void take_busy(struct joiner *j, const struct gpu_activity *w, uint32_t index)
{
	struct activity_row *row = &j->r->activities.v[index];
	struct activity activity = { .row = index };
	uint32_t span;
	j->r->device_kernels += w->kind == GPU_KERNEL;
	if (j->r->sampled)
		count_events(j->r, &j->r->activities.v[index], w);
	if (w->valid & GPU_RECONSTRUCTED) {
		const double n = (double)++j->r->reconstructed;
		j->r->reconstructed_error_ns +=
			((double)w->uncertainty_ns - j->r->reconstructed_error_ns) / n;
	}
	if (j->r->sampled)
		return; /* sums of samples are no times of operators, streams and devices */
	owner_of(j, w, row, &activity.call, &span);
	if (w->kind == GPU_KERNEL)
		cost_claim(j, span, index, activity.call, w->end_ns - w->start_ns);
	if (span != NONE &&
		expect(span < j->spans.n, "the range of a GPU activity is one of all")) {
		struct span *s = &j->spans.v[span];
		s->device_ns = sat_add(s->device_ns, w->end_ns - w->start_ns);
		cover(s, w->start_ns, w->end_ns);
		s->activity_count++;
	}
	if ((w->kind == GPU_MEMCPY || w->kind == GPU_MEMSET))
		count_copy(j, w);
	activity.stream = count_stream(j, w);
	activity.device = count_device(j, w);
	keep_activity(j, w, &activity);
}

/* The number that CUPTI gives the default stream, whose waits are for more than what it was given.
 */
#define DEFAULT_STREAM 7u

static void take_wait(struct joiner *j, const struct gpu_activity *w)
{
	const uint32_t process = j->buf.ref->process;
	const uint32_t context = w->valid & GPU_HAS_CONTEXT ? w->context : 0;
	const struct call_link *l = links_of(&j->r->links, process, w, &j->hint);
	if (!l || !(w->valid & GPU_HAS_STREAM) || !(w->valid & GPU_HAS_WHAT) ||
		w->what != WAIT_STREAM || w->stream == DEFAULT_STREAM)
		return;
	const uint32_t stream = map_number(&j->waited_map, MAP_KEY(process, context, w->stream));
	*array_push(&j->timeline.waits) =
		(struct stream_wait){ (uint32_t)(l - j->r->links.v.v), stream };
}

static void count_activity(struct joiner *j, const struct gpu_activity *w)
{
	const uint32_t index = activity_of(j, w);
	struct activity_row *row = &j->r->activities.v[index];
	row->count++;
	row->total_ns = sat_add(row->total_ns, w->end_ns - w->start_ns);
	hist_add(&row->hist, w->end_ns - w->start_ns);
	spread_add(&row->spread, w->end_ns - w->start_ns);
	row->graph_count += (w->valid & GPU_HAS_GRAPH) != 0;
	row->sized += (w->valid & GPU_HAS_BYTES) != 0;
	if (w->valid & GPU_HAS_BYTES)
		row->bytes = sat_add(row->bytes, w->bytes);
	if (activity_is_work(w->kind))
		take_busy(j, w, index);
	else if (w->kind == GPU_SYNC && !j->r->sampled)
		take_wait(j, w);
	count_shape(j, index, w);
}

/* A sample that CUPTI timed as well, in a window, corrects the others and counts once. */
static bool is_again(const struct joiner *j, const struct gpu_activity *w)
{
	return j->r->sampled && w->valid & GPU_HAS_CORRELATION &&
	       w->correlation >= CUPTI_CORRELATIONS;
}

static int take_activity(struct joiner *j)
{
	struct cursor at = start(j);
	at.left_out = &j->r->sampled_left_out;
	for (struct gpu_activity w; trace_next_activity(&at, &w);)
		if (!is_again(j, &w))
			count_activity(j, &w);
	return at.error;
}

static void add_device(struct span *to, const struct span *from)
{
	to->device_ns = sat_add(to->device_ns, from->device_ns);
	cover(to, from->first_ns, from->last_ns);
}

/* A thread's work for another that is inside of ranges counts in them: theirs, too. */
static void sum_alones(struct joiner *j)
{
	array_each(const struct span, s, j->spans) {
		if (s->at.parent != NONE || !s->device_ns)
			continue;
		uint32_t to = ALONES_AT(&j->alones, j->spans, s->at.process, s->at.ticks);
		if (to != NONE && j->spans.v[to].at.tid == s->at.tid)
			continue;
		for (; to != NONE; to = j->spans.v[to].at.parent)
			add_device(&j->spans.v[to], s);
	}
}

static void sum_row(struct joiner *j, const struct span *s)
{
	struct operator_row *o = &j->r->operators.v[s->row];
	const uint64_t ticks = s->at.end - s->at.ticks;
	o->count += !is_overload(j, s);
	if (ticks > s->inner_ticks)
		o->host_self_ticks = sat_add(o->host_self_ticks, ticks - s->inner_ticks);
	if (s->repeated)
		return;
	o->host_ticks = sat_add(o->host_ticks, ticks);
	o->device_total_ns = sat_add(o->device_total_ns, s->device_ns);
	hist_add(&o->host_hist, ticks);
	if (s->device_ns)
		hist_add(&o->device_hist, s->device_ns);
	if (s->last_ns && o->kind != RANGE_OPERATOR) {
		hist_add(&o->span_hist, s->last_ns - s->first_ns);
		o->span_ns = sat_add(o->span_ns, s->last_ns - s->first_ns);
	}
}

/* Ranges inside stand behind those around, so one pass from the end adds all up.  Time inside
 * a range of the same name is in that one already. */
static void sum_operators(struct joiner *j)
{
	for (size_t i = j->spans.n; i-- > 0;) {
		const struct span *s = &j->spans.v[i];
		expect(s->at.parent == NONE || s->at.parent < i, "ranges inside come later");
		if (s->at.parent != NONE)
			add_device(&j->spans.v[s->at.parent], s);
	}
	sum_alones(j);
	for (size_t i = j->spans.n; i-- > 0;)
		sum_row(j, &j->spans.v[i]);
}

/* An operator that has a library do its work is the one whose activities these are: whether there
 * is a library below is nothing that its user asked for. */
static const struct span *owner_span(const struct joiner *j, const struct span *s)
{
	const struct operator_row *rows = j->r->operators.v;
	const struct span *up = s;
	for (; rows[up->row].library; up = &j->spans.v[up->at.parent]) {
		s = up;
		if (up->at.parent == NONE)
			return s;
	}
	return rows[up->row].kind == RANGE_OPERATOR ? up : s;
}

/* Before the times of ranges inside are added. */
static void sum_selves(struct joiner *j)
{
	array_each(const struct span, s, j->spans) {
		struct operator_row *o = &j->r->operators.v[owner_span(j, s)->row];
		o->device_self_ns = sat_add(o->device_self_ns, s->device_ns);
		o->activity_count += s->activity_count;
	}
}

static void add_moment(struct joiner *j, uint32_t thread, uint64_t ticks)
{
	*array_push(&j->timeline.moments) =
		(struct moment){ .ns = trace_ns(j->r->trace, ticks), .thread = thread };
}

/* All threads that made calls, and when ranges began and ended: of use where there are several. */
static void add_moments(struct joiner *j)
{
	const struct trace *t = j->r->trace;
	uint32_t thread;
	for (size_t i = 0; i < t->chunk_count; i++)
		if (t->chunks[i].head.kind == CHUNK_EVENTS)
			thread = thread_of(j, t->chunks[i].process, t->chunks[i].head.tid);
	for (size_t i = 0; i < j->spans.n && j->thread_process.n > 1; i++) {
		const struct nested *at = &j->spans.v[i].at;
		thread = map_find(&j->thread_map, MAP_KEY(at->process, at->tid));
		if (thread == MAP_NONE)
			continue;
		add_moment(j, thread, at->ticks);
		add_moment(j, thread, at->end);
	}
}

/* Waits name the streams by numbers of their own.  Waits of streams without activities are left
 * out.
 */
static void name_waits(struct joiner *j)
{
	struct timeline *t = &j->timeline;
	size_t kept = 0;
	uint32_t *row = xmalloc((j->waited_map.taken + 1) * sizeof *row);
	for (size_t i = 0; i < j->waited_map.taken; i++)
		row[i] = NO_STREAM;
	for (uint32_t i = 0; i < j->r->stream_rows.n; i++) {
		const struct stream_row *s = &j->r->stream_rows.v[i];
		const uint32_t number =
			map_find(&j->waited_map, MAP_KEY(s->process, s->context, s->stream));
		if (number != MAP_NONE)
			row[number] = i;
	}
	for (size_t i = 0; i < t->waits.n; i++) {
		const struct stream_wait w = t->waits.v[i];
		if (row[w.stream] != NO_STREAM)
			t->waits.v[kept++] = (struct stream_wait){ w.call, row[w.stream] };
	}
	t->waits.n = kept;
	free(row);
}

/* Calls keep their places: activities name them by those. */
static int account(struct joiner *j)
{
	const struct trace *t = j->r->trace;
	struct timeline *to = &j->timeline;
	array_reserve(&to->calls, j->launches.n);
	for (size_t i = 0; i < j->launches.n; i++) {
		const struct call_link *l = &j->r->links.v.v[i];
		to->calls.v[to->calls.n++] = (struct caller){ .start_ns = trace_ns(t, l->ticks),
			.end_ns = trace_ns(t, sat_add(l->ticks, l->dur)),
			.thread = j->launches.v[i].thread };
	}
	to->stream_count = j->r->stream_rows.n;
	add_moments(j);
	name_waits(j);
	return timeline_fill(j->r, to, &j->thread_map, j->thread_process.n);
}

/* Checks values that are counted in several places. */
static void check_counts(const struct joiner *j)
{
	const struct report *r = j->r;
	uint64_t devices = 0, streams = 0, kernels = 0;
	for (size_t i = 0; i < r->devices.n; i++)
		devices += r->devices.v[i].count;
	for (size_t i = 0; i < r->stream_rows.n; i++)
		streams += r->stream_rows.v[i].count;
	for (size_t i = 0; i < r->activities.n; i++)
		kernels += r->activities.v[i].kind == GPU_KERNEL ? r->activities.v[i].count : 0;
	expect(devices == j->timeline.activities.n, "each GPU activity is one device's");
	expect(streams <= devices, "activities of streams are those of devices");
	expect(kernels == r->device_kernels, "the rows of kernels add up to all kernels");
	expect(r->unjoined_activities <= devices,
		"activities whose call is not known are among all");
	expect(j->launches.n == r->links.v.n, "there is a launch beside each link");
}

/* Rows of shapes that nothing but overloads had. */
static void drop_unused(struct report *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->operators.n; i++)
		if (r->operators.v[i].count)
			r->operators.v[n++] = r->operators.v[i];
	r->operators.n = n;
}

static int join(struct joiner *j)
{
	int e = take_ranges(j);
	if (e)
		return e;
	take_links(j);
	if (j->spans.n >= NONE || j->launches.n >= NONE)
		return -EOVERFLOW;
	find_owners(j);
	e = cost_alike(j);
	if (!e)
		e = take_activity(j);
	if (!e && !j->r->sampled)
		e = account(j);
	check_counts(j);
	roofline_gpu(j->r);
	sum_selves(j);
	sum_operators(j);
	cost_sum(j, owner_span);
	drop_unused(j->r);
	return e;
}

int device_fill(struct report *r)
{
	struct joiner j = { .r = r };
	int e = join(&j);
	struct map *maps[] = { &j.thread_map, &j.row_map, &j.activity_map, &j.copy_map,
		&j.stream_map, &j.device_map, &j.shape_map, &j.text_map, &j.waited_map };
	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		map_fini(maps[i]);
	array_free(&j.thread_process, &j.spans);
	cost_table_fini(&j.costs);
	array_free(
		&j.claims, &j.products, &j.launches, &j.externals.v, &j.alones.v, &j.shape_counts);
	timeline_fini(&j.timeline);
	return e ? e : device_make_rows(r);
}
