/* Writes the analysis of the wall time as JSON. */
#include "report/analysis.h"

#include <math.h>

#include "base/banned.h"

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : NAN;
}

/* Of the wall time, to which they add up. */
static void put_parts(struct json *j, const char *key, const uint64_t *ns, const char *const *names,
	const char *const *texts, unsigned count)
{
	uint64_t all = 0;
	for (unsigned i = 0; i < count; i++)
		all += ns[i];
	json_begin_array(j, key);
	for (unsigned i = 0; i < count; i++) {
		json_begin_object(j, NULL);
		json_str(j, "name", names[i]);
		json_u64(j, "ns", ns[i]);
		json_put_real(j, "share", share_of(ns[i], all));
		json_str(j, "what", texts[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_overlap(struct json *j, const struct analysis *a)
{
	json_begin_object(j, "overlap");
	json_u64(j, "copy_ns", a->copy_ns);
	json_u64(j, "copy_hidden_ns", a->copy_hidden_ns);
	json_put_real(j, "copy_hidden_share", share_of(a->copy_hidden_ns, a->copy_ns));
	json_u64(j, "communication_ns", a->communication_ns);
	json_u64(j, "communication_hidden_ns", a->communication_hidden_ns);
	json_put_real(j, "communication_hidden_share",
		share_of(a->communication_hidden_ns, a->communication_ns));
	json_end_object(j);
}

static void put_queue(struct json *j, const struct queue *q)
{
	json_begin_object(j, "queue");
	json_u64(j, "calls", q->calls);
	json_u64_or_null(j, "api_ns", q->calls, q->api_ns);
	json_u64_or_null(j, "queued_ns", q->calls, q->queued_ns);
	json_u64_or_null(j, "queued_p50_ns", q->queued.count, hist_at(&q->queued, 0.5));
	json_u64_or_null(j, "queued_p99_ns", q->queued.count, hist_at(&q->queued, 0.99));
	json_u64_or_null(j, "depth_most", q->calls, q->depth_most);
	json_put_real(j, "depth_mean", q->calls ? q->depth_mean : NAN);
	json_u64_or_null(j, "span_ns", q->calls, q->span_ns);
	json_u64_or_null(j, "empty_ns", q->calls, q->empty_ns);
	json_put_real(j, "empty_share", share_of(q->empty_ns, q->span_ns));
	json_end_object(j);
}

static void put_name(struct json *j, const char *key, const struct report *r, uint32_t name)
{
	json_str_or_null(j, key, name == META_NONE ? NULL : r->meta.names.v[name].text);
}

void analysis_put_gap(struct json *j, const struct report *r, const struct idle_gap *p)
{
	const struct idle_culprit *c = &p->culprit;
	struct fn_name fn;
	struct gap_text room;
	json_u64(j, "start_ns", p->start_ns);
	json_u64(j, "ns", p->ns);
	json_str(j, "cause", wall_part_name[p->cause]);
	json_str_or_null(j, "call", c->call_ns ? report_fn_name(r, c->call_fn, &fn) : NULL);
	json_u64_or_null(j, "call_ns", c->call_ns, c->call_ns);
	put_name(j, "operator", r, c->operator);
	put_name(j, "module", r, c->module);
	json_str_or_null(j, "line", analysis_line(r, p, &room));
	json_str(j, "after", p->ended);
	json_str(j, "before", analysis_began(r, p, &room));
}

static void put_idle_gaps(struct json *j, const struct report *r)
{
	const struct analysis *a = &r->analysis;
	json_begin_array(j, "pauses");
	for (size_t i = 0; i < a->idle_gaps.n; i++) {
		json_begin_object(j, NULL);
		analysis_put_gap(j, r, &a->idle_gaps.v[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

void analysis_put_json(const struct report *r, struct json *j)
{
	const struct analysis *a = &r->analysis;
	json_u64(j, "wall_ns", r->wall_ns);
	if (!a->known)
		return;
	put_parts(j, "breakdown", a->wall_ns, wall_part_name, wall_part_text, WALL_PARTS);
	put_overlap(j, a);
	put_queue(j, &a->queue);
	put_parts(j, "critical_path", a->path_ns, path_part_name, path_part_text, PATH_PARTS);
	json_u64_or_null(j, "critical_path_host_most_ns", a->queue.calls, a->path_host_most_ns);
	put_idle_gaps(j, r);
}
