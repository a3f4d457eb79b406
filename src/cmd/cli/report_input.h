/* The report, the option --top and the colours that reading commands share. */
#pragma once

#include <stdbool.h>

#include "cmd/cli/options.h"
#include "model/facet.h"
#include "model/report.h"

/* Whether standard output is a terminal that may be coloured. */
bool report_input_colour(void);

/* Whether the terminal knows block characters, by its locale. */
bool report_input_utf8(void);

/* --top, 0 for all; an exit code when it is no number, which has been said. */
int report_input_rows(const struct options *o, unsigned *ret_rows);

/* Makes those facets of the report of the one trace that the arguments name, and gives it and --top
 * to show(), whose exit code it returns.  The error has been printed. */
int report_input_show(const struct options *o, uint32_t facets,
	int (*show)(const struct options *o, struct report *r, unsigned rows));
