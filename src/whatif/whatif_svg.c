/*
 * Draws the answer with a point for each way of sharing, so that the best place is at the bottom
 * right. The best-effort rate grows to the right and the latency program's p99 upwards, as
 * multiples of alone. Circles are time slices, squares are MPS, and points above the edge stand at
 * it with their number.
 */
#include "whatif/whatif.h"

#include <math.h>
#include <stdio.h>

#include "palette.h"

#include "base/banned.h"

#define WIDTH      560.0
#define LEFT       64.0
#define TOP        62.0
#define PLOT_WIDE  460.0
#define PLOT_HIGH  300.0
#define LEGEND_ROW 18.0
#define MOST_SHARE 1.1
#define LEAST      0.7
#define MOST_RATIO 30.0

static const char *const colours[] = { LINE_INK, LINE_SKY, LINE_RED, LINE_GREEN, LINE_ROSE,
	LINE_GOLD, LINE_BLUE, LINE_PURPLE };
#define COLOURS (sizeof colours / sizeof *colours)

struct picture {
	const struct whatif *w;
	FILE *out;
	double worst; /* upper edge */
};

/* The worst of the latency programs, the sum of the others'. */
struct point {
	double ratio, share;
	unsigned colour;
	bool square;
};

static struct point point_of(const struct whatif *w, size_t way)
{
	const struct whatif_way *at = &w->ways[way];
	struct point p = { .square = at->sharing == LAW_MPS };
	size_t others = 0;
	for (size_t i = 0; i < w->count; i++) {
		if (w->programs[i].class == CLASS_LATENCY) {
			p.ratio = fmax(p.ratio, whatif_slowdown(w, &at->results, i, 0.99));
		} else {
			p.share += whatif_share(w, &at->results, i);
			others++;
		}
	}
	p.share /= others ? (double)others : 1;
	for (size_t i = 1; i <= way; i++)
		p.colour += w->ways[i].policy != w->ways[i - 1].policy;
	return p;
}

static double across(double share)
{
	return LEFT + PLOT_WIDE * fmin(share, MOST_SHARE) / MOST_SHARE;
}

static double down(const struct picture *p, double ratio)
{
	const double r = fmin(fmax(ratio, LEAST), p->worst);
	return TOP + PLOT_HIGH * (1 - log(r / LEAST) / log(p->worst / LEAST));
}

static void line(FILE *out, double x1, double y1, double x2, double y2, bool strong)
{
	fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1,
		y1, x2, y2, strong ? "#999" : "#e4e4e4");
}

static void put_frame(const struct picture *p)
{
	static const double ratios[] = { 1, 1.5, 2, 3, 5, 10, 20 },
			    shares[] = { 0, .25, .5, .75, 1 };
	for (size_t i = 0; i < sizeof ratios / sizeof *ratios && ratios[i] <= p->worst; i++) {
		const double y = down(p, ratios[i]);
		line(p->out, LEFT, y, LEFT + PLOT_WIDE, y, i == 0);
		fprintf(p->out,
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%g\303\227</text>\n",
			LEFT - 6, y + 4, ratios[i]);
	}
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		const double x = across(shares[i]);
		line(p->out, x, TOP, x, TOP + PLOT_HIGH, shares[i] == 1);
		fprintf(p->out,
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n",
			x, TOP + PLOT_HIGH + 16, shares[i]);
	}
}

static void put_mark(FILE *out, const struct point *p, double x, double y)
{
	const char *colour = colours[p->colour % COLOURS];
	if (p->square)
		fprintf(out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
			x - 5, y - 5, colour);
	else
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\" fill=\"%s\"/>\n", x, y,
			colour);
}

static void put_point(const struct picture *p, const struct point *at)
{
	const double x = across(at->share), y = down(p, at->ratio);
	const bool right = x > LEFT + PLOT_WIDE * 0.8; /* no room for a number there */
	put_mark(p->out, at, x, y);
	if (at->ratio > p->worst)
		fprintf(p->out,
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-weight=\"bold\" "
			"fill=\"%s\">%.0f\303\227 \342\206\221</text>\n",
			right ? x - 9 : x + 9, y + 4, right ? "end" : "start",
			colours[at->colour % COLOURS], at->ratio);
}

static void put_legend(const struct picture *p, size_t way, const struct point *at)
{
	struct way_name name;
	const double x = LEFT + (double)(way % 3) * 160;
	const double y = TOP + PLOT_HIGH + 52 + (double)(way / 3) * LEGEND_ROW;
	put_mark(p->out, at, x, y - 4);
	fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 12, y,
		whatif_way_name(&p->w->ways[way], &name));
}

void whatif_put_svg(const struct whatif *w, FILE *out)
{
	struct point at[WHATIF_WAYS];
	struct picture p = { w, out, 3.2 };
	const double rows = ((double)w->way_count + 2) / 3;
	for (size_t i = 0; i < w->way_count; i++) {
		at[i] = point_of(w, i);
		p.worst = fmin(fmax(p.worst, at[i].ratio * 1.15), MOST_RATIO);
	}
	const double high = TOP + PLOT_HIGH + 52 + floor(rows) * LEGEND_ROW;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%.0f\" y=\"24\" font-size=\"15\" font-weight=\"bold\">p99 latency against "
		"best-effort rate, each as a multiple of alone</text>\n"
		"<text x=\"%.0f\" y=\"42\" fill=\"#555\">replayed from recordings; circles: time slices, "
		"squares: MPS; best: below right</text>\n",
		WIDTH, high, LEFT - 40, LEFT - 40);
	put_frame(&p);
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">best-effort rate</text>\n",
		LEFT + PLOT_WIDE / 2, TOP + PLOT_HIGH + 32);
	for (size_t i = 0; i < w->way_count; i++) {
		put_point(&p, &at[i]);
		put_legend(&p, i, &at[i]);
	}
	fputs("</svg>\n", out);
}
