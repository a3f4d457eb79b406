/* See steps.h. */
#include "trace/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "trace/activity.h"

#include "base/banned.h"

/* ---- that the program numbers ---- */

bool range_is_named(uint16_t kind)
{
	return kind == RANGE_ANNOTATION || kind == RANGE_NVTX || kind == RANGE_NVTX_SPAN;
}

static bool is_letter(char c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* Whether the first n bytes of a name end in a word that people number their steps by. */
static bool ends_in_step(const char *name, size_t n)
{
	static const char *const words[] = { "step", "iteration", "iter", "batch" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const size_t w = strlen(words[i]);
		if (n < w || strncasecmp(name + n - w, words[i], w) != 0)
			continue;
		const char *begin = name + n - w;
		if (begin == name || !is_letter(begin[-1]) || (*begin == words[i][0] - 32))
			return true;
	}
	return false;
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

/* Ranges whose names differ in the number alone. */
struct family {
	uint64_t total; /* ticks */
};

struct numbered {
	const struct meta *m;
	ARRAY(struct step) found;
	ARRAY(uint32_t) family_of; /* of each found */
	ARRAY(struct family) families;
	struct map by_name;
};

static int take_range(struct numbered *n, uint32_t process, const struct range *g)
{
	const uint32_t name =
		range_is_named(g->kind) ? meta_find_string(n->m, process, g->name) : META_NONE;
	const char *text = name == META_NONE ? "" : n->m->names.v[name].text;
	const size_t common = name_without_number(text);
	if (!text[common])
		return 0;
	struct family *of = MAP_ROW(
		&n->by_name, MAP_KEY(hash_bytes(text, common)), &n->families, (struct family){ 0 });
	struct step *to = of ? array_push(&n->found) : NULL;
	uint32_t *family = to ? array_push(&n->family_of) : NULL;
	if (!family)
		return -ENOMEM;
	of->total += g->dur;
	*family = (uint32_t)(of - n->families.v);
	*to = (struct step){ .from = g->ticks,
		.to = range_end(g),
		.number = strtoull(text + common, NULL, 10),
		.process = process,
		.name = g->name,
		.kind = g->kind };
	return 0;
}

static int take_ranges(const struct trace *t, struct numbered *n)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0 && !(e = take_range(n, buf.ref->process, &g)))
		;
	chunk_buf_fini(&buf);
	return e;
}

static uint32_t longest(const struct numbered *n)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < n->families.n; i++)
		if (n->families.v[i].total > n->families.v[most].total)
			most = i;
	return most;
}

static int step_order(const void *one, const void *two)
{
	const struct step *a = one, *b = two;
	return a->from != b->from ? ORDER(a->from, b->from) : ORDER(b->to, a->to);
}

static int find_numbered(const struct trace *t, const struct meta *m, struct steps *s)
{
	struct numbered n = { .m = m };
	int e = take_ranges(t, &n);
	const uint32_t of = longest(&n);
	for (size_t i = 0; i < n.found.n && !e; i++) {
		struct step *to = n.family_of.v[i] == of ? array_push(&s->v) : NULL;
		if (to)
			*to = n.found.v[i];
		else if (n.family_of.v[i] == of)
			e = -ENOMEM;
	}
	SORT(s->v, step_order);
	array_free(&n.found);
	array_free(&n.family_of);
	array_free(&n.families);
	map_fini(&n.by_name);
	return e;
}

/* ---- by waits ---- */

struct moment {
	uint64_t ticks;
	uint32_t process;
	bool waits;
};

struct finder {
	const struct trace *t;
	ARRAY(struct moment) moments;
	uint64_t *launches; /* by process */
};

static int moment_order(const void *one, const void *two)
{
	const struct moment *a = one, *b = two;
	return a->ticks != b->ticks ? ORDER(a->ticks, b->ticks) : ORDER(a->waits, b->waits);
}

static int take_record(struct finder *f, uint32_t process, const struct record *r)
{
	const struct schema_fn *fn = schema_find(&f->t->schema, r->fn);
	const bool launches = fn && !strcmp(fn->class, "launch") && !(r->flags & RECORD_CAPTURED);
	if (r->result || !fn || (!launches && !schema_blocks(fn)))
		return 0;
	struct moment *m = array_push(&f->moments);
	if (!m)
		return -ENOMEM;
	*m = (struct moment){ record_end(r), process, !launches };
	f->launches[process] += launches;
	return 0;
}

static int take_all(struct finder *f)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next(f->t, CHUNK_EVENTS, &at, &buf, NULL)) > 0) {
		struct records it = records_of(&buf);
		e = 0;
		for (const struct record *r; !e && (r = records_next(&it));)
			e = take_record(f, buf.ref->process, r);
		if (e)
			break;
	}
	chunk_buf_fini(&buf);
	return e;
}

static uint32_t busiest(const struct finder *f)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < f->t->processes.n; i++)
		if (f->launches[i] > f->launches[most])
			most = i;
	return most;
}

static int push_step(struct steps *s, const struct step *step)
{
	struct step *new = array_push(&s->v);
	if (new)
		*new = *step;
	return new ? 0 : -ENOMEM;
}

static int split(struct finder *f, struct steps *s)
{
	const uint32_t process = busiest(f);
	struct step next = { .from = f->t->header.start.ticks,
		.number = 1 + f->t->part.steps_before,
		.process = process };
	bool launched = false;
	int e = 0;
	SORT(f->moments, moment_order);
	for (size_t i = 0; i < f->moments.n && !e; i++) {
		const struct moment *m = &f->moments.v[i];
		if (m->process != process)
			continue;
		if (launched && m->waits) {
			next.to = m->ticks;
			e = push_step(s, &next);
			next.from = m->ticks;
			next.number++;
		}
		launched = !m->waits;
	}
	return e;
}

static int find_by_waits(const struct trace *t, struct steps *s)
{
	struct finder f = { .t = t, .launches = calloc(t->processes.n + 1, sizeof *f.launches) };
	int e = f.launches ? take_all(&f) : -ENOMEM;
	if (!e)
		e = split(&f, s);
	array_free(&f.moments);
	free(f.launches);
	return e;
}

/* ---- steps ---- */

int steps_load(const struct trace *t, const struct meta *m, struct steps *ret_steps)
{
	*ret_steps = (struct steps){ 0 };
	const int e = find_numbered(t, m, ret_steps);
	return e || ret_steps->v.n ? e : find_by_waits(t, ret_steps);
}

void steps_fini(struct steps *s)
{
	array_free(&s->v);
}

size_t steps_warm_up(const uint64_t *length, size_t count)
{
	double sum = 0, squares = 0, least = 0;
	size_t best = 0;
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
