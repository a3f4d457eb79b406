/*
 * Finds the dependencies on devices for the critical path. These are the order in streams, events
 * between streams, host functions, and the activity whose end lets a waiting call return.
 *
 * It goes through calls in their order with the last work of each stream. Activities name a stream
 * by number and calls by handle, and launches connect the two. Imported traces have no handles.
 * There the profiler's records of waits name the stream, or the times show the dependency.
 */
#include "path/causes.h"

#include "base/expect.h"
#include "base/radix.h"
#include "base/search.h"

/* The default streams: what they wait for is more than what they were given. */
#define DEFAULT_STREAMS 2u

struct stream {
	uint32_t last;          /* activity that it was given last, or NONE */
	uint32_t awaits;        /* what the next one waits for, or NONE */
	uint32_t trigger;       /* mark of the host function that it was given since, or NONE … */
	uint32_t trigger_owner; /* … of this lane */
};

struct launched {
	uint64_t start_ns;
	uint32_t call, first, last; /* activities: the first to start, the last to end */
};

struct sweep {
	struct host *h;
	ARRAY(struct launched) calls; /* by start */
	struct stream *streams;
	uint32_t *last_stream; /* by thread: of its last launch */
	struct map handles;    /* (process, handle) to a stream's number */
	struct map events;     /* (process, event) to an activity */
	struct map functions;  /* lane to that of its host functions */
};

static void index_activities(struct host *h)
{
	const struct timeline *t = h->in->t;
	const size_t n = t->activities.n;
	uint32_t *last = xmalloc((t->stream_count + 1) * sizeof *last);
	h->ended = xmalloc(n * sizeof *h->ended);
	h->previous = xmalloc(n * sizeof *h->previous);
	h->awaits = xmalloc(n * sizeof *h->awaits);
	h->behind_host = xcalloc(n, sizeof *h->behind_host);
	for (size_t i = 0; i <= t->stream_count; i++)
		last[i] = NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct activity *p = &t->activities.v[i];
		const bool known = p->stream != NO_STREAM;
		h->ended[i] = (struct ended){ p->end_ns, i };
		h->previous[i] = known ? last[p->stream] : NONE;
		h->awaits[i] = NONE;
		last[known ? p->stream : t->stream_count] = i;
	}
	free(last);
	radix_sort(h->ended, n, sizeof *h->ended, offsetof(struct ended, end_ns),
		sizeof h->ended->end_ns);
}

/* The activity that ended last, at `ns` at the latest, and began before; or NONE. */
static uint32_t ended_by(const struct host *h, uint64_t ns)
{
	const struct timeline *t = h->in->t;
	size_t low = SEARCH(i, 0, t->activities.n, h->ended[i].end_ns <= ns);
	while (low && t->activities.v[h->ended[low - 1].activity].start_ns >= ns)
		low--; /* of no length, at that very moment */
	expect(!low || h->ended[low - 1].activity < t->activities.n,
		"the activity found is one of all");
	return low ? h->ended[low - 1].activity : NONE;
}

/* The activity that ended just before, if neither launch nor stream nor event says why it began so
 * late. */
static uint32_t behind_any(const struct host *h, uint32_t activity, uint64_t ready)
{
	const struct activity *v = h->in->t->activities.v, *p = &v[activity];
	const uint32_t other = ended_by(h, p->start_ns);
	if (ready + HANDOVER_NS >= p->start_ns || other == NONE)
		return NONE;
	const bool same_call = p->call != NO_CALL && v[other].call == p->call;
	const bool soon = v[other].end_ns + HANDOVER_NS >= p->start_ns;
	return v[other].end_ns > ready && (soon || same_call) ? other : NONE;
}

uint32_t host_behind(const struct host *h, uint32_t activity)
{
	const struct activity *v = h->in->t->activities.v, *p = &v[activity];
	const uint64_t returned = p->call == NO_CALL ? 0 : h->in->t->calls.v[p->call].end_ns;
	const uint32_t both[] = { h->previous[activity], h->awaits[activity] };
	uint32_t before = NONE;
	uint64_t ready = 0;
	for (int i = 0; i < 2; i++) {
		if (both[i] == NONE || v[both[i]].end_ns < ready)
			continue;
		before = both[i];
		ready = v[before].end_ns;
	}
	if (h->behind_host[activity])
		return before;
	const uint32_t other = behind_any(h, activity, MAX(ready, returned));
	return other == NONE ? before : other;
}

/* Several streams may have ended something just before: that which the thread itself launched. */
static uint32_t own_ended_by(const struct host *h, const struct lane *lane, const struct mark *m)
{
	const struct timeline *t = h->in->t;
	size_t low = SEARCH(i, 0, t->activities.n, h->ended[i].end_ns <= m->end_ns);
	for (; low && h->ended[low - 1].end_ns + LONG_CALL_NS >= m->end_ns; low--) {
		const struct activity *p = &t->activities.v[h->ended[low - 1].activity];
		if (p->call != NO_CALL && p->start_ns < m->end_ns &&
			&h->lanes.v[h->lane_of[t->calls.v[p->call].thread]] == lane)
			return h->ended[low - 1].activity;
	}
	return ended_by(h, m->end_ns);
}

static void find_waited(const struct host *h, const struct lane *lane, struct mark *m)
{
	const struct activity *v = h->in->t->activities.v;
	if (m->kind < MARK_MAY_WAIT || m->activity != NONE || m->host_function)
		return;
	const uint32_t found = own_ended_by(h, lane, m);
	const bool must = m->kind == MARK_WAIT;
	if (found == NONE)
		return;
	if (must || (v[found].end_ns > m->start_ns && v[found].end_ns + LONG_CALL_NS >= m->end_ns &&
			    m->end_ns - m->start_ns >= LONG_CALL_NS))
		m->activity = found;
}

uint32_t host_waited(const struct host *h, const struct mark *m)
{
	if (m->activity == NONE)
		return NONE;
	const uint64_t end = h->in->t->activities.v[m->activity].end_ns;
	return end > m->start_ns || m->host_function ? m->activity : NONE;
}

/* The outermost call in which the thread was then, if it waits. */
static struct mark *wait_at(struct host *h, uint32_t thread, uint64_t ns)
{
	const uint32_t lane = h->lane_of[thread], i = host_mark_at(h, lane, ns);
	struct mark *m = i == NONE ? NULL : &h->lanes.v[lane].marks.v[i];
	return m && m->kind >= MARK_MAY_WAIT && m->end_ns >= ns ? m : NULL;
}

/* The host functions that a lane launches are a lane. */
static struct lane *functions_of(struct sweep *s, uint32_t owner)
{
	uint32_t *at = map_get(&s->functions, MAP_KEY(owner));
	if (*at == MAP_NONE) {
		struct lane *new = array_push(&s->h->lanes);
		*new = (struct lane){ .process = s->h->lanes.v[owner].process, .owner = owner };
		*at = (uint32_t)(s->h->lanes.n - 1);
	}
	return &s->h->lanes.v[*at];
}

/* It begins when what is in front of it has ended, or when the call that gave it has returned. */
static void give_function(struct sweep *s, struct stream *to, const struct order *o)
{
	const uint32_t owner = s->h->lane_of[o->thread],
		       call = host_mark_at(s->h, owner, o->start_ns);
	const uint64_t given =
		call == NONE ? o->start_ns : s->h->lanes.v[owner].marks.v[call].end_ns;
	const uint64_t end = to->last == NONE ? 0 : s->h->in->t->activities.v[to->last].end_ns;
	struct lane *lane = functions_of(s, owner);
	struct mark *new = array_push(&lane->marks);
	*new = (struct mark){ .start_ns = MAX(end, given),
		.activity = end > given ? to->last : NONE,
		.kind = MARK_WAIT,
		.host_function = true };
	new->end_ns = new->start_ns;
	to->trigger = (uint32_t)(lane->marks.n - 1);
	to->trigger_owner = owner;
}

/* The next activity of the stream had to wait for it: that says when it had ended, if its launch
 * does not say why it began so late. */
static void end_function(struct sweep *s, struct stream *in, const struct launched *next)
{
	const struct timeline *t = s->h->in->t;
	struct lane *lane = functions_of(s, in->trigger_owner);
	const uint64_t began = t->activities.v[next->first].start_ns;
	s->h->behind_host[next->first] = true;
	if (lane && in->trigger < lane->marks.n &&
		began > t->calls.v[next->call].end_ns + HANDOVER_NS / 2 &&
		began > lane->marks.v[in->trigger].end_ns)
		lane->marks.v[in->trigger].end_ns = began;
	in->trigger = NONE;
}

static struct stream *stream_of(struct sweep *s, const struct order *o, uint32_t process)
{
	const struct timeline *t = s->h->in->t;
	uint32_t number =
		t->stream_count == 1 ? 0 : map_find(&s->handles, MAP_KEY(process, o->stream));
	if (o->stream == UINT64_MAX && o->kind == ORDER_HOST_FUNCTION)
		number = s->last_stream[o->thread];
	if (o->number != NO_STREAM)
		number = o->number;
	if (number == MAP_NONE || !expect(number < t->stream_count, "a stream is one of all"))
		return NULL;
	return &s->streams[number];
}

static void record_event(struct sweep *s, const struct order *o, uint32_t process)
{
	const struct stream *from = stream_of(s, o, process);
	uint32_t *event = map_get(&s->events, MAP_KEY(process, o->event));
	*event = from ? from->last : NONE;
}

static void wait_for_event(struct sweep *s, const struct order *o, uint32_t process)
{
	const struct activity *v = s->h->in->t->activities.v;
	struct stream *to = stream_of(s, o, process);
	const uint32_t event = map_find(&s->events, MAP_KEY(process, o->event));
	if (!to || event == NONE)
		return;
	if (to->awaits == NONE || v[to->awaits].end_ns < v[event].end_ns)
		to->awaits = event;
}

/* The stream whose work ended last, of all threads. Work that ended after the call's return is of
 * another context. */
static const struct stream *last_stream(const struct sweep *s, uint64_t returned_ns)
{
	const struct timeline *t = s->h->in->t;
	const struct stream *found = NULL;
	uint64_t latest = 0;
	for (size_t i = 0; i < t->stream_count; i++) {
		const uint32_t last = s->streams[i].last;
		const uint64_t end = last == NONE ? 0 : t->activities.v[last].end_ns;
		if (end <= latest || end > returned_ns)
			continue;
		latest = end;
		found = &s->streams[i];
	}
	return found;
}

static void synchronize(struct sweep *s, const struct order *o, uint32_t process)
{
	struct mark *m = wait_at(s->h, o->thread, o->start_ns);
	if (!m)
		return;
	const struct stream *with =
		o->kind == ORDER_SYNC_ALL ? last_stream(s, m->end_ns) : stream_of(s, o, process);
	const bool known = o->kind == ORDER_SYNC_ALL || o->stream > DEFAULT_STREAMS;
	if (o->kind == ORDER_SYNC_EVENT) {
		const uint32_t event = map_find(&s->events, MAP_KEY(process, o->event));
		m->activity = event == NONE ? m->activity : event;
	} else if (known && with && with->last != NONE) {
		m->activity = with->last;
		m->host_function = with->trigger != NONE;
	}
}

static void take_order(struct sweep *s, const struct order *o)
{
	const uint32_t process = s->h->lanes.v[s->h->lane_of[o->thread]].process;
	struct stream *in;
	switch ((enum order_kind)o->kind) {
	case ORDER_RECORD:
		if (!(o->event == UINT64_MAX))
			record_event(s, o, process);
		return;
	case ORDER_WAIT_EVENT:
		wait_for_event(s, o, process);
		return;
	case ORDER_HOST_FUNCTION:
		in = stream_of(s, o, process);
		if (in)
			give_function(s, in, o);
		return;
	case ORDER_SYNC_STREAM:
	case ORDER_SYNC_EVENT:
	case ORDER_SYNC_ALL:
		synchronize(s, o, process);
		return;
	case ORDER_LAUNCH:
		return; /* only where an activity has such a call */
	}
}

static void take_launch(struct sweep *s, const struct launched *c)
{
	const struct timeline *t = s->h->in->t;
	const struct caller *call = &t->calls.v[c->call];
	const uint32_t number = t->activities.v[c->first].stream;
	struct mark *waits = wait_at(s->h, call->thread, call->start_ns);
	/* A copy of memory that is not pinned goes on while the host fills buffers for it. */
	if (waits && (waits->kind == MARK_WAIT ||
			     t->activities.v[c->last].start_ns + LONG_CALL_NS <= waits->end_ns))
		waits->activity = c->last;
	if (number == NO_STREAM)
		return;
	struct stream *to = &s->streams[number];
	s->last_stream[call->thread] = number;
	s->h->awaits[c->first] = to->awaits;
	to->awaits = NONE;
	if (to->trigger != NONE)
		end_function(s, to, c);
	to->last = c->last;
}

/* The handle of the call with which an activity was launched says the stream's number. */
static void learn_handle(struct sweep *s, const struct launched *c, const struct order *o)
{
	const struct timeline *t = s->h->in->t;
	const uint32_t number = t->activities.v[c->first].stream;
	if (o->thread != t->calls.v[c->call].thread || o->stream == UINT64_MAX ||
		number == NO_STREAM)
		return;
	uint32_t *to = map_get(
		&s->handles, MAP_KEY(s->h->lanes.v[s->h->lane_of[o->thread]].process, o->stream));
	*to = number;
}

static void take_all(struct sweep *s)
{
	size_t c = 0;
	array_each(const struct order, o, s->h->orders) {
		for (; c < s->calls.n && s->calls.v[c].start_ns < o->start_ns; c++)
			take_launch(s, &s->calls.v[c]);
		for (size_t k = c; o->kind == ORDER_LAUNCH && k < s->calls.n &&
				   s->calls.v[k].start_ns == o->start_ns;
			k++)
			learn_handle(s, &s->calls.v[k], o);
		take_order(s, o);
	}
	for (; c < s->calls.n; c++)
		take_launch(s, &s->calls.v[c]);
}

/* How often a time below HANDOVER_NS came, in steps of STEP_NS. */
#define STEP_NS 16u
#define STEPS   (HANDOVER_NS / STEP_NS + 1)
struct spans {
	uint32_t counts[STEPS];
	uint64_t sum, n;
};

static void add_span(struct spans *s, uint64_t from, uint64_t to)
{
	if (from > to || to - from > HANDOVER_NS)
		return;
	s->counts[(to - from) / STEP_NS]++;
	s->sum += to - from;
	s->n++;
}

/* Which step has the n-th of the spans. */
static uint64_t step_of(const struct spans *s, uint64_t n)
{
	uint64_t below = 0, step = 0;
	for (; step < STEPS - 1 && below + s->counts[step] < n; step++)
		below += s->counts[step];
	return step;
}

/* For an activity that waited for one other: the end of the one before, where it had long been
 * launched, or the launch, where the one before had long ended. */
static void add_spans(
	const struct host *h, uint32_t activity, struct spans *handovers, struct spans *launches)
{
	const struct timeline *t = h->in->t;
	const struct activity *p = &t->activities.v[activity];
	const uint32_t previous = h->previous[activity];
	if (previous == NONE || p->call == NO_CALL || h->behind_host[activity] ||
		h->awaits[activity] != NONE)
		return;
	const uint64_t ready = t->activities.v[previous].end_ns;
	const uint64_t returned = t->calls.v[p->call].end_ns;
	if (returned + HANDOVER_NS <= ready)
		add_span(handovers, ready, p->start_ns);
	else if (ready + HANDOVER_NS <= returned)
		add_span(launches, returned, p->start_ns);
}

/* The longest is a little more than what came, for few have not shown it. */
static void find_handover(struct host *h)
{
	struct spans handovers = { 0 }, launches = { 0 };
	for (uint32_t i = 0; i < h->in->t->activities.n; i++)
		add_spans(h, i, &handovers, &launches);
	const uint64_t n = handovers.n, few = launches.n / 200;
	h->handover_ns = n ? handovers.sum / n : HANDOVER_USUAL_NS;
	h->handover_least_ns = step_of(&handovers, n / 200 + 1) * STEP_NS;
	h->handover_most_ns = h->handover_ns * 3 / 2;
	const uint64_t most =
		(step_of(&handovers, n - n / 200) + 1) * STEP_NS + h->handover_ns / 32;
	if (n && most < h->handover_most_ns)
		h->handover_most_ns = most;
	h->launch_least_ns = step_of(&launches, few + 1) * STEP_NS;
	h->launch_most_ns = launches.n ? (step_of(&launches, launches.n - few) + 1) * STEP_NS : 0;
}

/* Work behind a host function began that much later than it ended. */
static void take_handovers(struct host *h)
{
	array_each(struct lane, lane, h->lanes) {
		for (size_t k = 0; lane->owner != NONE && k < lane->marks.n; k++) {
			struct mark *m = &lane->marks.v[k];
			const uint64_t took = m->end_ns - m->start_ns;
			m->end_ns -= took < h->handover_ns ? took : h->handover_ns;
		}
	}
}

static void list_calls(struct sweep *s)
{
	const struct timeline *t = s->h->in->t;
	uint32_t *at = xmalloc((t->calls.n + 1) * sizeof *at);
	array_reserve(&s->calls, t->calls.n);
	for (size_t i = 0; i < t->calls.n; i++)
		at[i] = NONE;
	for (uint32_t i = 0; i < t->activities.n; i++) {
		const struct activity *p = &t->activities.v[i];
		if (p->call == NO_CALL)
			continue;
		if (at[p->call] == NONE) {
			at[p->call] = (uint32_t)s->calls.n;
			s->calls.v[s->calls.n++] =
				(struct launched){ .start_ns = t->calls.v[p->call].start_ns,
					.call = p->call,
					.first = i,
					.last = i };
		}
		struct launched *c = &s->calls.v[at[p->call]];
		if (p->end_ns > t->activities.v[c->last].end_ns)
			c->last = i;
	}
	free(at);
	RADIX_SORT(s->calls, start_ns);
}

static void prepare(struct sweep *s)
{
	const struct path_input *in = s->h->in;
	s->streams = xcalloc(in->t->stream_count + 1, sizeof *s->streams);
	s->last_stream = xmalloc((in->thread_count + 1) * sizeof *s->last_stream);
	for (size_t i = 0; i < in->t->stream_count; i++)
		s->streams[i] = (struct stream){ NONE, NONE, NONE, NONE };
	for (size_t i = 0; i < in->thread_count; i++)
		s->last_stream[i] = MAP_NONE;
	list_calls(s);
}

void host_order(struct host *h)
{
	struct sweep s = { .h = h };
	index_activities(h);
	prepare(&s);
	RADIX_SORT(h->orders, start_ns);
	take_all(&s);
	find_handover(h);
	take_handovers(h);
	array_each(struct lane, lane, h->lanes)
		for (size_t k = 0; k < lane->marks.n; k++)
			find_waited(h, lane, &lane->marks.v[k]);
	for (size_t i = 0; i < s.functions.size; i++)
		if (s.functions.slots[i].taken)
			RADIX_SORT(h->lanes.v[s.functions.slots[i].value].marks, start_ns);
	array_free(&s.calls);
	free(s.streams);
	free(s.last_stream);
	map_fini(&s.handles, &s.events, &s.functions);
}
