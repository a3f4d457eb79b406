/* From a trace to a report: its meta data, then the facets that are asked for. */
#include "report/report_make.h"

#include <string.h>

#include "base/xmalloc.h"
#include "report/facets.h"

#include "base/banned.h"

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

int report_make(const struct trace *trace, const struct decoder *decoder, unsigned threads,
	uint32_t facets, struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = trace, .decoder = decoder };
	return make_report(&like, facets, threads, ret_report, err);
}

int report_make_by_shape(const struct report *r, struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = r->trace, .decoder = r->decoder, .by_shape = true };
	return make_report(&like, FACET(DEVICE), 0, ret_report, err);
}

int report_make_with_gaps(const struct report *r, struct report **ret_report, struct error *err)
{
	const struct report like = { .trace = r->trace, .decoder = r->decoder, .all_gaps = true };
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
