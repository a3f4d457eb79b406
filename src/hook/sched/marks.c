/* See marks.h.  The lock is tried, never waited for: who does not get it goes on unmarked. */
#include "hook/sched/marks.h"

#include <errno.h>
#include <string.h>

#include "hook/call.h"

#define NO_TIMING  2u           /* CU_EVENT_DISABLE_TIMING */
#define LOCK_TICKS (1ull << 30) /* a third of a second: its holder left by longjmp */
#define SHARP_NS   4000u        /* a mark has come within so much of when it was last asked after */

static bool try_lock(struct marks *m)
{
	const uint64_t now = __builtin_ia32_rdtsc() | 1;
	uint64_t seen = __atomic_load_n(&m->lock, __ATOMIC_RELAXED);
	if (seen && now - seen < LOCK_TICKS)
		return false;
	return __atomic_compare_exchange_n(
		&m->lock, &seen, now, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void unlock(struct marks *m)
{
	__atomic_store_n(&m->lock, 0, __ATOMIC_RELEASE);
}

static void submit(struct marks *m, uint64_t ns)
{
	__atomic_store_n(&m->submitted_ns, m->submitted_ns + ns, __ATOMIC_RELAXED);
}

static void retire(struct marks *m, uint64_t ns)
{
	__atomic_store_n(&m->retired_ns, m->retired_ns + ns, __ATOMIC_RELAXED);
}

/* ---- marks ---- */

static bool of_this_context(struct marks *m)
{
	void *context = NULL;
	if (!hook_real[FN_cuCtxGetCurrent] || REAL(cuCtxGetCurrent, void **)(&context) || !context)
		return false;
	if (!m->context)
		m->context = context;
	return m->context == context;
}

static int record(void *event, void *stream, int per_thread)
{
	return per_thread ? REAL(cuEventRecord_ptsz, void *, void *)(event, stream)
			  : REAL(cuEventRecord, void *, void *)(event, stream);
}

/* What was collected becomes a mark, or is taken for done. */
static void put(struct marks *m, struct share_slot *slot)
{
	struct mark *at = &m->ring[m->head % MARKS];
	void *const event = at->event;
	bool done = m->head - m->tail < MARKS && of_this_context(m) &&
		    hook_real[FN_cuEventCreate] && hook_real[FN_cuEventRecord_ptsz];
	*at = m->next;
	at->event = event;
	done = done && (event || !REAL(cuEventCreate, void **, unsigned)(&at->event, NO_TIMING)) &&
	       !record(at->event, at->stream, at->per_thread);
	if (done) {
		at->recorded_ns = clock_monotonic();
		m->head++;
	} else {
		retire(m, m->next.ns);
		slot->counts.unmarked += m->next.launches;
	}
	m->next = (struct mark){ .teaches = true };
}

static void collect(struct marks *m, const struct gated *g)
{
	struct mark *n = &m->next;
	if (!n->launches)
		n->teaches = true;
	n->teaches = n->teaches && !g->lane && n->kinds < MARK_COSTS &&
		     (!n->launches || n->stream == g->own_stream);
	n->stream = g->own_stream;
	n->per_thread = g->per_thread;
	n->launches++;
	n->ns += g->took_ns;
	if (n->kinds < MARK_COSTS)
		n->cost[n->kinds++] = g->cost;
}

void marks_add(struct marks *m, struct share_slot *slot, const struct gated *g, uint64_t quantum_ns)
{
	if (!try_lock(m)) {
		slot->counts.unmarked++;
		return;
	}
	submit(m, g->took_ns);
	collect(m, g);
	if (m->next.ns >= quantum_ns || m->next.kinds == MARK_COSTS)
		put(m, slot);
	unlock(m);
}

void marks_cut(struct marks *m, struct share_slot *slot)
{
	if (!m->next.launches || !try_lock(m))
		return;
	if (m->next.launches)
		put(m, slot);
	unlock(m);
}

/* ---- what they teach ---- */

/* What others had been given by now: when it has changed, the device was not this program's. */
static uint64_t others_work(const struct share_file *f, const struct share_slot *mine)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (s != mine && s->who.state == SLOT_LIVE && s->who.device == mine->who.device)
			all += __atomic_load_n(&s->work.requests, __ATOMIC_RELAXED) +
			       __atomic_load_n(&s->work.submitted_ns, __ATOMIC_RELAXED);
	}
	return all;
}

static void teach(const struct mark *k, struct share_slot *slot, uint64_t span)
{
	const float scale = k->ns ? (float)span / (float)k->ns : 1;
	bool known = k->ns > 0, alike = true;
	for (uint32_t i = 0; i < k->kinds; i++) {
		known = known && k->cost[i]->count;
		alike = alike && k->cost[i] == k->cost[0];
	}
	if (known) {
		slot->counts.predicted_ns += k->ns;
		slot->counts.measured_ns += span;
		slot->counts.off_ns += span > k->ns ? span - k->ns : k->ns - span;
	}
	if (alike && k->kinds)
		cost_learn(k->cost[0], (float)span / (float)k->kinds);
	for (uint32_t i = 0; !alike && i < k->kinds; i++)
		cost_correct(k->cost[i], scale);
}

/* Not what it takes, but better than nothing. */
static void in_company(const struct mark *k, struct share_slot *slot, uint64_t span)
{
	slot->counts.contended++;
	if (k->launches == 1 && !k->cost[0]->count && k->cost[0]->guess_ns <= 0)
		k->cost[0]->guess_ns = (float)span;
}

/* The oldest has come.  Sharp: it had not a moment before. */
static void came(
	struct marks *m, struct share_slot *slot, const struct share_file *f, uint32_t device)
{
	const struct mark *k = &m->ring[m->tail % MARKS];
	const uint64_t now = clock_monotonic(), others = others_work(f, slot);
	const bool sharp = now - m->not_yet_ns < SHARP_NS;
	const bool alone = !share_any(f->devices[device].active);
	if (sharp && m->came_ns >= k->recorded_ns && m->came_stream == k->stream && k->teaches) {
		if (alone && m->came_alone && others == m->others)
			teach(k, slot, now - m->came_ns);
		else
			in_company(k, slot, now - m->came_ns);
	} else if (sharp && k->teaches && k->kinds == 1 && k->launches == 1 && alone &&
		   !k->cost[0]->count && m->came_ns < k->recorded_ns && m->head - m->tail == 1)
		cost_learn(
			k->cost[0], (float)(now - k->recorded_ns)); /* it began when it was sent */
	m->came_ns = sharp ? now : 0;
	m->came_stream = k->stream;
	m->came_alone = alone;
	m->others = others;
	retire(m, k->ns);
	m->tail++;
}

void marks_ask(
	struct marks *m, struct share_slot *slot, const struct share_file *others, uint32_t device)
{
	if (!hook_real[FN_cuEventQuery] || !try_lock(m))
		return;
	while (m->tail != m->head) {
		const int answer = REAL(cuEventQuery, void *)(m->ring[m->tail % MARKS].event);
		if (answer == NOT_READY) {
			m->not_yet_ns = clock_monotonic();
			break;
		}
		came(m, slot, others, device); /* on an error as well: nothing can be waited for */
	}
	unlock(m);
}

void marks_retire_all(struct marks *m)
{
	if (m->submitted_ns == m->retired_ns || !try_lock(m))
		return;
	m->tail = m->head;
	m->next = (struct mark){ .teaches = true };
	__atomic_store_n(&m->retired_ns, m->submitted_ns, __ATOMIC_RELAXED);
	m->came_ns = 0;
	unlock(m);
}

void marks_forget(struct marks *m)
{
	memset(m, 0, sizeof *m);
}
