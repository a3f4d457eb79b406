/* Rules about the host: what it did while the devices had nothing to do. */
#include "hint_rules.h"

#include <math.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/text.h"
#include "base/xmalloc.h"
#include "model/request_times.h"
#include "trace/activity.h"

#define GAIN_LEAST 0.1
#define PLACE_NAME 60u
/* Between two kernels of a graph, or of a stream that is kept full, measured on Hopper. */
#define GRAPH_NS  300.0
#define STREAM_NS 1000.0

struct saving {
	double gain;
	uint64_t count;
	uint64_t ns; /* as recorded */
};

/* least_ns: what stays of each idle gap. */
static struct saving saving_of(const struct hint_facts *f, enum gap_cause cause, double least_ns)
{
	const struct hint_gaps *p = &f->idle_gaps[cause];
	return (struct saving){ .count = p->count,
		.ns = p->ns,
		.gain = facts_share(f, (double)p->ns - (double)p->count * least_ns) };
}

static char *gap_evidence(const struct hint_facts *f, const struct saving *s, enum gap_cause cause,
	const char *besides)
{
	const struct gap_cause_words *words = &gap_cause_words[cause];
	struct number ns, mean;
	if (!expect(s->count, "what is said of idle gaps is of some"))
		return NULL;
	return xasprintf("%s%s%s, %llu times, %s in all (%.0f %% of the analysed time), mean %s%s",
		words->own ? words->own : wall_part_text[words->part], words->besides, besides,
		(unsigned long long)s->count, number_ns(&ns, s->ns),
		100 * facts_share(f, (double)s->ns), number_ns(&mean, s->ns / s->count),
		facts_slowed(f));
}

/* Such programs have torch.compile, which has a rule of its own. */
static bool is_eager(const struct hint_facts *f)
{
	return facts_kernels(f, NAME_TORCH) * 10 >= facts_kernels(f, 0) * 3 && !facts_compiled(f);
}

HINT_RULE(launch_bound)
{
	uint64_t kernels = 0, in_graphs = 0;
	for (size_t i = 0; i < f->kernels.n; i++) {
		kernels += f->kernels.v[i].count;
		in_graphs += f->kernels.v[i].graph_count;
	}
	expect(in_graphs <= kernels, "kernels of graphs are part of all");
	struct saving s = saving_of(f, GAP_LAUNCH, GRAPH_NS);
	const struct saving between = saving_of(f, GAP_BETWEEN, GRAPH_NS);
	struct number graphs;
	s.count += between.count;
	s.ns += between.ns;
	s.gain = fmin(s.gain + between.gain, 1);
	/* A program that uses graphs already needs no such hint. */
	if (s.count < 50 || s.gain < GAIN_LEAST || is_eager(f) || 2 * in_graphs > kernels)
		return;
	char *evidence = gap_evidence(f, &s, GAP_LAUNCH,
		between.count ? ", or the short time from one kernel to the next" : "");
	char *where = xasprintf("%llu kernels, %s graph launches", (unsigned long long)kernels,
		number_count(&graphs, f->report->graph_launches));
	hint_add(to, rule, s.gain, f->report->graph_launches ? 0.5 : 0.7, where, evidence);
}

HINT_RULE(sync)
{
	const struct saving s = saving_of(f, GAP_SYNC, STREAM_NS);
	if (s.count < 10 || s.gain < GAIN_LEAST)
		return;
	hint_add(to, rule, s.gain, 0.6, facts_place(f, HINT_SYNC, "copies that wait"),
		gap_evidence(f, &s, GAP_SYNC, ""));
}

/* "copy HtoD", or the kernel. */
static const char *activity_text(
	const struct hint_facts *f, const struct hint_activity *w, struct text_short *room)
{
	const char *kind = activity_kind_name(w->kind);
	const char *name = w->kernel == HINT_NONE ? NULL : f->kernels.v[w->kernel].name;
	const char *direction = w->kind == GPU_MEMCPY ? copy_direction_name(w->what) : NULL;
	if (name)
		return text_short(room, text_kernel(name), PLACE_NAME);
	snprintf(room->text, sizeof room->text, "%s%s%s", kind ? kind : "activity",
		direction ? " " : "", direction ? direction : "");
	return room->text;
}

/* The place in the loop. */
static char *host_place(const struct hint_facts *f)
{
	struct text_short before;
	struct number ns;
	if (!f->host_before)
		return xasprintf("the thread that launches");
	return xasprintf("the thread that launches, most (%s) before %s",
		number_ns(&ns, f->host_most_ns), activity_text(f, f->host_before, &before));
}

/* A server that is asked for nothing has nothing to do. */
HINT_RULE(idle_host)
{
	const struct saving s = saving_of(f, GAP_HOST, STREAM_NS);
	const struct requests *requests = f->report->requests;
	if ((requests && requests->v.n) || s.count < 3 || s.gain < GAIN_LEAST)
		return;
	hint_add(to, rule, s.gain, 0.6, host_place(f), gap_evidence(f, &s, GAP_HOST, ""));
}

HINT_RULE(alloc)
{
	const struct saving s = saving_of(f, GAP_ALLOC, STREAM_NS);
	if (s.count < 10 || s.gain < GAIN_LEAST)
		return;
	hint_add(to, rule, s.gain, 0.7, facts_place(f, HINT_MEMORY, "allocations"),
		gap_evidence(f, &s, GAP_ALLOC, ""));
}

struct sides { /* of one process, on the default stream and on streams that wait for it */
	uint64_t legacy_ns, blocking_ns;
	uint64_t turns; /* from one side to the other */
	double room;    /* of the device that kernels of the second fill, weighted by their time */
	uint32_t streams;
	int last;
};

static double fill_of(const struct hint_facts *f, const struct hint_kernel *k)
{
	const struct hint_device *d = facts_device(f, k->device);
	const struct occupancy_launch l = { .threads = k->shape.block[0] * k->shape.block[1] *
						       k->shape.block[2],
		.regs = k->registers,
		.smem_static_bytes = k->shared_static,
		.smem_dynamic_bytes = k->shared_dynamic };
	if (!d || !d->limits || !d->multiprocessors || !k->has_resources)
		return 1;
	const struct occupancy o = occupancy_of(d->limits, &l);
	const double blocks = (double)k->shape.grid[0] * k->shape.grid[1] * k->shape.grid[2];
	return o.blocks ? fmin(1, blocks / ((double)o.blocks * d->multiprocessors)) : 1;
}

static void add_side(const struct hint_facts *f, const struct hint_activity *w, struct sides *s)
{
	const struct hint_stream *stream = &f->streams.v[w->stream];
	const bool legacy = stream->legacy && !stream->other;
	if (!legacy && !stream->blocking)
		return;
	if (w->kernel != HINT_NONE && !legacy)
		s->room += fill_of(f, &f->kernels.v[w->kernel]) * (double)w->alone_ns;
	*(legacy ? &s->legacy_ns : &s->blocking_ns) += w->alone_ns;
	s->turns += s->last && s->last != 1 + legacy;
	s->last = 1 + legacy;
}

HINT_RULE(default_stream)
{
	struct sides s = { 0 };
	struct number ns;
	for (size_t i = 0; i < f->streams.n; i++)
		s.streams += f->streams.v[i].blocking;
	for (size_t i = 0; i < f->activities.n && s.streams; i++)
		add_side(f, &f->activities.v[i], &s);
	if (s.turns < 10 || !s.blocking_ns)
		return;
	const double room = fmax(s.room / (double)s.blocking_ns, 0.01);
	const double beside = fmin(s.streams, 1 / room); /* so many could run at a time */
	const double both = (double)s.legacy_ns + (double)s.blocking_ns;
	const double gain = facts_share(
		f, both - fmax((double)s.blocking_ns / fmax(beside, 1), (double)s.legacy_ns));
	if (gain < GAIN_LEAST || (beside < 2 && room > 0.5))
		return;
	hint_add(to, rule, gain, 0.5,
		xasprintf("the default stream, and %u streams that wait for it", s.streams),
		xasprintf("GPU activities went from one to the other %llu times. Kernels of these "
			  "streams fill %.0f %% of the device and ran alone for %s",
			(unsigned long long)s.turns, 100 * room, number_ns(&ns, s.blocking_ns)));
}
