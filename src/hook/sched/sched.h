/*
 * The scheduler inside a program (docs/arbiter-protocol.md). It joins the shared file at the first
 * launch and publishes a latency program's requests. It makes a best-effort program's launches wait
 * or use fewer SMs (src/share/rule.h).
 *
 * Any thread may call, and a signal handler between any two lines. Nothing uses the heap, and the
 * one lock (marks.c) is only tried. If a launch cannot be looked up, marked or joined, it passes.
 */
#ifndef WEIR_HOOK_SCHED_H
#define WEIR_HOOK_SCHED_H

#include "base/atomic.h"
#include "hook/core/process.h"
#include "hook/sched/gated.h"
#include "hook/sched/streams.h"
#include "share/rule.h"
#include "share/segment.h"

/* What a launch needs that goes where the last one of this thread went.  generation: of
 * sched_generation; 0: there was none. */
struct sched_last {
	uint32_t generation, sms;
	int per_thread;
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
};
extern __thread struct sched_last sched_last __attribute__((tls_model("initial-exec")));
extern _Atomic uint32_t sched_generation; /* goes up when what is remembered may be gone */

/* Others are to see how many there are. */
static inline void sched_count_launch(struct share_slot *s)
{
	atomic_fetch_add_explicit(&s->counts.launches, 1, memory_order_relaxed);
}

/* The same kernel once more, while nobody is waited for. */
static inline bool sched_repeats(const void *what, uint64_t blocks)
{
	struct sched_last *l = &sched_last;
	if (!l->repeats || l->what != what || l->blocks != blocks ||
		!rule_is_alone(l->slot, l->device))
		return false;
	l->repeats--;
	return true;
}

/* Most launches: inside of a request that has begun, on the same stream as before, no wider than
 * others were, with nobody to wait for.  They are counted, and that is all. */
static inline bool sched_counts_only(
	struct gated *g, const void *stream, int per_thread, uint64_t blocks, const void *what)
{
	const struct sched_last *l = &sched_last;
	if (l->generation != load_relaxed(&sched_generation) || l->stream != stream ||
		l->per_thread != per_thread || load_relaxed(&hook_hot.captures) > 0)
		return false;
	const struct share_work *w = &l->slot->work;
	if (!load_relaxed(&w->inside) ||
		(blocks > load_relaxed(&w->widest) && load_relaxed(&w->widest) < l->sms) ||
		(!rule_is_free(l->slot, l->file) && !sched_repeats(what, blocks)))
		return false;
	g->work = l->work;
	streams_count(l->work);
	if (what)
		sched_count_launch(l->slot);
	return true;
}

void sched_kernel(struct gated *g, const struct sched_launch *l);
void sched_other(struct gated *g, const struct sched_launch *l);
void sched_joined(const struct gated *g);
void sched_passed(const struct gated *g, int result);

void sched_settling(
	struct settling *s, enum settles what, void *event, void *stream, int per_thread);
void sched_settled(const struct settling *s);

struct member;

/* The program says that it is inside of a request on that device, or that one has ended: then it is
 * outside, when none is left (requests.h). */
void sched_enter_request(struct member *m);
void sched_leave_request(struct member *m);

/* One that it said took so long. */
void sched_tell_request(struct member *m, uint64_t took_ns);
void sched_module_ends(void);
void sched_driver_begins(void);

/* The part of the library (process.h). */
void sched_start(void);
void sched_forget(void);
void sched_at_exit(void);

#endif
