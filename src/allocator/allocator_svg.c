/*
 * Draws the replay over time: live memory as an area, and a line above it for the memory that each
 * allocator reserved. The space between area and line is memory that nobody can use.
 */
#include "allocator/allocator.h"

#include "base/number.h"
#include "palette.h"

#define WIDTH      720.0
#define LEFT       76.0
#define TOP        64.0
#define PLOT_WIDE  600.0
#define PLOT_HIGH  280.0
#define LEGEND_ROW 18.0
#define LIVE       "#c9d7e8"

#define LIMITED LINE_SKY

struct picture {
	const struct alloc_replay *r;
	FILE *out;
	uint64_t most; /* the upper edge */
};

static const char *colour_of(const struct alloc_row *row)
{
	return row->setup.limit_bytes ? LIMITED : row->design->colour;
}

static double across(uint32_t point)
{
	return LEFT + PLOT_WIDE * point / ALLOC_POINTS;
}

static double down(const struct picture *p, uint64_t bytes)
{
	return TOP + PLOT_HIGH * (1 - (double)bytes / (double)p->most);
}

/* Steps: each point is a part of the time. */
static void put_steps(const struct picture *p, const uint64_t *v)
{
	uint64_t last = v[0];
	fprintf(p->out, "%.1f,%.1f", across(0), down(p, last));
	for (uint32_t i = 1; i < ALLOC_POINTS; i++) {
		if (v[i] == last)
			continue;
		fprintf(p->out, " %.1f,%.1f %.1f,%.1f", across(i), down(p, last), across(i),
			down(p, v[i]));
		last = v[i];
	}
	fprintf(p->out, " %.1f,%.1f", across(ALLOC_POINTS), down(p, last));
}

static void put_live(const struct picture *p)
{
	fputs("<polygon fill=\"" LIVE "\" points=\"", p->out);
	put_steps(p, p->r->rows[0].meter.live);
	fprintf(p->out, " %.1f,%.1f %.1f,%.1f\"/>\n", across(ALLOC_POINTS), TOP + PLOT_HIGH,
		across(0), TOP + PLOT_HIGH);
}

static void put_line(const struct picture *p, size_t row)
{
	fprintf(p->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" points=\"",
		colour_of(&p->r->rows[row]));
	put_steps(p, p->r->rows[row].meter.held);
	fputs("\"/>\n", p->out);
}

/* Powers of two, or halves between, so that there are four to eight. */
static uint64_t step_of(uint64_t most)
{
	uint64_t step = 1;
	while (step * 8 < most && step < UINT64_C(1) << 60)
		step *= 2;
	return step;
}

static void put_frame(const struct picture *p)
{
	const struct alloc_trace *t = p->r->trace;
	struct number n;
	const uint64_t step = step_of(p->most);
	for (uint64_t at = 0; at <= p->most; at += step)
		fprintf(p->out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n"
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%s</text>\n",
			LEFT, down(p, at), LEFT + PLOT_WIDE, down(p, at), at ? "#e4e4e4" : "#999",
			LEFT - 6, down(p, at) + 4, at ? number_bytes(&n, at) : "0");
	const uint64_t end = t->events.n ? t->events.v[t->events.n - 1].ns : 0;
	fprintf(p->out,
		"<text x=\"%.1f\" y=\"%.1f\" fill=\"#555\">first allocation</text>\n"
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%s</text>\n",
		LEFT, TOP + PLOT_HIGH + 16, LEFT + PLOT_WIDE, TOP + PLOT_HIGH + 16,
		number_ns(&n, end));
}

static void put_legend(const struct picture *p, double y, const char *colour, const char *name,
	uint64_t bytes, const char *share)
{
	struct number n;
	fprintf(p->out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\"/>\n"
		"<text x=\"%.1f\" y=\"%.1f\">%s</text>\n"
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n"
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		LEFT, y - 9, colour, LEFT + 22, y, name, LEFT + 270, y, number_bytes(&n, bytes),
		LEFT + 370, y, share);
}

static void put_legends(const struct picture *p)
{
	struct alloc_row_name name;
	char share[32];
	double y = TOP + PLOT_HIGH + 44;
	put_legend(p, y, LIVE, "live", p->r->trace->live_peak, "live / reserved");
	for (size_t i = 0; i < p->r->count; i++) {
		const struct alloc_row *row = &p->r->rows[i];
		y += LEGEND_ROW;
		snprintf(share, sizeof share, "%.1f %%", 100 * alloc_row_share(p->r, row));
		put_legend(p, y, colour_of(row), alloc_row_name(row, &name),
			row->meter.reserved_peak, share);
	}
}

void alloc_put_svg(const struct alloc_replay *r, FILE *out)
{
	struct picture p = { r, out, 1 };
	for (size_t i = 0; i < r->count; i++)
		p.most = MAX(r->rows[i].meter.reserved_peak, p.most);
	p.most += p.most / 20;
	const double high = TOP + PLOT_HIGH + 44 + LEGEND_ROW * (double)r->count + 16;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"bold\">Memory reserved by "
		"allocators for the same requests</text>\n"
		"<text x=\"16\" y=\"42\" fill=\"#555\">replayed from a recording; between the area and a "
		"line is memory that is reserved and not used</text>\n",
		WIDTH, high);
	put_live(&p);
	put_frame(&p);
	for (size_t i = r->count; i-- > 0;)
		put_line(&p, i);
	put_legends(&p);
	fputs("</svg>\n", out);
}
