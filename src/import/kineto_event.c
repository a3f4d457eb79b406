/*
 * Turns events of Kineto into records by their category, including the names of older PyTorch
 * versions.
 */
#include <stdio.h>
#include <string.h>

#include "import/import_kineto.h"

#include "base/digit.h"
#include "base/expect.h"

static const struct word categories[] = {
	{ "cpu_op", C_RANGE | RANGE_OPERATOR },
	{ "operator", C_RANGE | RANGE_OPERATOR },
	{ "user_annotation", C_RANGE | RANGE_ANNOTATION },
	{ "python_function", C_RANGE | RANGE_PYTHON },
	{ "overhead", C_RANGE | RANGE_OVERHEAD },
	{ "cuda_runtime", C_CALL },
	{ "runtime", C_CALL },
	{ "cuda_driver", C_CALL },
	{ "xpu_runtime", C_CALL },
	{ "xpu_driver", C_CALL },
	{ "mtia_runtime", C_CALL },
	{ "privateuse1_runtime", C_CALL },
	{ "privateuse1_driver", C_CALL },
	{ "kernel", C_ACTIVITY | GPU_KERNEL },
	{ "gpu_memcpy", C_ACTIVITY | GPU_MEMCPY },
	{ "memcpy", C_ACTIVITY | GPU_MEMCPY },
	{ "gpu_memset", C_ACTIVITY | GPU_MEMSET },
	{ "memset", C_ACTIVITY | GPU_MEMSET },
	{ "cuda_sync", C_ACTIVITY | GPU_SYNC },
	{ "gpu_user_annotation", C_ACTIVITY | GPU_SPAN },
	{ "nvtx", C_RANGE | RANGE_NVTX },
	{ "nvtx_span", C_RANGE | RANGE_NVTX_SPAN },
	{ "graph", C_ACTIVITY | GPU_GRAPH },
	{ "gpu_other", C_ACTIVITY | GPU_OTHER },
	{ "trace", C_NONE },
	{ "cpu_instant_event", C_NONE },
	{ "cuda_profiler_range", C_NONE },
};

static bool same_word(const char *word, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!word[i] || word[i] != ascii_lower(text[i]))
			return false;
	return !word[bytes];
}

uint8_t kineto_meaning(const struct word *words, size_t count, const char *text, size_t bytes)
{
	for (size_t i = 0; i < count; i++)
		if (same_word(words[i].word, text, bytes))
			return words[i].meaning;
	return NOTHING;
}

static uint8_t category_of(struct kineto *k, uint32_t string)
{
	while (k->kinds.n <= string)
		*array_push(&k->kinds) = 0;
	expect(string <= k->s->strings.n, "the number of a text is one of all");
	uint8_t *kind = &k->kinds.v[string];
	if (!*kind && string) {
		const struct store_string *text = &k->s->strings.v[string - 1];
		*kind = kineto_meaning(categories, COUNT(categories), text->text, text->bytes);
	}
	return *kind ? *kind : C_UNKNOWN;
}

/* Numbers that are no pid or tid of Linux get one that cannot be. */
static uint32_t number_of(const struct field *f)
{
	if (f->there && !f->text && f->value >= 0 && f->value < 0x80000000)
		return (uint32_t)f->value;
	return f->there ? 0x80000000u | (uint32_t)(f->value & 0x7fffffff) : 0;
}

static uint32_t thread_of(struct kineto *k)
{
	const struct event *ev = &k->event;
	if (ev->pid.there && !ev->pid.text && ev->pid.value < 0)
		return STORE_NONE;
	const uint32_t process = store_process(k->s, kineto_key(&ev->pid), number_of(&ev->pid));
	return store_thread(k->s, process, kineto_key(&ev->tid), number_of(&ev->tid));
}

static bool number_arg(const struct event *ev, enum known what, int64_t most, uint64_t *ret)
{
	const struct field *f = &ev->arg[what];
	if (!f->there || f->text || f->value < 0 || f->value > most)
		return false;
	*ret = (uint64_t)f->value;
	return true;
}

static uint32_t args_string(struct kineto *k)
{
	struct event *ev = &k->event;
	if (!ev->args.used)
		return 0;
	ev->args.to[ev->args.used] = '}'; /* where its NUL would be */
	return store_string(k->s, ev->args.to, ev->args.used + 1);
}

static void make_range(struct kineto *k, uint16_t kind, struct range *r)
{
	const struct event *ev = &k->event;
	*r = (struct range){ .ticks = (uint64_t)ev->ts.value,
		.dur = ev->dur.there ? (uint64_t)ev->dur.value : 0,
		.name = ev->name,
		.kind = kind };
	if (kind == RANGE_OTHER)
		r->scope = ev->category;
	if (number_arg(ev, A_EXTERNAL, INT64_MAX, &r->external))
		r->valid |= RANGE_HAS_EXTERNAL;
	if (number_arg(ev, A_SEQUENCE, INT64_MAX, &r->sequence))
		r->valid |= RANGE_HAS_SEQUENCE;
	r->tid = thread_of(k);
	r->args = args_string(k);
}

static void add_range(struct kineto *k, const struct range *r)
{
	*array_push(&k->s->ranges) = *r;
	k->st->ranges++;
}

static void take_range(struct kineto *k, uint16_t kind)
{
	struct range r;
	make_range(k, kind, &r);
	add_range(k, &r);
}

static uint16_t range_kind(uint8_t category)
{
	return category & C_RANGE ? category & C_KIND : RANGE_OTHER;
}

/* A begin event: kept until its thread ends it. */
static void begin_range(struct kineto *k, uint8_t category)
{
	struct open_range o = { 0 };
	make_range(k, range_kind(category), &o.range);
	if (o.range.tid == STORE_NONE)
		return;
	o.thread = o.range.tid;
	uint32_t *top = map_get(&k->top, MAP_KEY(o.thread));
	struct open_range *to = array_push(&k->open);
	o.below = *top;
	*to = o;
	*top = (uint32_t)(k->open.n - 1);
}

static void end_range(struct kineto *k)
{
	const uint32_t thread = thread_of(k);
	uint32_t *top = map_get(&k->top, MAP_KEY(thread));
	if (*top == MAP_NONE) {
		k->st->left_out++;
		return;
	}
	if (!expect(*top < k->open.n && k->open.v[*top].thread == thread,
		    "the range that ends is open on its thread"))
		return;
	const struct open_range *o = &k->open.v[*top];
	struct range r = o->range;
	const uint64_t end = (uint64_t)k->event.ts.value;
	k->open.v[*top].thread = STORE_NONE;
	*top = o->below;
	while (k->open.n && k->open.v[k->open.n - 1].thread == STORE_NONE)
		k->open.n--;
	r.dur = end > r.ticks ? end - r.ticks : 0;
	add_range(k, &r);
}

/* Takes the ranges that Weir exports as two events with one number, since they may cross others. */
static void take_crossing(struct kineto *k)
{
	const struct event *ev = &k->event;
	const struct map_key key = MAP_KEY(kineto_key(&ev->pid), (uint64_t)ev->id.value);
	uint32_t *index = map_get(&k->crossing, key);
	if (ev->phase == 'b') {
		*index = (uint32_t)k->s->ranges.n;
		take_range(k, RANGE_NVTX_SPAN);
		return;
	}
	if (*index == MAP_NONE) {
		k->st->left_out++;
		return;
	}
	if (!expect(*index < k->s->ranges.n, "the range that ends is one of all"))
		return;
	struct range *r = &k->s->ranges.v[*index];
	r->dur = (uint64_t)ev->ts.value > r->ticks ? (uint64_t)ev->ts.value - r->ticks : 0;
	*index = MAP_NONE;
}

static uint16_t function_of(struct kineto *k)
{
	const uint32_t name = k->event.name;
	while (k->fns.n <= name)
		*array_push(&k->fns) = 0;
	if (!k->fns.v[name]) {
		const struct store_string *text = name ? &k->s->strings.v[name - 1] : NULL;
		k->fns.v[name] =
			store_function(k->s, text ? text->text : "?", text ? text->bytes : 1);
	}
	return k->fns.v[name];
}

static void take_call(struct kineto *k)
{
	struct event *ev = &k->event;
	struct store_call c = { .start_ns = (uint64_t)ev->ts.value,
		.dur_ns = ev->dur.there ? (uint64_t)ev->dur.value : 0 };
	c.thread = thread_of(k);
	if (c.thread == STORE_NONE) {
		k->st->left_out++;
		return;
	}
	c.fn = function_of(k);
	number_arg(ev, A_CORRELATION, INT64_MAX, &c.correlation);
	*array_push(&k->s->calls) = c;
	k->st->calls++;
}

static void take_number(
	struct event *ev, enum known what, struct gpu_activity *w, uint32_t *to, uint32_t bit)
{
	uint64_t value;
	if (number_arg(ev, what, UINT32_MAX, &value)) {
		*to = (uint32_t)value;
		w->valid |= bit;
	}
}

/* If the arguments do not say it, a device's process is the device, its thread the stream. */
static void take_memory_kind(struct event *ev, struct gpu_activity *w)
{
	take_number(ev, A_DEVICE, w, &w->device, GPU_HAS_DEVICE);
	take_number(ev, A_CONTEXT, w, &w->context, GPU_HAS_CONTEXT);
	take_number(ev, A_STREAM, w, &w->stream, GPU_HAS_STREAM);
	if (!(w->valid & GPU_HAS_DEVICE)) {
		ev->arg[A_DEVICE] = ev->pid;
		take_number(ev, A_DEVICE, w, &w->device, GPU_HAS_DEVICE);
	}
	if (!(w->valid & GPU_HAS_STREAM)) {
		ev->arg[A_STREAM] = ev->tid;
		take_number(ev, A_STREAM, w, &w->stream, GPU_HAS_STREAM);
	}
}

static void take_activity_args(const struct kineto *k, struct event *ev, struct gpu_activity *w)
{
	uint64_t registers;
	if (number_arg(ev, A_CORRELATION, INT64_MAX, &w->correlation) && w->correlation)
		w->valid |= GPU_HAS_CORRELATION;
	if (number_arg(ev, A_EXTERNAL, INT64_MAX, &w->external) && w->external)
		w->valid |= GPU_HAS_EXTERNAL;
	if (number_arg(ev, A_BYTES, INT64_MAX, &w->bytes))
		w->valid |= GPU_HAS_BYTES;
	if (number_arg(ev, A_GRAPH_NODE, INT64_MAX, &w->graph_node) && w->graph_node)
		take_number(ev, A_GRAPH, w, &w->graph, GPU_HAS_GRAPH);
	take_number(ev, A_SHARED, w, &w->shared_dynamic, GPU_HAS_SHARED);
	if (number_arg(ev, A_REGISTERS, UINT16_MAX, &registers)) {
		w->registers = (uint16_t)registers;
		w->valid |= GPU_HAS_REGISTERS;
	}
	if (ev->has_grid && ev->has_block) {
		memcpy(w->grid, ev->grid, sizeof w->grid);
		memcpy(w->block, ev->block, sizeof w->block);
		w->valid |= GPU_HAS_SHAPE;
	}
	if (ev->details)
		xla_details(k->s->strings.v[ev->details - 1].text, w);
}

static void take_activity(struct kineto *k, uint16_t kind)
{
	struct event *ev = &k->event;
	const uint64_t start = (uint64_t)ev->ts.value;
	struct gpu_activity w = { .start_ns = start,
		.end_ns = start + (ev->dur.there ? (uint64_t)ev->dur.value : 0),
		.name = ev->name,
		.kind = kind };
	const char *name = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	expect(w.end_ns >= start, "an activity ends after it began");
	take_memory_kind(ev, &w);
	take_activity_args(k, ev, &w);
	if (kind == GPU_MEMCPY || kind == GPU_MEMSET)
		import_memcpy_name(&w, name);
	else if (kind == GPU_SYNC)
		import_sync_name(&w, name);
	*array_push(&k->s->activities) = w;
	k->st->activities++;
}

/* An event of an unknown category is a call if it has the name of a function. */
bool kineto_is_call(const struct kineto *k)
{
	const uint32_t name = k->event.name;
	if (!name || k->s->strings.v[name - 1].bytes < 3 ||
		memcmp(k->s->strings.v[name - 1].text, "cu", 2) != 0)
		return false;
	const struct store_string *text = &k->s->strings.v[name - 1];
	return store_knows_function(k->s, text->text, text->bytes);
}

static void take_complete(struct kineto *k, uint8_t category)
{
	if (category & C_ACTIVITY)
		take_activity(k, category & C_KIND);
	else if (category == C_CALL || (category == C_UNKNOWN && kineto_is_call(k)))
		take_call(k);
	else
		take_range(k, range_kind(category));
}

static void take_metadata(struct kineto *k)
{
	const struct event *ev = &k->event;
	const char *what = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	const bool thread = !strcmp(what, "thread_name");
	if (!ev->label || (!thread && strcmp(what, "process_name") != 0))
		return;
	struct named *n = array_push(&k->names);
	*n = (struct named){ kineto_key(&ev->pid), kineto_key(&ev->tid), ev->label, thread };
	xla_name(k, n);
}

/* "thread 1072 (python3)" is python3. */
static void name_thread(struct store_thread *t, const struct store_string *text)
{
	const char *name = text->text, *open = strchr(name, '(');
	if (!strncmp(name, "thread ", 7) && open && open[1])
		name = open + 1;
	size_t n = strlen(name);
	if (name != text->text && n && name[n - 1] == ')')
		n--;
	snprintf(t->name, sizeof t->name, "%.*s", (int)(n < 64 ? n : 64), name);
}

void kineto_names(struct kineto *k)
{
	struct store *s = k->s;
	array_each(const struct named, n, k->names) {
		const uint32_t process = map_find(&s->process_map, MAP_KEY(n->pid));
		if (process == MAP_NONE)
			continue;
		if (!n->thread) {
			s->processes.v[process].name = n->name;
			continue;
		}
		const uint32_t thread = map_find(&s->thread_map, MAP_KEY(process, n->tid));
		if (thread != MAP_NONE)
			name_thread(&s->threads.v[thread], &s->strings.v[n->name - 1]);
	}
}

/* False: the event has no time that can be. */
static bool correct_times(struct kineto *k)
{
	struct event *ev = &k->event;
	if (!ev->ts.there || ev->dur.bad || ev->ts.value < 0 || ev->ts.value >= IMPORT_TIME_MOST ||
		(ev->dur.there && ev->dur.value >= IMPORT_TIME_MOST)) {
		k->no_time++;
		return false;
	}
	if (ev->dur.there && ev->dur.value < 0)
		ev->dur.value = 0;
	return true;
}

#define CUDA       1           /* a device type of PyTorch */
#define BYTES_MOST (1ll << 56) /* no device has more */

static void take_instant(struct kineto *k)
{
	const struct event *ev = &k->event;
	const char *name = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	struct memory_event m = { .bytes = ev->arg[A_BYTES].value };
	uint64_t type, device;
	if (strcmp(name, "[memory]") != 0 || !number_arg(ev, A_DEVICE_TYPE, CUDA, &type) ||
		type != CUDA || !number_arg(ev, A_DEVICE_ID, UINT16_MAX, &device) ||
		!number_arg(ev, A_ADDRESS, INT64_MAX, &m.address) || !ev->arg[A_BYTES].there ||
		ev->arg[A_BYTES].text || m.bytes > BYTES_MOST || m.bytes < -BYTES_MOST ||
		!correct_times(k))
		return;
	m.ns = (uint64_t)ev->ts.value;
	m.device = (uint32_t)device;
	m.has_total = number_arg(ev, A_TOTAL, BYTES_MOST, &m.total);
	m.has_reserved = number_arg(ev, A_RESERVED, BYTES_MOST, &m.reserved);
	m.thread = thread_of(k);
	if (m.thread == STORE_NONE)
		return;
	k->st->allocator_events++;
	import_memory_event(&k->memory, k->s, &m);
}

void kineto_event(struct kineto *k)
{
	const struct event *ev = &k->event;
	if (ev->phase == 'M') {
		take_metadata(k);
		return;
	}
	if (ev->phase == 'i') {
		take_instant(k);
		return;
	}
	const bool crosses = (ev->phase == 'b' || ev->phase == 'e') && ev->id.there;
	if (ev->phase != 'X' && ev->phase != 'B' && ev->phase != 'E' && !crosses)
		return; /* flows, counters */
	uint8_t category = category_of(k, ev->category);
	if (!ev->category)
		category = xla_category(k);
	if (category == C_NONE || (crosses && category != (C_RANGE | RANGE_NVTX_SPAN)) ||
		!correct_times(k))
		return;
	if (crosses) {
		take_crossing(k);
		return;
	}
	if (ev->phase == 'B') {
		begin_range(k, category);
		return;
	}
	if (ev->phase == 'E')
		end_range(k);
	else
		take_complete(k, category);
}
