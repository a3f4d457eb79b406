/* Simulates each policy and way of sharing. */
#include "whatif/whatif.h"

#include <string.h>

#define REQUESTS_LEAST 100u
#define MAX_WAIT_NS    500000000u /* what weir run has without --max-wait */
#define PATIENCE       1000u /* a replay gives up when it takes so many times as long as alone */

static struct replay replay_of(const struct whatif *w, enum law_sharing sharing)
{
	struct replay r = { .device = w->device,
		.params = policy_params_default,
		.arrivals = w->arrivals,
		.requests = w->requests,
		.max_wait_ns = MAX_WAIT_NS,
		.most_ns = UINT64_MAX / 4 };
	r.device.sharing = sharing;
	return r;
}

static int run_alone(struct whatif *w, size_t i)
{
	struct replay r = replay_of(w, LAW_SLICES);
	r.count = 1;
	r.programs[0] = w->programs[i];
	if (!whatif_is_latency(w, i))
		r.ends = &w->alone[i].ends;
	return replay_run(&r, &w->alone[i].results);
}

/* How long it takes alone to get so many ops done. */
static double alone_ns(const struct whatif_alone *a, uint64_t ops)
{
	const uint64_t round = a->ends.v.n;
	if (!round)
		return 0;
	const uint64_t part = ops % round;
	return (double)(ops / round) * (double)a->results.end_ns +
	       (part ? (double)a->ends.v.v[part - 1] : 0);
}

static struct whatif_way *add_way(
	struct whatif *w, const struct policy *policy, enum law_sharing sharing)
{
	if (w->way_count == WHATIF_WAYS)
		return NULL;
	struct whatif_way *way = &w->ways[w->way_count++];
	*way = (struct whatif_way){ .policy = policy, .sharing = sharing };
	return way;
}

static void add_policy(struct whatif *w, const struct policy *p)
{
	add_way(w, p, LAW_SLICES);
	add_way(w, p, LAW_MPS);
}

static void choose_ways(struct whatif *w)
{
	add_policy(w, NULL);
	for (size_t i = 0; i < w->policy_count; i++)
		add_policy(w, w->policies[i]);
	for (const struct policy *p = policies; !w->policy_count && p->name; p++)
		if (strcmp(p->name, "edf") != 0)
			add_policy(w, p);
}

static uint64_t longest_alone(const struct whatif *w)
{
	uint64_t longest = 0;
	for (size_t i = 0; i < w->count; i++)
		longest = MAX(w->alone[i].results.end_ns, longest);
	return longest;
}

static int run_way(struct whatif *w, struct whatif_way *way)
{
	struct replay r = replay_of(w, way->sharing);
	r.policy = way->policy;
	r.most_ns = longest_alone(w) * PATIENCE;
	r.count = w->count;
	memcpy(r.programs, w->programs, sizeof r.programs);
	return replay_run(&r, &way->results);
}

static bool is_same(
	const struct whatif *w, const struct replay_results *a, const struct replay_results *b)
{
	bool same = a->end_ns == b->end_ns;
	for (size_t i = 0; i < w->count && same; i++) {
		const struct replay_result *p = &a->programs[i], *q = &b->programs[i];
		same = p->ops == q->ops && p->latency.v.n == q->latency.v.n &&
		       (!p->latency.v.n || !memcmp(p->latency.v.v, q->latency.v.v,
						   p->latency.v.n * sizeof(uint64_t)));
	}
	return same;
}

/* Both ways of sharing stand beside each other; where the answer is the same, one says it. */
static void drop_the_same(struct whatif *w)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->way_count; i++) {
		const bool again = kept && w->ways[kept - 1].policy == w->ways[i].policy &&
				   is_same(w, &w->ways[kept - 1].results, &w->ways[i].results);
		if (again) {
			w->ways[kept - 1].both = true;
			replay_fini(&w->ways[i].results);
		} else {
			w->ways[kept++] = w->ways[i];
		}
	}
	w->way_count = kept;
}

static void set_requests(struct whatif *w)
{
	uint64_t most = REQUESTS_LEAST;
	for (size_t i = 0; i < w->count; i++)
		if (whatif_is_latency(w, i) && w->programs[i].recorded->requests > most)
			most = w->programs[i].recorded->requests;
	w->requests = w->requests ? w->requests : most;
}

int whatif_run(struct whatif *w, struct error *err)
{
	int e = 0;
	set_requests(w);
	choose_ways(w);
	for (size_t i = 0; i < w->count && !e; i++)
		e = run_alone(w, i);
	for (size_t i = 0; i < w->way_count && !e; i++)
		e = run_way(w, &w->ways[i]);
	if (e)
		return error_set(err, e, "the replay has failed: %s", strerror(-e));
	drop_the_same(w);
	return 0;
}

void whatif_fini(struct whatif *w)
{
	for (size_t i = 0; i < w->count; i++) {
		replay_fini(&w->alone[i].results);
		array_free(&w->alone[i].ends.v);
	}
	for (size_t i = 0; i < w->way_count; i++)
		replay_fini(&w->ways[i].results);
}

uint64_t whatif_latency(const struct replay_results *r, size_t program, double q)
{
	return durations_quantile(&r->programs[program].latency, q, 0);
}

double whatif_slowdown(
	const struct whatif *w, const struct replay_results *r, size_t program, double q)
{
	const uint64_t alone =
		durations_quantile(&w->alone[program].results.programs[0].latency, q, 0);
	return alone ? (double)whatif_latency(r, program, q) / (double)alone : 0;
}

double whatif_share(const struct whatif *w, const struct replay_results *r, size_t program)
{
	const double needed = alone_ns(&w->alone[program], r->programs[program].ops);
	return r->end_ns ? needed / (double)r->end_ns : 0;
}
