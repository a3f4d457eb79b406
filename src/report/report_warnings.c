/* A sentence for each missing or damaged part. */

#include <inttypes.h>

#include "base/atomic.h"
#include "base/number.h"
#include "report/provenance.h"
#include "stack/stacks.h"

__attribute__((format(printf, 2, 3))) static void warn(struct report *r, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	*array_push(&r->warnings) = xvasprintf(format, ap);
	va_end(ap);
}

/* Every call that was entered must be here, counted, or said to be lost. */
static void warn_unbalanced(struct report *r)
{
	const struct accounts *a = &r->accounts;
	if (a->missing)
		warn(r,
			"%" PRIu64 " calls are missing: %" PRIu64 " were entered and %" PRIu64
			" returned, but only %" PRIu64 " are here or said to be lost",
			a->missing, a->entered, a->returned, a->kept);
	if (a->surplus)
		warn(r,
			"%" PRIu64 " calls are here twice: %" PRIu64 " were entered, and %" PRIu64
			" are here or said to be lost",
			a->surplus, a->entered, a->kept);
}

static void warn_missing(struct report *r)
{
	warn_unbalanced(r);
	if (r->lost)
		warn(r, "%" PRIu64 " calls were lost: no room for them in the trace", r->lost);
	if (load_relaxed(&r->trace->header.lost_ranges))
		warn(r,
			"%" PRIu64
			" ranges were lost, or requests to a server: no room for them in the trace",
			load_relaxed(&r->trace->header.lost_ranges));
	if (r->links.lost && r->sampled)
		warn(r,
			"%" PRIu64
			" samples were lost: the GPU activity had not ended when its context or the "
			"program did, or there was no room for them in the trace",
			r->links.lost);
	else if (r->links.lost)
		warn(r, "%" PRIu64 " GPU activities were lost: CUPTI had no buffer for them",
			r->links.lost);
	if (load_relaxed(&r->trace->header.unnamed))
		warn(r, "%" PRIu32 " names and graphs are missing: no room for them in the trace",
			load_relaxed(&r->trace->header.unnamed));
	if (load_relaxed(&r->trace->header.optional) & FEATURE_SANDBOXED)
		warn(r, "a process installed a system-call filter (seccomp): after that "
			"its calls were kept only in memory that was mapped already");
	if (r->torn)
		warn(r, "%" PRIu64 " records were begun and never finished", r->torn);
	if (load_relaxed(&r->trace->header.reused))
		warn(r, "only the newest calls are here: %" PRIu64 " older chunks were overwritten",
			load_relaxed(&r->trace->header.reused));
	if (r->counted_errors)
		warn(r, "%" PRIu64 " failing calls were counted without their error code",
			r->counted_errors);
	if (r->counted_launches)
		warn(r, "%" PRIu64 " kernel launches were counted without the kernel's name",
			r->counted_launches);
	if (r->unnamed_graphs)
		warn(r, "%" PRIu64 " graph launches ran kernels that are not known",
			r->unnamed_graphs);
}

static void warn_off(struct report *r)
{
	if (r->trace->excluded_activities)
		warn(r,
			"%" PRIu64
			" GPU activities were left out: they were launched while recording was switched off",
			r->trace->excluded_activities);
}

/* If a recording is stopped, CUPTI may hand times over too late. */
static void warn_stopped_untimed(struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	if (load_relaxed(&h->stopped) && !r->sampled && !r->trace->cut &&
		load_relaxed(&h->optional) & FEATURE_DEVICE && provenance_asked_gpu(r) &&
		r->launches > r->device_kernels)
		warn(r,
			"%" PRIu64 " of %" PRIu64
			" kernels have no device times: they had not run, or CUPTI had not handed them over, when recording was stopped. Busy and idle times leave them out",
			r->launches - r->device_kernels, r->launches);
}

/* CUPTI keeps what it has recorded until a buffer is full or half a second is over.  If the program
 * is killed before, these times are lost. */
static void warn_untimed(struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	const bool in_order = h->state == TRACE_FINISHED && !(h->launched && trace_exit_signal(h));
	if (in_order || load_relaxed(&h->stopped) || r->sampled || r->trace->parts.n ||
		!(load_relaxed(&h->optional) & FEATURE_DEVICE) || !provenance_asked_gpu(r) ||
		r->launches <= r->device_kernels)
		return;
	warn(r,
		"%" PRIu64 " of %" PRIu64
		" kernels have no device times: the program %s, and CUPTI had not handed them over. Busy and "
		"idle times leave them out",
		r->launches - r->device_kernels, r->launches,
		h->state == TRACE_FINISHED ? "did not end in order"
					   : "runs, or did not end in order");
}

static void warn_inflight(struct report *r)
{
	const bool over = r->trace->header.state == TRACE_FINISHED;
	struct fn_name room;
	array_each(const struct thread_row, t, r->threads)
		if (t->inflight_fn)
			warn(r, "%s %s in thread %u", report_fn_name(r, t->inflight_fn, &room),
				over ? "had not returned at the end" : "has not returned yet",
				t->tid);
}

static void warn_names(struct report *r)
{
	const struct meta *m = &r->meta;
	for (size_t i = 0; i < m->messages.n; i++)
		warn(r, "process %u: %s", r->trace->processes.v[m->messages.v[i].process].pid,
			m->names.v[m->messages.v[i].name].text);
	for (size_t i = 0; i < m->unknown.n; i++)
		if (m->unknown.v[i].count)
			warn(r, "%s was called %" PRIu64 " times. This Weir does not know it",
				m->names.v[m->unknown.v[i].name].text, m->unknown.v[i].count);
}

static void warn_stopped(struct report *r)
{
	const struct trace *t = r->trace;
	const struct trace_header *h = &t->header;
	struct number after;
	if (load_relaxed(&h->stopped))
		warn(r, "recording stopped after %s, before the program ended: %s",
			number_ns(&after, trace_since_ns(t, load_relaxed(&h->stopped_ticks))),
			h->stopped == STOP_ASKED ? "weir ctl asked for it"
			: h->stopped == STOP_SIZE
				? "the trace had reached the size that was asked for"
			: h->stopped == STOP_CUT ? "somebody cut the trace off"
						 : "its disk was nearly full");
}

static void warn_damage(struct report *r)
{
	const struct trace *t = r->trace;
	const uint64_t chunks = r->damaged_chunks + r->meta.damaged;
	for (size_t i = 0; i < t->damage.n; i++)
		warn(r, "damage at byte %" PRIu64 ": %s (%" PRIu64 " bytes left out)",
			t->damage.v[i].offset, t->damage.v[i].what, t->damage.v[i].bytes);
	if (t->damage_count > t->damage.n)
		warn(r, "damage at %" PRIu64 " more places", t->damage_count - t->damage.n);
	if (chunks)
		warn(r, "%" PRIu64 " chunks are damaged and were left out, in part or whole",
			chunks);
	if (!t->schema.fn_count && t->chunk_count)
		warn(r, "the trace has no table of functions: they are shown as numbers");
	if (t->schema.bad_lines)
		warn(r, "%u lines of the trace's schema make no sense", t->schema.bad_lines);
	if (!t->clock.known && (r->calls || r->allocator_events))
		warn(r, "the clock's speed is not known: times are ticks, taken as nanoseconds");
}

/* python/weir reports a Python whose frames it does not read. */
static void warn_python(struct report *r)
{
	static const char no[] = "python-frames no: ";
	for (size_t i = 0; i < r->meta.facts.n; i++) {
		const char *fact = r->meta.names.v[r->meta.facts.v[i].text].text;
		if (!strncmp(fact, no, sizeof no - 1))
			warn(r, "call stacks are without Python's frames: %s",
				fact + sizeof no - 1);
	}
}

static void warn_stacks(struct report *r)
{
	const struct stacks *s = r->stacks;
	warn_python(r);
	if (s->lost)
		warn(r, "%" PRIu64 " call stacks were lost: no room for them in the trace",
			s->lost);
	if (s->waiting)
		warn(r, "%" PRIu64 " call stacks show no frames of C here: %s", s->waiting,
			s->without);
	if (s->cut)
		warn(r,
			"%" PRIu64
			" of %zu call stacks end early: more of the stack is kept with --stacks=bytes:32K",
			s->cut, s->samples.n);
	if (s->unknown && !s->waiting)
		warn(r, "%" PRIu64 " of %zu call stacks end at code whose caller can't be found",
			s->unknown, s->samples.n);
	if (s->damaged)
		warn(r, "%" PRIu64 " chunks of call stacks are damaged and were left out",
			s->damaged);
}

int warnings_make(struct report *r)
{
	warn_missing(r);
	warn_untimed(r);
	warn_stopped_untimed(r);
	warn_off(r);
	warn_inflight(r);
	warn_names(r);
	warn_stopped(r);
	warn_damage(r);
	warn_stacks(r);
	return 0;
}

void warnings_free(struct report *r)
{
	for (size_t i = 0; i < r->warnings.n; i++)
		free(r->warnings.v[i]);
	array_free(&r->warnings);
}
