/* See steps.h. */
#include "trace/steps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sort.h"

#include "base/banned.h"

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
	const bool launches = fn && schema_launches(fn) && !(r->flags & RECORD_CAPTURED);
	if (r->result || !fn || (!launches && !schema_waits(fn)))
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

static int find(struct finder *f, struct steps *s)
{
	const int e = take_all(f);
	const uint32_t process = busiest(f);
	bool launched = false;
	if (e)
		return e;
	SORT(f->moments, moment_order);
	for (size_t i = 0; i < f->moments.n; i++) {
		const struct moment *m = &f->moments.v[i];
		if (m->process != process)
			continue;
		if (launched && m->waits) {
			uint64_t *end = array_push(&s->end);
			if (!end)
				return -ENOMEM;
			*end = m->ticks;
		}
		launched = !m->waits;
	}
	return 0;
}

int steps_load(const struct trace *t, struct steps *ret_steps)
{
	struct finder f = { .t = t, .launches = calloc(t->processes.n + 1, sizeof *f.launches) };
	*ret_steps = (struct steps){ 0 };
	const int e = f.launches ? find(&f, ret_steps) : -ENOMEM;
	array_free(&f.moments);
	free(f.launches);
	return e;
}

void steps_fini(struct steps *s)
{
	array_free(&s->end);
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
