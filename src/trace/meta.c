/* The index of names: collected chunk by chunk, then sorted.  See meta.h. */
#include "trace/meta.h"

#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#define NODE_KERNEL   0u /* CU_GRAPH_NODE_TYPE_KERNEL */
#define NODE_DISABLED 0x80000000u
#define MESSAGES_KEPT 1000u
#define DEVICES_KEPT  1024u

struct loader {
	const struct trace *t;
	struct meta *m;
	uint32_t process;
};

static char *copy_text(const char *s, size_t bytes)
{
	char *copy = xmalloc(bytes + 1);
	memcpy(copy, s, bytes);
	copy[bytes] = '\0';
	return copy;
}

/* The same text is kept once. */
static uint32_t intern(struct meta *m, const char *s, size_t bytes)
{
	const struct meta_name *n = MAP_ROW(&m->name_map, map_text_key(s, bytes, 0), &m->names,
		(struct meta_name){ .text = copy_text(s, bytes), .bytes = (uint32_t)bytes });
	return (uint32_t)(n - m->names.v);
}

static uint32_t intern_text(struct meta *m, const struct record *r, unsigned args)
{
	size_t bytes;
	const char *text = record_text(r, args, &bytes);
	return intern(m, text, strnlen(text, bytes));
}

static uint64_t arg(const struct record *r, unsigned i)
{
	return r->words > RECORD_WORDS + i ? r->arg[i] : 0;
}

static void add_process(struct loader *l, const struct record *r)
{
	struct meta_process *p = &l->m->processes.v[l->process];
	size_t bytes;
	const char *text = record_text(r, 1, &bytes);
	const size_t exe = strnlen(text, bytes);
	const size_t rest = exe < bytes ? exe + 1 : bytes;
	char *executable = copy_text(text, exe);
	char *arguments = copy_text(text + rest, bytes - rest);
	size_t used = bytes - rest;
	while (used && !arguments[used - 1])
		used--;
	for (size_t i = 0; i < used; i++)
		if (!arguments[i])
			arguments[i] = ' ';
	free_all(p->executable, p->arguments);
	*p = (struct meta_process){ (uint32_t)arg(r, 0), executable, arguments };
}

static void add_kernel(struct loader *l, const struct record *r)
{
	const bool alias = r->fn == META_ALIAS;
	uint32_t name = META_NONE;
	if (!alias)
		name = intern_text(l->m, r, 2);
	*array_push(&l->m->kernels) = (struct meta_kernel){ .process = l->process,
		.name = name,
		.handle = arg(r, 0),
		.ticks = r->ticks,
		.alias = alias ? arg(r, 1) : 0 };
}

static uint32_t exec_of(struct loader *l, uint64_t handle)
{
	struct meta *m = l->m;
	const struct graph_exec *x = MAP_ROW(&m->exec_map, MAP_KEY(l->process, handle), &m->execs,
		(struct graph_exec){ .process = l->process, .handle = handle });
	return (uint32_t)(x - m->execs.v);
}

static void add_nodes(struct meta *m, const void *from, size_t count, struct graph_step *step)
{
	step->first_node = (uint32_t)m->nodes.n;
	array_reserve(&m->nodes, count);
	for (size_t i = 0; i < count; i++) {
		struct graph_node n;
		memcpy(&n, (const char *)from + i * sizeof n, sizeof n);
		if ((n.type & ~NODE_DISABLED) == NODE_KERNEL)
			m->nodes.v[m->nodes.n++] = n;
	}
	step->node_count = (uint32_t)(m->nodes.n - step->first_node);
}

static void add_graph(struct loader *l, const struct record *r)
{
	struct meta *m = l->m;
	const bool update = r->fn == META_NODE;
	const unsigned args = update ? 1 : 3;
	const size_t words = r->words - RECORD_WORDS;
	const size_t room = words > args ? (words - args) * 8 / sizeof(struct graph_node) : 0;
	const size_t said = update ? 1 : r->aux;
	struct graph_step step = { .ticks = r->ticks, .order = (uint32_t)m->steps.n };
	step.exec = exec_of(l, arg(r, 0));
	add_nodes(m, r->arg + args, MIN(said, room), &step);
	step.kind = update ? STEP_UPDATE : arg(r, 2) ? STEP_MORE : STEP_NEW;
	*array_push(&m->steps) = step;
}

static void add_unknown(struct loader *l, const struct record *r)
{
	struct meta_unknown u = { .process = l->process, .index = arg(r, 0) };
	u.name = intern_text(l->m, r, 1);
	*array_push(&l->m->unknown) = u;
}

static void add_message(struct loader *l, const struct record *r)
{
	struct meta_message n = { .process = l->process, .ticks = r->ticks };
	if (l->m->messages.n >= MESSAGES_KEPT)
		return;
	n.name = intern_text(l->m, r, 0);
	*array_push(&l->m->messages) = n;
}

static void add_string(struct loader *l, const struct record *r)
{
	const uint32_t name = intern_text(l->m, r, 1);
	uint32_t *index = map_get(&l->m->string_map, MAP_KEY(l->process, arg(r, 0)));
	*index = name;
}

static void add_device(struct loader *l, const struct record *r)
{
	struct meta_device d = { .process = l->process,
		.device = (uint32_t)arg(r, 0),
		.memory_bytes = arg(r, 1),
		.multiprocessors = (uint32_t)arg(r, 2),
		.capability = (uint32_t)arg(r, 3) };
	if (l->m->devices.n >= DEVICES_KEPT)
		return;
	d.name = intern_text(l->m, r, 4);
	*array_push(&l->m->devices) = d;
}

/* That was told of before, or NULL. */
static struct meta_device *device_of(struct loader *l, const struct record *r)
{
	for (size_t i = l->m->devices.n; i-- > 0;) {
		struct meta_device *d = &l->m->devices.v[i];
		if (d->process == l->process && d->device == arg(r, 0))
			return d;
	}
	return NULL;
}

static void add_uuid(struct loader *l, const struct record *r)
{
	struct meta_device *d = device_of(l, r);
	const uint64_t uuid[2] = { arg(r, 1), arg(r, 2) };
	if (d)
		memcpy(d->uuid, uuid, sizeof d->uuid);
}

static void add_clocks(struct loader *l, const struct record *r)
{
	struct meta_device *d = device_of(l, r);
	if (d) {
		d->clock_khz = arg(r, 1);
		d->memory_clock_khz = arg(r, 2);
	}
}

#define FACTS_KEPT 64u /* different ones: as many as keys, where all processes agree */

static void add_fact(struct loader *l, const struct record *r)
{
	struct meta_fact f = { .process = l->process };
	f.text = intern_text(l->m, r, 0);
	for (size_t i = 0; i < l->m->facts.n; i++)
		if (l->m->facts.v[i].text == f.text)
			return;
	if (l->m->facts.n == FACTS_KEPT)
		return;
	*array_push(&l->m->facts) = f;
}

static void add_attributes(struct loader *l, const struct record *r)
{
	struct meta_attributes *to = array_push(&l->m->attributes);
	*to = (struct meta_attributes){ .process = l->process,
		.known = (uint32_t)arg(r, 1) & ((1u << ATTRIBUTES) - 1),
		.handle = arg(r, 0),
		.ticks = r->ticks };
	for (unsigned i = 0; i < ATTRIBUTES; i++)
		to->value[i] = (uint32_t)(arg(r, 2 + i / 2) >> i % 2 * 32);
}

/* By enum meta_id.  Those of a later version are passed over. */
static void (*const add[])(struct loader *l, const struct record *r) = {
	[META_PROCESS & 0xff] = add_process,
	[META_KERNEL & 0xff] = add_kernel,
	[META_ALIAS & 0xff] = add_kernel,
	[META_GRAPH & 0xff] = add_graph,
	[META_NODE & 0xff] = add_graph,
	[META_UNKNOWN & 0xff] = add_unknown,
	[META_MESSAGE & 0xff] = add_message,
	[META_STRING & 0xff] = add_string,
	[META_DEVICE & 0xff] = add_device,
	[META_UUID & 0xff] = add_uuid,
	[META_CLOCKS & 0xff] = add_clocks,
	[META_FACT & 0xff] = add_fact,
	[META_ATTRIBUTES & 0xff] = add_attributes,
};

static void add_records(struct loader *l, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	const struct record *r;
	l->process = buf->ref->process;
	while ((r = records_next(&it))) {
		const unsigned id = r->fn & 0xffu;
		if (r->fn >> 8 == META_PROCESS >> 8 && id < sizeof add / sizeof *add && add[id])
			add[id](l, r);
	}
	l->m->torn += it.torn;
	l->m->damaged += it.damaged != NULL;
}

static int load_chunks(struct loader *l)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next(l->t, CHUNK_META, &at, &buf, &l->m->damaged)) > 0)
		add_records(l, &buf);
	return e;
}

static void count_unknown(struct meta *m, const struct chunk_buf *buf)
{
	array_each(struct meta_unknown, u, m->unknown) {
		uint64_t count;
		if (u->process != buf->ref->process || u->index >= buf->bytes / sizeof count)
			continue;
		memcpy(&count, buf->payload + u->index * sizeof count, sizeof count);
		u->count += count;
	}
}

static void load_unknown(struct loader *l)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	while (l->m->unknown.n && trace_next(l->t, CHUNK_UNKNOWN, &at, &buf, &l->m->damaged) > 0)
		count_unknown(l->m, &buf);
	chunk_buf_fini(&buf);
}

static void prepare_processes(struct loader *l)
{
	struct meta *m = l->m;
	for (size_t i = 0; i < l->t->processes.n; i++)
		*array_push(&m->processes) =
			(struct meta_process){ 0, copy_text("", 0), copy_text("", 0) };
}

ORDERING(kernel_order, struct meta_kernel, ORDER(a->process, b->process),
	ORDER(a->handle, b->handle), ORDER(a->ticks, b->ticks))

ORDERING(attributes_order, struct meta_attributes, ORDER(a->process, b->process),
	ORDER(a->handle, b->handle), ORDER(a->ticks, b->ticks))

ORDERING(step_order, struct graph_step, ORDER(a->exec, b->exec), ORDER(a->ticks, b->ticks),
	ORDER(a->order, b->order))

static void index_kernels(struct meta *m)
{
	SORT(m->kernels, kernel_order);
	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct meta_kernel *k = &m->kernels.v[i];
		uint32_t *first = map_get(&m->kernel_map, MAP_KEY(k->process, k->handle));
		if (*first == MAP_NONE)
			*first = (uint32_t)i;
	}
}

/* An alias of an alias needs another round; more than a few are a circle. */
static void resolve_aliases(struct meta *m)
{
	for (int round = 0; round < 4; round++) {
		array_each(struct meta_kernel, k, m->kernels)
			if (k->name == META_NONE && k->alias != k->handle)
				k->name = meta_find_kernel(m, k->process, k->alias, k->ticks);
	}
}

static void index_graphs(struct meta *m)
{
	SORT(m->steps, step_order);
	for (size_t i = m->steps.n; i-- > 0;) {
		struct graph_exec *x = &m->execs.v[m->steps.v[i].exec];
		x->first_step = (uint32_t)i;
		x->step_count++;
	}
}

int meta_load(const struct trace *t, struct meta *m, struct error *err)
{
	struct loader l = { .t = t, .m = m };
	*m = (struct meta){ 0 };
	prepare_processes(&l);
	int e = load_chunks(&l);
	if (!e)
		load_unknown(&l);
	if (!e)
		index_kernels(m);
	if (e) {
		meta_fini(m);
		return error_set(err, e, "the trace's names can't be read: %s", strerror(-e));
	}
	resolve_aliases(m);
	index_graphs(m);
	SORT(m->attributes, attributes_order);
	return 0;
}

void meta_fini(struct meta *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->processes.n; i++) {
		free_all(m->processes.v[i].executable, m->processes.v[i].arguments);
	}
	for (size_t i = 0; i < m->names.n; i++)
		free(m->names.v[i].text);
	array_free(&m->processes, &m->names, &m->kernels, &m->execs, &m->steps, &m->nodes,
		&m->unknown, &m->messages);
	array_free(&m->devices, &m->facts, &m->attributes);
	map_fini(&m->name_map, &m->kernel_map, &m->exec_map, &m->string_map);
}

static bool holds_from(
	const struct meta *m, size_t i, uint32_t process, uint64_t handle, uint64_t ticks)
{
	return i < m->kernels.n && m->kernels.v[i].process == process &&
	       m->kernels.v[i].handle == handle && m->kernels.v[i].ticks <= ticks;
}

uint32_t meta_find_kernel(const struct meta *m, uint32_t process, uint64_t handle, uint64_t ticks)
{
	size_t i = map_find(&m->kernel_map, MAP_KEY(process, handle));
	if (i == MAP_NONE)
		return META_NONE;
	size_t step = 1; /* most handles have one entry, a few have thousands: gallop */
	while (holds_from(m, i + step, process, handle, ticks))
		i += step, step *= 2;
	for (; step; step /= 2)
		if (holds_from(m, i + step, process, handle, ticks))
			i += step;
	if (!expect(i < m->kernels.n && m->kernels.v[i].handle == handle,
		    "the entry found is the handle's"))
		return META_NONE;
	return m->kernels.v[i].name;
}

const struct meta_attributes *meta_find_attributes(
	const struct meta *m, uint32_t process, uint64_t handle, uint64_t ticks)
{
	const struct meta_attributes key = { .process = process, .handle = handle, .ticks = ticks };
	const size_t low =
		SEARCH(i, 0, m->attributes.n, attributes_order(&m->attributes.v[i], &key) <= 0);
	for (size_t i = low ? low - 1 : 0; i <= low && i < m->attributes.n; i++) {
		const struct meta_attributes *a = &m->attributes.v[i];
		if (a->process == process && a->handle == handle)
			return a;
	}
	return NULL;
}

uint32_t meta_find_string(const struct meta *m, uint32_t process, uint32_t id)
{
	return id ? map_find(&m->string_map, MAP_KEY(process, id)) : META_NONE;
}

uint32_t meta_find_graph(const struct meta *m, uint32_t process, uint64_t exec, uint64_t ticks)
{
	const uint32_t index = map_find(&m->exec_map, MAP_KEY(process, exec));
	if (index == MAP_NONE || !m->execs.v[index].step_count)
		return META_NONE;
	const struct graph_exec *x = &m->execs.v[index];
	const struct graph_step *steps = &m->steps.v[x->first_step];
	const uint32_t low = (uint32_t)SEARCH(i, 0, x->step_count, steps[i].ticks <= ticks);
	expect(low <= x->step_count && x->first_step + x->step_count <= m->steps.n,
		"the steps of a graph are among the trace's");
	uint32_t found = low ? low - 1 : 0;
	while (!low && found + 1 < x->step_count && steps[found + 1].kind == STEP_MORE)
		found++;
	return x->first_step + found;
}

/* A node as it is now, and how many launches there had been when it became so. */
struct live_node {
	const struct graph_node *node;
	uint64_t since;
	uint64_t ticks;
};

struct expansion {
	const struct meta *m;
	const struct graph_exec *exec;
	uint64_t launches; /* so far */
	ARRAY(struct live_node) live;
	struct map by_handle;
	void (*node)(void *, uint32_t, uint32_t, const struct graph_node *, uint64_t);
	void *context;
};

static void report_node(struct expansion *x, const struct live_node *l)
{
	expect(l->since <= x->launches, "launches are counted upwards");
	const uint64_t launches = x->launches - l->since;
	if (!launches || l->node->type & NODE_DISABLED)
		return;
	const uint32_t name = meta_find_kernel(x->m, x->exec->process, l->node->function, l->ticks);
	x->node(x->context, x->exec->process, name, l->node, launches);
}

static void report_all(struct expansion *x)
{
	for (size_t i = 0; i < x->live.n; i++)
		report_node(x, &x->live.v[i]);
	x->live.n = 0;
	map_fini(&x->by_handle);
}

static void set_node(struct expansion *x, const struct graph_node *n, uint64_t ticks, bool replace)
{
	const struct live_node now = { .node = n, .since = x->launches, .ticks = ticks };
	uint32_t *index = map_get(&x->by_handle, MAP_KEY(n->node));
	if (replace && *index != MAP_NONE) {
		report_node(x, &x->live.v[*index]);
		x->live.v[*index] = now;
		return;
	}
	*array_push(&x->live) = now;
	*index = (uint32_t)(x->live.n - 1);
}

static void expand_exec(struct expansion *x, const uint64_t *launches)
{
	x->launches = 0;
	for (uint32_t i = 0; i < x->exec->step_count; i++) {
		const uint32_t at = x->exec->first_step + i;
		const struct graph_step *s = &x->m->steps.v[at];
		if (s->kind == STEP_NEW)
			report_all(x);
		for (uint32_t n = 0; n < s->node_count; n++)
			set_node(x, &x->m->nodes.v[s->first_node + n], s->ticks,
				s->kind == STEP_UPDATE);
		x->launches += launches[at];
	}
	report_all(x);
}

void meta_expand_graphs(const struct meta *m, const uint64_t *launches,
	void (*node)(void *context, uint32_t process, uint32_t name, const struct graph_node *n,
		uint64_t launches),
	void *context)
{
	struct expansion x = { .m = m, .node = node, .context = context };
	for (size_t i = 0; i < m->execs.n; i++) {
		x.exec = &m->execs.v[i];
		expand_exec(&x, launches);
	}
	array_free(&x.live);
}
