/*
 * From a trace to a report: its metadata, then the facets that are asked for.  The table of facets
 * says who makes and frees each.  Facets that are counted call by call share one walk over the
 * calls, which counts only what is asked for.
 */
#include "report/report_make.h"

#include "blame/blame.h"
#include "hint/hint.h"
#include "memory/memory.h"
#include "model/callers.h"
#include "model/device_time.h"
#include "model/gather.h"
#include "model/gpu_state.h"
#include "model/prediction.h"
#include "model/request_times.h"
#include "report/provenance.h"

static int replay_memory(struct report *r, const struct tallies *t)
{
	struct memory_list lists[MEMORY_LISTS];
	const unsigned count = tallies_memory(t, lists);
	return memory_fill(r, lists, count, tallies_sum(t));
}

static void free_memory(struct report *r)
{
	array_free(&r->live);
	memory_free(r->memory_detail);
}

static void free_links(struct report *r)
{
	links_fini(&r->links);
}

static int load_links(struct report *r)
{
	return links_load(r->trace, &r->meta, &r->links);
}

static int count_predictions(struct report *r, struct tally *t)
{
	r->predicted = t->predicted;
	r->unpredicted = t->unpredicted;
	return prediction_fill(r);
}

static void free_prediction(struct report *r)
{
	prediction_free(r->prediction);
}

static int load_gpu_states(struct report *r)
{
	r->gpu_states = xcalloc(1, sizeof *r->gpu_states);
	return gpu_states_load(r->trace, &r->meta, r->gpu_states);
}

static void free_gpu_states(struct report *r)
{
	if (r->gpu_states)
		gpu_states_fini(r->gpu_states);
	free(r->gpu_states);
}

static int make_hints(struct report *r)
{
	return hints_make(r, &r->hints);
}

static void free_hints(struct report *r)
{
	hints_free(r->hints);
}

static int load_requests(struct report *r)
{
	r->requests = xcalloc(1, sizeof *r->requests);
	r->request = REQUEST_NONE;
	return requests_load(r->trace, &r->meta, &r->links, r->requests);
}

static void free_requests(struct report *r)
{
	if (r->requests)
		requests_fini(r->requests);
	free(r->requests);
}

static const struct facet_of {
	uint32_t needs; /* in the table before it */
	/* One of the three, or none: then the walk does it. */
	int (*count)(struct report *r, struct tally *sum);
	int (*replay)(struct report *r, const struct tallies *t);
	int (*make)(struct report *r);
	void (*free)(struct report *r); /* also of what is made in part, or not at all */
} all_facets[FACETS] = {
	[FACET_CALLS] = { .count = calls_make, .free = calls_free },
	[FACET_CALL_TIMES] = { .needs = FACET(CALLS) },
	[FACET_KERNELS] = { .needs = FACET(CALLS), .count = kernels_make, .free = kernels_free },
	[FACET_WAITS] = { .needs = FACET(CALLS), .count = waits_make, .free = waits_free },
	[FACET_THREADS] = { .needs = FACET(CALLS), .count = threads_make, .free = threads_free },
	[FACET_STREAMS] = { .needs = FACET(CALLS), .count = streams_make },
	[FACET_STACKS] = { .make = callers_fill, .free = callers_fini },
	[FACET_MEMORY] = { .needs = FACET(CALLS) | FACET(KERNELS) | FACET(STACKS),
		.replay = replay_memory,
		.free = free_memory },
	[FACET_LINKS] = { .make = load_links, .free = free_links },
	[FACET_DEVICE] = { .needs = FACET(CALLS) | FACET(LINKS),
		.make = device_fill,
		.free = device_fini },
	[FACET_BLAME] = { .needs = FACET(STACKS) | FACET(DEVICE), .make = blame_gaps },
	[FACET_PREDICTION] = { .count = count_predictions, .free = free_prediction },
	[FACET_GPU_STATES] = { .make = load_gpu_states, .free = free_gpu_states },
	[FACET_REQUESTS] = { .needs = FACET(LINKS), .make = load_requests, .free = free_requests },
	[FACET_HINTS] = { .needs = FACET(MEMORY) | FACET(BLAME) | FACET(GPU_STATES) |
				   FACET(REQUESTS),
		.make = make_hints,
		.free = free_hints },
	[FACET_WARNINGS] = { .needs = FACET(KERNELS) | FACET(THREADS) | FACET(STACKS) |
				      FACET(DEVICE),
		.make = warnings_make,
		.free = warnings_free },
};

/* A facet's needs come before it. Samples say what devices did by how often kernels ran. */
static uint32_t with_needs(uint32_t asked, bool sampled)
{
	for (unsigned i = FACETS; i-- > 0;)
		if (asked >> i & 1)
			asked |= all_facets[i].needs |
				 (i == FACET_DEVICE && sampled ? FACET(KERNELS) : 0);
	return asked;
}

static int make_one(const struct facet_of *f, struct report *r, const struct tallies *t)
{
	if (f->count)
		return f->count(r, tallies_sum(t));
	return f->replay ? f->replay(r, t) : f->make ? f->make(r) : 0;
}

static int facets_make(struct report *r, uint32_t asked, unsigned threads)
{
	struct tallies tallies = { 0 };
	int e = 0;
	r->facets = with_needs(asked, r->sampled);
	if (r->facets & FACETS_TALLIED)
		e = tallies_gather(&tallies, r->trace, &r->meta, r->facets, threads);
	for (unsigned i = 0; i < FACETS && !e; i++)
		if (r->facets >> i & 1)
			e = make_one(&all_facets[i], r, &tallies);
	tallies_fini(&tallies);
	return e;
}

static void facets_free(struct report *r)
{
	for (unsigned i = FACETS; i-- > 0;)
		if (all_facets[i].free)
			all_facets[i].free(r);
}

static int make(struct report *r, uint32_t facets, unsigned threads, struct error *err)
{
	int e = meta_load(r->trace, &r->meta, err);
	if (e)
		return e;
	r->sampled = r->trace->header.sampled;
	e = facets_make(r, facets, threads);
	return e ? error_set(err, e, "the trace can't be read to its end: %s", strerror(-e)) : 0;
}

static int make_report(const struct report *like, uint32_t facets, unsigned threads,
	struct report **ret_report, struct error *err)
{
	struct report *r = xmalloc(sizeof *r);
	*r = *like;
	const int e = make(r, facets, threads, err);
	if (e) {
		report_free(r);
		return e;
	}
	*ret_report = r;
	return 0;
}

int report_make(const struct trace *trace, unsigned threads, uint32_t facets,
	struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = trace };
	return make_report(&like, facets, threads, ret_report, err);
}

int report_make_by_shape(const struct report *r, struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = r->trace, .by_shape = true };
	return make_report(&like, FACET(DEVICE), 0, ret_report, err);
}

int report_make_with_gaps(const struct report *r, struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = r->trace, .all_gaps = true };
	return make_report(&like, FACET(BLAME), 0, ret_report, err);
}

void report_free(struct report *r)
{
	if (!r)
		return;
	facets_free(r);
	meta_fini(&r->meta);
	free(r);
}
