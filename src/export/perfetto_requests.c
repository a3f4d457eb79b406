/*
 * Requests to a server of models in Perfetto's format: tracks of requests and of batches beside the
 * threads of their process, and an arrow from each request to the batch that it ran in.
 */
#include "export/export.h"
#include "export/export_perfetto.h"
#include "export/protobuf.h"
#include "base/sort.h"
#include "model/request_times.h"
#include "trace/activity.h"

/* Slices of a track can't cross: one is free again from `until` on. */
struct track {
	uint64_t until;
	uint32_t process, number;
	bool batches;
};

struct writer {
	struct export *x;
	struct proto *p;
	uint32_t *tracks;
	const struct requests *all;
	ARRAY(struct track) v;
	ARRAY(uint32_t) by_batch; /* requests that ran, by batch */
};

static void put_track(const struct writer *w, const struct track *t)
{
	perfetto_packet(w->p);
	perfetto_track(w->p, t->number, t->process + 1u);
	proto_str(w->p, TRACK_NAME, t->batches ? "batches" : "requests");
	proto_close_all(w->p);
}

static uint32_t track_for(
	struct writer *w, uint32_t process, bool batches, uint64_t from, uint64_t to)
{
	struct track *t = NULL;
	for (size_t i = 0; i < w->v.n && !t; i++)
		if (w->v.v[i].process == process && w->v.v[i].batches == batches &&
			w->v.v[i].until <= from)
			t = &w->v.v[i];
	if (!t) {
		t = array_push(&w->v);
		*t = (struct track){ 0, process, ++*w->tracks, batches };
		put_track(w, t);
	}
	t->until = to;
	return t->number;
}

static void begin_slice(struct proto *p, uint32_t track, uint64_t ns, enum event_type type)
{
	perfetto_packet(p);
	perfetto_event(p, ns, type, track);
}

static void put_number(struct proto *p, const char *name, uint64_t value)
{
	proto_open(p, EVENT_ANNOTATION);
	proto_str(p, ANNOTATION_NAME, name);
	proto_uint(p, ANNOTATION_UINT, value);
	proto_close(p);
}

static void put_text(struct proto *p, const char *name, const char *text)
{
	proto_open(p, EVENT_ANNOTATION);
	proto_str(p, ANNOTATION_NAME, name);
	proto_str(p, ANNOTATION_STRING, text);
	proto_close(p);
}

/* Arrows are numbered by the place of their request. */
static uint64_t arrow(const struct writer *w, const struct request_row *q)
{
	return (uint64_t)(q - w->all->v.v) + 1;
}

static void put_request(struct writer *w, const struct request_row *q)
{
	const uint64_t from = q->q.ns[REQUEST_BEGAN], to = from + request_total(q);
	const uint32_t track = track_for(w, q->process, false, from, to);
	begin_slice(w->p, track, from, TYPE_BEGIN);
	proto_str(w->p, EVENT_NAME, demangled_name(&w->x->names, q->model, "unknown model"));
	put_number(w->p, "request", q->q.id);
	put_text(w->p, "outcome", request_outcome_name(q->q.outcome));
	put_text(w->p, "cause", request_part_name(request_cause(q)));
	for (int i = 0; i < REQUEST_PARTS; i++)
		if (requests_tell(w->all, (enum request_part)i))
			put_number(w->p, request_part_name((enum request_part)i), q->part[i]);
	if (q->batch != BATCH_NONE)
		proto_fixed64(w->p, EVENT_FLOWS, arrow(w, q));
	proto_close_all(w->p);
	begin_slice(w->p, track, to, TYPE_END);
	proto_close_all(w->p);
	proto_write(w->p, w->x->out);
}

static void put_batch(struct writer *w, uint32_t number, size_t first, size_t until)
{
	const struct batch_row *b = &w->all->batches.v[number];
	const uint32_t track = track_for(w, b->at.process, true, b->from, b->to);
	begin_slice(w->p, track, b->from, TYPE_BEGIN);
	proto_str(w->p, EVENT_NAME, demangled_name(&w->x->names, b->model, "unknown model"));
	put_number(w->p, "batch", b->number);
	put_number(w->p, "rows", b->rows);
	for (size_t i = first; i < until; i++)
		proto_fixed64(w->p, EVENT_ENDING_FLOWS, arrow(w, &w->all->v.v[w->by_batch.v[i]]));
	proto_close_all(w->p);
	begin_slice(w->p, track, b->to > b->from ? b->to : b->from, TYPE_END);
	proto_close_all(w->p);
	proto_write(w->p, w->x->out);
}

static int batch_order(const void *one, const void *two, void *context)
{
	const struct requests *all = context;
	const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
	const uint32_t x = all->v.v[a].batch, y = all->v.v[b].batch;
	if (x == y)
		return a < b ? -1 : a > b;
	const uint64_t from = all->batches.v[x].from, other = all->batches.v[y].from;
	return from != other ? (from < other ? -1 : 1) : x < y ? -1 : 1;
}

static void put_batches(struct writer *w)
{
	for (size_t i = 0; i < w->all->v.n; i++)
		if (w->all->v.v[i].batch != BATCH_NONE)
			*array_push(&w->by_batch) = (uint32_t)i;
	SORT_WITH(w->by_batch, batch_order, (void *)w->all);
	for (size_t from = 0, to; from < w->by_batch.n; from = to) {
		const uint32_t batch = w->all->v.v[w->by_batch.v[from]].batch;
		for (to = from;
			to < w->by_batch.n && w->all->v.v[w->by_batch.v[to]].batch == batch;)
			to++;
		put_batch(w, batch, from, to);
	}
}

int perfetto_requests(struct export *x, struct proto *p, uint32_t *tracks)
{
	struct requests all = { 0 };
	struct writer w = { .x = x, .p = p, .tracks = tracks, .all = &all };
	const int e = requests_load(x->trace, x->meta, &x->links, &all);
	for (size_t i = 0; i < all.v.n; i++)
		put_request(&w, &all.v.v[i]);
	put_batches(&w);
	array_free(&w.v, &w.by_batch);
	requests_fini(&all);
	return e;
}
