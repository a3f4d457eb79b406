/* See nested.h. */
#include "model/nested.h"

#include <errno.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#include "base/banned.h"

static int thread_order(const struct nested *a, const struct nested *b)
{
	return a->process != b->process ? ORDER(a->process, b->process) : ORDER(a->tid, b->tid);
}

static int nested_order(const void *one, const void *two)
{
	const struct nested *a = one, *b = two;
	const int thread = thread_order(a, b);
	if (thread || a->ticks != b->ticks)
		return thread ? thread : ORDER(a->ticks, b->ticks);
	return ORDER(b->end, a->end);
}

static struct nested *element(const void *v, size_t each, size_t i)
{
	return (struct nested *)((char *)v + i * each);
}

static uint32_t open_at(const void *v, size_t each, uint32_t i, uint64_t ticks)
{
	while (i != NESTED_NONE && element(v, each, i)->end <= ticks)
		i = element(v, each, i)->parent;
	return i;
}

void nested(void *v, size_t n, size_t each)
{
	uint32_t top = NESTED_NONE;
	sort_records(v, n, each, nested_order);
	for (size_t i = 0; i < n; i++) {
		struct nested *now = element(v, each, i);
		if (i && thread_order(element(v, each, i - 1), now))
			top = NESTED_NONE;
		now->parent = open_at(v, each, top, now->ticks);
		expect(now->parent == NESTED_NONE || now->parent < i,
			"those around stand before those inside");
		top = (uint32_t)i;
	}
}

/* Up to where elements stand before the key, from a place that does on: in steps that double. */
static size_t gallop(
	const void *v, size_t n, size_t each, size_t from, const struct nested *key, size_t *ret_to)
{
	size_t step = 1;
	while (step < n - from && nested_order(element(v, each, from + step), key) <= 0) {
		from += step;
		step *= 2;
	}
	*ret_to = step < n - from ? from + step : n;
	return from;
}

uint32_t nested_at(const void *v, size_t n, size_t each, uint32_t process, uint32_t tid,
	uint64_t ticks, size_t *hint)
{
	const struct nested key = { .ticks = ticks, .process = process, .tid = tid };
	size_t from = 0, to = n;
	if (*hint < n && nested_order(element(v, each, *hint), &key) <= 0)
		from = gallop(v, n, each, *hint, &key, &to);
	const size_t begun = SEARCH(i, from, to, nested_order(element(v, each, i), &key) <= 0);
	if (!begun || thread_order(element(v, each, begun - 1), &key))
		return NESTED_NONE;
	expect_slow(element(v, each, begun - 1)->ticks <= ticks, "what was found had begun");
	*hint = begun - 1;
	return open_at(v, each, (uint32_t)(begun - 1), ticks);
}

/* ---- numbers ---- */

static int external_order(const void *one, const void *two)
{
	const struct external *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	return a->id != b->id ? ORDER(a->id, b->id) : ORDER(a->index, b->index);
}

int externals_make(const void *v, size_t n, size_t each, struct externals *ret_externals)
{
	*ret_externals = (struct externals){ 0 };
	for (size_t i = 0; i < n; i++) {
		const struct nested *at = element(v, each, i);
		if (!at->external)
			continue;
		struct external *x = array_push(&ret_externals->v);
		if (!x)
			return -ENOMEM;
		*x = (struct external){ at->external, at->process, (uint32_t)i };
	}
	SORT(ret_externals->v, external_order);
	return 0;
}

uint32_t externals_find(const struct externals *x, uint32_t process, uint64_t id)
{
	const struct external key = { .id = id, .process = process };
	const size_t at = SEARCH(i, 0, x->v.n, external_order(&x->v.v[i], &key) < 0);
	const struct external *found = at < x->v.n ? &x->v.v[at] : NULL;
	return found && found->process == process && found->id == id ? found->index : NESTED_NONE;
}
