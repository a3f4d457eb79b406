/* Filling the table of stacks from both forms of a trace: see stacks.h. */
#include "base/atomic.h"
#include "stack/stacks.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "stack/pieces.h"
#include "stack/unwind.h"

#define FRAMES_MOST 256u                       /* of a stack */
#define EVALUATOR   "_PyEval_EvalFrameDefault" /* CPython's loop: where frames of Python are run */

static int add_sample(
	struct stacks *s, const struct chunk_ref *ref, const struct record *r, uint32_t row)
{
	if (row == STACK_NONE)
		return -EOVERFLOW;
	*array_push(&s->samples) = (struct stack_sample){ .ticks = r->ticks,
		.dur = record_dur(r),
		.process = ref->process,
		.tid = ref->head.tid,
		.stack = row,
		.fn = r->fn,
		.result = r->result };
	s->cut += s->rows.v[row].end == STACK_CUT;
	s->unknown += s->rows.v[row].end == STACK_UNKNOWN;
	return 0;
}

struct loader {
	const struct trace *t;
	struct stacks *s;
	struct pieces pieces;
	struct map of_process,
		of_files; /* a process, and what its files hash to: its unwinder's number */
	ARRAY(struct unwinder *) unwinders;
	bool without; /* stacks can't be unwound here */
};

/* Of the files that a process has mapped, and where. */
static uint64_t hash_files(const struct pieces *p, uint32_t process)
{
	uint64_t h = 0;
	array_each(const struct code_mapping, m, p->mappings) {
		if (m->process != process)
			continue;
		h = hash_mix(hash_mix(hash_mix(h ^ m->from) ^ m->end) ^ m->offset);
		h = hash_mix(h ^ hash_bytes(m->path, strlen(m->path)));
		h = hash_mix(h ^ hash_bytes(m->build_id, m->build_id_bytes));
	}
	return h;
}

/* A forked process shares that of the one that it came from, since libdw reads a file for each
 * again. */
static struct unwinder *unwinder_of(struct loader *l, uint32_t process)
{
	struct stacks *s = l->s;
	uint32_t *number = map_get(&l->of_process, MAP_KEY(process));
	if (*number == MAP_NONE)
		*number = map_number(&l->of_files, MAP_KEY(hash_files(&l->pieces, process)));
	if (*number == l->unwinders.n)
		*array_push(&l->unwinders) = l->without ? NULL
							: unwinder_new(&l->pieces, process, s,
								  s->without, sizeof s->without);
	struct unwinder *u = l->unwinders.v[*number];
	l->without |= !u;
	return u;
}

/* The frames of Python of a sample, as they are put between those of C. */
struct python_frames {
	const uint64_t *words;
	uint32_t count, at;
	bool more;
};

static uint32_t add_python(struct loader *l, uint32_t process, uint64_t word)
{
	struct stacks *s = l->s;
	const struct python_code *c = pieces_code(&l->pieces, process, (uint32_t)word);
	const char *name = c && c->name ? c->name : "", *file = c ? c->file : "";
	const struct stack_frame f = { .function = stacks_text(s, name, strlen(name)),
		.module = stacks_text(s, "", 0),
		.file = stacks_text(s, file, strlen(file)),
		.line = c ? python_line(c, word >> 32 & STACK_PYTHON_AT) : 0,
		.kind = CALLER_PYTHON };
	return stacks_add_frame(s, &f);
}

/* The frames up to the one that C has called; all: all that are left. */
static void put_python(struct loader *l, uint32_t process, struct python_frames *p, bool all,
	uint32_t *frames, uint32_t *count)
{
	while (p->at < p->count && *count < FRAMES_MOST) {
		const uint64_t word = p->words[p->at++];
		frames[(*count)++] = add_python(l, process, word);
		if (word & STACK_PYTHON_ENTRY && !all)
			break;
	}
}

static uint32_t join(
	struct loader *l, uint32_t process, const struct unwound *native, struct python_frames *p)
{
	struct stacks *s = l->s;
	uint32_t frames[FRAMES_MOST], count = 0;
	for (uint32_t i = 0; i < native->count && count < FRAMES_MOST; i++) {
		const struct stack_frame *f = &s->frames.v[native->frames[i]];
		if (p->count && !strncmp(f->function, EVALUATOR, sizeof EVALUATOR - 1))
			put_python(l, process, p, false, frames, &count);
		else
			frames[count++] = native->frames[i];
	}
	/* The piece ends before the loop that runs them, or that has no name. */
	put_python(l, process, p, true, frames, &count);
	return stacks_add_row(s, frames, count, p->more ? STACK_CUT : native->end);
}

static int take_piece(struct loader *l, const struct chunk_ref *ref, const struct record *r)
{
	uint32_t frames[FRAMES_MOST];
	struct unwound native = { .frames = frames, .room = FRAMES_MOST, .end = STACK_UNKNOWN };
	const size_t words = r->words - RECORD_WORDS;
	if (r->words < RECORD_WORDS + STACK_WORDS)
		return 0;
	const size_t python = r->arg[STACK_COUNTS] & UINT16_MAX;
	if (python > words - STACK_WORDS || r->aux > (words - STACK_WORDS - python) * 8)
		return 0;
	struct python_frames p = { .words = r->arg + STACK_WORDS,
		.count = (uint32_t)python,
		.more = r->arg[STACK_COUNTS] & STACK_PYTHON_MORE };
	struct unwinder *u = unwinder_of(l, ref->process);
	int e = 0;
	if (u)
		e = unwinder_run(u,
			&(struct stack_piece){
				r->arg, (const uint8_t *)(p.words + python), r->aux },
			&native);
	else
		l->s->waiting++;
	return e ? e : add_sample(l->s, ref, r, join(l, ref->process, &native, &p));
}

static int take_pieces(struct loader *l, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	int e = 0;
	for (const struct record *r; !e && (r = records_next(&it));)
		e = r->fn < META_PROCESS ? take_piece(l, buf->ref, r) : 0;
	return e;
}

struct numbers { /* of the file: what they are here */
	struct map frames, rows;
};

static void take_frame(
	struct stacks *s, struct map *numbers, uint64_t source, const struct record *r)
{
	size_t bytes;
	const char *text = record_text(r, 2, &bytes), *part[3];
	if (r->words < RECORD_WORDS + 2)
		return;
	for (int i = 0; i < 3; i++) {
		const size_t n = strnlen(text, bytes);
		part[i] = stacks_text(s, text, n);
		text += n + (n < bytes);
		bytes -= n + (n < bytes);
	}
	*map_get(numbers, MAP_KEY(source, r->arg[0])) = stacks_add_frame(
		s, &(struct stack_frame){ part[0], part[1], part[2], r->arg[1] & UINT32_MAX,
			   r->arg[1] >> 32 == CALLER_PYTHON ? CALLER_PYTHON : CALLER_NATIVE });
}

static void take_row(struct stacks *s, struct numbers *n, uint64_t source, const struct record *r)
{
	uint32_t frames[FRAMES_MOST], count = 0, number;
	size_t bytes;
	const char *text = record_text(r, 2, &bytes);
	if (r->words < RECORD_WORDS + 2)
		return;
	for (; bytes >= sizeof number && count < FRAMES_MOST; bytes -= sizeof number) {
		memcpy(&number, text, sizeof number);
		text += sizeof number;
		number = map_find(&n->frames, MAP_KEY(source, number));
		if (number != MAP_NONE)
			frames[count++] = number;
	}
	const uint64_t end = r->arg[1] >> 32;
	*map_get(&n->rows, MAP_KEY(source, r->arg[0])) = stacks_add_row(s, frames, count,
		end == STACK_WHOLE || end == STACK_CUT ? (enum stack_end)end : STACK_UNKNOWN);
}

static int take_known(struct stacks *s, struct numbers *n, const struct chunk_buf *buf)
{
	struct records it = records_of(buf);
	const uint64_t source = buf->ref->source;
	int e = 0;
	for (const struct record *r; !e && (r = records_next(&it));) {
		uint32_t row = MAP_NONE;
		if (r->fn == META_FRAME)
			take_frame(s, &n->frames, source, r);
		else if (r->fn == META_STACK)
			take_row(s, n, source, r);
		else if (r->fn < META_PROCESS && r->words > RECORD_WORDS)
			row = map_find(&n->rows, MAP_KEY(source, r->arg[0]));
		if (!e && row != MAP_NONE)
			e = add_sample(s, buf->ref, r, row);
	}
	return e;
}

static int load_chunks(struct loader *l)
{
	struct chunk_buf buf = { 0 };
	struct numbers numbers = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next_of(l->t, 1u << CHUNK_STACKS | 1u << CHUNK_CALLERS, &at, &buf,
			&l->s->damaged)) > 0) {
		e = buf.ref->head.kind == CHUNK_STACKS ? take_pieces(l, &buf)
						       : take_known(l->s, &numbers, &buf);
		if (e)
			break;
	}
	map_fini(&numbers.frames, &numbers.rows);
	chunk_buf_fini(&buf);
	return e;
}

static int load(struct loader *l)
{
	int e = trace_has(l->t, CHUNK_STACKS) ? pieces_load(l->t, &l->pieces) : 0;
	if (!e)
		e = load_chunks(l);
	for (size_t i = 0; i < l->unwinders.n; i++)
		unwinder_free(l->unwinders.v[i]);
	array_free(&l->unwinders);
	map_fini(&l->of_process, &l->of_files);
	pieces_fini(&l->pieces);
	return e;
}

int stacks_load(const struct trace *t, struct stacks *s, struct error *err)
{
	*s = (struct stacks){ .lost = load_relaxed(&t->header.lost_stacks) };
	struct loader l = { .t = t, .s = s };
	int e = load(&l);
	if (!e)
		stacks_compare(s);
	stacks_sort(s);
	return e ? error_set(err, e, "the call stacks can't be read: %s", strerror(-e)) : 0;
}
