/* Makes and frees the facets of a report (model/facet.h).  One owner thread. */
#ifndef WEIR_REPORT_FACETS_H
#define WEIR_REPORT_FACETS_H

#include "model/facet.h"
#include "model/report.h"

/* Makes those facets and what they need, and notes them in r->facets.  threads: as for
 * report_make().  0 or -errno; facets_free() follows in either case. */
int facets_make(struct report *r, uint32_t facets, unsigned threads);
void facets_free(struct report *r);

#endif
