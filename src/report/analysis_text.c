/* Prints the analysis of the wall time as text. */
#include "report/analysis.h"
#include "report/sections.h"
#include "section/view.h"

#include <inttypes.h>

#include "base/bounded.h"
#include "base/expect.h"
#include "base/number.h"
#include "blame/blame.h"
#include "list/busy.h"

#define NAME_CUT        40 /* bytes of a kernel's name */
#define IDLE_GAPS_SHOWN 5u

#define LINE_COLUMNS 60u
static_assert(BUSY_POINTS % LINE_COLUMNS == 0, "as many intervals a column");

/* The part of each column's time in which some GPU was busy. */
static void put_busy(const struct report *r, const struct text_page *p)
{
	uint64_t ns[BUSY_POINTS];
	struct number each;
	busy_fill(r, ns);
	fputs("  busy          ", p->out);
	for (unsigned i = 0; i < LINE_COLUMNS; i++) {
		uint64_t sum = 0;
		for (unsigned k = 0; k < BUSY_POINTS / LINE_COLUMNS; k++)
			sum += ns[i * (BUSY_POINTS / LINE_COLUMNS) + k];
		fputs(table_bar(sum, r->wall_ns / LINE_COLUMNS, p->utf8), p->out);
	}
	fprintf(p->out, "  share of each %s in which a GPU was busy\n",
		number_ns(&each, r->wall_ns / LINE_COLUMNS));
}

static void put_hidden(const struct text_page *p, const char *what, uint64_t ns, uint64_t hidden_ns)
{
	struct number n;
	expect(hidden_ns <= ns, "what is hidden is part of all");
	if (ns)
		fprintf(p->out, "  %-13s %s, %.1f %% of it while kernels ran\n", what,
			number_ns(&n, ns), (double)hidden_ns * 100 / (double)ns);
}

static void put_queue(const struct report *r, const struct text_page *p)
{
	const struct queue *q = &r->analysis.queue;
	expect(q->empty_ns <= q->span_ns, "the queue is empty for part of the time");
	struct number calls, api, queued, most;
	if (!q->calls)
		return;
	fprintf(p->out,
		"  launches      %s, of memcpys and memsets too: mean %s in the call, mean / median %s / %s in the queue\n",
		number_count(&calls, q->calls), number_ns(&api, q->api_ns / q->calls),
		number_ns(&queued, q->queued_ns / q->calls),
		number_ns(&most, hist_at(&q->queued, 0.5)));
	fprintf(p->out,
		"  queue         mean / maximum depth %.1f / %" PRIu64
		", empty %.1f %% of the time\n",
		q->depth_mean, q->depth_most,
		q->span_ns ? (double)q->empty_ns * 100 / (double)q->span_ns : 0);
}

const char *analysis_began(const struct report *r, const struct idle_gap *p, struct gap_text *room)
{
	const uint32_t in = p->culprit.began_in;
	struct number bytes;
	if (p->began_named)
		return p->began;
	snprintf(room->text, sizeof room->text, "%s%s%s%s%s", p->began, p->began_bytes ? " " : "",
		p->began_bytes ? number_bytes(&bytes, p->began_bytes) : "",
		in == META_NONE ? "" : " in ", in == META_NONE ? "" : r->meta.names.v[in].text);
	return room->text;
}

const char *analysis_line(const struct report *r, const struct idle_gap *p, struct gap_text *room)
{
	if (p->culprit.line != META_NONE)
		return r->meta.names.v[p->culprit.line].text;
	const struct stack_frame *f = blame_line(r->stacks, p->culprit.stack);
	if (!f)
		return NULL;
	stacks_frame_text(f, room->text, sizeof room->text);
	return room->text;
}

static bool has_time(const struct row *row)
{
	const uint64_t ns = *(const uint64_t *)row->at;
	expect(ns <= row->r->wall_ns, "a part of the wall time is no longer than it");
	return ns;
}

#define PARTS "ns,share,gpu_share,bar,what"

static void put_idle_gaps(const struct report *r, const struct text_page *p)
{
	static const struct view view = { .section = &section_longest_gaps,
		.heading = "Longest idle gaps: no GPU ran anything",
		.keys = "ns,start_ns,cause_text,culprit,after,before",
		.most = NAME_CUT };
	struct text_page few = *p;
	few.rows = p->rows ? IDLE_GAPS_SHOWN : 0;
	view_put(&view, r, &few);
}

/* The path through the host is often one of several that are nearly as long. */
void analysis_put_slack(const struct report *r, FILE *out)
{
	const struct analysis *a = &r->analysis;
	const uint64_t most = a->path_host_most_ns, host = most + a->path_ns[PATH_OVERLAPPED];
	struct number all, saved;
	if (host > most)
		fprintf(out,
			"  slack         a faster host saves at most %s (%.1f %% of wall) of the %s that the path spends on it: GPU activities "
			"would take the rest\n",
			number_ns(&saved, most),
			r->wall_ns ? (double)most * 100 / (double)r->wall_ns : 0,
			number_ns(&all, host));
}

/* Nobody knows what ran then. */
static void put_off(const struct report *r, const struct text_page *p)
{
	struct number off;
	if (r->off_ns && !r->analysis.wall_ns[WALL_OFF])
		fprintf(p->out,
			"  for %s of it recording was switched off: that stands as time in which nothing ran\n",
			number_ns(&off, r->off_ns));
}

void analysis_put_text(const struct report *r, const struct text_page *p)
{
	static const struct view breakdown = { .section = &section_breakdown,
		.heading = "Where the wall time went",
		.keys = PARTS,
		.has = has_time };
	static const struct view path = { .section = &section_critical_path,
		.heading = "The critical path",
		.keys = PARTS,
		.has = has_time };
	const struct analysis *a = &r->analysis;
	if (!a->known)
		return;
	view_put(&breakdown, r, p);
	put_off(r, p);
	put_busy(r, p);
	put_hidden(p, "copies", a->copy_ns, a->copy_hidden_ns);
	put_hidden(p, "communication", a->communication_ns, a->communication_hidden_ns);
	put_queue(r, p);
	view_put(&path, r, p);
	analysis_put_slack(r, p->out);
	put_idle_gaps(r, p);
}

void analysis_put_join(const struct report *r, const struct text_page *p)
{
	struct number activity, joined, checked, early, off;
	if (!r->links.activities)
		return;
	fprintf(p->out, "  %s of %s GPU activities joined to their calls",
		number_count(&joined, r->links.joined),
		number_count(&activity, r->links.activities));
	fprintf(p->out, "; %s kernels agree in name, grid and block\n",
		number_count(&checked, r->links.checked));
	fprintf(p->out, "  clocks agree within %s; %s activities began before their call\n",
		number_ns(&off, r->clock_residual_ns), number_count(&early, r->links.early));
}

static bool has_graph_times(const struct report *r)
{
	for (size_t i = 0; i < r->activities.n; i++)
		if (r->activities.v[i].kind == GPU_GRAPH)
			return true;
	return false;
}

void analysis_put_sampling(const struct report *r, const struct text_page *p)
{
	struct number each, timed, most, least, never;
	uint64_t untimed = 0;
	page_heading(p, "Devices");
	if (r->sampled == 1)
		fprintf(p->out, "  each launch was timed, with events around it");
	else
		fprintf(p->out, "  one launch in %s was timed, with events around it",
			number_count(&each, r->sampled));
	fprintf(p->out,
		": %s kernels\n  times include what the events take, 1 to 2 us; totals are "
		"estimates\n",
		number_count(&timed, r->device_kernels));
	if (r->sampled_left_out)
		fprintf(p->out,
			"  %s more are left out: the host was slow, and the stream waited for it\n",
			number_count(&timed, r->sampled_left_out));
	if (r->sampled_ns > 0) {
		fprintf(p->out, "  launches and graphs took at most %s",
			number_ns(&most, sat_from(report_sampled_most_ns(r))));
		if (!isnan(r->sampled_least_ns))
			fprintf(p->out, ", at least %s",
				number_ns(&least, sat_from(r->sampled_least_ns)));
		fputs(" in all (95 % confidence), without memcpys and memsets\n", p->out);
	}
	for (size_t i = 0; i < r->kernel_rows.n; i++)
		if (r->kernel_rows.v[i].activity == ACTIVITY_NONE)
			untimed = sat_add(untimed, r->kernel_rows.v[i].count);
	if (untimed)
		fprintf(p->out, "  and without %s launches of kernels that were never timed\n",
			number_count(&never, untimed));
	if (r->graph_launches && !has_graph_times(r))
		fprintf(p->out, "  and without %s launches of graphs, none of which was timed\n",
			number_count(&never, r->graph_launches));
}
