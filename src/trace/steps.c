/* Finds the steps of a recording. */
#include "trace/steps.h"

#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/sort.h"
#include "trace/activity.h"

bool range_is_named(uint16_t kind)
{
	return kind == RANGE_ANNOTATION || kind == RANGE_NVTX || kind == RANGE_NVTX_SPAN;
}

static bool is_letter(char c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* Whether the first n bytes of a name end in this word. */
static bool ends_in(const char *name, size_t n, const char *word)
{
	const size_t w = strlen(word);
	if (n < w || strncasecmp(name + n - w, word, w) != 0)
		return false;
	const char *begin = name + n - w;
	return begin == name || !is_letter(begin[-1]) || *begin == word[0] - 32;
}

/* Whether they end in a word that people number their steps by. */
static bool ends_in_step(const char *name, size_t n)
{
	static const char *const words[] = { "step", "iteration", "iter", "batch" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (ends_in(name, n, words[i]))
			return true;
	return false;
}

size_t name_of_request(const char *name)
{
	size_t n = strlen(name);
	while (n && strchr("0123456789 _-:=#", name[n - 1]))
		n--;
	return ends_in(name, n, "request") ? n : 0;
}

size_t name_without_number(const char *name)
{
	const size_t length = strlen(name);
	size_t n = length;
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	if (n == length || !n || name[n - 1] == '#')
		return n ? n : length;
	return ends_in_step(name, n - (strchr(" _-:=", name[n - 1]) != NULL)) ? n : length;
}

/* PyTorch's own range around each call of an optimizer's step(): "Optimizer.step#SGD.step". */
static const char optimizer_step[] = "Optimizer.step#";

struct candidate {
	struct step step;
	uint32_t tid, family;
};

/* Ranges whose names differ in the number alone; repeated ones are of one thread. */
struct family {
	uint64_t name;         /* hash_bytes() */
	uint64_t total, count; /* ticks */
	enum steps_found found;
};

struct ranges {
	const struct meta *m;
	bool repeated; /* look for those instead of the others */
	ARRAY(struct candidate) v;
	ARRAY(struct family) families;
	struct map by_name;
};

static enum steps_found way_of(const struct ranges *r, const char *text, size_t *ret_common)
{
	*ret_common = r->repeated ? strlen(text) : name_without_number(text);
	if (r->repeated)
		return STEPS_REPEATED;
	if (text[*ret_common])
		return STEPS_NUMBERED;
	return strncmp(text, optimizer_step, sizeof optimizer_step - 1) ? STEPS_NONE
									: STEPS_OPTIMIZER;
}

static void take_range(struct ranges *r, uint32_t process, const struct range *g)
{
	const uint32_t name =
		range_is_named(g->kind) ? meta_find_string(r->m, process, g->name) : META_NONE;
	const char *text = name == META_NONE ? "" : r->m->names.v[name].text;
	size_t common;
	const enum steps_found found = *text ? way_of(r, text, &common) : STEPS_NONE;
	if (found == STEPS_NONE)
		return;
	const uint64_t thread = r->repeated ? (uint64_t)process << 32 | g->tid : 0;
	const uint64_t hash = hash_bytes(text, common);
	struct family *of = MAP_ROW(&r->by_name, MAP_KEY(hash, found, thread), &r->families,
		(struct family){ .name = hash, .found = found });
	struct candidate *to = array_push(&r->v);
	of->count++;
	*to = (struct candidate){ .step = { .from = g->ticks,
					  .to = range_end(g),
					  .process = process,
					  .name = g->name,
					  .kind = g->kind },
		.tid = g->tid,
		.family = (uint32_t)(of - r->families.v) };
	if (found == STEPS_NUMBERED)
		to->step.number = strtoull(text + common, NULL, 10);
}

static int take_ranges(const struct trace *t, struct ranges *r)
{
	struct cursor at = { .t = t };
	for (struct range g; trace_next_range(&at, &g);)
		take_range(r, at.ref->process, &g);
	return at.error;
}

ORDERING(thread_order, struct candidate, ORDER(a->step.process, b->step.process),
	ORDER(a->tid, b->tid), ORDER(a->step.from, b->step.from), ORDER(b->step.to, a->step.to))

/* In a part, only the calls that were steps in the whole may be steps. */
static bool may_be_steps(const struct trace *t, const struct family *f)
{
	return t->part.steps_found ? f->name == t->part.steps_name
				   : f->found != STEPS_REPEATED || f->count > 1;
}

/* A step that is not numbered is no part of another one: layers are not. */
static void drop_inner(const struct trace *t, struct ranges *r)
{
	size_t n = 0;
	SORT(r->v, thread_order);
	for (size_t i = 0; i < r->v.n; i++) {
		const struct candidate *c = &r->v.v[i], *last = n ? &r->v.v[n - 1] : NULL;
		if (may_be_steps(t, &r->families.v[c->family]) &&
			(!last || last->tid != c->tid || last->step.process != c->step.process ||
				c->step.from >= last->step.to))
			r->v.v[n++] = *c;
	}
	r->v.n = n;
}

static void sum_families(struct ranges *r)
{
	for (size_t i = 0; i < r->families.n; i++)
		r->families.v[i].count = 0;
	for (size_t i = 0; i < r->v.n; i++) {
		struct family *f = &r->families.v[r->v.v[i].family];
		f->count++;
		f->total += r->v.v[i].step.to - r->v.v[i].step.from;
	}
}

/* The family of this kind that lasts longest, of optimizers the one that comes most often. */
static uint32_t choose_family(const struct trace *t, const struct ranges *r, enum steps_found found)
{
	const struct family *v = r->families.v;
	uint32_t best = MAP_NONE;
	for (uint32_t i = 0; i < r->families.n; i++) {
		if (v[i].found != found || !v[i].count || !may_be_steps(t, &v[i]))
			continue;
		const bool more =
			best != MAP_NONE && found == STEPS_OPTIMIZER && v[i].count != v[best].count;
		if (best == MAP_NONE ||
			(more ? v[i].count > v[best].count : v[i].total > v[best].total))
			best = i;
	}
	return best;
}

ORDERING(step_order, struct step, ORDER(a->from, b->from), ORDER(b->to, a->to))

ORDERING(process_order, struct step, ORDER(a->process, b->process), step_order(one, two))

/* From the end of the one before; the first from the begin of the recording. */
static void step_to_the_end(const struct trace *t, struct steps *s)
{
	uint64_t until = 0;
	SORT(s->v, process_order);
	for (size_t i = 0; i < s->v.n; i++) {
		struct step *step = &s->v.v[i];
		const bool first = !i || step[-1].process != step->process;
		step->number = first ? 1 + t->part.steps_before : step[-1].number + 1;
		step->from = first ? t->header.start.ticks : until;
		until = step->to;
	}
}

/* To the begin of the next; the last is taken to be as long as the usual one. */
static void step_to_the_next(const struct trace *t, struct steps *s)
{
	uint64_t *length = xcalloc(s->v.n, sizeof *length);
	SORT(s->v, step_order);
	for (size_t i = 0; i < s->v.n; i++) {
		struct step *step = &s->v.v[i];
		step->number = 1 + t->part.steps_before + i;
		if (i + 1 < s->v.n) {
			step->to = step[1].from;
			length[i] = step->to - step->from;
		}
	}
	struct step *last = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
	if (last && t->part.steps_found && t->header.end.ticks > last->to) {
		last->to = t->header.end.ticks; /* a part ends with its last step */
	} else if (s->v.n > 1) {
		qsort(length, s->v.n - 1, sizeof *length, order_u64);
		const uint64_t usual = last->from + length[(s->v.n - 1) / 2];
		last->to = usual > last->to ? usual : last->to;
	}
	free(length);
}

static void push_step(struct steps *s, const struct step *step)
{
	*array_push(&s->v) = *step;
}

static void take_family(
	const struct trace *t, const struct ranges *r, enum steps_found found, struct steps *s)
{
	const uint32_t of = choose_family(t, r, found);
	s->v.n = 0;
	for (size_t i = 0; i < r->v.n && of != MAP_NONE; i++)
		if (r->v.v[i].family == of)
			push_step(s, &r->v.v[i].step);
	if (!s->v.n)
		return;
	if (found == STEPS_NUMBERED)
		SORT(s->v, step_order);
	else if (found == STEPS_OPTIMIZER)
		step_to_the_end(t, s);
	else
		step_to_the_next(t, s);
	SORT(s->v, step_order);
	s->found = found;
	s->name = r->families.v[of].name;
}

static void ranges_fini(struct ranges *r)
{
	array_free(&r->v, &r->families);
	map_fini(&r->by_name);
}

/* Two or more tell where one begins. */
static bool is_enough(const struct trace *t, const struct steps *s)
{
	if (t->part.steps_found)
		return s->found == t->part.steps_found;
	return s->found == STEPS_NUMBERED ? s->v.n : s->v.n > 1;
}

static int find_by_ranges(
	const struct trace *t, const struct meta *m, bool repeated, struct steps *s)
{
	struct ranges r = { .m = m, .repeated = repeated };
	int e = take_ranges(t, &r);
	if (repeated)
		drop_inner(t, &r);
	sum_families(&r);
	if (!e)
		take_family(t, &r, repeated ? STEPS_REPEATED : STEPS_NUMBERED, s);
	if (!e && !repeated && !is_enough(t, s))
		take_family(t, &r, STEPS_OPTIMIZER, s);
	ranges_fini(&r);
	return e;
}

struct finder {
	const struct trace *t;
	bool taken; /* the two below are filled */
	struct step_calls calls;
	uint64_t *launches; /* by process */
};

ORDERING(call_order, struct step_call, ORDER(a->end, b->end), ORDER(a->waits, b->waits),
	ORDER(b->begin, a->begin))

static void take_record(struct finder *f, const struct chunk_ref *of, const struct record *r)
{
	const uint32_t process = of->process;
	const struct schema_fn *fn = schema_find(&f->t->schema, r->fn);
	const bool launches = fn && !strcmp(fn->class, "launch") && !(r->flags & RECORD_CAPTURED);
	if (r->result || !fn || (!launches && !schema_blocks(fn)))
		return;
	struct step_call *m = array_push(&f->calls.v);
	*m = (struct step_call){ .begin = r->ticks,
		.end = record_end(r),
		.process = process,
		.tid = of->head.tid,
		.waits = !launches };
	if (launches && fn->launch_layout && r->words > RECORD_WORDS)
		m->function = (uint32_t)hash_bytes(&r->arg[0], sizeof r->arg[0]) | 1;
	f->launches[process] += launches;
}

static int take_all(struct finder *f)
{
	struct cursor at = { .t = f->t };
	if (f->taken)
		return 0;
	for (const struct record *r; (r = trace_next_call(&at));)
		take_record(f, at.ref, r);
	SORT(f->calls.v, call_order);
	f->taken = true;
	return at.error;
}

static uint32_t busiest(const struct finder *f)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < f->t->processes.n; i++)
		if (f->launches[i] > f->launches[most])
			most = i;
	return most;
}

/* A program that waits several times in an iteration has a long part, and others that launch little
 * and last no time. */
#define LITTLE 10u /* less than a tenth */

/* Half of all launches are in parts with so many or more. */
static uint64_t usual_launches(const uint64_t *launches, size_t n)
{
	uint64_t *by_size = xcalloc(n, sizeof *by_size), all = 0, seen = 0;
	size_t i = n;
	memcpy(by_size, launches, n * sizeof *by_size);
	qsort(by_size, n, sizeof *by_size, order_u64);
	for (size_t k = 0; k < n; k++)
		all += by_size[k];
	while (i && 2 * seen < all)
		seen += by_size[--i];
	const uint64_t usual = by_size[i];
	free(by_size);
	return usual;
}

/* How many launches are little, if such parts are three of four at most and together have a tenth
 * of the time at most: a batch and the answers to it, word by word, are steps of their own.  Else
 * 0. */
static uint64_t little_launches(const struct steps *s, const uint64_t *launches)
{
	const uint64_t little = usual_launches(launches, s->v.n) / LITTLE,
		       all = s->v.v[s->v.n - 1].to - s->v.v[0].to;
	uint64_t lasted = 0, few = 0;
	for (size_t i = 1; i < s->v.n; i++) {
		if (launches[i] >= little)
			continue;
		lasted += s->v.v[i].to - s->v.v[i].from;
		few++;
	}
	return lasted <= all / LITTLE && 4 * few <= 3 * s->v.n ? little : 0;
}

/* Adds them to the step before.  A part does as the whole did. */
static void join_parts(const struct trace *t, struct steps *s, const uint64_t *launches)
{
	size_t n = 1;
	s->name = t->part.steps_found ? t->part.steps_name : little_launches(s, launches);
	for (size_t i = 1; i < s->v.n; i++) {
		if (launches[i] < s->name) {
			s->v.v[n - 1].to = s->v.v[i].to;
			continue;
		}
		s->v.v[n] = s->v.v[i];
		s->v.v[n].number = s->v.v[n - 1].number + 1;
		n++;
	}
	s->v.n = n;
}

static void split(struct finder *f, struct steps *s)
{
	ARRAY(uint64_t) launches = { 0 };
	uint64_t since = 0;
	const uint32_t process = busiest(f);
	struct step next = { .from = f->t->header.start.ticks,
		.number = 1 + f->t->part.steps_before,
		.process = process };
	bool launched = false;
	array_each(const struct step_call, m, f->calls.v) {
		if (m->process != process)
			continue;
		if (!launched && !m->waits)
			next.launched = m->begin;
		since += !m->waits;
		if (launched && m->waits) {
			next.to = m->end;
			push_step(s, &next);
			*array_push(&launches) = since;
			since = 0;
			next.from = m->end;
			next.number++;
		}
		launched = !m->waits;
	}
	if (s->v.n > 1)
		join_parts(f->t, s, launches.v);
	array_free(&launches);
}

/* A kernel that comes once in each iteration: as many launches are between one time and the next.
 */
struct comer {
	uint32_t function;
	size_t first, last, count; /* launches of the process, by number */
	size_t least, most;        /* from one to the next */
};

struct comers {
	ARRAY(struct comer) v;
	struct map map;
	size_t launches;
};

static void take_launch(struct comers *c, uint32_t function)
{
	const size_t at = c->launches++;
	struct comer *k = MAP_ROW(&c->map, MAP_KEY(function), &c->v,
		(struct comer){ .function = function, .first = at, .least = SIZE_MAX });
	if (k->count) {
		const size_t apart = at - k->last;
		k->least = apart < k->least ? apart : k->least;
		k->most = apart > k->most ? apart : k->most;
	}
	k->last = at;
	k->count++;
}

/* Three times or more, about as far apart, over most of the run. */
static bool turns(const struct comer *k, size_t launches)
{
	return k->count > 2 && k->least > 1 && k->most - k->least <= k->least / 10 &&
	       k->last - k->first + k->most >= launches / 10 * 9;
}

/* The one that comes most seldom: layers come more often.  If several do, the first. */
static const struct comer *choose_comer(const struct comers *c)
{
	const struct comer *best = NULL;
	for (size_t i = 0; i < c->v.n; i++)
		if (turns(&c->v.v[i], c->launches) && (!best || c->v.v[i].count < best->count))
			best = &c->v.v[i];
	return best;
}

static void push_turns(const struct finder *f, uint32_t process, uint32_t function, struct steps *s)
{
	s->v.n = 0;
	array_each(const struct step_call, m, f->calls.v)
		if (m->process == process && m->function == function)
			push_step(s, &(struct step){ .from = m->begin,
					     .to = m->end,
					     .launched = m->begin,
					     .process = process });
	s->found = STEPS_KERNELS;
	s->name = function;
	step_to_the_next(f->t, s);
}

static void find_by_kernels(const struct finder *f, struct steps *s)
{
	const uint32_t process = busiest(f);
	struct comers c = { 0 };
	for (size_t i = 0; i < f->calls.v.n; i++)
		if (f->calls.v.v[i].process == process && !f->calls.v.v[i].waits)
			take_launch(&c, f->calls.v.v[i].function);
	const struct comer *k = choose_comer(&c);
	if (k)
		push_turns(f, process, k->function, s);
	array_free(&c.v);
	map_fini(&c.map);
}

static int find_by_calls(struct finder *f, struct steps *s)
{
	const struct trace *t = f->t;
	const int e = take_all(f);
	s->v.n = 0;
	s->found = STEPS_WAITS;
	if (!e && t->part.steps_found == STEPS_KERNELS)
		push_turns(f, busiest(f), (uint32_t)t->part.steps_name, s);
	else if (!e)
		split(f, s);
	if (!e && !is_enough(t, s))
		find_by_kernels(f, s);
	return e;
}

static int find(struct finder *f, const struct meta *m, struct steps *ret_steps)
{
	const struct trace *t = f->t;
	struct steps repeated = { 0 };
	int e = find_by_ranges(t, m, false, ret_steps);
	if (e || is_enough(t, ret_steps))
		return e;
	e = find_by_calls(f, ret_steps);
	if (e || is_enough(t, ret_steps))
		return e;
	e = find_by_ranges(t, m, true, &repeated);
	if (!e && is_enough(t, &repeated)) {
		steps_fini(ret_steps);
		*ret_steps = repeated;
	} else {
		steps_fini(&repeated);
	}
	return e;
}

int steps_load(const struct trace *t, const struct meta *m, struct step_calls *ret_calls,
	struct steps *ret_steps)
{
	struct finder f = { .t = t, .launches = xcalloc(t->processes.n + 1, sizeof *f.launches) };
	int e = ret_calls ? take_all(&f) : 0;
	*ret_steps = (struct steps){ 0 };
	if (!e)
		e = find(&f, m, ret_steps);
	free(f.launches);
	if (ret_calls)
		*ret_calls = f.calls;
	else
		array_free(&f.calls.v);
	return e;
}

void steps_fini(struct steps *s)
{
	array_free(&s->v);
}

bool step_is_usual(uint64_t length, uint64_t usual)
{
	const uint64_t differs = usual / 4;
	return length <= usual + differs && length >= usual - differs;
}

size_t steps_unusual(const uint64_t *length, size_t count, uint64_t *room)
{
	const size_t half = count / 2, n = count - half;
	size_t first = 0;
	if (!count)
		return 0;
	memcpy(room, length + half, n * sizeof *room);
	qsort(room, n, sizeof *room, order_u64);
	while (first < half && !step_is_usual(length[first], room[n / 2]))
		first++;
	return first;
}

size_t steps_warm_up(const uint64_t *length, size_t count)
{
	double sum = 0, squares = 0, least = 0;
	size_t best = 0;
	uint64_t room[STEPS_FEW];
	if (count < STEPS_FEW)
		return steps_unusual(length, count, room);
	for (size_t i = count; i-- > 0;) { /* of the steps from i on */
		const double x = (double)length[i], n = (double)(count - i);
		sum += x;
		squares += x * x;
		const double spread = squares - sum * sum / n,
			     error = spread > 0 ? spread / (n * n) : 0;
		if (i > count / 2)
			continue;
		if (i == count / 2 || error <= least) {
			least = error;
			best = i;
		}
	}
	return best;
}
