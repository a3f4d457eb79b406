/*
 * Gives calls without shapes the cost of similar calls with shapes.
 *
 * A live recording has an operator's shapes in some calls only. Two calls are similar if they have
 * the same name, operators and module around, kernels, grids, blocks and copied bytes. If several
 * modules share a name and their kernels are equal, the thread's other calls decide. If similar
 * calls differ in cost, or launch nothing, the cost stays unknown and the report counts the call.
 */
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "event/decode.h"
#include "model/device_join.h"
#include "trace/activity.h"

#define AROUND    12 /* ranges before and after that tell places apart */
#define AMBIGUOUS (UINT32_MAX - 1)

/* In how many ways a call may look like another, the widest first. */
enum { OWN, TURN, PLACE, WAYS };

struct looks {
	uint64_t inside;    /* kernels and copies launched inside; 0: none */
	uint64_t path;      /* the names of operators and of the module around */
	uint64_t way[WAYS]; /* OWN: path and inside; TURN: also what the outermost range around
			     * does, up to here and in all; PLACE: also what the thread does
			     * before and after */
};

struct finder {
	struct joiner *j;
	struct chunk_buf buf;
	struct looks *v;  /* by span */
	struct map known; /* a look: the span that has the cost, or AMBIGUOUS */
};

static uint64_t join(uint64_t a, uint64_t b)
{
	return hash_mix(a * 0x9e3779b97f4a7c15u + b);
}

/* In whatever order: what runs on several streams is not read in the order of its calls. */
static void launches(struct finder *l, uint32_t process, const struct call_link *call,
	uint64_t hash, size_t *hint)
{
	const uint32_t span = NESTED_AT(l->j->spans, process, call->tid, call->ticks, hint);
	if (span != NONE)
		l->v[span].inside += hash_mix(hash);
}

/* 0 for calls that put nothing on a device. */
static uint64_t hash_call(const struct schema_fn *fn, const struct record *r)
{
	struct launch_shape s;
	uint64_t bytes = 0;
	if (fn->launch_layout)
		return decode_shape(r, &s) ? join(r->arg[LAUNCH_FUNCTION], hash_bytes(&s, sizeof s))
					   : 0;
	if (fn->api == API_DRIVER && (fn->kind == CALL_COPY || fn->kind == CALL_SET))
		return join(r->fn, schema_call_bytes(fn, r, &bytes) ? bytes : 0);
	return 0;
}

static int take_calls(struct finder *l)
{
	struct cursor at = { .t = l->j->r->trace, .buf = &l->buf };
	size_t hint = 0;
	for (const struct record *r; (r = trace_next_call(&at));) {
		const struct schema_fn *fn = schema_find(&at.t->schema, r->fn);
		const uint64_t hash = fn && !r->result ? hash_call(fn, r) : 0;
		const struct call_link call = { .ticks = r->ticks, .tid = at.ref->head.tid };
		if (hash)
			launches(l, at.ref->process, &call, hash, &hint);
	}
	return at.error;
}

/* Takes the activities of an imported trace, whose calls do not say what they launch. */
static int take_activities(struct finder *l)
{
	struct cursor at = { .t = l->j->r->trace, .buf = &l->buf };
	size_t hint = 0, link_hint = 0;
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const uint32_t process = l->buf.ref->process;
		const struct call_link *call = links_of(&l->j->r->links, process, &w, &link_hint);
		const uint64_t shape = hash_bytes(w.grid, sizeof w.grid) ^
				       join(1, hash_bytes(w.block, sizeof w.block));
		if (call)
			launches(l, process, call,
				join(w.name, w.kind == GPU_KERNEL ? shape : w.bytes), &hint);
	}
	return at.error;
}

static int take_launches(struct finder *l)
{
	return l->j->r->trace->header.launched ? take_calls(l) : take_activities(l);
}

static const struct operator_row *row_of(const struct finder *l, size_t i)
{
	return &l->j->r->operators.v[l->j->spans.v[i].row];
}

/* `layers.0.fc (Linear)`: a module by its path.  Names of other ranges may number iterations. */
static bool is_place(const struct operator_row *o)
{
	return o->kind == RANGE_OPERATOR || strstr(o->name, " (");
}

static uint64_t name_hash(const struct operator_row *o)
{
	return is_place(o) ? hash_bytes(o->name, strlen(o->name)) : 0;
}

/* Ranges inside stand behind those around, so their launches are whole when they are reached. */
static void find_inside(struct finder *l)
{
	for (size_t i = l->j->spans.n; i-- > 0;) {
		const uint32_t up = l->j->spans.v[i].at.parent;
		if (up != NONE && l->v[i].inside)
			l->v[up].inside = join(
				l->v[up].inside, join(name_hash(row_of(l, i)), l->v[i].inside));
	}
}

static void find_own(struct finder *l)
{
	for (size_t i = 0; i < l->j->spans.n; i++) {
		const struct operator_row *o = row_of(l, i);
		const uint32_t up = l->j->spans.v[i].at.parent;
		const uint64_t around = up == NONE ? 0 : l->v[up].path, name = name_hash(o);
		l->v[i].path = o->kind == RANGE_OPERATOR ? join(around, name) : name;
		l->v[i].way[OWN] = join(l->v[i].path, l->v[i].inside);
	}
}

static void find_turns(struct finder *l)
{
	uint64_t hash = 0, all = 0;
	for (size_t i = 0; i < l->j->spans.n; i++) {
		if (l->j->spans.v[i].at.parent == NONE)
			hash = all = l->v[i].inside;
		hash = join(hash, l->v[i].way[OWN]);
		l->v[i].way[TURN] = join(hash, all);
	}
}

static bool same_thread(const struct nested *a, const struct nested *b)
{
	return a->process == b->process && a->tid == b->tid;
}

static void find_place(struct finder *l, size_t i)
{
	const struct span *v = l->j->spans.v;
	uint64_t hash = l->v[i].way[OWN];
	for (int step = -1; step <= 1; step += 2) {
		size_t at = i;
		for (unsigned n = 0; n < AROUND; n++) {
			at += (size_t)step; /* wraps below the first */
			if (at >= l->j->spans.n || !same_thread(&v[at].at, &v[i].at))
				break;
			hash = join(hash, l->v[at].way[OWN]);
		}
	}
	l->v[i].way[PLACE] = hash;
}

static bool same_cost(const struct finder *l, const struct span *a, const struct span *b)
{
	if (a->cost == b->cost || a->cost == NONE || b->cost == NONE)
		return a->cost == b->cost;
	const struct cost *one = &l->j->costs.v.v[a->cost], *two = &l->j->costs.v.v[b->cost];
	return one->flops == two->flops && one->bytes == two->bytes &&
	       one->has_flops == two->has_flops && one->has_bytes == two->has_bytes;
}

static void offer(struct finder *l, uint64_t looks, uint32_t span)
{
	uint32_t *to = map_get(&l->known, MAP_KEY(looks));
	if (*to == MAP_NONE)
		*to = span;
	else if (*to != AMBIGUOUS && !same_cost(l, &l->j->spans.v[*to], &l->j->spans.v[span]))
		*to = AMBIGUOUS;
}

/* An operator of PyTorch that launches something: whether its shapes were told, or are to be found.
 */
static bool is_candidate(const struct finder *l, size_t i, bool told)
{
	const struct span *s = &l->j->spans.v[i];
	const struct operator_row *o = row_of(l, i);
	return s->told == told && o->kind == RANGE_OPERATOR && !o->library && l->v[i].inside;
}

static void offer_all(struct finder *l)
{
	for (uint32_t i = 0; i < l->j->spans.n; i++) {
		if (!is_candidate(l, i, true))
			continue;
		find_place(l, i);
		for (int way = 0; way < WAYS; way++)
			offer(l, join(l->v[i].way[way], (uint64_t)way), i);
	}
}

/* The widest look in which all whose shapes are known agree. */
static uint32_t source_of(struct finder *l, size_t i)
{
	uint32_t from = AMBIGUOUS;
	for (int way = 0; way < WAYS && from == AMBIGUOUS; way++) {
		if (way == PLACE)
			find_place(l, i);
		from = map_find(&l->known, MAP_KEY(join(l->v[i].way[way], (uint64_t)way)));
		if (from == MAP_NONE && way != OWN && way + 1 < WAYS)
			from = AMBIGUOUS;
	}
	return from;
}

static void take_all(struct finder *l)
{
	for (size_t i = 0; i < l->j->spans.n; i++) {
		const uint32_t from = is_candidate(l, i, false) ? source_of(l, i) : MAP_NONE;
		if (from == MAP_NONE || from == AMBIGUOUS)
			continue;
		expect(l->j->spans.v[from].told, "a source has its arguments");
		l->j->spans.v[i].cost = l->j->spans.v[from].cost;
		if (l->j->r->by_shape)
			l->j->spans.v[i].row = l->j->spans.v[from].row;
	}
}

/* Whether shapes were told of some operators and not of others. */
static bool is_needed(const struct joiner *j)
{
	bool told = false, unknown = false;
	for (size_t i = 0; i < j->spans.n && !(told && unknown); i++) {
		const struct operator_row *o = &j->r->operators.v[j->spans.v[i].row];
		if (o->kind != RANGE_OPERATOR || o->library)
			continue;
		told |= j->spans.v[i].told;
		unknown |= !j->spans.v[i].told;
	}
	return told && unknown;
}

int cost_alike(struct joiner *j)
{
	if (!is_needed(j))
		return 0;
	struct finder l = { .j = j, .v = xcalloc(j->spans.n, sizeof *l.v) };
	int e = take_launches(&l);
	if (!e) {
		find_inside(&l);
		find_own(&l);
		find_turns(&l);
		offer_all(&l);
	}
	if (!e)
		take_all(&l);
	map_fini(&l.known);
	free(l.v);
	return e;
}
