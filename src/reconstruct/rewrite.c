/*
 * Writes a reconstructed timeline into the trace, as chunks of each process: names, links,
 * activities, and a sentence for readers.
 */
#include "reconstruct/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/sort.h"
#include "reconstruct/reconstruct.h"
#include "trace/pack.h"

#define STRINGS   (1u << 30) /* ids of strings that are given out here lie above */
#define SEQUENCES (1u << 30) /* and numbers of chunks */
#define PER_CHUNK 16384u     /* activities */

struct writer {
	const struct trace *t;
	const struct meta *m;
	const struct reconstruction *r;
	struct rewritten *done;
	ARRAY(struct pack_extra) extra;
	ARRAY(uint64_t) words; /* of the records of names at hand */
	uint32_t sequence;
};

/* Any chunk of the process says who it is. */
static struct chunk_header head_of(const struct writer *w, uint32_t process)
{
	struct chunk_header h = { 0 };
	for (size_t i = 0; i < w->t->chunk_count; i++)
		if (chunk_has_process(w->t->chunks[i].head.kind) &&
			w->t->chunks[i].process == process) {
			h = w->t->chunks[i].head;
			break;
		}
	memset(h.thread, 0, sizeof h.thread);
	h.lost = 0;
	h.next_free = 0;
	h.tid = h.pid;
	return h;
}

/* The payload is copied. */
static void add_chunk(
	struct writer *w, uint32_t process, enum chunk_kind kind, const void *payload, size_t bytes)
{
	if (!bytes)
		return;
	struct pack_extra *x = array_push(&w->extra);
	void *copy = xmalloc(bytes);
	*x = (struct pack_extra){ .head = head_of(w, process), .payload = copy };
	memcpy(copy, payload, bytes);
	x->bytes = bytes;
	x->head.kind = (uint16_t)kind;
	x->head.seq = SEQUENCES + w->sequence++;
}

static void put_record(
	struct writer *w, uint16_t id, const uint64_t *args, uint32_t count, const char *text)
{
	const size_t bytes = strlen(text), padded = (bytes + 7) / 8;
	const size_t words = RECORD_WORDS + count + padded, at = w->words.n;
	array_reserve(&w->words, words);
	memset(&w->words.v[at], 0, words * sizeof(uint64_t));
	const struct record r = { .ticks = w->t->header.start.ticks,
		.fn = id,
		.words = (uint16_t)words,
		.aux = (uint32_t)bytes };
	memcpy(&w->words.v[at], &r, sizeof r);
	for (uint32_t i = 0; i < count; i++)
		w->words.v[at + RECORD_WORDS + i] = args[i];
	memcpy(&w->words.v[at + RECORD_WORDS + count], text, bytes);
	w->words.n += words;
}

static const char *text_of(const struct writer *w, const struct rebuilt_name *n)
{
	return n->name == META_NONE ? n->text : w->m->names.v[n->name].text;
}

static void put_names(struct writer *w)
{
	for (size_t i = 0; i < w->r->names.n; i++) {
		const uint64_t id = STRINGS + i + 1;
		put_record(w, META_STRING, &id, 1, text_of(w, &w->r->names.v[i]));
	}
}

/* Adds the sentence that every reader shows with a recording's own remarks. */
static void put_sentence(struct writer *w)
{
	const struct rewritten *d = w->done;
	struct number measured, all, guessed, off;
	char text[400];
	snprintf(text, sizeof text,
		"the device timeline is reconstructed: of %s launches, memcpys and memsets %s were "
		"timed, the others take what their like took, and %s of which none like them was are "
		"guessed; times are off by %s in the median (standard deviation)",
		number_count(&all, d->measured + d->like + d->guessed),
		number_count(&measured, d->measured), number_count(&guessed, d->guessed),
		number_ns(&off, d->uncertainty_ns));
	put_record(w, META_MESSAGE, NULL, 0, text);
}

static void add_names(struct writer *w, uint32_t process)
{
	const bool first = !w->extra.n;
	w->words.n = 0;
	put_names(w);
	if (first)
		put_sentence(w);
	add_chunk(w, process, CHUNK_META, w->words.v, w->words.n * sizeof(uint64_t));
}

static void add_activities(struct writer *w, uint32_t process, size_t from, size_t to)
{
	struct gpu_activity *chunk = xmalloc(PER_CHUNK * sizeof *chunk);
	while (from < to) {
		const size_t n = MIN(to - from, PER_CHUNK);
		for (size_t i = 0; i < n; i++) {
			const struct rebuilt *a = &w->r->activities.v[from + i];
			chunk[i] = a->activity;
			chunk[i].name += a->is_named ? 0 : STRINGS;
		}
		add_chunk(w, process, CHUNK_DEVICE, chunk, n * sizeof *chunk);
		from += n;
	}
	free(chunk);
}

static void add_links(struct writer *w, uint32_t process)
{
	ARRAY(struct link) links = { 0 };
	for (size_t i = 0; i < w->r->links.n; i++) {
		if (w->r->links.v[i].process != process)
			continue;
		*array_push(&links) = w->r->links.v[i].link;
	}
	add_chunk(w, process, CHUNK_LINKS, links.v, links.n * sizeof *links.v);
	array_free(&links);
}

static void add_all(struct writer *w)
{
	for (size_t from = 0, to; from < w->r->activities.n; from = to) {
		const uint32_t process = w->r->activities.v[from].process;
		to = from + 1;
		while (to < w->r->activities.n && w->r->activities.v[to].process == process)
			to++;
		add_names(w, process);
		add_links(w, process);
		add_activities(w, process, from, to);
	}
}

static void writer_fini(struct writer *w)
{
	for (size_t i = 0; i < w->extra.n; i++)
		free((void *)w->extra.v[i].payload);
	array_free(&w->extra, &w->words);
}

ORDERING(number_order, uint32_t, ORDER(*a, *b))

static void count(const struct reconstruction *r, struct rewritten *ret)
{
	uint32_t *off = xmalloc((r->activities.n + 1) * sizeof *off);
	for (size_t i = 0; i < r->activities.n; i++)
		off[i] = r->activities.v[i].activity.uncertainty_ns;
	sort_records(off, r->activities.n, sizeof *off, number_order);
	*ret = (struct rewritten){ .measured = r->measured,
		.like = r->like,
		.guessed = r->guessed,
		.activities = r->activities.n,
		.uncertainty_ns = r->activities.n ? off[r->activities.n / 2] : 0 };
	free(off);
}

static int rewrite(const struct trace *t, const struct meta *m, const struct reconstruction *r,
	const char *path, struct rewritten *ret_r, struct error *err)
{
	struct writer w = { .t = t, .m = m, .r = r, .done = ret_r };
	count(r, ret_r);
	if (!r->activities.n)
		return 0;
	add_all(&w);
	const int e = trace_rebuild(t, path, w.extra.v, w.extra.n, err);
	writer_fini(&w);
	return e;
}

int reconstruct_file(const char *path, struct rewritten *ret_r, struct error *err)
{
	struct trace *t;
	struct meta m = { 0 };
	struct reconstruction r = { 0 };
	int e = trace_open(path, &t, err);
	if (e)
		return e;
	e = meta_load(t, &m, err);
	if (!e && (e = reconstruct_trace(t, &m, &r)))
		error_set(err, e, "the timeline of %s can't be reconstructed: %s", path,
			strerror(-e));
	if (!e)
		e = rewrite(t, &m, &r, path, ret_r, err);
	reconstruction_fini(&r);
	meta_fini(&m);
	trace_close(t);
	return e;
}
