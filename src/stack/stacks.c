/* The table of stacks: see stacks.h. */
#include "stack/stacks.h"

#include <string.h>

#include "base/search.h"
#include "base/sort.h"

const char *stacks_text(struct stacks *s, const char *text, size_t bytes)
{
	uint32_t *slot = map_get(&s->text_map, map_text_key(text, bytes, 0));
	if (*slot != MAP_NONE)
		return s->texts.v[*slot];
	*slot = (uint32_t)s->texts.n;
	return *array_push(&s->texts) = xstrndup(text, bytes);
}

/* Texts are kept once: equal ones have one address. */
uint32_t stacks_add_frame(struct stacks *s, const struct stack_frame *f)
{
	const struct map_key key = MAP_KEY((uintptr_t)f->function, (uintptr_t)f->file,
		(uintptr_t)f->module, (uint64_t)f->kind << 32 | f->line);
	const struct stack_frame *row = MAP_ROW(&s->frame_map, key, &s->frames, *f);
	return (uint32_t)(row - s->frames.v);
}

uint32_t stacks_add_row(
	struct stacks *s, const uint32_t *frames, uint32_t count, enum stack_end end)
{
	const struct map_key key = map_text_key(
		(const char *)frames, count * sizeof *frames, (uint64_t)end << 32 | count);
	array_reserve(&s->pool, count);
	const size_t before = s->rows.n;
	const struct stack_row *row = MAP_ROW(&s->row_map, key, &s->rows,
		(struct stack_row){ .first = s->pool.n, .count = count, .end = end });
	if (s->rows.n > before && count) {
		memcpy(s->pool.v + s->pool.n, frames, count * sizeof *frames);
		s->pool.n += count;
	}
	return (uint32_t)(row - s->rows.v);
}

ORDERING(sample_order, struct stack_sample, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->ticks, b->ticks))

void stacks_sort(struct stacks *s)
{
	SORT(s->samples, sample_order);
}

void stacks_fini(struct stacks *s)
{
	for (size_t i = 0; i < s->texts.n; i++)
		free(s->texts.v[i]);
	array_free(&s->texts, &s->frames, &s->pool, &s->rows, &s->samples);
	map_fini(&s->frame_map, &s->row_map, &s->text_map);
}

uint32_t stacks_find(const struct stacks *s, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const struct stack_sample key = { .process = process, .tid = tid, .ticks = ticks };
	const size_t i = SEARCH(k, 0, s->samples.n, sample_order(&s->samples.v[k], &key) <= 0);
	const struct stack_sample *at = i ? &s->samples.v[i - 1] : NULL;
	const bool is_it =
		at && at->process == process && at->tid == tid && ticks - at->ticks <= at->dur;
	return is_it ? s->rows.v[at->stack].like : STACK_NONE;
}

uint32_t stacks_find_within(
	const struct stacks *s, uint32_t process, uint32_t tid, uint64_t from, uint64_t to)
{
	const struct stack_sample key = { .process = process, .tid = tid, .ticks = from };
	const size_t i = SEARCH(k, 0, s->samples.n, sample_order(&s->samples.v[k], &key) < 0);
	const struct stack_sample *at = i < s->samples.n ? &s->samples.v[i] : NULL;
	const bool is_it = at && at->process == process && at->tid == tid && at->ticks <= to;
	return is_it ? s->rows.v[at->stack].like : STACK_NONE;
}

uint32_t stacks_of_call(
	const struct stacks *s, uint32_t process, uint32_t tid, uint64_t ticks, uint16_t fn)
{
	const struct stack_sample key = { .process = process, .tid = tid, .ticks = ticks };
	size_t i = SEARCH(k, 0, s->samples.n, sample_order(&s->samples.v[k], &key) < 0);
	for (; i < s->samples.n && !sample_order(&s->samples.v[i], &key); i++)
		if (s->samples.v[i].fn == fn)
			return s->samples.v[i].stack;
	return STACK_NONE;
}
