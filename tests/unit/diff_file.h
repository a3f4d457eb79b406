/* For tests of `weir diff`: a recording as one of its sides. */
#pragma once

#include "diff/diff.h"
#include "report/report_make.h"
#include "unit.h"

static inline void add_file(struct diff *d, enum diff_side_id side, const char *path)
{
	struct trace *t;
	struct report *r;
	struct error err;
	assert_int_equal(trace_open(path, &t, &err), 0);
	assert_int_equal(report_make(t, 1, FACETS_BUT_HINTS, &r, &err), 0);
	assert_int_equal(diff_add(d, side, path, r), 0);
	report_free(r);
	trace_close(t);
}
