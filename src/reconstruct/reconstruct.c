/*
 * Plays each process twice. The first pass uses measured times as they are and shows which launches
 * found their stream idle. Their events include the time of launching, which the second pass
 * subtracts.
 */
#include "reconstruct/reconstruct.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/sort.h"
#include "reconstruct/durations.h"
#include "reconstruct/program.h"
#include "trace/activity.h"

#define CORRELATIONS    (1ull << 40) /* those that are given out here lie above */
#define STREAM_UNSEEN   (1u << 16)   /* numbers of streams of which the driver's is not known */
#define SD_SHARE        0.02         /* of what events measured of a launch itself */
#define SD_LEAST        500          /* nanoseconds: the resolution of an event */
#define LEFT_LEAST      500 /* of a duration, when launching is taken off: nothing is shorter */
#define MOVE_MOST_NS    50000
#define MOVE_BLOCKS_NS  20000u /* a copy whose call took longer ran while that did */
#define MOVE_LEAST_GB_S 1u

/* The place of a stream's work, as far as it is known. */
struct place {
	uint32_t device, context, stream, valid;
};

/* The work that a call gives to the device. */
struct piece {
	struct duration_key key;
	const struct measured_call *measured; /* or NULL */
	uint64_t ns, sd_ns;                   /* without what launching took */
	uint64_t event_ns;   /* what an event says, where `ns` is exact; 0: nothing */
	uint32_t graph_step; /* into meta.steps, or META_NONE */
	bool is_known, is_idle;
	uint8_t quality; /* of what was measured: enum duration_quality */
};

struct rebuilder {
	const struct trace *t;
	const struct meta *m;
	const struct gpu_calls *calls;
	const struct measured_calls *measured;
	struct reconstruction *r;
	struct map names;
	uint64_t correlation;

	/* The process at hand. */
	uint32_t process;
	struct process_program p;
	struct piece *pieces; /* by work */
	struct place *places; /* by stream */
	struct place usual;
	struct play_time *times; /* by step */
	struct durations durations;
	struct map templates; /* closest key: into pieces, one that is exact */
	struct graph_nodes nodes;
	struct excess excess;
};

static uint64_t shape_hash(const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
	uint64_t h = shared;
	for (int i = 0; i < 3; i++)
		h = hash_mix(h ^ ((uint64_t)grid[i] << 32 | block[i]));
	return h;
}

static struct duration_key kernel_key(
	uint32_t name, uint64_t function, uint64_t shape, uint64_t args_key)
{
	const uint64_t who = name == META_NONE ? function : name;
	return (struct duration_key){ .level = {
					      MAP_KEY(USE_LAUNCH, who, shape, args_key),
					      MAP_KEY(USE_LAUNCH | 0x100, who, shape),
					      MAP_KEY(USE_LAUNCH | 0x200, who),
				      } };
}

static struct duration_key launch_key(const struct rebuilder *b, const struct gpu_call *c)
{
	const uint32_t name = meta_find_kernel(b->m, c->process, c->what, c->end);
	return kernel_key(name, c->what, shape_hash(c->grid, c->block, c->shared), c->args_key);
}

static struct duration_key node_key(
	const struct rebuilder *b, const struct graph_node *n, uint64_t ticks)
{
	const uint32_t name = meta_find_kernel(b->m, b->process, n->function, ticks);
	return kernel_key(name, n->function, shape_hash(n->grid, n->block, n->shared), 0);
}

static struct duration_key graph_key(const struct gpu_call *c, uint32_t step)
{
	return (struct duration_key){ .level = {
					      MAP_KEY(USE_GRAPH, c->what, step),
					      MAP_KEY(USE_GRAPH | 0x100, c->what),
					      MAP_KEY(USE_GRAPH | 0x100, c->what),
				      } };
}

static struct duration_key move_key(const struct gpu_call *c)
{
	const uint64_t which = (uint64_t)!c->sized << 9 | (uint64_t)c->is_set << 8 | c->direction;
	const struct map_key key = MAP_KEY(USE_MOVE, which, c->bytes);
	return (struct duration_key){ .level = { key, key, key },
		.bytes = !c->sized  ? 0
			 : c->bytes ? c->bytes
				    : 1,
		.line = c->is_set ? DURATION_LINES - 1 : c->direction };
}

static struct duration_key key_of(
	const struct rebuilder *b, const struct gpu_call *c, uint32_t graph_step)
{
	return c->use == USE_LAUNCH  ? launch_key(b, c)
	       : c->use == USE_GRAPH ? graph_key(c, graph_step)
				     : move_key(c);
}

static int ticks_order(const struct measured_call *m, const struct gpu_call *c, uint64_t ticks)
{
	return ORDER(m->process, c->process) ?: ORDER(m->tid, c->tid) ?: ORDER(m->ticks, ticks);
}

static const struct measured_call *measured_find(
	const struct measured_calls *all, const struct gpu_call *c)
{
	const uint64_t tries[] = { c->start, c->outer };
	for (int k = 0; k < 2; k++) {
		const size_t at =
			SEARCH(i, 0, all->v.n, ticks_order(&all->v.v[i], c, tries[k]) < 0);
		if (at < all->v.n && !ticks_order(&all->v.v[at], c, tries[k]))
			return &all->v.v[at];
	}
	return NULL;
}

static const struct gpu_call *call_of(const struct rebuilder *b, size_t work)
{
	return &b->calls->v.v[b->p.work.v[work].call];
}

static struct play_step *step_of(const struct rebuilder *b, size_t work)
{
	return &b->p.play.steps.v[b->p.work.v[work].step];
}

/* How long its call did. */
static uint64_t took(const struct rebuilder *b, size_t work)
{
	const struct play_step *s = step_of(b, work);
	return s->returned_ns - s->called_ns;
}

static bool is_move(const struct rebuilder *b, size_t work)
{
	return call_of(b, work)->use == USE_MOVE;
}

/* Whether the time of its events holds how long the stream waited for the host: as the library saw,
 * or if it did not look, as the calls are played.  A memcpy whose call takes long runs while it
 * does. */
static bool holds_launching(const struct rebuilder *b, size_t work)
{
	const struct measured_call *m = b->pieces[work].measured;
	const bool idle =
		m && m->stream_was ? m->stream_was == GPU_STREAM_IDLE : b->pieces[work].is_idle;
	return idle && !(is_move(b, work) && took(b, work) > MOVE_BLOCKS_NS);
}

static uint64_t lead(const struct rebuilder *b, size_t work)
{
	const struct measured_call *m = b->pieces[work].measured;
	return m->stream_was ? m->waited_ns : took(b, work);
}

/* When the event behind it was recorded; 0: not known. */
static uint64_t behind_recorded(const struct rebuilder *b, size_t work)
{
	const struct measured_call *m = b->pieces[work].measured;
	return m->stream_was ? step_of(b, work)->returned_ns + m->late_ns : 0;
}

/* Streams ran where what was measured of them did; the others where most did. */
static void note_place(struct rebuilder *b, size_t work, const struct measured_call *m)
{
	struct place *on = &b->places[step_of(b, work)->stream];
	if (!on->valid)
		*on = (struct place){ m->device, m->context, m->stream, m->valid };
	if (!b->usual.valid)
		b->usual = *on;
}

static void find_pieces(struct rebuilder *b)
{
	for (size_t i = 0; i < b->p.work.n; i++) {
		const struct gpu_call *c = call_of(b, i);
		struct piece *p = &b->pieces[i];
		p->graph_step = c->use == USE_GRAPH
					? meta_find_graph(b->m, b->process, c->what, c->start)
					: META_NONE;
		p->key = key_of(b, c, p->graph_step);
		p->measured = measured_find(b->measured, c);
		if (!p->measured)
			continue;
		p->ns = p->measured->is_exact ? p->measured->end_ns - p->measured->start_ns
					      : p->measured->event_ns;
		p->quality = p->measured->is_exact ? DURATION_EXACT : DURATION_MOST;
		note_place(b, i, p->measured);
	}
}

static void learn_durations(struct rebuilder *b)
{
	durations_fini(&b->durations);
	b->durations = (struct durations){ 0 };
	for (size_t i = 0; i < b->p.work.n; i++)
		if (b->pieces[i].measured)
			durations_add(&b->durations, &b->pieces[i].key, b->pieces[i].ns,
				b->pieces[i].event_ns, b->pieces[i].quality);
	durations_settle(&b->durations);
}

/* The sum of its kernels' durations, if the graph itself was never measured. */
static struct duration sum_of_nodes(struct rebuilder *b, const struct piece *p, uint64_t ticks)
{
	struct duration all = { .is_known = true };
	double squares = 0;
	for (size_t i = 0; i < b->nodes.v.n; i++) {
		const struct duration_key key = node_key(b, &b->nodes.v.v[i], ticks);
		const struct duration d = durations_get(&b->durations, &key);
		all.ns += d.ns;
		squares += (double)d.sd_ns * (double)d.sd_ns;
		all.is_known &= d.is_known;
	}
	all.sd_ns = (uint64_t)sqrt(squares);
	return b->nodes.v.n ? all : durations_get(&b->durations, &p->key);
}

static void load_nodes(struct rebuilder *b, const struct piece *p)
{
	b->nodes.v.n = 0;
	if (!(p->graph_step == META_NONE))
		graph_nodes_of(b->m, p->graph_step, &b->nodes);
}

/* On an idle stream an event measures how long the host was at it as well: its like know better. */
static bool is_vague(const struct rebuilder *b, size_t i)
{
	const uint8_t quality = b->pieces[i].quality;
	return quality == DURATION_MOST || (quality == DURATION_EVENT && holds_launching(b, i));
}

/* As it was measured itself, if that is closer than what its like took. */
static void take_measured(const struct rebuilder *b, size_t i, struct duration *d)
{
	const struct piece *p = &b->pieces[i];
	const bool is_event = p->quality == DURATION_EVENT;
	const double ns = (double)p->ns - (is_event ? d->event_more_ns : 0);
	const double sd = hypot((double)p->ns * SD_SHARE + SD_LEAST, is_event ? d->event_sd_ns : 0);
	if (d->is_known &&
		(is_vague(b, i) || (d->event_sd_ns > 0 && sd > (double)d->sd_ns && is_event)))
		return;
	d->ns = (uint64_t)fmax(ns, 1);
	d->sd_ns = (uint64_t)sd;
	d->is_known = true;
}

static void set_duration(struct rebuilder *b, size_t i)
{
	struct piece *p = &b->pieces[i];
	const struct gpu_call *c = call_of(b, i);
	struct duration d = durations_get(&b->durations, &p->key);
	if (p->measured) {
		take_measured(b, i, &d);
	} else if (c->use == USE_GRAPH && !d.is_known) {
		load_nodes(b, p);
		d = sum_of_nodes(b, p, c->start);
	}
	p->is_known = d.is_known;
	/* Waits for room are in no call: by so much it may have begun later. */
	p->sd_ns = (uint64_t)hypot((double)d.sd_ns, hypot(d.event_more_ns, d.event_sd_ns));
	struct play_step *s = step_of(b, i);
	s->blocks |= c->use == USE_MOVE && took(b, i) > MOVE_BLOCKS_NS;
	s->dur_ns = d.ns ? d.ns : 1;
	s->dur_sd_ns = d.sd_ns;
	if (p->measured && p->measured->is_exact) {
		s->is_measured = true;
		s->start_ns = p->measured->start_ns;
		s->end_ns = p->measured->end_ns;
	}
}

static void set_durations(struct rebuilder *b)
{
	learn_durations(b);
	for (size_t i = 0; i < b->p.work.n; i++)
		set_duration(b, i);
}

/* Whether what both ways say of one launch may be compared: an event that was recorded late shows
 * how long the host was at it. */
static bool is_both(const struct rebuilder *b, size_t work)
{
	const struct measured_call *m = b->pieces[work].measured;
	return m && m->is_exact && m->has_event && lead(b, work) < SLOW_HOST_NS &&
	       behind_recorded(b, work) <= m->end_ns;
}

static void note_excess(struct rebuilder *b, size_t work)
{
	const struct measured_call *m = b->pieces[work].measured;
	const int64_t more = (int64_t)(m->event_ns - (m->end_ns - m->start_ns));
	const bool idle = holds_launching(b, work);
	excess_note(&b->excess, b->pieces[work].key.level[DURATION_LEVELS - 1], idle,
		idle ? more - (int64_t)lead(b, work) : more);
}

/* The work that was timed both ways shows what an event measures besides it: on an idle stream the
 * call, which comes between them, and something more; on a busy one only that. */
static void learn_excess(struct rebuilder *b)
{
	excess_fini(&b->excess);
	for (size_t i = 0; i < b->p.work.n; i++)
		if (is_both(b, i))
			note_excess(b, i);
	excess_settle(&b->excess);
}

/* No memcpy is slower than this: its event was recorded before the driver was ready. */
static uint64_t most_of_move(const struct gpu_call *c)
{
	return c->sized ? MOVE_MOST_NS + c->bytes / MOVE_LEAST_GB_S : UINT64_MAX;
}

/* The event's time without what it measures besides. */
static uint64_t without_excess(const struct rebuilder *b, size_t i)
{
	const struct piece *p = &b->pieces[i];
	const uint64_t event_ns = p->measured->event_ns;
	const bool idle = holds_launching(b, i);
	const int64_t off = excess_of(&b->excess, p->key.level[DURATION_LEVELS - 1], idle) +
			    (idle ? (int64_t)lead(b, i) : 0);
	const int64_t ns = (int64_t)event_ns - off;
	const int64_t least = event_ns < LEFT_LEAST ? (int64_t)event_ns : LEFT_LEAST;
	const uint64_t left = (uint64_t)MAX(ns, least);
	const uint64_t most = is_move(b, i) ? most_of_move(call_of(b, i)) : UINT64_MAX;
	return MIN(left, most);
}

/* Takes it off.  If the host was late with the event behind, it took no longer than that says.
 */
static void correct(struct rebuilder *b, size_t i)
{
	struct piece *p = &b->pieces[i];
	if (is_both(b, i))
		p->event_ns = without_excess(b, i);
	if (!p->measured || p->measured->is_exact)
		return;
	const struct play_time *time = &b->times[b->p.work.v[i].step];
	const bool late = time->end_ns < behind_recorded(b, i);
	p->ns = without_excess(b, i);
	p->quality = late || (holds_launching(b, i) && lead(b, i) > SLOW_HOST_NS) ? DURATION_MOST
										  : DURATION_EVENT;
}

static void correct_events(struct rebuilder *b)
{
	for (size_t i = 0; i < b->p.work.n; i++)
		b->pieces[i].is_idle = b->times[b->p.work.v[i].step].is_idle;
	learn_excess(b);
	for (size_t i = 0; i < b->p.work.n; i++)
		correct(b, i);
}

/* From 1 on. */
static uint32_t name_number(struct rebuilder *b, uint32_t name, const char *text)
{
	const struct map_key key =
		name == META_NONE ? MAP_KEY(1, (uintptr_t)text) : MAP_KEY(0, name);
	const uint32_t i = map_number(&b->names, key);
	if (i != MAP_NONE && i == b->r->names.n)
		*array_push(&b->r->names) = (struct rebuilt_name){ name, text };
	return i == MAP_NONE ? 0 : i + 1;
}

static const char *move_name(const struct gpu_call *c)
{
	static const char *const names[COPY_DIRECTIONS] = { "Memcpy", "Memcpy HtoD", "Memcpy DtoH",
		"Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
		"Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP" };
	return c->is_set ? "Memset" : names[c->direction < COPY_DIRECTIONS ? c->direction : 0];
}

static struct gpu_activity at_place(const struct rebuilder *b, size_t work)
{
	const struct play_step *s = step_of(b, work);
	struct place on = b->places[s->stream];
	if (!on.valid) {
		on = b->usual;
		on.stream = STREAM_UNSEEN + s->stream;
		on.valid |= GPU_HAS_STREAM;
	}
	return (struct gpu_activity){ .device = on.device,
		.context = on.context,
		.stream = on.stream,
		.correlation = b->correlation,
		.valid = on.valid | GPU_HAS_CORRELATION | GPU_RECONSTRUCTED };
}

static uint32_t sd_of(uint64_t sd_ns)
{
	return sd_ns < UINT32_MAX ? (uint32_t)sd_ns : UINT32_MAX;
}

static void put_named(struct rebuilder *b, const struct gpu_activity *w, bool is_named)
{
	expect(w->end_ns >= w->start_ns, "what is reconstructed ends after it began");
	*array_push(&b->r->activities) = (struct rebuilt){ *w, b->process, is_named };
}

static void put(struct rebuilder *b, const struct gpu_activity *w)
{
	put_named(b, w, false);
}

static void put_kernel(struct rebuilder *b, struct gpu_activity w, uint64_t function,
	const uint32_t grid[3], const uint32_t block[3], uint32_t shared, uint64_t ticks)
{
	const uint32_t name = meta_find_kernel(b->m, b->process, function, ticks);
	w.kind = GPU_KERNEL;
	w.name = name_number(b, name, name == META_NONE ? "(no name)" : NULL);
	w.valid |= GPU_HAS_SHAPE;
	w.shared_dynamic = shared;
	memcpy(w.grid, grid, sizeof w.grid);
	memcpy(w.block, block, sizeof w.block);
	put(b, &w);
}

/* How long a node takes by itself; the nodes of which nothing is known share what the others leave.
 */
static double node_ns(const struct rebuilder *b, size_t i, uint64_t ticks, double unknown)
{
	const struct duration_key key = node_key(b, &b->nodes.v.v[i], ticks);
	const struct duration d = durations_get(&b->durations, &key);
	return d.is_known ? (double)d.ns : unknown;
}

/* Nodes one behind the other, with equal pauses between them, or all shortened to fit. */
struct layout {
	double unknown; /* time of a node of which nothing is known */
	double scale, pause;
};

static struct layout lay_out(const struct rebuilder *b, uint64_t ticks, double all)
{
	double known = 0, unknown = 0;
	for (size_t i = 0; i < b->nodes.v.n; i++) {
		const double ns = node_ns(b, i, ticks, -1);
		known += MAX(ns, 0);
		unknown += ns < 0;
	}
	const double n = (double)b->nodes.v.n, left = all - known;
	if (unknown > 0 && left > 0)
		return (struct layout){ left / unknown, 1, 0 };
	if (left >= 0)
		return (struct layout){ 0, 1, n > 1 ? left / (n - 1) : 0 };
	const double sum = known + unknown * known / n;
	return (struct layout){ known / n, all / sum, 0 };
}

static void put_nodes(struct rebuilder *b, struct gpu_activity w, const struct gpu_call *c)
{
	const struct layout l = lay_out(b, c->start, (double)(w.end_ns - w.start_ns));
	const double from = (double)w.start_ns;
	const uint64_t end = w.end_ns;
	double at = 0;
	for (size_t i = 0; i < b->nodes.v.n; i++) {
		const struct graph_node *n = &b->nodes.v.v[i];
		w.start_ns = (uint64_t)(from + at);
		at += node_ns(b, i, c->start, l.unknown) * l.scale;
		w.end_ns = (uint64_t)(from + at);
		w.end_ns = MIN(w.end_ns, end);
		w.start_ns = MIN(w.start_ns, w.end_ns);
		at += l.pause;
		w.graph_node = n->node;
		w.graph = (uint32_t)c->what;
		w.valid |= GPU_HAS_GRAPH;
		put_kernel(b, w, n->function, n->grid, n->block, n->shared, c->start);
	}
}

static void put_graph(struct rebuilder *b, struct gpu_activity w, size_t work)
{
	load_nodes(b, &b->pieces[work]);
	if (b->nodes.v.n) {
		put_nodes(b, w, call_of(b, work));
		return;
	}
	w.kind = GPU_GRAPH;
	w.name = name_number(b, META_NONE, "graph");
	put(b, &w);
}

static void put_move(struct rebuilder *b, struct gpu_activity w, const struct gpu_call *c)
{
	w.kind = c->is_set ? GPU_MEMSET : GPU_MEMCPY;
	w.name = name_number(b, META_NONE, move_name(c));
	w.bytes = c->bytes;
	w.what = c->direction;
	w.valid |= (c->sized ? GPU_HAS_BYTES : 0) | (c->direction ? GPU_HAS_WHAT : 0);
	put(b, &w);
}

static void put_link(struct rebuilder *b, const struct gpu_call *c)
{
	*array_push(&b->r->links) = (struct rebuilt_link){ .link = { .correlation = b->correlation,
								   .ticks = c->start,
								   .dur = c->end - c->start,
								   .tid = c->tid,
								   .fn = c->fn },
		.process = b->process };
}

static void note_templates(struct rebuilder *b)
{
	for (size_t i = 0; i < b->p.work.n; i++) {
		const struct measured_call *m = b->pieces[i].measured;
		if (m && m->is_exact && m->count)
			*map_get(&b->templates, b->pieces[i].key.level[0]) = (uint32_t)i;
	}
}

/* The measured call of the piece itself, else of one that takes equally long; NULL: CUPTI saw none.
 */
static const struct measured_call *template_of(const struct rebuilder *b, size_t work)
{
	const struct measured_call *own = b->pieces[work].measured;
	if (own && own->is_exact && own->count)
		return own;
	const uint32_t i = map_find(&b->templates, b->pieces[work].key.level[0]);
	return i == MAP_NONE ? NULL : b->pieces[i].measured;
}

static uint64_t moved(uint64_t ns, uint64_t from, double scale, uint64_t to)
{
	return to + (uint64_t)((double)(ns - from) * scale);
}

/* As it was seen, in the time that is `w`'s; where it was seen there, nothing is reconstructed. */
static void put_like(
	struct rebuilder *b, const struct gpu_activity *w, const struct measured_call *m)
{
	const uint64_t was = m->end_ns - m->start_ns, is = w->end_ns - w->start_ns;
	const bool same = m->start_ns == w->start_ns && m->end_ns == w->end_ns;
	const double scale = was ? (double)is / (double)was : 1;
	for (uint32_t i = 0; i < m->count; i++) {
		struct gpu_activity a = b->measured->activities.v[m->first + i].activity;
		a.start_ns = moved(a.start_ns, m->start_ns, scale, w->start_ns);
		a.end_ns = moved(a.end_ns, m->start_ns, scale, w->start_ns);
		a.end_ns = a.end_ns < w->end_ns ? a.end_ns : w->end_ns;
		a.start_ns = MIN(a.start_ns, a.end_ns);
		a.correlation = w->correlation;
		a.device = w->device;
		a.context = w->context;
		a.stream = m->count == 1 ? w->stream : a.stream;
		a.valid |= w->valid & ~(same ? GPU_RECONSTRUCTED : 0u);
		a.uncertainty_ns = same ? 0 : w->uncertainty_ns;
		put_named(b, &a, true);
	}
}

static void put_work(struct rebuilder *b, size_t i)
{
	const struct gpu_call *c = call_of(b, i);
	const struct play_time *time = &b->times[b->p.work.v[i].step];
	const struct piece *p = &b->pieces[i];
	b->correlation++;
	b->r->measured += p->measured != NULL;
	b->r->like += !p->measured && p->is_known;
	b->r->guessed += !p->is_known;
	b->r->bounded += time->is_bounded;
	struct gpu_activity w = at_place(b, i);
	w.start_ns = time->start_ns;
	w.end_ns = time->end_ns;
	w.uncertainty_ns = sd_of((uint64_t)hypot((double)time->sd_ns, (double)p->sd_ns));
	put_link(b, c);
	const struct measured_call *like = template_of(b, i);
	if (like) {
		put_like(b, &w, like);
		return;
	}
	if (c->use == USE_LAUNCH) {
		put_kernel(b, w, c->what, c->grid, c->block, c->shared, c->end);
		return;
	}
	if (c->use == USE_GRAPH) {
		put_graph(b, w, i);
		return;
	}
	put_move(b, w, c);
}

static void play_twice(struct rebuilder *b)
{
	set_durations(b);
	play(&b->p.play, b->times);
	correct_events(b);
	b->p.play.delays = play_learn(&b->p.play, b->times);
	set_durations(b);
	play(&b->p.play, b->times);
}

static void rebuild(struct rebuilder *b)
{
	b->pieces = xcalloc(b->p.work.n + 1, sizeof *b->pieces);
	b->places = xcalloc(b->p.streams.n + 1, sizeof *b->places);
	b->times = xcalloc(b->p.play.steps.n + 1, sizeof *b->times);
	b->usual = (struct place){ 0 };
	find_pieces(b);
	if (b->usual.valid)
		play_twice(b);
	note_templates(b);
	for (size_t i = 0; i < b->p.work.n && b->usual.valid; i++)
		put_work(b, i);
	free_all(b->pieces, b->places, b->times);
	map_fini(&b->templates);
	b->templates = (struct map){ 0 };
	durations_fini(&b->durations);
	excess_fini(&b->excess);
	b->durations = (struct durations){ 0 };
}

void reconstruct(const struct trace *t, const struct meta *m, const struct gpu_calls *calls,
	const struct measured_calls *measured, struct reconstruction *ret_r)
{
	struct rebuilder b = { .t = t,
		.m = m,
		.calls = calls,
		.measured = measured,
		.r = ret_r,
		.correlation = CORRELATIONS };
	*ret_r = (struct reconstruction){ 0 };
	for (uint32_t i = 0; i < t->processes.n; i++) {
		b.process = i;
		program_of(t, calls, i, &b.p);
		rebuild(&b);
		process_program_fini(&b.p);
	}
	map_fini(&b.names);
	array_free(&b.nodes.v);
}

int reconstruct_trace(const struct trace *t, const struct meta *m, struct reconstruction *ret_r)
{
	struct gpu_calls calls;
	struct measured_calls measured = { 0 };
	int e = gpu_calls_load(t, &calls);
	if (!e)
		e = measured_calls_load(t, m, &measured);
	if (!e)
		reconstruct(t, m, &calls, &measured, ret_r);
	array_free(&calls.v);
	measured_calls_fini(&measured);
	return e;
}

void reconstruction_fini(struct reconstruction *r)
{
	array_free(&r->activities, &r->links, &r->names);
}
