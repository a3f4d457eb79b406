/* Joins requests with batches and GPU activities, and cuts their time into parts. */
#include "model/request_times.h"

#include "base/search.h"
#include "base/sort.h"

const char *request_part_name(enum request_part part)
{
	static const char *const names[REQUEST_PARTS] = { "socket", "parse", "queue", "gather",
		"kernels", "copies", "neighbours", "engine", "answer" };
	return names[part];
}

static bool is_batch(const struct meta *m, uint32_t process, const struct range *g)
{
	const uint32_t scope = meta_find_string(m, process, g->scope);
	return g->kind == RANGE_ANNOTATION && g->valid & RANGE_HAS_SEQUENCE && scope != META_NONE &&
	       !strcmp(m->names.v[scope].text, SERVED_SCOPE);
}

static int read_batches(const struct trace *t, const struct meta *m, struct requests *r)
{
	struct cursor at = { .t = t };
	for (struct range g; trace_next_range(&at, &g);) {
		const uint32_t process = at.ref->process;
		if (!is_batch(m, process, &g))
			continue;
		*array_push(&r->batches) = (struct batch_row){ .at = nested_of(&g, process),
			.number = g.sequence,
			.from = trace_ns(t, g.ticks),
			.to = trace_ns(t, range_end(&g)),
			.model = meta_find_string(m, process, g.name) };
	}
	if (!at.error && r->batches.n >= BATCH_NONE)
		return -EOVERFLOW;
	if (!at.error && r->batches.n)
		NESTED(r->batches);
	return at.error;
}

ORDERING(request_order, struct request_row, ORDER(a->q.ns[REQUEST_BEGAN], b->q.ns[REQUEST_BEGAN]),
	ORDER(a->q.id, b->q.id))

static int read_requests(const struct trace *t, const struct meta *m, struct requests *r)
{
	struct cursor at = { .t = t };
	for (struct served_request q; trace_next_request(&at, &q);)
		*array_push(&r->v) = (struct request_row){ .q = q,
			.process = at.ref->process,
			.model = meta_find_string(m, at.ref->process, q.model),
			.batch = BATCH_NONE };
	SORT(r->v, request_order);
	return at.error;
}

static int number_order(const void *one, const void *two, void *context)
{
	const struct requests *r = context;
	const struct batch_row *a = &r->batches.v[*(const uint32_t *)one],
			       *b = &r->batches.v[*(const uint32_t *)two];
	return a->at.process != b->at.process ? ORDER(a->at.process, b->at.process)
					      : ORDER(a->number, b->number);
}

static int time_order(const void *one, const void *two, void *context)
{
	const struct requests *r = context;
	return ORDER(r->batches.v[*(const uint32_t *)one].from,
		r->batches.v[*(const uint32_t *)two].from);
}

static uint32_t find_batch(const struct requests *r, uint32_t process, uint64_t number)
{
	const uint32_t *v = r->by_time.v;
	const size_t i = SEARCH(k, 0, r->by_time.n,
		r->batches.v[v[k]].at.process < process ||
			(r->batches.v[v[k]].at.process == process &&
				r->batches.v[v[k]].number < number));
	const struct batch_row *b = i < r->by_time.n ? &r->batches.v[v[i]] : NULL;
	return b && b->at.process == process && b->number == number ? v[i] : BATCH_NONE;
}

static void add_to_batch(struct batch_row *b, const struct served_request *q)
{
	b->requests++;
	b->rows = q->batch_rows;
	b->on = q->ns[REQUEST_ON_DEVICE];
	b->from = q->ns[REQUEST_TAKEN];
	b->to = q->ns[REQUEST_OFF_DEVICE];
}

/* by_time is in the order of numbers meanwhile. */
static void join_batches(struct requests *r)
{
	for (size_t i = 0; i < r->batches.n; i++)
		*array_push(&r->by_time) = (uint32_t)i;
	if (!r->by_time.n)
		return;
	qsort_r(r->by_time.v, r->by_time.n, sizeof *r->by_time.v, number_order, r);
	array_each(struct request_row, q, r->v) {
		if (!q->q.batch)
			continue;
		q->batch = find_batch(r, q->process, q->q.batch);
		if (q->batch != BATCH_NONE && q->q.ns[REQUEST_OFF_DEVICE])
			add_to_batch(&r->batches.v[q->batch], &q->q);
	}
	qsort_r(r->by_time.v, r->by_time.n, sizeof *r->by_time.v, time_order, r);
}

ORDERING(activity_order, struct batch_activity, ORDER(a->batch, b->batch),
	ORDER(a->w.start_ns, b->w.start_ns))

static int start_order(const void *one, const void *two, void *context)
{
	const struct requests *r = context;
	return ORDER(r->activities.v[*(const uint32_t *)one].w.start_ns,
		r->activities.v[*(const uint32_t *)two].w.start_ns);
}

struct joining {
	const struct links *links;
	struct alones alones; /* engines launch from threads of their own, too */
	size_t link_hint, batch_hint;
};

static uint32_t batch_of(
	struct joining *j, const struct requests *r, uint32_t process, const struct gpu_activity *w)
{
	const struct call_link *l = links_of(j->links, process, w, &j->link_hint);
	if (!l || !r->batches.n)
		return BATCH_NONE;
	const uint32_t own = NESTED_AT(r->batches, process, l->tid, l->ticks, &j->batch_hint);
	if (own != NESTED_NONE)
		return own;
	const uint32_t other = ALONES_AT(&j->alones, r->batches, process, l->ticks);
	return other != NESTED_NONE ? other : BATCH_NONE;
}

static int add_activities(const struct trace *t, struct joining *j, struct requests *r)
{
	struct cursor at = { .t = t };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		if (!activity_is_work(w.kind))
			continue;
		const uint64_t took = w.end_ns - w.start_ns;
		*array_push(&r->activities) = (struct batch_activity){ w, at.ref->process,
			batch_of(j, r, at.ref->process, &w) };
		r->longest_ns = took > r->longest_ns ? took : r->longest_ns;
	}
	return at.error;
}

static int index_activities(struct requests *r)
{
	if (r->activities.n >= UINT32_MAX)
		return -EOVERFLOW;
	SORT(r->activities, activity_order);
	for (size_t i = 0; i < r->activities.n; i++) {
		const uint32_t batch = r->activities.v[i].batch;
		*array_push(&r->beside) = (uint32_t)i;
		if (batch == BATCH_NONE)
			continue;
		struct batch_row *b = &r->batches.v[batch];
		b->first = b->count++ ? b->first : (uint32_t)i;
	}
	SORT_WITH(r->beside, start_order, r);
	return 0;
}

static int read_activities(const struct trace *t, const struct links *links, struct requests *r)
{
	struct joining j = { .links = links };
	ALONES_MAKE(r->batches, &j.alones);
	const int e = add_activities(t, &j, r);
	array_free(&j.alones.v);
	return e ? e : index_activities(r);
}

void requests_beside(const struct requests *r, uint64_t from, uint64_t to, uint32_t not,
	void (*take)(void *context, const struct batch_activity *a, uint64_t from, uint64_t to),
	void *context)
{
	const struct batch_activity *v = r->activities.v;
	const uint64_t first = from > r->longest_ns ? from - r->longest_ns : 0;
	size_t i = SEARCH(k, 0, r->beside.n, v[r->beside.v[k]].w.start_ns < first);
	for (; i < r->beside.n && v[r->beside.v[i]].w.start_ns < to; i++) {
		const struct batch_activity *a = &v[r->beside.v[i]];
		if (a->w.end_ns > from && (not == BATCH_NONE || a->batch != not ))
			take(context, a, MAX(a->w.start_ns, from), MIN(a->w.end_ns, to));
	}
}

/* The length of a union of spans, which come in the order of their begin. */
struct cover {
	uint64_t ns, until;
};

static void cover_add(struct cover *c, uint64_t from, uint64_t to)
{
	from = from > c->until ? from : c->until;
	if (to <= from)
		return;
	c->ns += to - from;
	c->until = to;
}

static void cover_beside(void *context, const struct batch_activity *a, uint64_t from, uint64_t to)
{
	cover_add(context, from, to);
}

static void measure(struct requests *r, uint32_t number)
{
	struct batch_row *b = &r->batches.v[number];
	struct cover kernels = { 0 }, all = { 0 }, beside = { 0 };
	if (!b->on)
		return;
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct gpu_activity *w = &r->activities.v[i].w;
		const uint64_t from = w->start_ns > b->on ? w->start_ns : b->on,
			       to = w->end_ns < b->to ? w->end_ns : b->to;
		if (w->kind == GPU_KERNEL || w->kind == GPU_GRAPH)
			cover_add(&kernels, from, to);
		cover_add(&all, from, to);
	}
	requests_beside(r, b->on, b->to, number, cover_beside, &beside);
	b->kernels_ns = kernels.ns;
	b->copies_ns = all.ns - kernels.ns;
	b->beside_ns = beside.ns;
}

static int alike_order(const void *one, const void *two, void *context)
{
	const struct requests *r = context;
	const struct batch_row *a = &r->batches.v[*(const uint32_t *)one],
			       *b = &r->batches.v[*(const uint32_t *)two];
	if (a->model != b->model)
		return ORDER(a->model, b->model);
	if (a->rows != b->rows)
		return ORDER(a->rows, b->rows);
	if (!a->beside_ns != !b->beside_ns)
		return a->beside_ns ? 1 : -1;
	return ORDER(a->to - a->on, b->to - b->on);
}

/* Puts those of the batches [from, to) first beside which nothing ran. All are of one model and
 * size. Their median is usual, or that of all if there is none. */
static void compare(struct requests *r, const uint32_t *v, size_t n)
{
	size_t quiet = 0;
	while (quiet < n && !r->batches.v[v[quiet]].beside_ns)
		quiet++;
	const struct batch_row *middle = &r->batches.v[v[(quiet ? quiet : n) / 2]];
	const uint64_t usual = middle->to - middle->on, kernels = middle->kernels_ns;
	for (size_t i = 0; i < n; i++) {
		struct batch_row *b = &r->batches.v[v[i]];
		b->slower_ns = sat_sub(b->to - b->on, usual);
		b->kernels_slower_ns = sat_sub(b->kernels_ns, kernels);
	}
}

static void compare_all(struct requests *r)
{
	ARRAY(uint32_t) v = { 0 };
	for (size_t i = 0; i < r->batches.n; i++)
		if (r->batches.v[i].on)
			*array_push(&v) = (uint32_t)i;
	SORT_WITH(v, alike_order, r);
	for (size_t from = 0, to; from < v.n; from = to) {
		const struct batch_row *one = &r->batches.v[v.v[from]];
		for (to = from; to < v.n && r->batches.v[v.v[to]].model == one->model &&
				r->batches.v[v.v[to]].rows == one->rows;
			to++)
			;
		compare(r, v.v + from, to - from);
	}
	array_free(&v);
}

static uint64_t take(uint64_t *from, uint64_t most)
{
	const uint64_t ns = MIN(*from, most);
	*from -= ns;
	return ns;
}

/* The engine's time.  The neighbours' part is what kernels took longer, then what the host waited.
 */
static void cut_device_time(struct request_row *q, uint64_t ns, const struct batch_row *b)
{
	uint64_t *part = q->part;
	part[PART_KERNELS] = take(&ns, b ? b->kernels_ns : 0);
	part[PART_COPIES] = take(&ns, b ? b->copies_ns : 0);
	part[PART_ENGINE] = ns;
	uint64_t slower = !b ? 0 : b->slower_ns < b->beside_ns ? b->slower_ns : b->beside_ns;
	const uint64_t longer = b && b->kernels_slower_ns < part[PART_KERNELS]
					? b->kernels_slower_ns
					: part[PART_KERNELS];
	const uint64_t of_kernels = take(&slower, longer),
		       of_engine = take(&slower, part[PART_ENGINE]);
	part[PART_KERNELS] -= of_kernels;
	part[PART_ENGINE] -= of_engine;
	part[PART_NEIGHBOURS] = of_kernels + of_engine;
}

/* One that did not come so far as to be queued, say, spent its last part with what comes before. */
static void cut_time(const struct requests *r, struct request_row *q)
{
	static const enum request_part of[] = { PART_SOCKET, PART_PARSE, PART_QUEUE, PART_GATHER,
		PART_ENGINE, PART_ANSWER };
	uint64_t last = q->q.ns[0];
	enum request_part part = PART_SOCKET;
	for (unsigned i = 1; i < REQUEST_STAMPS; i++) {
		const uint64_t ns = q->q.ns[i];
		if (!ns)
			continue;
		part = i == REQUEST_SENT && !q->q.ns[REQUEST_OFF_DEVICE] ? part : of[i - 1];
		const uint64_t took = ns > last ? ns - last : 0;
		if (i == REQUEST_OFF_DEVICE)
			cut_device_time(
				q, took, q->batch != BATCH_NONE ? &r->batches.v[q->batch] : NULL);
		else
			q->part[part] += took;
		part = i < REQUEST_SENT ? of[i] : part;
		last = MAX(ns, last);
	}
}

int requests_load(
	const struct trace *t, const struct meta *m, const struct links *links, struct requests *r)
{
	int e = read_requests(t, m, r);
	if (e || !r->v.n)
		return e;
	e = read_batches(t, m, r);
	if (e)
		return e;
	join_batches(r);
	e = read_activities(t, links, r);
	for (size_t i = 0; i < r->batches.n && !e; i++)
		measure(r, (uint32_t)i);
	compare_all(r);
	for (size_t i = 0; i < r->v.n && !e; i++)
		cut_time(r, &r->v.v[i]);
	return e;
}

void requests_fini(struct requests *r)
{
	array_free(&r->v, &r->batches, &r->by_time, &r->activities, &r->beside);
}

bool requests_tell(const struct requests *r, enum request_part part)
{
	return r->activities.n ||
	       (part != PART_KERNELS && part != PART_COPIES && part != PART_NEIGHBOURS);
}

uint64_t request_total(const struct request_row *q)
{
	const uint64_t from = q->q.ns[REQUEST_BEGAN], to = q->q.ns[REQUEST_SENT];
	return to > from ? to - from : 0;
}

enum request_part request_cause(const struct request_row *q)
{
	enum request_part longest = PART_SOCKET;
	for (int i = 0; i < REQUEST_PARTS; i++)
		longest = q->part[i] > q->part[longest] ? (enum request_part)i : longest;
	return longest;
}

/* When it waited in the queue: false, it never did. */
static bool request_queued(const struct request_row *q, uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_from = q->q.ns[REQUEST_QUEUED];
	*ret_to = q->q.ns[REQUEST_TAKEN] ? q->q.ns[REQUEST_TAKEN] : q->q.ns[REQUEST_SENT];
	return *ret_from && *ret_to > *ret_from;
}

static struct behind *of_model(struct behinds *all, uint32_t model)
{
	for (size_t i = 0; i < all->v.n; i++)
		if (all->v.v[i].model == model)
			return &all->v.v[i];
	struct behind *new = array_push(&all->v);
	*new = (struct behind){ .model = model };
	return new;
}

ORDERING(behind_order, struct behind, ORDER(b->ns, a->ns), ORDER(a->model, b->model))

/* Batches of a server run one after the other: those that begin before one that had ended when the
 * request came had ended, too. */
void request_behind(const struct requests *r, const struct request_row *q, struct behinds *ret)
{
	uint64_t from, to;
	if (!request_queued(q, &from, &to))
		return;
	size_t i = SEARCH(k, 0, r->by_time.n, r->batches.v[r->by_time.v[k]].from < from);
	for (i -= i > 0; i < r->by_time.n && r->batches.v[r->by_time.v[i]].from < to; i++) {
		const struct batch_row *b = &r->batches.v[r->by_time.v[i]];
		const uint64_t begin = MAX(b->from, from), end = MIN(b->to, to);
		if (b->at.process != q->process || end <= begin)
			continue;
		struct behind *one = of_model(ret, b->model);
		one->batches++;
		one->ns += end - begin;
	}
	SORT(ret->v, behind_order);
}
