/* See sched.h: requests of a program, and what a call does between the gate and the driver. */
#include "hook/sched/sched.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/check.h"
#include "hook/core/call.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/process.h"
#include "hook/sched/cap.h"
#include "hook/sched/costs.h"
#include "hook/sched/hold.h"
#include "hook/sched/marks.h"
#include "hook/sched/member.h"
#include "hook/sched/requests.h"
#include "hook/sched/streams.h"
#include "hook/sched/wait.h"

#define NOT_INITIALIZED 3 /* CUDA_ERROR_NOT_INITIALIZED */
#define QUANTUM_LEAST   20000u
#define QUANTUM_MOST    100000u
#define QUANTUM_HELD    500000u /* behind holds nobody waits for a mark */
#define BUDGET_MARKS    16u /* quanta of a budget: a mark costs the device a microsecond or two */
#define ALONE_MARKS     16u /* quanta of what may be in flight alone */
#define REPEATS_NS      100000u /* predicted, of launches that are counted with the next one */
#define REPEATS         64u

_Atomic uint32_t sched_generation = 1;

/* The facts that the next launch of this thread needs if it goes where the last one went.
 * generation: of sched_generation; 0: there was none.  A signal's handler may launch while a thread
 * writes it: then generation is 0, and the handler writes nothing. */
static __thread struct last {
	uint32_t generation, sms;
	bool is_being_written;
	bool per_thread;
	const void *stream;
	struct stream_work *work;
	struct share_slot *slot;
	const struct share_device *device;
	const struct share_file *file;
	/* Best effort that is alone: so often it may be launched again, the next that differs
	 * counts those. */
	const void *what;
	uint64_t blocks, took_ns;
	uint32_t repeats, given; /* left, and at the begin */
} last __attribute__((tls_model("initial-exec")));

/* Others are to see how many there are. */
static void count_launch(struct share_slot *s)
{
	add_relaxed(&s->counts.launches, 1);
}

/* The same kernel once more, while nobody is waited for. */
static bool repeats(const struct launch_shape *s)
{
	struct last *l = &last;
	if (!l->repeats || l->what != s->what || l->blocks != launch_blocks(s) ||
		!rule_is_alone(l->slot, l->device))
		return false;
	l->repeats--;
	return true;
}

/* Most launches: inside of a request that has begun, on the same stream as before, no wider than
 * others were, with nobody to wait for.  They are counted, and that is all. */
static bool only_counts(struct gated *g, const struct launch_shape *s)
{
	const struct last *l = &last;
	const uint64_t blocks = launch_blocks(s);
	if (l->generation != load_relaxed(&sched_generation) || l->stream != s->stream ||
		l->per_thread != s->per_thread || load_relaxed(&hook_hot.captures) > 0)
		return false;
	const struct share_work *w = &l->slot->work;
	if (!load_relaxed(&w->inside) ||
		(blocks > load_relaxed(&w->widest) && load_relaxed(&w->widest) < l->sms) ||
		(!rule_is_free(l->slot, l->file) && !repeats(s)))
		return false;
	g->work = l->work;
	streams_count(l->work);
	if (s->what)
		count_launch(l->slot);
	return true;
}

/* The activity that others see: weir sched may change the class at any time. */
static bool is_active(const struct member *m)
{
	const struct share_work *w = &m->slot->work;
	return atomic_load_explicit(&m->slot->grant.class, memory_order_seq_cst) == CLASS_LATENCY &&
	       (atomic_load_explicit(&w->inside, memory_order_seq_cst) ||
		       share_lingers_until(w) > monotonic_ns());
}

/* Each thread that goes in or out says so. The last word of several at once holds. */
static void show_inside(const struct member *m)
{
	bool seen;
	do {
		seen = is_active(m);
		if (seen)
			share_bit_set(m->device->active, m->index);
		else if (share_bit(m->device->active, m->index))
			share_bit_clear(m->device->active, m->index);
	} while (is_active(m) != seen);
}

/* Sum of best effort's submitted work on the device; 0: some of it is not done. */
static uint64_t quiet(const struct member *m)
{
	uint64_t sum = 1;
	if (load_relaxed(&m->file->arbiter.open))
		return 0;
	const struct share_device *d = m->device;
	each_bit(i, w, load_relaxed(&d->members[w]) & ~load_relaxed(&d->present[w])) {
		const struct share_slot *s = &m->file->slots[i];
		const uint64_t submitted = load_relaxed(&s->work.submitted_ns);
		if (load_relaxed(&s->grant.mode) == MODE_OPEN ||
			load_relaxed(&s->work.retired_ns) != submitted)
			return 0;
		sum += submitted;
	}
	return sum;
}

static bool was_alone(const struct member *m)
{
	return m->quiet && quiet(m) == m->quiet;
}

static void tell_run(struct member *m, uint64_t begins)
{
	share_tell_request(&m->slot->recent, arrival_run_end(&m->run, begins));
}

void sched_tell_request(struct member *m, uint64_t took_ns)
{
	share_count_request(&m->slot->counts, took_ns);
	share_tell_request(&m->slot->recent,
		share_packed(took_ns, 1,
			(was_alone(m) ? SHARE_ALONE : 0) |
				(arrival_is_regular(&m->arrival) ? SHARE_REGULAR : 0)));
}

/* A request that was known from the streams; what comes in quick succession is told together. */
static void tell(struct member *m, uint64_t begun, uint64_t now)
{
	if (!arrival_makes_runs(&m->arrival)) {
		sched_tell_request(m, now - begun);
		return;
	}
	share_count_request(&m->slot->counts, now - begun);
	const uint64_t mark = was_alone(m) ? m->quiet : 0;
	if (arrival_run_breaks(&m->run, mark))
		tell_run(m, begun);
	arrival_run_add(&m->run, begun, now, mark);
}

/* False: it is inside of one already. */
static bool request_begins(struct member *m)
{
	struct share_work *w = &m->slot->work;
	uint32_t outside = 0;
	if (!replace_if(&w->inside, &outside, 1, seq_cst, seq_cst))
		return false;
	const uint64_t now = monotonic_ns();
	store_release(&w->begun_ns, now);
	store_release(&w->requests, load_relaxed(&w->requests) + 1);
	if (!member_is_latency(m))
		return true;
	show_inside(m);
	/* Behind `inside`: an arbiter that counts this one sees that. */
	atomic_fetch_add_explicit(&m->device->requests, 1, memory_order_release);
	arrival_begins(&m->arrival, now);
	if (arrival_run_ends(&m->run, now))
		tell_run(m, now);
	m->quiet = quiet(m);
	return true;
}

/* Whether the program is inside of a request: as it says, else as its streams say. */
static bool is_busy(void)
{
	return requests_are_said() ? requests_hold() : streams_have_request();
}

static bool change_inside(struct member *m, uint32_t from, uint32_t to)
{
	const bool changed = replace_if(&m->slot->work.inside, &from, to, seq_cst, seq_cst);
	cpu_fence_behind_rmw(); /* partner: streams_submit() */
	return changed;
}

/* From inside to outside.  A request that came between saw that there was one, and is entered for
 * it: unless it has gone in itself, or has ended meanwhile. */
static bool go_outside(struct member *m)
{
	while (!is_busy() && change_inside(m, 1, 0)) {
		if (!is_busy())
			return true;
		if (!change_inside(m, 0, 1))
			return false;
		show_inside(m);
	}
	return false;
}

/* A program that marks its requests counts them itself. */
static void request_ends(struct member *m)
{
	struct share_work *w = &m->slot->work;
	if (!load_relaxed(&w->inside) || !go_outside(m))
		return;
	const uint64_t now = monotonic_ns(), begun = load_relaxed(&w->begun_ns);
	const bool is_latency = member_is_latency(m);
	store_relaxed(&w->next_ns, is_latency ? arrival_ends(&m->arrival, now) : 0);
	if (is_latency)
		store_relaxed(&w->lasts_ns, (uint64_t)m->arrival.lasts.ns);
	store_release(&w->ended_ns, now);
	show_inside(m); /* also of one that was of another class when it began */
	if (!requests_are_said() && is_latency)
		tell(m, begun, now);
	else if (!requests_are_said())
		share_count_request(&m->slot->counts, now - begun);
}

/* A request is believed from its own begin on, also when another one is open. */
void sched_enter_request(struct member *m)
{
	struct share_work *w = &m->slot->work;
	if (request_begins(m))
		return;
	store_release(&w->begun_ns, monotonic_ns());
	atomic_fetch_add_explicit(&w->requests, 1, memory_order_release);
}

void sched_leave_request(struct member *m)
{
	request_ends(m);
}

/* The SMs that it fills, at one block each until all have one. */
static void widen(struct member *m, const struct launch_shape *l)
{
	const uint64_t blocks = launch_blocks(l);
	const uint32_t wide = blocks < m->sms ? (uint32_t)blocks : m->sms;
	if (blocks && __builtin_expect(load_relaxed(&m->slot->work.widest) < wide, 0))
		store_relaxed(&m->slot->work.widest, wide);
}

/* Takes the launches that were repeated since the launch before. */
static void take_repeats(struct gated *g, const struct member *m)
{
	struct last *l = &last;
	g->more = l->slot == m->slot && l->generation == load_relaxed(&sched_generation) &&
				  l->given > l->repeats
			  ? l->given - l->repeats
			  : 0;
	g->more_ns = g->more * l->took_ns;
	l->given = l->repeats = 0;
}

/* For the next launch.  If there are several devices, the stream does not say which. */
static void remember(const struct member *m, const struct launch_shape *l, struct stream_work *work)
{
	const uint32_t generation = member_is_only() ? load_relaxed(&sched_generation) : 0;
	if (last.is_being_written)
		return;
	last.is_being_written = true;
	last.generation = 0;
	atomic_signal_fence(memory_order_seq_cst); /* partner: only_counts() in a handler */
	last = (struct last){ .is_being_written = true,
		.sms = m->sms,
		.per_thread = l->per_thread,
		.stream = l->stream,
		.work = work,
		.slot = m->slot,
		.device = m->device,
		.file = m->file };
	atomic_signal_fence(memory_order_seq_cst);
	last.generation = generation;
	last.is_being_written = false;
}

/* Counted, and the request's begin; NULL: the program is not scheduled. */
static struct member *enter(struct gated *g, const struct launch_shape *l)
{
	const int kept = errno;
	if (load_relaxed(&hook_hot.captures) > 0)
		return NULL;
	struct member *m = member_current();
	errno = kept;
	if (!m)
		return NULL;
	g->work = streams_of(l->stream, l->per_thread);
	streams_submit(g->work);
	take_repeats(g, m);
	remember(m, l, g->work);
	if (l->what)
		count_launch(m->slot);
	struct share_work *w = &m->slot->work;
	if (__builtin_expect(!atomic_load_explicit(&w->inside, memory_order_seq_cst), 0) &&
		(requests_are_said() ? requests_hold() : !streams_is_left(g->work)))
		request_begins(m);
	widen(m, l);
	return m;
}

static bool is_regulated(const struct member *m)
{
	return !rule_is_free(m->slot, m->file);
}

/* Whether the work that was sent and not seen to end is little, even if none of it has ended. */
static bool goes_alone(const struct gated *g, const struct member *m)
{
	const uint64_t sent =
		load_relaxed(&m->marks.submitted_ns) - load_relaxed(&m->marks.retired_ns);
	return cost_is_measured(g->cost) && rule_is_alone(m->slot, m->device) &&
	       sent + g->took_ns <= load_relaxed(&m->slot->grant.alone_ns);
}

static void give_repeats(
	const struct gated *g, const struct member *m, const struct launch_shape *l)
{
	const uint64_t quantum = load_relaxed(&m->slot->grant.alone_ns) / ALONE_MARKS,
		       ns = quantum < REPEATS_NS ? quantum : REPEATS_NS,
		       most = ns / (g->took_ns ? g->took_ns : 1);
	last.what = l->what;
	last.blocks = launch_blocks(l);
	last.took_ns = g->took_ns;
	last.given = last.repeats = !l->what ? 0 : most < REPEATS ? (uint32_t)most : REPEATS;
}

static void regulate(struct gated *g, struct member *m, const struct launch_shape *l)
{
	const int kept = errno;
	g->entered = true;
	g->held = &g->work->held;
	g->slower = 1;
	g->own_stream = l->stream;
	g->per_thread = l->per_thread;
	g->cost = costs_of(l);
	if (g->cost) {
		const struct others others = member_others(m);
		if (!cost_is_measured(g->cost))
			marks_cut(&m->marks, m->slot, &others); /* it is measured by itself */
		const uint64_t mean = cost_mean(g->cost, UNKNOWN_NS),
			       least = wait_least_ns(m, g->cost);
		g->took_ns = mean > least ? mean : least;
		if (goes_alone(g, m))
			give_repeats(g, m, l);
		else
			wait_for_turn(g, m, l);
		g->took_ns += g->more_ns;
	}
	errno = kept;
}

void sched_launch(struct gated *g, const struct launch_shape *l)
{
	struct member *m = only_counts(g, l) ? NULL : enter(g, l);
	if (m && is_regulated(m))
		regulate(g, m, l);
}

void sched_joined(const struct gated *g)
{
	const int kept = errno;
	cap_leave(g->lane, g->own_stream, g->per_thread);
	errno = kept;
}

static struct quantum quantum_of(const struct member *m)
{
	const struct share_slot_grant *g = &m->slot->grant;
	if (rule_is_alone(m->slot, m->device))
		return (struct quantum){ load_relaxed(&g->alone_ns) / ALONE_MARKS, false };
	const uint64_t budget = load_relaxed(&g->budget_ns),
		       most = MAX(budget / BUDGET_MARKS, QUANTUM_MOST),
		       ns = MAX(MIN(budget / 2, most), QUANTUM_LEAST);
	const bool holds = load_relaxed(&g->hold_ns) && load_relaxed(&m->hold.state) == HOLD_READY;
	return (struct quantum){ holds ? QUANTUM_HELD : ns, true };
}

void sched_passed(const struct gated *g, int result)
{
	const int kept = errno;
	if (result && g->work)
		streams_take_back(g->work);
	struct member *m = g->entered && !result ? member_current() : NULL;
	if (m && g->cost) {
		const struct others others = member_others(m);
		marks_add(&m->marks, m->slot, &others, g, quantum_of(m));
		store_relaxed(&m->slot->work.submitted_ns, load_relaxed(&m->marks.submitted_ns));
		store_relaxed(&m->slot->work.retired_ns, load_relaxed(&m->marks.retired_ns));
	}
	errno = kept;
}

/* The work that an event stands for, before it is recorded anew. */
static void settling_event(struct settling *s, void *event)
{
	if (!streams_of_event(event, &s->stream, &s->upto))
		s->what = SETTLES_NOTHING;
}

static void settling_stream(struct settling *s, void *stream, int per_thread)
{
	s->stream = streams_find(stream, per_thread);
	if (s->stream)
		s->upto = load_acquire(&s->stream->submitted);
	else if (s->what == SETTLES_STREAM || s->what == SETTLES_FORGET)
		s->what = SETTLES_NOTHING;
}

static void cut_marks_of(void *stream)
{
	each_member(m)
		marks_stream_ends(&m->marks, m->slot, stream);
}

/* Which context it is, a call does not always say: what was made there is made anew elsewhere. */
static void leave_contexts(bool with_all)
{
	costs_expire();
	each_member(m) {
		marks_leave(&m->marks);
		const struct hold_of of = member_hold(m);
		hold_leave(&m->hold, &of);
	}
	cap_leave_contexts(with_all);
}

static bool is_wait(const struct settling *s)
{
	return (s->what == SETTLES_STREAM || s->what == SETTLES_COPY) && s->stream;
}

void sched_settling(struct settling *s, int what, void *event, void *stream, bool per_thread)
{
	const int kept = errno;
	*s = (struct settling){ .what = (enum settles)what,
		.event = event,
		.when = atomic_fetch_add_explicit(&streams_epoch, 1, memory_order_acq_rel) };
	switch (what) {
	case SETTLES_FORGET:
		if (event)
			break;
		cut_marks_of(stream);
		settling_stream(s, stream, per_thread);
		break;
	case SETTLES_WAIT:
		settling_event(s, event);
		if (s->what != SETTLES_NOTHING)
			s->waiting = streams_of(stream, per_thread);
		break;
	case SETTLES_STREAM:
		if (event)
			settling_event(s, event);
		else
			settling_stream(s, stream, per_thread);
		break;
	case SETTLES_COPY:
		settling_stream(s, stream, per_thread);
		s->blocking = !per_thread;
		break;
	case SETTLES_RECORD:
		settling_stream(s, stream, per_thread);
		break;
	case SETTLES_ENDED:
	case SETTLES_RESET:
		leave_contexts(what == SETTLES_RESET);
		break;
	default:
		break;
	}
	if (is_wait(s))
		streams_await(s->stream);
	errno = kept;
}

/* Every device of the process: which the work was on, a stream does not say. */
static void settle_members(bool ended)
{
	const bool done = streams_are_done();
	if (done)
		last.given = last.repeats;
	each_member(m) {
		if (done) {
			marks_retire_all(&m->marks);
			store_relaxed(
				&m->slot->work.retired_ns, load_relaxed(&m->marks.retired_ns));
		}
		request_ends(m);
		if (!done)
			continue;
		const struct hold_of of = member_hold(m);
		hold_collect(&m->hold, &of);
		if (!ended && member_is_only())
			hold_prepare(&m->hold, &of);
	}
}

void sched_settled(const struct settling *s, int result)
{
	const int kept = errno;
	if (is_wait(s))
		streams_awaited(s->stream);
	if (result)
		return;
	if (s->what == SETTLES_RECORD || (s->what == SETTLES_FORGET && s->event)) {
		streams_note_event(s->event, s->stream);
		return;
	}
	if (s->what == SETTLES_WAIT) {
		if (s->waiting != s->stream)
			streams_note_wait(s->waiting, s->stream, s->upto);
		return;
	}
	const bool ended = s->what == SETTLES_ENDED || s->what == SETTLES_RESET;
	if (s->what == SETTLES_ALL || ended || s->blocking)
		streams_retire_all(ended ? UINT64_MAX : s->when, s->blocking);
	if (s->what == SETTLES_FORGET)
		streams_end(s->stream);
	else if (s->stream)
		streams_retire(s->stream, s->upto);
	if (is_wait(s) && !streams_are_done())
		streams_skip(s->stream);
	settle_members(ended);
	errno = kept;
}

void sched_functions_end(void)
{
	if (!gate_is_open())
		costs_expire();
}

static bool any_member(void)
{
	each_member(m)
		return true;
	return false;
}

/* Before cuInit().  A driver that nobody has initialised, where there was one, has been loaded
 * anew: what was made in the other went with it. */
void sched_driver_begins(void)
{
	const int kept = errno;
	int n;
	if (!gate_is_open() && any_member() && real_at(FN_cuDeviceGetCount) &&
		REAL(cuDeviceGetCount)(&n) == NOT_INITIALIZED) {
		each_member(m) {
			marks_forget(&m->marks);
			m->hold = (struct hold){ 0 };
		}
		cap_forget();
		costs_expire();
		streams_forget();
		add_alone(&sched_generation, 1);
		settle_members(true);
	}
	errno = kept;
}

void sched_start(void)
{
	if (config_get()->sched)
		store_release(&hook_hot.gate, 1);
}

/* The state is the parent's, its slots too. */
void sched_forget(void)
{
	add_alone(&sched_generation, 1);
	members_forget();
	requests_forget();
	streams_forget();
	costs_forget();
	cap_forget();
}

void sched_at_exit(void)
{
	if (!process_is_started() || !load_relaxed(&hook_hot.gate))
		return;
	store_release(&hook_hot.gate, 0);
	add_alone(&sched_generation, 1);
	members_leave();
}
