/*
 * A trace as one page for a browser: the viewer (viewer/), and as data the report's own JSON,
 * that of `weir memory`, the timeline, and flame graphs by device and by host.  The page needs no
 * network and no other file, and cannot reach either: its policy allows the viewer's own script
 * and style by their hashes, and nothing else.
 */
#ifndef WEIR_PAGE_HTML_H
#define WEIR_PAGE_HTML_H

#include <stdio.h>

#include "flame/flame.h"
#include "model/report.h"
#include "page/layout.h"

#define HTML_ITEMS_MOST 300000u /* of the timeline: some 5 MB of page */

struct html {
	struct report *report;
	struct layout *layout; /* its names grow by those of the flames */
	struct flame *device;  /* NULL: nothing is known of devices */
	struct flame *host;
};

/* Everything that the page needs, read; html_fini() also after a failure.  0 or -errno. */
int html_make(struct html *h, const struct trace *t, const struct decoder *decoder, size_t most,
	struct error *err);
void html_fini(struct html *h);

/* Errors of `out` show in ferror(out); -ENOMEM. */
int html_put(const struct html *h, FILE *out);

/* The data alone: one JSON object. */
int html_put_data(const struct html *h, FILE *out);

#endif
