/* See nested.h. */
#include "model/nested.h"

#include <stdbool.h>

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

uint32_t nested_open(const void *v, size_t each, uint32_t i, uint64_t ticks)
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
		now->parent = nested_open(v, each, top, now->ticks);
		top = (uint32_t)i;
	}
}

uint32_t nested_at(
	const void *v, size_t n, size_t each, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const struct nested key = { .ticks = ticks, .process = process, .tid = tid };
	const size_t begun = SEARCH(i, 0, n, nested_order(element(v, each, i), &key) <= 0);
	if (!begun || thread_order(element(v, each, begun - 1), &key))
		return NESTED_NONE;
	return nested_open(v, each, (uint32_t)(begun - 1), ticks);
}
