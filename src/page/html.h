/*
 * Writes a trace as one page for a browser. It contains the viewer (viewer/) and as data the
 * report's JSON, that of `weir memory`, the timeline, and flame graphs. The page cannot reach a
 * network or another file: its policy allows only the viewer's script and style, by their hashes.
 *
 * Two recordings can share a page. The second is `other` of the first, with the differences.
 */
#pragma once

#include <stdio.h>

#include "flame/flame.h"
#include "model/report.h"
#include "page/layout.h"
#include "page/timeline_data.h"

#define HTML_ITEMS_MOST 300000u  /* of the timeline: some 5 MB of page */
#define HTML_FINE_MOST  2000000u /* for those who look closely: some 15 MB */

struct html_sizes {
	size_t items, fine;
};

struct diff;

struct html {
	struct report *report;
	struct layout *layout; /* its names grow by those of the flames */
	struct flame *device;  /* NULL: nothing is known of devices */
	struct flame *host;
	struct timeline_numbers numbers;
	char *fine; /* blocks of the timeline, base64, a line each; NULL: nothing was merged */
	size_t fine_bytes;
	uint64_t fine_items, fine_bin_ns;
	const struct html *other; /* NULL, or the caller's: what this is compared with, and how */
	const struct diff *diff;  /* they differ, finished; with `other` only */
};

/* Everything that the page needs, read; html_fini() also after a failure.  0 or -errno. */
int html_make(
	struct html *h, const struct trace *t, const struct html_sizes *most, struct error *err);
void html_fini(struct html *h);

/* Errors of `out` show in ferror(out). */
int html_put(const struct html *h, FILE *out);

/* The data alone: one JSON object. */
int html_put_data(const struct html *h, FILE *out);
