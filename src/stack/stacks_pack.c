/*
 * Stacks as chunks of a trace (CHUNK_CALLERS): a chunk for each thread, in which frames and stacks
 * stand before they are first named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/stacks.h"

#define CHUNK_MOST (4u << 20)
#define TEXT_MOST  4096u

struct packing {
	const struct trace *t;
	const struct stacks *s;
	int (*put)(void *, const struct chunk_header *, const void *, size_t);
	void *context;
	bool *frame_is_put, *row_is_put;
	ARRAY(uint64_t) words; /* of the chunk at hand */
	struct chunk_header head;
};

/* Room for a record of so many words and bytes of text, or NULL. */
static struct record *add(struct packing *p, uint16_t fn, uint32_t args, uint32_t bytes)
{
	const size_t words = RECORD_WORDS + args + (bytes + 7) / 8;
	array_reserve(&p->words, words);
	struct record *r = (struct record *)(p->words.v + p->words.n);
	memset(r, 0, words * 8);
	p->words.n += words;
	r->fn = fn;
	r->words = (uint16_t)words;
	r->aux = bytes;
	return r;
}

static uint32_t text_bytes(const char *text)
{
	const size_t n = strlen(text);
	return (uint32_t)MIN(n, TEXT_MOST);
}

static void put_frame(struct packing *p, uint32_t number)
{
	const struct stack_frame *f = &p->s->frames.v[number];
	const char *const part[] = { f->function, f->module, f->file };
	uint32_t bytes = 3;
	if (p->frame_is_put[number])
		return;
	for (int i = 0; i < 3; i++)
		bytes += text_bytes(part[i]);
	struct record *r = add(p, META_FRAME, 2, bytes);
	r->arg[0] = number;
	r->arg[1] = f->line | (uint64_t)f->kind << 32;
	char *to = (char *)(r->arg + 2);
	for (int i = 0; i < 3; i++) {
		memcpy(to, part[i], text_bytes(part[i]));
		to += text_bytes(part[i]) + 1;
	}
	p->frame_is_put[number] = true;
}

static void put_row(struct packing *p, uint32_t number)
{
	const struct stack_row *row = &p->s->rows.v[number];
	if (p->row_is_put[number])
		return;
	for (uint32_t i = 0; i < row->count; i++)
		put_frame(p, p->s->pool.v[row->first + i]);
	struct record *r = add(p, META_STACK, 2, row->count * (uint32_t)sizeof(uint32_t));
	r->arg[0] = number;
	r->arg[1] = row->count | (uint64_t)row->end << 32;
	if (row->count)
		memcpy(r->arg + 2, p->s->pool.v + row->first, row->count * sizeof(uint32_t));
	p->row_is_put[number] = true;
}

static void put_sample(struct packing *p, const struct stack_sample *s)
{
	put_row(p, s->stack);
	struct record *r = add(p, s->fn, 1, 0);
	const bool is_long = s->dur > UINT32_MAX;
	r->ticks = s->ticks;
	r->dur = (uint32_t)(is_long ? s->dur >> 10 : s->dur);
	r->flags = is_long ? RECORD_LONG : 0;
	r->result = s->result;
	r->arg[0] = s->stack;
}

static int flush(struct packing *p)
{
	const int e = p->words.n ? p->put(p->context, &p->head, p->words.v, p->words.n * 8) : 0;
	p->words.n = 0;
	return e;
}

/* Sets the head of the thread whose pieces these were, as one of its chunks says it. */
static void set_head(struct packing *p, const struct stack_sample *s)
{
	for (size_t i = 0; i < p->t->chunk_count; i++) {
		const struct chunk_ref *ref = &p->t->chunks[i];
		if (ref->head.kind != CHUNK_STACKS || ref->process != s->process ||
			ref->head.tid != s->tid)
			continue;
		p->head = ref->head;
		p->head.kind = CHUNK_CALLERS;
		p->head.lost = 0;
		p->head.seq = 0;
		return;
	}
}

static int put_samples(struct packing *p)
{
	const struct stacks *s = p->s;
	int e = 0;
	for (size_t i = 0; i < s->samples.n && !e; i++) {
		const struct stack_sample *at = &s->samples.v[i];
		const bool other = !i || at->process != at[-1].process || at->tid != at[-1].tid;
		if (other || p->words.n * 8 > CHUNK_MOST)
			e = flush(p);
		if (other)
			set_head(p, at);
		if (!e)
			put_sample(p, at);
	}
	return e ? e : flush(p);
}

int stacks_pack(const struct trace *t,
	int (*put)(
		void *context, const struct chunk_header *head, const void *payload, size_t bytes),
	void *context)
{
	struct stacks s;
	struct packing p = { .t = t, .s = &s, .put = put, .context = context };
	if (!trace_has(t, CHUNK_STACKS))
		return -ENOSYS;
	int e = stacks_load(t, &s, NULL);
	if (!e && s.waiting)
		e = -ENOSYS;
	p.frame_is_put = xcalloc(s.frames.n + 1, 1);
	p.row_is_put = xcalloc(s.rows.n + 1, 1);
	if (!e)
		e = put_samples(&p);
	free_all(p.frame_is_put, p.row_is_put);
	array_free(&p.words);
	stacks_fini(&s);
	return e;
}
