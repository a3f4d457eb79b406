/* See analysis.h. */
#include "report/analysis.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/table.h"

#include "base/banned.h"

#define NAME_CUT     60 /* bytes of a kernel's name */
#define PAUSES_SHOWN 5u

static const char *const wall_part_text[WALL_PARTS] = {
	[WALL_COMPUTING] = "computing",
	[WALL_COMMUNICATING] = "communicating, with nothing computed beside it",
	[WALL_COPYING] = "copying or setting memory, with nothing else beside it",
	[WALL_LAUNCHING] = "idle: the host was on its way to the next launch",
	[WALL_WAITING] = "idle: the host was in a call that waits",
	[WALL_DRIVER] = "idle: the host was in a long call that is no launch",
	[WALL_HOST] = "idle: the host did something else",
	[WALL_QUEUED] = "idle: work was queued and had not begun",
	[WALL_UNKNOWN] = "idle: the call that ended it is not known",
	[WALL_BEFORE] = "before the first work",
	[WALL_AFTER] = "after the last work",
};

static const char *const path_part_text[PATH_PARTS] = {
	[PATH_COMPUTING] = "computing",
	[PATH_COMMUNICATING] = "communicating",
	[PATH_COPYING] = "copying or setting memory",
	[PATH_QUEUE] = "from one piece of work to the next",
	[PATH_LAUNCH] = "from a call's return to the start of its work",
	[PATH_HOST] = "the host",
	[PATH_WAITING] = "from the end of work to the return of the call that waits for it",
	[PATH_BEFORE] = "before the first work",
	[PATH_AFTER] = "after the last work",
};

static void cell_ns(struct table *t, uint64_t ns)
{
	struct number n;
	table_cell(t, "%s", number_ns(&n, ns));
}

static void cell_share(struct table *t, uint64_t part, uint64_t all)
{
	table_cell(t, "%.1f %%", all ? (double)part * 100 / (double)all : 0);
}

static void cell_bar(struct table *t, uint64_t part, uint64_t all)
{
	static const char bar[] = "####################";
	const double share = all ? (double)part / (double)all : 0;
	table_cell(t, "%.*s", (int)(share * 20 + 0.5), bar);
}

/* Shares of the wall time, and of it from the first work to the last: a program's start is often
 * longer than all that it does.  The parts from `inside` on are outside of that. */
static void put_parts(const struct report *r, FILE *out, const struct analysis_style *style,
	const uint64_t *ns, const char *const *names, unsigned count, unsigned inside)
{
	const uint64_t *wall = r->analysis.wall_ns;
	const uint64_t work_ns = r->wall_ns - wall[WALL_BEFORE] - wall[WALL_AFTER];
	static const char *const headings[] = { "time", "of wall", "of work", "", "what" };
	struct table t;
	table_init(&t, ">>><<", headings);
	for (unsigned i = 0; i < count; i++) {
		if (!ns[i])
			continue;
		cell_ns(&t, ns[i]);
		cell_share(&t, ns[i], r->wall_ns);
		if (i >= inside)
			table_cell(&t, "-");
		else
			cell_share(&t, ns[i], work_ns);
		cell_bar(&t, i >= inside ? 0 : ns[i], work_ns);
		table_cell(&t, "%s", names[i]);
	}
	table_print(&t, out, style->dim, style->plain);
	table_fini(&t);
}

static void put_hidden(FILE *out, const char *what, uint64_t ns, uint64_t hidden_ns)
{
	struct number n;
	if (ns)
		fprintf(out, "  %-13s %s, %.1f %% of it while something computed\n", what,
			number_ns(&n, ns), (double)hidden_ns * 100 / (double)ns);
}

static void put_queue(const struct report *r, FILE *out)
{
	const struct queue *q = &r->analysis.queue;
	struct number calls, api, queued, most;
	if (!q->calls)
		return;
	fprintf(out, "  launches      %s: %s in the call and %s in the queue on average (p50 %s)\n",
		number_count(&calls, q->calls), number_ns(&api, q->api_ns / q->calls),
		number_ns(&queued, q->queued_ns / q->calls),
		number_ns(&most, hist_at(&q->queued, 0.5)));
	fprintf(out, "  queue         %.1f deep on average, %" PRIu64 " at most, empty %.1f %%\n",
		q->depth_mean, q->depth_most,
		q->span_ns ? (double)q->empty_ns * 100 / (double)q->span_ns : 0);
}

static void cell_name(struct table *t, const char *name)
{
	table_cell_name(t, name, NAME_CUT);
}

/* That the devices were idle need not be said of a pause. */
static const char *cause_of(const struct pause *p)
{
	static const char idle[] = "idle: ";
	const char *text = wall_part_text[p->cause];
	return strncmp(text, idle, sizeof(idle) - 1) ? text : text + sizeof(idle) - 1;
}

static void put_pauses(const struct report *r, FILE *out, const struct analysis_style *style)
{
	static const char *const headings[] = { "time", "at", "mostly", "before it", "behind it" };
	const struct analysis *a = &r->analysis;
	struct table t;
	if (!a->pauses.n)
		return;
	fprintf(out, "\n%sLongest pauses of the devices%s\n", style->bold, style->plain);
	table_init(&t, ">><<<", headings);
	for (size_t i = 0; i < a->pauses.n && (!style->rows || i < PAUSES_SHOWN); i++) {
		const struct pause *p = &a->pauses.v[i];
		cell_ns(&t, p->ns);
		cell_ns(&t, p->start_ns);
		table_cell(&t, "%s", cause_of(p));
		cell_name(&t, p->before);
		cell_name(&t, p->after);
	}
	table_print(&t, out, style->dim, style->plain);
	table_fini(&t);
}

/* The path through the host is often one of several that are nearly as long. */
static void put_host_most(const struct report *r, FILE *out)
{
	const struct analysis *a = &r->analysis;
	const uint64_t *ns = a->path_ns;
	const uint64_t host = ns[PATH_HOST] + ns[PATH_LAUNCH] + ns[PATH_WAITING];
	struct number all, most;
	if (host > a->path_host_most_ns)
		fprintf(out,
			"  slack         of the host's %s a faster host saves %s at most (%.1f %% of "
			"wall): the busiest stream's work stays\n",
			number_ns(&all, host), number_ns(&most, a->path_host_most_ns),
			r->wall_ns ? (double)a->path_host_most_ns * 100 / (double)r->wall_ns : 0);
}

void analysis_put_text(const struct report *r, FILE *out, const struct analysis_style *style)
{
	const struct analysis *a = &r->analysis;
	if (!a->known)
		return;
	fprintf(out, "\n%sWhere the wall time went%s\n", style->bold, style->plain);
	put_parts(r, out, style, a->wall_ns, wall_part_text, WALL_PARTS, WALL_BEFORE);
	put_hidden(out, "copies", a->copy_ns, a->copy_hidden_ns);
	put_hidden(out, "communication", a->communication_ns, a->communication_hidden_ns);
	put_queue(r, out);
	fprintf(out, "\n%sThe critical path%s\n", style->bold, style->plain);
	put_parts(r, out, style, a->path_ns, path_part_text, PATH_PARTS, PATH_BEFORE);
	put_host_most(r, out);
	put_pauses(r, out, style);
}
