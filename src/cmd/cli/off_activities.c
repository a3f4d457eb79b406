/* Finds the GPU activities that were launched while recording was off. */
#include "cmd/cli/off_activities.h"

#include <string.h>

#include "base/atomic.h"
#include "base/search.h"
#include "join/links.h"
#include "trace/activity.h"
#include "trace/activity_filter.h"
#include "trace/meta.h"

static bool was_off(const struct trace *t)
{
	const struct trace_header *h = &t->header;
	return load_relaxed(&h->optional) & FEATURE_DEVICE && !h->sampled &&
	       (t->off.count || load_relaxed(&h->off_since_ns));
}

static bool is_off_between(const struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t since = load_relaxed(&t->header.off_since_ns);
	if (since && since < to_ns)
		return true;
	for (uint32_t i = 0; i < t->off.count; i++)
		if (t->off.v[i].from_ns < to_ns && t->off.v[i].to_ns > from_ns)
			return true;
	return false;
}

static bool is_before(const struct call_link *l, uint32_t process, uint64_t correlation)
{
	return l->process != process ? l->process < process : l->correlation < correlation;
}

/* Launched between the call of the number before and that of the number after, and before it began
 * to run. */
static bool is_of_off_time(const struct trace *t, const struct links *l, uint32_t process,
	const struct gpu_activity *w)
{
	const size_t i = SEARCH(k, 0, l->v.n, is_before(&l->v.v[k], process, w->correlation));
	const struct call_link *after = i < l->v.n ? &l->v.v[i] : NULL;
	const struct call_link *before = i ? &l->v.v[i - 1] : NULL;
	uint64_t from = 0, to = w->start_ns;
	if (before && before->process == process)
		from = trace_ns(t, before->ticks);
	if (after && after->process == process && trace_ns(t, after->ticks + after->dur) < to)
		to = trace_ns(t, after->ticks + after->dur);
	return is_off_between(t, from, to);
}

static int take_activities(struct trace *t, const struct links *l)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct gpu_activity w;
	size_t hint = 0;
	int e;
	while ((e = trace_next_activity(&at, &w)) > 0) {
		const uint32_t process = buf.ref->process;
		if (!(w.valid & GPU_HAS_CORRELATION) || !w.correlation ||
			links_of(l, process, &w, &hint) || !is_of_off_time(t, l, process, &w))
			continue;
		activity_filter_add(t, process, w.correlation);
	}
	chunk_buf_fini(&buf);
	return e;
}

int off_activities_leave_out(struct trace *t, struct error *err)
{
	struct meta meta;
	struct links links;
	if (!was_off(t))
		return 0;
	int e = meta_load(t, &meta, err);
	if (e)
		return e;
	e = links_load(t, &meta, &links);
	if (!e) {
		e = take_activities(t, &links);
		links_fini(&links);
	}
	meta_fini(&meta);
	if (e)
		return error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
	activity_filter_finish(t);
	return 0;
}
